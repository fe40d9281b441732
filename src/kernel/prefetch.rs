//! Prefetching: which lines, how far ahead, and when not.

use super::cache;
use super::tuning::Tuning;
use crate::probe::{Block, block_index};

/// Prefetch distance, in keys. For a filter in the third-level cache 16 are enough, and 5 % faster.
/// From memory 32 take 15 % longer than 64, 16 take 40 % longer, and 128 are no faster (Zen 3).
const DISTANCE: usize = 64;

/// The level that insertions, and calls of few keys, prefetch into; see [`Tuning::level`].
pub(crate) const FAR: u8 = if cfg!(target_arch = "aarch64") { 1 } else { 2 };

/// Prefetches what the items of a batch need some places before each is reached.
///
/// The loop over the items calls [`advance`](Self::advance) for as many items as it then works on:
/// what comes [`DISTANCE`](Self::DISTANCE) places later is prefetched by the function that was
/// given. Loops that work on an item, or on a few, between prefetches use this type; what is
/// prefetched in whole groups, or as soon as it is hashed, is prefetched without it.
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
        // For one item the loop below would cost an insertion by AVX2 a sixth of its time.
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
    Off,
    OneLine,
    /// A borrowed filter whose blocks straddle two lines.
    TwoLines,
}

impl Prefetch {
    /// For a filter of these blocks.
    #[inline]
    pub(crate) fn for_blocks<B>(blocks: &[B]) -> Self {
        Self::for_cache(cache::fits(), blocks)
    }

    /// Prefetches the block of every hash into the first level or the second.
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

    /// For a filter of these blocks if that is larger than so many bytes.
    #[inline]
    pub(super) fn for_cache<B>(bytes: usize, blocks: &[B]) -> Self {
        match blocks.as_ptr().addr().is_multiple_of(size_of::<B>()) {
            _ if size_of_val(blocks) <= bytes => Prefetch::Off,
            true => Prefetch::OneLine,
            false => Prefetch::TwoLines,
        }
    }
}

/// How a call of more than 64 hashes prefetches.
#[derive(Clone, Copy)]
pub(crate) enum PrefetchPlan {
    /// The kernel does between its tests, or not at all.
    PerKey(Prefetch),
    /// Groups of 64 before the first of them is tested.
    Groups(Prefetch, &'static Tuning),
}

impl PrefetchPlan {
    /// Into a cache into which so much fits.
    pub(super) fn new(tuning: &'static Tuning, fits: usize, blocks: &[Block]) -> Self {
        let beyond = |times| Prefetch::for_cache(fits.saturating_mul(times), blocks);
        match (beyond(tuning.long_calls), beyond(tuning.groups)) {
            (prefetch @ Prefetch::Off, _) | (prefetch, Prefetch::Off) => {
                PrefetchPlan::PerKey(prefetch)
            }
            (prefetch, _) => PrefetchPlan::Groups(prefetch, tuning),
        }
    }

    /// Prefetches the block of every hash of a group; nothing between tests.
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

/// Prefetches `LINES` lines of the block of each later key of a batch; nothing if `LINES` is 0.
#[cfg_attr(not(feature = "portable"), allow(dead_code, reason = "for the SIMD kernels"))]
#[inline(always)]
pub(super) fn prefetcher<'h, const LINES: usize>(
    blocks: &[Block],
    hashes: &'h [u64],
) -> PrefetchAhead<'h, u64, impl FnMut(&u64)> {
    let hashes = if LINES == 0 { &[] } else { hashes };
    PrefetchAhead::start(hashes, |&hash| prefetch_block::<LINES, 1, _>(blocks, hash))
}

/// Prefetches the line at `block` into the cache of this level, 1 or 2, and with `LINES = 2` the
/// one its last byte is in; nothing where no instruction is known.
#[inline]
pub(super) fn prefetch_lines<const LINES: usize, const LEVEL: u8>(block: *const impl Sized) {
    let last_byte = block.wrapping_add(1).cast::<u8>().wrapping_sub(1);
    for line in [block.cast(), last_byte].into_iter().take(LINES) {
        watch!(prefetched(line));
        #[cfg(target_arch = "x86_64")]
        {
            use core::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
            match LEVEL {
                // SAFETY: SSE is part of x86-64, and a prefetch reads nothing: any address will do.
                1 => unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) },
                // SAFETY: as above.
                _ => unsafe { _mm_prefetch::<_MM_HINT_T1>(line.cast()) },
            }
        }
        // SAFETY: a prefetch reads nothing: any address will do.
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

/// Prefetches the cache line of the byte at `offset` of the slice's memory: for filters of other
/// packages, whose probes are not in one block, or whose words are atomic. Nothing where no
/// instruction is known; any offset will do, also one outside the slice.
#[inline]
pub fn prefetch<T>(memory: &[T], offset: usize) {
    prefetch_lines::<1, FAR>(memory.as_ptr().cast::<u8>().wrapping_add(offset));
}

/// Prefetches `LINES` lines of a hash's block, of bytes or atomic words: 2 if it may straddle two.
#[inline]
pub(crate) fn prefetch_block<const LINES: usize, const LEVEL: u8, B>(blocks: &[B], hash: u64) {
    let index = block_index(hash, blocks.len() as u32) as usize;
    prefetch_lines::<LINES, LEVEL>(blocks.as_ptr().wrapping_add(index));
}
