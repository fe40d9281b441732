//! The filter that threads share: its bits are compared with those of an owned filter. Also tests
//! lookups during insertion, and the conversions.
#![cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use crate::common::{Random, empty, filled, kernels};
use blocked_bloom::{
    AtomicBloomFilter, Bitmask, BloomFilter, Filter, FilterContents, FilterOptions, KeyError,
    KeyHash, KeyHasher, PrefixExtractor, Sizing,
};

/// 3.8 MiB: larger than most second-level caches, so that these filters are prefetched.
const OUTGROWS_THE_CACHE: u32 = 60_001;

fn caller_hashed() -> AtomicBloomFilter {
    let params = Sizing::BitsPerKey(10.0).params(1_000).unwrap();
    BloomFilter::with_params(params, KeyHash::Caller { tag: 5 }).unwrap().into()
}

/// Finds a wrong bit, word or block on machines of either byte order, a bit that another thread's
/// `fetch_or` loses, and insertions that are not counted.
#[test]
fn threads_make_the_filter_that_one_would() {
    for (blocks, probes) in
        [(1, 1), (1, 6), (2, 30), (7, 17), (64, 6), (OUTGROWS_THE_CACHE, 6), (20_000, 9)]
    {
        let hashes = Random(u64::from(blocks)).hashes(blocks as usize * 51);
        let mut expected = empty(blocks, probes);
        expected.insert_hashes(&hashes).unwrap();
        expected.insert_hashes(&hashes[..hashes.len() / 2]).unwrap();
        for threads in [1, 2, 5] {
            let filter = AtomicBloomFilter::from(empty(blocks, probes));
            thread::scope(|scope| {
                for part in hashes.chunks(hashes.len().div_ceil(threads)) {
                    scope.spawn(|| filter.insert_hashes(part).unwrap());
                }
                // The first half again, one by one.
                scope.spawn(|| {
                    for &hash in &hashes[..hashes.len() / 2] {
                        filter.insert_hash(hash).unwrap();
                    }
                });
            });
            assert_eq!(filter.keys_inserted(), expected.keys_inserted());
            assert_eq!(filter.params(), expected.params());
            assert_eq!(filter.memory_bytes(), expected.memory_bytes());
            let filter = filter.into_filter();
            assert_eq!(filter, expected, "{blocks} blocks, {probes} probes, {threads} threads");
            assert_eq!(filter.to_bytes(), expected.to_bytes());
        }
    }
}

/// Finds an insertion that is not counted because another thread counted at the same time. There
/// are more threads than counters, and they count often.
#[test]
fn insertions_of_many_threads_are_all_counted() {
    let filter = AtomicBloomFilter::from(empty(7, 6));
    thread::scope(|scope| {
        for hash in 0..24 {
            let filter = &filter;
            scope.spawn(move || (0..20_000).for_each(|_| _ = filter.insert_hash(hash).unwrap()));
        }
    });
    assert_eq!(filter.keys_inserted(), 24 * 20_000);
}

/// Finds a wrong number of probes in single insertions, and a wrong return value.
#[test]
fn one_thread_sees_what_an_owned_filter_says() {
    for blocks in [1, 3, 100] {
        for probes in [1, 2, 6, 8, 9, 16, 17, 30] {
            let mut owned = empty(blocks, probes);
            let shared = AtomicBloomFilter::from(owned.clone());
            for hash in Random(9).hashes(60 * blocks as usize) {
                assert_eq!(shared.contains_hash(hash), owned.contains_hash(hash));
                assert_eq!(shared.insert_hash(hash), owned.insert_hash(hash));
                assert!(shared.contains_hash(hash) && !shared.insert_hash(hash).unwrap());
                owned.insert_hash(hash).unwrap();
            }
            assert_eq!(shared.into_filter(), owned, "{blocks} blocks, {probes} probes");
        }
    }
}

/// Finds a number of blocks that is cut to 16 bits: the keys would be in other blocks than those of
/// an owned filter.
#[test]
fn blocks_after_the_first_65_536_are_used() {
    let (mut owned, hashes) = (empty(70_000, 3), Random(15).hashes(2_000));
    let shared = AtomicBloomFilter::from(owned.clone());
    shared.insert_hashes(&hashes[..1_000]).unwrap();
    hashes[1_000..].iter().for_each(|&hash| assert_eq!(shared.insert_hash(hash), Ok(true)));
    owned.insert_hashes(&hashes).unwrap();
    assert!(hashes.iter().all(|&hash| shared.contains_hash(hash)));
    assert_eq!(shared.into_filter(), owned);
}

