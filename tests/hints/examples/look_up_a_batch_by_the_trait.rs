//! `u64` cannot be a key
//! contains_u64s

use blocked_bloom::{Bitmask, Filter};

fn look_up(filter: &impl Filter, keys: &[u64], hits: &mut Bitmask) {
    filter.contains_batch(keys, hits);
}

fn main() {
    look_up(&blocked_bloom::BloomFilter::pass_all(Default::default()), &[1], &mut Bitmask::new());
}
