//! The tests of growing filters: one binary. `cargo test -p blocked-bloom-scalable --test suite
//! stored::` runs one module.

#[path = "../../../../tests/suite/common.rs"]
mod common;
#[path = "../../../../tests/suite/common/found.rs"]
mod found;

mod batches;
mod damage;
mod errors;
mod growing;
mod lookups;
mod options;
mod stored;

use blocked_bloom::Bitmask;
use blocked_bloom_scalable::{ScalableBloomFilter, ScalableOptions};
use common::Random;

fn new(rate: f64, first_items: u64) -> ScalableBloomFilter {
    let filter = ScalableOptions::new(rate, first_items).build().unwrap();
    assert_eq!(filter.false_positive_rate(), rate);
    filter
}

/// A filter of `keys` random hashes, inserted in batches of odd lengths.
fn filled(rate: f64, first_items: u64, keys: usize) -> (ScalableBloomFilter, Vec<u64>) {
    let (mut filter, mut added) = (new(rate, first_items), Bitmask::new());
    let hashes = Random(first_items).hashes(keys);
    for batch in hashes.chunks(999) {
        filter.insert_hashes_new(batch, &mut added).unwrap();
        assert_eq!(added.len(), batch.len());
    }
    (filter, hashes)
}
