//! One key against many filters: its mask, and lines that are compared with it. One load, one and-not and one test a line.

use core::arch::x86_64::*;

use super::super::prefetch::Prefetch;
use super::super::source::{Source, prefetch_first};
use super::super::table::powers;
use crate::probe::Block;

/// # Safety
///
/// As [`Table`](super::super::table::Table) says.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
pub(super) unsafe fn mask(hash: u64, probes: u32) -> Block {
    const POWERS: [u32; 17] = powers();
    // SAFETY: sixteen of seventeen words; the load has no alignment to respect.
    let powers = unsafe { _mm512_loadu_si512(POWERS.as_ptr().cast()) };
    let one = _mm512_set1_epi32(1);
    // Lane j of the mask is `1 << (bit - 32 j)`, with counts taken as unsigned: all lanes but one shift their one out.
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let lanes = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(-32));
    let mut mask = _mm512_setzero_si512();
    let mut products = _mm512_mullo_epi32(_mm512_set1_epi32((hash >> 32) as i32), powers);
    for first in (0..probes).step_by(16) {
        let bits = _mm512_srli_epi32::<23>(products);
        for lane in 0..(probes - first).min(16) {
            let bit = _mm512_permutexvar_epi32(_mm512_set1_epi32(lane as i32), bits);
            mask = _mm512_or_si512(mask, _mm512_sllv_epi32(one, _mm512_add_epi32(bit, lanes)));
        }
        products = _mm512_mullo_epi32(products, _mm512_set1_epi32(POWERS[16] as i32));
    }
    let mut block = [0; 64];
    // SAFETY: the 64 bytes of `block`; the store has no alignment to respect.
    unsafe { _mm512_storeu_si512(block.as_mut_ptr().cast(), mask) };
    block
}

/// # Safety
///
/// As [`Table`](super::super::table::Table) says.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
pub(super) unsafe fn covers(
    sources: &[Source<'_>],
    prefetch: Prefetch,
    hash: u64,
    masks: &[Block],
    hits: &mut [u64],
) {
    match prefetch {
        Prefetch::No => each::<0>(sources, hash, masks, hits),
        Prefetch::OneLine => each::<1>(sources, hash, masks, hits),
        Prefetch::TwoLines => each::<2>(sources, hash, masks, hits),
    }
}

/// Prefetches `LINES` lines per source.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
fn each<const LINES: usize>(sources: &[Source<'_>], hash: u64, masks: &[Block], hits: &mut [u64]) {
    let mut later = prefetch_first::<LINES>(sources, hash).iter();
    for (sources, word) in sources.chunks(64).zip(hits) {
        let mut bits = 0;
        for (i, source) in sources.iter().enumerate() {
            if LINES > 0
                && let Some(source) = later.next()
            {
                source.prefetch::<LINES>(hash);
            }
            let mask = if let [mask] = masks { mask } else { &masks[source.mask()] };
            let missing = _mm512_andnot_si512(load(source.line(hash)), load(mask));
            bits |= u64::from(_mm512_test_epi64_mask(missing, missing) == 0) << i;
        }
        *word = bits;
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
fn load(block: &Block) -> __m512i {
    // SAFETY: the 64 bytes of a reference; the load has no alignment to respect.
    unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
}
