//! The errors of the crate: one variant per cause, each carrying the value at fault and the limit.

use core::fmt::{self, Display, Formatter};

use blocked_bloom::header::HeaderError;
use blocked_bloom::probe::{MAX_BITS_PER_KEY, MAX_PROBES};
use blocked_bloom::{AllocError, KeyError, KeyHash};

use crate::options::{GROUP_ROWS_STEP, MAX_GROUP_ROWS};
use crate::shape::{MAX_BLOCK_BITS, MAX_PLANES, MIN_BLOCK_BITS, Shape};

/// Why planes cannot be sized, appended to, opened or queried as requested.
///
/// ```
/// use blocked_bloom_planes::{PlanesError, Shape};
/// let error = Shape::new(1, 8, 2).unwrap_err();
/// assert_eq!(error, PlanesError::BlockBitsOutOfRange { block_bits: 8 });
/// assert_eq!(error.to_string(), "blocks of 8 bits: give 16 to 512");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlanesError {
    /// Not 16 to 512 bits in a block.
    BlockBitsOutOfRange {
        /// The value given.
        block_bits: u32,
    },
    /// Not 1 to 30 probes.
    ProbesOutOfRange {
        /// The value given.
        probes: u32,
    },
    /// No plane, or more than [`MAX_PLANES`].
    PlanesOutOfRange {
        /// Blocks times bits in a block.
        planes: u64,
    },
    /// Not above 0 and up to 100 bits an item.
    BitsPerItemOutOfRange {
        /// The value given.
        bits_per_item: f64,
    },
    /// Not above 0 and below 1.
    RateOutOfRange {
        /// The value given.
        rate: f64,
    },
    /// No shape has so low a rate for rows of so many items.
    RateUnreachable {
        /// The value given.
        rate: f64,
        /// The lowest rate that there is.
        lowest: f64,
    },
    /// Not a multiple of 512 from 512 to [`MAX_GROUP_ROWS`].
    GroupRowsOutOfRange {
        /// The value given.
        group_rows: u32,
    },
    /// A filter of another shape than the rows have.
    FilterShape {
        /// Shape of the filter.
        found: Shape,
        /// Shape of the rows.
        expected: Shape,
    },
    /// A filter of another hash than the rows have.
    FilterHash {
        /// Hash of the filter.
        found: KeyHash,
        /// Hash of the rows.
        expected: KeyHash,
    },
    /// No memory for the rows of a group, or for the bytes of one.
    Alloc(AllocError),
    /// The caller hashes, so that the crate cannot.
    Key(KeyError),
    /// What a record has in its fields, or the length of the whole.
    Header(HeaderError),
    /// Planes that were not finished, or of which the end is missing. Up to the last whole group they can be read by
    /// [`PlanesLayout::last_record`](crate::PlanesLayout::last_record).
    Incomplete {
        /// Rows up to the last record.
        rows: u64,
    },
    /// The first record, or that at the end of a group, is damaged, or not the one that belongs there.
    OtherRecord {
        /// Offset of the record.
        offset: u64,
    },
    /// A plane is damaged, or is another one.
    PlaneChecksum {
        /// Group of the plane.
        group: u64,
        /// Number of the plane; that of the liveness plane follows the last.
        plane: u32,
        /// Checksum behind the plane.
        stored: u64,
        /// Checksum of its bytes, at this place, in these planes.
        computed: u64,
    },
    /// Bytes that were loaded for a plane are more or fewer than were located.
    PlaneLength {
        /// Bytes given.
        found: u64,
        /// Bytes located.
        expected: u64,
    },
    /// More or fewer planes were loaded than were located.
    PlaneCount {
        /// Planes given.
        found: usize,
        /// Planes located.
        expected: usize,
    },
    /// A query needs a plane that was not among those located and loaded.
    PlaneNotLoaded {
        /// Number of the plane.
        plane: u32,
    },
    /// A group past the last.
    GroupOutOfRange {
        /// The group given.
        group: u64,
        /// Groups that there are.
        groups: u64,
    },
    /// A range of rows that ends past the last, or before it begins.
    RangeOutOfRange {
        /// First row of the range.
        start: u64,
        /// First row past the range.
        end: u64,
        /// Rows that there are.
        rows: u64,
    },
    /// A row past the last.
    RowOutOfRange {
        /// The row given.
        row: u64,
        /// Rows that there are.
        rows: u64,
    },
    /// Rows can only be deleted if the planes were made with a liveness plane.
    NoLiveness,
}

