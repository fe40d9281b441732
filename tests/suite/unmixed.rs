//! Caller-supplied hashes: unmixed ones are an error for every method of building a filter, and
//! mixed ones never are, even if they are few or repeated.

use crate::common::Random;
use blocked_bloom::parts::{UnmixedHashes, check_mixed};
use blocked_bloom::{BloomFilter, BuildError, FilterOptions, KeyHash, KeyHasher, Sizing};

const CALLER: KeyHash = KeyHash::Caller { tag: 1 };

fn options() -> FilterOptions {
    FilterOptions::new(Sizing::BitsPerKey(10.0)).with_key_hash(CALLER)
}

fn finish(options: &FilterOptions, hashes: &[u64]) -> Result<BloomFilter, BuildError> {
    let mut builder = options.builder();
    builder.insert_hashes(hashes).unwrap();
    builder.finish()
}

/// Hashes that engines supply by mistake.
fn unmixed(keys: usize) -> [Vec<u64>; 6] {
    let random = || Random(3).hashes(keys).into_iter();
    [
        // 32-bit hashes in either half.
        random().map(|hash| hash >> 32).collect(),
        random().map(|hash| hash << 32).collect(),
        // Numbers, and numbers in the upper bits.
        (0..keys as u64).collect(),
        (0..keys as u64).map(|i| i << 40).collect(),
        // All keys in a 256th of the blocks, and 16 patterns of bits.
        random().map(|hash| hash & !0xff00_0000).collect(),
        random().map(|hash| hash & 0xf000_0000_ffff_ffff).collect(),
    ]
}

#[test]
fn unmixed_hashes_are_an_error_of_every_way_to_build() {
    for keys in [50, 64, 1_000, 4_097, 100_000, 300_000] {
        for (kind, hashes) in unmixed(keys).iter().enumerate() {
            let name = format!("{keys} keys of kind {kind}");
            let is_unmixed = |result: Result<BloomFilter, BuildError>| match result {
                Err(BuildError::UnmixedHashes(error)) => {
                    let UnmixedHashes { hashes, low_bins, high_bins, .. } = error;
                    assert!(hashes <= 4_096 && low_bins.min(high_bins) < hashes / 2, "{name}");
                }
                other => panic!("{name}: {other:?}"),
            };
            let mut builder = options().builder();
            builder.insert_hashes(hashes).unwrap();
            is_unmixed(builder.clone().finish_verified());
            #[cfg(feature = "rayon")]
            is_unmixed(builder.clone().par_finish());
            let (filter, error) = builder.clone().finish_verified_or_pass_all().unwrap();
            assert!(filter.is_pass_all() && filter.key_hash() == CALLER, "{name}");
            is_unmixed(Err(error.unwrap()));
            is_unmixed(builder.finish());
            is_unmixed(BloomFilter::from_hashes(&options(), hashes));
            // The list is freed when it reaches the limit.
            let limited = options().with_memory_limit(4 * keys as u64).with_expected_items(10);
            if keys >= 1_000 {
                is_unmixed(finish(&limited, hashes));
            }
            // Hashes of keys are mixed, and a pass-all filter has no rate to keep.
            let by_key = options().with_key_hash(KeyHash::default());
            assert!(finish(&by_key, hashes).is_ok());
            assert!(finish(&options().with_sizing(Sizing::BitsPerKey(0.0)), hashes).is_ok());
        }
    }
}

/// The list that reaches the limit may have a part of the range only.
#[test]
fn sorted_hashes_with_a_memory_limit_are_not_an_error() {
    let mut hashes = Random(11).hashes(400_000);
    hashes.sort_unstable_by_key(|&hash| hash as u32);
    for limit in [0, 1 << 14, 1 << 20] {
        let limited = options().with_memory_limit(limit).with_expected_items(400_000);
        assert!(finish(&limited, &hashes).is_ok(), "{limit}");
        // And what comes after the limit is checked.
        let mut unmixed = hashes[..1_000].to_vec();
        unmixed.extend(0..400_000);
        let error = finish(&limited, &unmixed).unwrap_err();
        assert!(matches!(error, BuildError::UnmixedHashes(_)), "{limit}: {error}");
    }
}