/// Finds an ignored seed, and a key that insertion and lookup hash differently.
#[test]
fn keys_are_hashed_with_the_filters_seed() {
    let params = Sizing::BitsPerKey(30.0).params(5).unwrap();
    let words = ["", "a", "apple", "a key that is longer than sixteen bytes", "ключ"];
    for seed in [0, 1, u64::MAX] {
        let key_hash = KeyHash::Xxh3 { seed };
        let filter = AtomicBloomFilter::from(BloomFilter::with_params(params, key_hash).unwrap());
        assert_eq!(filter.key_hash(), key_hash);
        for word in words {
            assert!(filter.insert(word).unwrap() && filter.contains(word));
            assert!(filter.contains_hash(KeyHasher::with_seed(seed).hash(word)));
            assert!(!filter.contains_hash(KeyHasher::with_seed(seed ^ 2).hash(word)));
        }
        let owned = filter.into_filter();
        assert!(words.iter().all(|word| owned.contains(word)));
        assert_eq!(owned.key_hash(), key_hash);
    }
}

/// Finds an insertion whose bits are published too late, and a lookup that combines old and new
/// words. Readers use every method, in a filter that fits the cache and in a larger one, and learn
/// of keys only through an index.
#[test]
fn an_inserted_key_is_found_by_whoever_learned_of_it() {
    for blocks in [40, OUTGROWS_THE_CACHE] {
        let filter = AtomicBloomFilter::from(empty(blocks, 6));
        let keys: Vec<[u8; 8]> =
            Random(3).hashes(blocks as usize * 20).into_iter().map(u64::to_le_bytes).collect();
        let hashes: Vec<u64> = keys.iter().map(|key| KeyHasher::default().hash(key)).collect();
        let published = AtomicUsize::new(0);
        let writers = AtomicUsize::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                for (i, key) in keys.iter().enumerate() {
                    filter.insert(key).unwrap();
                    published.store(i + 1, Ordering::Release);
                }
                writers.fetch_sub(1, Ordering::Release);
            });
            // Writes to the same blocks, including half of the first writer's keys.
            scope.spawn(|| {
                let others = Random(4).hashes(keys.len());
                for (other, hash) in others.chunks(10).zip(hashes.chunks(20)) {
                    filter.insert_hashes(other).unwrap();
                    filter.insert_hashes(&hash[..hash.len() / 2]).unwrap();
                }
                writers.fetch_sub(1, Ordering::Release);
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut hits = Bitmask::new();
                    loop {
                        let done = writers.load(Ordering::Acquire) == 0;
                        let known = published.load(Ordering::Acquire);
                        let newest = known.saturating_sub(200)..known;
                        for i in newest.clone() {
                            assert!(filter.contains(keys[i]) && filter.contains_hash(hashes[i]));
                        }
                        filter.contains_hashes(&hashes[newest.clone()], &mut hits);
                        assert_eq!(hits.count_misses(), 0);
                        filter.contains_batch(&keys[newest], &mut hits);
                        assert_eq!(hits.count_misses(), 0);
                        if done {
                            break;
                        }
                    }
                });
            }
        });
        let filter = filter.into_filter();
        assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
    }
}

/// The same through a channel, with the filter in an `Arc`, and the steps of a flush after the last
/// writer is gone.
#[test]
fn a_channel_tells_of_insertions() {
    let filter = Arc::new(AtomicBloomFilter::from(empty(30, 8)));
    let (sender, receiver) = mpsc::channel();
    let writer = thread::spawn({
        let filter = Arc::clone(&filter);
        move || {
            for hash in Random(5).hashes(1_000) {
                filter.insert_hash(hash).unwrap();
                sender.send(hash).unwrap();
            }
        }
    });
    assert!(receiver.iter().all(|hash| filter.contains_hash(hash)));
    writer.join().unwrap();
    let filter = Arc::into_inner(filter).unwrap().into_filter();
    let stored = filter.to_bytes();
    let opened = BloomFilter::from_bytes_any_hash(&stored).unwrap();
    assert!(Random(5).hashes(1_000).into_iter().all(|hash| opened.contains_hash(hash)));
}

