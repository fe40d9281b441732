//! The sharded filter: no key is lost, bytes do not depend on order or threads, sizes match the
//! documents, and misuse is an error.

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{Bitmask, Filter, FilterOptions, KeyError, KeyHash, Sizing};
use blocked_bloom_ribbon::{RibbonError, RibbonFilter, RibbonOptions};

use crate::common::Random;
use crate::naive::Naive;

pub(crate) fn built(rate: f64, hashes: &[u64]) -> RibbonFilter {
    let mut builder = RibbonOptions::new(rate).builder();
    builder.insert_hashes(hashes);
    builder.finish_verified().unwrap()
}

pub(crate) fn options(rate: f64, key_hash: KeyHash) -> RibbonOptions {
    let filters = FilterOptions::new(Sizing::FalsePositiveRate(rate)).with_key_hash(key_hash);
    RibbonOptions::for_filters(&filters)
}

#[test]
fn every_number_of_keys_and_rate() {
    let counts = [0, 1, 2, 3, 10, 100, 1_000, 3_899, 3_900, 3_901, 7_801, 20_000];
    for (i, count) in counts.into_iter().enumerate() {
        for rate in [0.5, 0.3, 0.25, 0.1, 0.01, 0.001, 1e-6, 0.5_f64.powi(32)] {
            let hashes = Random(i as u64).hashes(count);
            let filter = built(rate, &hashes);
            assert_eq!(filter.keys_inserted(), count as u64);
            assert!(filter.expected_false_positive_rate() <= rate, "{count} {rate}");
            let opened = RibbonFilter::from_bytes_any_hash(filter.as_bytes()).unwrap();
            assert!(opened == filter && opened.memory_bytes() == filter.as_bytes().len() as u64);
            let naive = Naive::open(filter.as_bytes()).unwrap();
            let mut queries = Random(99).hashes(200);
            queries.extend(hashes.iter().take(100));
            queries.iter().for_each(|&hash| opened.prefetch_hash(hash));
            for (i, &hash) in queries.iter().enumerate() {
                assert_eq!(opened.contains_hash(hash), naive.contains(hash), "{count} {rate}");
                assert!(i < 200 || naive.contains(hash));
            }
            let estimated = filter_bytes_error(rate, count, filter.memory_bytes());
            assert!(count < 1_000 || estimated < 0.03, "{count} {rate}: {estimated}");
        }
    }
}

fn filter_bytes_error(rate: f64, count: usize, bytes: u64) -> f64 {
    let estimated = RibbonOptions::new(rate).estimated_bytes(count as u64).unwrap();
    (estimated as f64 / bytes as f64 - 1.0).abs()
}

/// Bits per key relative to the theoretical minimum.
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
                assert!(filter_bytes_error(rate, keys, filter.memory_bytes()) < 0.001);
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
    let options = options(0.01, KeyHash::Xxh3 { seed: 42 });
    let keys: Vec<String> = (0..5_000).map(|i| format!("key {i}")).collect();
    let mut builder = options.builder();
    builder.extend(&keys).unwrap();
    builder.insert("key 4999").unwrap();
    assert_eq!(builder.len(), 5_000);
    let filter = builder.finish().unwrap();
    let mut builder = options.builder();
    builder.insert_batch(&keys).unwrap();
    assert!(builder.finish().unwrap() == filter);
    let mut hits = Bitmask::new();
    filter.contains_batch(&keys, &mut hits);
    assert_eq!(hits.count_misses(), 0);
    assert!(keys.iter().all(|key| filter.contains(key)));
    assert!(filter.contains_hash(filter.hasher().unwrap().hash("key 1")));
    assert_eq!(filter.key_hash(), options.key_hash());
    let expected = KeyHash::default();
    let (stored, found) = (filter.as_bytes(), options.key_hash());
    for open in [RibbonFilter::from_bytes, RibbonFilter::from_bytes_trusted] {
        assert!(open(stored, found).unwrap() == filter);
        for expected in [expected, KeyHash::Caller { tag: 7 }] {
            let mismatch = HeaderError::HashMismatch { offset: 11, found, expected };
            assert_eq!(open(stored, expected).map(drop), Err(RibbonError::Header(mismatch)));
        }
    }
    #[cfg(feature = "rayon")]
    {
        let mut builder = options.builder();
        builder.par_extend(&keys).unwrap();
        assert!(builder.par_finish().unwrap() == filter);
    }

    let mut builder = crate::sharded::options(0.01, KeyHash::Caller { tag: 7 }).builder();
    assert_eq!(builder.insert("apple"), Err(KeyError::NoHasher { tag: 7 }));
    assert_eq!(builder.insert_batch(&keys), Err(KeyError::NoHasher { tag: 7 }));
    assert!(builder.is_empty());
    builder.insert_hash(1 << 63);
    let filter = builder.finish().unwrap();
    filter.contains_batch(&["apple", "banana"], &mut hits);
    assert!(filter.contains("apple") && hits.count_hits() == 2);
}

