//! Compares folded filters with filters that were built smaller, and shrinking with a search over
//! all divisors.

use crate::common::{Random, empty, filled, kernels};
use blocked_bloom::{
    BloomFilter, BuildError, FilterOptions, KeyHash, ParamsError, PrefixExtractor, Sizing, probe,
};
use proptest::prelude::*;

fn divisors(number: u32) -> Vec<u32> {
    (1..=number).filter(|divisor| number.is_multiple_of(*divisor)).collect()
}

/// Catches groups that are not adjacent or overlap, a group that ends early, changed probes or
/// counts, and a buffer whose first blocks are not the folded ones.
#[test]
fn folding_gives_the_bytes_of_building_smaller_for_every_divisor() {
    for blocks in [1, 2, 3, 4, 6, 12, 17, 36, 60, 64, 97, 120, 128, 210, 256, 1_000, 1_260] {
        for probes in [1, 6, 9, 17, 30] {
            // So few keys that the smallest sizes are not full; in full filters, every fold would
            // look right.
            for keys in [40, blocks as usize * 10] {
                let hashes = Random(u64::from(blocks) + keys as u64).hashes(keys);
                let mut filter = empty(blocks, probes);
                filter.insert_hashes(&hashes).unwrap();
                for divisor in divisors(blocks) {
                    let mut built = empty(blocks / divisor, probes);
                    built.insert_hashes(&hashes).unwrap();
                    let folded = filter.folded(divisor).unwrap();
                    let name = format!("{blocks} blocks by {divisor}, {probes} probes");
                    assert_eq!(folded.to_bytes(), built.to_bytes(), "{name}");
                }
            }
        }
    }
}

/// A hash whose low half is at, just below or just above a border between two blocks, or anywhere.
fn hash(blocks: u32) -> impl Strategy<Value = u64> {
    let low = prop_oneof![
        any::<u32>(),
        (0..blocks, -1_i64..=1).prop_map(move |(block, offset)| {
            let border = (u64::from(block) << 32).div_ceil(u64::from(blocks));
            (border as i64 + offset) as u32
        }),
    ];
    (any::<u32>(), low).prop_map(|(high, low)| u64::from(high) << 32 | u64::from(low))
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(400)
    })]

    #[test]
    fn folding_is_exact_at_the_borders_of_blocks(
        (left, divisor, hashes) in (1_u32..80, 1_u32..80).prop_flat_map(|(left, divisor)| {
            let hashes = prop::collection::vec(hash(left * divisor), 0..200);
            (Just(left), Just(divisor), hashes)
        }),
        probes in 1_u32..=30,
    ) {
        let (mut filter, mut built) = (empty(left * divisor, probes), empty(left, probes));
        filter.insert_hashes(&hashes).unwrap();
        built.insert_hashes(&hashes).unwrap();
        filter = filter.folded(divisor).unwrap();
        prop_assert_eq!(&filter, &built);
        prop_assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
        // Further insertion into the folded filter is like insertion into the small one.
        filter.insert_hash(!0).unwrap();
        built.insert_hash(!0).unwrap();
        prop_assert_eq!(filter, built);
    }

    /// The block index alone, for numbers of blocks that no test can allocate.
    #[test]
    fn the_block_of_a_folded_filter_is_the_block_divided(
        (left, divisor, hash) in (1_u32..=u32::MAX)
            .prop_flat_map(|left| (Just(left), 1..=u32::MAX / left))
            .prop_flat_map(|(left, divisor)| (Just(left), Just(divisor), hash(left * divisor))),
    ) {
        let large = probe::block_index(hash, left * divisor);
        prop_assert_eq!(large / divisor, probe::block_index(hash, left));
    }

    #[test]
    fn folding_twice_is_folding_by_the_product(
        left in 1_u32..20, first in 1_u32..10, second in 1_u32..10, probes in 1_u32..=30, seed: u64,
    ) {
        let (filter, hashes) = filled(left * first * second, probes, seed);
        let fold = |divisors: &[u32]| {
            let by = |filter: BloomFilter, &divisor: &u32| filter.folded(divisor).unwrap();
            divisors.iter().fold(filter.clone(), by)
        };
        prop_assert_eq!(fold(&[first, second]), fold(&[first * second]));
        prop_assert_eq!(fold(&[second, first]), fold(&[first * second]));
        prop_assert_eq!(fold(&[1]), filter.clone());
        let folded = fold(&[second]);
        prop_assert!(hashes.iter().all(|&hash| folded.contains_hash(hash)));
    }

    /// Merging commutes with folding.
    #[test]
    fn the_union_of_folded_filters_is_the_folded_union(
        left in 1_u32..20, divisor in 1_u32..20, seeds: [u64; 2],
    ) {
        let [a, b] = seeds.map(|seed| filled(left * divisor, 6, seed).0);
        let mut union = a.clone();
        union.union_with(&b).unwrap();
        let union = union.folded(divisor).unwrap();
        let mut folded = a.folded(divisor).unwrap();
        folded.union_with(&b.folded(divisor).unwrap()).unwrap();
        prop_assert_eq!(union, folded);
    }
}

