//! All errors of the crate: one variant per cause, each carrying the value at fault and the limit.

use core::fmt::{self, Display, Formatter};

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{AllocError, KeyHash};
use blocked_bloom_planes::{PlanesError, ShapeError};

/// Most columns of an index.
pub const MAX_COLUMNS: usize = 256;

/// Most row groups of an index: 2^22.
pub const MAX_ROW_GROUPS: u64 = 1 << 22;

/// Fewest and most values of a part.
pub(crate) const PART_VALUES: (u32, u32) = (16, 16_384);

/// Why an index cannot be made, opened or looked up in as requested.
///
/// ```
/// use blocked_bloom_file_index::{FileIndex, FileIndexError};
/// let error = FileIndex::from_bytes(&b"PAR1"[..]).unwrap_err();
/// assert!(matches!(error, FileIndexError::Header(_)));
/// assert_eq!(error.to_string(), "offset 4: the bytes end, expected a header of 64 bytes");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FileIndexError {
    /// No columns, or more than [`MAX_COLUMNS`].
    Columns {
        /// The number given.
        columns: usize,
    },
    /// A column of the same name as one before it, or without a name.
    ColumnName {
        /// Number of the column.
        column: usize,
    },
    /// No shape reaches the given rate.
    Shape(ShapeError),
    /// Not 16 to 16,384 values of a part.
    PartValues {
        /// The value given.
        values: u32,
    },
    /// Not as many types as columns.
    TypeCount {
        /// Types given.
        found: usize,
        /// Columns of the index.
        expected: usize,
    },
    /// A column past the last.
    ColumnOutOfRange {
        /// The column given.
        column: usize,
        /// Columns of the index.
        columns: usize,
    },
    /// Values of a column after [`end_column`](crate::FileBuilder::end_column), in the same row
    /// group.
    ColumnEnded {
        /// Number of the column.
        column: usize,
    },
    /// A file without a name.
    FileName,
    /// More of something than an index can have.
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there can be.
        most: u64,
    },
    /// A file has a different number of row groups than announced, or values after the last. It is
    /// not in the index.
    RowGroups {
        /// Row groups that were ended, plus one for values after the last.
        found: u32,
        /// Number of row groups announced.
        expected: u32,
    },
    /// Values with another hash than the column.
    HashMismatch {
        /// The hash of the column.
        found: KeyHash,
        /// The one required.
        expected: KeyHash,
    },
    /// A field of a record, or the length of the index, is wrong.
    Header(HeaderError),
    /// The last bytes that were given do not include all of the manifest.
    Tail {
        /// How many were given.
        found: u64,
        /// How many are needed.
        expected: u64,
    },
    /// The manifest is not valid.
    Manifest {
        /// Offset from the beginning of the manifest.
        offset: u64,
        /// The problem at this offset.
        problem: &'static str,
    },
    /// Planes that are damaged, or of another index.
    Planes(PlanesError),
    /// More or fewer pieces were loaded than ranges were located.
    RangeCount {
        /// Pieces given.
        found: usize,
        /// Ranges located.
        expected: usize,
    },
    /// A lookup, ranges or candidates of another index.
    OtherIndex,
    /// No memory.
    Alloc(AllocError),
}

impl FileIndexError {
    /// [`FileIndexError::Alloc`] for this many bytes.
    pub(crate) fn alloc(bytes: usize) -> Self {
        FileIndexError::Alloc(AllocError::new(bytes as u64))
    }
}

impl Display for FileIndexError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Shape(error) => error.fmt(f),
            Self::Header(error) => error.fmt(f),
            Self::Planes(error) => error.fmt(f),
            Self::Alloc(error) => error.fmt(f),
            Self::Columns { columns } => write!(f, "{columns} columns: give 1 to {MAX_COLUMNS}"),
            Self::ColumnName { column } => {
                write!(f, "column {column} has no name, or that of a column before it")
            }
            Self::PartValues { values } => {
                let (fewest, most) = PART_VALUES;
                write!(f, "parts of {values} values: give {fewest} to {most}")
            }
            Self::TypeCount { found, expected } => {
                write!(f, "types of {found} columns, expected {expected}")
            }
            Self::ColumnOutOfRange { column, columns } => {
                write!(f, "column {column}, but there are {columns}")
            }
            Self::ColumnEnded { column } => {
                write!(f, "column {column}: the row group has ended in this column")
            }
            Self::FileName => write!(f, "a file without a name"),
            Self::TooMany { what, most } => {
                write!(f, "too many {what}: an index has {most} at most")
            }
            Self::RowGroups { found, expected } => {
                write!(f, "a file with {found} row groups, expected {expected}")
            }
            Self::HashMismatch { found, expected } => {
                write!(f, "values hashed by {found}, expected {expected}")
            }
            Self::Tail { found, expected } => {
                write!(f, "the last {found} bytes were given, but {expected} are needed")
            }
            Self::Manifest { offset, problem } => {
                write!(f, "offset {offset} of the manifest: {problem}")
            }
            Self::RangeCount { found, expected } => {
                write!(f, "{found} pieces were loaded, but {expected} ranges were located")
            }
            Self::OtherIndex => write!(f, "a lookup, ranges or candidates of another index"),
        }
    }
}

blocked_bloom::impl_error!(FileIndexError, Shape(ShapeError), Header(HeaderError), Planes, Alloc);

impl From<PlanesError> for FileIndexError {
    fn from(error: PlanesError) -> Self {
        match error {
            PlanesError::Alloc(error) => Self::Alloc(error),
            error => Self::Planes(error),
        }
    }
}
