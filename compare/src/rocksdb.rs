//! The way RocksDB looks keys up in its Bloom filters and fills them (format_version 5 and later), re-created from a description of its format
//! and its loops; no line of it is copied.
//!
//! One key at a time: a line is chosen by the low half of the hash, eight products of the high half with powers of the golden ratio
//! give eight probes at once, words are fetched by two permutes and a blend, the number of probes is known at run time only, and the
//! answer is a branch per eight probes. A MultiGet batch computes and prefetches up to 32 lines and then tests them. Building keeps eight
//! prefetched lines under way and sets one bit at a time.
//!
//! The probe scheme is that of this library, so that the filters are equal bit for bit, and so are their false positives.
#![expect(unsafe_code, reason = "AVX2 intrinsics, as in the original")]

use std::mem::MaybeUninit;

use crate::memory::{Line, Lines, Pages, fastrange, prefetch};
use crate::rocksdb_loop::may_match;

/// The most keys of a MultiGet batch.
pub(crate) const BATCH: usize = 32;

const GOLDEN: u32 = 0x9e37_79b9;

/// A filter of RocksDB's probe scheme.
#[derive(Debug)]
pub(crate) struct FastLocalBloom {
    lines: Lines,
    probes: u32,
}

impl FastLocalBloom {
    /// `None` without AVX2.
    pub(crate) fn new(lines: usize, probes: u32) -> Option<Self> {
        let is_supported = std::arch::is_x86_feature_detected!("avx2")
            && u32::try_from(lines).is_ok()
            && (1..=30).contains(&probes);
        is_supported.then(|| FastLocalBloom { lines: Lines::zeroed(lines, Pages::Huge), probes })
    }

    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Adds hashes with a prefetch distance of eight.
    pub(crate) fn add_all(&mut self, hashes: &[u64]) {
        const AHEAD: usize = 8;
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&later) = hashes.get(i + AHEAD) {
                let index = fastrange(later as u32, self.lines.len());
                prefetch(self.lines.as_ptr().wrapping_add(index));
            }
            let index = fastrange(hash as u32, self.lines.len());
            let line = &mut self.lines[index];
            let mut word = (hash >> 32) as u32;
            for _ in 0..self.probes {
                let bit = word >> 23;
                line[bit as usize / 8] |= 1 << (bit % 8);
                word = word.wrapping_mul(GOLDEN);
            }
        }
    }

    /// Hits, one key at a time.
    pub(crate) fn count_one_by_one<T>(&self, items: &[T], hash: impl Fn(&T) -> u64) -> usize {
        // SAFETY: `new` found AVX2.
        unsafe { self.one_by_one(items, hash) }
    }

    /// Hits, by batches of 32, each item's line prefetched as soon as it is hashed.
    pub(crate) fn count_by_batches<T>(&self, items: &[T], hash: impl Fn(&T) -> u64) -> usize {
        // SAFETY: `new` found AVX2.
        items.chunks(BATCH).map(|items| unsafe { self.batch(items, &hash) }).sum()
    }

    /// # Safety
    ///
    /// There is AVX2.
    #[target_feature(enable = "avx2")]
    unsafe fn one_by_one<T>(&self, items: &[T], hash: impl Fn(&T) -> u64) -> usize {
        let mut hits = 0;
        for hash in items.iter().map(hash) {
            let index = fastrange(hash as u32, self.lines.len());
            // SAFETY: `fastrange` gives an index below the number of lines.
            let line = unsafe { self.lines.get_unchecked(index) };
            hits += usize::from(may_match((hash >> 32) as u32, self.probes, line));
        }
        hits
    }

    /// # Safety
    ///
    /// There is AVX2.
    #[target_feature(enable = "avx2")]
    unsafe fn batch<T>(&self, items: &[T], hash: impl Fn(&T) -> u64) -> usize {
        let mut prepared = [const { MaybeUninit::<(u32, usize)>::uninit() }; BATCH];
        for (prepared, item) in prepared.iter_mut().zip(items) {
            let hash = hash(item);
            let index = fastrange(hash as u32, self.lines.len());
            prefetch(self.lines.as_ptr().wrapping_add(index));
            prepared.write(((hash >> 32) as u32, index));
        }
        let mut hits = 0;
        for prepared in prepared.iter().take(items.len()) {
            // SAFETY: written above, one for each item, of which there are at most as many as places.
            let (word, index) = unsafe { prepared.assume_init() };
            // SAFETY: as in `one_by_one`.
            let line = unsafe { self.lines.get_unchecked(index) };
            hits += usize::from(may_match(word, self.probes, line));
        }
        hits
    }
}
