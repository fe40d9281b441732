//! Every lookup of the trait finds inserted keys.

use blocked_bloom::{Bitmask, FilterOptions, KeyHash};
use blocked_bloom_scalable::{ScalableBloomFilter, ScalableOptions};

use crate::common::kernels;
use crate::found::{self, Hashes};

#[test]
fn finds_every_inserted_key() {
    for seed in [0, 7] {
        let filters = FilterOptions::default().with_key_hash(KeyHash::Xxh3 { seed });
        for kernel in kernels() {
            let options = ScalableOptions::for_filters(&filters, 100).unwrap();
            let mut filter = options.build().unwrap().with_kernel(kernel);
            filter.insert_batch(&found::keys()[..300]).unwrap();
            for key in &found::keys()[300..] {
                filter.insert(key).unwrap();
            }
            filter.insert_u64s_new(&found::integers(), &mut Bitmask::new()).unwrap();
            assert!(filter.links().len() > 2);
            found::check("owned", &filter, Hashes::AsKeys);
            let stored = filter.to_bytes();
            let opened = ScalableBloomFilter::from_bytes_any_hash(&stored).unwrap();
            found::check("opened", &opened, Hashes::AsKeys);
        }
    }
}
