//! Every choice of blocks and probes against the search that evaluates the formula for every candidate: `sizing_reference`, word for
//! word what `src/params.rs` once was.
//!
//! `SIZING_GRID=full cargo test --release --test sizing_grid` takes a finer grid, for some minutes.

mod sizing_reference;

use std::collections::BTreeSet;

use blocked_bloom::{Params, ParamsError, Sizing};
use sizing_reference as reference;

fn full() -> bool {
    std::env::var("SIZING_GRID").is_ok_and(|grid| grid == "full")
}

/// Compares one sizing, errors and what is in them included; gives what was found.
#[track_caller]
fn same(sizing: Sizing, keys: u64, foldable: bool) -> Result<Params, ParamsError> {
    let found = if foldable { sizing.foldable_params(keys) } else { sizing.params(keys) };
    let shape = found.map(|params| (params.blocks(), params.probes()));
    assert_eq!(
        shape,
        reference::params(sizing, keys, foldable),
        "{sizing}, {keys} keys, foldable: {foldable}"
    );
    found
}

/// The probes of so many blocks, by the crate.
fn probes(keys: u64, blocks: u32) -> u32 {
    let params = Sizing::MaxBytes(64 + 64 * u64::from(blocks)).params(keys).unwrap();
    assert_eq!(params.blocks(), blocks, "{keys} keys");
    params.probes()
}

/// The fewest keys that may have so many blocks: 100 bits each.
fn fewest_keys(blocks: u32) -> u64 {
    (u64::from(blocks - 1) * 512).div_euclid(100) + 1
}

/// From `first` to `last`, as many as that, in equal ratios; each once.
fn ratios(first: f64, last: f64, count: u32) -> impl Iterator<Item = f64> {
    (0..=count).map(move |at| first * (last / first).powf(f64::from(at) / f64::from(count)))
}

fn whole_ratios(first: u64, last: u64, count: u32) -> BTreeSet<u64> {
    ratios(first as f64, last as f64, count).map(|number| number as u64).collect()
}

/// The rates that are usual, and those at which the last digit of a block might matter.
const USUAL_RATES: [f64; 14] =
    [0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 3e-9];

/// All keys of few blocks; of many the keys on both sides of each change, between which the probes only fall. Catches a threshold that
/// is one key off, for any number of blocks that is tried.
#[test]
fn probes_change_at_the_same_keys() {
    for blocks in 1..if full() { 200 } else { 24 } {
        for keys in fewest_keys(blocks)..=u64::from(blocks) * 245 {
            let expected = reference::best_probes(keys, blocks).0;
            assert_eq!(probes(keys, blocks), expected, "{keys} keys, {blocks} blocks");
        }
    }
    let dense = if full() { 20_000 } else { 1_000 };
    let spread = whole_ratios(dense, u32::MAX.into(), if full() { 20_000 } else { 600 });
    for blocks in (24..dense).chain(spread).map(|blocks| blocks as u32) {
        let mut low = fewest_keys(blocks);
        for fewer in (1..=probes(low, blocks)).rev() {
            assert_eq!(probes(low, blocks), fewer);
            let first = reference::best_probes(low, blocks).0;
            assert_eq!(first, fewer, "{low} keys, {blocks} blocks");
            if fewer == 1 {
                break;
            }
            let mut high = u64::from(blocks) * 245;
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if probes(middle, blocks) == fewer { low = middle } else { high = middle }
            }
            let last = reference::best_probes(low, blocks).0;
            assert_eq!(last, fewer, "{low} keys, {blocks} blocks");
            low = high;
        }
        for keys in [250, 1_000, 100_000].map(|mean| mean * u64::from(blocks)) {
            assert_eq!(probes(keys, blocks), 1, "{keys} keys, {blocks} blocks");
        }
    }
    assert_eq!((probes(u64::MAX, 1), probes(u64::MAX, u32::MAX)), (1, 1));
}