/// Memory moves from huge pages to cache lines, and every kernel looks up and inserts there.
#[test]
fn a_large_filter_is_folded_into_memory_of_its_own_size() {
    let (filter, hashes) = filled(70_000, 6, 1);
    for divisor in [2, 7, 10_000, 70_000] {
        let (copy, mut folded) = (filter.folded(divisor).unwrap(), filter.clone());
        let rate = copy.estimated_false_positive_rate();
        // By a larger divisor if the rate stays the same.
        let by = folded.shrink_to_false_positive_rate(rate).unwrap();
        assert!(by == divisor || by > divisor && rate == 1.0, "{by}");
        let blocks = folded.blocks();
        assert_eq!(blocks.len() as u32, 70_000 / by);
        let huge = cfg!(target_os = "linux") && size_of_val(blocks) >= 2 << 20;
        assert!(blocks.as_ptr().addr().is_multiple_of(if huge { 2 << 20 } else { 64 }));
        let mut hits = blocked_bloom::Bitmask::new();
        for kernel in kernels() {
            folded.view().with_kernel(kernel).contains_hashes(&hashes, &mut hits);
            assert_eq!(hits.count_misses(), 0);
        }
        assert_eq!(folded, filter.folded(by).unwrap());
    }
}

#[test]
fn borrowed_bytes_at_any_alignment_fold_into_a_filter() {
    let (filter, _) = filled(60, 6, 1);
    let mut stored = vec![0; 3];
    stored.extend(filter.to_bytes());
    let before = stored.clone();
    let folded = BloomFilter::from_bytes_any_hash(&stored[3..]).unwrap().folded(12).unwrap();
    assert_eq!(folded, filter.folded(12).unwrap());
    assert_eq!(stored, before);
}

#[test]
fn a_divisor_that_is_none_is_refused_and_changes_nothing() {
    for blocks in 1..=200 {
        let (filter, _) = filled(blocks, 3, 1);
        let before = filter.clone();
        let divisors = divisors(blocks);
        for divisor in (0..=blocks + 2).chain([1 << 31, u32::MAX]) {
            if divisors.contains(&divisor) {
                assert!(filter.folded(divisor).is_ok());
                continue;
            }
            let expected = ParamsError::NotADivisor {
                divisor,
                blocks,
                below: divisors.iter().copied().rfind(|&candidate| candidate < divisor),
                above: divisors.iter().copied().find(|&candidate| candidate > divisor),
            };
            assert_eq!(filter.folded(divisor), Err(BuildError::Params(expected)));
            assert_eq!(filter, before);
        }
    }
    let refused = |blocks, divisor| empty(blocks, 6).folded(divisor).unwrap_err().to_string();
    assert_eq!(refused(40, 0), "0 is not a divisor of 40, the number of blocks: fold by 1");
    assert_eq!(refused(40, 50), "50 is not a divisor of 40, the number of blocks: fold by 40");
    assert_eq!(refused(41, 2), "2 is not a divisor of 41, the number of blocks: fold by 1 or 41");
    assert_eq!(refused(1, 2), "2 is not a divisor of 1, the number of blocks: fold by 1");
}

#[test]
fn pass_all_and_empty_filters_stay_what_they_are() {
    let mut all = BloomFilter::pass_all(KeyHash::Xxh3 { seed: 3 }).to_filter().unwrap();
    let before = all.clone();
    for divisor in [1, 2, 7, u32::MAX] {
        assert_eq!(all.folded(divisor).unwrap(), before);
    }
    let error = all.folded(0).unwrap_err();
    assert!(matches!(error, BuildError::Params(ParamsError::NotADivisor { divisor: 0, .. })));
    assert_eq!((all.shrink_to_false_positive_rate(0.5), &all), (Ok(1), &before));
    assert_eq!((all.shrink_to_false_positive_rate(1.0), &all), (Ok(1), &before));

    let mut nothing = empty(40, 6);
    nothing = nothing.folded(4).unwrap();
    assert_eq!(nothing, empty(10, 6));
    assert_eq!(nothing.shrink_to_false_positive_rate(1e-300), Ok(10));
    assert_eq!(nothing, empty(1, 6));
}

