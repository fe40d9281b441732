//! A filter of split blocks, 32 bytes and eight probes a key, as in Parquet and Impala, with the fastest loop there is for it: AVX2,
//! inlined, hits only counted.
#![expect(unsafe_code, reason = "AVX2 intrinsics, and lines seen as halves")]

use core::arch::x86_64::*;

use crate::baseline::AHEAD;
use crate::memory::{Lines, Pages, fastrange, prefetch};

/// The salts of the Parquet format.
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

#[derive(Debug)]
pub(crate) struct SplitBlocks {
    lines: Lines,
}

impl SplitBlocks {
    /// `None` without AVX2.
    pub(crate) fn new(lines: usize) -> Option<Self> {
        let is_supported = std::arch::is_x86_feature_detected!("avx2") && lines < 1 << 31;
        is_supported.then(|| SplitBlocks { lines: Lines::zeroed(lines, Pages::Huge) })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lines.as_flattened().len()
    }

    pub(crate) fn add_all(&mut self, hashes: &[u64]) {
        // SAFETY: `new` found AVX2.
        unsafe { self.add_all_avx2(hashes) };
    }

    /// Hits, one key after the other; with `ahead`, blocks are prefetched.
    pub(crate) fn count(&self, hashes: &[u64], ahead: bool) -> usize {
        let count = if ahead { Self::count_avx2::<AHEAD> } else { Self::count_avx2::<0> };
        // SAFETY: `new` found AVX2.
        unsafe { count(self, hashes) }
    }

    /// # Safety
    ///
    /// There is AVX2.
    #[target_feature(enable = "avx2")]
    unsafe fn add_all_avx2(&mut self, hashes: &[u64]) {
        let blocks = self.lines.len() * 2;
        let start = self.lines.as_mut_ptr().cast::<[u8; 32]>();
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&later) = hashes.get(i + AHEAD) {
                prefetch(start.wrapping_add(fastrange((later >> 32) as u32, blocks)));
            }
            let block = start.wrapping_add(fastrange((hash >> 32) as u32, blocks)).cast();
            // SAFETY: the index is below the number of blocks, 32 bytes each, borrowed exclusively.
            let words = unsafe { _mm256_loadu_si256(block) };
            let words = _mm256_or_si256(words, mask(hash as u32));
            // SAFETY: as above.
            unsafe { _mm256_storeu_si256(block, words) };
        }
    }

    /// # Safety
    ///
    /// There is AVX2.
    #[target_feature(enable = "avx2")]
    unsafe fn count_avx2<const AHEAD: usize>(&self, hashes: &[u64]) -> usize {
        let blocks = self.lines.halves();
        let block =
            |hash: u64| blocks.as_ptr().wrapping_add(fastrange((hash >> 32) as u32, blocks.len()));
        let mut hits = 0;
        for (i, hash) in hashes.iter().enumerate() {
            if AHEAD > 0
                && let Some(&later) = hashes.get(i + AHEAD)
            {
                prefetch(block(later));
            }
            // Halves of their own: the mask's is broadcast from memory then, 13 % of the loop.
            let halves = std::ptr::from_ref(hash).cast::<u32>();
            // SAFETY: the first four bytes of the hash, the low ones on x86.
            let lo = unsafe { halves.read() };
            // SAFETY: the other four.
            let hi = unsafe { halves.wrapping_add(1).read() };
            // SAFETY: the index is below the number of blocks, 32 bytes each.
            let words = unsafe { _mm256_loadu_si256(block(u64::from(hi) << 32).cast()) };
            hits += _mm256_testc_si256(words, mask(lo)) as usize;
        }
        hits
    }
}

/// One bit in each of eight words, from the low half of the hash.
#[inline]
#[target_feature(enable = "avx2")]
fn mask(lo: u32) -> __m256i {
    // SAFETY: eight words.
    let salts = unsafe { _mm256_loadu_si256(SALTS.as_ptr().cast()) };
    let products = _mm256_mullo_epi32(_mm256_set1_epi32(lo as i32), salts);
    _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32::<27>(products))
}
