//! Collecting keys whose number is not known yet.
//!
//! This file owns the list of hashes and the sizing at the end. A builder is not a filter: it cannot be asked anything, so an
//! unfinished one cannot give a wrong answer.

use alloc::vec::Vec;

use crate::error::{AllocError, BuildError};
use crate::filter::BloomFilter;
use crate::hash::{KeyHash, KeyHasher};
use crate::params::{Params, Sizing};

/// Hashes in a chunk of the builder's list: 512 KiB, so that growing never copies and a chunk fits the cache.
const CHUNK: usize = 1 << 16;

/// Collects keys while a table is written, and sizes the filter when their number is known.
///
/// Memory: 8 bytes per key in chunks of 512 KiB, then the filter beside it; nothing if the sizing means "no filter". A key
/// equal to the one added just before it is dropped, so that the versions of one key in a sorted run count once.
///
/// ```
/// use blocked_bloom::{BloomFilterBuilder, Sizing};
/// let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
/// for key in ["apple", "apple", "banana"] {
///     builder.insert(key);
/// }
/// assert_eq!(builder.len(), 2);
/// let filter = builder.finish()?;
/// assert!(filter.contains("banana"));
/// # Ok::<(), blocked_bloom::BuildError>(())
/// ```
#[derive(Clone)]
pub struct BloomFilterBuilder {
    sizing: Sizing,
    probes: Option<u32>,
    key_hash: KeyHash,
    /// All full but the last; none if there will be no filter.
    chunks: Vec<Vec<u64>>,
    /// Keys that are not kept, since there will be no filter.
    only_counted: u64,
    last: Option<u64>,
    /// What `finish` must report instead of a filter that lacks a key.
    failed: Option<BuildError>,
}

