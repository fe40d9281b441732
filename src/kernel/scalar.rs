//! The probe scheme, one key at a time, over a whole batch: works everywhere and defines what the other kernels must answer.

use super::driver::for_each_of_few;
use super::prefetch::{AHEAD, Ahead, Prefetch};
use super::source::Source;
use super::table::{Table, Tile};
use crate::probe::{self, Block};

pub(super) const TABLE: Table = Table {
    name: "scalar",
    is_supported: || true,
    contains,
    insert,
    one,
    few,
    overlapped: 1,
    mask: probe::mask,
    covers,
};

/// Reference only; never the default where another kernel is supported. Prefetches nothing.
pub(super) fn contains(
    blocks: &[Block],
    _ahead: Ahead<'_>,
    probes: u32,
    hashes: &[u64],
    hits: &mut [u64],
) {
    let count = blocks.len() as u32;
    for (keys, word) in hashes.chunks(64).zip(hits) {
        *word = 0;
        for (i, &hash) in keys.iter().enumerate() {
            let block = &blocks[probe::block_index(hash, count) as usize];
            *word |= u64::from(probe::contains(block, hash, probes)) << i;
        }
    }
}

fn one(line: &Block, probes: u32, hash: u64) -> bool {
    probe::contains(line, hash, probes)
}

pub(super) fn few(blocks: &[Block], prefetch: Prefetch, probes: u32, hashes: &[u64]) -> u64 {
    let count = blocks.len() as u32;
    prefetch.prefetch(blocks, hashes);
    for_each_of_few(hashes, |&hash| {
        probe::contains(&blocks[probe::block_index(hash, count) as usize], hash, probes)
    })
}

pub(super) fn insert(tile: Tile<'_>, probes: u32, hashes: &[u64]) {
    let prefetching = !matches!(Prefetch::of(tile.blocks), Prefetch::No);
    let (first, later) = hashes.split_at(AHEAD.min(hashes.len()));
    if prefetching {
        first.iter().for_each(|&hash| tile.prefetch(hash));
    }
    let mut later = later.iter();
    for &hash in hashes {
        if prefetching && let Some(&hash) = later.next() {
            tile.prefetch(hash);
        }
        let index = tile.index(hash);
        probe::insert(&mut tile.blocks[index], hash, probes);
    }
}

/// Eight words a line, in any byte order: a bit of the line is compared with the same bit of the mask.
pub(super) fn covers(
    sources: &[Source<'_>],
    _prefetch: Prefetch,
    hash: u64,
    masks: &[Block],
    hits: &mut [u64],
) {
    for (sources, word) in sources.chunks(64).zip(hits) {
        *word = 0;
        for (i, source) in sources.iter().enumerate() {
            let mask = if let [mask] = masks { mask } else { &masks[source.mask()] };
            let (line, _) = source.line(hash).as_chunks();
            let (mask, _) = mask.as_chunks();
            let missing = line.iter().zip(mask).fold(0, |missing, (&line, &mask)| {
                missing | !u64::from_ne_bytes(line) & u64::from_ne_bytes(mask)
            });
            *word |= u64::from(missing == 0) << i;
        }
    }
}