/// Catches a wrong number of blocks or probes by bits, a rate that is not the formula's, and rounding to a foldable size after the
/// probes are chosen.
#[test]
fn bits_per_key() {
    let usual = [0.1, 0.5, 1.0, 2.5, 5.0, 8.0, 10.0, 12.0, 16.0, 20.0, 32.0, 64.0, 99.9, 100.0];
    let every_half = (1..=200).map(|halves| f64::from(halves) / 2.0);
    for keys in 0..=5_000 {
        for bits in usual {
            _ = same(Sizing::BitsPerKey(bits), keys, false);
        }
        if full() {
            for bits in every_half.clone() {
                _ = same(Sizing::BitsPerKey(bits), keys, false);
            }
        }
    }
    let (keys, steps) = if full() { (1_000, 1_000) } else { (60, 250) };
    for keys in whole_ratios(1, 1_000_000_000_000, keys) {
        let fine = (1..=steps).map(|step| f64::from(step) * 100.0 / f64::from(steps));
        for bits in usual.into_iter().chain(every_half.clone()).chain(fine) {
            let Ok(params) = same(Sizing::BitsPerKey(bits), keys, false) else { continue };
            if bits.fract() == 0.5 {
                let rate = reference::rate(keys, params.blocks(), params.probes());
                assert_eq!(params.false_positive_rate(), rate, "{params}");
                _ = same(Sizing::BitsPerKey(bits), keys, true);
            }
        }
    }
    for bits in [-1.0, 100.5, f64::NAN, f64::INFINITY] {
        let error = Sizing::BitsPerKey(bits).params(1_000).unwrap_err();
        assert!(matches!(error, ParamsError::BitsPerKeyOutOfRange { .. }), "{error}");
    }
}

/// The answer by its definition: `blocks` are enough, one less is not. Much faster than the search it replaces.
#[track_caller]
fn fewest(rate: f64, keys: u64) {
    let params = Sizing::FalsePositiveRate(rate).params(keys).unwrap();
    let (probes, found) = reference::best_probes(keys, params.blocks());
    assert_eq!(params.probes(), probes, "{keys} keys, {rate}");
    assert!(found <= rate, "{params} for {rate}");
    if params.blocks() > 1 {
        let (_, found) = reference::best_probes(keys, params.blocks() - 1);
        assert!(found > rate, "{params} for {rate}");
    }
}

/// Catches a search that stops one block off, an error where there is a size or the reverse, and another `lowest`.
#[test]
fn rates() {
    for keys in 0..=5_000 {
        for (at, rate) in USUAL_RATES.into_iter().enumerate() {
            if full() || (keys + at as u64).is_multiple_of(3) {
                _ = same(Sizing::FalsePositiveRate(rate), keys, false);
            }
        }
    }
    let (keys, steps) = if full() { (300, 1_000) } else { (25, 50) };
    for (at, keys) in whole_ratios(1, 1_000_000_000_000, keys).into_iter().enumerate() {
        for (step, rate) in ratios(1.0, 1e-12, steps).chain(USUAL_RATES).enumerate() {
            if full() || (at + step).is_multiple_of(2) {
                _ = same(Sizing::FalsePositiveRate(rate), keys, step % 7 == 0);
            }
        }
    }
    // Nearly no filter: more than a thousand keys per block.
    for close in ratios(0.5, 1e-5, if full() { 300 } else { 8 }) {
        for keys in whole_ratios(1, 1_000_000_000_000, if full() { 100 } else { 8 }) {
            _ = same(Sizing::FalsePositiveRate(1.0 - close), keys, false);
        }
    }
    let (keys, steps) = if full() { (1_000, 3_000) } else { (120, 200) };
    for keys in whole_ratios(1, 20_000_000_000, keys) {
        for rate in ratios(0.999, 2e-9, steps) {
            fewest(rate, keys);
        }
    }
}

