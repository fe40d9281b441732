//! The memory-bound baseline: two loops that load one line per key and test nothing. The faster is a reference, not a bound: other orders of
//! the same loads may be faster still.
#![expect(unsafe_code, reason = "loops as fast as the machine allows, to measure filters against")]

use crate::memory::{Line, fastrange, prefetch};

/// Prefetch distance, in keys.
pub(crate) const AHEAD: usize = 128;

/// Loads the line of every hash and ORs it into one. With `ahead`, lines are prefetched.
pub(crate) fn load_lines(lines: &[Line], hashes: &[u64], ahead: bool) -> u64 {
    assert!(!lines.is_empty() && u32::try_from(lines.len()).is_ok());
    for &hash in hashes.iter().take(if ahead { AHEAD } else { 0 }) {
        prefetch(lines.as_ptr().wrapping_add(fastrange(hash as u32, lines.len())));
    }
    // SAFETY: `widest` found the instructions; the number of lines was checked.
    unsafe { widest(ahead)(lines, hashes) }
}

type Load = unsafe fn(&[Line], &[u64]) -> u64;

fn widest(ahead: bool) -> Load {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            return if ahead { load_avx512::<AHEAD> } else { load_avx512::<0> };
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            return if ahead { load_avx2::<AHEAD> } else { load_avx2::<0> };
        }
    }
    if ahead { load::<AHEAD> } else { load::<0> }
}

/// # Safety
///
/// There is AVX-512, and `1 <= lines.len() < 2^32`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn load_avx512<const AHEAD: usize>(lines: &[Line], hashes: &[u64]) -> u64 {
    use core::arch::x86_64::*;
    // The compiler would rather use registers of half the width.
    let mut all = _mm512_setzero_si512();
    let line = |hash: u64| lines.as_ptr().wrapping_add(fastrange(hash as u32, lines.len()));
    for (i, &hash) in hashes.iter().enumerate() {
        if AHEAD > 0
            && let Some(&later) = hashes.get(i + AHEAD)
        {
            prefetch(line(later));
        }
        // SAFETY: `fastrange` gives an index below the number of lines.
        all = _mm512_or_si512(all, unsafe { _mm512_loadu_si512(line(hash).cast()) });
    }
    _mm512_reduce_or_epi64(all) as u64
}

/// # Safety
///
/// There is AVX2, and `1 <= lines.len() < 2^32`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn load_avx2<const AHEAD: usize>(lines: &[Line], hashes: &[u64]) -> u64 {
    // SAFETY: passed on.
    unsafe { load::<AHEAD>(lines, hashes) }
}

/// # Safety
///
/// `1 <= lines.len() < 2^32`.
#[inline(always)]
unsafe fn load<const AHEAD: usize>(lines: &[Line], hashes: &[u64]) -> u64 {
    let line = |hash: u64| lines.as_ptr().wrapping_add(fastrange(hash as u32, lines.len()));
    let mut all = [0_u64; 8];
    for (i, &hash) in hashes.iter().enumerate() {
        if AHEAD > 0
            && let Some(&later) = hashes.get(i + AHEAD)
        {
            prefetch(line(later));
        }
        // SAFETY: `fastrange` gives an index below the number of lines; eight words are as long as a line.
        let words = unsafe { line(hash).cast::<[u64; 8]>().read_unaligned() };
        for (all, word) in all.iter_mut().zip(words) {
            *all |= word;
        }
    }
    all.iter().fold(0, |all, word| all | word)
}
