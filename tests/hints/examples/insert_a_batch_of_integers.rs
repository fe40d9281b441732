//! `u64` cannot be a key
//! insert_u64s

use blocked_bloom::FilterOptions;

fn main() {
    let mut filter = FilterOptions::default().empty_filter(100).unwrap();
    filter.insert_batch(&[1_u64, 2, 3]).unwrap();
}
