//! Collecting keys whose number is not known yet.
//!
//! This file owns the settings and the sizing at the end; beside it are the list of hashes and its limit (`list`), prefixes (`prefixes`),
//! the proof that what went in comes out (`verify`) and the joining of builders (`join`). A builder is not a filter: it cannot be asked anything, so an unfinished one
//! cannot give a wrong answer.

#[cfg(feature = "rayon")]
mod join;
mod list;
mod prefixes;
mod template;
mod verify;

use alloc::vec::Vec;

use self::list::insert_all;
use self::prefixes::Prefixes;
use self::verify::mix;
use crate::error::BuildError;
use crate::filter::BloomFilter;
use crate::hash::{KeyHash, KeyHasher};
use crate::params::{Params, Sizing};
use crate::prefix::PrefixExtractor;

/// Most hashes in a chunk of the builder's list: 512 KiB, so that a chunk fits the cache.
const CHUNK: usize = 1 << 16;

/// Fewest hashes in a chunk.
const SMALLEST_CHUNK: usize = 64;

/// Collects keys while a table is written, and sizes the filter when their number is known.
///
/// Memory: 8 bytes per key and a sixteenth more, then the filter beside it; nothing if the sizing means "no filter".
/// [`memory_limit`](Self::memory_limit) bounds it. A key equal to the one added just before it is dropped, so that the versions of
/// one key in a sorted run count once.
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
    foldable: bool,
    key_hash: KeyHash,
    prefixes: Option<Prefixes>,
    /// Hashes that are not in `filling`.
    chunks: Vec<Vec<u64>>,
    /// Where the hashes go whenever a chunk is full, once their list has reached its limit.
    filling: Option<Filling>,
    /// Most bytes of the list.
    memory_limit: u64,
    expected_items: Option<u64>,
    /// Keys that are not kept, since there will be no filter.
    only_counted: u64,
    first: Option<u64>,
    last: Option<u64>,
    /// Sum of all hashes that were added, mixed: what the filter is verified against.
    sum: u64,
    /// What `finish` must report instead of a filter that lacks a key.
    failed: Option<BuildError>,
}

/// A filter that is filled while keys still come.
#[derive(Clone)]
struct Filling {
    filter: BloomFilter,
    /// Sum of the hashes that went in, mixed.
    sum: u64,
    /// Of those, the ones that the filter did not contain right after.
    missing: u64,
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
            foldable: false,
            key_hash: KeyHash::default(),
            prefixes: None,
            chunks: Vec::new(),
            filling: None,
            memory_limit: u64::MAX,
            expected_items: None,
            only_counted: 0,
            first: None,
            last: None,
            sum: 0,
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

