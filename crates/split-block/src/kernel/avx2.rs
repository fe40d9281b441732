//! AVX2: one split block in a register; four keys per iteration, whose results are collected
//! together.

#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use blocked_bloom::InstructionSet;

use super::{Table, address, for_each_block, for_each_word, padded};
use crate::split_block::{SALTS, SplitBlock};

pub(super) const TABLE: Table = Table {
    instructions: InstructionSet::Avx2,
    contains_one,
    insert_one,
    contains: [contains::<0>, contains::<1>, contains::<2>],
    insert: [insert::<0>, insert::<1>],
};

/// Keys per iteration: their results fill one register of bytes.
const KEYS: usize = 4;

/// Calls `work`, which is compiled for AVX2 if it is inlined here.
#[target_feature(enable = "avx2")]
pub(super) fn run<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// # Safety
///
/// As [`Table`] says.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn contains_one(block: &SplitBlock, hash: u64) -> bool {
    // SAFETY: the 32 bytes of the reference; the load has no alignment to respect.
    let words = unsafe { _mm256_loadu_si256(block.as_ptr().cast()) };
    _mm256_testc_si256(words, Masks::new().mask(hash as u32)) != 0
}

/// # Safety
///
/// As [`Table`] says.
#[target_feature(enable = "avx2")]
unsafe fn insert_one(block: &mut SplitBlock, hash: u64) -> bool {
    let (block, mask) = (block.as_mut_ptr().cast(), Masks::new().mask(hash as u32));
    // SAFETY: the 32 bytes of the reference; the load has no alignment to respect.
    let words = unsafe { _mm256_loadu_si256(block) };
    let set = _mm256_or_si256(words, mask);
    // SAFETY: as the load; the reference is exclusive.
    unsafe { _mm256_storeu_si256(block, set) };
    _mm256_testc_si256(words, mask) == 0
}

/// # Safety
///
/// As [`Table`] says.
#[target_feature(enable = "avx2")]
unsafe fn contains<const LINES: usize>(blocks: &[SplitBlock], hashes: &[u64], hits: &mut [u64]) {
    ran!("avx2");
    // SAFETY: the caller promised the number of blocks.
    let test = unsafe { Test::new(blocks) };
    for_each_word::<KEYS, LINES>(
        blocks,
        hashes,
        hits,
        |keys| test.test_four(keys),
        |rest| test.test_four(&padded(rest)),
    );
}

/// # Safety
///
/// As [`Table`] says.
#[target_feature(enable = "avx2")]
unsafe fn insert<const LINES: usize>(blocks: &mut [SplitBlock], hashes: &[u64]) {
    ran!("avx2");
    let masks = Masks::new();
    for_each_block::<LINES>(blocks, hashes, |block, hash| {
        let block = block.as_ptr().cast::<__m256i>();
        // SAFETY: the 32 bytes of a cell, to whose contents there are no references; the load has
        // no alignment to respect.
        let words = unsafe { _mm256_loadu_si256(block) };
        let words = _mm256_or_si256(words, masks.mask(hash as u32));
        // SAFETY: as the load; a cell may be written.
        unsafe { _mm256_storeu_si256(block, words) };
    });
}

/// What all keys of a batch share.
struct Test<'a> {
    /// 1 to 2^32 - 1.
    blocks: &'a [SplitBlock],
    masks: Masks,
}

impl<'a> Test<'a> {
    /// # Safety
    ///
    /// `1 <= blocks.len() < 2^32`.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn new(blocks: &'a [SplitBlock]) -> Self {
        Test { blocks, masks: Masks::new() }
    }

    /// One bit per key, set if it may be present.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn test_four(&self, hashes: &[u64; KEYS]) -> u64 {
        let missing = [
            self.missing(&hashes[0]),
            self.missing(&hashes[1]),
            self.missing(&hashes[2]),
            self.missing(&hashes[3]),
        ];
        zero_mask(missing)
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
        _mm256_andnot_si256(words, self.masks.mask(lo))
    }
}

/// Computes the masks of keys: the bits that they set.
#[derive(Clone, Copy)]
struct Masks {
    salts: __m256i,
    ones: __m256i,
}

impl Masks {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new() -> Self {
        // SAFETY: eight words; the load has no alignment to respect.
        let salts = unsafe { _mm256_loadu_si256(SALTS.as_ptr().cast()) };
        Masks { salts, ones: _mm256_set1_epi32(1) }
    }

    /// The mask of a key whose hash has this low half: a bit in each of the eight words.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn mask(&self, lo: u32) -> __m256i {
        let products = _mm256_mullo_epi32(_mm256_set1_epi32(lo as i32), self.salts);
        _mm256_sllv_epi32(self.ones, _mm256_srli_epi32::<27>(products))
    }
}

/// The low and the high half of a hash, each by a load of its own, which can broadcast. After one
/// load of both the compiler moves a half through a general register to a vector's first lane and
/// from there to the others: three instructions in place of one.
#[inline]
#[target_feature(enable = "avx2")]
fn halves(hash: &u64) -> [u32; 2] {
    let halves = core::ptr::from_ref(hash).cast::<u32>();
    // SAFETY: the first four bytes of the reference's eight, which are the low ones on x86.
    let low = unsafe { halves.read() };
    // SAFETY: the other four; `wrapping_add` stays inside the eight.
    let high = unsafe { halves.wrapping_add(1).read() };
    [low, high]
}

/// One bit per register, set if it is zero.
#[inline]
#[target_feature(enable = "avx2")]
fn zero_mask(registers: [__m256i; 4]) -> u64 {
    // Saturating packs, from 32 bits to 16 and to 8, turn nothing but zero into zero. Then each
    // half of the register has four bytes of each register.
    let low = _mm256_packs_epi32(registers[0], registers[1]);
    let high = _mm256_packs_epi32(registers[2], registers[3]);
    let all = _mm256_packs_epi16(low, high);
    let zero = _mm256_cmpeq_epi32(all, _mm256_setzero_si256());
    let zero = _mm256_movemask_ps(_mm256_castsi256_ps(zero)) as u32;
    u64::from(zero & (zero >> 4) & 15)
}
