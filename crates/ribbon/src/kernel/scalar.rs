//! The scalar definitions, one key after the other.

use blocked_bloom::InstructionSet;

use super::Table;
use crate::scheme::{Shards, Source};
use crate::solve;

pub(super) const TABLE: Table = Table {
    instructions: InstructionSet::Scalar,
    contains_64: [|shards, hashes, hits| look_up(shards, hashes, hits); 5],
    contains_128: [|segments, hashes, hits| look_up(segments, hashes, hits); 5],
    contains_one_64: |directory, hash, words, columns| {
        Shards { directory, words, columns }.contains(hash)
    },
    contains_one_128: |segments, hash| segments.contains(hash),
    substitute_64: solve::substitute,
    substitute_128: solve::rocksdb::substitute,
};

fn look_up<S: Source>(source: &S, hashes: &[u64], hits: &mut [u64]) {
    for (hashes, hits) in hashes.chunks(64).zip(hits) {
        let bit = |&hash: &u64| u64::from(source.contains(hash));
        *hits = hashes.iter().rev().fold(0, |word, hash| word << 1 | bit(hash));
    }
}
