//! Owned, borrowed and shared filters: insertion, clearing, statistics, and misuse.

use std::cell::Cell;
use std::rc::Rc;

use crate::common::{Random, empty, filled, kernels};
use blocked_bloom::{
    Bitmask, BloomFilter, BuildError, Filter, FilterOptions, KeyError, KeyHash, KeyHasher,
    ParamsError, PrefixExtractor, Sizing, Stored,
};

const TEN: Sizing = Sizing::BitsPerKey(10.0);
const OPTIONS: FilterOptions = FilterOptions::new(TEN);

fn caller_hashed() -> BloomFilter {
    BloomFilter::with_params(TEN.params(1_000).unwrap(), KeyHash::Caller { tag: 5 }).unwrap()
}

#[test]
fn insert_says_whether_the_key_was_certainly_new() {
    let mut filter =
        BloomFilter::with_params(TEN.params(100).unwrap(), KeyHash::default()).unwrap();
    let mut certainly_new = 0;
    for key in 0..100_u32 {
        let absent = !filter.contains(key.to_le_bytes());
        assert_eq!(filter.insert(key.to_le_bytes()), Ok(absent));
        assert_eq!(filter.insert(key.to_le_bytes()), Ok(false));
        certainly_new += u32::from(absent);
    }
    assert!(certainly_new > 95);
    assert_eq!(filter.keys_inserted(), 200);
}

#[test]
fn filters_are_equal_if_shape_hash_count_and_bits_are() {
    let mut filter = empty(2, 6);
    filter.insert_hash(1 << 32).unwrap();
    let mut other_bits = empty(2, 6);
    other_bits.insert_hash(2 << 32).unwrap();
    let mut other_count = filter.clone();
    other_count.insert_hash(1 << 32).unwrap();
    assert_eq!(filter, filter.clone());
    assert_eq!(filter.view(), filter.clone().view());
    let params = filter.params();
    let mut other_hash = BloomFilter::with_params(params, KeyHash::Xxh3 { seed: 1 }).unwrap();
    other_hash.insert_hash(1 << 32).unwrap();
    assert_ne!(empty(2, 5), empty(2, 6));
    assert_ne!(empty(3, 6), empty(2, 6));
    for other in [other_bits, other_count, other_hash, empty(2, 6)] {
        assert_ne!(filter, other);
        assert_ne!(filter.view(), other.view());
        let bytes =
            |filter: &BloomFilter| BloomFilter::from_bytes_any_hash(filter.to_bytes()).unwrap();
        assert_eq!(bytes(&filter), bytes(&filter));
        assert_ne!(bytes(&filter), bytes(&other));
    }
}

#[test]
fn keys_are_hashed_with_the_filters_seed() {
    let words = ["", "a", "apple", "a key that is longer than sixteen bytes", "ключ"];
    for seed in [0, 1, u64::MAX] {
        let key_hash = KeyHash::Xxh3 { seed };
        let options = FilterOptions::new(Sizing::BitsPerKey(30.0)).with_key_hash(key_hash);
        let mut builder = options.builder();
        builder.extend(words).unwrap();
        let filter = builder.finish().unwrap();
        let mut hits = Bitmask::new();
        filter.contains_batch(&words, &mut hits);
        assert_eq!(hits.count_hits(), words.len());
        let hasher = KeyHasher::with_seed(seed);
        for word in words {
            assert_eq!(
                hasher.hash(word),
                xxhash_rust::xxh3::xxh3_64_with_seed(word.as_bytes(), seed)
            );
            assert!(filter.contains(word) && filter.contains_hash(hasher.hash(word)));
            assert!(!filter.contains_hash(KeyHasher::with_seed(seed ^ 2).hash(word)));
        }
    }
}

#[test]
fn batches_of_keys_answer_as_single_keys_at_every_length() {
    let mut builder = FilterOptions::new(Sizing::BitsPerKey(4.0)).builder();
    builder.extend((0..500_u64).map(u64::to_le_bytes)).unwrap();
    let filter = builder.finish().unwrap();
    let mut hits = Bitmask::new();
    for kernel in kernels() {
        let filter = filter.view().with_kernel(kernel);
        for length in (0..=130).chain([255, 256, 257, 511, 513, 5_000]) {
            let keys: Vec<[u8; 8]> = (0..length).map(|i| (i * 3_u64).to_le_bytes()).collect();
            filter.contains_batch(&keys, &mut hits);
            let mut words = vec![u64::MAX; keys.len().div_ceil(64)];
            filter.contains_batch_into(&keys, &mut words).unwrap();
            assert_eq!(words, hits.words());
            assert_eq!(hits.len(), keys.len());
            for (i, key) in keys.iter().enumerate() {
                assert_eq!(hits.get(i), Some(filter.contains(key)), "key {i} of {length}");
            }
        }
    }
}

