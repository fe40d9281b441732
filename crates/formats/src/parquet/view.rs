//! A borrowed split-block filter: every query is written here, and the owned filter lends this view.

use blocked_bloom::{BatchQuery, Kernel, KeyError, LengthError};

use super::error::ParquetError;
use super::header;
use super::kernel;
use super::split_block::{self, SplitBlock};
use super::value::hash_value;

/// A split-block filter borrowed from wherever its bytes are: a file in memory, a cache, an owned
/// [`SplitBlockFilter`](super::SplitBlockFilter).
///
/// `Copy`. The bytes may have any alignment and the filter any number of blocks, from 1 to 4,194,304 (128 MiB). If its bitset starts
/// at a multiple of 32 in memory, which that of a file seldom does, each block is in one cache line, else some straddle two. Batches
/// are looked up by the methods of [`BatchQuery`]: of plain-encoded values, or of the hashes of values, which serve the filters of all
/// row groups.
///
/// ```
/// use blocked_bloom_formats::parquet::{SplitBlockFilter, SplitBlockFilterRef};
/// let mut filter = SplitBlockFilter::new(100, 0.01)?;
/// filter.insert("apple");
/// let stored = filter.to_bytes();
///
/// let filter = SplitBlockFilterRef::from_bytes(&stored)?;
/// assert!(filter.contains("apple"));
/// # Ok::<(), blocked_bloom_formats::parquet::ParquetError>(())
/// ```
#[derive(Clone, Copy)]
pub struct SplitBlockFilterRef<'a> {
    /// 1 to 2^22.
    blocks: &'a [SplitBlock],
    kernel: Kernel,
}

impl<'a> SplitBlockFilterRef<'a> {
    pub(super) fn new(blocks: &'a [SplitBlock], kernel: Kernel) -> Self {
        SplitBlockFilterRef { blocks, kernel }
    }

