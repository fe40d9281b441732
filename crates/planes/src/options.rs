//! What planes are to be: shape, rows in a group, hash, liveness plane, last group, tag, text.

use blocked_bloom::{FilterOptions, KeyError, KeyHash, KeyHasher};

use crate::error::{GROUP_ROWS_STEP, MAX_GROUP_ROWS, PlanesError};
use crate::shape::Shape;
use crate::text::TextRows;

/// Rows in a group by default, unless long rows make it fewer: [`DEFAULT_GROUP_BITS`].
const DEFAULT_GROUP_ROWS: u32 = 1 << 20;

/// Most bits of a group by default: 32 MiB, which a builder holds twice.
const DEFAULT_GROUP_BITS: u32 = 1 << 28;

/// What planes are to be. Makes builders.
///
/// ```
/// use blocked_bloom::{FilterOptions, KeyHash};
/// use blocked_bloom_planes::{PlanesOptions, Shape};
/// // The hash of everything in a store is decided in one place.
/// let store = FilterOptions::default().with_key_hash(KeyHash::Xxh3 { seed: 42 });
/// let options = PlanesOptions::for_filters(&store, Shape::for_rate(200, 0.01)?);
/// let mut builder = options.with_group_rows(4096)?.builder()?;
/// assert_eq!(builder.options().key_hash(), store.key_hash());
/// # Ok::<(), blocked_bloom_planes::PlanesError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PlanesOptions {
    pub(crate) shape: Shape,
    pub(crate) group_rows: u32,
    pub(crate) key_hash: KeyHash,
    pub(crate) liveness: bool,
    pub(crate) short_last_group: bool,
    pub(crate) tag: u64,
    pub(crate) text: Option<TextRows>,
    /// Not stored, and no part of equality.
    pub(crate) huge_pages: bool,
}

impl PlanesOptions {
    /// Rows of this shape, hashed by XXH3-64 with seed 0, in groups of 2^20 rows, or of as many as
    /// fill 32 MiB if those are fewer; with tag 0, without a liveness plane or a text. Large planes
    /// in memory are advised to be on huge pages.
    pub fn new(shape: Shape) -> Self {
        let rows = (DEFAULT_GROUP_BITS / shape.planes()).min(DEFAULT_GROUP_ROWS);
        let group_rows = (rows - rows % GROUP_ROWS_STEP).max(GROUP_ROWS_STEP);
        let key_hash = KeyHash::default();
        PlanesOptions {
            shape,
            group_rows,
            key_hash,
            liveness: false,
            short_last_group: false,
            tag: 0,
            text: None,
            huge_pages: true,
        }
    }

    /// [`new`](Self::new) with the hash, seed and huge-page setting of an engine's filters, so that
    /// they are decided once.
    pub fn for_filters(filters: &FilterOptions, shape: Shape) -> Self {
        let (key_hash, huge_pages) = (filters.key_hash(), filters.huge_pages());
        PlanesOptions { key_hash, huge_pages, ..PlanesOptions::new(shape) }
    }

    /// Rows in a group: a multiple of 512 up to [`MAX_GROUP_ROWS`].
    ///
    /// For each plane and group a query reads `group_rows / 8` bytes in one piece. Longer pieces
    /// are read faster: from memory, pieces of 4 KiB took 2.5 times as long as those of 128 KiB,
    /// and on object stores each piece is a request. A builder holds a group twice, so long rows
    /// call for small groups. The last group takes the space of its rows, rounded up to 512, or to
    /// 64 if it is [short](Self::with_short_last_group).
    ///
    /// # Errors
    ///
    /// [`PlanesError::GroupRowsOutOfRange`].
    pub fn with_group_rows(self, group_rows: u32) -> Result<Self, PlanesError> {
        let is_possible = group_rows.is_multiple_of(GROUP_ROWS_STEP)
            && (GROUP_ROWS_STEP..=MAX_GROUP_ROWS).contains(&group_rows);
        match is_possible {
            true => Ok(PlanesOptions { group_rows, ..self }),
            false => Err(PlanesError::GroupRowsOutOfRange { group_rows }),
        }
    }

    /// Sets the hash of the items, such as that of a stored filter. It is stored, so that whoever
    /// opens the planes hashes in the same way.
    pub fn with_key_hash(self, key_hash: KeyHash) -> Self {
        PlanesOptions { key_hash, ..self }
    }

    /// Adds a liveness plane, so that rows can be deleted. Every query reads it, as one plane more.
    pub fn with_liveness(self) -> Self {
        PlanesOptions { liveness: true, ..self }
    }

    /// Rounds the rows of the last group up to 64, where earlier releases, which refuse such
    /// planes, rounded up to 512. For planes of few rows: of 100, a plane takes 24 bytes with its
    /// checksum instead of 72.
    pub fn with_short_last_group(self) -> Self {
        PlanesOptions { short_last_group: true, ..self }
    }

    /// Sets a number that tells these planes from others of the same shape and hash, such as the
    /// number of a file: a plane that was loaded from another file then fails its check.
    pub fn with_tag(self, tag: u64) -> Self {
        PlanesOptions { tag, ..self }
    }

    /// Says that rows are lines of a text, and how it is divided. This is stored, so that whoever
    /// opens the planes divides a query in the same way. Planes with a text have version 2 of the
    /// format, others version 1.
    pub fn with_text(self, text: TextRows) -> Self {
        PlanesOptions { text: Some(text), ..self }
    }

    /// The shape of the rows.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Rows in a group.
    pub fn group_rows(&self) -> u32 {
        self.group_rows
    }

    /// What the items are hashed with.
    pub fn key_hash(&self) -> KeyHash {
        self.key_hash
    }

    /// The hasher of the items.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the caller hashes.
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.key_hash.hasher()
    }

    /// Whether there is a liveness plane.
    pub fn has_liveness(&self) -> bool {
        self.liveness
    }

    /// Whether the rows of the last group are rounded up to 64 instead of 512.
    pub fn has_short_last_group(&self) -> bool {
        self.short_last_group
    }

    /// The number that tells these planes from others.
    pub fn tag(&self) -> u64 {
        self.tag
    }

    /// How rows are lines of a text, if the planes say so.
    pub fn text(&self) -> Option<TextRows> {
        self.text
    }

    /// What is stored.
    fn stored(&self) -> (Shape, u32, KeyHash, [bool; 2], u64, Option<TextRows>) {
        let flags = [self.liveness, self.short_last_group];
        (self.shape, self.group_rows, self.key_hash, flags, self.tag, self.text)
    }
}

/// Whether planes made with either are stored alike: huge pages do not matter.
impl PartialEq for PlanesOptions {
    fn eq(&self, other: &Self) -> bool {
        self.stored() == other.stored()
    }
}

impl Eq for PlanesOptions {}

impl core::hash::Hash for PlanesOptions {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.stored().hash(state);
    }
}
