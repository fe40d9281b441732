//! A split-block filter, generic over the storage of its blocks. For filters that own their blocks:
//! sizing, insertion and the stored form.
//!
//! A new filter has a power of two of blocks, since some readers open no others. A copy has as many
//! blocks as its source.

use alloc::vec::Vec;

use blocked_bloom::parts::BlockBuffer;
use blocked_bloom::{AllocError, Block, Kernel, Stored};

use crate::error::{MAX_BITSET_BYTES, SplitBlockError};
use crate::hash::hash_value;
use crate::header;
use crate::kernel::{self, Functions};
use crate::split_block::{self, SPLIT_BLOCK_BYTES, SplitBlock};

/// A split-block filter, for example of one column of one row group of a Parquet file, generic over
/// the storage of its blocks.
///
/// | type | storage of the blocks | created by |
/// |---|---|---|
/// | `SplitBlockFilter` | its own memory; accepts values, and can be folded, merged and written | [`new`](Self::new), [`with_blocks`](Self::with_blocks), [`to_filter`](Self::to_filter) |
/// | `SplitBlockFilter<StoredSplitBlocks<B>>` | a stored filter in `B`: a `Vec<u8>`, an `Arc<[u8]>` of a cache | [`from_bytes`](SplitBlockFilter::from_bytes) |
/// | `SplitBlockFilter<&[SplitBlock]>` | a file in memory, or another filter; `Copy` | [`from_bitset`](SplitBlockFilter::from_bitset), [`view`](Self::view) |
///
/// All three have the same lookups. A new filter has a power of two of blocks. A stored filter has
/// any number from 1 to 2^26 - 1 (2 GiB), at any alignment. If its bitset starts at a multiple of
/// 32 in memory, which is rare for a bitset in a file, each block is in one cache line; otherwise
/// some straddle two.
///
/// ```
/// use blocked_bloom::Filter;
/// use blocked_bloom_split::SplitBlockFilter;
/// let mut filter = SplitBlockFilter::new(1_000_000, 0.01)?; // at most this many rows
/// for word in ["apple", "banana", "apple"] {
///     filter.insert(word);
/// }
/// filter.shrink_to_false_positive_rate(0.01);
/// assert_eq!(filter.blocks().len(), 1);
/// assert!(filter.contains("apple"));
/// # Ok::<(), blocked_bloom_split::SplitBlockError>(())
/// ```
#[derive(Clone, Copy)]
pub struct SplitBlockFilter<D = SplitBlocks> {
    /// 1 to 2^26 - 1 blocks.
    pub(crate) data: D,
    pub(crate) functions: Functions,
}

/// The blocks of a filter that owns them, aligned to cache lines. Large buffers are advised to use
/// huge pages.
///
/// ```
/// use blocked_bloom_split::{SplitBlockFilter, SplitBlocks};
/// let filter: SplitBlockFilter<SplitBlocks> = SplitBlockFilter::with_blocks(4)?;
/// assert_eq!(filter.blocks().len(), 4);
/// # Ok::<(), blocked_bloom_split::SplitBlockError>(())
/// ```
#[derive(Clone)]
pub struct SplitBlocks {
    /// Each block has [`SPLIT_BLOCKS_PER_BLOCK`] split blocks.
    pub(crate) buffer: BlockBuffer,
    /// Number of split blocks, 1 to 2^26 - 1. The buffer may have more, which are unused.
    pub(crate) len: usize,
}

impl AsRef<[SplitBlock]> for SplitBlocks {
    #[inline]
    fn as_ref(&self) -> &[SplitBlock] {
        let (blocks, _) = self.buffer.as_flattened().as_chunks();
        &blocks[..self.len]
    }
}

/// The blocks of a stored filter in the bytes of any owner `B`. If the length of the owner's bytes
/// changes after opening, every answer is "maybe".
///
/// ```
/// use std::sync::Arc;
/// use blocked_bloom_split::{SplitBlockFilter, StoredSplitBlocks};
/// struct Cached {
///     filter: SplitBlockFilter<StoredSplitBlocks<Arc<[u8]>>>,
/// }
/// let stored: Arc<[u8]> = SplitBlockFilter::with_blocks(4)?.to_bytes().into();
/// let cached = Cached { filter: SplitBlockFilter::from_bytes(stored)? };
/// assert_eq!(cached.filter.blocks().len(), 4);
/// # Ok::<(), blocked_bloom_split::SplitBlockError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct StoredSplitBlocks<B> {
    pub(crate) stored: Stored<B>,
    /// Offset of the bitset, which extends to the end of the bytes.
    pub(crate) start: usize,
}

