//! Every lookup of the trait finds inserted keys.

use blocked_bloom::{Bitmask, Filter, FilterOptions, KeyHash, Sizing};
use blocked_bloom_ribbon::rocksdb::{BuiltBlock, RibbonBlock, RibbonBlockOptions};
use blocked_bloom_ribbon::{RibbonFilter, RibbonOptions};

use crate::common::{Random, kernels};
use crate::found::{self, Hashes};

#[test]
fn finds_every_inserted_key() {
    for seed in [0, 7] {
        let filters = FilterOptions::new(Sizing::FalsePositiveRate(0.01))
            .with_key_hash(KeyHash::Xxh3 { seed });
        let mut builder = RibbonOptions::for_filters(&filters).builder();
        builder.insert_batch(&found::keys()[..300]).unwrap();
        builder.extend(&found::keys()[300..]).unwrap();
        builder.extend(found::integers().iter().map(|key| key.to_le_bytes())).unwrap();
        let filter = builder.finish().unwrap();
        found::check(
            "opened",
            &RibbonFilter::from_bytes_any_hash(filter.as_bytes()).unwrap(),
            Hashes::AsKeys,
        );
        for kernel in kernels() {
            found::check("built", &filter.clone().with_kernel(kernel), Hashes::AsKeys);
        }
    }
}

/// Only `blocked-bloom-formats` has RocksDB's key hash.
#[test]
fn keys_of_rocksdb_blocks_are_answered_maybe() {
    let hashes = Random(3).hashes(1_000);
    let built = RibbonBlockOptions::new(10.0).unwrap().build(&hashes).unwrap();
    let BuiltBlock::Ribbon(block) = built else { panic!("{built:?}") };
    let filter = RibbonBlock::from_bytes(&block).unwrap();
    let (keys, mut hits) = (found::keys(), Bitmask::new());
    assert!(keys.iter().all(|key| filter.contains(key) && filter.hash_key(key).is_none()));
    for length in [1, 64, 65, 700] {
        filter.contains_batch(&keys[..length], &mut hits);
        assert_eq!((hits.len(), hits.count_hits()), (length, length));
        filter.contains_u64s(&found::integers()[..length], &mut hits);
        assert_eq!((hits.len(), hits.count_hits()), (length, length));
    }
    filter.contains_hashes(&hashes, &mut hits);
    assert_eq!(hits.count_hits(), 1_000);
    filter.contains_hashes(&Random(4).hashes(1_000), &mut hits);
    assert!(hits.count_hits() < 50);
}
