//! expected `&BloomFilter<_>`

use blocked_bloom::{BloomFilter, FilterOptions};

fn main() {
    let mut union = FilterOptions::default().empty_filter(100).unwrap();
    let others: Vec<BloomFilter> = vec![union.clone()];
    union.union_all(others).unwrap();
}
