//! All errors of the crate except those of shapes: one variant per cause, each carrying the value
//! at fault and the limit.

use core::fmt::{self, Display, Formatter};

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{AllocError, KeyHash};

use crate::shape::{Shape, ShapeError};

/// Rows in a group are a multiple of 512, so that a plane of a group is whole cache lines.
pub(crate) const GROUP_ROWS_STEP: u32 = 512;

/// Most rows in a group: 2^24.
pub const MAX_GROUP_ROWS: u32 = 1 << 24;

/// Why planes cannot be made, appended to, opened or queried as requested.
///
/// ```
/// use blocked_bloom_planes::{PlanesError, PlanesOptions, Shape};
/// let error = PlanesOptions::new(Shape::new(1, 128, 2)?).with_group_rows(100).unwrap_err();
/// assert_eq!(error, PlanesError::GroupRowsOutOfRange { group_rows: 100 });
/// assert_eq!(error.to_string(), "groups of 100 rows: give a multiple of 512 up to 16777216");
/// # Ok::<(), PlanesError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlanesError {
    /// There is no such shape.
    Shape(ShapeError),
    /// Not a multiple of 512 from 512 to [`MAX_GROUP_ROWS`].
    GroupRowsOutOfRange {
        /// The value given.
        group_rows: u32,
    },
    /// A filter, or rows of other planes, of another shape than the rows have.
    RowShape {
        /// Shape of the filter or the other planes.
        found: Shape,
        /// Shape of the rows.
        expected: Shape,
    },
    /// A filter or rows to be appended have another hash, seed or tag than the planes.
    HashMismatch {
        /// Hash of the filter or the rows.
        found: KeyHash,
        /// Hash of the planes.
        expected: KeyHash,
    },
    /// The state of a text for planes whose rows are not lines of a text.
    NoText,
    /// No memory for the rows of a group, or for the bytes of one.
    Alloc(AllocError),
    /// A field of a record, or the length of the whole, is not what it must be.
    Header(HeaderError),
    /// Planes that were not finished, or of which the end is missing. Up to the last whole group
    /// they can be read by [`PlanesLayout::last_record`](crate::PlanesLayout::last_record).
    Incomplete {
        /// Rows up to the last record.
        rows: u64,
    },
    /// The first record, or that at the end of a group, is damaged, or not the one that belongs
    /// there.
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
    /// [`PlanesError::Alloc`] for this many bytes.
    pub(crate) fn alloc(bytes: usize) -> Self {
        PlanesError::Alloc(AllocError::new(bytes as u64))
    }
}

impl Display for PlanesError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Shape(error) => error.fmt(f),
            Self::NoText => f.write_str(
                "the rows are not lines of a text: give the options the text, or finish without \
                 its state",
            ),
            Self::Alloc(error) => error.fmt(f),
            Self::Header(error) => error.fmt(f),
            Self::GroupRowsOutOfRange { group_rows: rows } => write!(
                f,
                "groups of {rows} rows: give a multiple of {GROUP_ROWS_STEP} up to {MAX_GROUP_ROWS}"
            ),
            Self::RowShape { found, expected } => {
                write!(f, "a row of {found}, expected {expected}")
            }
            Self::HashMismatch { found, expected } => {
                write!(f, "keys hashed by {found}, expected {expected}")
            }
            Self::Incomplete { rows } => {
                write!(f, "the planes were not finished: there are {rows} rows so far")
            }
            Self::OtherRecord { offset } => write!(
                f,
                "offset {offset}: a damaged record, or one of another place or other planes"
            ),
            Self::PlaneChecksum { group, plane, stored, computed } => write!(
                f,
                "group {group}, plane {plane}: checksum {stored:016x}, expected {computed:016x}: \
                 damaged, or another plane"
            ),
            Self::PlaneLength { found, expected } => {
                write!(f, "{found} bytes were loaded for a plane, expected {expected}")
            }
            Self::PlaneCount { found, expected } => {
                write!(f, "{found} planes were loaded, expected {expected}")
            }
            Self::PlaneNotLoaded { plane } => {
                write!(f, "plane {plane} was not loaded: locate planes by the same query")
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

blocked_bloom::impl_error!(PlanesError, Shape(ShapeError), Alloc(AllocError), Header(HeaderError));