/// An engine's Ribbon filters use the hash and the rate of its other filters.
#[test]
fn options_of_an_engine() {
    let filters =
        FilterOptions::new(Sizing::BitsPerKey(10.0)).with_key_hash(KeyHash::Xxh3 { seed: 7 });
    let ribbon = RibbonOptions::for_filters(&filters);
    assert_eq!(ribbon.key_hash(), filters.key_hash());
    assert_eq!(ribbon.hasher(), filters.hasher());
    let rate = filters.params(1_000_000).unwrap().false_positive_rate();
    assert_eq!(ribbon.false_positive_rate(), rate);
    let mut builder = ribbon.builder();
    let keys: Vec<u64> = (0..10_000).collect();
    builder.insert_batch(&keys.iter().map(|key| key.to_le_bytes()).collect::<Vec<_>>()).unwrap();
    let filter = builder.finish().unwrap();
    assert!((0.95 * rate..=rate).contains(&filter.expected_false_positive_rate()));
    // Hashed once for filters of both kinds.
    let (mut hashes, mut hits) = (vec![0; keys.len()], Bitmask::new());
    filters.hasher().unwrap().hash_u64s(&keys, &mut hashes).unwrap();
    filter.contains_hashes(&hashes, &mut hits);
    assert_eq!(hits.count_misses(), 0);
    filter.contains_u64s(&keys, &mut hits);
    assert_eq!(hits.count_misses(), 0);
    assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));

    let with = |sizing: Sizing| RibbonOptions::for_filters(&filters.clone().with_sizing(sizing));
    assert_eq!(with(Sizing::FalsePositiveRate(0.001)).false_positive_rate(), 0.001);
    for sizing in [
        Sizing::MaxBytes(1 << 20),
        Sizing::BitsPerKey(0.0),
        Sizing::BitsPerKey(1.0),
        Sizing::BitsPerKey(-1.0),
        Sizing::FalsePositiveRate(1e-12),
    ] {
        let error = with(sizing).builder().finish().unwrap_err();
        assert!(matches!(error, RibbonError::Rate { .. }), "{sizing:?}");
    }
    for huge_pages in [true, false] {
        let options = RibbonOptions::for_filters(&filters.clone().with_huge_pages(huge_pages));
        assert_eq!(options == ribbon, huge_pages);
        let filter = options.builder().finish().unwrap();
        for filter in [filter.clone(), filter] {
            let text = format!("{:?}", filter.into_inner());
            assert!(text.contains(&format!("huge_pages: {huge_pages}")), "{text}");
        }
    }
    assert_eq!(
        RibbonOptions::for_filters(&FilterOptions::new(Sizing::FalsePositiveRate(0.01))),
        RibbonOptions::new(0.01)
    );
}

