//! RocksDB's lookup of one key in a block of its Bloom filters (format_version 5 and later), re-created from a description of its loop; no
//! line of it is copied. Included by the benches and by `compare`.
#![expect(unsafe_code, reason = "AVX2 intrinsics, as in the original")]
#![allow(unreachable_pub, reason = "the benches include this file as a public module")]

use core::arch::x86_64::*;

/// Whether all probes of `word` are set in the line.
///
/// # Safety
///
/// Callers without AVX2 of their own must have found it.
#[inline]
#[target_feature(enable = "avx2")]
pub fn may_match(mut word: u32, probes: u32, line: &[u8; 64]) -> bool {
    let powers = _mm256_setr_epi32(
        1,
        0x9e37_79b9_u32 as i32,
        0xe35e_67b1_u32 as i32,
        0x7342_97e9,
        0x35fb_e861,
        0xdeb7_c719_u32 as i32,
        0x0448_b211,
        0x3459_b749,
    );
    let (low, high) = line.split_at(32);
    // SAFETY: 32 bytes, at any alignment.
    let low = unsafe { _mm256_loadu_si256(low.as_ptr().cast()) };
    // SAFETY: as above.
    let high = unsafe { _mm256_loadu_si256(high.as_ptr().cast()) };
    let mut left = probes as i32;
    loop {
        let products = _mm256_mullo_epi32(_mm256_set1_epi32(word as i32), powers);
        // The top four bits choose one of 16 words: three of them within each half, the first which half.
        let within = _mm256_srli_epi32::<28>(products);
        let from_low = _mm256_permutevar8x32_epi32(low, within);
        let from_high = _mm256_permutevar8x32_epi32(high, within);
        let half = _mm256_srai_epi32::<31>(products);
        let words = _mm256_blendv_epi8(from_low, from_high, half);
        // Lanes past the number of probes have no bit to test: lane number minus probes is not negative there.
        let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let wanted = _mm256_srli_epi32::<31>(_mm256_sub_epi32(lanes, _mm256_set1_epi32(left)));
        let bit = _mm256_srli_epi32::<27>(_mm256_slli_epi32::<4>(products));
        let all_set = _mm256_testc_si256(words, _mm256_sllv_epi32(wanted, bit)) != 0;
        if left <= 8 {
            return all_set;
        }
        if !all_set {
            return false;
        }
        word = word.wrapping_mul(0xab25_f4c1);
        left -= 8;
    }
}
