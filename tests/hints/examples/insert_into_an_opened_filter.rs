//! does not accept insertions
//! to_filter()

use blocked_bloom::{BloomFilter, KeyHash};

fn main() {
    let mut filter = BloomFilter::from_bytes(Vec::new(), KeyHash::default()).unwrap();
    filter.insert("apple").unwrap();
}
