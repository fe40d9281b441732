//! expected `&BloomFilter<_>`

use blocked_bloom::FilterOptions;

fn main() {
    let mut union = FilterOptions::default().empty_filter(100).unwrap();
    let other = union.clone();
    union.union_with(other).unwrap();
}
