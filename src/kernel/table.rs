//! What an instruction set provides: the dispatch table that each fills, and what all of them use.

use super::InstructionSet;
use super::prefetch::{FAR, Prefetch, PrefetchAhead, prefetch_lines};
use crate::probe::{Block, MULTIPLIER, block_index};

/// Where the hash's block begins.
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

/// `G^0 .. G^(N-1)`: one multiplication of a vector makes N probes.
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
/// `one(line, probes, hash)` tests one key in its block. `group(blocks, probes, hashes)` tests 1 to
/// 64 hashes, whose blocks are in the cache or were prefetched, and gives a bit for each.
/// `batch(blocks, prefetch, probes, hashes, hits)` tests any number and writes bit `i % 64` of
/// `hits[i / 64]` for hash `i`, zero past the last; it prefetches ahead between the tests, as
/// `prefetch` says.
/// `insert(tile, probes, hashes, new)` sets the bits of every hash, and panics at one whose block
/// is not in the tile. If `new` is not empty, it also writes bit `i % 64` of `new[i / 64]`, set if
/// hash `i` set a bit that was not set, zero past the last. `overlapped`: the largest call that is
/// not prefetched, because out-of-order execution already overlaps its cache misses. `few`: the
/// largest of which that holds in filters of up to
/// [`Tuning::short_calls`](super::tuning::Tuning::short_calls)
/// times what fits the cache.
///
/// # Safety
///
/// All: the CPU has the features of `is_supported`. `contains_one` needs nothing more: it reads
/// `line` alone, and other than 1 to 30 probes make its answer wrong and nothing else. The others:
/// `1 <= probes <= 30`. `group` and `batch`: `1 <= blocks.len() < 2^32`; `group`: 1 to 64 hashes;
/// `batch`: `hits.len() == hashes.len().div_ceil(64)`.
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
