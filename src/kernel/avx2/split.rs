//! AVX2: one split block in a register; four keys a turn, whose results are collected together.

#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use super::super::split::{Table, address, for_each_ahead};
use super::super::{Ahead, Prefetch};
use super::{KEYS, halves, which_are_zero};
use crate::probe::split_block::{SALTS, SplitBlock};

pub(in super::super) const TABLE: Table = Table { contains, insert };

/// # Safety
///
/// As [`Table`] says.
#[target_feature(enable = "avx2")]
unsafe fn contains(
    blocks: &[SplitBlock],
    ahead: Ahead<'_, SplitBlock>,
    hashes: &[u64],
    hits: &mut [u64],
) {
    let batch = match ahead.prefetch {
        Prefetch::No => batch::<0>,
        Prefetch::OneLine => batch::<1>,
        Prefetch::TwoLines => batch::<2>,
    };
    // SAFETY: the caller's promises are passed on.
    unsafe { batch(blocks, ahead, hashes, hits) }
}

/// Requests `LINES` lines per key ahead.
///
/// # Safety
///
/// As [`Table`] says.
#[target_feature(enable = "avx2")]
unsafe fn batch<const LINES: usize>(
    blocks: &[SplitBlock],
    mut ahead: Ahead<'_, SplitBlock>,
    hashes: &[u64],
    hits: &mut [u64],
) {
    // SAFETY: the caller promised the number of blocks.
    let test = unsafe { Test::new(blocks) };
    for (keys, word) in hashes.chunks(64).zip(hits) {
        let mut bits = 0;
        let (turns, rest) = keys.as_chunks::<KEYS>();
        for (i, turn) in turns.iter().enumerate() {
            if LINES > 0 {
                ahead.request::<LINES>(KEYS);
            }
            bits |= test.four(turn) << (i * KEYS);
        }
        if !rest.is_empty() {
            let mut turn = [rest[0]; KEYS];
            turn[..rest.len()].copy_from_slice(rest);
            let used = (1 << rest.len()) - 1;
            bits |= (test.four(&turn) & used) << (turns.len() * KEYS);
        }
        *word = bits;
    }
}

/// What all keys of a batch share.
struct Test<'a> {
    /// 1 to 2^32 - 1.
    blocks: &'a [SplitBlock],
    law: Law,
}

impl<'a> Test<'a> {
    /// # Safety
    ///
    /// `1 <= blocks.len() < 2^32`.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn new(blocks: &'a [SplitBlock]) -> Self {
        Test { blocks, law: Law::new() }
    }

    /// One bit per key, set if it may be present.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn four(&self, hashes: &[u64; KEYS]) -> u64 {
        let missing = [
            self.missing(&hashes[0]),
            self.missing(&hashes[1]),
            self.missing(&hashes[2]),
            self.missing(&hashes[3]),
        ];
        which_are_zero(missing)
    }

    /// The bits of the key that are not set in its block.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn missing(&self, hash: &u64) -> __m256i {
        let [lo, hi] = halves(hash);
        // SAFETY: `new` was promised the number of blocks.
        let block = unsafe { address(self.blocks, u64::from(hi) << 32) };
        // SAFETY: the 32 bytes of a block in `blocks`; the load has no alignment to respect.
        let words = unsafe { _mm256_loadu_si256(block.cast()) };
        _mm256_andnot_si256(words, self.law.mask(lo))
    }
}

/// # Safety
///
/// The CPU has AVX2.
#[target_feature(enable = "avx2")]
pub(in super::super) unsafe fn insert(blocks: &mut [SplitBlock], lines: Prefetch, hashes: &[u64]) {
    let law = Law::new();
    for_each_ahead(blocks, lines, hashes, |block, hash| {
        let block = core::ptr::from_mut(block).cast::<__m256i>();
        // SAFETY: `block` was a reference to 32 bytes; the load has no alignment to respect.
        let words = unsafe { _mm256_loadu_si256(block) };
        let words = _mm256_or_si256(words, law.mask(hash as u32));
        // SAFETY: as the load; the reference was a mutable one.
        unsafe { _mm256_storeu_si256(block, words) };
    });
}

#[derive(Clone, Copy)]
struct Law {
    salts: __m256i,
    one: __m256i,
}

impl Law {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new() -> Self {
        // SAFETY: eight words; the load has no alignment to respect.
        let salts = unsafe { _mm256_loadu_si256(SALTS.as_ptr().cast()) };
        Law { salts, one: _mm256_set1_epi32(1) }
    }

    /// The bit in each of the eight words of a key with this low half.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn mask(&self, lo: u32) -> __m256i {
        let products = _mm256_mullo_epi32(_mm256_set1_epi32(lo as i32), self.salts);
        _mm256_sllv_epi32(self.one, _mm256_srli_epi32::<27>(products))
    }
}
