//! Keys of an iterator that wait until there are enough of them to be hashed together.

use alloc::vec::Vec;

use super::BloomFilterBuilder;
use crate::error::KeyError;

/// Most keys that wait.
const MOST: usize = 128;

/// Most bytes that they take themselves, unless one key takes more.
const MOST_BYTES: usize = 16 << 10;

/// Keys that were taken and not added yet.
pub(super) struct Pending<K> {
    keys: Vec<K>,
    most: usize,
}

impl<K: AsRef<[u8]>> Pending<K> {
    pub(super) fn new() -> Self {
        let mut keys = Vec::new();
        let most = (MOST_BYTES / size_of::<K>().max(1)).clamp(1, MOST);
        // Without memory, keys wait one at a time.
        let most = if keys.try_reserve_exact(most).is_ok() { most } else { 1 };
        Pending { keys, most }
    }

    /// Takes keys until enough wait, and tells whether any do.
    #[inline]
    pub(super) fn take(&mut self, keys: &mut impl Iterator<Item = K>) -> bool {
        self.keys.extend(keys.take(self.most - self.keys.len()));
        !self.keys.is_empty()
    }

    /// Takes a key, and tells whether enough wait.
    #[cfg(feature = "rayon")]
    #[inline]
    pub(super) fn push(&mut self, key: K) -> bool {
        self.keys.push(key);
        self.keys.len() >= self.most
    }

    /// Adds the keys to a builder.
    ///
    /// # Errors
    ///
    /// Those of [`BloomFilterBuilder::insert`].
    pub(super) fn add_to(&mut self, builder: &mut BloomFilterBuilder) -> Result<(), KeyError> {
        let added = builder.insert_batch(&self.keys);
        self.keys.clear();
        added
    }
}
