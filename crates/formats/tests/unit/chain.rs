//! Unit tests of `src/redis/chain.rs`, which includes this file.

use alloc::vec::Vec;

use super::RedisFilter;
use crate::watch::{events, lines};

/// Bytes of an array that outgrows the cache.
const LARGE: u64 = (256 << 10) + 1;

/// A chain prefetches in its newest link, whatever the others hold.
#[test]
fn additions_to_a_chain_prefetch_in_its_newest_link() {
    let mut filter = RedisFilter::new(1_000, 0.001, Some(2)).unwrap();
    let hash = |filter: &RedisFilter, key: u64| filter.hash_key(key.to_le_bytes());
    let mut key = 0;
    while filter.links().last().map_or(0, |link| link.shape().bits()) < 8 * LARGE {
        filter.insert_hash(hash(&filter, key)).unwrap();
        key += 1;
    }
    assert!(filter.links().len() > 1);
    let hashes: Vec<_> = (key..key + 100).map(|key| hash(&filter, key)).collect();
    let newest = |filter: &RedisFilter| filter.links().last().unwrap().as_bytes().as_ptr();
    let before = newest(&filter);
    let link = filter.links().last().unwrap().view();
    let expected =
        lines(&events(|| hashes[16..].iter().for_each(|&hash| link.prefetch_hash(hash))));
    assert!(expected.len() >= 84 * 10);
    let found = lines(&events(|| _ = filter.insert_hashes(&hashes).unwrap()));
    assert!(newest(&filter) == before && found == expected);
}
