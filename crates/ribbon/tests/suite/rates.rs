//! Measured false-positive rates match the formula.

use blocked_bloom::{Bitmask, Filter};
use blocked_bloom_ribbon::rocksdb::{BuiltBlock, RibbonBlock, RibbonBlockOptions};

use crate::common::Random;
use crate::sharded::built;

/// Checks that the hits are within three standard errors of the predicted number.
fn check(filter: &dyn Filter, rate: f64, queries: usize, what: &str) {
    let (mut hits, mut found) = (Bitmask::new(), 0);
    let mut random = Random(0xfade);
    for _ in 0..queries / 4_096 {
        let hashes = random.hashes(4_096);
        hits.write(4_096, |words| filter.contains_hashes_into(&hashes, words).unwrap());
        found += hits.count_hits();
    }
    let queries = (queries / 4_096 * 4_096) as f64;
    let error = (queries * rate * (1.0 - rate)).sqrt();
    let deviation = (found as f64 - queries * rate) / error;
    assert!(
        deviation.abs() < 3.0,
        "{what}: {found} hits, {} expected: {deviation}",
        queries * rate
    );
}

#[test]
fn rates_are_those_of_the_formula() {
    let hashes = Random(11).hashes(40_000);
    for rate in [0.3, 0.1, 0.01, 0.003, 0.001] {
        let filter = built(rate, &hashes);
        assert!((0.97 * rate..=rate).contains(&filter.expected_false_positive_rate()));
        check(
            &filter,
            filter.expected_false_positive_rate(),
            2_000_000,
            &format!("sharded {rate}"),
        );
    }
    for bits_per_key in [3.0, 6.0, 10.0, 13.0, 16.0] {
        let options = RibbonBlockOptions::new(bits_per_key).unwrap();
        let BuiltBlock::Ribbon(block) = options.build(&hashes).unwrap() else { panic!() };
        let filter = RibbonBlock::from_bytes(&block).unwrap();
        let rate = filter.expected_false_positive_rate();
        assert!((rate / options.false_positive_rate() - 1.0).abs() < 0.01, "{bits_per_key}");
        check(&filter, rate, 2_000_000, &format!("RocksDB's {bits_per_key}"));
    }
}

/// `cargo test --release -p blocked-bloom-ribbon -- --ignored a_hundred_million`
#[test]
#[ignore = "a minute"]
fn a_hundred_million_queries_without_a_false_absent() {
    let hashes = Random(12).hashes(5_000_000);
    let filter = built(0.01, &hashes);
    let BuiltBlock::Ribbon(block) = RibbonBlockOptions::new(10.0).unwrap().build(&hashes).unwrap()
    else {
        panic!()
    };
    let theirs = RibbonBlock::from_bytes(&block).unwrap();
    let mut hits = Bitmask::new();
    let mut queries = 0;
    while queries < 100_000_000 {
        for kernel in blocked_bloom::Kernel::supported() {
            for batch in hashes.chunks(4_099) {
                filter.view().with_kernel(kernel).contains_hashes(batch, &mut hits);
                assert_eq!(hits.count_misses(), 0);
                theirs.with_kernel(kernel).contains_hashes(batch, &mut hits);
                assert_eq!(hits.count_misses(), 0);
                queries += 2 * batch.len();
            }
        }
    }
}