#[test]
fn the_mask_counts_and_lists_hits_and_misses() {
    let (filter, present) = filled(50, 6, 3);
    let mut random = Random(8);
    let mut hits = Bitmask::new();
    for length in [0, 1, 63, 64, 65, 128, 1000] {
        let hashes: Vec<u64> =
            (0..length).map(|i| if i % 3 == 0 { present[i] } else { random.next() }).collect();
        filter.contains_hashes(&hashes, &mut hits);
        let answers: Vec<bool> = hashes.iter().map(|&hash| filter.contains_hash(hash)).collect();
        let indices = |wanted| (0..length).filter(|&i| answers[i] == wanted).collect::<Vec<_>>();
        assert_eq!(hits.iter().collect::<Vec<_>>(), answers);
        assert_eq!(hits.hits().collect::<Vec<_>>(), indices(true));
        assert_eq!(hits.misses().collect::<Vec<_>>(), indices(false));
        assert_eq!(hits.count_hits(), indices(true).len());
        assert_eq!(hits.count_misses(), indices(false).len());
        assert_eq!((hits.len(), hits.is_empty()), (length, length == 0));
        assert_eq!(hits.get(length), None);
    }
}

#[test]
fn word_slices_of_the_wrong_length_are_refused_and_untouched() {
    let (filter, hashes) = filled(2, 6, 3);
    for keys in [0_usize, 1, 64, 65] {
        let expected = keys.div_ceil(64);
        for words in (0..4).filter(|&words| words != expected) {
            let mut slice = vec![7; words];
            let error =
                filter.view().contains_hashes_into(&hashes[..keys], &mut slice).unwrap_err();
            assert_eq!((error.words, error.expected), (words, expected));
            let keys: Vec<[u8; 8]> = hashes[..keys].iter().map(|hash| hash.to_le_bytes()).collect();
            assert_eq!(filter.view().contains_batch_into(&keys, &mut slice), Err(error));
            assert_eq!(slice, vec![7; words]);
        }
    }
}

#[test]
fn a_builder_drops_adjacent_repeats_and_sizes_at_the_end() {
    let mut builder = OPTIONS.builder();
    for hash in [5, 5, 5, 9, 5, 5] {
        builder.insert_hash(hash).unwrap();
    }
    assert_eq!(builder.len(), 3);
    // Repeats across the boundaries of the builder's chunks are dropped too.
    let mut random = Random(1);
    let hashes = random.hashes(200_000);
    let mut builder = OPTIONS.builder();
    for &hash in &hashes {
        builder.insert_hash(hash).unwrap();
        builder.insert_hash(hash).unwrap();
    }
    assert_eq!(builder.len(), 200_000);
    let params = builder.params().unwrap();
    assert_eq!(params, TEN.params(200_000).unwrap());
    let filter = builder.finish().unwrap();
    assert_eq!(filter.params(), params);
    let mut direct = BloomFilter::with_params(params, KeyHash::default()).unwrap();
    direct.insert_hashes(&hashes).unwrap();
    assert_eq!(filter, direct);
}

#[test]
fn a_builder_reports_what_went_wrong_instead_of_a_filter() {
    let finish = |sizing| FilterOptions::new(sizing).builder().finish();
    assert!(matches!(
        finish(Sizing::BitsPerKey(f64::NAN)),
        Err(BuildError::Params(ParamsError::BitsPerKeyOutOfRange { .. }))
    ));
    assert_eq!(
        OPTIONS.with_probes(31).builder().finish(),
        Err(BuildError::Params(ParamsError::ProbesOutOfRange { probes: 31 }))
    );
    // A key that cannot be hashed is an error at insertion; the filter has the hashes.
    let mut builder = OPTIONS.with_key_hash(KeyHash::Caller { tag: 3 }).builder();
    builder.insert_hash(1).unwrap();
    assert_eq!(builder.insert("a key"), Err(KeyError::NoHasher { tag: 3 }));
    builder.insert_hash(2).unwrap();
    assert_eq!(builder.finish().unwrap().keys_inserted(), 2);
}

