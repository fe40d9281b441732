//! A borrowed split-block filter: every query is written here, and the owned filter lends this view.
//!
//! This file owns the questions and the statistics. It refuses to change bits.

use super::filter::SplitBlockFilter;
use super::{ParquetError, header, key_hash};
use crate::bitmask::Bitmask;
use crate::error::LengthError;
use crate::kernel::{Ahead, Kernel};
use crate::probe::split_block::{self, SplitBlock};
use crate::view::{ask_many_keys, check_length};

/// A split-block filter borrowed from wherever its bytes are: a file in memory, a cache, an owned [`SplitBlockFilter`].
///
/// `Copy`. The bytes may have any alignment and the filter any number of blocks, from 1 to 4,194,304 (128 MiB). If its bitset starts
/// at a multiple of 32 in memory, which that of a file seldom does, each block is in one cache line, else some straddle two.
///
/// ```
/// use blocked_bloom::interop::parquet::{SplitBlockFilter, SplitBlockFilterRef};
/// let mut filter = SplitBlockFilter::new(100, 0.01)?;
/// filter.insert("apple");
/// let stored = filter.to_bytes();
///
/// let filter = SplitBlockFilterRef::from_bytes(&stored)?;
/// assert!(filter.contains("apple"));
/// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
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
    ///
    /// ```
    /// use blocked_bloom::interop::parquet::{ParquetError, SplitBlockFilter, SplitBlockFilterRef};
    /// let stored = SplitBlockFilter::new(100, 0.01)?.to_bytes();
    /// assert!(SplitBlockFilterRef::from_bytes(&stored)?.is_empty());
    /// let error = SplitBlockFilterRef::from_bytes(&stored[..100]).unwrap_err();
    /// assert_eq!(error, ParquetError::Length { found: 100, expected: 144 });
    /// # Ok::<(), ParquetError>(())
    /// ```
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
    ///
    /// ```
    /// use blocked_bloom::interop::parquet::SplitBlockFilterRef;
    /// let filter = SplitBlockFilterRef::from_bitset(&[0xff; 96])?;
    /// assert_eq!(filter.blocks().len(), 3);
    /// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
    /// ```
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
    ///
    /// ```
    /// use blocked_bloom::interop::parquet::{SplitBlockFilter, SplitBlockFilterRef};
    /// let stored = SplitBlockFilter::new(100, 0.01)?.to_bytes();
    /// let file = [b"PAR1".as_slice(), &stored, b"what follows"].concat();
    /// let filter = SplitBlockFilterRef::at(&file, 4, Some(stored.len() as i32))?;
    /// assert_eq!(filter.blocks().len(), 4);
    /// assert!(SplitBlockFilterRef::at(&file, 4, None).is_ok());
    /// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
    /// ```
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
    ///
    /// ```
    /// # let mut filter = blocked_bloom::interop::parquet::SplitBlockFilter::new(100, 0.01)?;
    /// filter.insert(7_i64.to_le_bytes());
    /// assert!(filter.view().contains(7_i64.to_le_bytes()));
    /// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
    /// ```
    #[inline]
    pub fn contains(&self, plain: impl AsRef<[u8]>) -> bool {
        self.contains_hash(key_hash(plain))
    }

    /// Whether a value with this [`hash`](super::Value::hash) may be in the row group.
    ///
    /// ```
    /// # use blocked_bloom::interop::parquet::{SplitBlockFilter, Value};
    /// # let mut filter = SplitBlockFilter::new(100, 0.01)?;
    /// filter.insert_hash(Value::Int64(7).hash());
    /// assert!(filter.view().contains_hash(Value::Int64(7).hash()));
    /// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
    /// ```
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let index = split_block::block_index(hash, self.blocks.len() as u32);
        split_block::contains(&self.blocks[index as usize], hash)
    }

    /// Asks about the plain-encoded bytes of every value; `hits` then has one bit per value. Batches may have any length.
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, interop::parquet::SplitBlockFilter};
    /// # let mut filter = SplitBlockFilter::new(100, 0.01)?;
    /// filter.insert("apple");
    /// let mut hits = Bitmask::new();
    /// filter.view().contains_batch(&["apple", "banana"], &mut hits);
    /// assert!(hits.hits().eq([0]));
    /// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
    /// ```
    pub fn contains_batch<K: AsRef<[u8]>>(&self, plain: &[K], hits: &mut Bitmask) {
        hits.write(plain.len(), |words| self.keys(plain, words));
    }

    /// [`contains_batch`](Self::contains_batch) into words of the caller's: value `i` is bit `i % 64` of `words[i / 64]`, bits past
    /// the last value are zero.
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per 64 values, rounded up; nothing is written then.
    ///
    /// ```
    /// # let mut filter = blocked_bloom::interop::parquet::SplitBlockFilter::new(100, 0.01)?;
    /// filter.insert("apple");
    /// let mut words = [0];
    /// filter.view().contains_batch_into(&["apple", "banana"], &mut words)?;
    /// assert_eq!(words, [0b01]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch_into<K: AsRef<[u8]>>(
        &self,
        plain: &[K],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        check_length(plain.len(), words)?;
        self.keys(plain, words);
        Ok(())
    }

    /// Asks about every hash; `hits` then has one bit per hash. Batches may have any length.
    ///
    /// Hash a batch once and ask the filters of all row groups. Cost: about one cache line per hash; one indirect call per batch.
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, interop::parquet::{SplitBlockFilter, Value}};
    /// # let mut filter = SplitBlockFilter::new(100, 0.01)?;
    /// filter.insert_hash(Value::Int32(7).hash());
    /// let mut hits = Bitmask::new();
    /// filter.view().contains_hashes(&[Value::Int32(8).hash(), Value::Int32(7).hash()], &mut hits);
    /// assert!(hits.hits().eq([1]));
    /// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
    /// ```
    pub fn contains_hashes(&self, hashes: &[u64], hits: &mut Bitmask) {
        self.hashes(hashes, hits.reset(hashes.len()));
    }

    /// [`contains_hashes`](Self::contains_hashes) into words of the caller's, as
    /// [`contains_batch_into`](Self::contains_batch_into).
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per 64 hashes, rounded up; nothing is written then.
    ///
    /// ```
    /// # let filter = blocked_bloom::interop::parquet::SplitBlockFilterRef::from_bitset(&[0xff; 32])?;
    /// let mut words = [0; 2];
    /// filter.contains_hashes_into(&[0; 65], &mut words)?;
    /// assert_eq!(words, [u64::MAX, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_hashes_into(
        &self,
        hashes: &[u64],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        check_length(hashes.len(), words)?;
        self.hashes(hashes, words);
        Ok(())
    }

    #[inline]
    fn hashes(&self, hashes: &[u64], words: &mut [u64]) {
        let ahead = Ahead::start(self.kernel.prefetch(self.blocks), self.blocks, hashes);
        self.kernel.split_contains(self.blocks, ahead, hashes, words);
    }

    fn keys<K: AsRef<[u8]>>(&self, plain: &[K], words: &mut [u64]) {
        let hash_into = |plain: &[K], hashes: &mut [u64]| {
            for (plain, hash) in plain.iter().zip(hashes) {
                *hash = key_hash(plain);
            }
        };
        ask_many_keys(
            self.kernel.prefetch(self.blocks),
            self.blocks,
            plain,
            words,
            hash_into,
            |ahead, hashes, words| self.kernel.split_contains(self.blocks, ahead, hashes, words),
        );
    }

    /// The blocks, 1 to 4,194,304. `blocks().as_flattened()` is the bitset.
    ///
    /// ```
    /// # let filter = blocked_bloom::interop::parquet::SplitBlockFilterRef::from_bitset(&[0xff; 32])?;
    /// assert_eq!(filter.blocks(), [[0xff; 32]]);
    /// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
    /// ```
    pub fn blocks(&self) -> &'a [SplitBlock] {
        self.blocks
    }

    /// Whether no bit is set, so that every value is certainly absent: the filter of a column of nulls. Cost: reads blocks up to the
    /// first bit.
    ///
    /// ```
    /// # let filter = blocked_bloom::interop::parquet::SplitBlockFilterRef::from_bitset(&[0; 32])?;
    /// assert!(filter.is_empty());
    /// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.blocks.iter().all(|block| *block == [0; 32])
    }

    /// Fraction of bits that are set, 0 to 1. Cost: reads every block.
    ///
    /// ```
    /// # let filter = blocked_bloom::interop::parquet::SplitBlockFilterRef::from_bitset(&[0x0f; 32])?;
    /// assert_eq!(filter.fill_ratio(), 0.5);
    /// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
    /// ```
    pub fn fill_ratio(&self) -> f64 {
        let ones = |word: &[u8; 4]| u64::from(u32::from_le_bytes(*word).count_ones());
        let (words, _) = self.blocks.as_flattened().as_chunks();
        words.iter().map(ones).sum::<u64>() as f64 / (32 * words.len()) as f64
    }

    /// False-positive rate that the filter really has, from its bits, 0 to 1: the mean over blocks of the chance that in each word
    /// the bit of an absent value is set, the product of the fills of the block's eight words.
    ///
    /// Writers estimate `fill_ratio^8` instead, which is lower, by the more the fuller the blocks differ. Cost: reads every block.
    ///
    /// ```
    /// # let filter = blocked_bloom::interop::parquet::SplitBlockFilterRef::from_bitset(&[0x0f; 32])?;
    /// assert_eq!(filter.estimated_false_positive_rate(), 0.5_f64.powi(8));
    /// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
    /// ```
    pub fn estimated_false_positive_rate(&self) -> f64 {
        let fill = |word: &[u8; 4]| f64::from(u32::from_le_bytes(*word).count_ones()) / 32.0;
        let rate = |block: &SplitBlock| block.as_chunks().0.iter().map(fill).product::<f64>();
        self.blocks.iter().map(rate).sum::<f64>() / self.blocks.len() as f64
    }

    /// A copy that owns its blocks and can be added to, folded and written.
    ///
    /// # Errors
    ///
    /// [`ParquetError::NotAPowerOfTwo`] if the filter has another number of blocks, which some readers refuse, and
    /// [`ParquetError::Alloc`].
    ///
    /// ```
    /// # let filter = blocked_bloom::interop::parquet::SplitBlockFilterRef::from_bitset(&[0x0f; 64])?;
    /// assert_eq!(filter.to_filter()?.view(), filter);
    /// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
    /// ```
    pub fn to_filter(&self) -> Result<SplitBlockFilter, ParquetError> {
        SplitBlockFilter::copy_of(self)
    }

    /// The kernel that answers batches.
    ///
    /// ```
    /// # let filter = blocked_bloom::interop::parquet::SplitBlockFilterRef::from_bitset(&[0x0f; 64])?;
    /// assert_eq!(filter.kernel(), blocked_bloom::Kernel::default());
    /// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
    /// ```
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The same filter, with batches answered by `kernel`.
    ///
    /// ```
    /// # use blocked_bloom::Kernel;
    /// # let filter = blocked_bloom::interop::parquet::SplitBlockFilterRef::from_bitset(&[0x0f; 64])?;
    /// let scalar = Kernel::supported().last().unwrap();
    /// assert_eq!(filter.with_kernel(scalar).kernel().name(), "scalar");
    /// # Ok::<(), blocked_bloom::interop::parquet::ParquetError>(())
    /// ```
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        SplitBlockFilterRef { kernel, ..self }
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
