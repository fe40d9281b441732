//! How full a filter gets, what churn does to it, and how many absent keys pass: small versions of
//! the figures in docs/removable.md. Large ones: `cargo run --release -p blocked-bloom-removable
//! --example churn`.

use blocked_bloom::{Bitmask, Filter};
use blocked_bloom_removable::{RemovableError, RemovableOptions};

use crate::common::Random;

/// Inserts keys until one is rejected.
#[test]
fn the_first_refusal_is_above_nine_tenths() {
    for seed in 0..5 {
        let mut filter = RemovableOptions::new(200_000).empty_filter().unwrap();
        let hashes = Random(seed).hashes(filter.capacity() as usize);
        let Err(RemovableError::Full { inserted, taken, capacity, .. }) =
            filter.insert_hashes(&hashes)
        else {
            panic!("more keys than lanes were added");
        };
        let load = taken as f64 / capacity as f64;
        assert_eq!(inserted as u64, taken);
        assert!((0.905..0.97).contains(&load), "refused at {load}");
    }
}

/// A filter holds as many keys as it was sized for, also if it is small.
#[test]
fn all_keys_of_a_small_filter_fit_nearly_always() {
    for keys in [1, 28, 56, 84, 112, 280, 896, 1_000] {
        let refused = (0..3_000).filter(|seed| {
            let mut filter = RemovableOptions::new(keys).empty_filter().unwrap();
            filter.insert_hashes(&Random(1_000_000 * keys + seed).hashes(keys as usize)).is_err()
        });
        let refused = refused.count();
        assert_eq!(refused, 0, "of 3000 filters of {keys} keys");
    }
}

/// With its full number of keys, churn causes no rejection and loses no key.
#[test]
fn churn_at_full_load_refuses_nothing_and_loses_nothing() {
    let keys = 28_000;
    let mut filter = RemovableOptions::new(keys).empty_filter().unwrap();
    let (mut random, mut live) = (Random(7), Random(1).hashes(keys as usize));
    filter.insert_hashes(&live).unwrap();
    for step in 0..400_000_u64 {
        let i = random.next() as usize % live.len();
        assert!(filter.remove_hash(live[i]), "step {step}");
        live[i] = random.next();
        filter.insert_hash(live[i]).unwrap();
        if step % 100_000 == 0 {
            let mut hits = Bitmask::new();
            filter.contains_hashes(&live, &mut hits);
            assert_eq!(hits.count_misses(), 0);
        }
    }
    assert!(live.iter().all(|&hash| filter.contains_hash(hash)));
    assert_eq!(filter.keys_inserted(), keys);
}

#[test]
fn the_estimated_rate_is_the_measured_one() {
    let mut hits = Bitmask::new();
    for (keys, expected) in [(100_000, 0.000_854), (50_000, 0.000_427), (0, 0.0)] {
        let mut filter = RemovableOptions::new(100_000).empty_filter().unwrap();
        filter.insert_hashes(&Random(1).hashes(keys)).unwrap();
        filter.contains_hashes(&Random(77).hashes(8_000_000), &mut hits);
        let measured = hits.count_hits() as f64 / 8e6;
        let estimated = filter.expected_false_positive_rate();
        // Four standard deviations of the count.
        let noise = 4.0 * (estimated / 8e6).sqrt();
        assert!(
            (measured - estimated).abs() <= noise,
            "{measured} measured, {estimated} estimated"
        );
        assert!((estimated - expected).abs() < 0.000_001, "{estimated}");
    }
}
