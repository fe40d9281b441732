//! Readers beside one writer: the lines as atomic words, without locks and without `unsafe`.
//!
//! A tag never moves, and one that is there stays in its lane until it is removed. What readers rely on beyond that is in `word`.

mod word;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::{Acquire, Release};

use blocked_bloom::{
    AllocError, BatchQuery, Block, BlockBuffer, Kernel, KeyError, KeyHash, KeyHasher, LengthError,
};

use self::word::{Word, empty_lanes, holds, put, take};
use crate::error::RemovableError;
use crate::filter::RemovableFilter;
use crate::tags::{KEEP_EMPTY, LANES, Place};

#[cfg(all(target_has_atomic = "32", not(target_has_atomic = "64")))]
type AtomicWord = core::sync::atomic::AtomicU32;
#[cfg(target_has_atomic = "64")]
type AtomicWord = core::sync::atomic::AtomicU64;

const WORD_BYTES: usize = size_of::<AtomicWord>();

impl Word for AtomicWord {
    const LANES: usize = WORD_BYTES / 2;

    #[inline]
    #[allow(clippy::useless_conversion, reason = "words have 32 bits on some machines")]
    fn load(&self) -> u64 {
        self.load(Acquire).into()
    }

    #[inline]
    #[allow(clippy::unnecessary_cast, reason = "words have 32 bits on some machines")]
    fn store(&self, word: u64) {
        self.store(word as _, Release);
    }
}

/// A line, in words whose lowest lanes come first.
#[repr(align(64))]
struct Line([AtomicWord; size_of::<Block>() / WORD_BYTES]);

impl Line {
    fn of(line: &Block) -> Self {
        let (words, _) = line.as_chunks::<WORD_BYTES>();
        Line(core::array::from_fn(|i| {
            let mut bytes = [0; 8];
            bytes[..WORD_BYTES].copy_from_slice(&words[i]);
            AtomicWord::new(u64::from_le_bytes(bytes) as _)
        }))
    }

    fn bytes(&self) -> Block {
        let mut line = [0; size_of::<Block>()];
        for (bytes, word) in line.chunks_exact_mut(WORD_BYTES).zip(&self.0) {
            bytes.copy_from_slice(&Word::load(word).to_le_bytes()[..WORD_BYTES]);
        }
        line
    }
}

/// What the writer and the readers share.
struct Shared {
    /// 1 to 2^32 - 1.
    lines: Vec<Line>,
    key_hash: KeyHash,
}

impl Shared {
    #[inline]
    fn place(&self, hash: u64) -> Place {
        Place::of(hash, self.lines.len() as u32)
    }

    /// Both lines of a place, the one with the lower number first.
    #[inline]
    fn ascending(&self, place: Place) -> [&[AtomicWord]; 2] {
        place.ascending().map(|line| &self.lines[line as usize].0[..])
    }

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        let place = self.place(hash);
        holds(self.ascending(place), place.tag)
    }

    #[inline]
    fn contains_key(&self, key: impl AsRef<[u8]>) -> bool {
        match self.key_hash.hasher() {
            Ok(hasher) => self.contains(hasher.hash(key)),
            Err(_) => true,
        }
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        let place = self.place(hash);
        for line in [place.first, place.second] {
            // The core prefetches at an offset from bytes, and words that others write may not be lent as bytes.
            let base: &[u8] = &[];
            let address = core::ptr::from_ref(&self.lines[line as usize]).addr();
            blocked_bloom::prefetch(base, address.wrapping_sub(base.as_ptr().addr()));
        }
    }
}