#[test]
fn zero_keys_build_an_empty_filter_and_zero_bits_a_pass_all_filter() {
    let empty = OPTIONS.builder().finish().unwrap();
    assert!(empty.is_empty() && !empty.contains("x"));
    assert_eq!(empty.params().blocks(), 1);

    let mut builder = FilterOptions::new(Sizing::BitsPerKey(0.0)).builder();
    builder.extend(["a", "b"]).unwrap();
    let mut filter = builder.finish().unwrap();
    assert!(filter.is_pass_all() && filter.contains("anything"));
    assert_eq!(filter.keys_inserted(), 2);
    assert_eq!(filter.params().false_positive_rate(), 1.0);
    assert_eq!(filter.insert("c"), Ok(false));
    filter.clear();
    assert!(filter.contains("anything"));
    let stored = filter.to_bytes();
    assert_eq!(BloomFilter::from_bytes_any_hash(&stored).unwrap(), filter.view());
}

#[test]
fn a_filter_of_the_callers_hashes_never_calls_a_key_absent() {
    let refused = KeyError::NoHasher { tag: 5 };
    let mut filter = caller_hashed();
    let mut hits = Bitmask::new();
    filter.contains_batch(&["a"; 70], &mut hits);
    assert_eq!(hits.count_hits(), 70);
    assert_eq!(hits.words(), [u64::MAX, 0b11_1111]);
    assert!(filter.contains("a"));
    assert!(!filter.contains_hash(77));
    filter.insert_hash(77).unwrap();
    assert!(filter.contains_hash(77) && !filter.is_pass_all());
    // A key that cannot be hashed is rejected, and the filter stays usable.
    let (before, stored) = (filter.clone(), filter.to_bytes());
    assert_eq!(filter.insert("a"), Err(refused));
    assert_eq!(filter.insert_batch(&["a", "b"]), Err(refused));
    assert_eq!((filter.hasher(), filter.view().hasher()), (Err(refused), Err(refused)));
    assert!(!filter.is_pass_all() && !filter.contains_hash(78 << 32 | 78));
    assert_eq!(filter.keys_inserted(), 1);
    assert_eq!((&filter, filter.to_bytes()), (&before, stored.clone()));
    assert_eq!(BloomFilter::from_bytes_any_hash(&stored).unwrap(), filter.view());
    let bytes = BloomFilter::from_bytes_any_hash(&stored).unwrap();
    assert_eq!(bytes.hasher(), Err(refused));
    assert!(bytes.contains("a") && bytes.contains_hash(77));
    assert!(!bytes.contains_hash(78 << 32 | 78));
}

#[test]
fn the_count_of_insertions_saturates() {
    let mut stored = filled(3, 6, 1).0.to_bytes();
    stored[32..40].fill(0xff);
    let sum = xxhash_rust::xxh3::xxh3_64(&stored[..56]);
    stored[56..64].copy_from_slice(&sum.to_le_bytes());
    let mut filter = BloomFilter::from_bytes_any_hash(&stored).unwrap().to_filter().unwrap();
    let copy = filter.clone();
    filter.insert_hash(1).unwrap();
    filter.insert_hashes(&[1, 2]).unwrap();
    filter.union_with(&copy).unwrap();
    assert_eq!(filter.keys_inserted(), u64::MAX);
    assert_eq!(filter.params().false_positive_rate(), 1.0);
}

#[test]
fn statistics_follow_the_bits() {
    let mut filter = empty(2_000, 6);
    assert_eq!((filter.fill_ratio(), filter.estimated_keys()), (0.0, Some(0)));
    assert_eq!(filter.estimated_false_positive_rate(), 0.0);
    let hashes = Random(6).hashes(100_000);
    for _ in 0..2 {
        filter.insert_hashes(&hashes).unwrap();
    }
    assert_eq!(filter.keys_inserted(), 200_000);
    let ones: u32 = filter.blocks().as_flattened().iter().map(|byte| byte.count_ones()).sum();
    assert!((filter.fill_ratio() - f64::from(ones) / (2_000.0 * 512.0)).abs() < 1e-12);
    let estimated = filter.estimated_keys().unwrap();
    assert!((99_000..101_000).contains(&estimated), "{estimated} distinct keys estimated");
    let (actual, predicted) =
        (filter.estimated_false_positive_rate(), filter.params().false_positive_rate_at(100_000));
    assert!((actual / predicted - 1.0).abs() < 0.03, "{actual} of {predicted}");
    assert_eq!(
        BloomFilter::pass_all(KeyHash::default()).to_filter().unwrap().estimated_keys(),
        None
    );
}