/// Finds a sample to which later hashes contribute more than earlier ones.
#[test]
fn hashes_before_and_after_the_limit_are_sampled_alike() {
    let mixed = Random(12).hashes(300_000);
    let widened: Vec<u64> = mixed.iter().map(|hash| hash >> 32).collect();
    let limited = options().with_memory_limit(1 << 14).with_expected_items(600_000);
    for hashes in [[&widened[..], &mixed].concat(), [&mixed[..], &widened].concat()] {
        let error = finish(&limited, &hashes).unwrap_err();
        assert!(matches!(error, BuildError::UnmixedHashes(_)), "{error}");
    }
}

/// The reason for the error: nothing in the filter shows that absent keys pass.
#[test]
fn a_filter_of_widened_hashes_passes_what_its_rates_deny() {
    let widened: Vec<u64> = Random(5).hashes(200_000).iter().map(|hash| hash >> 32).collect();
    let (keys, absent) = widened.split_at(100_000);
    let mut filter = options().empty_filter(100_000).unwrap();
    filter.insert_hashes(keys).unwrap();
    let passed = absent.iter().filter(|&&hash| filter.contains_hash(hash)).count();
    assert!(passed > 99_000);
    assert!(filter.expected_false_positive_rate() < 0.01);
    assert!(filter.estimated_false_positive_rate() < 1e-9);
}

#[test]
fn repeated_hashes_are_not_an_error() {
    for distinct in [1, 2, 13, 100, 3_000] {
        let hashes = Random(7).hashes(distinct);
        let repeated: Vec<u64> = hashes.iter().copied().cycle().take(1_000_000).collect();
        let filter = finish(&options(), &repeated).unwrap();
        assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
        // Adjacent repeats, which the builder counts once, and repeated blocks.
        let mut sorted = repeated;
        sorted.sort_unstable();
        assert!(finish(&options(), &sorted).is_ok());
        assert!(check_mixed(CALLER, &[sorted]).is_ok());
    }
}

#[test]
fn mixed_hashes_are_not_an_error() {
    let sizes = (0..200).chain((200..5_000).step_by(97)).chain([65_536, 100_000, 1_000_000]);
    for (seed, keys) in (0..).zip(sizes) {
        let mut hashes = Random(seed).hashes(keys);
        assert_eq!(check_mixed(CALLER, &[&hashes]), Ok(()), "{keys}");
        // Sorted by value, and by block.
        hashes.sort_unstable();
        assert_eq!(check_mixed(CALLER, &[&hashes]), Ok(()), "{keys}");
        hashes.sort_unstable_by_key(|hash| hash.rotate_left(32));
        assert_eq!(check_mixed(CALLER, &[&hashes]), Ok(()), "{keys}");
    }
    // Up to twelve hashes of any value.
    for keys in 0..=12 {
        for hashes in unmixed(keys) {
            assert!(finish(&options(), &hashes).is_ok());
        }
    }
    // Hash functions with harmless weaknesses.
    let multiples: Vec<u64> =
        (0..100_000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let hasher = KeyHasher::default();
    let of_48_bits: Vec<u64> =
        (0..100_000_u64).map(|i| hasher.hash(i.to_le_bytes()) >> 16).collect();
    for hashes in [multiples, of_48_bits] {
        assert_eq!(check_mixed(CALLER, &[hashes]), Ok(()));
    }
}

#[test]
fn the_sample_covers_all_lists() {
    let (mixed, numbers) = (Random(1).hashes(50), (0..5_000).collect::<Vec<u64>>());
    assert!(check_mixed(CALLER, &[&mixed, &numbers]).is_err());
    assert!(check_mixed(CALLER, &[&numbers, &mixed]).is_err());
    assert!(check_mixed(CALLER, &[&mixed, &mixed]).is_ok());
    let lists: Vec<Vec<u64>> = numbers.chunks(3).map(<[u64]>::to_vec).collect();
    assert!(check_mixed(CALLER, &lists).is_err());
    let error = check_mixed(CALLER, &lists).unwrap_err().to_string();
    assert!(error.starts_with("the supplied hashes are not well mixed: 2500 different"), "{error}");
}
