//! The owned filter: one owner, who may change its bits.
//!
//! This file owns inserting and clearing; folding and merging have files of their own. Questions are [`BloomFilterRef`]'s; the
//! few that are repeated here only forward to it.

use crate::bitmask::Bitmask;
use crate::buffer::Buffer;
use crate::error::AllocError;
use crate::hash::KeyHash;
use crate::kernel::{Kernel, Tile};
use crate::params::Params;
use crate::prefix::{Added, PrefixExtractor};
use crate::probe;
use crate::view::{BloomFilterRef, Meta};

/// Hashes of a batch of keys computed before they are inserted: 4 KiB of stack.
const HASHES_AT_ONCE: usize = 512;

/// A blocked Bloom filter that owns its blocks and can be added to.
///
/// Make one with [`BloomFilterBuilder`](crate::BloomFilterBuilder) when the number of keys is known only at the end (a flush),
/// or with [`with_params`](Self::with_params) when it is known before.
///
/// ```
/// use blocked_bloom::{BloomFilter, KeyHash, Sizing};
/// let params = Sizing::BitsPerKey(10.0).params(1_000)?;
/// let mut filter = BloomFilter::with_params(params, KeyHash::default())?;
/// filter.insert("apple");
/// assert!(filter.contains("apple"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct BloomFilter {
    blocks: Buffer,
    meta: Meta,
    kernel: Kernel,
}

