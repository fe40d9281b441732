//! All errors of the crate except those of shapes. Each carries the value and the limit.

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{AllocError, KeyHash};

use crate::shape::{Shape, ShapeError};

/// Rows in a group are a multiple of 512, so that each plane of a group fills whole cache lines.
pub(crate) const GROUP_ROWS_STEP: u32 = 512;

/// Maximum number of rows in a group: 2^24.
pub const MAX_GROUP_ROWS: u32 = 1 << 24;

/// Why planes could not be built, appended to, opened or queried.
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
    /// The shape is invalid.
    Shape(ShapeError),
    /// The rows in a group are not a multiple of 512 from 512 to [`MAX_GROUP_ROWS`].
    GroupRowsOutOfRange {
        /// The value given.
        group_rows: u32,
    },
    /// The shape of a filter, or of other planes, differs from that of the rows.
    RowShape {
        /// Shape of the filter or the other planes.
        found: Shape,
        /// Shape of the rows.
        expected: Shape,
    },
    /// The hash, seed or tag of a filter, or of other planes, differs from that of the planes.
    HashMismatch {
        /// Hash of the filter or the rows.
        found: KeyHash,
        /// Hash of the planes.
        expected: KeyHash,
    },
    /// The state of a text was given for planes whose rows are not lines of a text.
    NoText,
    /// Allocating the rows or the bytes of a group failed.
    Alloc(AllocError),
    /// A field of a record is invalid, or the total length is wrong.
    Header(HeaderError),
    /// The planes were not finished, or their end is missing. They can be read up to the last whole
    /// group: see [`PlanesLayout::last_record`](crate::PlanesLayout::last_record).
    Incomplete {
        /// Rows up to the last record.
        rows: u64,
    },
    /// The first record or the record after a group is damaged or belongs elsewhere.
    OtherRecord {
        /// Offset of the record.
        offset: u64,
    },
    /// A plane is damaged, or belongs to another place.
    PlaneChecksum {
        /// Group of the plane.
        group: u64,
        /// Number of the plane. The liveness plane has the highest number.
        plane: u32,
        /// Checksum stored after the plane.
        stored: u64,
        /// Checksum computed from its bytes and its place.
        computed: u64,
    },
    /// The bytes loaded for a plane have the wrong length.
    PlaneLength {
        /// Bytes given.
        found: u64,
        /// Bytes located.
        expected: u64,
    },
    /// The number of loaded planes differs from the number of located planes.
    PlaneCount {
        /// Planes given.
        found: usize,
        /// Planes located.
        expected: usize,
    },
    /// A query needs a plane that was not located and loaded.
    PlaneNotLoaded {
        /// Number of the plane.
        plane: u32,
    },
    /// The group does not exist.
    GroupOutOfRange {
        /// The group given.
        group: u64,
        /// Number of groups.
        groups: u64,
    },
    /// A range of rows ends after the last row, or before its start.
    RangeOutOfRange {
        /// First row of the range.
        start: u64,
        /// First row past the range.
        end: u64,
        /// Number of rows.
        rows: u64,
    },
    /// The row does not exist.
    RowOutOfRange {
        /// The row given.
        row: u64,
        /// Number of rows.
        rows: u64,
    },
    /// Rows cannot be deleted, because the planes have no liveness plane.
    NoLiveness,
}

impl PlanesError {
    /// Returns [`PlanesError::Alloc`] for this many bytes.
    pub(crate) fn alloc(bytes: usize) -> Self {
        PlanesError::Alloc(AllocError::new(bytes as u64))
    }
}

blocked_bloom::impl_error!(PlanesError, Shape(ShapeError), Alloc(AllocError), Header(HeaderError);
    Self::NoText => (
        "the rows are not lines of a text: give the options the text, or finish without its state"
    ),
    Self::GroupRowsOutOfRange { group_rows: rows } => (
        "groups of {rows} rows: give a multiple of {GROUP_ROWS_STEP} up to {MAX_GROUP_ROWS}"
    ),
    Self::RowShape { found, expected } => (
        "shape {found}, expected {expected}: append rows of the planes' shape"
    ),
    Self::HashMismatch { found, expected } => (
        "hash {found}, expected {expected}: append rows built with the planes' hash"
    ),
    Self::Incomplete { rows } => (
        "the planes end after {rows} rows without a closing record: not finished, or cut off"
    ),
    Self::OtherRecord { offset } => (
        "offset {offset}: the record is damaged, or belongs to another place or other planes"
    ),
    Self::PlaneChecksum { group, plane, stored, computed } => (
        "group {group}, plane {plane}: checksum {stored:016x}, expected {computed:016x}: the plane \
         is damaged, or belongs elsewhere"
    ),
    Self::PlaneLength { found, expected } => (
        "{found} bytes loaded for a plane, expected {expected}: load the located range"
    ),
    Self::PlaneCount { found, expected } => (
        "{found} planes loaded, expected {expected}: load every located plane"
    ),
    Self::PlaneNotLoaded { plane } => (
        "plane {plane} was not loaded: locate and load the planes of this query"
    ),
    Self::GroupOutOfRange { group, groups } => (
        "group {group} does not exist: groups are numbered from 0, and there are {groups}"
    ),
    Self::RangeOutOfRange { start, end, rows } => (
        "rows {start}..{end}: give a range within 0..{rows}"
    ),
    Self::RowOutOfRange { row, rows } => ("row {row}: give a row within 0..{rows}"),
    Self::NoLiveness => ("rows cannot be deleted: build the planes with `with_liveness`"),
);
