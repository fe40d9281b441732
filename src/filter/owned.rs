//! The owned filter: one owner, who may change its bits. Queries are [`BloomFilterRef`]'s; the few that are repeated here only
//! forward to it.

use super::view::{BloomFilterRef, Meta};
use crate::buffer::BlockBuffer;
use crate::error::{AllocError, KeyError};
use crate::hash::KeyHash;
use crate::kernel::{Kernel, Tile};
use crate::params::Params;
use crate::prefix::{FilterContents, PrefixExtractor};
use crate::probe;

/// Hashes of a batch of keys computed before they are inserted: 4 KiB of stack.
const HASHES_AT_ONCE: usize = 512;

/// A blocked Bloom filter that owns its blocks and can be added to.
///
/// Make one with a builder ([`FilterOptions::builder`](crate::FilterOptions::builder)) when the number of keys is known only at the
/// end (a flush), or with [`new`](Self::new) when it is known before.
///
/// ```
/// use blocked_bloom::{BloomFilter, KeyHash, Sizing};
/// let params = Sizing::BitsPerKey(10.0).params(1_000)?;
/// let mut filter = BloomFilter::new(params, KeyHash::default())?;
/// assert!(filter.insert("apple")?); // certainly new
/// assert!(filter.contains("apple"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct BloomFilter {
    blocks: BlockBuffer,
    meta: Meta,
    kernel: Kernel,
}

impl BloomFilter {
    /// An empty filter of the given shape and hash; pass-all if `params` are.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory for the blocks.
    pub fn new(params: Params, key_hash: KeyHash) -> Result<Self, AllocError> {
        let blocks = BlockBuffer::zeroed(params.blocks(), true)?;
        Ok(BloomFilter::empty(blocks, params, key_hash))
    }

    /// A filter in blocks that are zero and as many as `params` say.
    pub(crate) fn empty(blocks: BlockBuffer, params: Params, key_hash: KeyHash) -> Self {
        let (probes, pass_all) = (params.probes() as u8, params.is_pass_all());
        let contents = FilterContents::WholeKeys;
        let meta = Meta { key_hash, keys_inserted: 0, probes, pass_all, contents };
        let mut filter = BloomFilter { blocks, meta, kernel: Kernel::default() };
        if pass_all {
            filter.become_pass_all();
        }
        filter
    }

    /// A filter that answers "maybe" to everything: "no filter", or the stand-in for a damaged one.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory for one block.
    pub fn pass_all(key_hash: KeyHash) -> Result<Self, AllocError> {
        BloomFilter::new(Params::pass_all(0), key_hash)
    }

