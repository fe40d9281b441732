//! Batches of every length with every call, for owned and opened filters, against single lookups.

use crate::common::{Random, kernels};
use blocked_bloom::{Bitmask, Block, Filter, Kernel, KeyHash};
use blocked_bloom_scalable::{ScalableBloomFilter, ScalableOptions};

/// Lengths around the words of a mask, and around the chunks of a lookup.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=200).chain([1_000, 1_023, 1_024, 1_025, 2_047, 2_048, 2_049, 3_000, 4_500])
}

/// Keys to look up; those at even indices are inserted.
fn keys() -> Vec<[u8; 8]> {
    (0..4_500_u64).map(u64::to_le_bytes).collect()
}

/// Compares every batch call with single lookups in the links.
fn check<D: AsRef<[Block]>>(name: &str, filter: &ScalableBloomFilter<D>) {
    let keys = keys();
    let integers: Vec<u64> = keys.iter().map(|&key| u64::from_le_bytes(key)).collect();
    let hasher = filter.hasher();
    // Filters of caller-supplied hashes have no hasher.
    let hashes: Vec<u64> = match hasher {
        Ok(hasher) => keys.iter().map(|key| hasher.hash(key)).collect(),
        Err(_) => Random(9).hashes(keys.len()),
    };
    let hash_answers: Vec<bool> = hashes
        .iter()
        .map(|&hash| filter.links().iter().any(|link| link.contains_hash(hash)))
        .collect();
    let key_answers = if hasher.is_ok() { hash_answers.clone() } else { vec![true; keys.len()] };
    let any: &dyn Filter = filter;
    assert_eq!(any.key_hash(), filter.key_hash());
    for (i, &hash) in hashes.iter().enumerate() {
        filter.prefetch_hash(hash);
        any.prefetch_hash(hash);
        assert_eq!(filter.contains_hash(hash), hash_answers[i], "{name}, hash {i}");
        assert_eq!(any.contains_hash(hash), hash_answers[i], "{name}, hash {i}");
        assert_eq!(filter.contains(keys[i]), key_answers[i], "{name}, key {i}");
    }
    let mut hits = Bitmask::new();
    for length in lengths() {
        let (hashes, keys, integers) = (&hashes[..length], &keys[..length], &integers[..length]);
        let words = length.div_ceil(64);
        let same = |hits: &Bitmask, expected: &[bool], call: &str| {
            let answers: Vec<bool> = hits.iter().collect();
            assert_eq!(answers, expected[..length], "{name}, {call} of {length}");
            assert_eq!((hits.len(), hits.words().len()), (length, words));
            let tail = hits.words().last().and_then(|word| word.checked_shr(length as u32 % 64));
            assert!(length % 64 == 0 || tail == Some(0), "{name}: bits past the last key");
        };
        let mut into = vec![u64::MAX; words];
        filter.contains_hashes(hashes, &mut hits);
        same(&hits, &hash_answers, "hashes");
        filter.contains_hashes_into(hashes, &mut into).unwrap();
        assert_eq!(into, hits.words(), "{name}, {length} hashes");
        into.fill(u64::MAX);
        any.contains_hashes_into(hashes, &mut into).unwrap();
        assert_eq!(into, hits.words(), "{name}, {length} hashes, as `dyn Filter`");
        filter.contains_batch(keys, &mut hits);
        same(&hits, &key_answers, "keys");
        into.fill(u64::MAX);
        filter.contains_batch_into(keys, &mut into).unwrap();
        assert_eq!(into, hits.words(), "{name}, {length} keys");
        into.fill(u64::MAX);
        filter.contains_u64s_into(integers, &mut into).unwrap();
        assert_eq!(into, hits.words(), "{name}, {length} integers");
        filter.contains_u64s(integers, &mut hits);
        same(&hits, &key_answers, "integers");

        for wrong in [words + 1, words + 9, words.saturating_sub(1), 0] {
            if wrong != words {
                let mut slice = vec![7; wrong];
                let error = filter.contains_hashes_into(hashes, &mut slice).unwrap_err();
                assert_eq!((error.words, error.expected), (wrong, words));
                assert_eq!(filter.contains_batch_into(keys, &mut slice), Err(error));
                assert_eq!(filter.contains_u64s_into(integers, &mut slice), Err(error));
                assert_eq!(slice, vec![7; wrong]);
            }
        }
    }
}

#[test]
fn filters_owned_and_opened() {
    // One link, and many.
    for first in [4_500, 100] {
        let options =
            ScalableOptions::new(0.1, first).with_key_hash(KeyHash::Xxh3 { seed: u64::MAX });
        check("without links", &options.build().unwrap());
        for kernel in kernels() {
            let mut filter = options.build().unwrap().with_kernel(kernel);
            keys().iter().step_by(2).for_each(|key| _ = filter.insert(key).unwrap());
            assert_eq!(filter.links().len() > 3, first == 100);
            assert!(filter.links().iter().all(|link| link.kernel() == kernel));
            check("owned", &filter);
            // At an odd address, every block straddles two cache lines.
            let stored = [&[0; 3][..], &filter.to_bytes()].concat();
            let opened = ScalableBloomFilter::from_bytes_any_hash(&stored[3..]).unwrap();
            check("opened", &opened.with_kernel(kernel));
        }
    }
}

