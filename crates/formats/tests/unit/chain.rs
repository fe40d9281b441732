//! Unit tests of `src/redis/chain.rs`, which includes this file.

use alloc::vec;
use alloc::vec::Vec;

use super::RedisFilter;
use crate::redis::RedisError;
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

/// A chain accepts pieces of a dump at their places. It rejects all other pieces and does not
/// change.
#[test]
fn pieces_overwrite_the_bits_at_their_place() {
    let mut filter = RedisFilter::new(10, 0.01, Some(2)).unwrap();
    (0..50_u64).for_each(|key| _ = filter.insert(key.to_le_bytes()).unwrap());
    let bits: Vec<u8> = filter.links().iter().flat_map(|link| link.as_bytes()).copied().collect();
    let first = filter.links()[0].as_bytes().len();
    let all = |filter: &RedisFilter| -> Vec<u8> {
        filter.links().iter().flat_map(|link| link.as_bytes()).copied().collect()
    };
    let mut copy = filter.clone();
    for (start, length) in [(0, 1), (first - 1, 1), (first, 3), (bits.len() - 2, 2), (5, 0)] {
        let data = vec![0xa5; length];
        copy.load_chunk((start + length + 1) as i64, &data).unwrap();
        let mut expected = all(&copy);
        expected[start..start + length].fill(0xa5);
        assert_eq!(all(&copy), expected, "{start}");
        assert_eq!(copy.size(), filter.size());
        let before = &bits[start..start + length];
        copy.load_chunk((start + length + 1) as i64, before).unwrap();
        assert_eq!(all(&copy), bits, "{start}");
    }
    let expected = bits.len() as i64 + 1;
    for iterator in [i64::MIN, 0, 1, 2, expected + 2, i64::MAX] {
        let error = copy.load_chunk(iterator, &[0; 2]).unwrap_err();
        assert_eq!(error, RedisError::Order { iterator, expected });
    }
    let iterator = first as i64 + 2;
    let error = copy.load_chunk(iterator, &[0; 2]).unwrap_err();
    assert_eq!(error, RedisError::SpansLinks { iterator, found: 2, most: 1 });
    assert_eq!(all(&copy), bits);
}
