//! The law of split blocks, one key at a time, over a whole batch: defines what the other kernels must answer.

use super::super::split::{Table, for_each_ahead};
use super::super::{Ahead, Prefetch};
use crate::probe::split_block::{self, SplitBlock};

pub(in super::super) const TABLE: Table = Table { contains, insert };

/// Requests nothing ahead: it is the reference, and runs on no machine by itself.
fn contains(
    blocks: &[SplitBlock],
    _ahead: Ahead<'_, SplitBlock>,
    hashes: &[u64],
    hits: &mut [u64],
) {
    let count = blocks.len() as u32;
    for (keys, word) in hashes.chunks(64).zip(hits) {
        *word = 0;
        for (i, &hash) in keys.iter().enumerate() {
            let block = &blocks[split_block::block_index(hash, count) as usize];
            *word |= u64::from(split_block::contains(block, hash)) << i;
        }
    }
}

pub(in super::super) fn insert(blocks: &mut [SplitBlock], lines: Prefetch, hashes: &[u64]) {
    for_each_ahead(blocks, lines, hashes, |block, hash| _ = split_block::insert(block, hash));
}
