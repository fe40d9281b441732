//! Constructors: empty filters, copies and pass-all filters.

use super::parts::Blocks;
use super::{BloomFilter, Meta};
use crate::buffer::{AllocError, BlockBuffer};
use crate::hash::{KeyError, KeyHash};
use crate::kernel::Kernel;
use crate::params::{Params, ParamsError};
use crate::prefix::FilterContents;
use crate::probe::Block;
use crate::stored::full_block;
use crate::unmixed::UnmixedHashes;

impl BloomFilter {
    /// Creates an empty filter with this shape and hash, or a pass-all filter if `params` say so.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if the allocation fails.
    pub fn with_params(params: Params, key_hash: KeyHash) -> Result<Self, AllocError> {
        Ok(BloomFilter::empty(BlockBuffer::zeroed(params.blocks(), true)?, params, key_hash))
    }

    /// Creates a filter from zeroed blocks, whose number must be that of `params`.
    pub(crate) fn empty(mut blocks: BlockBuffer, params: Params, key_hash: KeyHash) -> Self {
        if params.is_pass_all() {
            blocks.fill([0xff; 64]);
        }
        let meta = Meta::new(key_hash, params.probes() as u8, params.is_pass_all());
        BloomFilter::from_parts(blocks, meta, Kernel::default())
    }

    /// Sets the number of keys inserted and the contents. A pass-all filter keeps its contents.
    #[must_use]
    pub fn with_facts(mut self, keys_inserted: u64, contents: FilterContents) -> Self {
        self.meta.keys_inserted = keys_inserted;
        let contents = if self.meta.pass_all { FilterContents::WholeKeys } else { contents };
        BloomFilter::from_parts(self.data, Meta { contents, ..self.meta }, self.kernel)
    }
}

impl<D: Blocks> BloomFilter<D> {
    /// Copies the filter into memory of its own, so that it can be changed.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if the allocation fails.
    pub fn to_filter(&self) -> Result<BloomFilter, AllocError> {
        let data = BlockBuffer::copy_of(self.blocks(), true)?;
        let BloomFilter { meta, kernel, answers, .. } = *self;
        Ok(BloomFilter { data, meta, kernel, answers })
    }
}

impl BloomFilter<&'static [Block]> {
    /// Returns a filter that answers "maybe" to everything and uses no memory, as a replacement for
    /// a damaged or missing filter.
    pub fn pass_all(key_hash: KeyHash) -> Self {
        BloomFilter::from_parts(full_block(), Meta::new(key_hash, 1, true), Kernel::default())
    }
}

/// Error of building a filter.
///
/// ```
/// use blocked_bloom::{BuildError, FilterOptions, Sizing};
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0)).with_memory_limit(8 << 10);
/// let mut builder = options.builder();
/// builder.extend((0..2_000_u32).map(u32::to_le_bytes))?;
/// let error = builder.finish().unwrap_err();
/// assert_eq!(error, BuildError::MemoryLimit { limit_bytes: 8 << 10, keys: 2_000 });
/// # Ok::<(), blocked_bloom::KeyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// The sizing is out of range.
    Params(ParamsError),
    /// An allocation failed.
    Alloc(AllocError),
    /// The filter cannot accept the keys or hashes.
    Key(KeyError),
    /// The list of hashes reached the memory limit, and the number of expected items is not set,
    /// or so small that more than half of the absent keys would pass.
    MemoryLimit {
        /// The memory limit in bytes.
        limit_bytes: u64,
        /// Number of keys inserted, counting adjacent equal keys once.
        keys: u64,
    },
    /// The list of hashes changed after insertion: faulty or overwritten memory.
    HashesChanged {
        /// Sum of the mixed hashes at insertion.
        expected: u64,
        /// Sum of the mixed hashes in memory.
        found: u64,
    },
    /// The caller-supplied hashes are not well mixed.
    UnmixedHashes(UnmixedHashes),
    /// The finished filter does not contain all keys that were inserted.
    KeysMissing {
        /// Number of missing keys.
        missing: u64,
        /// Number of keys inserted.
        keys: u64,
    },
}

impl_error!(
    BuildError,
    Params(ParamsError),
    Alloc(AllocError),
    Key(KeyError),
    UnmixedHashes(UnmixedHashes);
    Self::MemoryLimit { limit_bytes, keys } => (
        "the hashes of {keys} keys do not fit the limit of {limit_bytes} bytes: set {keys} or more \
         expected items or a larger limit, and insert the keys again"
    ),
    Self::HashesChanged { expected, found } => (
        "hashes changed in memory before they were inserted: their sum is {found:#018x}, expected \
         {expected:#018x}; build the filter again"
    ),
    Self::KeysMissing { missing, keys } => (
        "the finished filter misses {missing} of {keys} keys: do not use it, build it again"
    ),
);
