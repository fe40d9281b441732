//! Concurrent readers and one writer: the lines are atomic words, without locks or `unsafe`.
//!
//! A tag never moves: it stays in its lane until it is removed. `word` states the further rules on
//! which readers rely.

mod word;

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use blocked_bloom::parts::{AtomicBuffer, AtomicWord, BlockBuffer, PrefetchAhead, check_words};
use blocked_bloom::{Filter, KeyError, KeyHash, LengthError};

use self::word::Word;
use crate::error::RemovableError;
use crate::filter::{Meta, RemovableFilter};
use crate::kernel;
use crate::tags::{KEEP_EMPTY, LANES, Place};

/// A line of lanes, as words shared between threads.
type AtomicLine = [AtomicWord; 64 / size_of::<AtomicWord>()];

impl Word for AtomicWord {
    const LANES: usize = size_of::<AtomicWord>() / 2;

    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    #[inline]
    fn store(&self, word: u64, order: Ordering) {
        self.store(word, order);
    }
}

/// The data that the writer and the readers share.
struct Shared {
    lines: AtomicBuffer,
    /// Its number of keys is not updated; the writer has its own.
    meta: Meta,
}

impl RemovableFilter {
    /// Converts the filter for one writer and any number of concurrent readers, without copying.
    pub fn into_writer(self) -> RemovableWriter {
        let RemovableFilter { data, meta } = self;
        let shared = Arc::new(Shared { lines: AtomicBuffer::new(data), meta });
        RemovableWriter { reader: RemovableReader(shared), keys_inserted: meta.keys_inserted }
    }
}

/// Inserts and removes keys while [readers](RemovableReader) look keys up. Created by
/// [`RemovableFilter::into_writer`].
///
/// No thread waits: an insertion or removal is one store. There is only one writer, because two
/// could write their tags into the same lane. Put it in a lock if several threads write. Answers,
/// lines and stored form equal those of a [`RemovableFilter`] after the same calls.
///
/// ```
/// use blocked_bloom::Filter;
/// use blocked_bloom_removable::{RemovableError, RemovableOptions};
/// let mut writer = RemovableOptions::new(1_000).empty_filter()?.into_writer();
/// let reader = writer.reader().clone();
/// writer.insert("203.0.113.7")?;
/// std::thread::scope(|threads| {
///     threads.spawn(|| assert!(reader.contains("203.0.113.7")));
///     threads.spawn(|| for i in 0..100_u32 {
///         writer.insert(i.to_le_bytes()).expect("there is space");
///     });
/// });
/// assert!(writer.remove("203.0.113.7")?);
/// assert!(!reader.contains("203.0.113.7"));
/// assert_eq!(writer.to_filter()?.keys_inserted(), 100);
/// # Ok::<(), RemovableError>(())
/// ```
#[derive(Debug)]
pub struct RemovableWriter {
    reader: RemovableReader,
    /// Number of lanes in use.
    keys_inserted: u64,
}

impl RemovableWriter {
    /// Returns the reader, which looks keys up. Clone it for other threads.
    pub fn reader(&self) -> &RemovableReader {
        &self.reader
    }

    /// Inserts a key, or another copy of it: see [`RemovableFilter::insert`].
    ///
    /// # Errors
    ///
    /// The errors of that method; nothing changes.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool, RemovableError> {
        let hasher = self.reader.hasher()?;
        self.insert_hash(hasher.hash(key))
    }

    /// Inserts a key by its hash: see [`RemovableFilter::insert_hash`].
    ///
    /// # Errors
    ///
    /// [`RemovableError::Full`]; nothing changes.
    pub fn insert_hash(&mut self, hash: u64) -> Result<bool, RemovableError> {
        let is_new = !self.reader.contains_hash(hash);
        let (lines, place, tag) = self.reader.place(hash);
        if !word::insert(lines, place, tag, KEEP_EMPTY) {
            let (taken, capacity) = (self.keys_inserted, self.capacity());
            return Err(RemovableError::Full { inserted: 0, taken, capacity });
        }
        self.keys_inserted += 1;
        Ok(is_new)
    }

    /// Removes one copy of an inserted key: see [`RemovableFilter::remove`].
    ///
    /// # Errors
    ///
    /// [`KeyError`] for caller-supplied hashes; nothing changes.
    #[inline]
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<bool, KeyError> {
        let hasher = self.reader.hasher()?;
        Ok(self.remove_hash(hasher.hash(key)))
    }

    /// Removes one copy of a key by its hash: see [`RemovableFilter::remove_hash`].
    pub fn remove_hash(&mut self, hash: u64) -> bool {
        let (lines, place, tag) = self.reader.place(hash);
        let found = word::remove(lines, place, tag);
        self.keys_inserted -= u64::from(found);
        found
    }

    /// Returns the number of keys in the filter, including copies.
    pub fn keys_inserted(&self) -> u64 {
        self.keys_inserted
    }

    /// Returns the number of lanes: see [`RemovableFilter::capacity`].
    pub fn capacity(&self) -> u64 {
        self.reader.0.lines.blocks().len() as u64 * LANES as u64
    }

    /// Copies the filter in its current state, to store it or to look keys up with SIMD kernels.
    /// Readers are not affected.
    ///
    /// # Errors
    ///
    /// [`RemovableError::Alloc`].
    pub fn to_filter(&self) -> Result<RemovableFilter, RemovableError> {
        let Shared { lines, meta } = &*self.reader.0;
        let lines = lines.blocks();
        let mut data = BlockBuffer::zeroed(lines.len() as u32, meta.huge_pages)?;
        for (copy, line) in data.iter_mut().zip(lines) {
            for (bytes, word) in copy.chunks_exact_mut(size_of::<AtomicWord>()).zip(line) {
                // Relaxed suffices: only this thread writes.
                bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes()[..bytes.len()]);
            }
        }
        let meta = Meta { keys_inserted: self.keys_inserted, ..*meta };
        Ok(RemovableFilter { data, meta })
    }
}

