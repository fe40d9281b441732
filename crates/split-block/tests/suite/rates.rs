//! The formula of the rate equals the mixture that it stands for, and the rate of filters.

use blocked_bloom::Filter;
use blocked_bloom_split::SplitBlockFilter;
use blocked_bloom_split::split_block::false_positive_rate;

fn mixed(i: u64) -> u64 {
    let i = (i ^ i >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let i = (i ^ i >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    i ^ i >> 31
}

/// The mean over the number of values in a block, term by term.
fn mixture(values: u64, blocks: u32) -> f64 {
    let n = f64::from(blocks);
    let (mut log, mut rate) = (values as f64 * (-1.0 / n).ln_1p(), 0.0);
    for held in 0..=values.min(2_000) {
        let set = 1.0 - (31.0_f64 / 32.0).powf(held as f64);
        rate += log.exp() * set.powi(8);
        log += ((values - held) as f64 / ((held + 1) as f64 * (n - 1.0))).ln();
    }
    rate
}

#[test]
fn the_rate_is_the_mean_over_blocks() {
    for (values, blocks) in [(1, 2), (100, 7), (5_000, 64), (100_000, 4_096), (1_000_000, 16_384)] {
        let (rate, expected) = (false_positive_rate(values, blocks), mixture(values, blocks));
        assert!((rate - expected).abs() < 1e-12 + 1e-9 * expected, "{values} in {blocks}: {rate}");
    }
    // One block with all values, no values, and no block.
    let one = (1.0 - (31.0_f64 / 32.0).powi(40)).powi(8);
    assert!((false_positive_rate(40, 1) - one).abs() < 1e-12);
    assert_eq!((false_positive_rate(0, 8), false_positive_rate(8, 0)), (0.0, 1.0));
}

/// Checks that the measured rate is within four standard errors of 2 million lookups.
#[test]
fn filters_have_the_rate() {
    const LOOKUPS: u64 = 2_000_000;
    for (values, blocks) in [(100_000, 1 << 12), (200_000, 1 << 13), (40_000, 1 << 12)] {
        let mut filter = SplitBlockFilter::with_blocks(blocks).unwrap();
        (1..=values).for_each(|i| _ = filter.insert_hash(mixed(i)));
        let found = (1..=LOOKUPS).filter(|i| filter.contains_hash(mixed(i + (1 << 40)))).count();
        let rate = false_positive_rate(values, blocks);
        // One filter's rate also differs from the mean over filters, by less than 1 %.
        let error = 4.0 * (rate / LOOKUPS as f64).sqrt() + 0.01 * rate;
        let found = found as f64 / LOOKUPS as f64;
        assert!((found - rate).abs() < error, "{values} in {blocks}: {found}, expected {rate}");
    }
}