/// The one who adds to a filter and removes from it while others look up in it: made by [`RemovableFilter::into_writer`].
///
/// Nothing waits: an addition or removal is one store. There is one writer, since two could put their tags into one lane; put it behind a
/// lock where several threads write. Answers, lines and stored form are those of a [`RemovableFilter`] after the same calls.
///
/// ```
/// use blocked_bloom_removable::{RemovableError, RemovableOptions};
/// let mut writer = RemovableOptions::new(1_000).empty_filter()?.into_writer()?;
/// let reader = writer.reader();
/// writer.insert("203.0.113.7")?;
/// std::thread::scope(|threads| {
///     threads.spawn(|| assert!(reader.contains("203.0.113.7")));
///     threads.spawn(|| for i in 0..100_u32 {
///         writer.insert(i.to_le_bytes()).expect("there is space");
///     });
/// });
/// assert!(writer.remove("203.0.113.7")?);
/// assert!(!reader.contains("203.0.113.7"));
/// assert_eq!(writer.to_filter()?.len(), 100);
/// # Ok::<(), RemovableError>(())
/// ```
pub struct RemovableWriter {
    shared: Arc<Shared>,
    /// Lanes that are not empty.
    len: u64,
}

impl RemovableWriter {
    /// A reader. Any number of threads may have one.
    pub fn reader(&self) -> RemovableReader {
        RemovableReader(Arc::clone(&self.shared))
    }

    /// Adds a key, or a further copy of it: [`RemovableFilter::insert`].
    ///
    /// # Errors
    ///
    /// As there. Nothing is changed then.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<(), RemovableError> {
        let hasher = self.hasher()?;
        self.insert_hash(hasher.hash(key))
    }

    /// Adds the key with this hash: [`RemovableFilter::insert_hash`].
    ///
    /// # Errors
    ///
    /// [`RemovableError::Full`]. Nothing is changed then.
    pub fn insert_hash(&mut self, hash: u64) -> Result<(), RemovableError> {
        let place = self.shared.place(hash);
        let [first, second] =
            [place.first, place.second].map(|line| &self.shared.lines[line as usize].0);
        let empty = empty_lanes(first);
        let chosen = match empty > KEEP_EMPTY || empty >= empty_lanes(second) {
            true => first,
            false => second,
        };
        if !put(chosen, place.tag) {
            let (len, capacity) = (self.len, self.capacity());
            return Err(RemovableError::Full { inserted: 0, len, capacity });
        }
        self.len += 1;
        Ok(())
    }

    /// Removes one copy of a key that was added: [`RemovableFilter::remove`].
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the filter is of the caller's hashes. Nothing is changed then.
    #[inline]
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<bool, KeyError> {
        let hasher = self.hasher()?;
        Ok(self.remove_hash(hasher.hash(key)))
    }

    /// Removes one copy of the key with this hash: [`RemovableFilter::remove_hash`].
    pub fn remove_hash(&mut self, hash: u64) -> bool {
        let place = self.shared.place(hash);
        let found = take(self.shared.ascending(place), place.tag);
        self.len -= u64::from(found);
        found
    }

    /// Whether the key may be in the filter: false means certainly absent.
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.shared.contains_key(key)
    }

    /// Whether the key with this hash may be in the filter.
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.shared.contains(hash)
    }

    /// Prefetches both lines of a hash, for what comes some hundred nanoseconds later.
    #[inline]
    pub fn prefetch_hash(&self, hash: u64) {
        self.shared.prefetch(hash);
    }

    /// Keys in the filter, copies included.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether every key is certainly absent.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Keys that would fit if they were spread evenly: [`RemovableFilter::capacity`].
    pub fn capacity(&self) -> u64 {
        self.shared.lines.len() as u64 * LANES as u64
    }

    /// The hash and seed of the filter.
    pub fn key_hash(&self) -> KeyHash {
        self.shared.key_hash
    }

    /// The hasher of the filter's keys.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the caller hashes.
    #[inline]
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.shared.key_hash.hasher()
    }

    /// A copy of the filter as it is now, to be stored or looked up in by SIMD kernels. Readers stay as they are.
    ///
    /// # Errors
    ///
    /// [`RemovableError::Alloc`].
    pub fn to_filter(&self) -> Result<RemovableFilter, RemovableError> {
        let mut lines = BlockBuffer::zeroed(self.shared.lines.len() as u32, true)?;
        for (copy, line) in lines.iter_mut().zip(&self.shared.lines) {
            *copy = line.bytes();
        }
        Ok(RemovableFilter::from_parts(lines, self.len, self.key_hash(), Kernel::default()))
    }
}

