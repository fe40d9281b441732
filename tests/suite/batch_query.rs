//! Compares batches with single lookups, in filters with every kind of storage and in filters of
//! other packages.

use std::cell::Cell;

use crate::common::{Random, empty, filled, kernels};
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
use blocked_bloom::AtomicBloomFilter;
use blocked_bloom::parts::{check_words, fill_with_hits, look_up_keys};
use blocked_bloom::{
    Bitmask, Block, BloomFilter, Filter, FilterOptions, Kernel, KeyHash, KeyHasher, LengthError,
    Sizing,
};

/// Lengths near the size of a mask's word, and near the number of keys that are hashed at a time.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=200).chain([1_000, 1_023, 1_024, 1_025, 2_047, 2_048, 2_049, 3_000, 4_500])
}

/// Keys to look up; those with even indices are [`added`].
fn keys() -> Vec<[u8; 8]> {
    (0..4_500_u64).map(u64::to_le_bytes).collect()
}

fn added(keys: &[[u8; 8]]) -> impl Iterator<Item = &[u8; 8]> {
    keys.iter().step_by(2)
}

/// A key that panics when it is read, at one index of the batch.
#[cfg(panic = "unwind")]
struct Key<'k>(&'k [u8; 8], bool);

#[cfg(panic = "unwind")]
impl AsRef<[u8]> for Key<'_> {
    fn as_ref(&self) -> &[u8] {
        assert!(!self.1, "boom");
        self.0
    }
}

/// Compares all results of a batch, by each call, with `contains` and `contains_hash`.
fn check<F: Filter>(
    name: &str,
    filter: &F,
    contains: impl Fn(&[u8]) -> bool,
    contains_hash: impl Fn(u64) -> bool,
) {
    let keys = keys();
    let integers: Vec<u64> = keys.iter().map(|&key| u64::from_le_bytes(key)).collect();
    // The caller supplies the hashes of filters that cannot hash.
    let hasher = filter.key_hash().hasher();
    let hashes = hasher.map_or_else(
        |_| Random(9).hashes(keys.len()),
        |hasher| keys.iter().map(|key| hasher.hash(key)).collect(),
    );
    let one_by_one = |hash| filter.contains_hash(hash);
    assert!(hashes.iter().all(|&hash| one_by_one(hash) == contains_hash(hash)), "{name}");
    let mut hits = Bitmask::new();
    for length in lengths() {
        let words = length.div_ceil(64);
        let expected: Vec<bool> =
            hashes[..length].iter().map(|&hash| contains_hash(hash)).collect();
        filter.contains_hashes(&hashes[..length], &mut hits);
        assert_eq!(hits.iter().collect::<Vec<_>>(), expected, "{name}, {length} hashes");
        assert_eq!((hits.len(), hits.words().len()), (length, words));
        let mut into = vec![u64::MAX; words];
        filter.contains_hashes_into(&hashes[..length], &mut into).unwrap();
        assert_eq!(into, hits.words(), "{name}, {length} hashes: bits past the last are zero");

        let expected: Vec<bool> = keys[..length].iter().map(|key| contains(key)).collect();
        filter.contains_batch(&keys[..length], &mut hits);
        assert_eq!(hits.iter().collect::<Vec<_>>(), expected, "{name}, {length} keys");
        assert_eq!((hits.len(), hits.words().len()), (length, words));
        let mut into = vec![u64::MAX; words];
        filter.contains_batch_into(&keys[..length], &mut into).unwrap();
        assert_eq!(into, hits.words(), "{name}, {length} keys: bits past the last are zero");
        into.fill(u64::MAX);
        filter.contains_u64s_into(&integers[..length], &mut into).unwrap();
        assert_eq!(into, hits.words(), "{name}, {length} integers");
        filter.contains_u64s(&integers[..length], &mut hits);
        assert_eq!((hits.words(), hits.len()), (&into[..], length), "{name}, {length} integers");

        for wrong in [words + 1, words + 9, words.saturating_sub(1), 0] {
            if wrong != words {
                let mut slice = vec![7; wrong];
                let error = filter.contains_hashes_into(&hashes[..length], &mut slice);
                let error = error.unwrap_err();
                assert_eq!((error.words, error.expected), (wrong, words));
                let same = filter.contains_batch_into(&keys[..length], &mut slice);
                assert_eq!(same, Err(error));
                let same = filter.contains_u64s_into(&integers[..length], &mut slice);
                assert_eq!(same, Err(error));
                assert_eq!(slice, vec![7; wrong]);
            }
        }
    }
    #[cfg(panic = "unwind")]
    for (length, at) in
        [(1, 0), (2, 0), (2, 1), (3, 2), (64, 63), (65, 64), (200, 100), (3_000, 0), (3_000, 2_500)]
    {
        let batch: Vec<Key<'_>> =
            keys[..length].iter().enumerate().map(|(i, key)| Key(key, i == at)).collect();
        let looked_up = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            filter.contains_batch(&batch, &mut hits);
        }));
        assert!(looked_up.is_err() || hasher.is_err(), "{name}");
        assert_eq!((hits.len(), hits.words().len()), (length, length.div_ceil(64)));
        for (i, hit) in hits.iter().enumerate() {
            // Keys that were looked up before the panic have their answers; all others are "maybe".
            assert!(hit || i < at && !contains(&keys[i]), "{name}, key {i} of {length}");
        }
        let tail = hits.words().last().unwrap().checked_shr(length as u32 % 64);
        assert!(length % 64 == 0 || tail == Some(0), "{name}: bits past the last key");

        let mut into = vec![0; length.div_ceil(64)];
        let looked_up = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            filter.contains_batch_into(&batch, &mut into).unwrap();
        }));
        assert!(looked_up.is_err() || hasher.is_err(), "{name}");
        for (i, key) in keys[..length].iter().enumerate() {
            let hit = into[i / 64] >> (i % 64) & 1 == 1;
            assert!(hit || i < at && !contains(key), "{name}, key {i} of {length} into words");
        }
    }
}