/// Finds threads that all report another one as the first to insert a key.
#[test]
fn racing_threads_report_a_new_key_at_least_once() {
    let hashes = Random(6).hashes(20_000);
    // So sparse that other keys never set all bits of a key.
    let filter = AtomicBloomFilter::from(empty(4_000, 16));
    let new: Vec<Vec<bool>> = thread::scope(|scope| {
        let insert = || hashes.iter().map(|&hash| filter.insert_hash(hash).unwrap()).collect();
        let threads = [scope.spawn(insert), scope.spawn(insert)];
        threads.map(|thread| thread.join().unwrap()).into()
    });
    assert!(new[0].iter().zip(&new[1]).all(|(left, right)| left | right));
    assert!(hashes.iter().all(|&hash| !filter.insert_hash(hash).unwrap()));
}

/// Finds a wrong bit, count or return value of the only writer, in single insertions and in batches
/// of every length around the prefetch distance.
#[test]
fn a_writer_makes_the_filter_that_an_owned_one_would_be() {
    for blocks in [1, 3, 100, OUTGROWS_THE_CACHE] {
        for probes in [1, 2, 6, 8, 9, 16, 17, 30] {
            let mut owned = empty(blocks, probes);
            let mut writer = AtomicBloomFilter::from(owned.clone()).into_writer();
            for hash in Random(9).hashes(50 * blocks.min(100) as usize) {
                assert_eq!(writer.insert_hash(hash), owned.insert_hash(hash));
                assert_eq!(writer.insert_hash(hash), Ok(false));
                owned.insert_hash(hash).unwrap();
                assert!(writer.reader().contains_hash(hash));
            }
            let (mut new, mut expected) = (Bitmask::new(), Bitmask::new());
            for length in [0, 1, 63, 64, 65, 130] {
                let hashes = Random(length).hashes(length as usize);
                writer.insert_hashes_new(&hashes, &mut new).unwrap();
                owned.insert_hashes_new(&hashes, &mut expected).unwrap();
                assert_eq!(new, expected, "{blocks} blocks, {probes} probes, {length} hashes");
                let keys: Vec<[u8; 8]> = hashes.iter().map(|hash| hash.to_le_bytes()).collect();
                writer.insert_batch(&keys).unwrap();
                owned.insert_batch(&keys).unwrap();
                keys.iter().for_each(|key| assert_eq!(writer.insert(key), Ok(false)));
                writer.insert_u64s_new(&hashes, &mut new).unwrap();
                assert_eq!(new.count_hits(), 0);
                // As often as the writer: once by one, once as integers.
                owned.insert_hashes(&[hashes.clone(), hashes].concat()).unwrap();
            }
            assert_eq!(writer.reader().keys_inserted(), owned.keys_inserted());
            let reader = Arc::clone(writer.reader());
            drop(writer);
            let filter = Arc::into_inner(reader).unwrap().into_filter();
            assert_eq!(filter, owned, "{blocks} blocks, {probes} probes");
        }
    }
}

/// Finds insertions that are published too late, or bits that the writer loses between batches,
/// while readers look up the keys that they know of.
#[test]
fn readers_find_what_the_writer_inserted() {
    for blocks in [40, OUTGROWS_THE_CACHE] {
        let hashes = Random(13).hashes(blocks as usize * 20);
        let mut writer = AtomicBloomFilter::from(empty(blocks, 6)).into_writer();
        let published = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                let reader = Arc::clone(writer.reader());
                let (published, hashes) = (&published, &hashes);
                scope.spawn(move || {
                    let mut hits = Bitmask::new();
                    while published.load(Ordering::Relaxed) < hashes.len() {
                        let known = published.load(Ordering::Acquire);
                        reader
                            .contains_hashes(&hashes[known.saturating_sub(200)..known], &mut hits);
                        assert_eq!(hits.count_misses(), 0);
                    }
                });
            }
            for (i, part) in hashes.chunks(3).enumerate() {
                writer.insert_hashes(&part[1..]).unwrap();
                writer.insert_hash(part[0]).unwrap();
                published.store(3 * i + part.len(), Ordering::Release);
            }
        });
        let mut expected = empty(blocks, 6);
        expected.insert_hashes(&hashes).unwrap();
        let reader = Arc::clone(writer.reader());
        drop(writer);
        assert_eq!(Arc::into_inner(reader).unwrap().into_filter(), expected);
    }
}

