//! The filter that owns its lines: making it, adding keys and removing them.

use blocked_bloom::parts::BlockBuffer;
use blocked_bloom::{Bitmask, Block, Filter, Kernel, KeyError};

use crate::error::RemovableError;
use crate::filter::{Lines, Meta, RemovableFilter};
use crate::kernel;
use crate::options::RemovableOptions;
use crate::tags::count_tags;

/// Keys of a batch that are hashed at a time: 8 KiB of stack.
const CHUNK_KEYS: usize = 1_024;

impl RemovableOptions {
    /// An empty filter.
    ///
    /// # Errors
    ///
    /// [`RemovableError::SlackOutOfRange`]; [`RemovableError::KeysOutOfRange`] for more than 2^32 -
    /// 1 lines; [`RemovableError::Alloc`].
    pub fn empty_filter(&self) -> Result<RemovableFilter, RemovableError> {
        let (key_hash, huge_pages) = (self.key_hash(), self.huge_pages);
        let data = BlockBuffer::zeroed(self.lines()?, huge_pages)?;
        let meta = Meta { key_hash, keys_inserted: 0, kernel: Kernel::default(), huge_pages };
        Ok(RemovableFilter { data, meta })
    }
}

impl<D: Lines> RemovableFilter<D> {
    /// A copy that can be added to and removed from. Cost: two passes over the lines.
    ///
    /// # Errors
    ///
    /// [`RemovableError::PassAll`] if the filter answers "maybe" to everything;
    /// [`RemovableError::Alloc`].
    pub fn to_filter(&self) -> Result<RemovableFilter, RemovableError> {
        let lines = self.lines();
        if lines.is_empty() {
            return Err(RemovableError::PassAll);
        }
        let data = BlockBuffer::copy_of(lines, self.meta.huge_pages)?;
        // The number in a header that was opened unverified may be wrong.
        let meta = Meta { keys_inserted: count_tags(&data), ..self.meta };
        Ok(RemovableFilter { data, meta })
    }
}

impl RemovableFilter {
    /// A filter that holds these hashes, made for the options' number of keys, or for as many as
    /// there are hashes if those are more. So a filter is enlarged, or rebuilt after damage.
    ///
    /// The hashes must be of the options' [`hasher`](RemovableOptions::hasher).
    ///
    /// # Errors
    ///
    /// As [`empty_filter`](RemovableOptions::empty_filter); [`RemovableError::Full`] if a hash is
    /// there more than 64 times (32 if its two lines are one), or the slack is so small that not
    /// all keys fit.
    ///
    /// ```
    /// use blocked_bloom::Filter;
    /// use blocked_bloom_removable::{RemovableError, RemovableFilter, RemovableOptions};
    /// use std::collections::HashSet;
    /// let (mut options, mut live) = (RemovableOptions::new(1_000), HashSet::new());
    /// let (mut filter, hasher) = (options.empty_filter()?, options.hasher()?);
    /// for key in 0..10_000_u32 {
    ///     live.insert(key);
    ///     let hash = hasher.hash(key.to_le_bytes());
    ///     if let Err(RemovableError::Full { .. }) = filter.insert_hash(hash) {
    ///         // Twice as large: each key is hashed again once or twice in all.
    ///         options = options.with_keys(2 * options.keys());
    ///         let hash = |key: &u32| hasher.hash(key.to_le_bytes());
    ///         let hashes: Vec<u64> = live.iter().map(hash).collect();
    ///         filter = RemovableFilter::from_hashes(&options, &hashes)?;
    ///     }
    /// }
    /// assert!(live.iter().all(|key| filter.contains(key.to_le_bytes())));
    /// # Ok::<(), RemovableError>(())
    /// ```
    pub fn from_hashes(options: &RemovableOptions, hashes: &[u64]) -> Result<Self, RemovableError> {
        let keys = options.keys().max(hashes.len() as u64);
        let mut filter = options.with_keys(keys).empty_filter()?;
        filter.insert_hashes(hashes)?;
        Ok(filter)
    }

