//! The probe scheme, one key at a time. It runs everywhere, and every kernel must agree with it.

use super::driver::for_each_of_few;
use super::prefetch::{FAR, Prefetch, PrefetchAhead};
use super::table::{Table, Tile};
use super::{GROUP, InstructionSet};
use crate::probe::{self, Block};

pub(super) const TABLE: Table = Table {
    instructions: InstructionSet::Scalar,
    is_supported: || true,
    contains_one,
    group,
    batch,
    insert,
    overlapped: 1,
    short_calls: 1,
};

fn contains_one(line: &Block, probes: u32, hash: u64) -> bool {
    probe::contains(line, hash, probes)
}

pub(super) fn group(blocks: &[Block], probes: u32, hashes: &[u64]) -> u64 {
    let count = blocks.len() as u32;
    for_each_of_few(hashes, |&hash| {
        probe::contains(&blocks[probe::block_index(hash, count) as usize], hash, probes)
    })
}

fn batch(blocks: &[Block], prefetch: Prefetch, probes: u32, hashes: &[u64], hits: &mut [u64]) {
    let later = if prefetch == Prefetch::Off { &[] } else { hashes };
    let mut ahead =
        PrefetchAhead::start(later, |&hash| prefetch.prefetch_each::<FAR>(blocks, &[hash]));
    for (hashes, word) in hashes.chunks(GROUP).zip(hits) {
        ahead.advance(hashes.len());
        *word = group(blocks, probes, hashes);
    }
}

pub(super) fn insert(tile: Tile<'_>, probes: u32, hashes: &[u64], new: &mut [u64]) {
    let mut ahead = tile.prefetcher(hashes);
    let mut add = |&hash: &u64| {
        ahead.advance(1);
        watch!(ran("scalar"));
        let index = tile.index(hash);
        probe::insert(&mut tile.blocks[index], hash, probes)
    };
    if new.is_empty() {
        return hashes.iter().for_each(|hash| _ = add(hash));
    }
    for (hashes, word) in hashes.chunks(64).zip(new) {
        let bit = |(i, hash)| u64::from(add(hash)) << i;
        *word = hashes.iter().enumerate().map(bit).fold(0, |bits, bit| bits | bit);
    }
}