/// Finds a writer that accepts what its filter refuses, or that forgets earlier insertions.
#[test]
fn a_writer_keeps_the_rules_and_the_keys_of_its_filter() {
    let shared = caller_hashed();
    shared.insert_hash(1 << 32).unwrap();
    let mut writer = shared.into_writer();
    let refused = KeyError::NoHasher { tag: 5 };
    assert_eq!(writer.insert("a"), Err(refused));
    assert_eq!(writer.insert_batch(&["a"]), Err(refused));
    assert_eq!((writer.reader().keys_inserted(), writer.insert_hash(1 << 32)), (1, Ok(false)));
    assert_eq!(writer.reader().keys_inserted(), 2);
    assert!(format!("{writer:?}").starts_with("BloomFilterWriter(AtomicBloomFilter { blocks: "));

    let options = FilterOptions::default().with_prefixes(PrefixExtractor::fixed(4));
    let contents = options.contents();
    let prefixes = options.builder().finish().unwrap();
    let mut writer = AtomicBloomFilter::from(prefixes).into_writer();
    let refused = KeyError::NoPrefix { contents };
    let mut new = Bitmask::new();
    assert_eq!((writer.insert("a"), writer.insert_hash(1)), (Err(refused), Err(refused)));
    assert_eq!(writer.insert_hashes(&[1]), Err(refused));
    assert_eq!(writer.insert_hashes_new(&[1], &mut new), Err(refused));
    assert_eq!((writer.reader().keys_inserted(), new.len()), (0, 0));

    // It cannot answer for keys.
    let only = FilterOptions::default().with_only_prefixes(PrefixExtractor::fixed(4));
    let writer = AtomicBloomFilter::from(only.builder().finish().unwrap()).into_writer();
    assert!(!writer.reader().is_pass_all());
    assert!(writer.reader().contains("a") && writer.reader().contains_hash(1));
}

/// Finds a copied block array, a lost kernel or count, and bits that change during conversion.
#[test]
fn conversions_keep_the_blocks_where_they_are() {
    for kernel in kernels() {
        let (owned, hashes) = filled(500, 6, 1);
        let owned = owned.with_kernel(kernel);
        let (expected, before) = (owned.clone(), owned.blocks().as_ptr());
        let shared = AtomicBloomFilter::from(owned);
        assert!(hashes.iter().all(|&hash| shared.contains_hash(hash)));
        assert_eq!(shared.keys_inserted(), hashes.len() as u64);
        let owned = shared.into_filter();
        assert_eq!(owned.blocks().as_ptr(), before);
        assert_eq!((owned.kernel(), &owned), (kernel, &expected));
        let writer = AtomicBloomFilter::from(owned).into_writer();
        let reader = Arc::clone(writer.reader());
        drop(writer);
        let owned = Arc::into_inner(reader).unwrap().into_filter();
        assert_eq!(owned.blocks().as_ptr(), before);
        assert_eq!((owned.kernel(), &owned), (kernel, &expected));
    }
}