#[test]
fn owned_borrowed_and_opened_filters() {
    let keys = keys();
    for bits in [1.0, 10.0] {
        let options =
            FilterOptions::new(Sizing::BitsPerKey(bits)).with_key_hash(KeyHash::Xxh3 { seed: 5 });
        let mut builder = options.builder();
        builder.extend(added(&keys)).unwrap();
        let filter = builder.finish().unwrap();
        // At an odd address, every block straddles two lines.
        let stored = [&[0; 3][..], &filter.to_bytes()].concat();
        for kernel in kernels() {
            let filter = filter.clone().with_kernel(kernel);
            check("owned", &filter, |key| filter.contains(key), |hash| filter.contains_hash(hash));
            let opened =
                BloomFilter::from_bytes_any_hash(&stored[3..]).unwrap().with_kernel(kernel);
            let view = opened.view();
            check("borrowed", &view, |key| view.contains(key), |hash| view.contains_hash(hash));
            let bytes = BloomFilter::from_bytes_any_hash(&stored[3..]).unwrap().with_kernel(kernel);
            check("opened", &bytes, |key| bytes.contains(key), |hash| bytes.contains_hash(hash));
        }
    }
}

/// These filters exceed the cache, so lookups prefetch the blocks of later keys: one by one up to
/// six times the size of the cache, in groups above it.
#[test]
fn large_filters() {
    let fits = (Kernel::default().prefetch_threshold() / 64) as u32;
    for blocks in [fits + 1, 7 * fits] {
        large_filter(blocks);
    }
}

fn large_filter(blocks: u32) {
    let (mut filter, _) = filled(blocks, 6, 1);
    filter.insert_batch(&added(&keys()).collect::<Vec<_>>()).unwrap();
    for kernel in kernels() {
        let filter = filter.clone().with_kernel(kernel);
        check("large", &filter, |key| filter.contains(key), |hash| filter.contains_hash(hash));
        // At an odd address, every block straddles two lines.
        let stored = [&[0; 3][..], &filter.to_bytes()].concat();
        let view =
            BloomFilter::from_bytes_trusted_any_hash(&stored[3..]).unwrap().with_kernel(kernel);
        check("straddling", &view, |key| view.contains(key), |hash| view.contains_hash(hash));
    }
    #[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
    {
        let shared = AtomicBloomFilter::from(filter);
        let contains_hash = |hash| shared.contains_hash(hash);
        check("large and shared", &shared, |key| shared.contains(key), contains_hash);
    }
}

