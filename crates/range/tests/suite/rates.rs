//! False-positive rates, against the bound that the package promises: 1.2 x 2^0.95 x L / 2^(B - 2)
//! for ranges of L units and B bits per key, for all keys and ranges.

use std::ops::Bound::Included;

use crate::common::Random;
use crate::sets::{self, built};

/// The bound for a filter of these bits per key, with its header and padding.
fn bound(bits_per_key: f64, units: u64) -> f64 {
    1.2 * 0.95_f64.exp2() * units as f64 / (bits_per_key - 2.0).exp2()
}

/// Returns empty ranges that were looked up, and those that were answered "maybe".
fn measure(keys: &[u64], bits: f64, units: u64, is_near: bool, count: u64, seed: u64) -> [u64; 2] {
    let filter = built(bits, 0, keys);
    let mut random = Random(seed);
    let [mut empty, mut maybe] = [0; 2];
    for _ in 0..count {
        let lower = match is_near {
            true => {
                keys[random.next() as usize % keys.len()].saturating_add(1 + random.next() % 64)
            }
            false => random.next(),
        };
        let Some(upper) = lower.checked_add(units - 1) else { continue };
        let at = keys.partition_point(|&key| key < lower);
        if keys.get(at).is_some_and(|&key| key <= upper) {
            continue;
        }
        empty += 1;
        maybe += u64::from(filter.contains_range(Included(lower), Included(upper)));
    }
    [empty, maybe]
}

/// Most "maybe" answers that chance explains, with a probability of about 10^-9 for more.
fn limit(rate: f64, empty: u64) -> f64 {
    let expected = rate * empty as f64;
    expected + 6.0 * expected.sqrt() + 6.0
}

type Set = fn(u64, u64) -> Vec<u64>;

/// The last number says how many answers near keys depend on one chance: a run of keys in a block
/// overlaps that of another block as a whole.
const SETS: [(&str, Set, f64); 4] = [
    ("uniform", sets::uniform, 1.0),
    ("clustered", sets::clustered, 60.0),
    ("id | time", sets::series, 1.0),
    ("each a block", |seed, count| (0..count).map(|i| (seed + i) << 40).collect(), 1.0),
];

#[test]
fn the_rate_is_within_the_bound() {
    for (name, set, _) in SETS {
        let keys = set(7, 60_000);
        for bits in [8.0, 10.3, 12.0, 13.7, 16.0, 18.33, 20.0] {
            let stored = built(bits, 0, &keys);
            let actual = 8.0 * stored.memory_bytes() as f64 / keys.len() as f64;
            assert!(actual < bits + 0.05, "{name}: {actual} bits per key for {bits}");
            for units in [1, 16, 1_024] {
                let bound = bound(bits, units);
                assert!(
                    stored.max_false_positive_rate(units) <= bound.min(1.0),
                    "{name} {bits} {units}"
                );
                for is_near in [false, true] {
                    let [empty, maybe] = measure(&keys, bits, units, is_near, 100_000, 3);
                    let most = limit(bound, empty);
                    assert!(
                        maybe as f64 <= most,
                        "{name} {bits} {units} {is_near}: {maybe} of {empty}"
                    );
                }
            }
        }
    }
}

/// 300 sets of keys of each kind. The hash has a fixed seed, so that an unlucky kind of keys would
/// be unlucky in every build.
#[test]
#[expect(clippy::print_stdout, reason = "figures to be quoted")]
fn the_rate_is_within_the_bound_for_300_seeds() {
    for (name, set, together) in SETS {
        let [mut empty, mut maybe, mut worst] = [0, 0, 0];
        for seed in 0..300 {
            let keys = set(1_000 + seed, 5_000);
            let counts = measure(&keys, 14.0, 16, true, 20_000, seed);
            let most = together * limit(bound(14.0, 16) / together, counts[0]);
            assert!(counts[1] as f64 <= most, "{name}, seed {seed}: {counts:?}");
            (empty, maybe, worst) = (empty + counts[0], maybe + counts[1], worst.max(counts[1]));
        }
        assert!(empty > 1_000_000, "{name}: only {empty} empty ranges");
        // All seeds together are within the bound without an allowance.
        let rate = maybe as f64 / empty as f64;
        println!("{name}: {:.2} of the bound, at most {worst} per seed", rate / bound(14.0, 16));
        assert!(rate <= bound(14.0, 16), "{name}: {maybe} of {empty}");
        assert!(worst > 0 && maybe > 0, "{name}: the rate is too good");
    }
}
