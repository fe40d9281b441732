//! The scalar definitions, one key after the other.

use super::Table;
use crate::rocksdb::scheme::Segments;
use crate::rocksdb::solve;
use crate::scheme::Shards;

pub(super) const TABLE: Table = Table {
    contains_64,
    contains_128,
    substitute_64: crate::solve::substitute,
    substitute_128: solve::substitute,
};

fn contains_64(shards: &Shards<'_>, _: usize, hashes: &[u64], hits: &mut [u64]) {
    look_up(hashes, hits, |hash| shards.contains(hash));
}

fn contains_128(segments: &Segments<'_>, _: usize, hashes: &[u64], hits: &mut [u64]) {
    look_up(hashes, hits, |hash| segments.contains(hash));
}

fn look_up(hashes: &[u64], hits: &mut [u64], contains: impl Fn(u64) -> bool) {
    for (hashes, hits) in hashes.chunks(64).zip(hits) {
        let bit = |&hash: &u64| u64::from(contains(hash));
        *hits = hashes.iter().rev().fold(0, |word, hash| word << 1 | bit(hash));
    }
}
