//! AVX2: one split block in a register; tests four keys per iteration and collects their results
//! together.

#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use blocked_bloom::InstructionSet;

use super::{Table, address, for_each_block, for_each_group};
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
/// The CPU must support AVX2.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn contains_one(block: &SplitBlock, hash: u64) -> bool {
    // SAFETY: reads the 32 bytes of the reference; the load allows any alignment.
    let words = unsafe { _mm256_loadu_si256(block.as_ptr().cast()) };
    _mm256_testc_si256(words, Masks::new().mask(hash as u32)) != 0
}

/// # Safety
///
/// The CPU must support AVX2.
#[target_feature(enable = "avx2")]
unsafe fn insert_one(block: &mut SplitBlock, hash: u64) -> bool {
    let (block, mask) = (block.as_mut_ptr().cast(), Masks::new().mask(hash as u32));
    // SAFETY: reads the 32 bytes of the reference; the load allows any alignment.
    let words = unsafe { _mm256_loadu_si256(block) };
    let set = _mm256_or_si256(words, mask);
    // SAFETY: writes the 32 bytes of the exclusive reference; the store allows any alignment.
    unsafe { _mm256_storeu_si256(block, set) };
    _mm256_testc_si256(words, mask) == 0
}

/// # Safety
///
/// The caller must keep the promises of [`Table`] for AVX2.
#[target_feature(enable = "avx2")]
unsafe fn contains<const LINES: usize>(blocks: &[SplitBlock], hashes: &[u64], hits: &mut [u64]) {
    ran!("avx2");
    // SAFETY: the caller promises 1 to 2^32 - 1 blocks.
    let test = unsafe { Test::new(blocks) };
    for_each_group::<KEYS, LINES>(blocks, hashes, hits, |keys| test.test_four(keys));
}

/// # Safety
///
/// The caller must keep the promises of [`Table`] for AVX2.
#[target_feature(enable = "avx2")]
unsafe fn insert<const LINES: usize>(blocks: &mut [SplitBlock], hashes: &[u64]) {
    ran!("avx2");
    let masks = Masks::new();
    for_each_block::<LINES>(blocks, hashes, |block, hash| {
        let block = block.as_ptr().cast::<__m256i>();
        // SAFETY: reads the 32 bytes of a cell, to whose contents no references exist. The load
        // allows any alignment.
        let words = unsafe { _mm256_loadu_si256(block) };
        let words = _mm256_or_si256(words, masks.mask(hash as u32));
        // SAFETY: writes the 32 bytes of the cell, which is allowed through a shared reference to a
        // cell. The store allows any alignment.
        unsafe { _mm256_storeu_si256(block, words) };
    });
}

/// Values that all keys of a batch share.
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

    /// Returns one bit per key, set if the key may be present.
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

    /// Returns the key's bits that are not set in its block.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn missing(&self, hash: &u64) -> __m256i {
        let [lo, hi] = halves(hash);
        // SAFETY: the caller of `new` promised 1 to 2^32 - 1 blocks.
        let block = unsafe { address(self.blocks, u64::from(hi) << 32) };
        // SAFETY: reads the 32 bytes of a block in `blocks`; the load allows any alignment.
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
        // SAFETY: `SALTS` has the 32 bytes that the load reads; the load allows any alignment.
        let salts = unsafe { _mm256_loadu_si256(SALTS.as_ptr().cast()) };
        Masks { salts, ones: _mm256_set1_epi32(1) }
    }

    /// Returns the mask of a key whose hash has this low half: one bit in each of the eight words.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn mask(&self, lo: u32) -> __m256i {
        let products = _mm256_mullo_epi32(_mm256_set1_epi32(lo as i32), self.salts);
        _mm256_sllv_epi32(self.ones, _mm256_srli_epi32::<27>(products))
    }
}

/// Returns the low and the high half of a hash, each with a separate load that can broadcast. After
/// one load of both, the compiler moves a half through a general register to the first lane of a
/// vector and from there to the others: three instructions instead of one.
#[inline]
#[target_feature(enable = "avx2")]
fn halves(hash: &u64) -> [u32; 2] {
    let halves = core::ptr::from_ref(hash).cast::<u32>();
    // SAFETY: reads the first four of the reference's eight bytes, which are the low half on x86.
    let low = unsafe { halves.read() };
    // SAFETY: reads the last four of the reference's eight bytes.
    let high = unsafe { halves.wrapping_add(1).read() };
    [low, high]
}

/// Returns one bit per register, set if the register is zero.
#[inline]
#[target_feature(enable = "avx2")]
fn zero_mask(registers: [__m256i; 4]) -> u64 {
    // Saturating packs, from 32 bits to 16 and to 8, map only zero to zero. Afterwards each half of
    // the result has four bytes of each register.
    let low = _mm256_packs_epi32(registers[0], registers[1]);
    let high = _mm256_packs_epi32(registers[2], registers[3]);
    let all = _mm256_packs_epi16(low, high);
    let zero = _mm256_cmpeq_epi32(all, _mm256_setzero_si256());
    let zero = _mm256_movemask_ps(_mm256_castsi256_ps(zero)) as u32;
    u64::from(zero & (zero >> 4) & 15)
}
