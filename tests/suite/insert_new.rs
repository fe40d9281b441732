//! The new keys of a batch equal those of insertion one by one, by every kernel, and for the filter
//! that threads share.

use crate::common::{Random, empty, kernels};
use blocked_bloom::{
    Bitmask, BloomFilter, FilterOptions, KeyError, KeyHash, KeyHasher, Params, PrefixExtractor,
    Sizing,
};

const SAMPLE_HASH: u64 = 0x9c1c_34f1_0a4e_7ab3;

/// Blocks of a filter that every kernel prefetches.
fn outgrows_the_cache() -> u32 {
    (blocked_bloom::Kernel::default().prefetch_threshold() / 64) as u32 + 1
}

/// Inserts the hashes one by one into `filter`, and returns the words of the answers.
fn insert_singly(filter: &mut BloomFilter, hashes: &[u64]) -> Vec<u64> {
    let mut words = vec![0; hashes.len().div_ceil(64)];
    for (i, &hash) in hashes.iter().enumerate() {
        words[i / 64] |= u64::from(filter.insert_hash(hash).unwrap()) << (i % 64);
    }
    words
}

/// Inserts a batch into copies of the filter by every kernel, and into an atomic one. Compares
/// answers, bits and counts.
fn check(filter: &BloomFilter, hashes: &[u64], new: &mut Bitmask) {
    let mut expected = filter.clone();
    let words = insert_singly(&mut expected, hashes);
    // As long as needed, so that a sanitizer detects reads past the end.
    let hashes: Box<[u64]> = hashes.into();
    for kernel in blocked_bloom::Kernel::supported() {
        let mut batch = filter.clone().with_kernel(kernel);
        batch.insert_hashes_new(&hashes, new).unwrap();
        assert_eq!((new.len(), new.words()), (hashes.len(), &words[..]), "{batch:?}");
        assert_eq!(batch, expected, "{kernel:?}, {} hashes", hashes.len());
        // The same, except for the count.
        let mut counting = filter.clone().with_kernel(kernel);
        counting.insert_hashes_counting_new(&hashes, new).unwrap();
        let counted = filter.keys_inserted() + new.count_hits() as u64;
        assert_eq!((new.words(), counting.keys_inserted()), (&words[..], counted));
        assert_eq!(counting.blocks(), expected.blocks());
    }
    #[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
    {
        let shared = blocked_bloom::AtomicBloomFilter::from(filter.clone());
        shared.insert_hashes_new(&hashes, new).unwrap();
        assert_eq!((new.len(), new.words()), (hashes.len(), &words[..]), "{shared:?}");
        assert_eq!(shared.into_filter(), expected, "{} hashes", hashes.len());
    }
}

/// Finds a word, a group or a rest of a group with the answers of other keys, and a number of
/// probes that uses another loop.
#[test]
fn lengths_and_probe_counts() {
    kernels();
    let (mut random, mut new) = (Random(1), Bitmask::new());
    for probes in 1..=30 {
        let hashes = random.hashes(300);
        for (blocks, lengths) in [(1, 70), (2, 300), (9, 140)] {
            let mut filter = empty(blocks, probes);
            for length in 0..=lengths {
                check(&filter, &hashes[..length], &mut new);
            }
            // Some of them are already present.
            filter.insert_hashes(&hashes[..100]).unwrap();
            for length in (0..=lengths).step_by(7) {
                check(&filter, &hashes[300 - length..], &mut new);
                check(&filter, &hashes[..length], &mut new);
            }
        }
        check(&empty(outgrows_the_cache(), probes), &hashes, &mut new);
    }
}