impl PlanesError {
    /// [`PlanesError::Alloc`] for so many bytes.
    pub(crate) fn alloc(bytes: usize) -> Self {
        PlanesError::Alloc(AllocError::new(bytes as u64))
    }
}

impl Display for PlanesError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BlockBitsOutOfRange { block_bits } => {
                write!(f, "blocks of {block_bits} bits: give {MIN_BLOCK_BITS} to {MAX_BLOCK_BITS}")
            }
            Self::ProbesOutOfRange { probes } => {
                write!(f, "{probes} probes: give 1 to {MAX_PROBES}")
            }
            Self::PlanesOutOfRange { planes } => {
                write!(f, "{planes} planes, that is bits a row: 1 to {MAX_PLANES} are possible")
            }
            Self::BitsPerItemOutOfRange { bits_per_item } => {
                write!(
                    f,
                    "{bits_per_item} bits per item: give a number above 0 and up to {MAX_BITS_PER_KEY}"
                )
            }
            Self::RateOutOfRange { rate } => {
                write!(f, "false-positive rate {rate}: give a number above 0 and below 1")
            }
            Self::RateUnreachable { rate, lowest } => {
                write!(
                    f,
                    "false-positive rate {rate:e} is out of reach: the lowest is {lowest:.3e}"
                )
            }
            Self::GroupRowsOutOfRange { group_rows } => {
                write!(
                    f,
                    "groups of {group_rows} rows: give a multiple of {GROUP_ROWS_STEP} up to {MAX_GROUP_ROWS}"
                )
            }
            Self::FilterShape { found, expected } => {
                write!(f, "a filter of {found}, expected {expected}")
            }
            Self::FilterHash { found, expected } => {
                write!(f, "a filter of {found}, expected {expected}")
            }
            Self::Alloc(error) => error.fmt(f),
            Self::Key(error) => error.fmt(f),
            Self::Header(error) => error.fmt(f),
            Self::Incomplete { rows } => {
                write!(f, "the planes were not finished: there are {rows} rows so far")
            }
            Self::OtherRecord { offset } => {
                write!(
                    f,
                    "offset {offset}: a damaged record, or one of another place or other planes"
                )
            }
            Self::PlaneChecksum { group, plane, stored, computed } => {
                write!(
                    f,
                    "group {group}, plane {plane}: checksum {stored:016x}, expected {computed:016x}: damaged, or another plane"
                )
            }
            Self::PlaneLength { found, expected } => {
                write!(f, "{found} bytes were loaded for a plane, expected {expected}")
            }
            Self::PlaneCount { found, expected } => {
                write!(f, "{found} planes were loaded, expected {expected}")
            }
            Self::PlaneNotLoaded { plane } => {
                write!(f, "plane {plane} was not loaded: locate the query that is looked up")
            }
            Self::GroupOutOfRange { group, groups } => {
                write!(f, "group {group}, but there are {groups}")
            }
            Self::RangeOutOfRange { start, end, rows } => {
                write!(f, "rows {start} to {end}, but there are {rows}")
            }
            Self::RowOutOfRange { row, rows } => write!(f, "row {row}, but there are {rows}"),
            Self::NoLiveness => {
                write!(f, "rows cannot be deleted: the planes have no liveness plane")
            }
        }
    }
}

impl core::error::Error for PlanesError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Alloc(error) => Some(error),
            Self::Key(error) => Some(error),
            Self::Header(error) => Some(error),
            _ => None,
        }
    }
}

impl From<AllocError> for PlanesError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

impl From<KeyError> for PlanesError {
    fn from(error: KeyError) -> Self {
        Self::Key(error)
    }
}

impl From<HeaderError> for PlanesError {
    fn from(error: HeaderError) -> Self {
        Self::Header(error)
    }
}
