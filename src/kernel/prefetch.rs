//! Prefetching: which lines, how far ahead, and when not.

use super::cache;
use crate::probe::{Block, block_index};

/// Prefetch distance, in keys. 16 are enough for a filter in the third-level cache and 5 % faster there; from memory 32 take 15 % longer
/// and 16 40 %, 128 are no faster (Zen 3).
const DISTANCE: usize = 64;

/// Prefetches what the items of a batch need some places before each is reached.
///
/// The loop over the items calls [`advance`](Self::advance) for as many items as it then works on: what comes
/// [`DISTANCE`](Self::DISTANCE) places later is prefetched by the function that was given. All loops of this family of crates that prefetch
/// ahead do it by this type, so that a test can see which memory each would have prefetched.
///
/// ```
/// use blocked_bloom::PrefetchAhead;
/// let (table, places) = (vec![1_u8; 1 << 20], [7_usize, 70_000, 700_000]);
/// let mut ahead = PrefetchAhead::start(&places, |&place| blocked_bloom::prefetch(&table, place));
/// let mut sum = 0;
/// for &place in &places {
///     ahead.advance(1);
///     sum += table[place];
/// }
/// assert_eq!(sum, 3);
/// ```
#[derive(Clone, Debug)]
pub struct PrefetchAhead<'a, T, F> {
    /// What is not prefetched yet.
    later: &'a [T],
    prefetch: F,
}

impl<'a, T, F: FnMut(&T)> PrefetchAhead<'a, T, F> {
    /// Items between the one that is prefetched and the one that is reached: 64.
    pub const DISTANCE: usize = DISTANCE;

    /// Prefetches for the first items of the batch.
    #[inline(always)]
    pub fn start(items: &'a [T], mut prefetch: F) -> Self {
        let (first, later) = items.split_at(DISTANCE.min(items.len()));
        first.iter().for_each(&mut prefetch);
        PrefetchAhead { later, prefetch }
    }

    /// Prefetches for the next `items` items, or as many as are left.
    #[inline(always)]
    pub fn advance(&mut self, items: usize) {
        // Of one item the compiler would make a loop, which costs an insertion by AVX2 a sixth of its time.
        if items == 1 {
            if let [next, later @ ..] = self.later {
                self.later = later;
                (self.prefetch)(next);
            }
            return;
        }
        let (next, later) = self.later.split_at(items.min(self.later.len()));
        self.later = later;
        next.iter().for_each(&mut self.prefetch);
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
        match blocks.as_ptr().addr().is_multiple_of(size_of::<B>()) {
            _ if size_of_val(blocks) <= cache::fits() => Prefetch::No,
            true => Prefetch::OneLine,
            false => Prefetch::TwoLines,
        }
    }

    /// Prefetches the block of every hash.
    #[inline]
    pub(super) fn prefetch(self, blocks: &[Block], hashes: &[u64]) {
        match self {
            Prefetch::No => {}
            Prefetch::OneLine => {
                hashes.iter().for_each(|&hash| prefetch_block::<1, _>(blocks, hash))
            }
            Prefetch::TwoLines => {
                hashes.iter().for_each(|&hash| prefetch_block::<2, _>(blocks, hash))
            }
        }
    }
}

/// Prefetches `LINES` lines of the block of each later key of a batch; nothing if `LINES` is 0.
#[inline(always)]
pub(super) fn ahead_of<'h, const LINES: usize>(
    blocks: &[Block],
    hashes: &'h [u64],
) -> PrefetchAhead<'h, u64, impl FnMut(&u64)> {
    let hashes = if LINES == 0 { &[] } else { hashes };
    PrefetchAhead::start(hashes, |&hash| prefetch_block::<LINES, _>(blocks, hash))
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

/// Prefetches `LINES` lines of the block of a hash, be it of bytes or of atomic words: 2 reach both if it straddles two.
#[inline]
pub(crate) fn prefetch_block<const LINES: usize, B>(blocks: &[B], hash: u64) {
    let index = block_index(hash, blocks.len() as u32) as usize;
    prefetch_lines::<LINES>(blocks.as_ptr().wrapping_add(index));
}
