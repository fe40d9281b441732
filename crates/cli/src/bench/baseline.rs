//! What the kernels are compared with: the memory-bound baseline, a loop that only loads a line per key, and two other ways of looking
//! keys up.
//!
//! Included by the command-line tool and by the benches. Nothing here is part of the library.
#![allow(unreachable_pub, reason = "the benches include this file as a public module")]
#![expect(unsafe_code, reason = "loops as fast as the machine allows, to measure kernels against")]

use blocked_bloom::probe::{bits, block_index};
use blocked_bloom::{AllocError, Block, BlockBuffer};

/// Prefetch distance, in keys.
const AHEAD: usize = 128;

/// The memory-bound baseline: loads the line of every hash and ORs it into one, by the widest loads there are. Tests nothing. With
/// `ahead`, lines are prefetched. There must be a block.
pub fn load_lines(blocks: &[Block], hashes: &[u64], ahead: bool) -> u64 {
    assert!(!blocks.is_empty() && u32::try_from(blocks.len()).is_ok());
    for &hash in hashes.iter().take(if ahead { AHEAD } else { 0 }) {
        let index = block_index(hash, blocks.len() as u32);
        prefetch(blocks.as_ptr().wrapping_add(index as usize).cast());
    }
    // SAFETY: `widest` found the instructions; the number of blocks was checked.
    unsafe { widest(ahead)(blocks, hashes) }
}

type Load = unsafe fn(&[Block], &[u64]) -> u64;

fn widest(ahead: bool) -> Load {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            return if ahead { x86::load_avx512::<AHEAD> } else { x86::load_avx512::<0> };
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            return if ahead { x86::load_avx2::<AHEAD> } else { x86::load_avx2::<0> };
        }
    }
    if ahead { load::<AHEAD> } else { load::<0> }
}

/// # Safety
///
/// `1 <= blocks.len() < 2^32`.
#[inline(always)]
unsafe fn load<const AHEAD: usize>(blocks: &[Block], hashes: &[u64]) -> u64 {
    let line = |hash| {
        let index = block_index(hash, blocks.len() as u32);
        // SAFETY: `block_index` gives an index below the number of blocks, which is not 0.
        unsafe { blocks.as_ptr().add(index as usize) }
    };
    let mut all = [0_u64; 8];
    for (i, &hash) in hashes.iter().enumerate() {
        if AHEAD > 0
            && let Some(&later) = hashes.get(i + AHEAD)
        {
            prefetch(line(later).cast());
        }
        // SAFETY: `line` points into `blocks`; eight words are as long as a block.
        let words = unsafe { line(hash).cast::<[u64; 8]>().read_unaligned() };
        for (all, word) in all.iter_mut().zip(words) {
            *all |= word;
        }
    }
    all.iter().fold(0, |all, word| all | word)
}

/// Into the second-level cache. At 100 M keys the baseline took 9.8 ns with the hint T0 64 keys ahead, 4.5 with T1, 3.8 with T1 128 ahead, 4.6 by
/// groups of 64; at 10 M keys 4.8, 3.2, 2.2 and 2.5 (Zen 4). On aarch64 nobody has measured: into the first.
#[inline(always)]
fn prefetch(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64, and a prefetch reads nothing.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(line.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch reads nothing.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{line}]", line = in(reg) line, options(nostack, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = line;
}

/// The probe scheme of this library tested probe by probe, stopping at the first bit that is not set: how a filter is often written.
/// Counts hits.
pub fn early_exit(blocks: &[Block], probes: u32, hashes: &[u64]) -> usize {
    let contains = |&&hash: &&u64| {
        let block = &blocks[block_index(hash, blocks.len() as u32) as usize];
        bits(hash, probes).all(|bit| block[(bit / 8) as usize] >> (bit % 8) & 1 == 1)
    };
    hashes.iter().filter(contains).count()
}

/// A filter by another probe scheme, Parquet's: blocks of 32 bytes, of eight little-endian words with one bit of the key each. Its rate
/// of false positives is some 30 % higher at 10 bits per key.
#[derive(Debug)]
pub struct SplitBlock {
    /// Two blocks in each: on huge pages where a filter of this library is.
    lines: BlockBuffer,
}

/// Eight words, within one cache line.
type Words = [u8; 32];

