//! Filters that are made: empty, copied, pass-all.

use core::fmt::{self, Display, Formatter};

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
    /// Creates an empty filter of the given shape and hash; pass-all if `params` are.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory for the blocks.
    pub fn with_params(params: Params, key_hash: KeyHash) -> Result<Self, AllocError> {
        let blocks = BlockBuffer::zeroed(params.blocks(), true)?;
        Ok(BloomFilter::empty(blocks, params, key_hash))
    }

    /// A filter in blocks that are zero and as many as `params` say.
    pub(crate) fn empty(mut blocks: BlockBuffer, params: Params, key_hash: KeyHash) -> Self {
        if params.is_pass_all() {
            blocks.fill([0xff; 64]);
        }
        let meta = Meta::new(key_hash, params.probes() as u8, params.is_pass_all());
        BloomFilter::from_parts(blocks, meta, Kernel::default())
    }

    /// The same filter with this many additions and, unless it is pass-all, these contents.
    #[must_use]
    pub fn with_facts(mut self, keys_inserted: u64, contents: FilterContents) -> Self {
        self.meta.keys_inserted = keys_inserted;
        let contents = if self.meta.pass_all { FilterContents::WholeKeys } else { contents };
        BloomFilter::from_parts(self.data, Meta { contents, ..self.meta }, self.kernel)
    }
}

impl<D: Blocks> BloomFilter<D> {
    /// Copies the blocks into a filter that can be changed.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory for the copy.
    pub fn to_filter(&self) -> Result<BloomFilter, AllocError> {
        let data = BlockBuffer::copy_of(self.blocks(), true)?;
        let BloomFilter { meta, kernel, answers, .. } = *self;
        Ok(BloomFilter { data, meta, kernel, answers })
    }
}

impl BloomFilter<&'static [Block]> {
    /// A filter that answers "maybe" to everything, without memory of its own: "no filter", or what
    /// stands in for a damaged one.
    pub fn pass_all(key_hash: KeyHash) -> Self {
        BloomFilter::from_parts(full_block(), Meta::new(key_hash, 1, true), Kernel::default())
    }
}

/// Why a builder could not finish.
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
    /// The keys cannot be sized as requested.
    Params(ParamsError),
    /// Memory ran out.
    Alloc(AllocError),
    /// Keys or hashes were given that the filter cannot take.
    Key(KeyError),
    /// The list of hashes reached the builder's limit, and no number of expected items was given,
    /// or one so small that more than half of the absent keys would pass.
    MemoryLimit {
        /// The limit that was given.
        limit_bytes: u64,
        /// Keys that were added in all, adjacent equal ones once: what to size a filter for.
        keys: u64,
    },
    /// The hashes are not those that were added: memory is failing, or was overwritten.
    HashesChanged {
        /// Sum of the mixed hashes as they were added.
        expected: u64,
        /// The same of those in memory.
        found: u64,
    },
    /// The hashes that the caller supplied are not well mixed.
    UnmixedHashes(UnmixedHashes),
    /// The finished filter says that keys are absent which were added to it.
    KeysMissing {
        /// How many.
        missing: u64,
        /// Of this many.
        keys: u64,
    },
}

impl Display for BuildError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Params(error) => error.fmt(f),
            Self::Alloc(error) => error.fmt(f),
            Self::Key(error) => error.fmt(f),
            Self::UnmixedHashes(error) => error.fmt(f),
            Self::MemoryLimit { limit_bytes, keys } => write!(
                f,
                "the hashes of {keys} keys do not fit the limit of {limit_bytes} bytes: give at \
                 least {keys} expected items or a larger limit, and add the keys again"
            ),
            Self::HashesChanged { expected, found } => write!(
                f,
                "hashes changed in memory before they were inserted: their sum is {found:#018x}, \
                 expected {expected:#018x}; build the filter again"
            ),
            Self::KeysMissing { missing, keys } => write!(
                f,
                "the finished filter misses {missing} of {keys} keys: do not use it, build it again"
            ),
        }
    }
}

impl_error!(
    BuildError,
    Params(ParamsError),
    Alloc(AllocError),
    Key(KeyError),
    UnmixedHashes(UnmixedHashes)
);