/// An owner of bytes that lends a slice of any requested length.
struct ShrinkingOwner {
    bytes: Vec<u8>,
    lent: Rc<Cell<usize>>,
}

impl AsRef<[u8]> for ShrinkingOwner {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.lent.get()]
    }
}

/// Shorter or longer, by a byte or by blocks, in either form: catches a length that is compared in
/// whole blocks, and an index that is computed for one slice and used in another.
#[test]
fn bytes_that_change_length_after_opening_pass_all() {
    let (filter, keys) = filled(10, 6, 1);
    let absent: Vec<u64> =
        Random(2).hashes(200).into_iter().filter(|&hash| !filter.contains_hash(hash)).collect();
    assert!(absent.len() > 150);
    let compact = filter.to_compact_bytes().unwrap();
    type Opened = BloomFilter<Stored<ShrinkingOwner>>;
    type Open = fn(ShrinkingOwner) -> Opened;
    let full: Open = |bytes| BloomFilter::from_bytes_any_hash(bytes).unwrap();
    let trusted: Open = |bytes| BloomFilter::from_bytes_trusted_any_hash(bytes).unwrap();
    let or_pass_all: Open = |bytes| BloomFilter::open_or_pass_all(bytes, KeyHash::default()).0;
    let of_compact: Open =
        |bytes| BloomFilter::from_compact_bytes(bytes, KeyHash::default()).unwrap();
    let stored = filter.to_bytes();
    for (open, stored) in
        [(full, &stored), (trusted, &stored), (or_pass_all, &stored), (of_compact, &compact)]
    {
        let length = stored.len();
        let (mut bytes, lent) = (stored.clone(), Rc::new(Cell::new(length)));
        // Keys that are absent there are also absent if zeros follow.
        bytes.resize(length + 640, 0);
        let opened = open(ShrinkingOwner { bytes, lent: lent.clone() });
        let mut hits = Bitmask::new();
        for other in (0..=length + 640).step_by(8).chain([length - 1, length + 1]) {
            lent.set(other);
            assert!(absent.iter().all(|&hash| opened.contains_hash(hash) == (other != length)));
            opened.contains_hashes(&absent, &mut hits);
            assert_eq!(hits.count_misses(), if other == length { absent.len() } else { 0 });
            assert!(keys.iter().all(|&hash| opened.view().contains_hash(hash)));
            opened.prefetch_hash(u64::MAX);
            assert!(opened.to_filter().unwrap().contains_hash(absent[0]) == (other != length));
        }
    }
}

/// A filter of prefixes cannot answer for keys, so it is not equal to its view for prefixes.
#[test]
fn filters_are_equal_if_they_answer_alike() {
    let rule = PrefixExtractor::fixed(2);
    for options in [OPTIONS.with_prefixes(rule.clone()), OPTIONS.with_only_prefixes(rule.clone())] {
        let mut builder = options.builder();
        builder.extend(["apple", "banana"]).unwrap();
        let filter = builder.finish().unwrap();
        let prefixes = filter.prefixes(&rule);
        assert_eq!(filter, filter.view());
        assert_eq!(prefixes == filter, prefixes.contains("zz") == filter.contains("zz"));
        assert_eq!(prefixes, filter.prefixes(&rule));
        assert_ne!(prefixes, filter.prefixes(&PrefixExtractor::fixed(3)));
    }
}

#[test]
fn copies_of_a_view_answer_as_the_view() {
    let rule = PrefixExtractor::fixed(2);
    let filter = OPTIONS.with_only_prefixes(rule.clone()).builder().finish().unwrap();
    for (extractor, answers) in [(rule, true), (PrefixExtractor::fixed(3), false)] {
        let view = filter.prefixes(&extractor);
        assert_eq!(view.is_empty(), answers);
        assert_eq!(view.contains("zz"), !answers);
        assert_eq!(view.to_filter().unwrap().contains("zz"), !answers);
        assert_eq!(view.folded(1).unwrap().contains("zz"), !answers);
        let shared = blocked_bloom::AtomicBloomFilter::from(view.to_filter().unwrap());
        assert_eq!(shared.contains("zz"), !answers);
        assert_eq!(shared.into_filter().contains("zz"), !answers);
    }
}

