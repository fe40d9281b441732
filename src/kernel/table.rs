//! What an instruction set provides: the dispatch table that each fills, and what all of them use.

use super::prefetch::{Ahead, Prefetch, prefetch_lines};
use super::source::Source;
use crate::probe::{Block, MULTIPLIER, block_index};

/// Where the hash's block begins.
///
/// # Safety
///
/// `1 <= blocks.len() < 2^32`.
#[cfg_attr(
    not(any(
        target_arch = "x86",
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_endian = "little")
    )),
    expect(dead_code, reason = "for the SIMD kernels")
)]
#[inline]
pub(super) unsafe fn address(blocks: &[Block], hash: u64) -> *const Block {
    let index = block_index(hash, blocks.len() as u32) as usize;
    // SAFETY: `index = lo * len / 2^32 < len`, since `lo < 2^32` and `0 < len < 2^32`.
    unsafe { blocks.as_ptr().add(index) }
}

/// `G^0 .. G^(N-1)`: one multiplication of a vector makes N probes.
#[cfg_attr(
    not(any(
        target_arch = "x86",
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_endian = "little")
    )),
    expect(dead_code, reason = "for the SIMD kernels")
)]
pub(super) const fn powers<const N: usize>() -> [u32; N] {
    let mut powers = [1_u32; N];
    let mut i = 1;
    while i < N {
        powers[i] = powers[i - 1].wrapping_mul(MULTIPLIER);
        i += 1;
    }
    powers
}

/// A run of consecutive blocks of a filter, `first ..` of `total`: what one builder task may write.
pub(crate) struct Tile<'a> {
    pub(crate) blocks: &'a mut [Block],
    pub(crate) first: u32,
    pub(crate) total: u32,
}

impl Tile<'_> {
    /// The index of the hash's block in the tile; out of range if it belongs to another.
    #[inline]
    pub(super) fn index(&self, hash: u64) -> usize {
        block_index(hash, self.total).wrapping_sub(self.first) as usize
    }

    /// Prefetches the hash's block.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        prefetch_lines::<1>(self.blocks.as_ptr().wrapping_add(self.index(hash)));
    }
}

/// One instruction set's functions.
///
/// `contains(blocks, ahead, probes, hashes, hits)` writes bit `i % 64` of `hits[i / 64]` for hash `i`, zero past the last.
/// `insert(tile, probes, hashes)` sets the bits of every hash, and panics at one whose block is not in the tile.
/// `one(line, probes, hash)` tests one key in its block. `few(blocks, prefetch, probes, hashes)` prefetches and tests 1 to
/// 64 hashes, and gives a bit for each; `overlapped` is up to how many need no prefetch, since a CPU looks ahead over their tests.
/// `mask(hash, probes)` gives the hash's bits as a block. `covers(sources, prefetch, hash, masks, hits)` writes bit `i % 64` of
/// `hits[i / 64]` for source `i`, set if the hash's line in it has every bit of the source's mask; a single mask is that of all.
///
/// # Safety
///
/// All: the CPU has the features of `is_supported`. All but `covers`: `1 <= probes <= 30`. `contains`
/// and `few`: `1 <= blocks.len() < 2^32`; `contains`: `hits.len() == hashes.len().div_ceil(64)`.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) is_supported: fn() -> bool,
    pub(super) contains:
        unsafe fn(&[Block], Ahead<'_>, probes: u32, hashes: &[u64], hits: &mut [u64]),
    pub(super) insert: unsafe fn(tile: Tile<'_>, probes: u32, hashes: &[u64]),
    #[allow(dead_code, reason = "not used where one key is tested inline")]
    pub(super) one: unsafe fn(line: &Block, probes: u32, hash: u64) -> bool,
    pub(super) few: unsafe fn(&[Block], Prefetch, probes: u32, hashes: &[u64]) -> u64,
    pub(super) overlapped: usize,
    pub(super) mask: unsafe fn(hash: u64, probes: u32) -> Block,
    pub(super) covers:
        unsafe fn(&[Source<'_>], Prefetch, hash: u64, masks: &[Block], hits: &mut [u64]),
}
