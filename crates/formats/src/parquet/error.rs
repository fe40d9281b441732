//! Errors of Parquet files. Each carries the value found and the expected value.

use core::fmt::{self, Display, Formatter};

use blocked_bloom::AllocError;
use blocked_bloom_split::SplitBlockError;
use blocked_bloom_split::thrift::ThriftError;

use super::value::PhysicalType;

/// Why a file, or a filter in it, could not be read. Offsets count from the start of the input.
///
/// A filter that cannot be read says nothing about any value: read the row group.
///
/// ```
/// use blocked_bloom_formats::parquet::{ParquetError, ParquetFile};
/// let error = ParquetFile::open(b"PAR1\x01\x00\x00\x00PAR1").unwrap_err();
/// assert_eq!(error, ParquetError::FooterLength { found: 1, limit: 0 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParquetError {
    /// The footer is not valid Thrift.
    Thrift(ThriftError),
    /// The filter cannot be read.
    Filter(SplitBlockError),
    /// The filter is not within the file.
    OutsideFile {
        /// The filter's offset.
        offset: i64,
        /// The filter's length; 1 if only its start is known.
        length: u64,
        /// Offset of the footer, or of the end of the file.
        end: u64,
    },
    /// The filters of two column chunks overlap: the offset or length of one is damaged, and it is
    /// unknown which.
    Overlapping {
        /// The filter's offset.
        offset: i64,
        /// The other filter's offset.
        other: i64,
    },
    /// The file is not a Parquet file: it neither begins nor ends with a magic number.
    NotParquet {
        /// Expected offset of the magic number.
        offset: u64,
        /// The bytes found there.
        found: [u8; 4],
    },
    /// The footer is longer than the file allows.
    FooterLength {
        /// Length of the footer according to the file.
        found: u32,
        /// The maximum.
        limit: u64,
    },
    /// The file's footer is encrypted.
    EncryptedFooter,
    /// The column is encrypted, including its filter.
    EncryptedColumn {
        /// The row group's index.
        row_group: usize,
        /// The column's index.
        column: usize,
    },
    /// The column is in another file, including its filter.
    OtherFile {
        /// The row group's index.
        row_group: usize,
        /// The column's index.
        column: usize,
    },
    /// The metadata contains a filter for a column of booleans, for which Parquet defines none.
    /// There is no value to look up.
    BooleanColumn {
        /// The row group's index.
        row_group: usize,
        /// The column's index.
        column: usize,
    },
    /// The filter has no bit set although the column chunk has values. Some writers stored such
    /// filters.
    NoBits {
        /// The row group's index.
        row_group: usize,
        /// The column's index.
        column: usize,
    },
    /// The row group, or its column, does not exist.
    NoSuchColumn {
        /// The row group's index.
        row_group: usize,
        /// The column's index.
        column: usize,
    },
    /// The type of the value differs from the column's. Its hash would be absent from every filter.
    ValueType {
        /// The value's type.
        found: PhysicalType,
        /// The column's type.
        expected: PhysicalType,
    },
    /// The length of the value differs from the column's fixed length. Its hash would be absent
    /// from every filter.
    ValueLength {
        /// Length of the value in bytes.
        found: u64,
        /// Length of the column's values in bytes.
        expected: u32,
    },
    /// Bytes of the file were not loaded: load them, and open the file again.
    NotLoaded {
        /// Offset of the bytes.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// An allocation failed.
    Alloc(AllocError),
}

impl Display for ParquetError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Thrift(error) => error.fmt(f),
            Self::Filter(error) => error.fmt(f),
            Self::OutsideFile { offset, length, end } => {
                write!(
                    f,
                    "{length} bytes at byte {offset} are not within the file, whose data end at \
                     byte {end}"
                )
            }
            Self::Overlapping { offset, other } => {
                write!(
                    f,
                    "the filters at bytes {offset} and {other} overlap: one of them is damaged, \
                     read the row group"
                )
            }
            Self::NotParquet { offset, found } => {
                write!(f, "no Parquet file: {found:02x?} at byte {offset}, expected PAR1")
            }
            Self::FooterLength { found, limit } => {
                write!(
                    f,
                    "a footer of {found} bytes, where {limit} fit: the file is damaged or truncated"
                )
            }
            Self::EncryptedFooter => {
                f.write_str("the footer is encrypted: filters cannot be found")
            }
            Self::EncryptedColumn { row_group, column } => {
                write!(
                    f,
                    "column {column} of row group {row_group} is encrypted: read the row group"
                )
            }
            Self::OtherFile { row_group, column } => {
                write!(f, "column {column} of row group {row_group} is in another file: open that")
            }
            Self::BooleanColumn { row_group, column } => {
                write!(
                    f,
                    "column {column} of row group {row_group} is BOOLEAN, which has no filters: \
                     read the row group"
                )
            }
            Self::NoBits { row_group, column } => {
                write!(
                    f,
                    "the filter of column {column} of row group {row_group} has no bit set, but \
                     there are values: read the row group"
                )
            }
            Self::NoSuchColumn { row_group, column } => {
                write!(f, "no column {column} in row group {row_group}")
            }
            Self::ValueType { found, expected } => {
                write!(f, "a value of type {found} for a column of {expected}: convert it")
            }
            Self::ValueLength { found, expected } => {
                write!(f, "a value of {found} bytes for a column whose values have {expected}")
            }
            Self::NotLoaded { offset, length } => {
                write!(f, "{length} bytes from offset {offset} are needed and were not loaded")
            }
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

blocked_bloom::impl_error!(
    ParquetError,
    Thrift(ThriftError),
    Filter(SplitBlockError),
    Alloc(AllocError)
);

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use core::error::Error;

    use super::{AllocError, ParquetError, SplitBlockError, ThriftError};

    #[test]
    fn errors_have_their_cause_as_source() {
        for error in [
            ParquetError::from(AllocError::new(640)),
            ParquetError::from(ThriftError::Truncated { offset: 7 }),
            ParquetError::from(SplitBlockError::BitsetLength { found: 33 }),
        ] {
            assert_eq!(error.source().unwrap().to_string(), error.to_string());
        }
        assert!(ParquetError::EncryptedFooter.source().is_none());
    }
}