/// Rates just above and below those that a number of blocks has: where the answer changes. For few blocks every such rate there is.
#[test]
fn rates_of_whole_blocks() {
    for keys in 1..=if full() { 6_000 } else { 700 } {
        let mut before = 1.0;
        let most = Sizing::BitsPerKey(100.0).params(keys).unwrap().blocks().min(24);
        for blocks in 1..=most {
            let (_, rate) = reference::best_probes(keys, blocks);
            assert!(rate < before, "{keys} keys, {blocks} blocks: {rate} after {before}");
            for target in [rate, rate * (1.0 + 1e-12), rate * (1.0 + 1e-7), before * (1.0 - 1e-12)]
            {
                if (rate..before).contains(&target) && target < 1.0 {
                    let found = Sizing::FalsePositiveRate(target).params(keys).unwrap();
                    assert_eq!(found.blocks(), blocks, "{keys} keys, {target:e}");
                }
            }
            before = rate;
        }
    }
    // Just under the rate of a filter of many blocks, and at it: nothing but the formula itself can tell these apart.
    for keys in whole_ratios(1_000, 1_000_000_000_000, if full() { 300 } else { 40 }) {
        for bits in [0.1, 0.3, 1.0, 2.0, 4.0, 7.0, 10.0, 13.7, 16.0, 25.0, 40.0, 90.0] {
            let Ok(params) = Sizing::BitsPerKey(bits).params(keys) else { continue };
            let rate = params.false_positive_rate();
            // From some thousand keys per block on, or some billion blocks, rounding decides.
            if params.blocks() < 100_000_000 && bits > 0.1 {
                for (target, more) in [(rate, 0), (rate.next_down(), 1), (rate.next_up(), 0)] {
                    let found = Sizing::FalsePositiveRate(target).params(keys).unwrap();
                    assert_eq!(
                        found.blocks(),
                        params.blocks() + more,
                        "{keys} keys, {bits}, {target:e}"
                    );
                }
            }
        }
    }
}

#[test]
fn bytes() {
    for keys in [0, 1, 7, 51, 400, 5_000, 123_456, 10_000_000, 1 << 33, 1 << 40, u64::MAX] {
        for bytes in whole_ratios(1, 1 << 40, if full() { 4_000 } else { 300 }) {
            _ = same(Sizing::MaxBytes(bytes), keys, false);
            _ = same(Sizing::MaxBytes(bytes), keys, true);
        }
    }
}

#[test]
fn clamped_sizes_are_legal_and_legal_ones_stay() {
    let bits = |bits: f64| match Sizing::BitsPerKey(bits).clamped() {
        Sizing::BitsPerKey(bits) => bits,
        other => panic!("{other}"),
    };
    assert_eq!([-1.0, f64::NEG_INFINITY, f64::NAN, -0.0].map(bits), [0.0; 4]);
    assert_eq!([100.1, 1e300, f64::INFINITY].map(bits), [100.0; 3]);
    assert_eq!([0.0, 0.1, 10.0, 100.0].map(bits), [0.0, 0.1, 10.0, 100.0]);
    let rate = |rate: f64| match Sizing::FalsePositiveRate(rate).clamped() {
        Sizing::FalsePositiveRate(rate) => rate,
        other => panic!("{other}"),
    };
    assert_eq!([1.0, 1.5, f64::INFINITY, f64::NAN].map(rate), [1.0; 4]);
    assert_eq!([0.0, -0.0, -1.0, f64::MIN_POSITIVE, f64::NEG_INFINITY].map(rate), [2e-9; 5]);
    assert_eq!([2e-9, 0.01, 0.999].map(rate), [2e-9, 0.01, 0.999]);
    let clamped = [0, 127, 128, u64::MAX].map(|bytes| Sizing::MaxBytes(bytes).clamped());
    assert_eq!(clamped, [128, 128, 128, u64::MAX].map(Sizing::MaxBytes));
    // The lowest rate is in reach for every number of keys that 2^32 - 1 blocks can have at 100 bits per key.
    for keys in (0..5_000).chain(whole_ratios(5_000, 21_000_000_000, 2_000)) {
        for value in [f64::NAN, f64::INFINITY, 0.0, -3.0, 1e-30, 1.5, 1e9] {
            Sizing::BitsPerKey(value).clamped().params(keys).unwrap();
            Sizing::FalsePositiveRate(value).clamped().params(keys).unwrap();
        }
    }
}
