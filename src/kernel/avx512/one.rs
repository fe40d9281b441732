//! One key: for up to 8 probes in registers of half the width, of which Intel's cores run more at a time.

use core::arch::x86_64::*;

use super::super::avx2::ones_of;
use super::super::table::powers;
use super::query::Test;
use crate::probe::Block;

/// # Safety
///
/// As [`Table`](super::super::table::Table) says.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
pub(in super::super) unsafe fn one(line: &Block, probes: u32, hash: u64) -> bool {
    match probes {
        ..=8 => One::<8>::new(probes).contains(line, hash),
        9..=16 => One::<16>::new(probes).contains(line, hash),
        _ => One::<32>::new(probes).contains(line, hash),
    }
}

/// Up to `LANES` probes.
pub(super) struct One<const LANES: usize> {
    /// For more than 8.
    test: Test<'static, LANES>,
    /// `G^0 .. G^7`.
    powers: __m256i,
    /// A one in every lane that probes.
    ones: __m256i,
}

impl<const LANES: usize> One<LANES> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    pub(super) fn new(probes: u32) -> Self {
        const POWERS: [u32; 8] = powers();
        One {
            test: Test::new(&[], probes),
            // SAFETY: eight words; the load has no alignment to respect.
            powers: unsafe { _mm256_loadu_si256(POWERS.as_ptr().cast()) },
            ones: ones_of(probes as usize),
        }
    }

    /// Whether the block has all bits of the hash.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    pub(super) fn contains(&self, block: &Block, hash: u64) -> bool {
        watch!(ran("avx512"));
        let half = (hash >> 32) as u32;
        // SAFETY: the 64 bytes of a reference; the load has no alignment to respect.
        let block = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
        if LANES > 8 {
            return self.test.single(half, block) == 0;
        }
        let products = _mm256_mullo_epi32(_mm256_set1_epi32(half as i32), self.powers);
        let word = _mm512_castsi256_si512(_mm256_srli_epi32::<28>(products));
        let words = _mm512_castsi512_si256(_mm512_permutexvar_epi32(word, block));
        // `vptest` makes a flag of eight probes, where a mask register would have to be moved first.
        let bits = _mm256_rolv_epi32(self.ones, _mm256_srli_epi32::<23>(products));
        _mm256_testc_si256(words, bits) != 0
    }
}
