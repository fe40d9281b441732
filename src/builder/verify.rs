//! The proof that what was added to a builder is in the filter.
//!
//! A sum of the hashes is kept while they come; at the end the list must have the same sum and the
//! filter contain all of it.

use alloc::vec::Vec;

use super::BloomFilterBuilder;
use crate::buffer::AllocError;
use crate::filter::{BloomFilter, BuildError};
use crate::threads::Threads;

/// Mixes a hash before summing, so that two corrupted hashes do not cancel; six instructions per
/// key.
#[inline]
pub(super) fn mix(hash: u64) -> u64 {
    let product = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ (product >> 32)
}

pub(super) fn sum_of(hashes: &[u64]) -> u64 {
    hashes.iter().fold(0, |sum: u64, &hash| sum.wrapping_add(mix(hash)))
}

impl BloomFilterBuilder {
    /// [`finish`](Self::finish), and then looks up every key that was added.
    ///
    /// The builder sums up the hashes as they come. The list that was inserted must still have that
    /// sum, and the filter must contain every hash of it: a bit that flipped in the list, or one
    /// that was lost on its way into the filter, is noticed. A fault that inserting and looking up
    /// have in common is not noticed here; the tests that compare kernels find those. Keys that
    /// went into the filter when the [memory limit](crate::FilterOptions::with_memory_limit) was
    /// reached were looked up right then.
    ///
    /// Cost: one more query per key, half to three quarters of `finish` (`benches/NOTES.md`).
    ///
    /// # Errors
    ///
    /// As `finish`, and [`BuildError::HashesChanged`] or [`BuildError::KeysMissing`] if the filter
    /// cannot be trusted. A flush that must go on has
    /// [`finish_verified_or_pass_all`](Self::finish_verified_or_pass_all).
    pub fn finish_verified(self) -> Result<BloomFilter, BuildError> {
        self.finish_verified_by(Threads::One)
    }

    pub(super) fn finish_verified_by(
        mut self,
        threads: Threads,
    ) -> Result<BloomFilter, BuildError> {
        let filter = self.fill(threads)?;
        self.verify(&filter, threads)?;
        Ok(self.with_contents(filter))
    }

    /// [`finish_verified`](Self::finish_verified), or a filter that answers "maybe" to everything
    /// and the reason: for a flush that must not fail for its filter's sake.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory for the one block of a pass-all filter.
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

    fn verify(&self, filter: &BloomFilter, threads: Threads) -> Result<(), BuildError> {
        if filter.is_pass_all() {
            return Ok(());
        }
        let (found, missing) = match &self.filling {
            Some(filling) => (filling.sum, filling.missing),
            None => look_up_all(filter, &self.chunks, threads),
        };
        if found != self.sum {
            return Err(BuildError::HashesChanged { expected: self.sum, found });
        }
        if missing > 0 {
            return Err(BuildError::KeysMissing { missing, keys: filter.keys_inserted() });
        }
        Ok(())
    }
}

/// [`look_up`] for all chunks.
pub(super) fn look_up_all(
    filter: &BloomFilter,
    chunks: &[Vec<u64>],
    threads: Threads,
) -> (u64, u64) {
    let hashes = chunks.iter().map(Vec::len).sum();
    let add = |a: (u64, u64), b: (u64, u64)| (a.0.wrapping_add(b.0), a.1 + b.1);
    threads.map_and_fold(chunks, hashes, |chunk| look_up(filter, chunk), add, (0, 0))
}

/// The sum of the hashes, and how many of them the filter does not contain: none, if all is well.
fn look_up(filter: &BloomFilter, hashes: &[u64]) -> (u64, u64) {
    const WORDS: usize = 64;
    let mut missing = 0;
    for hashes in hashes.chunks(64 * WORDS) {
        let words = &mut [0; WORDS][..hashes.len().div_ceil(64)];
        filter.look_up(hashes, words);
        let found = words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        missing += hashes.len() as u64 - found;
    }
    (sum_of(hashes), missing)
}

#[cfg(test)]
#[path = "../../tests/unit/verify.rs"]
mod tests;