#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
#[test]
fn shared_filters() {
    let shared = AtomicBloomFilter::from(empty(45, 5));
    shared.insert_batch(&added(&keys()).collect::<Vec<_>>()).unwrap();
    let contains_hash = |hash| shared.contains_hash(hash);
    check("shared", &shared, |key| shared.contains(key), contains_hash);
}

/// Keys are "maybe"; hashes have their usual answers.
#[test]
fn filters_of_the_callers_hashes() {
    let key_hash = KeyHash::Caller { tag: 3 };
    let hashes = Random(9).hashes(4_500);
    let mut filter =
        FilterOptions::new(Sizing::BitsPerKey(5.0)).with_key_hash(key_hash).empty_filter(2_000);
    let filter = filter.as_mut().unwrap();
    filter.insert_hashes(&hashes[..2_000]).unwrap();
    check("caller", filter, |_| true, |hash| filter.contains_hash(hash));
    let bytes = BloomFilter::from_bytes_any_hash(filter.to_bytes()).unwrap();
    check("caller, opened", &bytes, |_| true, |hash| bytes.contains_hash(hash));
    #[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
    {
        let shared = AtomicBloomFilter::from(filter.clone());
        check("caller, shared", &shared, |_| true, |hash| shared.contains_hash(hash));
    }
}

#[test]
fn filters_that_pass_all() {
    let all = BloomFilter::pass_all(KeyHash::default());
    check("pass-all", &all, |_| true, |_| true);
    let owned = all.to_filter().unwrap();
    check("pass-all, owned", &owned, |_| true, |_| true);
}

/// A filter of another package: a sorted list, whose answers are exact.
struct Exact {
    hashes: Vec<u64>,
    key_hash: KeyHash,
    /// Returns the hash of a key, or `None` for keys without a known hash.
    hash: fn(&[u8]) -> Option<u64>,
}

const SEED: u64 = 77;

impl Exact {
    /// A filter of the keys that are [`added`].
    fn new(key_hash: KeyHash, hash: fn(&[u8]) -> Option<u64>) -> Self {
        let keys = keys();
        let mut hashes: Vec<u64> = added(&keys).filter_map(|key| hash(key)).collect();
        hashes.sort_unstable();
        Exact { hashes, key_hash, hash }
    }
}

impl Filter for Exact {
    fn contains_hash(&self, hash: u64) -> bool {
        self.hashes.binary_search(&hash).is_ok()
    }

    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        check_words(hashes.len(), words)?;
        words.fill(0);
        for (i, &hash) in hashes.iter().enumerate() {
            words[i / 64] |= u64::from(self.contains_hash(hash)) << (i % 64);
        }
        Ok(())
    }

    fn prefetch_hash(&self, _hash: u64) {}

    fn key_hash(&self) -> KeyHash {
        self.key_hash
    }

    fn hash_key(&self, key: &[u8]) -> Option<u64> {
        (self.hash)(key)
    }
}

/// Implements the five required methods with the hash of `KeyHasher`.
#[test]
fn filters_of_other_packages() {
    let hash = |key: &[u8]| Some(KeyHasher::with_seed(SEED).hash(key));
    let exact = Exact::new(KeyHash::Xxh3 { seed: SEED }, hash);
    let contains = |key: &[u8]| exact.contains_hash(KeyHasher::with_seed(SEED).hash(key));
    check("exact", &exact, contains, |hash| exact.contains_hash(hash));
    let mut hits = Bitmask::new();
    exact.contains_batch(&keys(), &mut hits);
    assert!(hits.hits().eq((0..4_500).step_by(2)));
    // For use as a `dyn`.
    let any: &dyn Filter = &exact;
    let mut hashes = Vec::new();
    assert!(keys().iter().all(|key| any.contains_key(key) == exact.contains(key)));
    any.hasher().unwrap().hash_batch(&keys(), &mut hashes);
    any.contains_hashes(&hashes, &mut hits);
    assert!(hits.hits().eq((0..4_500).step_by(2)));
    assert_eq!(any.hash_key(&keys()[2]), Some(hashes[2]));
}

/// Answers "maybe" 64 times per word, also past the last key.
struct Careless(Exact);

