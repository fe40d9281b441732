//! `u64` cannot be a key
//! n.to_le_bytes()
//! insert_u64s

use blocked_bloom::FilterOptions;

fn main() {
    let mut filter = FilterOptions::default().empty_filter(100).unwrap();
    filter.insert(42_u64).unwrap();
}
