//! The peer for split blocks: 32 bytes and eight probes per key, as in Parquet and Impala, with the
//! fastest loop known for them (AVX2, inlined, only counting hits). Its false-positive rate is
//! about 30 % higher at 10 bits per key. The module also defines the rows and bounds of the
//! comparison of split-block filters.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "AVX2 intrinsics"))]

use blocked_bloom::AllocError;
use blocked_bloom::parts::BlockBuffer;

/// Two blocks in each line: on huge pages where a filter of this library is.
#[derive(Debug)]
pub struct SplitBlocks {
    lines: BlockBuffer,
}

/// A row of `compare --only split`: the functions of `parquet`'s filter that take values.
pub const SBBF: &str = "parquet Sbbf";
/// The row of the loop of `Sbbf`, whose functions that take hashes are private.
pub const SBBF_LOOP: &str = "Sbbf's loop by hand";
/// The row of the crate sbbf-rs-safe.
pub const SAFE: &str = "sbbf-rs-safe";
/// The row of `blocked-bloom-split`, by its default kernel.
pub const OURS: &str = "blocked-bloom-split";
/// The row of its single lookups with `with_lookup`, which chooses the kernel once for all of them.
pub const OURS_ONCE: &str = "blocked-bloom-split, with_lookup";

/// A bound on the times of `blocked-bloom-split` in a table of `compare --only split`.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// The method, which the table's title names.
    pub method: &'static str,
    /// The row that it is compared with.
    pub peer: &'static str,
    /// The largest ratio of the medians in filters of up to 2 MiB.
    pub cached: f64,
    /// That in larger ones, if there is a bound.
    pub large: Option<f64>,
}

impl Bound {
    const fn new(method: &'static str, peer: &'static str, cached: f64, large: f64) -> Self {
        Bound { method, peer, cached, large: Some(large) }
    }

    /// The largest ratio in a filter of this many bytes.
    pub fn limit(&self, bytes: usize) -> Option<f64> {
        if bytes <= 2 << 20 { Some(self.cached) } else { self.large }
    }
}

/// What `compare --only split` checks; the program `figures` shows it.
pub const BOUNDS: [Bound; 7] = [
    Bound::new("hash given, one a call", SBBF_LOOP, 0.8, 1.0),
    Bound { method: "hash given, one a call", peer: SAFE, cached: 1.0, large: None },
    Bound::new("hash given, 1024 a call", SBBF_LOOP, 0.35, 0.25),
    Bound::new("16-byte keys, one a call", SBBF, 1.0, 1.0),
    Bound::new("16-byte keys, 1024 a call", SBBF, 1.0, 1.0),
    Bound::new("building from hashes, 1024 a call", SBBF_LOOP, 0.5, 0.5),
    Bound::new("building from 16-byte keys, one a call", SBBF, 1.0, 1.0),
];

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

/// An index below `blocks`, which is at least 1.
#[inline(always)]
fn index(high: u32, blocks: usize) -> usize {
    (u64::from(high).wrapping_mul(blocks as u64) >> 32) as usize
}

impl SplitBlocks {
    /// Empty, as large as a filter of this many blocks.
    pub fn new(lines: u32) -> Result<Self, AllocError> {
        Ok(SplitBlocks { lines: BlockBuffer::zeroed(lines, true)? })
    }

    /// The blocks as bytes.
    pub fn bitset(&self) -> &[u8] {
        self.lines.as_flattened()
    }

    /// Adds every hash.
    pub fn insert_hashes(&mut self, hashes: &[u64]) {
        let (blocks, _) = self.lines.as_flattened_mut().as_chunks_mut::<32>();
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: AVX2 was detected.
            return unsafe { x86::insert(blocks, hashes) };
        }
        let count = blocks.len();
        for &hash in hashes {
            let (words, _) = blocks[index((hash >> 32) as u32, count)].as_chunks_mut();
            for (word, salt) in words.iter_mut().zip(SALTS) {
                let bit = 1 << ((hash as u32).wrapping_mul(salt) >> 27);
                *word = (u32::from_le_bytes(*word) | bit).to_le_bytes();
            }
        }
    }

    /// Hits, counted one key after the other, or `None` without AVX2; with `ahead`, blocks are
    /// prefetched.
    pub fn count_hits(&self, hashes: &[u64], ahead: bool) -> Option<usize> {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            let count =
                if ahead { x86::count::<{ crate::baseline::DISTANCE }> } else { x86::count::<0> };
            // SAFETY: AVX2 was detected.
            return Some(unsafe { count(self.bitset().as_chunks().0, hashes) });
        }
        let _ = (hashes, ahead);
        None
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64::*;

    use super::{SALTS, index};
    use crate::baseline::{DISTANCE, prefetch};

    /// Eight words, within one cache line.
    type Words = [u8; 32];

    #[target_feature(enable = "avx2")]
    pub(super) fn insert(blocks: &mut [Words], hashes: &[u64]) {
        let (start, count) = (blocks.as_mut_ptr(), blocks.len());
        let block = |hash: u64| start.wrapping_add(index((hash >> 32) as u32, count));
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&later) = hashes.get(i + DISTANCE) {
                prefetch(block(later));
            }
            let block = block(hash).cast();
            // SAFETY: the index is below the number of blocks, 32 bytes each, borrowed exclusively.
            let words = unsafe { _mm256_loadu_si256(block) };
            let words = _mm256_or_si256(words, mask(hash as u32));
            // SAFETY: the same 32 bytes, borrowed exclusively.
            unsafe { _mm256_storeu_si256(block, words) };
        }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn count<const DISTANCE: usize>(blocks: &[Words], hashes: &[u64]) -> usize {
        let block = |high| blocks.as_ptr().wrapping_add(index(high, blocks.len()));
        let mut hits = 0;
        for (i, hash) in hashes.iter().enumerate() {
            if DISTANCE > 0
                && let Some(&later) = hashes.get(i + DISTANCE)
            {
                prefetch(block((later >> 32) as u32));
            }
            // The halves are loaded apart, so that the mask's is broadcast from memory: 13 % of the
            // loop.
            let halves = std::ptr::from_ref(hash).cast::<u32>();
            // SAFETY: the first four bytes of the hash, the low ones on x86.
            let lo = unsafe { halves.read() };
            // SAFETY: the last four bytes of the hash, the high ones on x86.
            let hi = unsafe { halves.wrapping_add(1).read() };
            // SAFETY: the index is below the number of blocks, 32 bytes each.
            let words = unsafe { _mm256_loadu_si256(block(hi).cast()) };
            hits += _mm256_testc_si256(words, mask(lo)) as usize;
        }
        hits
    }

    /// One bit in each of eight words, from the low half of the hash.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn mask(lo: u32) -> __m256i {
        // SAFETY: `SALTS` has eight words, and the load needs no alignment.
        let salts = unsafe { _mm256_loadu_si256(SALTS.as_ptr().cast()) };
        let products = _mm256_mullo_epi32(_mm256_set1_epi32(lo as i32), salts);
        _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32::<27>(products))
    }
}
