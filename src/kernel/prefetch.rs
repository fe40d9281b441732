//! Prefetching: which lines, how far ahead, and when not.

use super::cache;
use crate::probe::{Block, block_index};

/// Prefetch distance, in keys. 16 are enough for a filter in the third-level cache and 5 % faster there; from memory 32 take 15 % longer
/// and 16 40 %, 128 are no faster (Zen 3).
pub(crate) const AHEAD: usize = 64;

/// A block, plain or of atomic words: how it is found where it is prefetched. Nothing `unsafe` relies on it.
pub(crate) trait Place: Sized {
    /// The block, `0 .. blocks`, that the hash belongs to.
    fn index(hash: u64, blocks: u32) -> u32;
}

impl Place for Block {
    #[inline]
    fn index(hash: u64, blocks: u32) -> u32 {
        block_index(hash, blocks)
    }
}

/// How a batch's lines get into the cache before they are tested.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefetch {
    /// Not at all: the filter fits the cache, or the lines were prefetched before.
    No,
    OneLine,
    /// A borrowed filter whose blocks straddle two lines.
    TwoLines,
}

impl Prefetch {
    /// For a filter of these blocks.
    #[inline]
    pub(crate) fn of<B>(blocks: &[B]) -> Self {
        Prefetch::of_many(size_of_val(blocks), is_aligned(blocks))
    }

    /// For filters that are looked up one after the other, `bytes` in all; `aligned` if every block is one cache line.
    #[inline]
    pub(crate) fn of_many(bytes: usize, aligned: bool) -> Self {
        match aligned {
            _ if bytes <= cache::fits() => Prefetch::No,
            true => Prefetch::OneLine,
            false => Prefetch::TwoLines,
        }
    }

    /// Prefetches the block of every hash.
    #[inline]
    pub(crate) fn prefetch<B: Place>(self, blocks: &[B], hashes: &[u64]) {
        let block = |&hash: &u64| {
            let index = B::index(hash, blocks.len() as u32) as usize;
            blocks.as_ptr().wrapping_add(index)
        };
        match self {
            Prefetch::No => {}
            Prefetch::OneLine => hashes.iter().map(block).for_each(prefetch_lines::<1>),
            Prefetch::TwoLines => hashes.iter().map(block).for_each(prefetch_lines::<2>),
        }
    }
}

/// Whether no block straddles two cache lines.
#[inline]
pub(crate) fn is_aligned<B>(blocks: &[B]) -> bool {
    blocks.as_ptr().addr().is_multiple_of(size_of::<B>())
}

/// The keys that come later: a kernel prefetches the block of one for each that it tests.
#[derive(Clone, Copy)]
pub(crate) struct Ahead<'a, B = Block> {
    pub(crate) prefetch: Prefetch,
    /// Hashes whose blocks are not prefetched yet.
    pub(crate) later: &'a [u64],
    /// The filter they will be looked up in: the same, or the next of a set.
    pub(crate) blocks: &'a [B],
}

impl<'a, B: Place> Ahead<'a, B> {
    /// Prefetches the blocks of a batch's first hashes.
    #[inline]
    pub(crate) fn start(prefetch: Prefetch, blocks: &'a [B], hashes: &'a [u64]) -> Self {
        if prefetch == Prefetch::No {
            return Ahead { prefetch, later: &[], blocks };
        }
        let (first, later) = hashes.split_at(AHEAD.min(hashes.len()));
        prefetch.prefetch(blocks, first);
        Ahead { prefetch, later, blocks }
    }

    /// Prefetches `LINES` lines for each of the next `keys` hashes.
    #[inline]
    pub(super) fn prefetch<const LINES: usize>(&mut self, keys: usize) {
        let (next, later) = self.later.split_at(keys.min(self.later.len()));
        self.later = later;
        for &hash in next {
            let index = B::index(hash, self.blocks.len() as u32) as usize;
            prefetch_lines::<LINES>(self.blocks.as_ptr().wrapping_add(index));
        }
    }
}

/// Prefetches the line at `block`, and with `LINES = 2` the one its last byte is in; nothing where no instruction is known.
#[inline]
pub(super) fn prefetch_lines<const LINES: usize>(block: *const impl Sized) {
    let last_byte = block.wrapping_add(1).cast::<u8>().wrapping_sub(1);
    for line in [block.cast(), last_byte].into_iter().take(LINES) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: SSE is part of x86-64, and a prefetch reads nothing: any address will do.
        unsafe {
            core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(line.cast());
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a prefetch reads nothing: any address will do.
        unsafe {
            core::arch::asm!("prfm pldl1keep, [{line}]", line = in(reg) line, options(nostack, preserves_flags, readonly));
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let _ = line;
    }
}

/// Prefetches the cache line of the byte at `offset` of the slice's memory: for filters of other packages, whose probes are not in one
/// block, or whose words are atomic. Nothing where no instruction is known; any offset will do, also one outside the slice.
///
/// ```
/// let bytes = vec![0_u8; 1 << 20];
/// blocked_bloom::prefetch(&bytes, 4096);
/// ```
#[inline]
pub fn prefetch<T>(memory: &[T], offset: usize) {
    prefetch_lines::<1>(memory.as_ptr().cast::<u8>().wrapping_add(offset));
}

/// Prefetches the block of a hash, both of its lines if it straddles two.
#[inline]
pub(crate) fn prefetch_block(blocks: &[Block], hash: u64) {
    let index = block_index(hash, blocks.len() as u32) as usize;
    prefetch_lines::<2>(blocks.as_ptr().wrapping_add(index));
}