/// Finds a batch with wrong order, length or tail, below, at and above the prefetch distance.
#[test]
fn batches_answer_as_single_lookups_at_every_length() {
    for blocks in [50, OUTGROWS_THE_CACHE] {
        let (owned, present) = filled(blocks, 4, 7);
        let filter = AtomicBloomFilter::from(owned);
        let absent = Random(8).hashes(6_000);
        let mut hits = Bitmask::new();
        for length in (0..=130).chain([191, 192, 193, 5_000]) {
            let hashes: Vec<u64> = (0..length)
                .map(|i| if i % 3 == 0 { present[i % 2_000] } else { absent[i] })
                .collect();
            filter.contains_hashes(&hashes, &mut hits);
            let mut words = vec![u64::MAX; length.div_ceil(64)];
            filter.contains_hashes_into(&hashes, &mut words).unwrap();
            assert_eq!((hits.len(), hits.words()), (length, &words[..]));
            for (i, &hash) in hashes.iter().enumerate() {
                assert_eq!(hits.get(i), Some(filter.contains_hash(hash)), "hash {i} of {length}");
            }
            assert_eq!(hits.count_hits(), hits.hits().count());

            let keys: Vec<[u8; 8]> = hashes.iter().map(|hash| hash.to_le_bytes()).collect();
            keys.iter().step_by(5).for_each(|key| {
                filter.insert(key).unwrap();
            });
            filter.contains_batch(&keys, &mut hits);
            let mut words = vec![u64::MAX; length.div_ceil(64)];
            filter.contains_batch_into(&keys, &mut words).unwrap();
            assert_eq!((hits.len(), hits.words()), (length, &words[..]));
            for (i, key) in keys.iter().enumerate() {
                assert_eq!(hits.get(i), Some(filter.contains(key)), "key {i} of {length}");
            }
            // The keys are the bytes of these numbers.
            let mut words = vec![u64::MAX; length.div_ceil(64)];
            filter.contains_u64s_into(&hashes, &mut words).unwrap();
            assert_eq!(hits.words(), words);
            filter.contains_u64s(&hashes, &mut hits);
            assert_eq!((hits.len(), hits.words()), (length, &words[..]));
        }
    }
}

/// Finds a batch insertion that drops, repeats or misplaces a hash near the prefetch distance.
#[test]
fn batches_insert_every_hash_at_every_length() {
    for blocks in [3, OUTGROWS_THE_CACHE] {
        for length in (0..=130).step_by(if blocks > 3 { 13 } else { 1 }).chain([64, 65, 128, 129]) {
            let hashes = Random(length as u64).hashes(length);
            let mut expected = empty(blocks, 6);
            expected.insert_hashes(&hashes).unwrap();
            let filter = AtomicBloomFilter::from(empty(blocks, 6));
            filter.insert_hashes(&hashes).unwrap();
            assert_eq!(filter.into_filter(), expected, "{length} hashes, {blocks} blocks");
        }
    }
}

#[test]
fn word_slices_of_the_wrong_length_are_refused_and_untouched() {
    let filter = AtomicBloomFilter::from(empty(2, 6));
    for keys in [0_usize, 1, 64, 65] {
        let expected = keys.div_ceil(64);
        for words in (0..4).filter(|&words| words != expected) {
            let mut slice = vec![7; words];
            let error = filter.contains_hashes_into(&vec![1; keys], &mut slice).unwrap_err();
            assert_eq!((error.words, error.expected), (words, expected));
            assert_eq!(filter.contains_batch_into(&vec!["a"; keys], &mut slice), Err(error));
            assert_eq!(filter.contains_u64s_into(&vec![1; keys], &mut slice), Err(error));
            assert_eq!(slice, vec![7; words]);
        }
    }
}

/// Finds a pass-all filter whose shape or answers change when it is shared.
#[test]
fn a_filter_that_passes_all_stays_so() {
    let shared =
        AtomicBloomFilter::from(BloomFilter::pass_all(KeyHash::default()).to_filter().unwrap());
    assert!(shared.is_pass_all() && shared.contains("anything") && shared.contains_hash(1));
    assert_eq!((shared.insert("a"), shared.insert_hash(7)), (Ok(false), Ok(false)));
    shared.insert_hashes(&[1, 2, 3]).unwrap();
    let mut hits = Bitmask::new();
    shared.contains_hashes(&[9; 70], &mut hits);
    assert_eq!(hits.words(), [u64::MAX, 0b11_1111]);
    assert_eq!(shared.params().false_positive_rate(), 1.0);
    let owned = shared.into_filter();
    let mut expected = BloomFilter::pass_all(KeyHash::default()).to_filter().unwrap();
    expected.insert_hashes(&[0; 5]).unwrap();
    assert_eq!(owned, expected);
    assert_eq!(BloomFilter::from_bytes_any_hash(&owned.to_bytes()).unwrap(), expected.view());
}

/// Everything that can be observed without consuming the filter.
fn seen(filter: &AtomicBloomFilter, hashes: &[u64]) -> (u64, bool, Vec<bool>, bool) {
    let answers = hashes.iter().map(|&hash| filter.contains_hash(hash)).collect();
    (filter.keys_inserted(), filter.is_pass_all(), answers, filter.contains("a key"))
}

