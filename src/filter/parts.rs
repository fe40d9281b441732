//! For authors of other filters and benchmarks: a filter's blocks, where they are, and the kernel.

use super::{BloomFilter, Meta};
use crate::hash::KeyHash;
use crate::kernel::Kernel;
use crate::params::ParamsError;
use crate::probe::{Block, MAX_PROBES};

/// What holds the blocks of a filter, 1 to 2^32 - 1: memory of its own, a slice of blocks, or
/// [`Stored`](crate::Stored) bytes.
///
/// Whatever lends a slice of blocks does. If it lends another number of blocks later than at first,
/// a key that is there may be answered "absent".
///
/// ```
/// use blocked_bloom::{BloomFilter, parts::Blocks};
/// fn is_there(filter: &BloomFilter<impl Blocks>, key: &str) -> bool {
///     filter.contains(key)
/// }
/// assert!(is_there(&BloomFilter::pass_all(Default::default()), "apple"));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` holds no blocks of a filter",
    label = "holds no blocks",
    note = "open stored bytes with `BloomFilter::from_bytes(bytes, key_hash)`; the type is then \
            `BloomFilter<Stored<{Self}>>`"
)]
pub trait Blocks: AsRef<[Block]> {}

#[diagnostic::do_not_recommend]
impl<D: AsRef<[Block]>> Blocks for D {}

/// Blocks that can be added to: memory of a filter's own, or a slice that is lent to be changed.
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
    message = "a filter whose blocks are in `{Self}` cannot be added to",
    label = "this filter was opened or borrowed",
    note = "copy it into memory of its own: `let mut filter = filter.to_filter()?;`"
)]
pub trait BlocksMut: Blocks + AsMut<[Block]> {}

#[diagnostic::do_not_recommend]
impl<D: AsRef<[Block]> + AsMut<[Block]>> BlocksMut for D {}

impl<D> BloomFilter<D> {
    /// The callers have checked that there are 1 to 2^32 - 1 blocks and that `meta` is in range.
    #[inline]
    pub(super) fn from_parts(data: D, meta: Meta, kernel: Kernel) -> Self {
        BloomFilter { data, meta, kernel, answers: meta.contents.whole_keys() }
    }
}

impl<D: Blocks> BloomFilter<D> {
    /// The same filter, borrowed. Free.
    #[inline]
    pub fn view(&self) -> BloomFilter<&[Block]> {
        BloomFilter {
            data: self.blocks(),
            meta: self.meta,
            kernel: self.kernel,
            answers: self.answers,
        }
    }

    /// The blocks, 1 to 2^32 - 1. Cost: none.
    #[inline]
    pub fn blocks(&self) -> &[Block] {
        self.data.as_ref()
    }

    /// A filter of these blocks and probes, of hashes of `key_hash`, whose keys were not counted:
    /// for containers of other systems with the same probe scheme. If the blocks are lent to be
    /// changed, it can be added to.
    ///
    /// # Errors
    ///
    /// [`ParamsError::BlocksOutOfRange`] unless there are 1 to 2^32 - 1 blocks,
    /// [`ParamsError::ProbesOutOfRange`] unless 1 to 30.
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
        if !(1..=u32::MAX as usize).contains(&count) {
            return Err(ParamsError::BlocksOutOfRange { blocks: count as u64 });
        }
        if !(1..=MAX_PROBES).contains(&probes) {
            return Err(ParamsError::ProbesOutOfRange { probes });
        }
        Ok(BloomFilter::from_parts(
            blocks,
            Meta::new(key_hash, probes as u8, false),
            Kernel::default(),
        ))
    }
}

impl<D> BloomFilter<D> {
    /// What holds the blocks.
    pub fn holder(&self) -> &D {
        &self.data
    }

    /// The kernel that answers batches.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The same filter, with batches answered by `kernel`.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        BloomFilter { kernel, ..self }
    }
}

impl BloomFilter {
    /// Has the allocator move the blocks: see
    /// [`BlockBuffer::reallocate`](crate::parts::BlockBuffer::reallocate).
    pub fn reallocate(&mut self) {
        self.data.reallocate();
    }
}
