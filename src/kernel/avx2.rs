//! AVX2: eight probes of one key in a register, tested with one `vptest`; keys one after the other.
//!
//! The 64-byte line is two registers; a probe's top bit picks the half, the next three the 32-bit word, five more the bit.
//! Inserting a batch gains too little over scalar here to have code of its own.

#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use super::{Table, scalar};
use crate::probe::{Block, MULTIPLIER, block_index};

cpufeatures::new!(detect, "avx2");

pub(super) const TABLE: Table =
    Table { name: "avx2", is_supported: detect::get, contains, ..scalar::TABLE };

/// Filters above this size outgrow the second-level cache: request lines ahead.
const PREFETCH_FROM_BYTES: usize = 512 << 10;
/// Keys between a request and its test.
const AHEAD: usize = 64;

/// `G^0 .. G^7`: one multiplication makes eight probes.
const POWERS: [u32; 8] = {
    let mut powers = [1_u32; 8];
    let mut i = 1;
    while i < 8 {
        powers[i] = powers[i - 1].wrapping_mul(MULTIPLIER);
        i += 1;
    }
    powers
};
/// `G^8`: from one round of eight probes to the next.
const NEXT_ROUND: u32 = POWERS[7].wrapping_mul(MULTIPLIER);

/// # Safety
///
/// As [`Table`] says.
#[target_feature(enable = "avx2")]
unsafe fn contains(blocks: &[Block], probes: u32, hashes: &[u64], hits: &mut [u64]) {
    let ahead = if size_of_val(blocks) > PREFETCH_FROM_BYTES { AHEAD } else { usize::MAX };
    let mut upcoming = hashes.get(ahead..).unwrap_or_default().iter();
    if ahead == AHEAD {
        for &hash in hashes.iter().take(AHEAD) {
            prefetch(blocks, hash);
        }
    }
    let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let powers = _mm256_setr_epi32(
        POWERS[0] as i32,
        POWERS[1] as i32,
        POWERS[2] as i32,
        POWERS[3] as i32,
        POWERS[4] as i32,
        POWERS[5] as i32,
        POWERS[6] as i32,
        POWERS[7] as i32,
    );
    // A one in every lane that probes, zero in the rest: unused lanes make an empty mask.
    let ones = |first: u32| {
        let used = _mm256_set1_epi32(probes as i32 - first as i32);
        _mm256_srli_epi32::<31>(_mm256_cmpgt_epi32(used, lanes))
    };
    let rounds = [ones(0), ones(8), ones(16), ones(24)];
    let rounds = &rounds[..probes.div_ceil(8) as usize];

    for (keys, word) in hashes.chunks(64).zip(hits) {
        let mut bits = 0;
        for (i, &hash) in keys.iter().enumerate() {
            if let Some(&next) = upcoming.next() {
                prefetch(blocks, next);
            }
            bits |= u64::from(test(line(blocks, hash), (hash >> 32) as u32, powers, rounds)) << i;
        }
        *word = bits;
    }
}

/// Whether all probes of `hi` are set in the line.
#[inline]
#[target_feature(enable = "avx2")]
fn test((low, high): (__m256i, __m256i), hi: u32, powers: __m256i, rounds: &[__m256i]) -> bool {
    let mut probes = _mm256_mullo_epi32(_mm256_set1_epi32(hi as i32), powers);
    let mut all = true;
    for &ones in rounds {
        let word = _mm256_srli_epi32::<28>(probes);
        let from_low = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(low, word));
        let from_high = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(high, word));
        // `vblendvps` looks at the sign, which is the top bit of the word's index.
        let words = _mm256_blendv_ps(from_low, from_high, _mm256_castsi256_ps(probes));
        let bit = _mm256_srli_epi32::<27>(_mm256_slli_epi32::<4>(probes));
        let mask = _mm256_sllv_epi32(ones, bit);
        all &= _mm256_testc_si256(_mm256_castps_si256(words), mask) == 1;
        probes = _mm256_mullo_epi32(probes, _mm256_set1_epi32(NEXT_ROUND as i32));
    }
    all
}

/// Both halves of the hash's block.
#[inline]
#[target_feature(enable = "avx2")]
fn line(blocks: &[Block], hash: u64) -> (__m256i, __m256i) {
    let block = blocks[block_index(hash, blocks.len() as u32) as usize].as_ptr();
    // SAFETY: `block` points at the first of the 64 bytes of a `Block`; the load has no alignment to respect.
    let low = unsafe { _mm256_loadu_si256(block.cast()) };
    // SAFETY: byte 32 of the same 64.
    let high = unsafe { block.add(32) };
    // SAFETY: bytes 32 to 63 of the same 64.
    let high = unsafe { _mm256_loadu_si256(high.cast()) };
    (low, high)
}

#[inline]
#[target_feature(enable = "avx2")]
fn prefetch(blocks: &[Block], hash: u64) {
    let block = blocks[block_index(hash, blocks.len() as u32) as usize].as_ptr();
    // SAFETY: byte 63 of the 64 bytes of a `Block`: a borrowed block may straddle two lines, and this is in the second.
    let last = unsafe { block.add(63) };
    _mm_prefetch::<_MM_HINT_T0>(block.cast());
    _mm_prefetch::<_MM_HINT_T0>(last.cast());
}
