//! One key against many filters: its mask, and lines that are compared with it.

#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use super::super::prefetch::Prefetch;
use super::super::source::{Source, prefetch_first};
use super::{Probes, load, which_are_zero};
use crate::probe::Block;

/// Sources an iteration: their missing bits are collected together.
const SOURCES: usize = 4;

/// The bits stay in registers: those written one by one would have to be read again in wider pieces, which waits for the stores.
///
/// # Safety
///
/// As [`Table`](super::super::table::Table) says.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn mask(hash: u64, probes: u32) -> Block {
    let scheme = Probes::<1>::new();
    let one = _mm256_set1_epi32(1);
    let eight = _mm256_set1_epi32(1 << 8);
    // Lane j of a half is `1 << (bit - 32 j)`, with counts taken as unsigned: all lanes but one shift their one out.
    let lanes = _mm256_setr_epi32(0, -32, -64, -96, -128, -160, -192, -224);
    let (mut low, mut high) = (_mm256_setzero_si256(), _mm256_setzero_si256());
    let [mut products] = scheme.products((hash >> 32) as u32);
    for first in (0..probes).step_by(8) {
        let bits = _mm256_srli_epi32::<23>(products);
        for lane in 0..(probes - first).min(8) {
            let bit = _mm256_permutevar8x32_epi32(bits, _mm256_set1_epi32(lane as i32));
            let counts = _mm256_add_epi32(bit, lanes);
            low = _mm256_or_si256(low, _mm256_sllv_epi32(one, counts));
            high = _mm256_or_si256(high, _mm256_sllv_epi32(one, _mm256_sub_epi32(counts, eight)));
        }
        products = _mm256_mullo_epi32(products, scheme.next_round);
    }
    let mut mask = [0; 64];
    let halves = mask.as_mut_ptr().cast::<__m256i>();
    // SAFETY: the first 32 bytes of `mask`; the store has no alignment to respect.
    unsafe { _mm256_storeu_si256(halves, low) };
    // SAFETY: its other 32 bytes; `wrapping_add` stays inside the block.
    unsafe { _mm256_storeu_si256(halves.wrapping_add(1), high) };
    mask
}

/// # Safety
///
/// As [`Table`](super::super::table::Table) says.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn covers(
    sources: &[Source<'_>],
    prefetch: Prefetch,
    hash: u64,
    masks: &[Block],
    hits: &mut [u64],
) {
    match (prefetch, masks) {
        (Prefetch::No, [mask]) => each::<0, true>(sources, hash, mask, masks, hits),
        (Prefetch::OneLine, [mask]) => each::<1, true>(sources, hash, mask, masks, hits),
        (Prefetch::TwoLines, [mask]) => each::<2, true>(sources, hash, mask, masks, hits),
        (Prefetch::No, _) => each::<0, false>(sources, hash, &NO_MASK, masks, hits),
        (Prefetch::OneLine, _) => each::<1, false>(sources, hash, &NO_MASK, masks, hits),
        (Prefetch::TwoLines, _) => each::<2, false>(sources, hash, &NO_MASK, masks, hits),
    }
}

/// In place of the single mask where there are several.
const NO_MASK: Block = [0; 64];

/// Prefetches `LINES` lines per source. With `SINGLE`, the mask `single` is that of all and stays in registers.
#[target_feature(enable = "avx2")]
fn each<const LINES: usize, const SINGLE: bool>(
    sources: &[Source<'_>],
    hash: u64,
    single: &Block,
    masks: &[Block],
    hits: &mut [u64],
) {
    let compare = Compare::<SINGLE> { hash, single: halves(single), masks };
    let mut later = prefetch_first::<LINES>(sources, hash).chunks(SOURCES);
    for (sources, word) in sources.chunks(64).zip(hits) {
        let (whole, rest) = sources.as_chunks::<SOURCES>();
        let mut bits = 0;
        for (i, four) in whole.iter().enumerate() {
            if LINES > 0 {
                for source in later.next().unwrap_or_default() {
                    source.prefetch::<LINES>(hash);
                }
            }
            let missing = [
                compare.missing(&four[0]),
                compare.missing(&four[1]),
                compare.missing(&four[2]),
                compare.missing(&four[3]),
            ];
            bits |= which_are_zero(missing) << (i * SOURCES);
        }
        for (i, source) in rest.iter().enumerate() {
            let missing = compare.missing(source);
            let covers = _mm256_testz_si256(missing, missing) as u64;
            bits |= covers << (whole.len() * SOURCES + i);
        }
        *word = bits;
    }
}

/// What all sources have in common.
struct Compare<'a, const SINGLE: bool> {
    hash: u64,
    single: (__m256i, __m256i),
    masks: &'a [Block],
}

impl<const SINGLE: bool> Compare<'_, SINGLE> {
    /// The bits of the mask that are missing in the source's line, both halves in one register.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn missing(&self, source: &Source<'_>) -> __m256i {
        let (low, high) = halves(source.line(self.hash));
        let mask = if SINGLE { self.single } else { halves(&self.masks[source.mask()]) };
        _mm256_or_si256(_mm256_andnot_si256(low, mask.0), _mm256_andnot_si256(high, mask.1))
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn halves(block: &Block) -> (__m256i, __m256i) {
    // SAFETY: a reference may be read.
    unsafe { load(block) }
}
