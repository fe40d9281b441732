//! Compares every choice of blocks and probes with its definition, by the predicted rate of every
//! candidate, through the public interface. A list of choices detects changes of the formula;
//! `suite/params.rs` compares the formula with exact occupancy.

use std::collections::BTreeSet;

use blocked_bloom::Sizing::{BitsPerKey, FalsePositiveRate, MaxBytes};
use blocked_bloom::{Params, ParamsError, Sizing};

/// This many blocks for this many keys, or the number of blocks for 100 bits per key if that is
/// smaller.
fn params_within(keys: u64, blocks: u32) -> Params {
    MaxBytes(64 + 64 * u64::from(blocks)).params(keys).unwrap()
}

fn exactly(keys: u64, blocks: u32) -> Params {
    let params = params_within(keys, blocks);
    assert_eq!(params.blocks(), blocks, "{keys} keys");
    params
}

/// The definition: the smallest number of probes whose rate is within 1 % of the best, and that
/// rate. With many blocks, the rate has one minimum.
fn best_probes(params: Params) -> (u32, f64) {
    let mut rates = Vec::new();
    let mut best = f64::INFINITY;
    for probes in 1..=30 {
        let rate = params.with_probes(probes).unwrap().false_positive_rate();
        rates.push(rate);
        best = best.min(rate);
        if params.blocks() >= 24 && rate > 1.2 * best {
            break;
        }
    }
    let chosen = rates.iter().position(|&rate| rate <= 1.01 * best).unwrap();
    (chosen as u32 + 1, rates[chosen])
}

#[track_caller]
fn check_probes(params: Params) {
    assert_eq!(params.probes(), best_probes(params).0, "{params}");
}

/// Compares one sizing, including errors and their values, and the size rounded for folding.
#[track_caller]
fn check(sizing: Sizing, keys: u64) -> Option<Params> {
    let most = params_within(keys, u32::MAX);
    let name = format!("{sizing}, {keys} keys");
    let params = match (sizing.params(keys), sizing) {
        (Ok(params), _) => params,
        (Err(ParamsError::RateUnreachable { rate, lowest, needs_partition }), _) => {
            assert_eq!(lowest, best_probes(most).1, "{name}");
            assert!(lowest > rate, "{name}");
            assert_eq!(needs_partition, most.blocks() == u32::MAX, "{name}");
            return None;
        }
        (Err(ParamsError::BlocksOutOfRange { blocks }), BitsPerKey(bits)) => {
            assert_eq!(blocks, (keys as f64 * bits / 512.0).ceil() as u64, "{name}");
            assert!(blocks > u32::MAX.into(), "{name}");
            return None;
        }
        (Err(ParamsError::TooFewBytes { bytes: ..128 }), _) => return None,
        (Err(error), _) => panic!("{name}: {error}"),
    };
    let blocks = params.blocks();
    if keys == 0 {
        assert_eq!((blocks, params.probes()), (1, 7), "{name}");
        return Some(params);
    }
    match sizing {
        BitsPerKey(bits) => {
            assert_eq!(f64::from(blocks), (keys as f64 * bits / 512.0).ceil(), "{name}");
        }
        MaxBytes(bytes) => {
            assert_eq!(u64::from(blocks), (bytes / 64 - 1).min(most.blocks().into()), "{name}");
        }
        FalsePositiveRate(rate) => {
            assert!(best_probes(params).1 <= rate, "{name}: {params}");
            let smaller = (blocks > 1).then(|| best_probes(exactly(keys, blocks - 1)).1);
            assert!(smaller.is_none_or(|smaller| smaller > rate), "{name}: {params}");
        }
        _ => panic!("{name}"),
    }
    check_probes(params);
    let foldable = sizing.foldable_params(keys).unwrap();
    let step = 1 << (blocks / 64).max(1).ilog2();
    let rounded = match sizing {
        MaxBytes(_) => blocks / step * step,
        _ => blocks.checked_next_multiple_of(step).unwrap_or(blocks),
    };
    assert_eq!(foldable.blocks(), rounded, "{name}");
    if rounded == blocks {
        assert_eq!(foldable, params, "{name}");
    } else {
        check_probes(foldable);
    }
    Some(params)
}

/// Returns up to this many numbers from `first` to `last` with equal ratios, without duplicates.
fn ratios(first: f64, last: f64, count: u32) -> impl Iterator<Item = f64> {
    (0..=count).map(move |at| first * (last / first).powf(f64::from(at) / f64::from(count)))
}