/// A pass-all filter answers "maybe", and its stored form is not a filter.
#[test]
fn stand_ins() {
    let absent = Random(7).hashes(130);
    let check = |filter: &RibbonFilter<&[u8]>, key_hash: KeyHash, keys: u64| {
        let mut hits = Bitmask::new();
        for kernel in crate::common::kernels() {
            filter.with_kernel(kernel).contains_hashes(&absent, &mut hits);
            assert_eq!((hits.len(), hits.count_misses()), (130, 0), "{kernel}");
        }
        filter.contains_u64s(&absent, &mut hits);
        assert_eq!((hits.len(), hits.count_misses()), (130, 0));
        assert!(filter.contains("apple") && absent.iter().all(|&hash| filter.contains_hash(hash)));
        absent.iter().for_each(|&hash| filter.prefetch_hash(hash));
        assert_eq!(
            (filter.key_hash(), filter.keys_inserted(), filter.columns()),
            (key_hash, keys, 0)
        );
        assert_eq!(filter.expected_false_positive_rate(), 1.0);
    };
    let key_hash = KeyHash::Xxh3 { seed: 7 };
    let mut builder = options(0.01, key_hash).builder();
    builder.insert_hashes(&Random(1).hashes(9_000));
    let (filter, error) = builder.clone().finish_verified_or_pass_all().unwrap();
    assert!(error.is_none() && filter == builder.finish().unwrap());
    let stored = filter.as_bytes();
    let (opened, error) = RibbonFilter::open_or_pass_all(stored, key_hash);
    assert!(
        error.is_none()
            && opened == filter
            && !absent.iter().all(|&hash| opened.contains_hash(hash))
    );

    let (other, error) = RibbonFilter::open_or_pass_all(stored, KeyHash::default());
    let (found, expected) = (key_hash, KeyHash::default());
    let mismatch = HeaderError::HashMismatch { offset: 11, found, expected };
    assert!(error == Some(mismatch.into()) && other != filter && other.as_bytes() == stored);
    check(&other, KeyHash::default(), 0);
    let mut damaged = stored.to_vec();
    damaged[500] ^= 1;
    for bytes in [&damaged, &stored[..500], &stored[..64], &[][..]] {
        let (other, error) = RibbonFilter::open_or_pass_all(bytes, key_hash);
        assert!(matches!(error, Some(RibbonError::Header(_))), "{error:?}");
        check(&other, key_hash, 0);
    }

    let mut builder = RibbonOptions::new(0.01).builder();
    builder.insert_hashes(&(0..100_000).collect::<Vec<u64>>());
    let (filter, error) = builder.finish_verified_or_pass_all().unwrap();
    assert_eq!(error, Some(RibbonError::NoSeed { shard: 0, hashes: 100_000 }));
    check(&filter.view(), KeyHash::default(), 100_000);
    assert_eq!(filter.memory_bytes(), 0);
    let (again, error) = RibbonFilter::open_or_pass_all(filter.as_bytes(), KeyHash::default());
    assert!(error.is_some() && again.contains("apple"));
}

#[test]
fn rejects_rates_out_of_range() {
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

/// Unmixed caller-supplied hashes: an error, or a filter that contains all of them.
#[test]
fn unmixed_hashes() {
    let build = |hashes: &[u64]| {
        let filters = FilterOptions::new(Sizing::FalsePositiveRate(0.01))
            .with_key_hash(KeyHash::Caller { tag: 1 });
        let mut builder = RibbonOptions::for_filters(&filters).builder();
        hashes.iter().for_each(|&hash| builder.insert_hash(hash));
        builder.finish_verified()
    };
    let random = Random(9).hashes(100_000);
    for keys in [20, 1_000, 100_000] {
        let random = || random[..keys].iter();
        for hashes in [
            (0..keys as u64).collect(),
            (0..keys as u64).map(|i| i << 40).collect(),
            random().map(|hash| hash >> 32).collect(),
            random().map(|hash| hash << 32).collect::<Vec<u64>>(),
        ] {
            let error = build(&hashes).unwrap_err();
            assert!(matches!(error, RibbonError::UnmixedHashes(_)), "{keys}: {error}");
        }
    }
    // Twelve hashes, or repeated ones, are not enough to judge.
    let few: Vec<u64> = (0..12).collect();
    assert!(few.iter().all(|&hash| build(&few).unwrap().contains_hash(hash)));
    let repeated: Vec<u64> = random[..100].iter().cycle().take(100_000).copied().collect();
    assert!(build(&repeated).is_ok());
    let multiples: Vec<u64> =
        (0..50_000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    assert!(build(&multiples).is_ok());
}

/// A key inserted many times, between others, is one key.
#[test]
fn copies_of_a_key() {
    let hashes = Random(8).hashes(30_000);
    let copies: Vec<u64> = hashes.iter().flat_map(|&hash| [hash, hashes[0]]).collect();
    let filter = built(0.01, &copies);
    assert_eq!(filter.keys_inserted(), 60_000 - 1);
    assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
}
