//! One key, and a call of few: no stores that later loads would wait for, and for up to 8 probes registers of half the width, of which
//! Intel's cores run more at a time.

use core::arch::x86_64::*;

use super::super::avx2::ones_of;
use super::super::driver::for_each_of_few;
use super::super::prefetch::Prefetch;
use super::super::table::{address, powers};
use super::query::{Test, word};
use crate::probe::Block;

/// Up to so many hashes of a call are tested one by one: what a batch prepares takes longer.
const ONE_BY_ONE: usize = 16;

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

/// # Safety
///
/// As [`Table`](super::super::table::Table) says.
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "one arm of a match")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
pub(super) unsafe fn few(blocks: &[Block], probes: u32, hashes: &[u64]) -> u64 {
    if let [hash] = *hashes {
        // SAFETY: the caller promised the number of blocks.
        let block = unsafe { address(blocks, hash) };
        // SAFETY: it is one of `blocks`.
        let block = unsafe { &*block };
        // SAFETY: the caller's promises are passed on.
        return unsafe { one(block, probes, hash) }.into();
    }
    // SAFETY: the caller's promises are passed on.
    unsafe {
        match probes {
            ..=8 => few_of::<8>(blocks, probes, hashes),
            9..=16 => few_of::<16>(blocks, probes, hashes),
            _ => few_of::<32>(blocks, probes, hashes),
        }
    }
}

/// # Safety
///
/// As [`Table`](super::super::table::Table) says, and `probes <= LANES`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi2")]
unsafe fn few_of<const LANES: usize>(blocks: &[Block], probes: u32, hashes: &[u64]) -> u64 {
    Prefetch::of(blocks).prefetch(blocks, hashes);
    if hashes.len() > ONE_BY_ONE {
        // SAFETY: the caller's promises are passed on.
        return unsafe { word::<LANES>(blocks, probes, hashes) };
    }
    let test = One::<LANES>::new(probes);
    for_each_of_few(hashes, |&hash| {
        // SAFETY: the caller promised the number of blocks.
        let block = unsafe { address(blocks, hash) };
        // SAFETY: it is one of `blocks`.
        test.contains(unsafe { &*block }, hash)
    })
}

/// Up to `LANES` probes.
struct One<const LANES: usize> {
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
    fn new(probes: u32) -> Self {
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
    fn contains(&self, block: &Block, hash: u64) -> bool {
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
