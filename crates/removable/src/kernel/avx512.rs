//! AVX-512: a line in one register, the places of eight keys computed at a time.

use core::arch::x86_64::*;

use blocked_bloom::Block;

use super::Table;
use super::driver::{self, KEYS, Places};
use crate::tags::MULTIPLIER;

pub(super) const TABLE: Table = Table {
    contains: [contains::<0>, contains::<1>, contains::<2>],
    insert: [insert::<0>, insert::<1>],
    remove: [remove::<0>, remove::<1>],
};

/// # Safety
///
/// As [`Table`] says.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,popcnt")]
unsafe fn contains<const AHEAD: usize>(lines: &[Block], hashes: &[u64], hits: &mut [u64]) {
    let count = lines.len() as u32;
    driver::contains::<AHEAD>(
        lines,
        hashes,
        hits,
        |keys| places(keys, count),
        |first, second, tags| either(first, second, tags),
    );
}

/// # Safety
///
/// As [`Table`] says.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,popcnt")]
unsafe fn insert<const AHEAD: usize>(lines: &mut [Block], hashes: &[u64]) -> usize {
    let count = lines.len() as u32;
    driver::insert::<AHEAD>(
        lines,
        hashes,
        |keys| places(keys, count),
        |line, tags| equal(line, tags),
    )
}

/// # Safety
///
/// As [`Table`] says.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,popcnt")]
unsafe fn remove<const AHEAD: usize>(
    lines: &mut [Block],
    hashes: &[u64],
    found: &mut [u64],
) -> usize {
    let count = lines.len() as u32;
    driver::remove::<AHEAD>(
        lines,
        hashes,
        found,
        |keys| places(keys, count),
        |line, tags| equal(line, tags),
    )
}

/// [`Place::of`](crate::tags::Place::of) of eight hashes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,popcnt")]
pub(super) fn places(hashes: &[u64; KEYS], count: u32) -> Places {
    // SAFETY: eight words; the load has no alignment to respect.
    let hashes = unsafe { _mm512_loadu_si512(hashes.as_ptr().cast()) };
    let count = _mm512_set1_epi64(count.into());
    // The highest 16 bits of each hash, in all four lanes of its word.
    let highest = _mm512_set4_epi32(0x0f0e_0f0e, 0x0f0e_0f0e, 0x0706_0706, 0x0706_0706);
    let tags = _mm512_max_epu16(_mm512_shuffle_epi8(hashes, highest), _mm512_set1_epi16(1));
    // `vpmuludq` multiplies the low halves.
    let first = _mm512_srli_epi64::<32>(_mm512_mul_epu32(hashes, count));
    let multiplier = _mm512_set1_epi64(MULTIPLIER.into());
    let product = _mm512_mul_epu32(_mm512_srli_epi64::<48>(tags), multiplier);
    let sum = _mm512_srli_epi64::<32>(_mm512_mul_epu32(product, count));
    // Below zero the difference is a large number, and the sum with the count the smaller one.
    let difference = _mm512_sub_epi64(sum, first);
    let second = _mm512_min_epu64(difference, _mm512_add_epi64(difference, count));
    let (first, second) = (_mm512_cvtepi64_epi32(first), _mm512_cvtepi64_epi32(second));
    let mut places = Places { first: [0; KEYS], second: [0; KEYS], tags: [0; KEYS] };
    // SAFETY: eight words of 32 bits; the store has no alignment to respect.
    unsafe { _mm256_storeu_si256(places.first.as_mut_ptr().cast(), first) };
    // SAFETY: eight words of 32 bits; the store has no alignment to respect.
    unsafe { _mm256_storeu_si256(places.second.as_mut_ptr().cast(), second) };
    // SAFETY: eight words of 64 bits; the store has no alignment to respect.
    unsafe { _mm512_storeu_si512(places.tags.as_mut_ptr().cast(), tags) };
    places
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,popcnt")]
fn load(line: &Block) -> __m512i {
    // SAFETY: the 64 bytes of the reference; the load has no alignment to respect.
    unsafe { _mm512_loadu_si512(line.as_ptr().cast()) }
}

/// Whether a lane of one of the lines equals the tag.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,popcnt")]
fn either(first: &Block, second: &Block, tags: u64) -> bool {
    let tags = _mm512_set1_epi64(tags as i64);
    let first = _mm512_cmpeq_epi16_mask(load(first), tags);
    let second = _mm512_cmpeq_epi16_mask(load(second), tags);
    first | second != 0
}

/// A bit for each lane, set if it equals the tag.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,popcnt")]
fn equal(line: &Block, tags: u64) -> u32 {
    _mm512_cmpeq_epi16_mask(load(line), _mm512_set1_epi64(tags as i64))
}
