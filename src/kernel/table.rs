//! The dispatch table that each instruction set fills in, and helpers that all of them use.

use super::InstructionSet;
use super::prefetch::{FAR, Prefetch, PrefetchAhead, prefetch_lines};
use crate::probe::{Block, MULTIPLIER, block_index};

/// Returns the address of the hash's block.
///
/// # Safety
///
/// `1 <= blocks.len() < 2^32`.
#[allow(dead_code, reason = "for the SIMD kernels")]
#[inline]
pub(super) unsafe fn address(blocks: &[Block], hash: u64) -> *const Block {
    let index = block_index(hash, blocks.len() as u32) as usize;
    // SAFETY: `index = lo * len / 2^32 < len`, since `lo < 2^32` and `0 < len < 2^32`.
    unsafe { blocks.as_ptr().add(index) }
}

/// `G^0 .. G^(N-1)`, so that one multiplication of a vector computes N probes.
#[allow(dead_code, reason = "for the SIMD kernels")]
pub(super) const fn powers<const N: usize>() -> [u32; N] {
    let mut powers = [1_u32; N];
    let mut i = 1;
    while i < N {
        powers[i] = powers[i - 1].wrapping_mul(MULTIPLIER);
        i += 1;
    }
    powers
}

/// Consecutive blocks of a filter with `total` blocks, starting at block `first`. Each task of a
/// parallel build writes one tile.
pub(crate) struct Tile<'a> {
    pub(crate) blocks: &'a mut [Block],
    pub(crate) first: u32,
    pub(crate) total: u32,
}

impl Tile<'_> {
    /// Index of the hash's block in the tile; out of range if the block is in another tile.
    #[inline]
    pub(super) fn index(&self, hash: u64) -> usize {
        block_index(hash, self.total).wrapping_sub(self.first) as usize
    }

    /// Prefetches the blocks of later hashes, unless the tile fits the cache.
    #[inline(always)]
    pub(super) fn prefetcher<'h>(
        &self,
        hashes: &'h [u64],
    ) -> PrefetchAhead<'h, u64, impl FnMut(&u64) + use<>> {
        let (start, first, total) = (self.blocks.as_ptr(), self.first, self.total);
        let hashes = if Prefetch::for_blocks(self.blocks) == Prefetch::Off { &[] } else { hashes };
        PrefetchAhead::start(hashes, move |&hash| {
            let index = block_index(hash, total).wrapping_sub(first);
            prefetch_lines::<1, FAR>(start.wrapping_add(index as usize));
        })
    }
}

/// One instruction set's functions.
///
/// - `one(line, probes, hash)` tests one key in its block.
/// - `group(blocks, probes, hashes)` tests 1 to 64 hashes whose blocks are in the cache or were
///   prefetched, and returns one bit per hash.
/// - `batch(blocks, prefetch, probes, hashes, hits)` tests any number of hashes and writes bit
///   `i % 64` of `hits[i / 64]` for hash `i`, zero past the last. Between the tests it prefetches
///   later blocks, as `prefetch` says.
/// - `insert(tile, probes, hashes, new)` sets the bits of every hash. It panics if a block is not
///   in the tile. If `new` is not empty, bit `i % 64` of `new[i / 64]` is set if hash `i` set a bit
///   that was clear; bits past the last hash are zero.
/// - `overlapped` is the largest call that is not prefetched, because out-of-order execution
///   already overlaps its cache misses.
/// - `short_calls` is the largest such call in filters of up to
///   [`Tuning::short_calls`](super::tuning::Tuning::short_calls) times the size that fits the
///   cache.
///
/// # Safety
///
/// - All functions: the CPU has the features that `is_supported` tests.
/// - `contains_one` requires nothing else. It reads only `line`; a number of probes outside 1 to 30
///   makes its answer wrong, with no other effect.
/// - `group`, `batch` and `insert`: `1 <= probes <= 30`.
/// - `group` and `batch`: `1 <= blocks.len() < 2^32`.
/// - `group`: 1 to 64 hashes.
/// - `batch`: `hits.len() == hashes.len().div_ceil(64)`.
pub(super) struct Table {
    pub(super) instructions: InstructionSet,
    pub(super) is_supported: fn() -> bool,
    #[allow(dead_code, reason = "not used where one key is tested inline")]
    pub(super) contains_one: unsafe fn(line: &Block, probes: u32, hash: u64) -> bool,
    pub(super) group: unsafe fn(&[Block], probes: u32, hashes: &[u64]) -> u64,
    pub(super) batch: unsafe fn(&[Block], Prefetch, probes: u32, hashes: &[u64], hits: &mut [u64]),
    pub(super) insert: unsafe fn(tile: Tile<'_>, probes: u32, hashes: &[u64], new: &mut [u64]),
    pub(super) overlapped: usize,
    pub(super) short_calls: usize,
}