/// One who looks up in a filter while its [`RemovableWriter`] adds and removes. Cloning it copies a pointer.
///
/// **What a reader finds.** A key of which at least one copy is in the filter from before the lookup begins until it has ended is found,
/// whatever is added and removed meanwhile, further copies of it included. "Before" is as everywhere: the addition has returned, and the
/// reader has learned of that by any synchronisation (a channel, a lock, a `Release` store read by an `Acquire` load). A lookup that
/// races with the first addition or the last removal of a key may answer either way.
///
/// Cost: two cache lines, 16 loads and as many comparisons; a SIMD load of words that another thread writes is not allowed. Batches are
/// prefetched.
///
/// ```
/// use blocked_bloom::{BatchQuery, Bitmask};
/// use blocked_bloom_removable::RemovableOptions;
/// let mut writer = RemovableOptions::new(1_000).empty_filter()?.into_writer()?;
/// let reader = writer.reader();
/// writer.insert("apple")?;
/// let mut hits = Bitmask::new();
/// reader.contains_batch(&["apple", "banana"], &mut hits);
/// assert!(hits.hits().eq([0]));
/// # Ok::<(), blocked_bloom_removable::RemovableError>(())
/// ```
#[derive(Clone)]
pub struct RemovableReader(Arc<Shared>);

/// Keys between the prefetch of a key's lines and its lookup.
const DISTANCE: usize = 32;

impl RemovableReader {
    /// Whether the key may be in the filter: false means certainly absent. A filter of [`KeyHash::Caller`] answers true.
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.0.contains_key(key)
    }

    /// Whether the key with this hash may be in the filter.
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.0.contains(hash)
    }

    /// Prefetches both lines of a hash, for a lookup that comes some hundred nanoseconds later.
    #[inline]
    pub fn prefetch_hash(&self, hash: u64) {
        self.0.prefetch(hash);
    }

    /// The hash and seed of the filter.
    pub fn key_hash(&self) -> KeyHash {
        self.0.key_hash
    }

    /// The hasher of the filter's keys.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the caller hashes.
    #[inline]
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.0.key_hash.hasher()
    }
}

impl BatchQuery for RemovableReader {
    /// Each key is looked up by itself: the batch is not of one moment.
    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        LengthError::check(hashes.len(), words)?;
        let (first, later) = hashes.split_at(DISTANCE.min(hashes.len()));
        first.iter().for_each(|&hash| self.prefetch_hash(hash));
        let mut later = later.iter();
        for (hashes, word) in hashes.chunks(64).zip(words) {
            *word = 0;
            for (i, &hash) in hashes.iter().enumerate() {
                if let Some(&hash) = later.next() {
                    self.prefetch_hash(hash);
                }
                *word |= u64::from(self.contains_hash(hash)) << i;
            }
        }
        Ok(())
    }

    fn hash_keys<K: AsRef<[u8]>>(&self, keys: &[K], hashes: &mut [u64]) -> Result<(), KeyError> {
        let hasher = self.hasher()?;
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = hasher.hash(key);
        }
        Ok(())
    }
}

impl RemovableFilter {
    /// The filter for one writer and any number of readers beside it. Copies the lines once; huge pages are not advised for the copy.
    ///
    /// # Errors
    ///
    /// [`RemovableError::Alloc`].
    pub fn into_writer(self) -> Result<RemovableWriter, RemovableError> {
        let view = self.view();
        let mut lines = Vec::new();
        let reserved = lines.try_reserve_exact(view.lines().len());
        reserved.map_err(|_| AllocError::new(self.memory_bytes()))?;
        lines.extend(view.lines().iter().map(Line::of));
        let shared = Arc::new(Shared { lines, key_hash: self.key_hash() });
        Ok(RemovableWriter { shared, len: self.len() })
    }
}

/// The shape, without the tags.
impl core::fmt::Debug for RemovableWriter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RemovableWriter")
            .field("lines", &self.shared.lines.len())
            .field("len", &self.len)
            .field("key_hash", &self.key_hash())
            .finish()
    }
}

/// The shape, without the tags.
impl core::fmt::Debug for RemovableReader {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RemovableReader")
            .field("lines", &self.0.lines.len())
            .field("key_hash", &self.key_hash())
            .finish()
    }
}