/// The block of a pass-all filter.
const FULL: &[SplitBlock] = &[[0xff; SPLIT_BLOCK_BYTES]];

impl<B: AsRef<[u8]>> AsRef<[SplitBlock]> for StoredSplitBlocks<B> {
    #[inline]
    fn as_ref(&self) -> &[SplitBlock] {
        match self.stored.bytes().and_then(|bytes| bytes.get(self.start..)) {
            Some(bitset) => bitset.as_chunks().0,
            None => FULL,
        }
    }
}

/// Shows the number of blocks.
impl core::fmt::Debug for SplitBlocks {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SplitBlocks").field("len", &self.len).finish()
    }
}

impl<D> SplitBlockFilter<D> {
    /// Creates a filter of 1 to 2^26 - 1 blocks.
    pub(crate) fn from_data(data: D, kernel: Kernel) -> Self {
        SplitBlockFilter { data, functions: kernel.into() }
    }

    /// Returns the kernel that runs batches.
    pub fn kernel(&self) -> Kernel {
        self.functions.kernel
    }

    /// Sets the kernel that runs batches.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        SplitBlockFilter { functions: kernel.into(), ..self }
    }
}

impl<D: AsRef<[SplitBlock]>> SplitBlockFilter<D> {
    /// Returns the same filter with borrowed blocks, at no cost.
    #[inline]
    pub fn view(&self) -> SplitBlockFilter<&[SplitBlock]> {
        SplitBlockFilter { data: self.blocks(), functions: self.functions }
    }

    /// Copies the filter into its own memory, so that it can be changed and written.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if the allocation fails.
    pub fn to_filter(&self) -> Result<SplitBlockFilter, AllocError> {
        // Borrowed once: the owner of stored bytes may lend others the next time.
        let blocks = self.blocks();
        let mut copy = SplitBlockFilter::zeroed(blocks.len() as u32)?;
        copy.blocks_mut().copy_from_slice(blocks);
        Ok(copy.with_kernel(self.kernel()))
    }
}

/// Split blocks per block of the buffer, which is one cache line.
const SPLIT_BLOCKS_PER_BLOCK: u32 = (size_of::<Block>() / SPLIT_BLOCK_BYTES) as u32;