fn whole_ratios(first: u64, last: u64, count: u32) -> BTreeSet<u64> {
    ratios(first as f64, last as f64, count).map(|number| number as u64).collect()
}

/// Sizes of the first release, found by trying every candidate.
#[test]
fn sizes_stay() {
    for (sizing, keys, blocks, probes) in [
        (BitsPerKey(10.0), 1, 1, 7),
        (BitsPerKey(10.0), 51, 1, 7),
        (BitsPerKey(9.9), 3_276, 64, 6),
        (BitsPerKey(10.0), 1_000_000, 19_532, 6),
        (BitsPerKey(16.0), 100, 4, 12),
        (BitsPerKey(16.0), 123_456_789, 3_858_025, 9),
        (BitsPerKey(2.5), 77_777, 380, 2),
        (BitsPerKey(0.1), 1_000_000, 196, 1),
        (BitsPerKey(24.5), 40_000, 1_915, 12),
        (BitsPerKey(40.0), 40, 4, 20),
        (BitsPerKey(64.0), 500, 63, 20),
        (BitsPerKey(100.0), 19, 4, 18),
        (BitsPerKey(100.0), 40, 8, 20),
        (BitsPerKey(100.0), 21_000_000_000, 4_101_562_500, 21),
        (BitsPerKey(1.0), 1_000_000_000_000, 1_953_125_000, 1),
        (FalsePositiveRate(0.9), 1_000_000, 849, 1),
        (FalsePositiveRate(0.5), 400, 2, 2),
        (FalsePositiveRate(0.1), 10_000_000_000, 94_448_772, 3),
        (FalsePositiveRate(0.05), 3_000, 38, 4),
        (FalsePositiveRate(0.01), 3_276, 64, 6),
        (FalsePositiveRate(0.01), 1_000_000, 19_371, 6),
        (FalsePositiveRate(0.01), 100_000_000, 1_937_103, 6),
        (FalsePositiveRate(0.001), 51, 2, 12),
        (FalsePositiveRate(0.001), 7_654_321, 232_399, 9),
        (FalsePositiveRate(0.0001), 1_000_000, 43_026, 12),
        (FalsePositiveRate(1e-6), 100, 8, 17),
        (FalsePositiveRate(1e-6), 50_000_000, 3_792_061, 16),
        (FalsePositiveRate(1e-8), 40, 5, 22),
        (FalsePositiveRate(1e-8), 1_000_000, 126_520, 20),
        (FalsePositiveRate(2e-9), 5_000_000_000, 826_432_969, 21),
        (FalsePositiveRate(0.9999), 1_000_000_000, 212_310, 1),
        (MaxBytes(4_096), 3_000, 63, 7),
        (MaxBytes(1_048_576), 1_000_000, 16_383, 5),
        (MaxBytes(1_073_741_824), 10_000_000_000, 16_777_215, 1),
    ] {
        let found = sizing.params(keys).unwrap();
        assert_eq!((found.blocks(), found.probes()), (blocks, probes), "{sizing}, {keys} keys");
    }
}

/// All keys for few blocks. For many blocks, the keys on both sides of each change, between which
/// the number of probes only falls. Catches a threshold that is off by one key, for any number of
/// blocks.
#[test]
fn probes_change_at_the_same_keys() {
    // The smallest number of keys that may have this many blocks: 100 bits each.
    let fewest_keys = |blocks: u32| u64::from(blocks - 1) * 512 / 100 + 1;
    for blocks in 1..24 {
        for keys in fewest_keys(blocks)..=u64::from(blocks) * 245 {
            check_probes(exactly(keys, blocks));
        }
    }
    for blocks in (24..300).chain(whole_ratios(300, u32::MAX.into(), 200)) {
        let blocks = blocks as u32;
        let mut low = fewest_keys(blocks);
        for fewer in (2..=exactly(low, blocks).probes()).rev() {
            let mut high = u64::from(blocks) * 245;
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if exactly(middle, blocks).probes() >= fewer { low = middle } else { high = middle }
            }
            check_probes(exactly(low, blocks));
            check_probes(exactly(high, blocks));
            low = high;
        }
        for mean in [5.2, 250.0, 100_000.0] {
            check_probes(exactly((f64::from(blocks) * mean) as u64, blocks));
        }
    }
    assert_eq!([1, u32::MAX].map(|blocks| exactly(u64::MAX, blocks).probes()), [1, 1]);
}