#[test]
fn filters_may_cross_threads() {
    fn check<T: Send + Sync + Clone + PartialEq + std::fmt::Debug>(_: &T) {}
    let (filter, _) = filled(100, 6, 1);
    check(&filter);
    check(&filter.view());
    let shared =
        BloomFilter::from_bytes_any_hash(std::sync::Arc::<[u8]>::from(filter.to_bytes())).unwrap();
    check(&shared);
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(shared.view(), filter.view()));
    });
    // Printing shows the shape, never the bits.
    assert!(format!("{filter:?} {shared:?} {:?}", filter.view()).len() < 1_000);
}

/// A key that panics when it is read.
#[derive(Clone)]
struct Bomb;

impl AsRef<[u8]> for Bomb {
    fn as_ref(&self) -> &[u8] {
        panic!("boom")
    }
}

#[cfg(panic = "unwind")]
#[test]
fn a_key_that_panics_leaves_maybe() {
    let filter = empty(1, 6);
    let mut hits = Bitmask::new();
    filter.contains_batch(&["a"; 64], &mut hits);
    assert_eq!(hits.count_hits(), 0);
    let looked_up = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        filter.contains_batch(&[Bomb], &mut hits);
    }));
    assert!(looked_up.is_err());
    assert_eq!((hits.len(), hits.count_hits(), hits.count_misses()), (1, 1, 0));
    assert!(hits.hits().eq([0]));

    // A caller that hashes keys and writes the mask itself gets neither answers of the previous
    // batch nor answers of this one.
    let hasher = filter.hasher().unwrap();
    for keys in [1, 40, 300] {
        let mut hashes = vec![7; 400];
        let keys = vec![Bomb; keys];
        let hashed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            hasher.hash_batch(&keys, &mut hashes);
        }));
        assert!(hashed.is_err() && hashes.is_empty());
    }
    for len in [1, 64, 130, 1_000] {
        hits.write(130, |words| words.fill(0));
        let written = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            hits.write(len, |words| {
                words[0] = 0b101;
                panic!("boom")
            });
        }));
        assert!(written.is_err());
        assert_eq!((hits.len(), hits.words(), hits.count_misses()), (0, &[][..], 0));
        assert_eq!((hits.hits().next(), hits.get(0)), (None, None));
    }
}

/// A block that straddles two lines would cost two misses.
#[test]
fn owned_blocks_are_cache_lines() {
    for blocks in [1, 2, 1_000, 32_767, 32_768, 40_000] {
        let filter = empty(blocks, 6);
        let copy = filter.clone();
        for filter in [&filter, &copy] {
            assert!(filter.is_empty());
            let address = filter.blocks().as_ptr().addr();
            let huge = cfg!(target_os = "linux") && blocks >= 32_768;
            let expected = if huge { 2 << 20 } else { 64 };
            assert!(address.is_multiple_of(expected), "{blocks} blocks at {address:#x}");
        }
    }
}

#[test]
fn a_builder_without_a_filter_keeps_no_hashes() {
    let mut builder = FilterOptions::new(Sizing::FalsePositiveRate(1.0)).builder();
    (0..1_000).for_each(|hash| builder.insert_hash(hash / 2).unwrap());
    assert_eq!((builder.len(), builder.is_empty()), (500, false));
    assert!(builder.params().unwrap().is_pass_all());
    assert_eq!(builder.finish().unwrap().keys_inserted(), 500);
}

#[cfg(feature = "rayon")]
#[test]
fn every_number_of_threads_builds_the_same_bytes() {
    // Enough for several chunks and the parallel path; runs of repeats cross the boundaries of
    // chunks.
    let mut hashes = Random(12).hashes(8_600_000);
    for i in (1..hashes.len()).step_by(50) {
        hashes[i] = hashes[i - 1];
    }
    let collect = || {
        let mut builder = OPTIONS.builder();
        hashes.iter().for_each(|&hash| builder.insert_hash(hash).unwrap());
        builder
    };
    let mut distinct = hashes.clone();
    distinct.dedup();
    let mut expected =
        BloomFilter::with_params(TEN.params(distinct.len() as u64).unwrap(), KeyHash::default())
            .unwrap();
    for &hash in &distinct {
        expected.insert_hash(hash).unwrap();
    }
    assert!(collect().finish().unwrap() == expected, "finish");
    for threads in [1, 2, 3, 8] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let filter = pool.install(|| collect().par_finish()).unwrap();
        assert!(filter == expected, "{threads} threads");
    }
}
