//! A split-block filter that owns its blocks: adding values, sizing, and the bytes that go into a file.
//!
//! This file owns how large a filter is made. It refuses numbers of blocks that are no power of two, which some readers refuse.

use alloc::vec::Vec;

use super::header::Written;
use super::{MAX_BITSET_BYTES, ParquetError, SplitBlockFilterRef, key_hash};
use crate::buffer::Buffer;
use crate::kernel::Kernel;
use crate::probe::BLOCK_BYTES;
use crate::probe::split_block::{self, SPLIT_BLOCK_BYTES, SplitBlock};

/// A split-block filter in memory of its own, for one column of one row group.
///
/// Sized for a number of distinct values and a rate, it can be asked, added to, folded to a smaller size once the values are known, and
/// written. It has a power of two of blocks, from 1 to 4,194,304 (128 MiB). Queries are methods of [`view`](Self::view).
///
/// ```
/// use blocked_bloom::interop::parquet::SplitBlockFilter;
/// let mut filter = SplitBlockFilter::new(1_000_000, 0.01)?; // no more rows than that
/// for word in ["apple", "banana", "apple"] {
///     filter.insert(word);
/// }
/// filter.fold_to_false_positive_rate(0.01);
/// assert_eq!(filter.view().blocks().len(), 1);
/// assert!(filter.view().contains("apple"));
/// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
/// ```
#[derive(Clone)]
pub struct SplitBlockFilter {
    /// Two split blocks in each.
    buffer: Buffer,
    /// Split blocks: a power of two. What the buffer has beyond them means nothing.
    len: usize,
    kernel: Kernel,
}