/// The view of a filter for prefixes that it does not hold answers "maybe". Finds a fold that makes
/// it answer for the keys.
#[test]
fn a_filter_that_cannot_answer_cannot_after_the_fold() {
    let (filter, rule) = (filled(40, 6, 3).0, PrefixExtractor::fixed(4));
    let (view, folded) = (filter.prefixes(&rule), filter.prefixes(&rule).folded(2).unwrap());
    for hash in Random(1).hashes(100) {
        assert!(view.contains_hash(hash) && folded.contains_hash(hash));
    }
}

/// Compares with all divisors, at rates that are reached exactly and just not. Catches a search
/// that stops early, a search that assumes a rate monotone in the divisor, and an early rejection
/// with wrong rounding.
#[test]
fn shrinking_picks_the_largest_divisor_that_keeps_the_rate() {
    let mut gained = 0;
    for (blocks, probes) in [(1, 6), (7, 6), (36, 1), (60, 6), (97, 9), (240, 6), (720, 30)] {
        for bits_per_key in [5, 20, 50, 300] {
            let keys = blocks as usize * 512 / bits_per_key;
            let mut random = Random(keys as u64);
            let even = random.hashes(keys);
            // All in the first third of the blocks: sizes whose groups cross its end have other
            // rates than their neighbours.
            let skewed = even.iter().map(|hash| (hash >> 32 << 32) | u64::from(*hash as u32 / 3));
            for hashes in [skewed.collect(), even] {
                let mut filter = empty(blocks, probes);
                filter.insert_hashes(&hashes).unwrap();
                let rate_of = |divisor| {
                    let folded: BloomFilter = filter.folded(divisor).unwrap();
                    folded.estimated_false_positive_rate()
                };
                let folds: Vec<(u32, f64)> = divisors(blocks)
                    .into_iter()
                    .map(|divisor| (divisor, rate_of(divisor)))
                    .collect();
                let reached = folds.iter().map(|(_, rate)| *rate);
                let rates: Vec<f64> = reached
                    .flat_map(|rate| [rate.next_down(), rate, rate.next_up()])
                    .chain([1e-300, 1e-4, 0.01, 0.3, 0.999, 1.0])
                    .filter(|rate| *rate > 0.0 && *rate <= 1.0)
                    .collect();
                for rate in rates {
                    let kept = folds.iter().filter(|fold| fold.1 <= rate).map(|fold| fold.0);
                    let expected = kept.max().unwrap_or(1);
                    let mut shrunk = filter.clone();
                    assert_eq!(shrunk.shrink_to_false_positive_rate(rate), Ok(expected));
                    assert_eq!(shrunk, filter.folded(expected).unwrap());
                    gained += u32::from(expected > 1);
                }
            }
        }
    }
    assert!(gained > 500, "{gained}");
}

/// A number of insertions that suggests a full filter must not keep it large.
#[test]
fn shrinking_looks_at_the_bits_not_at_the_count() {
    let mut filter = empty(640, 6);
    let hashes = Random(3).hashes(640 * 51 / 16);
    (0..16).for_each(|_| filter.insert_hashes(&hashes).unwrap());
    assert!(filter.params().false_positive_rate() > 0.009);
    assert_eq!(filter.shrink_to_false_positive_rate(0.011), Ok(16));
    assert_eq!(filter.keys_inserted(), 640 * 51 / 16 * 16);
}

#[test]
fn rates_out_of_range_are_refused_and_change_nothing() {
    let (mut filter, _) = filled(12, 6, 1);
    let before = filter.clone();
    for rate in [0.0, -0.0, -1.0, 1.0_f64.next_up(), 2.0, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(
            filter.shrink_to_false_positive_rate(rate),
            Err(ParamsError::RateOutOfRange { rate })
        );
    }
    let nan = filter.shrink_to_false_positive_rate(f64::NAN);
    assert!(matches!(nan, Err(ParamsError::RateOutOfRange { rate }) if rate.is_nan()));
    assert_eq!(filter, before);
}

#[test]
fn a_foldable_builder_gives_the_foldable_size() {
    for keys in [0, 100, 30_000] {
        let options = FilterOptions::new(Sizing::BitsPerKey(10.0)).foldable().with_probes(5);
        let mut builder = options.builder();
        Random(1).hashes(keys).into_iter().for_each(|hash| builder.insert_hash(hash).unwrap());
        let expected = Sizing::BitsPerKey(10.0).foldable_params(keys as u64).unwrap();
        let params = builder.params().unwrap();
        assert_eq!((params.blocks(), params.probes()), (expected.blocks(), 5));
        assert_eq!(options.params(keys as u64).unwrap(), params);
        assert_eq!(builder.finish().unwrap().params(), params);
    }
}
