//! A filter that owns its lines: adding, removing, and making a larger one.

use blocked_bloom::{
    BatchQuery, Bitmask, Block, BlockBuffer, Kernel, KeyError, KeyHash, KeyHasher, LengthError,
};

use crate::error::RemovableError;
use crate::kernel;
use crate::options::RemovableOptions;
use crate::view::{RemovableFilterRef, count_tags};

/// Keys of a batch that are hashed at a time: 8 KiB of stack.
const AT_ONCE: usize = 1_024;

/// A filter that keys can be removed from.
///
/// It answers "maybe" or "certainly absent" as a Bloom filter does, at 18.3 bits per key, 0.085 % false positives and two cache lines a
/// lookup. **Only remove keys that were added**: the removal of another can take the tag of a key that is there, which is then absent;
/// `docs/removable.md` has the rate. A key that was added several times is there until it was removed as often.
///
/// - Up to 64 copies of a key fit, 32 if its two lines are the same (one key in as many as there are lines; any key where there is one
///   line), and fewer where other keys have taken lanes.
/// - It does not grow. [`RemovableError::Full`] says that a key was not added, and the filter is as it was. A tag does not have enough of
///   the hash to be moved to a filter of another size, so a larger one is made from the keys, which whoever removes keys has:
///   [`from_hashes`](Self::from_hashes). By default the first key is rejected at nine tenths of the
///   [capacity](Self::capacity) and the filter is for seven eighths of it.
/// - Filters cannot be merged.
///
/// ```
/// use blocked_bloom_removable::{RemovableError, RemovableFilter, RemovableOptions};
/// let mut sessions = RemovableOptions::new(1_000).empty_filter()?;
/// sessions.insert("alice")?;
/// sessions.insert("bob")?;
/// assert!(sessions.remove("alice")?);
/// assert!(!sessions.contains("alice") && sessions.contains("bob"));
///
/// // Larger, from the keys.
/// let hasher = sessions.hasher()?;
/// let live = ["bob"].map(|key| hasher.hash(key));
/// sessions = RemovableFilter::from_hashes(&RemovableOptions::new(2_000), &live)?;
/// assert!(sessions.contains("bob"));
/// # Ok::<(), RemovableError>(())
/// ```
#[derive(Clone)]
pub struct RemovableFilter {
    lines: BlockBuffer,
    /// Lanes that are not empty.
    len: u64,
    key_hash: KeyHash,
    kernel: Kernel,
}

impl RemovableFilter {
    pub(crate) fn empty(options: &RemovableOptions) -> Result<Self, RemovableError> {
        let lines = BlockBuffer::zeroed(options.lines()?, options.huge_pages())?;
        Ok(Self::from_parts(lines, 0, options.key_hash(), Kernel::default()))
    }

    /// The caller has counted the tags.
    pub(crate) fn from_parts(
        lines: BlockBuffer,
        len: u64,
        key_hash: KeyHash,
        kernel: Kernel,
    ) -> Self {
        RemovableFilter { lines, len, key_hash, kernel }
    }

    pub(crate) fn copy_of(view: &RemovableFilterRef<'_>) -> Result<Self, RemovableError> {
        let lines = BlockBuffer::copy_of(view.lines(), true)?;
        // The number in a header that was opened unverified may be wrong.
        let len = count_tags(&lines);
        Ok(Self::from_parts(lines, len, view.key_hash(), view.kernel()))
    }

    /// A filter of these options, or of as many keys as there are hashes if that are more, that holds the hashes: how a filter is made
    /// larger, and how one is made again after damage.
    ///
    /// The hashes must be of the options' [`key_hash`](RemovableOptions::key_hash).
    ///
    /// # Errors
    ///
    /// As [`empty_filter`](RemovableOptions::empty_filter); [`RemovableError::Full`] if a hash is there more than 64 times (32 if its two lines are one), or the slack is
    /// so small that not all keys fit.
    ///
    /// ```
    /// use blocked_bloom_removable::{RemovableError, RemovableFilter, RemovableOptions};
    /// use std::collections::HashSet;
    /// let (mut options, mut live) = (RemovableOptions::new(1_000), HashSet::new());
    /// let mut filter = options.empty_filter()?;
    /// let hasher = filter.hasher()?;
    /// for key in 0..10_000_u32 {
    ///     live.insert(key);
    ///     let hash = hasher.hash(key.to_le_bytes());
    ///     if let Err(RemovableError::Full { .. }) = filter.insert_hash(hash) {
    ///         // Twice as large: each key is hashed again once or twice in all.
    ///         options = options.with_keys(2 * options.keys());
    ///         let hashes: Vec<u64> = live.iter().map(|key: &u32| hasher.hash(key.to_le_bytes())).collect();
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