impl SplitBlockFilter {
    /// An empty filter for so many distinct values, that lets this fraction of absent ones pass.
    ///
    /// Its size is Arrow's: `-8 n / ln(1 - rate^(1/8))` bits, cut to whole bytes, at least 32 bytes and at most 128 MiB, rounded up to a
    /// power of two. Beyond that, some 104 million values at 1 %, the rate is higher than asked for. The formula is that of a filter
    /// without blocks: with blocks, and the size not rounded up, 1 % becomes some 1.4 %.
    ///
    /// # Errors
    ///
    /// [`ParquetError::RateOutOfRange`] unless `0 < rate < 1`, and [`ParquetError::Alloc`].
    ///
    /// ```
    /// use blocked_bloom::interop::parquet::SplitBlockFilter;
    /// assert_eq!(SplitBlockFilter::new(100, 0.01)?.view().blocks().len(), 4); // 968 bits, 128 bytes
    /// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
    /// ```
    pub fn new(distinct_values: u64, rate: f64) -> Result<Self, ParquetError> {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(ParquetError::RateOutOfRange { rate });
        }
        let bits = -8.0 * distinct_values as f64 / libm::log(1.0 - libm::pow(rate, 1.0 / 8.0));
        // A rate so small that the logarithm is 0: no size is enough, and only no values need none. Conversion saturates.
        let bytes = if bits.is_finite() { bits as u64 / 8 } else { u64::MAX };
        let bytes = if distinct_values == 0 { 0 } else { bytes };
        let bytes = bytes.clamp(SPLIT_BLOCK_BYTES as u64, u64::from(MAX_BITSET_BYTES));
        Self::with_blocks((bytes.next_power_of_two() / SPLIT_BLOCK_BYTES as u64) as u32)
    }

    /// An empty filter of so many blocks of 32 bytes.
    ///
    /// # Errors
    ///
    /// [`ParquetError::NotAPowerOfTwo`], [`ParquetError::BitsetLength`] for more than 4,194,304, and [`ParquetError::Alloc`].
    ///
    /// ```
    /// use blocked_bloom::interop::parquet::{ParquetError, SplitBlockFilter};
    /// assert_eq!(SplitBlockFilter::with_blocks(8)?.view().blocks(), [[0; 32]; 8]);
    /// let error = SplitBlockFilter::with_blocks(3).unwrap_err();
    /// assert_eq!(error, ParquetError::NotAPowerOfTwo { blocks: 3 });
    /// # Ok::<(), ParquetError>(())
    /// ```
    pub fn with_blocks(blocks: u32) -> Result<Self, ParquetError> {
        if !blocks.is_power_of_two() {
            return Err(ParquetError::NotAPowerOfTwo { blocks });
        }
        let bytes = i64::from(blocks) * SPLIT_BLOCK_BYTES as i64;
        super::header::bitset_length(bytes)?;
        let buffer = Buffer::zeroed(bytes.unsigned_abs().div_ceil(BLOCK_BYTES as u64) as u32)?;
        Ok(SplitBlockFilter { buffer, len: blocks as usize, kernel: Kernel::default() })
    }

    pub(super) fn copy_of(view: &SplitBlockFilterRef<'_>) -> Result<Self, ParquetError> {
        let mut copy = Self::with_blocks(view.blocks().len() as u32)?;
        copy.blocks_mut().copy_from_slice(view.blocks());
        copy.kernel = view.kernel();
        Ok(copy)
    }

    pub(super) fn blocks(&self) -> &[SplitBlock] {
        let (blocks, _) = self.buffer.as_flattened().as_chunks();
        &blocks[..self.len]
    }

    pub(super) fn blocks_mut(&mut self) -> &mut [SplitBlock] {
        let (blocks, _) = self.buffer.as_flattened_mut().as_chunks_mut();
        &mut blocks[..self.len]
    }

    /// Keeps the first `blocks` blocks, a power of two and no more than there are.
    pub(super) fn keep_first(&mut self, blocks: usize) {
        self.len = blocks;
        self.buffer.keep_first((blocks * SPLIT_BLOCK_BYTES).div_ceil(BLOCK_BYTES) as u32);
    }

    /// Every query.
    ///
    /// ```
    /// # let filter = blocked_bloom::interop::parquet::SplitBlockFilter::new(100, 0.01)?;
    /// assert!(filter.view().is_empty());
    /// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
    /// ```
    #[inline]
    pub fn view(&self) -> SplitBlockFilterRef<'_> {
        SplitBlockFilterRef::new(self.blocks(), self.kernel)
    }

    /// Adds a value by its plain-encoded bytes. True if it was certainly not there.
    ///
    /// ```
    /// # let mut filter = blocked_bloom::interop::parquet::SplitBlockFilter::new(100, 0.01)?;
    /// assert!(filter.insert(7_i64.to_le_bytes()));
    /// assert!(!filter.insert(7_i64.to_le_bytes()));
    /// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
    /// ```
    pub fn insert(&mut self, plain: impl AsRef<[u8]>) -> bool {
        self.insert_hash(key_hash(plain))
    }

    /// Adds a value by its [`hash`](super::Value::hash). True if it was certainly not there.
    ///
    /// ```
    /// # let mut filter = blocked_bloom::interop::parquet::SplitBlockFilter::new(100, 0.01)?;
    /// # use blocked_bloom::interop::parquet::Value;
    /// assert!(filter.insert_hash(Value::Double(0.5).hash()));
    /// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
    /// ```
    pub fn insert_hash(&mut self, hash: u64) -> bool {
        let index = split_block::block_index(hash, self.len as u32) as usize;
        split_block::insert(&mut self.blocks_mut()[index], hash)
    }

    /// Adds values by their hashes. Cost: in a filter that outgrows the cache, lines are requested ahead.
    ///
    /// ```
    /// # let mut filter = blocked_bloom::interop::parquet::SplitBlockFilter::new(100, 0.01)?;
    /// filter.insert_hashes(&[1, 2, 3]);
    /// assert!(filter.view().contains_hash(2));
    /// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
    /// ```
    pub fn insert_hashes(&mut self, hashes: &[u64]) {
        let kernel = self.kernel;
        kernel.split_insert(self.blocks_mut(), hashes);
    }

    /// The header and the bitset, as all writers write them: what `bloom_filter_offset` points to and `bloom_filter_length` counts.
    ///
    /// ```
    /// # let filter = blocked_bloom::interop::parquet::SplitBlockFilter::new(100, 0.01)?;
    /// assert_eq!(filter.to_bytes().len(), 16 + 128);
    /// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.header().bytes(), self.blocks().as_flattened()].concat()
    }

    /// Writes what [`to_bytes`](Self::to_bytes) gives, without a copy, and returns its length.
    ///
    /// # Errors
    ///
    /// The writer's.
    ///
    /// ```
    /// # let filter = blocked_bloom::interop::parquet::SplitBlockFilter::new(100, 0.01)?;
    /// let mut file = Vec::new();
    /// let bloom_filter_length = filter.write_to(&mut file)?;
    /// assert_eq!(bloom_filter_length, 144);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn write_to(&self, mut writer: impl std::io::Write) -> std::io::Result<u64> {
        let (header, bitset) = (self.header(), self.blocks().as_flattened());
        writer.write_all(header.bytes())?;
        writer.write_all(bitset)?;
        Ok((header.bytes().len() + bitset.len()) as u64)
    }

    fn header(&self) -> Written {
        Written::new((self.len * SPLIT_BLOCK_BYTES) as u32)
    }

    /// The same filter, with batches answered and inserted by `kernel`.
    ///
    /// ```
    /// # use blocked_bloom::{Kernel, interop::parquet::SplitBlockFilter};
    /// let scalar = Kernel::supported().last().unwrap();
    /// let filter = SplitBlockFilter::new(100, 0.01)?.with_kernel(scalar);
    /// assert_eq!(filter.view().kernel(), scalar);
    /// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
    /// ```
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        SplitBlockFilter { kernel, ..self }
    }
}

/// Same blocks; the kernel does not matter.
impl PartialEq for SplitBlockFilter {
    fn eq(&self, other: &Self) -> bool {
        self.view() == other.view()
    }
}

impl Eq for SplitBlockFilter {}

/// The shape, without the bits.
impl core::fmt::Debug for SplitBlockFilter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SplitBlockFilter")
            .field("blocks", &self.len)
            .field("kernel", &self.kernel)
            .finish()
    }
}