/// Finds an answer that is computed before a preceding key is stored: loops compute the positions
/// of several keys in advance.
#[test]
fn repeated_keys_at_every_distance() {
    kernels();
    let (mut random, mut new) = (Random(2), Bitmask::new());
    for probes in [1, 2, 4, 6, 8, 10, 12, 14, 16, 17, 24, 25, 30] {
        for blocks in [50, outgrows_the_cache()] {
            let filter = empty(blocks, probes);
            let distances = if blocks == 50 { 150 } else { 20 };
            for distance in 1..=distances {
                let mut hashes = random.hashes(distance);
                hashes.extend_from_within(..);
                // Only some appear a third time, so that distances are mixed.
                hashes.extend(hashes.clone().iter().step_by(3));
                check(&filter, &hashes, &mut new);
                filter.clone().insert_hashes_new(&hashes, &mut new).unwrap();
                assert!(new.hits().all(|i| i < distance), "{distance}: {:?}", new.words());
            }
            check(&filter, &[SAMPLE_HASH; 200], &mut new);
            filter.clone().insert_hashes_new(&[SAMPLE_HASH; 200], &mut new).unwrap();
            assert_eq!(new.words(), [1, 0, 0, 0]);
        }
    }
}

/// All bits of a key except one are set. A kernel that compares fewer bits than the key has would
/// report the key as present.
#[test]
fn one_missing_bit_makes_a_key_new() {
    kernels();
    let (mut random, mut new) = (Random(3), Bitmask::new());
    for probes in 1..=30 {
        let hash = random.next();
        for missing in blocked_bloom::probe::bits(hash, probes) {
            let mut block = [0xff; 64];
            block[missing as usize / 8] ^= 1 << (missing % 8);
            let blocks = [block];
            let filter = BloomFilter::from_blocks(&blocks, probes, KeyHash::default()).unwrap();
            check(&filter.to_filter().unwrap(), &[hash; 9], &mut new);
            assert_eq!(new.words(), [1]);
        }
    }
}

/// Finds keys that are hashed with another seed, or in another order, than one by one.
#[test]
fn batches_of_keys_answer_as_single_keys() {
    let params: Params = Sizing::BitsPerKey(10.0).params(3_000).unwrap();
    let numbers: Vec<u64> = (0..1_500).chain(700..1_300).collect();
    let keys: Vec<[u8; 8]> = numbers.iter().map(|number| number.to_le_bytes()).collect();
    let texts: Vec<String> = numbers.iter().map(|number| format!("key {number}")).collect();
    let mut new = Bitmask::new();
    for kernel in kernels() {
        for seed in [0, 1, u64::MAX] {
            let key_hash = KeyHash::Xxh3 { seed };
            for length in [0, 1, 2, 63, 64, 65, 511, 512, 513, 1_024, 2_100] {
                let mut expected = BloomFilter::with_params(params, key_hash).unwrap();
                let batch = expected.clone().with_kernel(kernel);
                let (mut by_number, mut by_text) = (batch.clone(), batch.clone());
                let (numbers, keys, texts) =
                    (&numbers[..length], &keys[..length], &texts[..length]);
                let hashes: Vec<u64> =
                    keys.iter().map(|key| KeyHasher::with_seed(seed).hash(key)).collect();
                let words = insert_singly(&mut expected, &hashes);
                let answered =
                    |new: &Bitmask| assert_eq!((new.len(), new.words()), (length, &words[..]));

                let mut by_key = batch.clone();
                by_key.insert_batch_new(keys, &mut new).unwrap();
                answered(&new);
                by_number.insert_u64s_new(numbers, &mut new).unwrap();
                answered(&new);
                assert_eq!((&by_key, &by_number), (&expected, &expected));
                by_text.insert_batch_new(texts, &mut new).unwrap();
                let mut single = batch.clone();
                assert!(
                    texts.iter().map(|text| single.insert(text).unwrap()).eq(new.iter()),
                    "{kernel:?}, {length} texts"
                );
                assert_eq!(by_text, single);

                #[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
                {
                    use blocked_bloom::AtomicBloomFilter;
                    let shared = AtomicBloomFilter::from(batch.clone());
                    shared.insert_batch_new(keys, &mut new).unwrap();
                    answered(&new);
                    assert_eq!(shared.into_filter(), expected);
                    let shared = AtomicBloomFilter::from(batch);
                    shared.insert_u64s_new(numbers, &mut new).unwrap();
                    answered(&new);
                    assert_eq!(shared.into_filter(), expected);
                }
            }
        }
    }
}

