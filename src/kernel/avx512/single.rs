//! Tests of one key. Up to 8 probes use half registers, since Intel's cores execute more of those
//! operations per cycle.

use core::arch::x86_64::*;

use super::super::avx2::probing_lanes;
use super::super::table::powers;
use crate::probe::Block;

/// `G^0 .. G^15`, one for each lane.
pub(super) const POWERS: [u32; 16] = powers();

/// `G^16`, the factor from one round of a key to the next.
pub(super) const NEXT_ROUND: i32 = powers::<17>()[16] as i32;

/// Whether the block has all bits of the hash.
///
/// # Safety
///
/// See [`Table`](super::super::table::Table).
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
pub(in super::super) unsafe fn contains_one(line: &Block, probes: u32, hash: u64) -> bool {
    match probes {
        ..=8 => SingleTest::<8>::new(probes).contains(line, hash),
        9..=16 => SingleTest::<16>::new(probes).contains(line, hash),
        _ => SingleTest::<32>::new(probes).contains(line, hash),
    }
}

/// The test of one key with up to `LANES` probes.
pub(super) struct SingleTest<const LANES: usize> {
    /// Lanes that hold a probe, and those that do in the second round; for more than 8 probes.
    used: u16,
    used_in_second_round: u16,
    /// A one in every lane that holds a probe; for up to 8 probes.
    ones: __m256i,
}

impl<const LANES: usize> SingleTest<LANES> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    pub(super) fn new(probes: u32) -> Self {
        let lanes = _bzhi_u32(!0, probes);
        SingleTest {
            used: lanes as u16,
            used_in_second_round: (lanes >> 16) as u16,
            ones: probing_lanes(probes as usize),
        }
    }

    /// Whether the block has all bits of the hash.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
    pub(super) fn contains(&self, block: &Block, hash: u64) -> bool {
        watch!(ran("avx512"));
        let half = (hash >> 32) as i32;
        // SAFETY: the 64 bytes of a reference; the load has no alignment to respect.
        let block = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
        // SAFETY: sixteen words; the load has no alignment to respect.
        let powers = unsafe { _mm512_loadu_si512(POWERS.as_ptr().cast()) };
        if LANES > 8 {
            let products = _mm512_mullo_epi32(_mm512_set1_epi32(half), powers);
            let mut absent = missing(self.used, products, block);
            if LANES > 16 {
                let products = _mm512_mullo_epi32(products, _mm512_set1_epi32(NEXT_ROUND));
                absent |= missing(self.used_in_second_round, products, block);
            }
            return absent == 0;
        }
        let powers = _mm512_castsi512_si256(powers);
        let products = _mm256_mullo_epi32(_mm256_set1_epi32(half), powers);
        let word = _mm512_castsi256_si512(_mm256_srli_epi32::<28>(products));
        let words = _mm512_castsi512_si256(_mm512_permutexvar_epi32(word, block));
        // `vptest` sets a flag for all eight probes; a mask register would have to be moved.
        let bits = _mm256_rolv_epi32(self.ones, _mm256_srli_epi32::<23>(products));
        _mm256_testc_si256(words, bits) != 0
    }
}

/// Returns one bit for each lane of `used` whose probe finds a clear bit.
#[inline]
#[target_feature(enable = "avx512f")]
fn missing(used: u16, products: __m512i, block: __m512i) -> u16 {
    let words = _mm512_permutexvar_epi32(_mm512_srli_epi32::<28>(products), block);
    // A rotation takes its count modulo 32.
    let bits = _mm512_rolv_epi32(_mm512_set1_epi32(1), _mm512_srli_epi32::<23>(products));
    _mm512_mask_testn_epi32_mask(used, words, bits)
}