/// Looks keys up in a filter while its [`RemovableWriter`] inserts and removes. A clone copies a
/// pointer.
///
/// **Guarantee.** A lookup finds a key if at least one copy is in the filter from before the lookup
/// begins until it ends. Concurrent insertions and removals do not matter, including those of other
/// copies of the key. "Before" means that the insertion has returned, and that the reader knows it
/// through synchronisation (a channel, a lock, a `Release` store read by an `Acquire` load). A
/// lookup that races with the first insertion or the last removal of a key may return either
/// answer.
///
/// Cost: two cache lines, 16 loads and as many comparisons, because SIMD loads of words that
/// another thread writes are not allowed. Batches prefetch. Each key of a batch is looked up
/// separately, so a batch is not a snapshot.
///
/// ```
/// use blocked_bloom::{Bitmask, Filter};
/// use blocked_bloom_removable::RemovableOptions;
/// let mut writer = RemovableOptions::new(1_000).empty_filter()?.into_writer();
/// let reader = writer.reader().clone();
/// writer.insert("apple")?;
/// let mut hits = Bitmask::new();
/// reader.contains_batch(&["apple", "banana"], &mut hits);
/// assert!(hits.hits().eq([0]));
/// # Ok::<(), blocked_bloom_removable::RemovableError>(())
/// ```
#[derive(Clone)]
pub struct RemovableReader(Arc<Shared>);

impl RemovableReader {
    /// Returns all lines, the numbers of a hash's two lines, and its tag.
    #[inline]
    fn place(&self, hash: u64) -> (&[AtomicLine], [u32; 2], u16) {
        let lines = self.0.lines.blocks();
        let Place { first, second, tag } = Place::new(hash, lines.len() as u32);
        (lines, [first, second], tag)
    }
}

/// Each key of a batch is looked up separately, so a batch is not a snapshot.
impl Filter for RemovableReader {
    // Always inlined: without it, a batch lookup takes 1.2 times as much time.
    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        let (lines, place, tag) = self.place(hash);
        word::contains(lines, place, tag)
    }

    // A separate loop that prefetches 32 keys ahead instead of 64 took 0.9x the time above a
    // million keys (Zen 5).
    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        check_words(hashes.len(), words)?;
        let Shared { lines, meta } = &*self.0;
        let outgrows = kernel::prefetches(meta.kernel, lines.blocks(), hashes);
        let later = if outgrows { hashes } else { &[] };
        let mut ahead = PrefetchAhead::start(later, |&hash| self.prefetch_hash(hash));
        for (hashes, word) in hashes.chunks(64).zip(words) {
            *word = 0;
            for (i, &hash) in hashes.iter().enumerate() {
                ahead.advance(1);
                ran!("reader");
                *word |= u64::from(self.contains_hash(hash)) << i;
            }
        }
        Ok(())
    }

    #[inline]
    fn prefetch_hash(&self, hash: u64) {
        let lines = self.0.lines.blocks();
        for start in Place::new(hash, lines.len() as u32).offsets() {
            crate::prefetch(lines, start);
        }
    }

    #[inline]
    fn key_hash(&self) -> KeyHash {
        self.0.meta.key_hash
    }

    #[inline]
    fn hash_key(&self, key: &[u8]) -> Option<u64> {
        Some(self.hasher().ok()?.hash(key))
    }
}

/// Shows the shape, without the tags.
impl core::fmt::Debug for RemovableReader {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RemovableReader")
            .field("lines", &self.0.lines.blocks().len())
            .field("key_hash", &self.key_hash())
            .finish()
    }
}

#[cfg(test)]
#[path = "../tests/unit/shared.rs"]
mod tests;