impl BloomFilterBuilder {
    /// A builder without keys. Nothing is allocated before the first; the sizing is checked by [`finish`](Self::finish).
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, Sizing};
    /// let builder = BloomFilterBuilder::new(Sizing::FalsePositiveRate(0.01));
    /// assert!(builder.is_empty());
    /// ```
    pub fn new(sizing: Sizing) -> Self {
        BloomFilterBuilder {
            sizing,
            probes: None,
            key_hash: KeyHash::default(),
            chunks: Vec::new(),
            only_counted: 0,
            last: None,
            failed: None,
        }
    }

    /// A builder whose keys are hashed with another seed, or by the caller.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, KeyHash, Sizing};
    /// let sizing = Sizing::BitsPerKey(10.0);
    /// let builder = BloomFilterBuilder::with_key_hash(sizing, KeyHash::Xxh3 { seed: 7 });
    /// assert_eq!(builder.finish()?.view().key_hash(), KeyHash::Xxh3 { seed: 7 });
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    pub fn with_key_hash(sizing: Sizing, key_hash: KeyHash) -> Self {
        BloomFilterBuilder { key_hash, ..BloomFilterBuilder::new(sizing) }
    }

    /// Sets the probes, 1 to 30, instead of letting the sizing choose; checked by [`finish`](Self::finish).
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, Sizing};
    /// let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0)).probes(4);
    /// assert_eq!(builder.finish()?.params().probes(), 4);
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn probes(self, probes: u32) -> Self {
        BloomFilterBuilder { probes: Some(probes), ..self }
    }

    /// Adds a key, unless it equals the one added just before it.
    ///
    /// With [`KeyHash::Caller`] a key cannot be hashed: [`finish`](Self::finish) will then fail.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, Sizing};
    /// # let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// builder.insert("apple");
    /// builder.insert(42_u64.to_le_bytes());
    /// assert_eq!(builder.len(), 2);
    /// ```
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) {
        match self.key_hash {
            KeyHash::Xxh3 { seed } => self.insert_hash(KeyHasher::with_seed(seed).hash(key)),
            KeyHash::Caller { tag } => self.fail(BuildError::KeyWithoutHash { tag }),
        }
    }

    /// Adds the key with this hash, unless it equals the one added just before it.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, KeyHasher, Sizing};
    /// # let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// builder.insert_hash(KeyHasher::default().hash("apple"));
    /// assert!(builder.finish()?.contains("apple"));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) {
        if self.last == Some(hash) {
            return;
        }
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < chunk.capacity() => chunk.push(hash),
            _ => self.grow_and_insert(hash),
        }
        self.last = Some(hash);
    }

    #[cold]
    fn grow_and_insert(&mut self, hash: u64) {
        if self.sizing.is_no_filter() {
            self.only_counted += 1;
        } else if self.failed.is_some() {
            // There will be no filter: ask for no more memory.
        } else if let Err(error) = self.grow() {
            self.fail(error.into());
        } else if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(hash);
        }
    }

    /// Makes room for a hash. The first chunk grows as `Vec` does, so that small tables cost little; later ones are made whole.
    fn grow(&mut self) -> Result<(), AllocError> {
        let (is_new, room) = match self.chunks.as_slice() {
            [] => (true, 64),
            [only] if only.len() < CHUNK => (false, only.len().min(CHUNK - only.len())),
            _ => (true, CHUNK),
        };
        let error = AllocError { bytes: room as u64 * 8 };
        if is_new {
            self.chunks.try_reserve(1).map_err(|_| error)?;
            self.chunks.push(Vec::new());
        }
        match self.chunks.last_mut() {
            Some(chunk) => chunk.try_reserve_exact(room).map_err(|_| error),
            None => Ok(()),
        }
    }

    fn fail(&mut self, error: BuildError) {
        self.failed.get_or_insert(error);
    }

    /// Keys added so far, adjacent equal ones counted once.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, Sizing};
    /// assert_eq!(BloomFilterBuilder::new(Sizing::BitsPerKey(10.0)).len(), 0);
    /// ```
    pub fn len(&self) -> u64 {
        self.only_counted + self.chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>()
    }

    /// Whether no key was added.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, Sizing};
    /// assert!(BloomFilterBuilder::new(Sizing::BitsPerKey(10.0)).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// The shape that [`finish`](Self::finish) would give the filter now, for an engine that estimates a table's size.
    ///
    /// # Errors
    ///
    /// [`BuildError::Params`] as `finish` would.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, Sizing};
    /// let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// assert_eq!(builder.params()?.stored_bytes(), 128);
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    pub fn params(&self) -> Result<Params, BuildError> {
        let params = self.sizing.params(self.len())?;
        Ok(match self.probes {
            Some(probes) => params.with_probes(probes)?,
            None => params,
        })
    }

    /// Sizes the filter for the keys that were added, and inserts them.
    ///
    /// Without keys the filter is empty: everything is certainly absent. With the feature `rayon`, eight million keys or more are
    /// inserted by the threads of the current pool, which rayon starts if there is none (and panics if it cannot); the bytes do
    /// not depend on their number.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the sizing is out of range, memory ran out, or a key was added that cannot be hashed.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, Sizing};
    /// let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(12.5));
    /// builder.extend(["apple", "banana"]);
    /// let filter = builder.finish()?;
    /// assert!(filter.contains("apple"));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    pub fn finish(self) -> Result<BloomFilter, BuildError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut filter = BloomFilter::with_params(self.params()?, self.key_hash)?;
        if filter.view().is_pass_all() {
            filter.count(self.len());
            return Ok(filter);
        }
        #[cfg(feature = "rayon")]
        crate::parallel::insert_chunks(&mut filter, self.chunks)?;
        #[cfg(not(feature = "rayon"))]
        for chunk in self.chunks {
            filter.insert_hashes(&chunk);
        }
        Ok(filter)
    }
}

/// Adds every key.
impl<K: AsRef<[u8]>> Extend<K> for BloomFilterBuilder {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            self.insert(key);
        }
    }
}

/// The sizing and the number of keys, without the hashes.
impl core::fmt::Debug for BloomFilterBuilder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BloomFilterBuilder")
            .field("sizing", &self.sizing)
            .field("probes", &self.probes)
            .field("key_hash", &self.key_hash)
            .field("len", &self.len())
            .field("failed", &self.failed)
            .finish()
    }
}