/// Links above the size that fits the cache, whose blocks are prefetched.
#[test]
fn large_filters() {
    let fits = Kernel::default().prefetch_threshold() as u64;
    // Nine bits per key.
    let options = ScalableOptions::new(0.1, fits);
    let (mut filter, mut other) = (options.build().unwrap(), options.build().unwrap());
    keys().iter().step_by(6).for_each(|key| _ = filter.insert(key).unwrap());
    keys().iter().step_by(8).for_each(|key| _ = other.insert(key).unwrap());
    filter.union_with(other).unwrap();
    assert_eq!(filter.links().len(), 2);
    assert!(filter.links().iter().all(|link| link.memory_bytes() > fits));
    check("large", &filter);
}

#[test]
fn filters_of_the_callers_hashes() {
    let options = ScalableOptions::new(0.1, 100).with_key_hash(KeyHash::Caller { tag: 3 });
    let mut filter = options.build().unwrap();
    filter.insert_hashes(&Random(9).hashes(4_500)[..2_000]).unwrap();
    check("caller", &filter);
    check("caller, opened", &ScalableBloomFilter::from_bytes_any_hash(&filter.to_bytes()).unwrap());
}

/// A key whose `as_ref` panics, at one index of the batch.
#[cfg(panic = "unwind")]
struct Key<'k>(&'k [u8; 8], bool);

#[cfg(panic = "unwind")]
impl AsRef<[u8]> for Key<'_> {
    fn as_ref(&self) -> &[u8] {
        assert!(!self.1, "boom");
        self.0
    }
}

/// Keys that were not looked up are never "absent", and keys that were not inserted never "new".
#[cfg(panic = "unwind")]
#[test]
fn keys_that_panic() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let keys = keys();
    let mut filter = ScalableOptions::new(0.1, 100).build().unwrap();
    keys.iter().step_by(2).for_each(|key| _ = filter.insert(key).unwrap());
    for (length, at) in [(1, 0), (64, 63), (65, 64), (200, 100), (3_000, 0), (3_000, 2_500)] {
        let batch: Vec<Key<'_>> =
            keys[..length].iter().enumerate().map(|(i, key)| Key(key, i == at)).collect();
        let mut hits = Bitmask::new();
        filter.contains_u64s(&[1, 2, 3], &mut hits);
        let contains = AssertUnwindSafe(|| filter.contains_batch(&batch, &mut hits));
        assert!(catch_unwind(contains).is_err() && hits.len() == length);
        let mut words = vec![0; length.div_ceil(64)];
        let into = AssertUnwindSafe(|| filter.contains_batch_into(&batch, &mut words));
        assert!(catch_unwind(into).is_err());
        assert_eq!(hits.words(), words);
        for (i, key) in keys[..length].iter().enumerate() {
            let hit = words[i / 64] >> (i % 64) & 1 == 1;
            assert!(hit || i < at && !filter.contains(key), "key {i} of {length}");
        }
        let mut other = filter.clone();
        filter.contains_u64s(&[1, 2, 3], &mut hits);
        let insert = AssertUnwindSafe(|| other.insert_batch_new(&batch, &mut hits));
        assert!(catch_unwind(insert).is_err() && hits.is_empty());
        assert!(keys.iter().all(|key| other.contains(key) || !filter.contains(key)));
    }
}

/// Blocks whose owner panics after some number of calls.
#[cfg(panic = "unwind")]
struct Panicking(Vec<Block>, std::cell::Cell<usize>);

#[cfg(panic = "unwind")]
impl AsRef<[Block]> for Panicking {
    fn as_ref(&self) -> &[Block] {
        let left = self.1.get();
        self.1.set(left.saturating_sub(1));
        assert!(left > 0, "boom");
        &self.0
    }
}

/// The answer for hashes that were not looked up is "maybe", for any previous contents of the
/// words.
#[cfg(panic = "unwind")]
#[test]
fn owners_that_panic() {
    use blocked_bloom::BloomFilter;
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let hashes = Random(9).hashes(3_000);
    let blocks = Panicking(vec![[0; 64]; 3], Cell::new(usize::MAX));
    let link = BloomFilter::from_blocks(blocks, 6, KeyHash::default()).unwrap();
    let filter = ScalableOptions::new(0.1, 100).continue_from(link).unwrap();
    assert!(!filter.contains_hash(hashes[0]));
    for length in [1_usize, 2, 64, 65, 1_024, 1_025, 3_000] {
        for calls in 0..10 {
            let mut words = vec![0; length.div_ceil(64)];
            let mut hits = Bitmask::new();
            filter.links()[0].holder().1.set(usize::MAX);
            filter.contains_hashes(&hashes, &mut hits);
            assert_eq!(hits.count_misses(), 3_000);
            filter.links()[0].holder().1.set(calls);
            let into = AssertUnwindSafe(|| {
                filter.contains_hashes_into(&hashes[..length], &mut words).unwrap();
            });
            if catch_unwind(into).is_ok() {
                assert!(calls > 0);
                continue;
            }
            // Either whole chunks were looked up before, or nothing.
            let mut says_maybe = (0..length).map(|i| words[i / 64] >> (i % 64) & 1 == 1);
            let looked_up = says_maybe.by_ref().take_while(|maybe| !maybe).count();
            assert!(looked_up < length && looked_up.is_multiple_of(1_024), "{length}, {calls}");
            assert!(says_maybe.all(|maybe| maybe), "{length}, {calls}");
            filter.links()[0].holder().1.set(calls);
            let mask = AssertUnwindSafe(|| filter.contains_hashes(&hashes[..length], &mut hits));
            assert!(catch_unwind(mask).is_err() && hits.len() == length);
            assert_eq!(hits.words(), words, "{length}");
        }
    }
}
