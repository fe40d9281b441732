//! does not accept insertions
//! to_filter()

use blocked_bloom::FilterOptions;

fn main() {
    let filter = FilterOptions::default().empty_filter(100).unwrap();
    filter.view().insert_hashes(&[1, 2]).unwrap();
}
