//! The sharded filter: no key is lost, bytes do not depend on order or threads, sizes are what the documents say, misuse is an error.

use blocked_bloom::{BatchQuery, Bitmask, KeyError, KeyHash};
use blocked_bloom_ribbon::{RibbonError, RibbonFilter, RibbonOptions};

use crate::common::Random;
use crate::naive::Naive;

pub(crate) fn built(rate: f64, hashes: &[u64]) -> RibbonFilter {
    let mut builder = RibbonOptions::new(rate).builder();
    hashes.iter().for_each(|&hash| builder.insert_hash(hash));
    builder.finish_verified().unwrap()
}

#[test]
fn every_number_of_keys_and_rate() {
    let counts = [0, 1, 2, 3, 10, 100, 1_000, 3_899, 3_900, 3_901, 7_801, 20_000];
    for (i, count) in counts.into_iter().enumerate() {
        for rate in [0.5, 0.3, 0.25, 0.1, 0.01, 0.001, 1e-6, 0.5_f64.powi(32)] {
            let hashes = Random(i as u64).hashes(count);
            let filter = built(rate, &hashes);
            assert_eq!(filter.keys_inserted(), count as u64);
            assert!(filter.false_positive_rate() <= rate, "{count} {rate}");
            let opened = RibbonFilter::from_bytes(filter.as_bytes()).unwrap();
            assert!(opened == filter && opened.stored_bytes() == filter.as_bytes().len() as u64);
            let naive = Naive::open(filter.as_bytes()).unwrap();
            let mut queries = Random(99).hashes(200);
            queries.extend(hashes.iter().take(100));
            for (i, &hash) in queries.iter().enumerate() {
                assert_eq!(opened.contains_hash(hash), naive.contains(hash), "{count} {rate}");
                assert!(i < 200 || naive.contains(hash));
            }
            let estimated = filter_bytes_error(rate, count, filter.stored_bytes());
            assert!(count < 1_000 || estimated < 0.03, "{count} {rate}: {estimated}");
        }
    }
}

fn filter_bytes_error(rate: f64, count: usize, bytes: u64) -> f64 {
    let estimated = RibbonOptions::new(rate).estimated_bytes(count as u64).unwrap();
    (estimated as f64 / bytes as f64 - 1.0).abs()
}

/// Bits per key over those of the best possible filter.
#[test]
fn space() {
    for (keys, rates) in [
        (10_000, [0.1, 0.01, 0.001]),
        (30_000, [0.1, 0.01, 0.001]),
        (1_000_000, [0.1, 0.01, 0.001]),
    ] {
        let hashes = Random(keys as u64).hashes(keys);
        for (rate, most) in rates.into_iter().zip([1.12, 1.10, 1.10]) {
            let filter = built(rate, &hashes);
            let times = filter.bits_per_key() / -rate.log2();
            assert!(times <= most, "{keys} keys at {rate}: {times}");
            if keys >= 1_000_000 {
                assert!(filter_bytes_error(rate, keys, filter.stored_bytes()) < 0.001);
            }
        }
    }
}

#[test]
fn bytes_depend_on_the_set_of_keys_alone() {
    let hashes = Random(5).hashes(1_200_000);
    let filter = built(0.02, &hashes);
    let mut others = hashes.clone();
    others.reverse();
    others.swap(17, 70_000);
    assert!(built(0.02, &others) == filter);
    #[cfg(feature = "rayon")]
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut builder = RibbonOptions::new(0.02).builder();
        others.iter().for_each(|&hash| builder.insert_hash(hash));
        assert!(pool.install(|| builder.par_finish()).unwrap() == filter);
    }
}

#[test]
fn keys_and_their_hashes() {
    let options = RibbonOptions::new(0.01).with_key_hash(KeyHash::Xxh3 { seed: 42 });
    let keys: Vec<String> = (0..5_000).map(|i| format!("key {i}")).collect();
    let mut builder = options.builder();
    builder.extend(&keys).unwrap();
    builder.insert("key 4999").unwrap();
    assert_eq!(builder.len(), 5_000);
    let filter = builder.finish().unwrap();
    let mut hits = Bitmask::new();
    filter.contains_batch(&keys, &mut hits);
    assert_eq!(hits.count_misses(), 0);
    assert!(keys.iter().all(|key| filter.contains(key)));
    assert!(filter.contains_hash(filter.hasher().unwrap().hash("key 1")));
    assert_eq!(filter.key_hash(), options.key_hash());
    let expected = KeyHash::default();
    let error = filter.view().require_key_hash(expected).unwrap_err();
    assert_eq!(error, RibbonError::HashMismatch { found: options.key_hash(), expected });
    #[cfg(feature = "rayon")]
    {
        let mut builder = options.builder();
        builder.par_extend(&keys).unwrap();
        assert!(builder.par_finish().unwrap() == filter);
    }

    let mut builder = options.with_key_hash(KeyHash::Caller { tag: 7 }).builder();
    assert_eq!(builder.insert("apple"), Err(KeyError::NoHasher { tag: 7 }));
    assert!(builder.is_empty());
    builder.insert_hash(1 << 63);
    let filter = builder.finish().unwrap();
    filter.contains_batch(&["apple", "banana"], &mut hits);
    assert!(filter.contains("apple") && hits.count_hits() == 2);
}

#[test]
fn out_of_range() {
    for rate in [0.0, -1.0, 0.500_001, 1.0, 1e-10, f64::NAN, f64::INFINITY] {
        let error = RibbonOptions::new(rate).builder().finish().unwrap_err();
        assert!(matches!(error, RibbonError::Rate { .. }), "{rate}");
        assert!(RibbonOptions::new(rate).estimated_bytes(1).is_err());
    }
    let keys = 3_900 * u64::from(u32::MAX);
    assert!(RibbonOptions::new(0.01).estimated_bytes(keys).is_ok());
    let error = RibbonOptions::new(0.01).estimated_bytes(keys + 1).unwrap_err();
    assert_eq!(error, RibbonError::TooManyKeys { keys: keys + 1, limit: keys });
}

/// Hashes of a caller that are not mixed: an error, or a filter that has them all.
#[test]
fn unmixed_hashes() {
    let build = |hashes: &[u64]| {
        let mut builder = RibbonOptions::new(0.01).builder();
        hashes.iter().for_each(|&hash| builder.insert_hash(hash));
        builder.finish_verified()
    };
    let numbers: Vec<u64> = (0..100_000).collect();
    let error = build(&numbers).unwrap_err();
    assert_eq!(error, RibbonError::UnmixedHashes { shard: 0, hashes: 100_000, limit: 15_252 });
    // Of one shard: the equations start at a few slots.
    let few: Vec<u64> = (0..3_000).map(|i| i << 40).collect();
    match build(&few) {
        Ok(filter) => assert!(few.iter().all(|&hash| filter.contains_hash(hash))),
        Err(error) => assert!(matches!(error, RibbonError::NoSeed { shard: 0, hashes: 3_000 })),
    }
    let multiples: Vec<u64> =
        (0..50_000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    assert!(build(&multiples).is_ok());
}

/// A key that was added many times, between others, is one key.
#[test]
fn copies_of_a_key() {
    let hashes = Random(8).hashes(30_000);
    let copies: Vec<u64> = hashes.iter().flat_map(|&hash| [hash, hashes[0]]).collect();
    let filter = built(0.01, &copies);
    assert_eq!(filter.keys_inserted(), 60_000 - 1);
    assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
}