    /// Whole filter as one tile, for the batch insert kernels.
    pub(crate) fn tile(&mut self) -> Tile<'_> {
        let total = self.blocks.len() as u32;
        Tile { blocks: &mut self.blocks, first: 0, total }
    }

    pub(crate) fn count(&mut self, additions: u64) {
        self.meta.keys_inserted = self.meta.keys_inserted.saturating_add(additions);
    }

    /// Used by `atomic`, which makes filters of the same blocks; `from_parts` relies on getting what `into_parts` gave.
    #[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
    pub(crate) fn into_parts(self) -> (BlockBuffer, Meta, Kernel) {
        (self.blocks, self.meta, self.kernel)
    }

    pub(crate) fn from_parts(blocks: BlockBuffer, meta: Meta, kernel: Kernel) -> Self {
        BloomFilter { blocks, meta, kernel }
    }

    /// For folding and merging, which change the shape. There must stay 1 to 2^32 - 1 blocks, and `meta` in range.
    pub(crate) fn parts_mut(&mut self) -> (&mut BlockBuffer, &mut Meta) {
        (&mut self.blocks, &mut self.meta)
    }

    pub(crate) fn become_pass_all(&mut self) {
        self.blocks.keep_first(1);
        self.blocks[0] = [0xff; 64];
        self.meta.probes = 1;
        self.meta.pass_all = true;
        self.meta.contents = FilterContents::WholeKeys;
    }

    /// Whether hashes can be added: those of keys whose prefixes are not known cannot, to a filter that holds prefixes.
    #[inline]
    pub(crate) fn check_insert(&self) -> Result<(), KeyError> {
        match self.meta.contents {
            FilterContents::WholeKeys => Ok(()),
            contents => Err(KeyError::NoPrefix { contents }),
        }
    }

    /// The view on which every query is written. Free.
    #[inline]
    pub fn view(&self) -> BloomFilterRef<'_> {
        BloomFilterRef::new(&self.blocks, self.meta, self.kernel)
    }

    /// Adds a key. Returns true if it was certainly not there before, as `HashSet` does.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the filter is of the caller's hashes, or holds prefixes, which only a builder adds. Nothing is changed then.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool, KeyError> {
        let hasher = self.hasher()?;
        self.insert_hash(hasher.hash(key))
    }

    /// Adds the key with this hash. Returns true if it was certainly not there before.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoPrefix`] if the filter holds prefixes. Nothing is changed then.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> Result<bool, KeyError> {
        self.check_insert()?;
        self.count(1);
        let index = probe::block_index(hash, self.blocks.len() as u32);
        Ok(probe::insert(&mut self.blocks[index as usize], hash, u32::from(self.meta.probes)))
    }

    /// Adds every key. Keys are hashed some at a time into a buffer on the stack: no other memory is used.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert). Nothing is changed then.
    pub fn insert_batch<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<(), KeyError> {
        let hasher = self.hasher()?;
        self.check_insert()?;
        let mut hashes = [0; HASHES_AT_ONCE];
        for keys in keys.chunks(HASHES_AT_ONCE) {
            hasher.hash_by(self.kernel, keys, &mut hashes);
            self.insert_all(&hashes[..keys.len()]);
        }
        Ok(())
    }

    /// Adds every hash.
    ///
    /// # Errors
    ///
    /// As [`insert_hash`](Self::insert_hash). Nothing is changed then.
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), KeyError> {
        self.check_insert()?;
        self.insert_all(hashes);
        Ok(())
    }

    /// Adds every hash, be it of a key or of a prefix.
    pub(crate) fn insert_all(&mut self, hashes: &[u64]) {
        self.count(hashes.len() as u64);
        let (kernel, probes) = (self.kernel, u32::from(self.meta.probes));
        kernel.insert_into(self.tile(), probes, hashes);
    }

    /// Removes every key. A pass-all filter stays pass-all.
    pub fn clear(&mut self) {
        self.meta.keys_inserted = 0;
        if !self.meta.pass_all {
            self.blocks.fill([0; 64]);
        }
    }

    /// The same filter, with batches answered by `kernel`.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        BloomFilter { kernel, ..self }
    }

    /// [`BloomFilterRef::contains_prefix`].
    #[inline]
    pub fn contains_prefix(&self, extractor: &PrefixExtractor, start: impl AsRef<[u8]>) -> bool {
        self.view().contains_prefix(extractor, start)
    }

    /// [`BloomFilterRef::params`].
    pub fn params(&self) -> Params {
        self.view().params()
    }

    /// [`BloomFilterRef::is_pass_all`].
    pub fn is_pass_all(&self) -> bool {
        self.meta.pass_all
    }

    /// [`BloomFilterRef::fill_ratio`].
    pub fn fill_ratio(&self) -> f64 {
        self.view().fill_ratio()
    }

    /// [`BloomFilterRef::estimated_keys`].
    pub fn estimated_keys(&self) -> Option<u64> {
        self.view().estimated_keys()
    }

    /// [`BloomFilterRef::estimated_false_positive_rate`].
    pub fn estimated_false_positive_rate(&self) -> f64 {
        self.view().estimated_false_positive_rate()
    }
}

queries_by_view!([], BloomFilter);

impl BloomFilterRef<'_> {
    /// Copies the blocks into a filter that can be changed.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory for the copy.
    pub fn to_filter(&self) -> Result<BloomFilter, AllocError> {
        let blocks = BlockBuffer::copy_of(self.blocks(), true)?;
        Ok(BloomFilter::from_parts(blocks, self.meta(), self.kernel()))
    }
}

impl<'a> From<&'a BloomFilter> for BloomFilterRef<'a> {
    fn from(filter: &'a BloomFilter) -> Self {
        filter.view()
    }
}
