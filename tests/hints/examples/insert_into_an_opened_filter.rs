//! cannot be added to
//! to_filter()

use blocked_bloom::BloomFilter;

fn main() {
    let mut filter = BloomFilter::from_bytes(Vec::new()).unwrap();
    filter.insert("apple").unwrap();
}