const SALTS: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// Below `blocks`, of which there is one: bits of the product are lost only from 2^32 blocks on, and 32 bits are left.
#[inline(always)]
fn split_block_index(hash: u64, blocks: usize) -> usize {
    ((hash >> 32).wrapping_mul(blocks as u64) >> 32) as usize
}

impl SplitBlock {
    /// Empty, as large as a filter of so many blocks.
    pub fn new(blocks: u32) -> Result<Self, AllocError> {
        Ok(SplitBlock { lines: BlockBuffer::zeroed(blocks, true)? })
    }

    fn blocks(&self) -> &[Words] {
        self.bitset().as_chunks().0
    }

    /// Adds every hash.
    pub fn insert_hashes(&mut self, hashes: &[u64]) {
        let (blocks, _) = self.lines.as_flattened_mut().as_chunks_mut::<32>();
        let count = blocks.len();
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&later) = hashes.get(i + AHEAD) {
                prefetch(blocks.as_ptr().wrapping_add(split_block_index(later, count)).cast());
            }
            let (words, _) = blocks[split_block_index(hash, count)].as_chunks_mut();
            for (word, salt) in words.iter_mut().zip(SALTS) {
                let bit = 1 << ((hash as u32).wrapping_mul(salt) >> 27);
                *word = (u32::from_le_bytes(*word) | bit).to_le_bytes();
            }
        }
    }

    /// The blocks as bytes.
    pub fn bitset(&self) -> &[u8] {
        self.lines.as_flattened()
    }

    /// Hits, counted in one inlined AVX2 loop, or `None` without AVX2.
    pub fn count_hits(&self, hashes: &[u64], ahead: bool) -> Option<usize> {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            let count = if ahead { x86::split_block::<AHEAD> } else { x86::split_block::<0> };
            // SAFETY: there is AVX2, and a `BlockBuffer` has at least one line.
            return Some(unsafe { count(self.blocks(), hashes) });
        }
        let _ = (hashes, ahead);
        None
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64::*;

    use super::{Block, SALTS, Words, load, prefetch, split_block_index};

    /// # Safety
    ///
    /// There is AVX-512, and `1 <= blocks.len() < 2^32`.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn load_avx512<const AHEAD: usize>(blocks: &[Block], hashes: &[u64]) -> u64 {
        // The compiler would rather use registers of half the width.
        let mut all = _mm512_setzero_si512();
        let line = |hash: u64| {
            let index = (u64::from(hash as u32) * blocks.len() as u64) >> 32;
            blocks.as_ptr().wrapping_add(index as usize)
        };
        for (i, &hash) in hashes.iter().enumerate() {
            if AHEAD > 0
                && let Some(&later) = hashes.get(i + AHEAD)
            {
                prefetch(line(later).cast());
            }
            // SAFETY: the index is below the number of blocks.
            all = _mm512_or_si512(all, unsafe { _mm512_loadu_si512(line(hash).cast()) });
        }
        _mm512_reduce_or_epi64(all) as u64
    }

    /// # Safety
    ///
    /// There is AVX2, and `1 <= blocks.len() < 2^32`.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn load_avx2<const AHEAD: usize>(blocks: &[Block], hashes: &[u64]) -> u64 {
        // SAFETY: passed on.
        unsafe { load::<AHEAD>(blocks, hashes) }
    }

    /// # Safety
    ///
    /// There is AVX2, and `blocks` is not empty.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn split_block<const AHEAD: usize>(
        blocks: &[Words],
        hashes: &[u64],
    ) -> usize {
        // SAFETY: eight words.
        let salts = unsafe { _mm256_loadu_si256(SALTS.as_ptr().cast()) };
        let one = _mm256_set1_epi32(1);
        let block = |hash: u64| blocks.as_ptr().wrapping_add(split_block_index(hash, blocks.len()));
        let mut hits = 0;
        for (i, &hash) in hashes.iter().enumerate() {
            if AHEAD > 0
                && let Some(&later) = hashes.get(i + AHEAD)
            {
                prefetch(block(later).cast());
            }
            let products = _mm256_mullo_epi32(_mm256_set1_epi32(hash as i32), salts);
            let mask = _mm256_sllv_epi32(one, _mm256_srli_epi32::<27>(products));
            // SAFETY: the index is below the number of blocks; a block is 32 bytes.
            let words = unsafe { _mm256_loadu_si256(block(hash).cast()) };
            hits += _mm256_testc_si256(words, mask) as usize;
        }
        hits
    }
}
