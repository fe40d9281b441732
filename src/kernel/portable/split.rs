//! Split blocks through the crate `wide`: the eight words of one key in a register or two.
//!
//! Without a shift by different counts, which SSE2 lacks, the masks take longer than all else. Inserting is scalar.

use wide::u32x8;

use super::super::split::Table;
use super::super::{Ahead, Prefetch, scalar};
use crate::probe::split_block::{SALTS, SplitBlock, block_index};

pub(in super::super) const TABLE: Table = Table { contains, insert: scalar::split::insert };

fn contains(blocks: &[SplitBlock], ahead: Ahead<'_, SplitBlock>, hashes: &[u64], hits: &mut [u64]) {
    match ahead.prefetch {
        Prefetch::No => batch::<0>(blocks, ahead, hashes, hits),
        Prefetch::OneLine => batch::<1>(blocks, ahead, hashes, hits),
        Prefetch::TwoLines => batch::<2>(blocks, ahead, hashes, hits),
    }
}

/// Requests `LINES` lines per key ahead.
fn batch<const LINES: usize>(
    blocks: &[SplitBlock],
    mut ahead: Ahead<'_, SplitBlock>,
    hashes: &[u64],
    hits: &mut [u64],
) {
    let count = blocks.len() as u32;
    let block = |hash| &blocks[block_index(hash, count) as usize];
    for (keys, word) in hashes.chunks(64).zip(hits) {
        *word = 0;
        for (i, &hash) in keys.iter().enumerate() {
            if LINES > 0 {
                ahead.request::<LINES>(1);
            }
            *word |= u64::from(test(block(hash), hash)) << i;
        }
    }
}

/// Whether every bit of the key is set in its block.
#[inline]
fn test(block: &SplitBlock, hash: u64) -> bool {
    let (words, _) = block.as_chunks();
    let words = u32x8::new(core::array::from_fn(|i| u32::from_le_bytes(words[i])));
    let products = u32x8::splat(hash as u32) * u32x8::new(SALTS);
    let masks = u32x8::splat(1) << (products >> 27_u32);
    (!words & masks) == u32x8::ZERO
}
