//! The seam for split blocks, Parquet's: blocks of 32 bytes, found by the other half of the hash.
//!
//! This file owns the checks that make the `unsafe` functions for split blocks safe to call. What they answer is
//! [`crate::probe::split_block`]'s.

use super::{AHEAD, Ahead, Kernel, Place, Prefetch, prefetch};
use crate::probe::split_block::{SplitBlock, block_index};

/// One instruction set's functions for split blocks; what they do is what the functions of [`super::Table`] do.
///
/// # Safety
///
/// Both: the CPU has the features of the kernel, and `1 <= blocks.len() < 2^32`. `contains`: `hits.len() == hashes.len().div_ceil(64)`.
pub(super) struct Table {
    pub(super) contains: Contains,
    pub(super) insert: unsafe fn(&mut [SplitBlock], Prefetch, hashes: &[u64]),
}

/// Blocks, what comes later, hashes, hits.
type Contains = unsafe fn(&[SplitBlock], Ahead<'_, SplitBlock>, &[u64], &mut [u64]);

impl Place for SplitBlock {
    #[inline]
    fn index(hash: u64, blocks: u32) -> u32 {
        block_index(hash, blocks)
    }
}

impl Kernel {
    /// Tests every hash; bit `i % 64` of `hits[i / 64]` answers for hash `i`.
    ///
    /// # Panics
    ///
    /// If there is no block or more than 2^32 - 1, or if `hits` is not one word per 64 hashes: bugs of this crate, not inputs.
    #[inline]
    pub(crate) fn split_contains(
        self,
        blocks: &[SplitBlock],
        ahead: Ahead<'_, SplitBlock>,
        hashes: &[u64],
        hits: &mut [u64],
    ) {
        assert!(!blocks.is_empty() && blocks.len() <= u32::MAX as usize);
        assert_eq!(hits.len(), hashes.len().div_ceil(64));
        // SAFETY: a `Kernel` is only made by `supported`, after detection; the rest is asserted above.
        unsafe { (self.0.split.contains)(blocks, ahead, hashes, hits) }
    }

    /// Sets the bits of every hash.
    ///
    /// # Panics
    ///
    /// If there is no block or more than 2^32 - 1: a bug of this crate, not an input.
    pub(crate) fn split_insert(self, blocks: &mut [SplitBlock], hashes: &[u64]) {
        assert!(!blocks.is_empty() && blocks.len() <= u32::MAX as usize);
        let lines = self.prefetch(blocks);
        // SAFETY: a `Kernel` is only made by `supported`, after detection; the rest is asserted above.
        unsafe { (self.0.split.insert)(blocks, lines, hashes) }
    }
}

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
pub(super) unsafe fn address(blocks: &[SplitBlock], hash: u64) -> *const SplitBlock {
    let index = block_index(hash, blocks.len() as u32) as usize;
    // SAFETY: `index = hi * len / 2^32 < len`, since `hi < 2^32` and `0 < len < 2^32`.
    unsafe { blocks.as_ptr().add(index) }
}

/// Calls `set` with every hash's block and the hash. If `lines` are wanted, its line was requested 64 hashes before. For memory of our
/// own, whose blocks straddle no line.
///
/// Always inlined, so that `set` is compiled for the instruction set of the caller.
#[inline(always)]
pub(super) fn for_each_ahead(
    blocks: &mut [SplitBlock],
    lines: Prefetch,
    hashes: &[u64],
    set: impl Fn(&mut SplitBlock, u64),
) {
    let count = blocks.len() as u32;
    let (first, later) = hashes.split_at(AHEAD.min(hashes.len()));
    lines.request(blocks, first);
    let mut later = later.iter();
    for &hash in hashes {
        if lines != Prefetch::No
            && let Some(&hash) = later.next()
        {
            prefetch::<1>(blocks.as_ptr().wrapping_add(block_index(hash, count) as usize));
        }
        set(&mut blocks[block_index(hash, count) as usize], hash);
    }
}
