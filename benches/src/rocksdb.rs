//! The way RocksDB looks keys up in its Bloom filters and fills them (format_version 5 and later),
//! re-created from a description of its format and its loops; no line of it is copied.
//!
//! One key at a time: a line is chosen by the low half of the hash, eight products of the high half
//! with powers of the golden ratio give eight probes at once, words are fetched by two permutes and
//! a blend, the number of probes is known at run time only, and the answer is a branch per eight
//! probes. A MultiGet batch computes and prefetches up to 32 lines and then tests them. Building
//! keeps eight prefetched lines under way and sets one bit at a time.
//!
//! The probe scheme is that of this library, so that the filters are equal bit for bit, and so are
//! their false positives.
#![expect(unsafe_code, reason = "AVX2 intrinsics, as in the original")]

use core::arch::x86_64::*;
use std::mem::MaybeUninit;

use blocked_bloom::parts::BlockBuffer;
use blocked_bloom::probe::block_index;
use blocked_bloom::{AllocError, Block, Params};

use crate::baseline::{line, prefetch};

/// The most keys of a MultiGet batch.
const BATCH: usize = 32;

/// A filter of RocksDB's probe scheme, in memory as this library's.
#[derive(Debug)]
pub struct FastLocalBloom {
    lines: BlockBuffer,
    probes: u32,
}

impl FastLocalBloom {
    /// An empty filter of this shape; `None` without AVX2.
    pub fn new(params: Params) -> Result<Option<Self>, AllocError> {
        if !std::arch::is_x86_feature_detected!("avx2") {
            return Ok(None);
        }
        let lines = BlockBuffer::zeroed(params.blocks(), true)?;
        Ok(Some(FastLocalBloom { lines, probes: params.probes() }))
    }

    /// Memory of the filter.
    pub fn bytes(&self) -> usize {
        self.lines.as_flattened().len()
    }

    /// Adds hashes with a prefetch distance of eight.
    pub fn insert_hashes(&mut self, hashes: &[u64]) {
        let (lines, probes) = (&mut self.lines[..], self.probes);
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&later) = hashes.get(i + 8) {
                prefetch(line(lines, later));
            }
            let line = &mut lines[block_index(hash, lines.len() as u32) as usize];
            let mut word = (hash >> 32) as u32;
            for _ in 0..probes {
                let bit = word >> 23;
                line[bit as usize / 8] |= 1 << (bit % 8);
                word = word.wrapping_mul(0x9e37_79b9);
            }
        }
    }

    /// Hits, one key at a time.
    pub fn count_one_by_one<T>(&self, items: &[T], hash: impl Fn(&T) -> u64) -> usize {
        // SAFETY: `new` found AVX2.
        unsafe { self.count_singly(items, hash) }
    }

    /// Returns the number of hits. Items are looked up in batches of 32; the cache line of each
    /// item is prefetched as soon as the item is hashed.
    pub fn count_by_batches<T>(&self, items: &[T], hash: impl Fn(&T) -> u64) -> usize {
        // SAFETY: `new` found AVX2.
        items.chunks(BATCH).map(|items| unsafe { self.batch(items, &hash) }).sum()
    }

    #[target_feature(enable = "avx2")]
    fn count_singly<T>(&self, items: &[T], hash: impl Fn(&T) -> u64) -> usize {
        // Once: the buffer's `deref` is a call.
        let lines = &self.lines[..];
        let mut hits = 0;
        for hash in items.iter().map(hash) {
            // SAFETY: `block_index` returns an index below the number of lines.
            let line = unsafe { &*line(lines, hash) };
            hits += usize::from(may_match((hash >> 32) as u32, self.probes, line));
        }
        hits
    }

    #[target_feature(enable = "avx2")]
    fn batch<T>(&self, items: &[T], hash: impl Fn(&T) -> u64) -> usize {
        let lines = &self.lines[..];
        let mut prepared = [const { MaybeUninit::<(u32, *const Block)>::uninit() }; BATCH];
        for (prepared, item) in prepared.iter_mut().zip(items) {
            let hash = hash(item);
            let line = line(lines, hash);
            prefetch(line);
            prepared.write(((hash >> 32) as u32, line));
        }
        let mut hits = 0;
        for prepared in prepared.iter().take(items.len()) {
            // SAFETY: the loop above wrote one place for each item, and there are at most as many
            // items as places.
            let (word, line) = unsafe { prepared.assume_init() };
            // SAFETY: `line` returned a pointer to one of `lines`, which are borrowed.
            hits += usize::from(may_match(word, self.probes, unsafe { &*line }));
        }
        hits
    }
}

/// How many filters, given by their blocks and probes, may have the keys with these hashes, looked
/// up one after the other, the loop inlined; `None` without AVX2.
pub fn count_in_all(filters: &[(&[Block], u32)], hashes: &[u64]) -> Option<usize> {
    #[target_feature(enable = "avx2")]
    fn count(filters: &[(&[Block], u32)], hashes: &[u64]) -> usize {
        let mut hits = 0;
        for &hash in hashes {
            for &(blocks, probes) in filters {
                let block = &blocks[block_index(hash, blocks.len() as u32) as usize];
                hits += usize::from(may_match((hash >> 32) as u32, probes, block));
            }
        }
        hits
    }
    // SAFETY: `count` is called only if AVX2 is detected.
    std::arch::is_x86_feature_detected!("avx2").then(|| unsafe { count(filters, hashes) })
}

/// Whether all probes of `word` are set in the line.
#[inline]
#[target_feature(enable = "avx2")]
fn may_match(mut word: u32, probes: u32, line: &Block) -> bool {
    let powers = _mm256_setr_epi32(
        1,
        0x9e37_79b9_u32 as i32,
        0xe35e_67b1_u32 as i32,
        0x7342_97e9,
        0x35fb_e861,
        0xdeb7_c719_u32 as i32,
        0x0448_b211,
        0x3459_b749,
    );
    let (low, high) = line.split_at(32);
    // SAFETY: the first half has 32 bytes, and the load needs no alignment.
    let low = unsafe { _mm256_loadu_si256(low.as_ptr().cast()) };
    // SAFETY: the second half has 32 bytes, and the load needs no alignment.
    let high = unsafe { _mm256_loadu_si256(high.as_ptr().cast()) };
    let mut left = probes as i32;
    loop {
        let products = _mm256_mullo_epi32(_mm256_set1_epi32(word as i32), powers);
        // The top four bits choose one of 16 words: three of them within each half, the first which
        // half.
        let within = _mm256_srli_epi32::<28>(products);
        let from_low = _mm256_permutevar8x32_epi32(low, within);
        let from_high = _mm256_permutevar8x32_epi32(high, within);
        let half = _mm256_srai_epi32::<31>(products);
        let words = _mm256_blendv_epi8(from_low, from_high, half);
        // Lanes past the number of probes have no bit to test: lane number minus probes is not
        // negative there.
        let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let wanted = _mm256_srli_epi32::<31>(_mm256_sub_epi32(lanes, _mm256_set1_epi32(left)));
        let bit = _mm256_srli_epi32::<27>(_mm256_slli_epi32::<4>(products));
        let all_set = _mm256_testc_si256(words, _mm256_sllv_epi32(wanted, bit)) != 0;
        if left <= 8 {
            return all_set;
        }
        if !all_set {
            return false;
        }
        word = word.wrapping_mul(0xab25_f4c1);
        left -= 8;
    }
}
