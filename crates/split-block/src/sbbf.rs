//! The filter with the names of `parquet::bloom_filter`, of the Rust crate `parquet`: code that
//! uses its `Sbbf` only changes the import.
//!
//! Values, sizes, folding, estimates and bytes are those of that crate. Where its functions panic
//! or abort, these return errors. Sizes are computed with the crate `libm` instead of `std`, which
//! may round the last digit differently. This changes a filter only if the number of bits is within
//! rounding of a power of two of bytes. For batches, an [`Sbbf`] dereferences to a
//! [`SplitBlockFilter`].
//!
//! ```
//! use blocked_bloom_split::sbbf::Sbbf;
//! let mut filter = Sbbf::new_with_ndv_fpp(1_000_000, 0.01)?;
//! filter.insert(&4711_i64);
//! filter.insert("apple");
//! filter.fold_to_target_fpp(0.01);
//! assert!(filter.check(&4711_i64) && filter.check("apple") && !filter.check("banana"));
//! assert_eq!(filter.num_blocks(), 1);
//! # Ok::<(), blocked_bloom_split::SplitBlockError>(())
//! ```

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

use blocked_bloom::{AllocError, Filter};

use crate::error::SplitBlockError;
use crate::filter::{SplitBlockFilter, bits_for};
use crate::fold::eighth_power;
use crate::hash::hash_value;
use crate::header;
use crate::split_block::SPLIT_BLOCK_BYTES;

/// A split-block filter with the method names of the crate `parquet`.
///
/// ```
/// use blocked_bloom_split::sbbf::Sbbf;
/// let filter = Sbbf::new_with_num_of_bytes(1_000)?;
/// assert_eq!((filter.num_blocks(), filter.estimated_fpp()), (32, 0.0));
/// # Ok::<(), blocked_bloom_split::SplitBlockError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sbbf(SplitBlockFilter);

impl Sbbf {
    /// Creates a filter like [`SplitBlockFilter::new`]. A rate of 0, or one too small for the
    /// formula, creates a filter of 32 bytes, as in `parquet`.
    ///
    /// # Errors
    ///
    /// [`SplitBlockError::RateOutOfRange`] unless `0 <= fpp < 1`, and [`SplitBlockError::Alloc`].
    pub fn new_with_ndv_fpp(ndv: u64, fpp: f64) -> Result<Self, SplitBlockError> {
        if !(0.0..1.0).contains(&fpp) {
            return Err(SplitBlockError::RateOutOfRange { rate: fpp });
        }
        Ok(Sbbf(SplitBlockFilter::with_bytes(bits_for(ndv, fpp) as u64 / 8)?))
    }

    /// Creates a filter like [`SplitBlockFilter::with_bytes`].
    ///
    /// # Errors
    ///
    /// [`AllocError`] if the allocation fails.
    pub fn new_with_num_of_bytes(num_bytes: usize) -> Result<Self, AllocError> {
        SplitBlockFilter::with_bytes(num_bytes as u64).map(Sbbf)
    }

    /// Copies a bitset. Trailing bytes that do not fill a block are ignored.
    /// [`SplitBlockFilter::from_bitset`] borrows the bitset and requires whole blocks.
    ///
    /// # Errors
    ///
    /// [`SplitBlockError::BitsetLength`] if there is no whole block (`parquet` panics at the first
    /// lookup) or 2 GiB or more, which no header can express, and [`SplitBlockError::Alloc`].
    pub fn new(bitset: &[u8]) -> Result<Self, SplitBlockError> {
        let (blocks, _) = bitset.as_chunks::<SPLIT_BLOCK_BYTES>();
        Ok(Sbbf(SplitBlockFilter::from_bitset(blocks.as_flattened())?.to_filter()?))
    }