/// A filter of caller-supplied hashes rejects keys. Finds a rejected key that is counted, changes a
/// bit, or makes the filter useless: one by one, in batches, by several threads, before a
/// conversion and after it.
#[test]
fn keys_that_cannot_be_hashed_are_refused_and_change_nothing() {
    // Separate bits, since the high half selects them.
    const ADDED: [u64; 2] = [77 << 32, 79 << 32];
    const ABSENT: u64 = 78 << 32;
    let refused = KeyError::NoHasher { tag: 5 };
    let filter = caller_hashed();
    assert_eq!(filter.hasher(), Err(refused));
    let mut hits = Bitmask::new();
    filter.contains_batch(&["a"; 70], &mut hits);
    assert_eq!(hits.words(), [u64::MAX, 0b11_1111]);
    assert!(filter.contains("a") && !filter.contains_hash(ADDED[0]));
    assert_eq!(filter.insert_hash(ADDED[0]), Ok(true));
    assert!(filter.contains_hash(ADDED[0]) && !filter.is_pass_all());
    filter.contains_hashes(&[ADDED[0], ABSENT], &mut hits);
    assert_eq!(hits.words(), [0b01]);

    let before = seen(&filter, &[ADDED[0], ADDED[1], ABSENT]);
    assert_eq!(before, (1, false, vec![true, false, false], true));
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(filter.insert("a"), Err(refused)));
        scope.spawn(|| assert_eq!(filter.insert_batch(&["b"; 100]), Err(refused)));
    });
    // An empty batch is an error too: the mistake shows before the first key arrives.
    assert_eq!(filter.insert_batch::<&str>(&[]), Err(refused));
    assert_eq!(seen(&filter, &[ADDED[0], ADDED[1], ABSENT]), before);
    filter.contains_hashes(&[ADDED[0], ABSENT], &mut hits);
    assert_eq!(hits.words(), [0b01]);
    let mut words = [7, 7];
    filter.contains_hashes_into(&[ABSENT; 65], &mut words).unwrap();
    assert_eq!(words, [0, 0]);
    filter.insert_hash(ADDED[1]).unwrap();

    let mut expected = caller_hashed().into_filter();
    expected.insert_hashes(&ADDED).unwrap();
    assert_eq!(filter.params(), expected.params());
    let owned = filter.into_filter();
    assert_eq!(owned.to_bytes(), expected.to_bytes());
    assert_eq!(BloomFilter::from_bytes_any_hash(&owned.to_bytes()).unwrap(), expected.view());
}

/// Finds prefixes that are lost when a filter is shared: scans would miss a key that was inserted
/// without its prefix.
#[test]
fn a_shared_filter_of_prefixes_takes_nothing_and_stays_as_it_is() {
    let (tenant, hashes) = (PrefixExtractor::fixed(4), Random(2).hashes(50));
    let options = FilterOptions::new(Sizing::BitsPerKey(16.0));
    for options in
        [options.clone().with_prefixes(tenant.clone()), options.with_only_prefixes(tenant.clone())]
    {
        let contents = options.contents();
        let mut builder = options.builder();
        builder.extend((0..300_u32).map(|key| format!("t{:03}/{key}", key % 20))).unwrap();
        let owned = builder.finish().unwrap();
        let (stored, count) = (owned.to_bytes(), owned.keys_inserted());
        let shared = AtomicBloomFilter::from(owned);
        let before = seen(&shared, &hashes);
        let refused = KeyError::NoPrefix { contents };
        assert_eq!(shared.insert("t001/1"), Err(refused));
        assert_eq!(shared.insert_hash(hashes[0]), Err(refused));
        assert_eq!(shared.insert_batch(&["t001/1", "t999/1"]), Err(refused));
        assert_eq!(shared.insert_hashes(&hashes), Err(refused));
        assert_eq!(
            (shared.insert_batch::<&str>(&[]), shared.insert_hashes(&[])),
            (Err(refused), Err(refused))
        );
        assert_eq!(seen(&shared, &hashes), before);
        assert_eq!(shared.keys_inserted(), count);
        let mut hits = Bitmask::new();
        shared.contains_hashes(&hashes, &mut hits);
        match contents {
            // It cannot answer for keys.
            FilterContents::Prefixes { .. } => {
                assert!(shared.contains("t001/1") && shared.contains("of no tenant"));
                assert_eq!(hits.count_misses(), 0);
            }
            _ => {
                assert!(shared.contains("t001/1") && !shared.contains("of no tenant"));
                assert!(hits.count_misses() > 40);
            }
        }
        let owned = shared.into_filter();
        assert_eq!(owned.to_bytes(), stored);
        assert_eq!(owned.contents(), contents);
        let answers: Vec<bool> = hashes.iter().map(|&hash| owned.contains_hash(hash)).collect();
        assert_eq!(answers, before.2);
        assert!(owned.contains_prefix(&tenant, "t001") && !owned.contains_prefix(&tenant, "t999"));
    }
}

