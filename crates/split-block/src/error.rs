//! Errors of split-block filters. Each carries the value found and the expected value.

use blocked_bloom::AllocError;

use crate::thrift::ThriftError;

/// Maximum size of the bitset of a filter that is sized by its values: 128 MiB, the limit of Arrow
/// and arrow-rs. Arrow does not open larger filters.
pub const MAX_BITSET_BYTES: u32 = 128 << 20;

/// Maximum size of a bitset that a header can express.
pub(crate) const MAX_STORED_BYTES: u32 = i32::MAX as u32 / 32 * 32;

/// Why a filter could not be read, built or merged. Offsets count from the start of the input.
///
/// A filter that cannot be read says nothing about any value: read the data.
///
/// ```
/// use blocked_bloom_split::{SplitBlockError, SplitBlockFilter};
/// let error = SplitBlockFilter::from_bitset(&[0; 33]).unwrap_err();
/// assert_eq!(error, SplitBlockError::BitsetLength { found: 33 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SplitBlockError {
    /// The header is not valid Thrift.
    Thrift(ThriftError),
    /// The algorithm, hash or compression is unknown. Supported are split blocks, XXH64 and
    /// uncompressed.
    Unsupported {
        /// Offset of the field.
        offset: u64,
        /// `algorithm`, `hash` or `compression`.
        field: &'static str,
        /// Its number. The supported one is 1.
        found: i16,
    },
    /// The bitset's length is not a positive multiple of 32 up to 2 GiB - 32, the limit of a
    /// header.
    BitsetLength {
        /// The length given, or read from the header.
        found: i64,
    },
    /// The filter's length differs from the length of its header and bitset.
    Length {
        /// The length given, or read from the file's metadata.
        found: u64,
        /// The length of header and bitset.
        expected: u64,
    },
    /// The false-positive rate is not between 0 and 1 (both excluded).
    RateOutOfRange {
        /// The rate given.
        rate: f64,
    },
    /// The number of blocks is not a power of two. Some readers do not open such filters.
    NotAPowerOfTwo {
        /// The number of blocks.
        blocks: u32,
    },
    /// The number of blocks of the filter to merge is not a multiple of the other's.
    NotAMultiple {
        /// Blocks of the filter to merge.
        found: u32,
        /// Blocks of the receiving filter.
        expected: u32,
    },
    /// There are more hashes than 32-bit row numbers.
    TooManyRows {
        /// Number of hashes.
        rows: u64,
    },
    /// An allocation failed.
    Alloc(AllocError),
}

blocked_bloom::impl_error!(SplitBlockError, Thrift(ThriftError), Alloc(AllocError);
    Self::Unsupported { offset, field, found } => (
        "{field} {found} at byte {offset}: only 1 is supported; read the row group"
    ),
    Self::BitsetLength { found } => (
        "a bitset of {found} bytes: give a multiple of 32, up to {MAX_STORED_BYTES}"
    ),
    Self::Length { found, expected } => (
        "{found} bytes, expected {expected}: {}",
        if found < expected { "truncated" } else { "followed by other bytes" }
    ),
    Self::RateOutOfRange { rate } => (
        "false-positive rate {rate:?}: give a number above 0 and below 1"
    ),
    Self::NotAPowerOfTwo { blocks } => (
        "{blocks} blocks: give a power of two, because some readers open no others"
    ),
    Self::NotAMultiple { found, expected } => (
        "cannot merge {found} blocks into {expected}: give a multiple of {expected} blocks"
    ),
    Self::TooManyRows { rows } => (
        "{rows} rows: give at most {}, and select the rest later", 1_u64 << 32
    ),
);

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use core::error::Error;

    use super::{AllocError, SplitBlockError};

    #[test]
    fn a_lack_of_memory_is_the_source() {
        let error = SplitBlockError::from(AllocError::new(640));
        assert_eq!(error.to_string(), "no memory for 640 bytes");
        assert_eq!(error.source().unwrap().to_string(), "no memory for 640 bytes");
    }

    #[test]
    fn a_wrong_length_says_which_way() {
        for (found, expected, text) in [
            (1, 2, "1 bytes, expected 2: truncated"),
            (2, 1, "2 bytes, expected 1: followed by other bytes"),
        ] {
            assert_eq!(SplitBlockError::Length { found, expected }.to_string(), text);
        }
    }
}