/// Finds a filter that is changed although the keys were rejected, or a mask that keeps old
/// answers.
#[test]
fn refused_insertions_leave_an_empty_mask() {
    let options = FilterOptions::new(Sizing::BitsPerKey(16.0));
    let mut builder = options.clone().with_prefixes(PrefixExtractor::fixed(4)).builder();
    builder.extend(["t001/1"]).unwrap();
    let prefixes = builder.finish().unwrap();
    let caller = KeyHash::Caller { tag: 5 };
    let hashed = options.with_key_hash(caller).empty_filter(10).unwrap();
    let contents = prefixes.contents();
    for (mut filter, refused, hashes) in [
        (prefixes, KeyError::NoPrefix { contents }, false),
        (hashed, KeyError::NoHasher { tag: 5 }, true),
    ] {
        let before = filter.clone();
        let stale = || {
            let mut mask = Bitmask::new();
            mask.write(70, |words| words.fill(u64::MAX));
            mask
        };
        let mut masks = [(); 6].map(|()| stale());
        let [keys, numbers, hash, ..] = &mut masks;
        assert_eq!(filter.insert_batch_new(&["a"; 3], keys), Err(refused));
        assert_eq!(filter.insert_u64s_new(&[], numbers), Err(refused));
        if hashes {
            *hash = Bitmask::new();
        } else {
            assert_eq!(filter.insert_hashes_new(&[1], hash), Err(refused));
        }
        assert_eq!(filter, before);
        #[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
        {
            let [.., keys, numbers, hash] = &mut masks;
            let shared = blocked_bloom::AtomicBloomFilter::from(filter);
            assert_eq!(shared.insert_batch_new::<&str>(&[], keys), Err(refused));
            assert_eq!(shared.insert_u64s_new(&[7], numbers), Err(refused));
            if hashes {
                *hash = Bitmask::new();
            } else {
                assert_eq!(shared.insert_hashes_new(&[1], hash), Err(refused));
            }
            assert_eq!(shared.into_filter(), before);
            assert!(masks.iter().all(|mask| mask.is_empty() && mask.words().is_empty()));
        }
    }
    let mut all = BloomFilter::pass_all(KeyHash::default()).to_filter().unwrap();
    let mut new = Bitmask::new();
    all.insert_batch_new(&["a", "b"], &mut new).unwrap();
    assert_eq!((new.len(), new.count_hits(), all.keys_inserted()), (2, 0, 2));
}

/// Finds a mask with answers for keys that were never read.
#[cfg(panic = "unwind")]
#[test]
fn a_batch_that_panics_leaves_an_empty_mask() {
    struct Key(bool);
    impl AsRef<[u8]> for Key {
        fn as_ref(&self) -> &[u8] {
            assert!(self.0);
            b"a"
        }
    }
    let (mut filter, mut new) = (empty(2, 6), Bitmask::new());
    filter.insert_batch_new(&["b"; 100], &mut new).unwrap();
    assert_eq!(new.count_hits(), 1);
    let inserted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        filter.insert_batch_new(&[Key(true), Key(false)], &mut new)
    }));
    assert!(inserted.is_err() && new.is_empty());
}

/// Finds threads that all report another one as the first to insert a key, and a key that is new
/// again after its insertion.
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
#[test]
fn racing_batches_report_each_new_key_at_least_once() {
    let hashes = Random(6).hashes(20_000);
    // So sparse that other keys never set all bits of a key.
    let filter = blocked_bloom::AtomicBloomFilter::from(empty(4_000, 16));
    let insert = || {
        let mut new = Bitmask::new();
        filter.insert_hashes_new(&hashes, &mut new).unwrap();
        new
    };
    let [left, right] = std::thread::scope(|scope| {
        [scope.spawn(insert), scope.spawn(insert)].map(|thread| thread.join().unwrap())
    });
    assert!(left.iter().zip(right.iter()).all(|(left, right)| left | right));
    assert_eq!((insert().count_hits(), filter.keys_inserted()), (0, 60_000));
}