    /// Copies a header and a bitset. Trailing bytes that do not fill a block are ignored.
    /// [`SplitBlockFilter::from_bytes`] uses the bytes in place and requires whole blocks.
    ///
    /// # Errors
    ///
    /// The errors of [`SplitBlockFilter::from_bytes`], except for ignored bytes, and
    /// [`SplitBlockError::Alloc`]. A header field of another type than Parquet's is an error, which
    /// `parquet` does not check.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SplitBlockError> {
        let (header_bytes, bitset_bytes) = header::read(bytes, 0)?;
        let length = u64::try_from(bitset_bytes)
            .map_err(|_| SplitBlockError::BitsetLength { found: bitset_bytes.into() })?;
        let (found, expected) = (bytes.len() as u64, header_bytes as u64 + length);
        if found != expected {
            return Err(SplitBlockError::Length { found, expected });
        }
        Self::new(&bytes[header_bytes..])
    }

    /// Inserts a value.
    #[inline]
    pub fn insert<T: AsPlain + ?Sized>(&mut self, value: &T) {
        self.0.insert_hash(value.hash_plain());
    }

    /// Returns whether a value may be present; false means certainly absent.
    #[inline]
    pub fn check<T: AsPlain + ?Sized>(&self, value: &T) -> bool {
        self.check_hash(value.hash_plain())
    }

    /// Returns whether the value with this hash may be present. The corresponding functions of
    /// `parquet` are private.
    #[inline]
    pub fn check_hash(&self, hash: u64) -> bool {
        self.0.contains_hash(hash)
    }

    /// Folds the filter like [`SplitBlockFilter::shrink_to_false_positive_rate`]. With NaN, the
    /// filter becomes one block, as in `parquet`. If the number of blocks is not a power of two,
    /// `parquet` panics; this function folds while the number is even.
    pub fn fold_to_target_fpp(&mut self, target_fpp: f64) {
        let rate = if target_fpp.is_nan() { f64::INFINITY } else { target_fpp };
        self.0.shrink_to_false_positive_rate(rate);
    }

    /// Returns the eighth power of the [fill](SplitBlockFilter::fill_ratio), the estimate that
    /// folding uses. The actual rate is
    /// [higher](SplitBlockFilter::estimated_false_positive_rate).
    pub fn estimated_fpp(&self) -> f64 {
        eighth_power(self.0.fill_ratio())
    }

    /// Returns the number of blocks of 32 bytes.
    pub fn num_blocks(&self) -> usize {
        self.0.blocks().len()
    }

    /// Writes header and bitset, like [`SplitBlockFilter::write_to`].
    ///
    /// # Errors
    ///
    /// The writer's errors.
    #[cfg(feature = "std")]
    pub fn write<W: std::io::Write>(&self, writer: W) -> std::io::Result<()> {
        self.0.write_to(writer).map(|_| ())
    }

    /// Writes the bitset.
    ///
    /// # Errors
    ///
    /// The writer's errors.
    #[cfg(feature = "std")]
    pub fn write_bitset<W: std::io::Write>(&self, mut writer: W) -> std::io::Result<()> {
        writer.write_all(self.0.blocks().as_flattened())
    }
}

impl Deref for Sbbf {
    type Target = SplitBlockFilter;

    #[inline]
    fn deref(&self) -> &SplitBlockFilter {
        &self.0
    }
}

impl DerefMut for Sbbf {
    #[inline]
    fn deref_mut(&mut self) -> &mut SplitBlockFilter {
        &mut self.0
    }
}

impl From<SplitBlockFilter> for Sbbf {
    fn from(filter: SplitBlockFilter) -> Self {
        Sbbf(filter)
    }
}

/// A value that is hashed by its plain-encoded bytes, the result of `AsBytes` in `parquet`. For
/// values that only have `AsBytes`, such as `ByteArray`, `Int96` and `Decimal`, pass the bytes:
/// `filter.check(value.as_bytes())`.
///
/// Numbers are hashed in their Rust width. Parquet stores integers below 32 bits as `INT32`, so
/// widen them first.
///
/// ```
/// use blocked_bloom_split::{hash_value, sbbf::AsPlain};
/// assert_eq!(5_i64.hash_plain(), hash_value(5_i64.to_le_bytes()));
/// assert_eq!("apple".hash_plain(), hash_value("apple"));
/// ```
pub trait AsPlain {
    /// Returns [`hash_value`] of the plain-encoded bytes.
    fn hash_plain(&self) -> u64;
}

macro_rules! plain {
    ($value:ident => $plain:expr; $($type:ty)*) => {$(
        impl AsPlain for $type {
            #[inline]
            fn hash_plain(&self) -> u64 {
                let $value = self;
                hash_value($plain)
            }
        }
    )*};
}

plain! { number => number.to_le_bytes(); i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 }
plain! { bytes => bytes; [u8] Vec<u8> str &str String }
plain! { value => [u8::from(*value)]; bool }

impl<const N: usize> AsPlain for [u8; N] {
    #[inline]
    fn hash_plain(&self) -> u64 {
        hash_value(self)
    }
}
