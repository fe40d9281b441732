//! The error of split-block filters: one variant per cause, with what was found and what was
//! expected.

use core::fmt::{self, Display, Formatter};

use blocked_bloom::AllocError;

use crate::thrift::ThriftError;

/// Most bytes of the bitset of a filter that is sized by its values, 128 MiB: as Arrow and arrow-rs
/// make them; Arrow opens no larger ones.
pub const MAX_BITSET_BYTES: u32 = 128 << 20;

/// Most bytes of a bitset: what a header can say.
pub(crate) const MAX_STORED_BYTES: u32 = i32::MAX as u32 / 32 * 32;

/// Why a filter cannot be read, made or merged. Offsets count from the start of what was given.
///
/// A filter that cannot be read says nothing about any value: whatever it stands for must be read.
///
/// ```
/// use blocked_bloom_split::{SplitBlockError, SplitBlockFilter};
/// let error = SplitBlockFilter::from_bitset(&[0; 33]).unwrap_err();
/// assert_eq!(error, SplitBlockError::BitsetLength { found: 33 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SplitBlockError {
    /// The header is not the Thrift that it should be.
    Thrift(ThriftError),
    /// Another algorithm, hash or compression than the one that exists: split blocks, XXH64, none.
    Unsupported {
        /// Where it is named.
        offset: u64,
        /// `algorithm`, `hash` or `compression`.
        field: &'static str,
        /// Its number; the supported one is 1.
        found: i16,
    },
    /// The bitset's length is not a positive multiple of 32 up to 2 GiB - 32, which is what a
    /// header can say.
    BitsetLength {
        /// The length given, or the header's.
        found: i64,
    },
    /// The filter's length is not that of its header and bitset.
    Length {
        /// The length given, or the file's metadata's.
        found: u64,
        /// The header's length and the bitset's.
        expected: u64,
    },
    /// A false-positive rate that is not between 0 and 1, both excluded.
    RateOutOfRange {
        /// The rate given.
        rate: f64,
    },
    /// The number of blocks is no power of two; some readers do not open such a filter.
    NotAPowerOfTwo {
        /// The blocks.
        blocks: u32,
    },
    /// The filter that is to be added has a number of blocks that is no multiple of the other's.
    NotAMultiple {
        /// The blocks of the one that is to be added.
        found: u32,
        /// The blocks of the one that it is added to.
        expected: u32,
    },
    /// More hashes than a row number of 32 bits can count.
    TooManyRows {
        /// The hashes.
        rows: u64,
    },
    /// Memory ran out.
    Alloc(AllocError),
}

impl Display for SplitBlockError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Thrift(error) => error.fmt(f),
            Self::Unsupported { offset, field, found } => {
                write!(f, "{field} {found} at byte {offset}: only 1 is known; read the row group")
            }
            Self::BitsetLength { found } => {
                write!(
                    f,
                    "a bitset of {found} bytes: give a multiple of 32, up to {MAX_STORED_BYTES}"
                )
            }
            Self::Length { found, expected } if found < expected => {
                write!(f, "{found} bytes, expected {expected}: truncated")
            }
            Self::Length { found, expected } => {
                write!(f, "{found} bytes, expected {expected}: followed by other bytes")
            }
            Self::RateOutOfRange { rate } => {
                write!(f, "false-positive rate {rate:?}: give one between 0 and 1, both excluded")
            }
            Self::NotAPowerOfTwo { blocks } => {
                write!(f, "{blocks} blocks: give a power of two, since some readers open no others")
            }
            Self::NotAMultiple { found, expected } => {
                write!(f, "{found} blocks to be added to {expected}, of which it is no multiple")
            }
            Self::TooManyRows { rows } => {
                write!(f, "{rows} rows, at most {} allowed: select part by part", 1_u64 << 32)
            }
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

blocked_bloom::impl_error!(SplitBlockError, Thrift(ThriftError), Alloc(AllocError));

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
