//! The error of Parquet's filters: one variant per cause, with what was found and what was
//! expected.

use core::fmt::{self, Display, Formatter};

use blocked_bloom::AllocError;

use super::value::PhysicalType;

/// Most bytes of a filter's bitset, 128 MiB: the limit of Arrow, of arrow-rs and of this package.
pub const MAX_BITSET_BYTES: u32 = 128 << 20;

/// Why a filter, or the file it is in, cannot be read, made or merged. Offsets count from the start
/// of what was given: the filter's bytes or the file.
///
/// A filter that cannot be read says nothing about any value: the row group must be read.
///
/// ```
/// use blocked_bloom_formats::parquet::{ParquetError, SplitBlockFilter};
/// let error = SplitBlockFilter::from_bitset(&[0; 33]).unwrap_err();
/// assert_eq!(error, ParquetError::BitsetLength { found: 33 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParquetError {
    /// The bytes end within the header or the footer.
    Truncated {
        /// Where they end.
        offset: u64,
    },
    /// The bytes are not compact Thrift.
    Thrift {
        /// Where.
        offset: u64,
        /// What is wrong with them.
        problem: &'static str,
    },
    /// A field has another type than Parquet gives it.
    FieldType {
        /// Where it is.
        offset: u64,
        /// Its name in `parquet.thrift`.
        field: &'static str,
        /// Its type's number in compact Thrift.
        found: u8,
        /// What it should be.
        expected: u8,
    },
    /// A field that Parquet requires is missing.
    MissingField {
        /// Where its structure ends.
        offset: u64,
        /// Its name in `parquet.thrift`.
        field: &'static str,
    },
    /// Another algorithm, hash or compression than the one that exists: split blocks, XXH64, none.
    Unsupported {
        /// Where it is named.
        offset: u64,
        /// `algorithm`, `hash` or `compression`.
        field: &'static str,
        /// Its number; the supported one is 1.
        found: i16,
    },
    /// The bitset's length is not a positive multiple of 32 up to [`MAX_BITSET_BYTES`].
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
    /// The filter is not within the file.
    OutsideFile {
        /// The filter's offset.
        offset: i64,
        /// The filter's length, 1 if only its start is known.
        length: u64,
        /// Where the footer begins, or the file ends.
        end: u64,
    },
    /// Two column chunks claim the same bytes as their filters: the offset or length of one is
    /// damaged, and nothing says whose.
    Overlapping {
        /// The filter's offset.
        offset: i64,
        /// The other filter's offset.
        other: i64,
    },
    /// No Parquet file: it neither begins nor ends with one of the magic numbers.
    NotParquet {
        /// Where the magic number should be.
        offset: u64,
        /// What is there.
        found: [u8; 4],
    },
    /// The footer does not fit the file.
    FooterLength {
        /// The footer's length as the file gives it.
        found: u32,
        /// The longest that fits.
        limit: u64,
    },
    /// The file's footer is encrypted.
    EncryptedFooter,
    /// The column is encrypted, and with it its filter.
    EncryptedColumn {
        /// The row group's index.
        row_group: usize,
        /// The column's index.
        column: usize,
    },
    /// The column, and with it its filter, is in another file.
    OtherFile {
        /// The row group's index.
        row_group: usize,
        /// The column's index.
        column: usize,
    },
    /// A column of booleans is said to have a filter, which Parquet does not define: there is no
    /// value to look up.
    BooleanColumn {
        /// The row group's index.
        row_group: usize,
        /// The column's index.
        column: usize,
    },
    /// The file has no such row group, or the row group no such column.
    NoSuchColumn {
        /// The row group's index.
        row_group: usize,
        /// The column's index.
        column: usize,
    },
    /// A value of another type than the column's: its hash would be "absent" whatever the column
    /// holds.
    ValueType {
        /// The value's type.
        found: PhysicalType,
        /// The column's.
        expected: PhysicalType,
    },
    /// A value of another length than the column's fixed one: its hash would be "absent" whatever
    /// the column holds.
    ValueLength {
        /// The value's bytes.
        found: u64,
        /// The column's.
        expected: u32,
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
    /// The filter that is to be added has fewer blocks than the one that it is added to.
    TooFewBlocks {
        /// The other's blocks.
        found: u32,
        /// The filter's.
        expected: u32,
    },
    /// More hashes than a row number of 32 bits can count.
    TooManyRows {
        /// The hashes.
        rows: u64,
    },
    /// Bytes of the file are needed that were not loaded: load them, and open the file again.
    NotLoaded {
        /// Where they begin.
        offset: u64,
        /// How many they are.
        length: u64,
    },
    /// Memory ran out.
    Alloc(AllocError),
}

impl Display for ParquetError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { offset } => {
                write!(f, "truncated: ends at byte {offset}, within its metadata")
            }
            Self::Thrift { offset, problem } => {
                write!(f, "damaged metadata at byte {offset}: {problem}")
            }
            Self::FieldType { offset, field, found, expected } => {
                write!(
                    f,
                    "field {field} at byte {offset} has Thrift type {found}, expected {expected}"
                )
            }
            Self::MissingField { offset, field } => {
                write!(f, "no field {field} before byte {offset}")
            }
            Self::Unsupported { offset, field, found } => {
                write!(f, "{field} {found} at byte {offset}: only 1 is known; read the row group")
            }
            Self::BitsetLength { found } => {
                write!(
                    f,
                    "a bitset of {found} bytes: give a multiple of 32, up to {MAX_BITSET_BYTES}"
                )
            }
            Self::Length { found, expected } if found < expected => {
                write!(f, "{found} bytes, expected {expected}: truncated")
            }
            Self::Length { found, expected } => {
                write!(f, "{found} bytes, expected {expected}: followed by other bytes")
            }
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
            Self::NoSuchColumn { row_group, column } => {
                write!(f, "no column {column} in row group {row_group}")
            }
            Self::ValueType { found, expected } => {
                write!(f, "a value of type {found} for a column of {expected}: convert it")
            }
            Self::ValueLength { found, expected } => {
                write!(f, "a value of {found} bytes for a column whose values have {expected}")
            }
            Self::RateOutOfRange { rate } => {
                write!(f, "false-positive rate {rate}: give one between 0 and 1, both excluded")
            }
            Self::NotAPowerOfTwo { blocks } => {
                write!(f, "{blocks} blocks: give a power of two, since some readers open no others")
            }
            Self::TooFewBlocks { found, expected } => {
                write!(f, "{found} blocks to be added to {expected}: fold the larger filter first")
            }
            Self::TooManyRows { rows } => {
                write!(f, "{rows} rows, at most {} allowed: select part by part", 1_u64 << 32)
            }
            Self::NotLoaded { offset, length } => {
                write!(f, "{length} bytes from offset {offset} are needed and were not loaded")
            }
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ParquetError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Alloc(error) => Some(error),
            _ => None,
        }
    }
}

impl From<AllocError> for ParquetError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use core::error::Error;

    use super::{AllocError, ParquetError};

    #[test]
    fn a_lack_of_memory_is_the_source() {
        let error = ParquetError::from(AllocError::new(640));
        assert_eq!(error.to_string(), "no memory for 640 bytes");
        assert_eq!(error.source().unwrap().to_string(), "no memory for 640 bytes");
    }

    #[test]
    fn a_wrong_length_says_which_way() {
        for (found, expected, text) in [
            (1, 2, "1 bytes, expected 2: truncated"),
            (2, 1, "2 bytes, expected 1: followed by other bytes"),
        ] {
            assert_eq!(ParquetError::Length { found, expected }.to_string(), text);
        }
    }
}
