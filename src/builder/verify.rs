//! The proof that what was added to a builder is in the filter.
//!
//! A sum of the hashes is kept while they come; at the end the list must have the same sum and the filter contain all of it.

use alloc::vec::Vec;

use super::BloomFilterBuilder;
use crate::error::{AllocError, BuildError};
use crate::filter::BloomFilter;

/// So that equal hashes do not cancel out in a sum, nor two changed ones; six instructions per key.
#[inline]
pub(super) fn mix(hash: u64) -> u64 {
    let product = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ (product >> 32)
}

fn sum_of(hashes: &[u64]) -> u64 {
    hashes.iter().fold(0, |sum: u64, &hash| sum.wrapping_add(mix(hash)))
}

impl BloomFilterBuilder {
    /// [`finish`](Self::finish), and then asks the filter about every key that was added.
    ///
    /// The builder sums up the hashes as they come. The list that was inserted must still have that sum, and the filter must contain
    /// every hash of it: a bit that flipped in the list, or one that was lost on its way into the filter, is noticed. A fault that
    /// inserting and asking share is not; the tests that compare kernels are for those. Keys that went into the filter when the
    /// [memory limit](Self::memory_limit) was reached were asked about right then.
    ///
    /// Cost: one more query per key, half to three quarters of `finish` (`benches/NOTES.md`).
    ///
    /// # Errors
    ///
    /// As `finish`, and [`BuildError::HashesChanged`] or [`BuildError::KeysMissing`] if the filter cannot be trusted. A flush that
    /// must go on has [`finish_verified_or_pass_all`](Self::finish_verified_or_pass_all).
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, Sizing};
    /// let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// builder.extend(["apple", "banana"]);
    /// assert!(builder.finish_verified()?.contains("banana"));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    pub fn finish_verified(mut self) -> Result<BloomFilter, BuildError> {
        let filter = self.fill()?;
        self.verify(&filter)?;
        Ok(self.sign(filter))
    }

    /// [`finish_verified`](Self::finish_verified), or a filter that answers "maybe" to everything and the reason: for a flush that must
    /// not fail for its filter's sake.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory for the one block of a pass-all filter.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, Sizing};
    /// let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0)).probes(99);
    /// builder.insert("apple");
    /// let (filter, error) = builder.finish_verified_or_pass_all()?;
    /// if let Some(error) = error {
    ///     eprintln!("no filter for this table: {error}");
    /// }
    /// assert!(filter.contains("apple"));
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    pub fn finish_verified_or_pass_all(
        self,
    ) -> Result<(BloomFilter, Option<BuildError>), AllocError> {
        let (key_hash, keys) = (self.key_hash, self.len());
        match self.finish_verified() {
            Ok(filter) => Ok((filter, None)),
            Err(error) => {
                let mut filter = BloomFilter::pass_all(key_hash)?;
                filter.count(keys);
                Ok((filter, Some(error)))
            }
        }
    }

    fn verify(&self, filter: &BloomFilter) -> Result<(), BuildError> {
        if filter.view().is_pass_all() {
            return Ok(());
        }
        let (found, missing) = match &self.filling {
            Some(filling) => (filling.sum, filling.missing),
            None => ask_about_all(filter, &self.chunks),
        };
        if found != self.sum {
            return Err(BuildError::HashesChanged { expected: self.sum, found });
        }
        if missing > 0 {
            return Err(BuildError::KeysMissing { missing, keys: filter.view().keys_inserted() });
        }
        Ok(())
    }
}

/// The sum of the hashes, and how many of them the filter does not contain: none, if all is well.
pub(super) fn ask_about_all(filter: &BloomFilter, chunks: &[Vec<u64>]) -> (u64, u64) {
    let ask = |chunk: &Vec<u64>| (sum_of(chunk), missing(filter, chunk));
    let add = |a: (u64, u64), b: (u64, u64)| (a.0.wrapping_add(b.0), a.1 + b.1);
    #[cfg(feature = "rayon")]
    return crate::parallel::map_and_fold(chunks, ask, add, (0, 0));
    #[cfg(not(feature = "rayon"))]
    chunks.iter().map(ask).fold((0, 0), add)
}