impl Filter for Careless {
    fn contains_hash(&self, hash: u64) -> bool {
        self.0.contains_hash(hash)
    }

    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        check_words(hashes.len(), words)?;
        words.fill(u64::MAX);
        Ok(())
    }

    fn prefetch_hash(&self, hash: u64) {
        self.0.prefetch_hash(hash);
    }

    fn key_hash(&self) -> KeyHash {
        self.0.key_hash()
    }

    fn hash_key(&self, key: &[u8]) -> Option<u64> {
        self.0.hash_key(key)
    }
}

#[test]
fn answers_past_the_last_key_are_cleared() {
    let hash = |key: &[u8]| Some(KeyHasher::with_seed(SEED).hash(key));
    let careless = Careless(Exact::new(KeyHash::Xxh3 { seed: SEED }, hash));
    let mut hits = Bitmask::new();
    for length in lengths() {
        let mut expected = vec![0; length.div_ceil(64)];
        fill_with_hits(&mut expected, length);
        careless.contains_hashes(&vec![1; length], &mut hits);
        assert_eq!((hits.len(), hits.count_hits(), hits.words()), (length, length, &expected[..]));
    }
}

#[test]
fn every_key_is_prefetched_once_before_its_answer() {
    for length in lengths() {
        let (keys, prefetched) = (Vec::from_iter(0..length as u64), Cell::new(0));
        let mut words = vec![0; length.div_ceil(64)];
        let prefetch = |hash: u64| {
            assert_eq!(hash, 3 * prefetched.get());
            prefetched.set(prefetched.get() + 1);
        };
        let contains = |hashes: &[u64], words: &mut [u64]| {
            assert!(hashes.iter().all(|&hash| hash < 3 * prefetched.get()));
            words.fill(0);
        };
        look_up_keys(&keys, &mut words, |&key| 3 * key, Some(prefetch), contains).unwrap();
        assert_eq!(prefetched.get(), length as u64);
    }
}

/// A hash other than `KeyHasher`'s: no provided method may use `KeyHasher` instead.
#[test]
fn filters_of_other_hashes() {
    let hash = |key: &[u8]| Some(KeyHasher::with_seed(1).hash(key).rotate_left(7));
    let exact = Exact::new(KeyHash::Caller { tag: 9 }, hash);
    assert!(exact.hasher().is_err());
    let mut hits = Bitmask::new();
    for length in lengths() {
        let keys = &keys()[..length];
        let integers: Vec<u64> = keys.iter().map(|&key| u64::from_le_bytes(key)).collect();
        exact.contains_batch(keys, &mut hits);
        assert!(hits.hits().eq((0..length).step_by(2)));
        exact.contains_u64s(&integers, &mut hits);
        assert!(hits.hits().eq((0..length).step_by(2)));
        assert!(keys.iter().enumerate().all(|(i, key)| exact.contains(key) == (i % 2 == 0)));
    }
}

/// Only the caller can hash some or all of the keys: these are "maybe".
#[test]
fn keys_whose_hash_is_not_known() {
    let hash = |key: &[u8]| (key[1] != 3).then(|| KeyHasher::with_seed(1).hash(key));
    let some = Exact::new(KeyHash::Caller { tag: 9 }, hash);
    let none = Exact::new(KeyHash::Caller { tag: 9 }, |_| None);
    let mut hits = Bitmask::new();
    for length in lengths() {
        let keys = &keys()[..length];
        let integers: Vec<u64> = keys.iter().map(|&key| u64::from_le_bytes(key)).collect();
        none.contains_batch(keys, &mut hits);
        assert_eq!(hits.count_hits(), length);
        none.contains_u64s(&integers, &mut hits);
        assert_eq!(hits.count_hits(), length);
        assert!(keys.iter().all(|key| none.contains(key)));
        let present = |i: &usize| i.is_multiple_of(2) || keys[*i][1] == 3;
        some.contains_batch(keys, &mut hits);
        assert!((0..length).filter(present).all(|i| hits.get(i) == Some(true)));
        some.contains_u64s(&integers, &mut hits);
        assert!((0..length).filter(present).all(|i| hits.get(i) == Some(true)));
        assert!((0..length).filter(present).all(|i| some.contains(keys[i])));
        // The keys before it are looked up; their number depends on how many are hashed at a time.
        assert!(!(2..=64).contains(&length) || hits.get(1) == Some(false));
    }
}