    /// Opens a filter: the header and the bitset, and nothing after it.
    ///
    /// Cost: reads the header only; allocates nothing. The bitset carries no checksum: see the [module](super).
    ///
    /// # Errors
    ///
    /// [`ParquetError`] if the header is damaged or of another algorithm, hash or compression, if the bitset's length is not a
    /// positive multiple of 32 up to 128 MiB, or if the bytes are shorter or longer than both.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, ParquetError> {
        let header = header::read(bytes, 0)?;
        let bitset = &bytes[header.length..];
        let (found, expected) = (bytes.len(), header.length as u64 + u64::from(header.bitset));
        if bitset.len() as u64 != u64::from(header.bitset) {
            return Err(ParquetError::Length { found: found as u64, expected });
        }
        Self::from_bitset(bitset)
    }

    /// Opens a filter without a header: the bitset alone.
    ///
    /// # Errors
    ///
    /// [`ParquetError::BitsetLength`] unless the length is a positive multiple of 32 up to 128 MiB.
    pub fn from_bitset(bitset: &'a [u8]) -> Result<Self, ParquetError> {
        header::bitset_length(i64::try_from(bitset.len()).unwrap_or(i64::MAX))?;
        let (blocks, _) = bitset.as_chunks();
        Ok(Self::new(blocks, Kernel::default()))
    }

    /// Opens the filter at `offset` of a file, or of any bytes that have it somewhere: `bloom_filter_offset` and
    /// `bloom_filter_length` of the column's metadata. Files of older writers have no length.
    ///
    /// [`ParquetFile`](super::ParquetFile) does this for those who have not read the metadata themselves.
    ///
    /// # Errors
    ///
    /// [`ParquetError`] as [`from_bytes`](Self::from_bytes), if the filter is not within `file`, or if its header gives another
    /// length than `length`.
    pub fn at(file: &'a [u8], offset: i64, length: Option<i32>) -> Result<Self, ParquetError> {
        Self::within(file, offset, length).map(|(filter, _)| filter)
    }

    /// [`at`](Self::at), and where in `file` the filter ends.
    pub(super) fn within(
        file: &'a [u8],
        offset: i64,
        length: Option<i32>,
    ) -> Result<(Self, u64), ParquetError> {
        let end = file.len() as u64;
        let outside = |length| ParquetError::OutsideFile { offset, length, end };
        let rest = usize::try_from(offset).ok().and_then(|offset| file.get(offset..));
        let rest = rest.filter(|rest| !rest.is_empty()).ok_or(outside(1))?;
        let header = header::read(rest, offset.unsigned_abs())?;
        let expected = header.length as u64 + u64::from(header.bitset);
        if let Some(length) = length
            && u64::try_from(length) != Ok(expected)
        {
            return Err(ParquetError::Length { found: length.max(0) as u64, expected });
        }
        let bitset = rest.get(header.length..expected as usize).ok_or(outside(expected))?;
        Ok((Self::from_bitset(bitset)?, offset.unsigned_abs() + expected))
    }

    /// Whether a value with these plain-encoded bytes may be in the row group: false means certainly absent.
    ///
    /// Cost: one hash, 32 bytes of memory.
    #[inline]
    pub fn contains(&self, plain: impl AsRef<[u8]>) -> bool {
        self.contains_hash(hash_value(plain))
    }

    /// Whether a value with this [`hash`](super::Value::hash) may be in the row group.
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let index = split_block::block_index(hash, self.blocks.len() as u32);
        split_block::contains(&self.blocks[index as usize], hash)
    }

    /// The blocks, 1 to 4,194,304. `blocks().as_flattened()` is the bitset.
    pub fn blocks(&self) -> &'a [SplitBlock] {
        self.blocks
    }

    /// Whether no bit is set, so that every value is certainly absent: the filter of a column of nulls. Cost: reads blocks up to the
    /// first bit.
    pub fn is_empty(&self) -> bool {
        self.blocks.iter().all(|block| *block == [0; 32])
    }

    /// Fraction of bits that are set, 0 to 1. Cost: reads every block.
    pub fn fill_ratio(&self) -> f64 {
        let ones = |word: &[u8; 4]| u64::from(u32::from_le_bytes(*word).count_ones());
        let (words, _) = self.blocks.as_flattened().as_chunks();
        words.iter().map(ones).sum::<u64>() as f64 / (32 * words.len()) as f64
    }

    /// False-positive rate that the filter really has, from its bits, 0 to 1: the mean over blocks of the chance that in each word
    /// the bit of an absent value is set, the product of the fills of the block's eight words.
    ///
    /// Writers estimate `fill_ratio^8` instead, which is lower, by the more the fuller the blocks differ. Cost: reads every block.
    pub fn estimated_false_positive_rate(&self) -> f64 {
        let fill = |word: &[u8; 4]| f64::from(u32::from_le_bytes(*word).count_ones()) / 32.0;
        let rate = |block: &SplitBlock| block.as_chunks().0.iter().map(fill).product::<f64>();
        self.blocks.iter().map(rate).sum::<f64>() / self.blocks.len() as f64
    }

    /// The kernel that answers batches.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The same filter, with batches answered by `kernel`.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        SplitBlockFilterRef { kernel, ..self }
    }
}

impl BatchQuery for SplitBlockFilterRef<'_> {
    /// Cost: about one cache line per hash, prefetched where the filter outgrows the cache; one indirect call per batch.
    #[inline]
    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        kernel::contains(self.kernel, self.blocks, hashes, words)
    }

    /// The hash of each value's plain-encoded bytes. Never an error.
    #[inline]
    fn hash_keys<K: AsRef<[u8]>>(&self, plain: &[K], hashes: &mut [u64]) -> Result<(), KeyError> {
        for (hash, plain) in hashes.iter_mut().zip(plain) {
            *hash = hash_value(plain);
        }
        Ok(())
    }
}

/// Same blocks; the kernel does not matter.
impl PartialEq for SplitBlockFilterRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.blocks == other.blocks
    }
}

impl Eq for SplitBlockFilterRef<'_> {}

/// The shape, without the bits.
impl core::fmt::Debug for SplitBlockFilterRef<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SplitBlockFilterRef")
            .field("blocks", &self.blocks.len())
            .field("kernel", &self.kernel)
            .finish()
    }
}
