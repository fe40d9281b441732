//! Verification that the filter contains every hash that was added to its builder.
//!
//! The builder keeps the sum of all mixed hashes. At the end, the list must have the same sum, and
//! the filter must contain every hash of the list.

use alloc::vec::Vec;

use super::BloomFilterBuilder;
use crate::buffer::AllocError;
use crate::error::ensure;
use crate::filter::{BloomFilter, BuildError};
use crate::threads::Threads;

/// Mixes a hash before summation, so that the changes of two damaged hashes do not cancel. Takes
/// six instructions.
#[inline]
pub(super) fn mix(hash: u64) -> u64 {
    let product = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ (product >> 32)
}

pub(super) fn sum_of(hashes: &[u64]) -> u64 {
    hashes.iter().fold(0, |sum: u64, &hash| sum.wrapping_add(mix(hash)))
}

impl BloomFilterBuilder {
    /// Finishes like [`finish`](Self::finish), and then looks up every key that was inserted.
    ///
    /// The builder sums the hashes on insertion. The list of hashes must still have that sum, and
    /// the filter must contain every hash of the list. This detects flipped bits in the list and in
    /// the filter. It does not detect an error that insertion and lookup share; the tests that
    /// compare kernels do. Keys that were inserted into the filter when the [memory
    /// limit](crate::FilterOptions::with_memory_limit) was reached were looked up at that time.
    ///
    /// Cost: one lookup per key, which adds 50 to 75 % to the cost of `finish`.
    ///
    /// # Errors
    ///
    /// The errors of `finish`, and [`BuildError::HashesChanged`] or [`BuildError::KeysMissing`] if
    /// the filter must not be used. For a flush that must not fail, use
    /// [`finish_verified_or_pass_all`](Self::finish_verified_or_pass_all).
    pub fn finish_verified(self) -> Result<BloomFilter, BuildError> {
        self.finish_with(Threads::One, true)
    }

    /// Finishes like [`finish_verified`](Self::finish_verified), but after an error returns a
    /// filter that answers "maybe" to everything, plus the error. For flushes that must not fail
    /// because of a filter.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if the allocation of a pass-all filter's only block fails.
    pub fn finish_verified_or_pass_all(
        self,
    ) -> Result<(BloomFilter, Option<BuildError>), AllocError> {
        let (key_hash, keys) = (self.options.key_hash(), self.len());
        match self.finish_verified() {
            Ok(filter) => Ok((filter, None)),
            Err(error) => {
                let mut filter = BloomFilter::pass_all(key_hash).to_filter()?;
                filter.count(keys);
                Ok((filter, Some(error)))
            }
        }
    }

    /// Checks that the filter contains every hash that was added.
    pub(super) fn verify(&self, filter: &BloomFilter, threads: Threads) -> Result<(), BuildError> {
        if filter.is_pass_all() {
            return Ok(());
        }
        let found = self.filling.as_ref().map(|filling| filling.found);
        let Found { sum: found, missing } =
            found.unwrap_or_else(|| look_up_all(filter, &self.chunks, threads));
        ensure(found == self.sum, BuildError::HashesChanged { expected: self.sum, found })?;
        ensure(missing == 0, BuildError::KeysMissing { missing, keys: filter.keys_inserted() })
    }
}

/// The result of looking up hashes.
#[derive(Clone, Copy, Default)]
pub(super) struct Found {
    /// Sum of the mixed hashes.
    pub(super) sum: u64,
    /// Number of hashes that the filter does not contain; 0 without a fault.
    pub(super) missing: u64,
}

impl Found {
    pub(super) fn add(self, other: Self) -> Self {
        let sum = self.sum.wrapping_add(other.sum);
        Found { sum, missing: self.missing + other.missing }
    }
}

/// Looks up the hashes of all chunks.
#[cfg_attr(not(feature = "rayon"), expect(unused_variables, reason = "there is only one thread"))]
pub(super) fn look_up_all(filter: &BloomFilter, chunks: &[Vec<u64>], threads: Threads) -> Found {
    #[cfg(feature = "rayon")]
    if threads.share(chunks.iter().map(|chunk| chunk.len() as u64).sum()) {
        return super::collect::par_look_up_all(filter, chunks);
    }
    chunks.iter().map(|chunk| look_up(filter, chunk)).fold(Found::default(), Found::add)
}

pub(super) fn look_up(filter: &BloomFilter, hashes: &[u64]) -> Found {
    const WORDS: usize = 64;
    let mut missing = 0;
    for hashes in hashes.chunks(64 * WORDS) {
        let words = &mut [0; WORDS][..hashes.len().div_ceil(64)];
        filter.look_up(hashes, words);
        let found = words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        missing += hashes.len() as u64 - found;
    }
    Found { sum: sum_of(hashes), missing }
}

#[cfg(test)]
#[path = "../../tests/unit/verify.rs"]
mod tests;
