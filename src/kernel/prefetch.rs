//! Prefetching: which cache lines, how far ahead, and when it does not pay.

use super::cache;
use super::tuning::Tuning;
use crate::probe::{Block, block_index};

/// Prefetch distance, in keys. In the third-level cache, a distance of 16 suffices and is 5 %
/// faster. From memory, 32 takes 15 % longer than 64, 16 takes 40 % longer, and 128 is not faster
/// (Zen 3).
const DISTANCE: usize = 64;

/// Cache level into which insertions and calls with few keys prefetch; see [`Tuning::level`].
pub(crate) const FAR: u8 = if cfg!(target_arch = "aarch64") { 1 } else { 2 };

/// Prefetches the memory of later items while a loop processes the items of a batch.
///
/// The loop calls [`advance`](Self::advance) with the number of items that it is about to process,
/// and the type then prefetches for the items [`DISTANCE`](Self::DISTANCE) places later, with the
/// function passed to [`start`](Self::start).
///
/// ```
/// use blocked_bloom::parts::{PrefetchAhead, prefetch};
/// let (table, places) = (vec![1_u8; 1 << 20], [7_usize, 70_000, 700_000]);
/// let mut ahead = PrefetchAhead::start(&places, |&place| prefetch(&table, place));
/// let mut sum = 0;
/// for &place in &places {
///     ahead.advance(1);
///     sum += table[place];
/// }
/// assert_eq!(sum, 3);
/// ```
#[derive(Clone, Debug)]
pub struct PrefetchAhead<'a, T, F> {
    /// Items that are not prefetched yet.
    later: &'a [T],
    prefetch: F,
}

impl<'a, T, F: FnMut(&T)> PrefetchAhead<'a, T, F> {
    /// Number of items between the one being prefetched and the one being processed: 64.
    pub const DISTANCE: usize = DISTANCE;

    /// Prefetches for the first [`DISTANCE`](Self::DISTANCE) items of the batch.
    #[inline(always)]
    pub fn start(items: &'a [T], mut prefetch: F) -> Self {
        let (first, later) = items.split_at(DISTANCE.min(items.len()));
        first.iter().for_each(&mut prefetch);
        PrefetchAhead { later, prefetch }
    }

    /// Prefetches for the next `items` items, or for the remaining ones if fewer are left.
    #[inline(always)]
    pub fn advance(&mut self, items: usize) {
        // For one item, the loop below would make an insertion with AVX2 20 % slower.
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

/// How many cache lines of a block are prefetched before the block is tested.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefetch {
    /// None: the filter fits the cache, or its lines were prefetched before.
    Off,
    OneLine,
    /// Two: the filter borrows blocks that straddle two cache lines.
    TwoLines,
}

impl Prefetch {
    /// The kind for a filter with these blocks.
    #[inline]
    pub(crate) fn for_blocks<B>(blocks: &[B]) -> Self {
        Self::for_cache(cache::fits(), blocks)
    }

    /// Prefetches the block of every hash into cache level 1 or 2.
    #[inline]
    pub(super) fn prefetch_each<const LEVEL: u8>(self, blocks: &[Block], hashes: &[u64]) {
        let each =
            |prefetch: fn(&[Block], u64)| hashes.iter().for_each(|&hash| prefetch(blocks, hash));
        match self {
            Prefetch::Off => {}
            Prefetch::OneLine => each(prefetch_block::<1, LEVEL, _>),
            Prefetch::TwoLines => each(prefetch_block::<2, LEVEL, _>),
        }
    }

