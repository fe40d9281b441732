//! The false-positive rate of a real filter is the predicted one.

use crate::common::{Random, kernels};
use blocked_bloom::{Bitmask, FilterOptions, Sizing};

/// Several filters, so that the luck of a single one does not decide.
const FILTERS: u64 = 8;
/// Number of absent keys looked up in each filter.
const QUERIES: usize = 1 << 20;

#[expect(clippy::print_stdout, reason = "the figures of docs/parameters.md")]
#[test]
fn measured_rates_are_within_three_standard_errors_of_the_prediction() {
    kernels();
    for bits in [5.0, 8.0, 10.0, 12.0, 16.0, 20.0] {
        let (mut false_positives, mut predicted) = (0, 0.0);
        for seed in 0..FILTERS {
            let mut builder = FilterOptions::new(Sizing::BitsPerKey(bits)).builder();
            for hash in Random(seed).hashes(100_000) {
                builder.insert_hash(hash).unwrap();
            }
            let filter = builder.finish().unwrap();
            predicted = filter.params().false_positive_rate();
            let absent = Random(seed + 1_000).hashes(QUERIES);
            let mut hits = Bitmask::new();
            filter.contains_hashes(&absent, &mut hits);
            false_positives += hits.count_hits();
        }
        let queries = (FILTERS * QUERIES as u64) as f64;
        let measured = false_positives as f64 / queries;
        let standard_error = (predicted * (1.0 - predicted) / queries).sqrt();
        let distance = (measured - predicted) / standard_error;
        println!(
            "{bits:4} bits/key: measured {:.4} %, predicted {:.4} %, {distance:+.2} standard errors",
            measured * 100.0,
            predicted * 100.0
        );
        assert!(distance.abs() < 3.0, "{bits} bits/key: {distance} standard errors");
    }
}

#[test]
fn the_rate_holds_past_2_to_the_26_bits_and_for_hashed_sequential_keys() {
    let mut builder = FilterOptions::new(Sizing::BitsPerKey(10.0)).builder();
    builder.extend((0..7_000_000_u64).map(u64::to_le_bytes)).unwrap();
    let filter = builder.finish().unwrap();
    assert!(filter.params().blocks() > 1 << 17);
    let keys: Vec<[u8; 8]> = (7_000_000..9_000_000_u64).map(u64::to_le_bytes).collect();
    let mut hits = Bitmask::new();
    filter.contains_batch(&keys, &mut hits);
    let ratio =
        hits.count_hits() as f64 / keys.len() as f64 / filter.params().false_positive_rate();
    assert!((ratio - 1.0).abs() < 0.025, "{ratio} of the predicted rate");
}