    /// Adds a key, or a further copy of it. Returns true if it was certainly not there before.
    ///
    /// Cost: one hash; two cache lines.
    ///
    /// # Errors
    ///
    /// [`RemovableError::Full`] if both lines of the key are full, [`RemovableError::Key`] if the
    /// filter is of the caller's hashes. Nothing is changed then.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool, RemovableError> {
        let hasher = self.hasher()?;
        self.insert_hash(hasher.hash(key))
    }

    /// Adds the key with this hash, or a further copy of it. Returns true if it was certainly not
    /// there before.
    ///
    /// # Errors
    ///
    /// [`RemovableError::Full`]. Nothing is changed then.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> Result<bool, RemovableError> {
        let is_new = !self.contains_hash(hash);
        let inserted = kernel::insert_one(&mut self.data, hash);
        self.count(0, inserted.into(), 1).map(|()| is_new)
    }

    /// Adds hashes in order, as [`insert_hash`](Self::insert_hash) does, with prefetch where the
    /// filter outgrows the cache.
    ///
    /// # Errors
    ///
    /// [`RemovableError::Full`] at the first hash that cannot be added, with the number of hashes
    /// before it. Those were added; none after it was.
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), RemovableError> {
        self.insert_after(0, hashes)
    }

    /// Adds hashes of a batch of which `before` hashes were added already.
    fn insert_after(&mut self, before: usize, hashes: &[u64]) -> Result<(), RemovableError> {
        let inserted = kernel::insert(self.meta.kernel, &mut self.data, hashes);
        self.count(before, inserted, hashes.len())
    }

    /// Counts what was added; an error if that was not all.
    #[inline]
    fn count(&mut self, before: usize, now: usize, of: usize) -> Result<(), RemovableError> {
        self.meta.keys_inserted += now as u64;
        if now == of {
            return Ok(());
        }
        let (taken, capacity) = (self.meta.keys_inserted, self.capacity());
        Err(RemovableError::Full { inserted: before + now, taken, capacity })
    }

    /// Adds keys in order, as [`insert_hashes`](Self::insert_hashes).
    ///
    /// # Errors
    ///
    /// [`RemovableError::Full`] as there, [`RemovableError::Key`] as in [`insert`](Self::insert).
    pub fn insert_batch<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<(), RemovableError> {
        let hasher = self.hasher()?;
        let mut hashes = [0; CHUNK_KEYS];
        for (chunk, keys) in keys.chunks(CHUNK_KEYS).enumerate() {
            let hashes = &mut hashes[..keys.len()];
            // Both have the same length.
            _ = hasher.hash_batch_into(keys, hashes);
            self.insert_after(chunk * CHUNK_KEYS, hashes)?;
        }
        Ok(())
    }

    /// Removes one copy of a key that was added. False if it is certainly not there: then nothing
    /// is changed.
    ///
    /// **The key must have been added.** If it was not, this mostly returns false; but where it
    /// would be a false positive, it removes the tag that it is taken for, and the key of that tag
    /// is lost.
    ///
    /// Cost: one hash, two cache lines.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the filter is of the caller's hashes. Nothing is changed then.
    #[inline]
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<bool, KeyError> {
        let hasher = self.hasher()?;
        Ok(self.remove_hash(hasher.hash(key)))
    }

    /// Removes one copy of the key with this hash, which must have been added, as
    /// [`remove`](Self::remove).
    #[inline]
    pub fn remove_hash(&mut self, hash: u64) -> bool {
        let found = kernel::remove_one(&mut self.data, hash);
        self.meta.keys_inserted -= u64::from(found);
        found
    }

    /// Removes one copy of each hash in order, as [`remove_hash`](Self::remove_hash) does, with
    /// prefetch where the filter outgrows the cache. `found` then has one bit per hash, set if a
    /// copy of it was there. Returns how many were.
    pub fn remove_hashes(&mut self, hashes: &[u64], found: &mut Bitmask) -> usize {
        let mut removed = 0;
        found.write(hashes.len(), |words| removed = self.remove_into(hashes, words));
        removed
    }

    /// Removes one copy of each key in order, as [`remove_hashes`](Self::remove_hashes).
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the filter is of the caller's hashes. Nothing is changed then.
    pub fn remove_batch<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        found: &mut Bitmask,
    ) -> Result<usize, KeyError> {
        let hasher = self.hasher()?;
        let mut removed = 0;
        found.write(keys.len(), |words| {
            let mut hashes = [0; CHUNK_KEYS];
            for (keys, words) in keys.chunks(CHUNK_KEYS).zip(words.chunks_mut(CHUNK_KEYS / 64)) {
                let hashes = &mut hashes[..keys.len()];
                // Both have the same length.
                _ = hasher.hash_batch_into(keys, hashes);
                removed += self.remove_into(hashes, words);
            }
        });
        Ok(removed)
    }

    /// Takes one word per 64 hashes. Counts at once, since a later key of the batch may panic.
    fn remove_into(&mut self, hashes: &[u64], words: &mut [u64]) -> usize {
        let removed = kernel::remove(self.meta.kernel, &mut self.data, hashes, words);
        self.meta.keys_inserted -= removed as u64;
        removed
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.data.fill([0; size_of::<Block>()]);
        self.meta.keys_inserted = 0;
    }
}