/// Catches a wrong number of blocks or probes by bits, and rounding to a foldable size after the
/// choice of the probes.
#[test]
fn bits_per_key() {
    for keys in 0..=1_000 {
        for bits in [0.1, 1.0, 2.5, 5.0, 8.0, 10.0, 12.0, 16.0, 20.0, 32.0, 64.0, 99.9, 100.0] {
            check(BitsPerKey(bits), keys);
        }
    }
    for keys in whole_ratios(1, 1_000_000_000_000, 50) {
        for step in 1..=200 {
            check(BitsPerKey(f64::from(step) / 2.0), keys);
        }
    }
    for bits in [-1.0, 100.5, f64::NAN, f64::INFINITY] {
        let error = BitsPerKey(bits).params(1_000).unwrap_err();
        assert!(matches!(error, ParamsError::BitsPerKeyOutOfRange { .. }), "{error}");
    }
}

/// Catches a search that stops one block too early or late, an error for a valid size, a size
/// instead of an error, and a wrong `lowest`.
#[test]
fn rates() {
    for keys in 0..=3_000 {
        for rate in [0.5, 0.1, 0.05, 0.01, 1e-3, 1e-4, 1e-6, 1e-8, 3e-9]
            .into_iter()
            .skip(keys % 3)
            .step_by(3)
        {
            check(FalsePositiveRate(rate), keys as u64);
        }
    }
    for keys in whole_ratios(1, 1_000_000_000_000, 100) {
        for rate in ratios(0.99, 1e-12, 120) {
            check(FalsePositiveRate(rate), keys);
        }
    }
    // Rates near 1: a thousand or more keys per block. Above 6,400 keys per block, equal hashes
    // matter.
    for keys in whole_ratios(1, 1_000_000_000_000, 8) {
        for close in ratios(0.5, 1e-5, 8).chain([4e-6, 3e-6, 1e-6]) {
            check(FalsePositiveRate(1.0 - close), keys);
        }
    }
}

/// Rates just above and below those of a number of blocks, where the answer changes. For few
/// blocks, every such rate.
#[test]
fn rates_of_whole_blocks() {
    for keys in 1..=700 {
        let mut before = 1.0;
        for blocks in 1..=params_within(keys, 24).blocks() {
            let (_, rate) = best_probes(exactly(keys, blocks));
            assert!(rate < before, "{keys} keys, {blocks} blocks: {rate} after {before}");
            for target in [rate, rate * (1.0 + 1e-12), rate * (1.0 + 1e-7), before * (1.0 - 1e-12)]
            {
                if (rate..before).contains(&target) && target < 1.0 {
                    let found = FalsePositiveRate(target).params(keys).unwrap();
                    assert_eq!(found.blocks(), blocks, "{keys} keys, {target:e}");
                }
            }
            before = rate;
        }
    }
    // The rate of a filter with many blocks, and a slightly smaller one: only the formula itself
    // can distinguish them.
    for keys in whole_ratios(1_000, 1_000_000_000_000, 40) {
        for bits in [0.3, 1.0, 2.0, 4.0, 7.0, 10.0, 13.7, 16.0, 25.0, 40.0, 90.0] {
            let Ok(params) = BitsPerKey(bits).params(keys) else { continue };
            let rate = params.false_positive_rate();
            // Above some number of billion blocks, rounding errors decide.
            if params.blocks() < 100_000_000 {
                for (target, more) in [(rate, 0), (rate.next_down(), 1), (rate.next_up(), 0)] {
                    let found = FalsePositiveRate(target).params(keys).unwrap().blocks();
                    assert_eq!(found, params.blocks() + more, "{keys} keys, {bits}, {target:e}");
                }
            }
        }
    }
}

#[test]
fn bytes() {
    for keys in [0, 1, 7, 51, 400, 5_000, 123_456, 10_000_000, 1 << 33, 1 << 40, u64::MAX] {
        for bytes in whole_ratios(1, 1 << 40, 300) {
            check(MaxBytes(bytes), keys);
        }
    }
}

/// The bounds in docs/parameters.md, on which engines rely that pass unchecked numbers.
#[test]
fn sizes_within_the_documented_bounds_are_legal_for_every_number_of_keys() {
    for keys in (0..5_000).chain(whole_ratios(5_000, 21_000_000_000, 2_000)) {
        for sizing in [BitsPerKey(0.0), BitsPerKey(100.0), FalsePositiveRate(2e-9)] {
            sizing.params(keys).unwrap();
        }
    }
    assert!(MaxBytes(127).params(1).is_err() && MaxBytes(128).params(1).is_ok());
}
