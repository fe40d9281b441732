//! Access to a filter's blocks and kernel, for authors of other filters and benchmarks.

use super::{BloomFilter, Meta};
use crate::error::ensure;
use crate::hash::KeyHash;
use crate::kernel::Kernel;
use crate::params::ParamsError;
use crate::probe::{Block, MAX_PROBES};

/// Storage of a filter's blocks: its own memory, a slice of blocks, or [`Stored`](crate::Stored)
/// bytes.
///
/// Every type that lends a slice of blocks implements the trait. It must always lend 1 to 2^32 - 1
/// blocks, and the same number: otherwise a lookup may answer "absent" for a key that was inserted.
///
/// ```
/// use blocked_bloom::{BloomFilter, parts::Blocks};
/// fn is_present(filter: &BloomFilter<impl Blocks>, key: &str) -> bool {
///     filter.contains(key)
/// }
/// assert!(is_present(&BloomFilter::pass_all(Default::default()), "apple"));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not hold the blocks of a filter",
    label = "does not hold blocks",
    note = "open stored bytes with `BloomFilter::from_bytes(bytes, key_hash)`; the type is then \
            `BloomFilter<Stored<{Self}>>`"
)]
pub trait Blocks: AsRef<[Block]> {}

#[diagnostic::do_not_recommend]
impl<D: AsRef<[Block]>> Blocks for D {}

/// Storage of blocks that accepts insertions: the filter's own memory, or a mutable slice.
///
/// ```
/// use blocked_bloom::{BloomFilter, KeyError, parts::BlocksMut};
/// fn add(filter: &mut BloomFilter<impl BlocksMut>) -> Result<(), KeyError> {
///     filter.insert_batch(&["apple", "banana"])
/// }
/// add(&mut blocked_bloom::FilterOptions::default().empty_filter(2)?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "a filter whose blocks are in `{Self}` does not accept insertions",
    label = "this filter was opened or borrowed",
    note = "copy it into its own memory: `let mut filter = filter.to_filter()?;`"
)]
pub trait BlocksMut: Blocks + AsMut<[Block]> {}

#[diagnostic::do_not_recommend]
impl<D: AsRef<[Block]> + AsMut<[Block]>> BlocksMut for D {}

impl<D: Blocks> BloomFilter<D> {
    /// Borrows the filter. Costs nothing.
    #[inline]
    pub fn view(&self) -> BloomFilter<&[Block]> {
        let BloomFilter { meta, kernel, answers, .. } = *self;
        BloomFilter { data: self.blocks(), meta, kernel, answers }
    }

    /// Returns the blocks, 1 to 2^32 - 1.
    #[inline]
    pub fn blocks(&self) -> &[Block] {
        self.data.as_ref()
    }

    /// Creates a filter from blocks, for containers of other systems with the same probe scheme.
    /// Its number of keys inserted is 0. If the blocks are mutable, it accepts insertions.
    ///
    /// # Errors
    ///
    /// [`ParamsError::BlocksOutOfRange`] unless there are 1 to 2^32 - 1 blocks,
    /// [`ParamsError::ProbesOutOfRange`] unless there are 1 to 30 probes.
    ///
    /// ```
    /// use blocked_bloom::{BloomFilter, KeyHash};
    /// let mut blocks = [[0; 64]; 3];
    /// let key_hash = KeyHash::Caller { tag: 1 };
    /// BloomFilter::from_blocks(&mut blocks, 6, key_hash)?.insert_hash(0x9c1c_34f1_0a4e_7ab3)?;
    /// let filter = BloomFilter::from_blocks(&blocks, 6, key_hash)?;
    /// assert!(filter.contains_hash(0x9c1c_34f1_0a4e_7ab3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_blocks(blocks: D, probes: u32, key_hash: KeyHash) -> Result<Self, ParamsError> {
        let count = blocks.as_ref().len();
        let is_legal = (1..=u32::MAX as usize).contains(&count);
        ensure(is_legal, ParamsError::BlocksOutOfRange { blocks: count as u64 })?;
        ensure((1..=MAX_PROBES).contains(&probes), ParamsError::ProbesOutOfRange { probes })?;
        let meta = Meta::new(key_hash, probes as u8, false);
        Ok(BloomFilter::from_parts(blocks, meta, Kernel::default()))
    }
}

impl<D> BloomFilter<D> {
    /// The caller must have checked that there are 1 to 2^32 - 1 blocks and that `meta` is in
    /// range.
    #[inline]
    pub(super) fn from_parts(data: D, meta: Meta, kernel: Kernel) -> Self {
        BloomFilter { data, meta, kernel, answers: meta.contents.whole_keys() }
    }

    /// Returns the storage of the blocks.
    pub fn holder(&self) -> &D {
        &self.data
    }

    /// Returns the kernel that answers batches.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Sets the kernel that answers batches.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        BloomFilter { kernel, ..self }
    }
}

impl BloomFilter {
    /// Lets the allocator move the blocks; see
    /// [`BlockBuffer::reallocate`](crate::parts::BlockBuffer::reallocate).
    pub fn reallocate(&mut self) {
        self.data.reallocate();
    }
}
