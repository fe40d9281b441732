//! The scalar definitions, one key after the other.

use blocked_bloom::InstructionSet;

use super::Table;
use crate::scheme::Shards;
use crate::scheme::rocksdb::Segments;
use crate::solve;

pub(super) const TABLE: Table = Table {
    instructions: InstructionSet::Scalar,
    contains_64: [contains_64; 5],
    contains_128: [contains_128; 5],
    contains_one_64: |directory, hash, words, columns| {
        Shards { directory, words, columns }.contains(hash)
    },
    contains_one_128: |segments, hash| segments.contains(hash),
    substitute_64: solve::substitute,
    substitute_128: solve::rocksdb::substitute,
};

fn contains_64(shards: &Shards<'_>, hashes: &[u64], hits: &mut [u64]) {
    look_up(hashes, hits, |hash| shards.contains(hash));
}

fn contains_128(segments: &Segments<'_>, hashes: &[u64], hits: &mut [u64]) {
    look_up(hashes, hits, |hash| segments.contains(hash));
}

fn look_up(hashes: &[u64], hits: &mut [u64], contains: impl Fn(u64) -> bool) {
    for (hashes, hits) in hashes.chunks(64).zip(hits) {
        let bit = |&hash: &u64| u64::from(contains(hash));
        *hits = hashes.iter().rev().fold(0, |word, hash| word << 1 | bit(hash));
    }
}