#[test]
fn lengths_of_words_are_checked_for_other_packages() {
    for keys in 0..300_usize {
        for words in 0..8 {
            let right = words == keys.div_ceil(64);
            match check_words(keys, &vec![0; words]) {
                Ok(()) => assert!(right),
                Err(error) => {
                    assert!(!right);
                    assert_eq!((error.words, error.expected), (words, keys.div_ceil(64)));
                }
            }
        }
    }
}

/// Finds a mask with the answers of an earlier batch after the owner of the blocks panicked.
#[cfg(panic = "unwind")]
#[test]
fn an_owner_that_panics_leaves_maybe() {
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    struct Owner<'a>(Vec<Block>, &'a Cell<bool>);
    impl AsRef<[Block]> for Owner<'_> {
        fn as_ref(&self) -> &[Block] {
            assert!(!self.1.get(), "boom");
            &self.0
        }
    }
    let panics = Cell::new(false);
    let owner = Owner(vec![[0; 64]; 5], &panics);
    let filter = BloomFilter::from_blocks(owner, 6, KeyHash::default()).unwrap();
    let (keys, mut hits) = (keys(), Bitmask::new());
    for length in [1, 2, 3, 4, 64, 65, 1_000] {
        panics.set(false);
        filter.contains_batch(&keys[..length], &mut hits);
        assert_eq!(hits.count_hits(), 0);
        panics.set(true);
        let batch = AssertUnwindSafe(|| filter.contains_batch(&keys[..length], &mut hits));
        assert!(catch_unwind(batch).is_err());
        assert_eq!((hits.len(), hits.count_hits()), (length, length));
    }
}

/// Pointers to filters, including unsized ones, have the filters' answers, for single keys and
/// batches.
#[test]
fn pointers_to_filters_are_filters() {
    fn check(filter: impl Filter, expected: &Exact) {
        let keys = keys();
        let (mut hits, mut expected_hits) = (Bitmask::new(), Bitmask::new());
        filter.contains_batch(&keys, &mut hits);
        expected.contains_batch(&keys, &mut expected_hits);
        assert_eq!(hits, expected_hits);
        filter.contains_u64s(&[1, 2, 3], &mut hits);
        expected.contains_u64s(&[1, 2, 3], &mut expected_hits);
        assert_eq!(hits, expected_hits);
        assert!(keys.iter().all(|key| filter.contains(key) == expected.contains(key)));
        filter.prefetch_hash(1);
        assert_eq!((filter.key_hash(), filter.hash_key(b"a")), (expected.key_hash, Some(97)));
        assert_eq!(filter.contains_hashes_into(&[1], &mut []).unwrap_err().expected, 1);
    }
    // A hash that `KeyHasher` does not compute: only `hash_key` knows it.
    let new = || Exact::new(KeyHash::Caller { tag: 1 }, |key| key.first().map(|&byte| byte.into()));
    let exact = new();
    check(&exact, &exact);
    check(&exact as &dyn Filter, &exact);
    check(Box::new(new()), &exact);
    check(Box::new(new()) as Box<dyn Filter>, &exact);
    check(std::sync::Arc::new(new()), &exact);
    let shared: std::sync::Arc<dyn Filter + Send + Sync> = std::sync::Arc::new(new());
    check(shared.clone(), &exact);
    // Without the pointer's implementation.
    assert!(shared.contains_key(b"\x02") && !shared.contains_key(b"\x03"));
}

/// The words that a filter of another package receives hold old answers, or a pattern in debug
/// builds, which reveals a filter that does not write a word.
#[test]
fn words_to_overwrite_have_a_pattern_in_debug_builds() {
    let mut mask = Bitmask::new();
    for len in [64, 64, 130] {
        mask.write(len, |words| {
            if cfg!(debug_assertions) {
                assert!(words.iter().all(|&word| word == 0xa5a5_a5a5_a5a5_a5a5));
            }
            words.fill(0b101);
        });
        assert!(mask.into_iter().eq(mask.iter()) && mask.into_iter().count() == len);
        let mut hits = 0;
        for is_hit in &mask {
            hits += usize::from(is_hit);
        }
        assert_eq!(hits, mask.count_hits());
    }
}
