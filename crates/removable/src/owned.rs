//! The filter that owns its lines: construction, insertion and removal.

use blocked_bloom::parts::BlockBuffer;
use blocked_bloom::{Bitmask, Block, Filter, Kernel, KeyError};

use crate::error::RemovableError;
use crate::filter::{Lines, Meta, RemovableFilter};
use crate::kernel;
use crate::options::RemovableOptions;
use crate::tags::count_tags;

/// Keys of a batch hashed at a time: 8 KiB of stack.
const CHUNK_KEYS: usize = 1_024;

impl RemovableOptions {
    /// Creates an empty filter.
    ///
    /// # Errors
    ///
    /// [`RemovableError::SlackOutOfRange`]; [`RemovableError::KeysOutOfRange`] if 2^32 - 1 lines
    /// are not enough; [`RemovableError::Alloc`].
    pub fn empty_filter(&self) -> Result<RemovableFilter, RemovableError> {
        let (key_hash, huge_pages) = (self.key_hash(), self.huge_pages);
        let data = BlockBuffer::zeroed(self.lines()?, huge_pages)?;
        let meta = Meta { key_hash, keys_inserted: 0, kernel: Kernel::default(), huge_pages };
        Ok(RemovableFilter { data, meta })
    }
}

impl<D: Lines> RemovableFilter<D> {
    /// Copies the filter into its own memory, so that it can be changed. Cost: two passes over the
    /// lines.
    ///
    /// # Errors
    ///
    /// [`RemovableError::PassAll`] for a pass-all filter; [`RemovableError::Alloc`].
    pub fn to_filter(&self) -> Result<RemovableFilter, RemovableError> {
        let lines = self.lines();
        if lines.is_empty() {
            return Err(RemovableError::PassAll);
        }
        let data = BlockBuffer::copy_of(lines, self.meta.huge_pages)?;
        // A header that was opened unverified may contain a wrong number.
        let meta = Meta { keys_inserted: count_tags(&data), ..self.meta };
        Ok(RemovableFilter { data, meta })
    }
}

impl RemovableFilter {
    /// Builds a filter that contains these hashes, sized for the options' number of keys, or for
    /// the number of hashes if that is larger. Use it to enlarge a filter, or to rebuild a damaged
    /// one.
    ///
    /// The hashes must come from the options' [`hasher`](RemovableOptions::hasher).
    ///
    /// # Errors
    ///
    /// The errors of [`empty_filter`](RemovableOptions::empty_filter), and [`RemovableError::Full`]
    /// if a hash occurs more than 64 times (32 if both of its lines are the same) or the slack is
    /// too small for all keys.
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
    ///         // Double the size. Each key is rehashed once or twice in all.
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

    /// Inserts a key, or another copy of it. Returns true if the key was certainly absent before.
    ///
    /// Cost: one hash, two cache lines.
    ///
    /// # Errors
    ///
    /// [`RemovableError::Full`] if both lines of the key are full, [`RemovableError::Key`] for
    /// caller-supplied hashes. Nothing changes in either case.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool, RemovableError> {
        let hasher = self.hasher()?;
        self.insert_hash(hasher.hash(key))
    }

    /// Inserts a key by its hash, or another copy of it. Returns true if the key was certainly
    /// absent before.
    ///
    /// # Errors
    ///
    /// [`RemovableError::Full`]; nothing changes.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> Result<bool, RemovableError> {
        let is_new = !self.contains_hash(hash);
        let inserted = kernel::insert_one(&mut self.data, hash);
        self.count(0, inserted.into(), 1).map(|()| is_new)
    }

    /// Inserts hashes in order, like [`insert_hash`](Self::insert_hash), and prefetches if the
    /// filter exceeds the cache.
    ///
    /// # Errors
    ///
    /// [`RemovableError::Full`] at the first hash that does not fit. It contains the number of
    /// hashes inserted before it. Later hashes are not inserted.
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), RemovableError> {
        self.insert_after(0, hashes)
    }

    /// Inserts further hashes of a batch, after the first `before` hashes.
    fn insert_after(&mut self, before: usize, hashes: &[u64]) -> Result<(), RemovableError> {
        let inserted = kernel::insert(self.meta.kernel, &mut self.data, hashes);
        self.count(before, inserted, hashes.len())
    }

    /// Counts the inserted hashes. Fails if `now` is less than `of`.
    #[inline]
    fn count(&mut self, before: usize, now: usize, of: usize) -> Result<(), RemovableError> {
        self.meta.keys_inserted += now as u64;
        if now == of {
            return Ok(());
        }
        let (taken, capacity) = (self.meta.keys_inserted, self.capacity());
        Err(RemovableError::Full { inserted: before + now, taken, capacity })
    }

    /// Inserts keys in order, like [`insert_hashes`](Self::insert_hashes).
    ///
    /// # Errors
    ///
    /// [`RemovableError::Full`] as for `insert_hashes`, and [`RemovableError::Key`] as for
    /// [`insert`](Self::insert).
    pub fn insert_batch<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<(), RemovableError> {
        let hasher = self.hasher()?;
        let mut hashes = [0; CHUNK_KEYS];
        for (chunk, keys) in keys.chunks(CHUNK_KEYS).enumerate() {
            let hashes = &mut hashes[..keys.len()];
            // Cannot fail: both lengths are equal.
            _ = hasher.hash_batch_into(keys, hashes);
            self.insert_after(chunk * CHUNK_KEYS, hashes)?;
        }
        Ok(())
    }

    /// Removes one copy of an inserted key. Returns false if the key is certainly absent; nothing
    /// changes in that case.
    ///
    /// **The key must have been inserted.** For other keys the result is usually false. But if such
    /// a key is a false positive, its removal removes the equal tag of an inserted key, and that
    /// key is lost.
    ///
    /// Cost: one hash, two cache lines.
    ///
    /// # Errors
    ///
    /// [`KeyError`] for caller-supplied hashes; nothing changes.
    #[inline]
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<bool, KeyError> {
        let hasher = self.hasher()?;
        Ok(self.remove_hash(hasher.hash(key)))
    }

    /// Removes one copy of a key by its hash. The key must have been inserted: see
    /// [`remove`](Self::remove).
    #[inline]
    pub fn remove_hash(&mut self, hash: u64) -> bool {
        let found = kernel::remove_one(&mut self.data, hash);
        self.meta.keys_inserted -= u64::from(found);
        found
    }

    /// Removes one copy of each hash in order, like [`remove_hash`](Self::remove_hash), and
    /// prefetches if the filter exceeds the cache. Sets one bit of `found` per hash that was
    /// present, and returns their number.
    pub fn remove_hashes(&mut self, hashes: &[u64], found: &mut Bitmask) -> usize {
        let mut removed = 0;
        found.write(hashes.len(), |words| removed = self.remove_into(hashes, words));
        removed
    }

    /// Removes one copy of each key in order, like [`remove_hashes`](Self::remove_hashes).
    ///
    /// # Errors
    ///
    /// [`KeyError`] for caller-supplied hashes; nothing changes.
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
                // Cannot fail: both lengths are equal.
                _ = hasher.hash_batch_into(keys, hashes);
                removed += self.remove_into(hashes, words);
            }
        });
        Ok(removed)
    }

    /// Takes one word per 64 hashes. Updates the count at once, since a later key may panic.
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
