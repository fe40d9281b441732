//! A builder without keys as the pattern of others: what a partitioned filter asks it.

use super::{BloomFilterBuilder, Prefixes};
use crate::error::BuildError;
use crate::hash::KeyHash;
use crate::params::{Sizing, stored_bytes};
use crate::prefix::Added;

impl BloomFilterBuilder {
    pub(crate) fn key_hash(&self) -> KeyHash {
        self.key_hash
    }

    pub(crate) fn sizing(&self) -> Sizing {
        self.sizing
    }

    pub(crate) fn added(&self) -> Added {
        self.prefixes.as_ref().map_or(Added::WholeKeys, Prefixes::added)
    }

    /// Most additions whose stored filter takes at most so many bytes; 2^64 - 1 if there will be no filter. Cost: for a rate, 64
    /// times that of sizing a filter; else that of sizing one.
    ///
    /// # Errors
    ///
    /// Those of the sizing; `Err(Ok(smallest))` if not even one addition fits, with the bytes that it takes.
    pub(crate) fn most_additions(&self, bytes: u64) -> Result<u64, Result<u64, BuildError>> {
        let smallest = self.params_for(1).map_err(Err)?.stored_bytes();
        if smallest > bytes {
            return Err(Ok(smallest));
        }
        if self.sizing.is_no_filter() {
            return Ok(u64::MAX);
        }
        // Not by the parameters: their best number of probes costs more than all the rest.
        let blocks = |keys| self.sizing.blocks_for(keys, self.foldable);
        let fits = |keys| blocks(keys).is_ok_and(|blocks| stored_bytes(blocks) <= bytes);
        let (mut most, mut too_many) = (1, u64::MAX);
        while too_many - most > 1 {
            let middle = most + (too_many - most) / 2;
            match fits(middle) {
                true => most = middle,
                false => too_many = middle,
            }
        }
        Ok(most)
    }

    /// Adds the prefix of a key without the key, if prefixes are added.
    pub(crate) fn add_prefix_of(&mut self, key: &[u8]) {
        if let (Some(prefixes), Some(hasher)) = (&self.prefixes, self.key_hash.hasher()) {
            let (_, prefix) = prefixes.hashes(hasher, key);
            self.add_with_prefix((None, prefix));
        }
    }
}
