//! For each type of filter, every lookup with the right hash finds the keys that the filter
//! inserted itself, and all lookups agree on absent keys.

use blocked_bloom::{Bitmask, Filter};

/// Keys and integers that a checked filter has inserted, and no others. The key of an integer is
/// its little-endian bytes.
pub(crate) fn keys() -> Vec<Vec<u8>> {
    let key = |i: usize| format!("key {i:04}, {}", "x".repeat(i % 37)).into_bytes();
    (0..700).map(key).collect()
}

pub(crate) fn integers() -> Vec<u64> {
    (0..700_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

/// Both, as bytes and in their order.
#[allow(dead_code, reason = "for filters in partitions")]
pub(crate) fn sorted() -> Vec<Vec<u8>> {
    let integers = integers().into_iter().map(|integer| integer.to_le_bytes().to_vec());
    let mut all: Vec<Vec<u8>> = keys().into_iter().chain(integers).collect();
    all.sort_unstable();
    all
}

/// How a filter must answer for the hash of a key that it has inserted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hashes {
    /// As for the key.
    AsKeys,
    /// As for the key, or "maybe", because a hash has less information or the filter uses another
    /// hash.
    #[allow(dead_code, reason = "for filters of other systems")]
    LessThanKeys,
}

/// Looks up the inserted keys and integers, and as many absent ones, by each method in calls of
/// several lengths.
pub(crate) fn check<F: Filter>(name: &str, filter: &F, hashes: Hashes) {
    let absent = |key: &Vec<u8>| [b"absent ", key.as_slice()].concat();
    let all: Vec<Vec<u8>> = keys().iter().flat_map(|key| [key.clone(), absent(key)]).collect();
    let numbers: Vec<u64> = integers().iter().flat_map(|&i| [i, !i]).collect();
    let bytes: Vec<[u8; 8]> = numbers.iter().map(|number| number.to_le_bytes()).collect();
    check_keys(name, filter, hashes, &all);
    check_keys(name, filter, hashes, &bytes);
    let mut hits = Bitmask::new();
    for length in LENGTHS {
        let mut words = vec![0x5555; length.div_ceil(64)];
        filter.contains_u64s(&numbers[..length], &mut hits);
        filter.contains_u64s_into(&numbers[..length], &mut words).unwrap();
        assert_eq!(hits.words(), words, "{name}: {length} integers");
        for (i, hit) in hits.iter().enumerate() {
            assert_eq!(hit, filter.contains(bytes[i]), "{name}: integer {i} of {length}");
        }
    }
}

const LENGTHS: [usize; 7] = [0, 1, 2, 64, 65, 1_100, 1_400];

fn check_keys<F: Filter, K: AsRef<[u8]>>(name: &str, filter: &F, hashes: Hashes, keys: &[K]) {
    let found: Vec<bool> = keys.iter().map(|key| filter.contains(key)).collect();
    let misses = found.iter().filter(|&&found| !found).count();
    assert!(found.iter().step_by(2).all(|&found| found), "{name}: an inserted key is absent");
    assert!(misses > keys.len() / 3, "{name}: {misses} of {} keys are absent", keys.len());
    let mut hits = Bitmask::new();
    for length in LENGTHS {
        let mut words = vec![0x5555; length.div_ceil(64)];
        filter.contains_batch(&keys[..length], &mut hits);
        filter.contains_batch_into(&keys[..length], &mut words).unwrap();
        assert_eq!(hits.words(), words, "{name}: {length} keys");
        assert!(hits.iter().eq(found[..length].iter().copied()), "{name}: {length} keys");
    }
    let hash = |key: &K| filter.hash_key(key.as_ref()).expect("the filter hashes keys");
    let hash_of: Vec<u64> = keys.iter().map(hash).collect();
    filter.contains_hashes(&hash_of, &mut hits);
    for (i, &hash) in hash_of.iter().enumerate() {
        let hit = filter.contains_hash(hash);
        assert_eq!(Some(hit), hits.get(i), "{name}: hash {i}");
        assert!(hit || !found[i], "{name}: the hash of key {i} is absent");
        assert!(hit == found[i] || hashes == Hashes::LessThanKeys, "{name}: hash {i}");
        if let Ok(hasher) = filter.hasher() {
            assert_eq!(hash, hasher.hash(&keys[i]), "{name}: key {i}");
        }
    }
}