/// Finds a count that restarts, and a filter that starts to answer "absent", when it is shared
/// again.
#[test]
fn counts_and_answers_survive_being_shared_again() {
    let filter = caller_hashed();
    filter.insert_hash(1 << 32).unwrap();
    let again = AtomicBloomFilter::from(filter.into_filter());
    assert!(again.contains("a") && again.contains_hash(1 << 32) && !again.contains_hash(2 << 32));
    assert_eq!(again.insert("a"), Err(KeyError::NoHasher { tag: 5 }));
    again.insert_hash(1 << 32).unwrap();
    assert_eq!(again.keys_inserted(), 2);

    let all =
        AtomicBloomFilter::from(BloomFilter::pass_all(KeyHash::default()).to_filter().unwrap());
    all.insert("a").unwrap();
    let again = AtomicBloomFilter::from(all.into_filter());
    assert!(again.is_pass_all() && again.contains_hash(1));
    again.insert_hash(1).unwrap();
    assert_eq!(again.keys_inserted(), 2);
}

/// Finds a mask with old words and a new length, or an "absent" answer for a key, after the `AsRef`
/// of a key panicked.
#[cfg(panic = "unwind")]
#[test]
fn a_batch_that_panics_leaves_maybe() {
    struct Key(bool);
    impl AsRef<[u8]> for Key {
        fn as_ref(&self) -> &[u8] {
            assert!(self.0);
            b"a"
        }
    }
    let filter = AtomicBloomFilter::from(empty(2, 6));
    let mut hits = Bitmask::new();
    filter.contains_batch(&["a"; 100], &mut hits);
    assert_eq!(hits.count_hits(), 0);
    let looked_up = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        filter.contains_batch(&[Key(true), Key(false)], &mut hits);
    }));
    assert!(looked_up.is_err());
    assert_eq!((hits.len(), hits.words()), (2, &[0b11][..]));
}

#[test]
fn threads_may_share_and_send_it_and_debug_shows_no_bits() {
    fn shared<T: Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe>(_: &T) {}
    let filter = AtomicBloomFilter::from(empty(1_000, 6));
    shared(&filter);
    filter.insert("a").unwrap();
    let shown = format!("{filter:?}");
    assert!(shown.starts_with("AtomicBloomFilter { blocks: 1000, meta: Meta {"), "{shown}");
    assert!(shown.contains("keys_inserted: 1") && shown.len() < 300, "{shown}");
}

#[test]
fn batches_of_keys_insert_what_single_keys_do() {
    let keys: Vec<[u8; 8]> = (0..3_000_u64).map(u64::to_le_bytes).collect();
    for blocks in [64, OUTGROWS_THE_CACHE] {
        let batch = AtomicBloomFilter::from(empty(blocks, 6));
        batch.insert_batch(&keys).unwrap();
        let mut single = empty(blocks, 6);
        keys.iter().for_each(|key| _ = single.insert(key).unwrap());
        assert_eq!(batch.into_filter(), single);
    }
    let unhashed = caller_hashed();
    assert_eq!(unhashed.insert_batch(&keys), Err(KeyError::NoHasher { tag: 5 }));
    assert!(!unhashed.is_pass_all() && unhashed.keys_inserted() == 0);
    assert_eq!(unhashed.into_filter().to_bytes(), caller_hashed().into_filter().to_bytes());
}