impl SplitBlockFilter {
    /// Creates an empty filter for this many distinct values with this false-positive rate.
    ///
    /// The size is computed as in Arrow: `-8 n / ln(1 - rate^(1/8))` bits, truncated to whole
    /// bytes, at least 32 bytes and at most 128 MiB, rounded up to a power of two. For more values
    /// than fit (about 104 million at 1 %), the rate is higher than requested. The formula ignores
    /// that keys share blocks: if the size was not rounded up, 1 % becomes about 1.4 %.
    ///
    /// # Errors
    ///
    /// [`SplitBlockError::RateOutOfRange`] unless `0 < rate < 1`, and [`SplitBlockError::Alloc`].
    pub fn new(distinct_values: u64, rate: f64) -> Result<Self, SplitBlockError> {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(SplitBlockError::RateOutOfRange { rate });
        }
        let bits = bits_for(distinct_values, rate);
        // For a rate so small that the logarithm is 0, no size is enough, except for 0 values. The
        // conversion saturates.
        let bytes = if bits.is_finite() { bits as u64 / 8 } else { u64::MAX };
        Ok(Self::with_bytes(if distinct_values == 0 { 0 } else { bytes })?)
    }

    /// Creates an empty filter of at least this many bytes, 32 to 128 MiB, rounded up to a power of
    /// two.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if the allocation fails.
    pub fn with_bytes(bytes: u64) -> Result<Self, AllocError> {
        let bytes = bytes.clamp(SPLIT_BLOCK_BYTES as u64, u64::from(MAX_BITSET_BYTES));
        Self::zeroed((bytes.next_power_of_two() / SPLIT_BLOCK_BYTES as u64) as u32)
    }

    /// Creates an empty filter of this many blocks of 32 bytes.
    ///
    /// # Errors
    ///
    /// [`SplitBlockError::NotAPowerOfTwo`], [`SplitBlockError::BitsetLength`] for more than 2^25,
    /// and [`SplitBlockError::Alloc`].
    pub fn with_blocks(blocks: u32) -> Result<Self, SplitBlockError> {
        if !blocks.is_power_of_two() {
            return Err(SplitBlockError::NotAPowerOfTwo { blocks });
        }
        let bytes = i64::from(blocks) * SPLIT_BLOCK_BYTES as i64;
        header::bitset_length(bytes)?;
        Ok(Self::zeroed(blocks)?)
    }

    /// Creates an empty filter of 1 to 2^26 - 1 blocks.
    fn zeroed(blocks: u32) -> Result<Self, AllocError> {
        let buffer = BlockBuffer::zeroed(blocks.div_ceil(SPLIT_BLOCKS_PER_BLOCK), true)?;
        let data = SplitBlocks { buffer, len: blocks as usize };
        Ok(SplitBlockFilter::from_data(data, Kernel::default()))
    }

    pub(crate) fn blocks_mut(&mut self) -> &mut [SplitBlock] {
        let (blocks, _) = self.data.buffer.as_flattened_mut().as_chunks_mut();
        &mut blocks[..self.data.len]
    }

    /// Keeps the first `blocks` blocks, at least 1 and at most all.
    pub(crate) fn keep_first(&mut self, blocks: usize) {
        self.data.len = blocks;
        self.data.buffer.keep_first((blocks as u32).div_ceil(SPLIT_BLOCKS_PER_BLOCK));
    }

    /// Inserts a value by its plain-encoded bytes. Returns true if it was certainly absent.
    pub fn insert(&mut self, plain: impl AsRef<[u8]>) -> bool {
        self.insert_hash(hash_value(plain))
    }

    /// Inserts a value by its [hash](hash_value). Returns true if it was certainly absent.
    pub fn insert_hash(&mut self, hash: u64) -> bool {
        let index = split_block::block_index(hash, self.data.len as u32) as usize;
        let functions = self.functions;
        functions.insert_one(&mut self.blocks_mut()[index], hash)
    }

    /// Inserts values by their hashes. Cost: about one cache line per hash, prefetched if the
    /// filter exceeds the cache.
    pub fn insert_hashes(&mut self, hashes: &[u64]) {
        kernel::insert(self.functions, self.blocks_mut(), hashes);
    }

    /// Returns the header and the bitset, as all writers write them. In a Parquet file,
    /// `bloom_filter_offset` points to them and `bloom_filter_length` is their length.
    pub fn to_bytes(&self) -> Vec<u8> {
        [&self.header()[..], self.blocks().as_flattened()].concat()
    }

    /// Writes the bytes of [`to_bytes`](Self::to_bytes) without a copy, and returns their number.
    ///
    /// # Errors
    ///
    /// The writer's errors.
    #[cfg(feature = "std")]
    pub fn write_to(&self, mut writer: impl std::io::Write) -> std::io::Result<u64> {
        let (header, bitset) = (self.header(), self.blocks().as_flattened());
        writer.write_all(&header)?;
        writer.write_all(bitset)?;
        Ok((header.len() + bitset.len()) as u64)
    }

    fn header(&self) -> Vec<u8> {
        header::encode((self.data.len * SPLIT_BLOCK_BYTES) as u32)
    }
}

/// Returns Arrow's number of bits for this many distinct values. Not finite if the rate is so small
/// that no number is enough.
pub(crate) fn bits_for(distinct_values: u64, rate: f64) -> f64 {
    -8.0 * distinct_values as f64 / libm::log(1.0 - libm::pow(rate, 1.0 / 8.0))
}

/// Compares the blocks; kernel and storage do not matter.
impl<D, E> PartialEq<SplitBlockFilter<E>> for SplitBlockFilter<D>
where
    D: AsRef<[SplitBlock]>,
    E: AsRef<[SplitBlock]>,
{
    fn eq(&self, other: &SplitBlockFilter<E>) -> bool {
        self.blocks() == other.blocks()
    }
}

impl<D: AsRef<[SplitBlock]>> Eq for SplitBlockFilter<D> {}

/// Shows the shape, without the bits.
impl<D: AsRef<[SplitBlock]>> core::fmt::Debug for SplitBlockFilter<D> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SplitBlockFilter")
            .field("blocks", &self.blocks().len())
            .field("kernel", &self.kernel())
            .finish()
    }
}