    /// The kind for a filter with these blocks, which needs none up to a size of `bytes`.
    #[inline]
    pub(super) fn for_cache<B>(bytes: usize, blocks: &[B]) -> Self {
        match blocks.as_ptr().addr().is_multiple_of(size_of::<B>()) {
            _ if size_of_val(blocks) <= bytes => Prefetch::Off,
            true => Prefetch::OneLine,
            false => Prefetch::TwoLines,
        }
    }
}

/// How a call with more than 64 hashes prefetches.
#[derive(Clone, Copy)]
pub(crate) enum PrefetchPlan {
    /// The kernel prefetches between its tests, or not at all.
    PerKey(Prefetch),
    /// Whole groups of 64 are prefetched before any hash of the group is tested.
    Groups(Prefetch, &'static Tuning),
}

impl PrefetchPlan {
    /// The plan for these blocks if `fits` bytes fit the cache.
    pub(super) fn new(tuning: &'static Tuning, fits: usize, blocks: &[Block]) -> Self {
        let beyond = |times| Prefetch::for_cache(fits.saturating_mul(times), blocks);
        match (beyond(tuning.long_calls), beyond(tuning.groups)) {
            (prefetch @ Prefetch::Off, _) | (prefetch, Prefetch::Off) => {
                PrefetchPlan::PerKey(prefetch)
            }
            (prefetch, _) => PrefetchPlan::Groups(prefetch, tuning),
        }
    }

    /// Prefetches the block of every hash of a group. Does nothing for
    /// [`PerKey`](Self::PerKey).
    #[inline]
    pub(crate) fn prefetch(self, blocks: &[Block], hashes: &[u64]) {
        match self {
            PrefetchPlan::PerKey(_) => {}
            PrefetchPlan::Groups(prefetch, Tuning { level: 1, .. }) => {
                prefetch.prefetch_each::<1>(blocks, hashes)
            }
            PrefetchPlan::Groups(prefetch, _) => prefetch.prefetch_each::<2>(blocks, hashes),
        }
    }
}

/// Prefetches `LINES` cache lines of the block of each later key of a batch, nothing if 0.
#[cfg_attr(not(feature = "portable"), allow(dead_code, reason = "for the SIMD kernels"))]
#[inline(always)]
pub(super) fn prefetcher<'h, const LINES: usize>(
    blocks: &[Block],
    hashes: &'h [u64],
) -> PrefetchAhead<'h, u64, impl FnMut(&u64)> {
    let hashes = if LINES == 0 { &[] } else { hashes };
    PrefetchAhead::start(hashes, |&hash| prefetch_block::<LINES, 1, _>(blocks, hash))
}

/// Prefetches the cache line at `block` into cache level 1 or 2 and, if `LINES` is 2, the line that
/// holds the block's last byte. Does nothing on machines without a known instruction.
#[inline]
pub(super) fn prefetch_lines<const LINES: usize, const LEVEL: u8>(block: *const impl Sized) {
    let last_byte = block.wrapping_add(1).cast::<u8>().wrapping_sub(1);
    for line in [block.cast(), last_byte].into_iter().take(LINES) {
        watch!(prefetched(line));
        #[cfg(target_arch = "x86_64")]
        {
            use core::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
            match LEVEL {
                // SAFETY: SSE is part of x86-64, and a prefetch accepts any address: it never
                // faults and reads nothing into the program.
                1 => unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) },
                // SAFETY: SSE is part of x86-64, and a prefetch accepts any address.
                _ => unsafe { _mm_prefetch::<_MM_HINT_T1>(line.cast()) },
            }
        }
        // SAFETY: a prefetch accepts any address: it never faults and changes no register.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            core::arch::asm!(
                "prfm pldl{level}keep, [{line}]", level = const LEVEL, line = in(reg) line,
                options(nostack, preserves_flags, readonly)
            );
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let _ = line;
    }
}

/// Prefetches the cache line that holds the byte at `offset` in the memory of a slice.
///
/// For filters in other packages whose probes do not share a block, or whose words are atomic. Any
/// offset is accepted, even outside the slice. Does nothing on machines without a known
/// instruction.
#[inline]
pub fn prefetch<T>(memory: &[T], offset: usize) {
    prefetch_lines::<1, FAR>(memory.as_ptr().cast::<u8>().wrapping_add(offset));
}

/// Prefetches `LINES` cache lines of a hash's block, which consists of bytes or atomic words.
/// `LINES` must be 2 if blocks may straddle two lines.
#[inline]
pub(crate) fn prefetch_block<const LINES: usize, const LEVEL: u8, B>(blocks: &[B], hash: u64) {
    let index = block_index(hash, blocks.len() as u32) as usize;
    prefetch_lines::<LINES, LEVEL>(blocks.as_ptr().wrapping_add(index));
}