    /// The filter, borrowed: every query, the statistics, and the stored form.
    #[inline]
    pub fn view(&self) -> RemovableFilterRef<'_> {
        RemovableFilterRef::new(&self.lines, self.len, self.key_hash, self.kernel)
    }

    /// Adds a key, or a further copy of it.
    ///
    /// Cost: one hash; one cache line, two where the first line has 24 tags.
    ///
    /// # Errors
    ///
    /// [`RemovableError::Full`] if both lines of the key are full, [`RemovableError::Key`] if the filter is of the caller's hashes. Nothing
    /// is changed then.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<(), RemovableError> {
        let hasher = self.hasher()?;
        self.insert_hash(hasher.hash(key))
    }

    /// Adds the key with this hash, or a further copy of it.
    ///
    /// # Errors
    ///
    /// [`RemovableError::Full`]. Nothing is changed then.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> Result<(), RemovableError> {
        if !kernel::insert_one(&mut self.lines, hash) {
            return Err(self.full(0));
        }
        self.len += 1;
        Ok(())
    }

    /// Adds hashes in order, as [`insert_hash`](Self::insert_hash) does, with prefetch where the filter outgrows the cache.
    ///
    /// # Errors
    ///
    /// [`RemovableError::Full`] at the first that cannot be added, with the number of those before it, which were. None after it was.
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), RemovableError> {
        let inserted = kernel::insert(self.kernel, &mut self.lines, hashes);
        self.len += inserted as u64;
        if inserted == hashes.len() {
            return Ok(());
        }
        Err(self.full(inserted))
    }

    fn full(&self, inserted: usize) -> RemovableError {
        RemovableError::Full { inserted, len: self.len, capacity: self.capacity() }
    }

    /// Adds keys in order, as [`insert_hashes`](Self::insert_hashes).
    ///
    /// # Errors
    ///
    /// [`RemovableError::Full`] as there, [`RemovableError::Key`] as in [`insert`](Self::insert).
    pub fn insert_batch<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<(), RemovableError> {
        self.hasher()?;
        let mut hashes = [0; AT_ONCE];
        for (before, keys) in keys.chunks(AT_ONCE).enumerate() {
            self.hash_keys(keys, &mut hashes)?;
            self.insert_hashes(&hashes[..keys.len()]).map_err(|error| match error {
                RemovableError::Full { inserted, len, capacity } => {
                    RemovableError::Full { inserted: before * AT_ONCE + inserted, len, capacity }
                }
                error => error,
            })?;
        }
        Ok(())
    }

    /// Removes one copy of a key that was added. False if it is certainly not there: then nothing is changed.
    ///
    /// **The key must have been added.** If it was not, this mostly returns false; but where it would be a false positive, it removes the
    /// tag that it is taken for, and the key of that tag is lost.
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

    /// Removes one copy of the key with this hash, which must have been added, as [`remove`](Self::remove).
    #[inline]
    pub fn remove_hash(&mut self, hash: u64) -> bool {
        let found = kernel::remove_one(&mut self.lines, hash);
        self.len -= u64::from(found);
        found
    }

    /// Removes one copy of each hash in order, as [`remove_hash`](Self::remove_hash) does, with prefetch where the filter outgrows the
    /// cache. `found` then has one bit per hash, set if a copy of it was there. Returns how many were.
    pub fn remove_hashes(&mut self, hashes: &[u64], found: &mut Bitmask) -> usize {
        let mut removed = 0;
        found.write(hashes.len(), |words| {
            // There are as many words as the hashes take.
            removed = kernel::remove(self.kernel, &mut self.lines, hashes, words).unwrap_or(0);
        });
        self.len -= removed as u64;
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
            let mut hashes = [0; AT_ONCE];
            for (keys, words) in keys.chunks(AT_ONCE).zip(words.chunks_mut(AT_ONCE / 64)) {
                hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = hasher.hash(key));
                let hashes = &hashes[..keys.len()];
                // There are as many words as the hashes take.
                let now = kernel::remove(self.kernel, &mut self.lines, hashes, words).unwrap_or(0);
                // Here, since a later key may panic.
                self.len -= now as u64;
                removed += now;
            }
        });
        Ok(removed)
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.lines.fill([0; size_of::<Block>()]);
        self.len = 0;
    }

    /// Whether the key may be in the filter: [`RemovableFilterRef::contains`].
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.view().contains(key)
    }

    /// Whether the key with this hash may be in the filter: [`RemovableFilterRef::contains_hash`].
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.view().contains_hash(hash)
    }

    /// Prefetches both lines of a hash: [`RemovableFilterRef::prefetch_hash`].
    #[inline]
    pub fn prefetch_hash(&self, hash: u64) {
        self.view().prefetch_hash(hash);
    }

    /// Keys in the filter, copies included: added and not removed.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether every key is certainly absent.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Keys that would fit if they were spread evenly: 32 for each line. Keys are rejected from nine tenths of it on.
    pub fn capacity(&self) -> u64 {
        self.view().capacity()
    }

    /// [`len`](Self::len) divided by [`capacity`](Self::capacity), 0 to 1: what to watch for making a larger filter in time.
    pub fn load(&self) -> f64 {
        self.view().load()
    }

    /// Memory of the lines.
    pub fn memory_bytes(&self) -> u64 {
        size_of_val::<[Block]>(&self.lines) as u64
    }

    /// The hash and seed of the filter.
    pub fn key_hash(&self) -> KeyHash {
        self.key_hash
    }

    /// The hasher of the filter's keys.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the caller hashes.
    #[inline]
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.key_hash.hasher()
    }

    /// The same filter, with batches looked up, added and removed by `kernel`.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        RemovableFilter { kernel, ..self }
    }
}

impl BatchQuery for RemovableFilter {
    #[inline]
    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        self.view().contains_hashes_into(hashes, words)
    }

    #[inline]
    fn hash_keys<K: AsRef<[u8]>>(&self, keys: &[K], hashes: &mut [u64]) -> Result<(), KeyError> {
        self.view().hash_keys(keys, hashes)
    }
}

/// As [`RemovableFilterRef`] compares.
impl PartialEq for RemovableFilter {
    fn eq(&self, other: &Self) -> bool {
        self.view() == other.view()
    }
}

impl Eq for RemovableFilter {}

/// The shape, without the tags.
impl core::fmt::Debug for RemovableFilter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.view().fmt(f)
    }
}
