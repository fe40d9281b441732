//! `Vec<u8>` does not hold the blocks of a filter
//! BloomFilter::from_bytes(bytes, key_hash)
//! BloomFilter<Stored<Vec<u8>>>

use blocked_bloom::{BloomFilter, KeyHash};

fn main() {
    let stored: Vec<u8> = vec![0; 128];
    let filter = BloomFilter::from_blocks(stored, 6, KeyHash::default()).unwrap();
    filter.contains("apple");
}