    /// Rounds the blocks to a number with many divisors, for at most 1.6 % more memory: see [`Sizing::foldable_params`].
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, Sizing};
    /// let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0)).foldable();
    /// builder.extend((0..100_000_u32).map(u32::to_le_bytes));
    /// let mut filter = builder.finish()?;
    /// assert!(filter.fold(16).is_ok());
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn foldable(self) -> Self {
        BloomFilterBuilder { foldable: true, ..self }
    }

    /// Adds to the filter, beside every key, the key's prefix by this rule, so that it can be asked about scans
    /// ([`BloomFilterRef::contains_prefix`](crate::BloomFilterRef::contains_prefix)). A prefix equal to the one added just before it
    /// is dropped: in a sorted run each is added once. Give it before the first key: after one, [`finish`](Self::finish) will fail.
    ///
    /// The filter is sized for keys and prefixes together, and keeps the bits per key of the sizing for each.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, PrefixExtractor, Sizing};
    /// let tenant = PrefixExtractor::fixed(4);
    /// let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0)).prefixes(tenant.clone());
    /// builder.extend(["ab12/apple", "ab12/banana", "cd34/cherry"]);
    /// assert_eq!(builder.len(), 3 + 2);
    /// let filter = builder.finish()?;
    /// assert!(filter.contains("ab12/banana") && filter.contains_prefix(&tenant, "cd34/"));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn prefixes(self, extractor: PrefixExtractor) -> Self {
        self.with_prefixes(Prefixes::new(extractor, true))
    }

    /// Adds only the prefixes of keys, as [`prefixes`](Self::prefixes): a smaller filter, which answers "maybe" about every key.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, PrefixExtractor, Sizing};
    /// let tenant = PrefixExtractor::fixed(4);
    /// let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0)).only_prefixes(tenant.clone());
    /// builder.extend(["ab12/apple", "ab12/banana", "cd34/cherry"]);
    /// assert_eq!(builder.len(), 2);
    /// assert!(!builder.finish()?.contains_prefix(&tenant, "ef56/"));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn only_prefixes(self, extractor: PrefixExtractor) -> Self {
        self.with_prefixes(Prefixes::new(extractor, false))
    }

    /// Bounds the memory of the list of hashes, in bytes; unbounded by default. Give it, and all other settings, before the first
    /// key: once the limit is reached the filter has its shape.
    ///
    /// When the list would outgrow it, there are two ways on. With [`expected_items`](Self::expected_items) the filter is made at
    /// once, for that many keys or as many as have come if those are more, and later keys go straight into it: nothing is lost, and
    /// if far more keys come than were expected, the filter passes more absent ones than the sizing promised. Without, the list is
    /// freed, keys are only counted, and [`finish`](Self::finish) fails with [`BuildError::MemoryLimit`], which has their number
    /// for a second pass.
    ///
    /// The limit is looked at when a key is added, and by `par_extend` when all keys of the iterator are collected: hand it pieces.
    /// How far the keys went past what was expected shows in the rate of the finished filter's `params()`.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, BuildError, Sizing};
    /// let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0)).memory_limit(8 << 10);
    /// builder.extend((0..2_000_u32).map(u32::to_le_bytes));
    /// let error = builder.finish().unwrap_err();
    /// assert_eq!(error, BuildError::MemoryLimit { limit_bytes: 8 << 10, keys: 2_000 });
    /// ```
    #[must_use]
    pub fn memory_limit(self, bytes: u64) -> Self {
        BloomFilterBuilder { memory_limit: bytes, ..self }
    }

    /// How many keys are expected, and prefixes if those are added: what the filter is sized for if [`memory_limit`](Self::memory_limit) is reached, and only
    /// then.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, Sizing};
    /// let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// let mut builder = builder.memory_limit(8 << 10).expected_items(2_500);
    /// builder.extend((0..2_000_u32).map(u32::to_le_bytes));
    /// let filter = builder.finish()?;
    /// assert!(filter.contains(1_999_u32.to_le_bytes()));
    /// assert_eq!(filter.params().blocks(), Sizing::BitsPerKey(10.0).params(2_500)?.blocks());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn expected_items(self, keys: u64) -> Self {
        BloomFilterBuilder { expected_items: Some(keys), ..self }
    }

    /// Bytes that the builder holds: the list of hashes and, once the limit was reached, the filter.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, Sizing};
    /// let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// builder.extend((0..1_000_000_u32).map(u32::to_le_bytes));
    /// assert!(builder.memory_bytes() < 8_800_000);
    /// ```
    pub fn memory_bytes(&self) -> u64 {
        let list = self.chunks.capacity() * size_of::<Vec<u64>>();
        let filter =
            self.filling.as_ref().map_or(0, |filling| size_of_val(filling.filter.view().blocks()));
        self.hash_bytes() + (list + filter) as u64
    }

    fn hash_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| 8 * chunk.capacity() as u64).sum()
    }

    /// Adds a key, unless it equals the one added just before it, and its prefix, if the builder adds [prefixes](Self::prefixes).
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
            KeyHash::Xxh3 { seed } => {
                let hasher = KeyHasher::with_seed(seed);
                match &self.prefixes {
                    None => self.add(hasher.hash(key)),
                    Some(prefixes) => {
                        let hashes = prefixes.hashes(hasher, key.as_ref());
                        self.add_with_prefix(hashes);
                    }
                }
            }
            KeyHash::Caller { tag } => {
                self.fail(BuildError::KeyWithoutHash { tag });
                self.only_counted += 1;
            }
        }
    }

    /// Adds the key with this hash, unless it equals the one added just before it.
    ///
    /// A builder of [prefixes](Self::prefixes) cannot cut one from a hash: [`finish`](Self::finish) will then fail.
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
        match self.prefixes {
            None => self.add(hash),
            Some(_) => {
                self.fail(BuildError::HashWithoutPrefix { hash });
                self.only_counted += 1;
            }
        }
    }

    #[inline]
    fn add(&mut self, hash: u64) {
        if self.last == Some(hash) {
            return;
        }
        self.keep(hash);
        self.last = Some(hash);
    }

    #[inline]
    fn keep(&mut self, hash: u64) {
        self.sum = self.sum.wrapping_add(mix(hash));
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < chunk.capacity() => chunk.push(hash),
            _ => self.grow_and_insert(hash),
        }
    }

    /// There will be no filter: gives up the list and goes on counting.
    fn fail(&mut self, error: BuildError) {
        self.only_counted = self.len();
        self.chunks = Vec::new();
        self.filling = None;
        self.failed.get_or_insert(error);
    }

    /// Keys and prefixes added so far, adjacent equal ones counted once: what the filter is sized for.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, Sizing};
    /// assert_eq!(BloomFilterBuilder::new(Sizing::BitsPerKey(10.0)).len(), 0);
    /// ```
    pub fn len(&self) -> u64 {
        let filled =
            self.filling.as_ref().map_or(0, |filling| filling.filter.view().keys_inserted());
        let kept = self.chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
        self.only_counted + filled + kept
    }

    /// Whether no key was added.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, Sizing};
    /// assert!(BloomFilterBuilder::new(Sizing::BitsPerKey(10.0)).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shape that [`finish`](Self::finish) would give the filter now, for an engine that estimates a table's size.
    ///
    /// # Errors
    ///
    /// As `finish` would.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, Sizing};
    /// let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// assert_eq!(builder.params()?.stored_bytes(), 128);
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    pub fn params(&self) -> Result<Params, BuildError> {
        match (&self.filling, self.failed()) {
            (_, Some(error)) => Err(error),
            (Some(filling), None) => {
                let params = filling.filter.params();
                let (blocks, probes) = (params.blocks(), params.probes());
                Ok(Params::of_filter(self.len(), blocks, probes, params.is_pass_all()))
            }
            (None, None) => self.params_for(self.len()),
        }
    }

    /// What `finish` will report; a limit that was reached, with the keys so far.
    fn failed(&self) -> Option<BuildError> {
        match self.failed? {
            BuildError::MemoryLimit { limit_bytes, .. } => {
                Some(BuildError::MemoryLimit { limit_bytes, keys: self.len() })
            }
            error => Some(error),
        }
    }

    fn params_for(&self, keys: u64) -> Result<Params, BuildError> {
        let params = match self.foldable {
            true => self.sizing.foldable_params(keys)?,
            false => self.sizing.params(keys)?,
        };
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
    /// [`BuildError`] if the sizing is out of range, memory ran out or reached its limit, a key was added that cannot be hashed, or a
    /// hash where prefixes are needed.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, Sizing};
    /// let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(12.5));
    /// builder.extend(["apple", "banana"]);
    /// let filter = builder.finish()?;
    /// assert!(filter.contains("apple"));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    pub fn finish(mut self) -> Result<BloomFilter, BuildError> {
        let filter = self.fill()?;
        Ok(self.sign(filter))
    }

    /// Records in a finished filter what was added to it. Before that, it answers about prefixes as about keys.
    fn sign(&self, mut filter: BloomFilter) -> BloomFilter {
        let (_, meta) = filter.parts_mut();
        if !meta.pass_all {
            meta.added = self.added();
        }
        filter
    }

    /// The filter of all hashes, which are kept, in some order, unless they were poured into it.
    fn fill(&mut self) -> Result<BloomFilter, BuildError> {
        if let Some(error) = self.failed() {
            return Err(error);
        }
        self.pour()?;
        if let Some(filling) = &mut self.filling {
            return Ok(core::mem::replace(
                &mut filling.filter,
                BloomFilter::pass_all(self.key_hash)?,
            ));
        }
        let mut filter = BloomFilter::with_params(self.params()?, self.key_hash)?;
        if filter.view().is_pass_all() {
            filter.count(self.len());
            return Ok(filter);
        }
        insert_all(&mut filter, &mut self.chunks)?;
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
            .field("foldable", &self.foldable)
            .field("key_hash", &self.key_hash)
            .field("prefixes", &self.prefixes)
            .field("len", &self.len())
            .field("failed", &self.failed)
            .finish()
    }
}