impl BloomFilter {
    /// An empty filter of the given shape and hash; pass-all if `params` are.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory for the blocks.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilter, KeyHash, Sizing};
    /// let params = Sizing::FalsePositiveRate(0.01).params(1_000)?;
    /// let filter = BloomFilter::with_params(params, KeyHash::Xxh3 { seed: 42 })?;
    /// assert!(filter.view().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_params(params: Params, key_hash: KeyHash) -> Result<Self, AllocError> {
        let meta = Meta {
            key_hash,
            keys_inserted: 0,
            probes: params.probes() as u8,
            pass_all: params.is_pass_all(),
            added: Added::WholeKeys,
        };
        let mut filter = BloomFilter {
            blocks: Buffer::zeroed(params.blocks())?,
            meta,
            kernel: Kernel::default(),
        };
        if params.is_pass_all() {
            filter.become_pass_all();
        }
        Ok(filter)
    }

    /// A filter that answers "maybe" to everything: "no filter", or the stand-in for a damaged one.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory for one block.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilter, KeyHash};
    /// let filter = BloomFilter::pass_all(KeyHash::default())?;
    /// assert!(filter.contains("anything"));
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    pub fn pass_all(key_hash: KeyHash) -> Result<Self, AllocError> {
        BloomFilter::with_params(Params::pass_all(0), key_hash)
    }

    /// Whole filter as one tile, for the batch insert kernels.
    pub(crate) fn tile(&mut self) -> Tile<'_> {
        let total = self.blocks.len() as u32;
        Tile { blocks: &mut self.blocks, first: 0, total }
    }

    pub(crate) fn count(&mut self, additions: u64) {
        self.meta.keys_inserted = self.meta.keys_inserted.saturating_add(additions);
    }

    /// Both for the room that makes filters of the same blocks; `from_parts` trusts it to give what `into_parts` gave.
    #[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
    pub(crate) fn into_parts(self) -> (Buffer, Meta, Kernel) {
        (self.blocks, self.meta, self.kernel)
    }

    #[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
    pub(crate) fn from_parts(blocks: Buffer, meta: Meta, kernel: Kernel) -> Self {
        BloomFilter { blocks, meta, kernel }
    }

    /// For those who change the shape. There must stay 1 to 2^32 - 1 blocks, and `meta` in range.
    pub(crate) fn parts_mut(&mut self) -> (&mut Buffer, &mut Meta) {
        (&mut self.blocks, &mut self.meta)
    }

    pub(crate) fn become_pass_all(&mut self) {
        self.blocks.keep_first(1);
        self.blocks[0] = [0xff; 64];
        self.meta.probes = 1;
        self.meta.pass_all = true;
        self.meta.added = Added::WholeKeys;
    }

    /// Counts keys that are added without their prefixes, of which the filter then knows nothing: a filter of prefixes alone becomes
    /// pass-all.
    #[inline]
    pub(crate) fn count_keys(&mut self, additions: u64) {
        self.count(additions);
        if additions > 0 && self.meta.added != Added::WholeKeys {
            self.forget_prefixes();
        }
    }

    #[cold]
    pub(crate) fn forget_prefixes(&mut self) {
        match self.meta.added {
            Added::Prefixes { .. } => self.become_pass_all(),
            _ => self.meta.added = Added::WholeKeys,
        }
    }

    /// The view on which every query is written. Free.
    ///
    /// ```
    /// # let filter = blocked_bloom::BloomFilter::pass_all(blocked_bloom::KeyHash::default())?;
    /// let view = filter.view();
    /// let copy = view;
    /// assert!(view.contains("a") && copy.contains("a"));
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    #[inline]
    pub fn view(&self) -> BloomFilterRef<'_> {
        BloomFilterRef::new(&self.blocks, self.meta, self.kernel)
    }

    /// Adds a key. Returns true if it was certainly not there before, as `HashSet` does.
    ///
    /// Of prefixes, which only [`BloomFilterBuilder`](crate::BloomFilterBuilder) adds, the filter knows nothing afterwards: questions
    /// about them are answered "maybe", and a filter of prefixes alone becomes pass-all. So with every method that adds.
    ///
    /// A filter of [`KeyHash::Caller`] cannot hash a key. So that the key is never reported absent, such a filter then becomes
    /// pass-all; add hashes to it with [`insert_hash`](Self::insert_hash).
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilter, KeyHash, Sizing};
    /// # let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// # let mut filter = BloomFilter::with_params(params, KeyHash::default())?;
    /// assert!(filter.insert("apple"));
    /// assert!(!filter.insert("apple"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> bool {
        match self.meta.key_hash.hasher() {
            Some(hasher) => self.insert_hash(hasher.hash(key)),
            None => {
                self.become_pass_all();
                self.count(1);
                false
            }
        }
    }

    /// Adds the key with this hash. Returns true if it was certainly not there before.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilter, KeyHash, Sizing};
    /// # let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// let mut filter = BloomFilter::with_params(params, KeyHash::Caller { tag: 1 })?;
    /// filter.insert_hash(0x9c1c_34f1_0a4e_7ab3);
    /// assert!(filter.contains_hash(0x9c1c_34f1_0a4e_7ab3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> bool {
        self.count_keys(1);
        let index = probe::block_index(hash, self.blocks.len() as u32);
        probe::insert(&mut self.blocks[index as usize], hash, u32::from(self.meta.probes))
    }

    /// Adds every key. Keys are hashed some at a time into a buffer on the stack: no other memory is used.
    ///
    /// A filter of [`KeyHash::Caller`] becomes pass-all, as by [`insert`](Self::insert).
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilter, KeyHash, Sizing};
    /// # let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// # let mut filter = BloomFilter::with_params(params, KeyHash::default())?;
    /// filter.insert_batch(&["apple", "banana"]);
    /// assert!(filter.contains("banana"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_batch<K: AsRef<[u8]>>(&mut self, keys: &[K]) {
        let Some(hasher) = self.meta.key_hash.hasher() else {
            if !keys.is_empty() {
                self.become_pass_all();
            }
            return self.count(keys.len() as u64);
        };
        let mut hashes = [0; HASHES_AT_ONCE];
        for keys in keys.chunks(HASHES_AT_ONCE) {
            hasher.hash_into(keys, &mut hashes);
            self.insert_hashes(&hashes[..keys.len()]);
        }
    }

    /// Adds every hash.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilter, KeyHash, Sizing};
    /// # let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// # let mut filter = BloomFilter::with_params(params, KeyHash::default())?;
    /// filter.insert_hashes(&[1, 2, 3]);
    /// assert_eq!(filter.view().keys_inserted(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_hashes(&mut self, hashes: &[u64]) {
        self.count_keys(hashes.len() as u64);
        let (kernel, probes) = (self.kernel, u32::from(self.meta.probes));
        kernel.insert(self.tile(), probes, hashes);
    }

    /// Removes every key. A pass-all filter stays pass-all.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilter, KeyHash, Sizing};
    /// # let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// # let mut filter = BloomFilter::with_params(params, KeyHash::default())?;
    /// filter.insert("apple");
    /// filter.clear();
    /// assert!(!filter.contains("apple"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clear(&mut self) {
        self.meta.keys_inserted = 0;
        if !self.meta.pass_all {
            self.blocks.fill([0; 64]);
        }
    }

    /// The same filter, with batches answered by `kernel`.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilter, Kernel, KeyHash};
    /// let scalar = Kernel::supported().last().unwrap();
    /// let filter = BloomFilter::pass_all(KeyHash::default())?.with_kernel(scalar);
    /// assert_eq!(filter.view().kernel().name(), "scalar");
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        BloomFilter { kernel, ..self }
    }

    /// [`BloomFilterRef::contains`].
    ///
    /// ```
    /// # let filter = blocked_bloom::BloomFilter::pass_all(blocked_bloom::KeyHash::default())?;
    /// assert!(filter.contains("anything"));
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.view().contains(key)
    }

    /// [`BloomFilterRef::contains_prefix`].
    ///
    /// ```
    /// # use blocked_bloom::PrefixExtractor;
    /// # let filter = blocked_bloom::BloomFilter::pass_all(blocked_bloom::KeyHash::default())?;
    /// assert!(filter.contains_prefix(&PrefixExtractor::fixed(4), "anything"));
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    #[inline]
    pub fn contains_prefix(&self, extractor: &PrefixExtractor, start: impl AsRef<[u8]>) -> bool {
        self.view().contains_prefix(extractor, start)
    }

    /// [`BloomFilterRef::contains_hash`].
    ///
    /// ```
    /// # let filter = blocked_bloom::BloomFilter::pass_all(blocked_bloom::KeyHash::default())?;
    /// assert!(filter.contains_hash(1));
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.view().contains_hash(hash)
    }

    /// [`BloomFilterRef::contains_batch`].
    ///
    /// ```
    /// # let filter = blocked_bloom::BloomFilter::pass_all(blocked_bloom::KeyHash::default())?;
    /// let mut hits = blocked_bloom::Bitmask::new();
    /// filter.contains_batch(&["a", "b"], &mut hits);
    /// assert_eq!(hits.count_hits(), 2);
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], hits: &mut Bitmask) {
        self.view().contains_batch(keys, hits);
    }

    /// [`BloomFilterRef::contains_hashes`].
    ///
    /// ```
    /// # let filter = blocked_bloom::BloomFilter::pass_all(blocked_bloom::KeyHash::default())?;
    /// let mut hits = blocked_bloom::Bitmask::new();
    /// filter.contains_hashes(&[1, 2], &mut hits);
    /// assert_eq!(hits.count_hits(), 2);
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    pub fn contains_hashes(&self, hashes: &[u64], hits: &mut Bitmask) {
        self.view().contains_hashes(hashes, hits);
    }

    /// [`BloomFilterRef::params`].
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilter, KeyHash, Sizing};
    /// let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// let filter = BloomFilter::with_params(params, KeyHash::default())?;
    /// assert_eq!(filter.params().blocks(), params.blocks());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn params(&self) -> Params {
        self.view().params()
    }

    /// [`BloomFilterRef::fill_ratio`].
    ///
    /// ```
    /// # let filter = blocked_bloom::BloomFilter::pass_all(blocked_bloom::KeyHash::default())?;
    /// assert_eq!(filter.fill_ratio(), 1.0);
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    pub fn fill_ratio(&self) -> f64 {
        self.view().fill_ratio()
    }

    /// [`BloomFilterRef::estimated_keys`].
    ///
    /// ```
    /// # let filter = blocked_bloom::BloomFilter::pass_all(blocked_bloom::KeyHash::default())?;
    /// assert_eq!(filter.estimated_keys(), None);
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    pub fn estimated_keys(&self) -> Option<u64> {
        self.view().estimated_keys()
    }

    /// [`BloomFilterRef::estimated_false_positive_rate`].
    ///
    /// ```
    /// # let filter = blocked_bloom::BloomFilter::pass_all(blocked_bloom::KeyHash::default())?;
    /// assert_eq!(filter.estimated_false_positive_rate(), 1.0);
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    pub fn estimated_false_positive_rate(&self) -> f64 {
        self.view().estimated_false_positive_rate()
    }
}

impl BloomFilterRef<'_> {
    /// Copies the blocks into a filter that can be changed.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory for the copy.
    ///
    /// ```
    /// # let filter = blocked_bloom::BloomFilter::pass_all(blocked_bloom::KeyHash::default())?;
    /// let copy = filter.view().to_filter()?;
    /// assert_eq!(copy, filter);
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    pub fn to_filter(&self) -> Result<BloomFilter, AllocError> {
        let blocks = Buffer::copy_of(self.blocks())?;
        Ok(BloomFilter::from_parts(blocks, self.meta(), self.kernel()))
    }
}

impl<'a> From<&'a BloomFilter> for BloomFilterRef<'a> {
    fn from(filter: &'a BloomFilter) -> Self {
        filter.view()
    }
}

/// Same hash, probes, keys inserted and bits; the kernel does not matter.
impl PartialEq for BloomFilter {
    fn eq(&self, other: &Self) -> bool {
        self.view() == other.view()
    }
}

impl Eq for BloomFilter {}

/// The shape, without the bits.
impl core::fmt::Debug for BloomFilter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BloomFilter")
            .field("blocks", &self.blocks.len())
            .field("meta", &self.meta)
            .field("kernel", &self.kernel)
            .finish()
    }
}