fn missing(filter: &BloomFilter, hashes: &[u64]) -> u64 {
    const WORDS: usize = 64;
    let mut missing = 0;
    for hashes in hashes.chunks(64 * WORDS) {
        let words = &mut [0; WORDS][..hashes.len().div_ceil(64)];
        missing += match filter.view().contains_hashes_into(hashes, words) {
            Ok(()) => {
                hashes.len() as u64
                    - words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>()
            }
            // There is a word per 64 hashes.
            Err(_) => hashes.len() as u64,
        };
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::{BloomFilterBuilder, mix, sum_of};
    use crate::{BloomFilter, BuildError, KeyHash, Sizing};

    fn builder(keys: u64) -> BloomFilterBuilder {
        let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
        (1..=keys).for_each(|key| builder.insert_hash(mix(key)));
        builder
    }

    #[test]
    fn a_hash_that_changes_in_memory_is_noticed() {
        for bit in 0..64 {
            let mut builder = builder(1_000);
            builder.chunks[3][5] ^= 1 << bit;
            let sum = builder.sum;
            let error = builder.finish_verified().unwrap_err();
            assert!(
                matches!(error, BuildError::HashesChanged { expected, .. } if expected == sum),
                "bit {bit}: {error}"
            );
        }
        let mut swapped = builder(1_000);
        let (a, b) = (swapped.chunks[0][1], swapped.chunks[2][1]);
        (swapped.chunks[0][1], swapped.chunks[2][1]) = (b, a);
        assert!(swapped.finish_verified().is_ok(), "an order is no change");
    }

    #[test]
    fn a_filter_that_lacks_keys_is_noticed() {
        let builder = builder(1_000);
        let params = builder.params().unwrap();
        let mut lacking = BloomFilter::with_params(params, KeyHash::default()).unwrap();
        (1..=990).for_each(|key| _ = lacking.insert_hash(mix(key)));
        lacking.count(10);
        let absent = (991..=1_000).filter(|&key| !lacking.contains_hash(mix(key))).count() as u64;
        assert!(absent > 0);
        let error = builder.verify(&lacking).unwrap_err();
        assert_eq!(error, BuildError::KeysMissing { missing: absent, keys: 1_000 });
    }

    #[test]
    fn keys_that_were_poured_are_verified_too() {
        let mut builder = builder(10).memory_limit(0).expected_items(1_000);
        (11..=1_000).for_each(|key| builder.insert_hash(mix(key)));
        assert!(builder.filling.is_some());
        assert!(builder.clone().finish_verified().is_ok());
        let mut changed = builder.clone();
        changed.chunks[0][0] ^= 1;
        let error = changed.finish_verified().unwrap_err();
        assert!(matches!(error, BuildError::HashesChanged { .. }));
        let mut lacking = builder;
        lacking.filling.as_mut().unwrap().missing += 1;
        let error = lacking.finish_verified().unwrap_err();
        assert_eq!(error, BuildError::KeysMissing { missing: 1, keys: 1_000 });
    }

    /// A plain sum or xor of hashes would not notice these.
    #[test]
    fn sums_tell_repeated_and_shifted_hashes_apart() {
        assert_ne!(sum_of(&[5, 5]), sum_of(&[]));
        assert_ne!(sum_of(&[1, 4]), sum_of(&[2, 3]));
        assert_ne!(sum_of(&[1 << 32, 4 << 32]), sum_of(&[2 << 32, 3 << 32]));
    }

    /// What is left of a limit may be room for one hash: to pour that often would be slow.
    #[test]
    fn the_largest_chunk_collects_what_is_poured() {
        for hashes in 16_000..16_300 {
            let mut builder = builder(0).memory_limit(8 * hashes).expected_items(20_000);
            (1..=hashes + 1).for_each(|key| builder.insert_hash(mix(key)));
            assert!(builder.filling.is_some());
            let (chunks, room) = (builder.chunks.len(), builder.chunks[0].capacity());
            assert!(chunks == 1 && room > 800, "{hashes} hashes: {chunks} chunks, {room}");
            // A clone has no room of its own.
            let mut clone = builder.clone();
            (1..=200).for_each(|key| clone.insert_hash(mix(key)));
            assert_eq!(clone.chunks.len(), 1);
        }
    }
}
