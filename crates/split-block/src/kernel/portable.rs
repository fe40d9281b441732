//! Portable SIMD with the crate `wide`: the eight words of one key in one or two registers.
//!
//! SSE2 has no shift with different counts per lane, so computing the masks takes most of the time.
//! Insertion is scalar.

use blocked_bloom::InstructionSet;
use wide::u32x8;

use super::{Table, for_each_group, scalar};
use crate::split_block::{SALTS, SplitBlock, block_index};

pub(super) const TABLE: Table = Table {
    instructions: InstructionSet::Portable,
    contains: [contains::<0>, contains::<1>, contains::<2>],
    ..scalar::TABLE
};

fn contains<const LINES: usize>(blocks: &[SplitBlock], hashes: &[u64], hits: &mut [u64]) {
    ran!("portable");
    let count = blocks.len() as u32;
    let test =
        |&[hash]: &[u64; 1]| u64::from(has_all(&blocks[block_index(hash, count) as usize], hash));
    // With groups of one key, no group is incomplete.
    for_each_group::<1, LINES>(blocks, hashes, hits, test);
}

/// Returns whether every bit of the key is set in its block.
#[inline]
fn has_all(block: &SplitBlock, hash: u64) -> bool {
    let (words, _) = block.as_chunks();
    let words = u32x8::new(core::array::from_fn(|i| u32::from_le_bytes(words[i])));
    let products = u32x8::splat(hash as u32) * u32x8::new(SALTS);
    let masks = u32x8::splat(1) << (products >> 27_u32);
    (!words & masks) == u32x8::ZERO
}
