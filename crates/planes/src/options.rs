//! The settings of planes: shape, rows in a group, hash, liveness plane, last group, tag, text.

use blocked_bloom::{FilterOptions, KeyError, KeyHash, KeyHasher};

use crate::error::{GROUP_ROWS_STEP, MAX_GROUP_ROWS, PlanesError};
use crate::shape::Shape;
use crate::text::TextRows;

/// Default rows in a group. Long rows lower it: see [`DEFAULT_GROUP_BITS`].
const DEFAULT_GROUP_ROWS: u32 = 1 << 20;

/// Default maximum size of a group in bits: 32 MiB, which a builder holds twice.
const DEFAULT_GROUP_BITS: u32 = 1 << 28;

/// The settings of planes. Creates builders.
///
/// ```
/// use blocked_bloom::{FilterOptions, KeyHash};
/// use blocked_bloom_planes::{PlanesOptions, Shape};
/// // The hash of every filter in a store is chosen once.
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
    /// Not stored, and ignored by equality.
    pub(crate) huge_pages: bool,
}

impl PlanesOptions {
    /// Creates options for rows of this shape, hashed by XXH3-64 with seed 0. Groups have 2^20
    /// rows, or as many as fill 32 MiB if that is fewer. The tag is 0, and there is no liveness
    /// plane and no text. Large planes in memory are advised to use huge pages.
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

    /// Creates options ([`new`](Self::new)) with the hash, seed and huge-page setting of an
    /// engine's filters.
    pub fn for_filters(filters: &FilterOptions, shape: Shape) -> Self {
        let (key_hash, huge_pages) = (filters.key_hash(), filters.huge_pages());
        PlanesOptions { key_hash, huge_pages, ..PlanesOptions::new(shape) }
    }

    /// Sets the rows in a group: a multiple of 512, up to [`MAX_GROUP_ROWS`].
    ///
    /// A query reads `group_rows / 8` consecutive bytes for each plane and group. Longer pieces are
    /// faster: reading from memory in pieces of 4 KiB takes about 2.5 times as much time as in
    /// pieces of 128 KiB, and each piece is one request to an object store. A builder holds a group
    /// twice, so use small groups for long rows. The last group takes the space of its rows,
    /// rounded up to 512 rows, or to 64 if it is [short](Self::with_short_last_group).
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

    /// Sets the hash of the items, for example the hash of a stored filter. It is stored with the
    /// planes, so that readers hash in the same way.
    pub fn with_key_hash(self, key_hash: KeyHash) -> Self {
        PlanesOptions { key_hash, ..self }
    }

    /// Adds a liveness plane, so that rows can be deleted. Every query reads this extra plane.
    pub fn with_liveness(self) -> Self {
        PlanesOptions { liveness: true, ..self }
    }

    /// Rounds the rows of the last group up to a multiple of 64 instead of 512, to save space in
    /// planes of few rows: with 100 rows, a plane and its checksum take 24 bytes instead of 72.
    /// Releases before this option reject such planes.
    pub fn with_short_last_group(self) -> Self {
        PlanesOptions { short_last_group: true, ..self }
    }

    /// Sets a number that distinguishes these planes from others of the same shape and hash, such
    /// as a file number. A plane loaded from another file then fails its checksum.
    pub fn with_tag(self, tag: u64) -> Self {
        PlanesOptions { tag, ..self }
    }

    /// Declares that rows are lines of text, and how lines are divided into words. The setting is
    /// stored, so that readers divide a query in the same way. Planes with a text use version 2 of
    /// the format, all others version 1.
    pub fn with_text(self, text: TextRows) -> Self {
        PlanesOptions { text: Some(text), ..self }
    }

    /// Returns the shape of the rows.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the number of rows in a group.
    pub fn group_rows(&self) -> u32 {
        self.group_rows
    }

    /// Returns the hash of the items.
    pub fn key_hash(&self) -> KeyHash {
        self.key_hash
    }

    /// Returns the hasher of the items.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] for caller-supplied hashes.
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.key_hash.hasher()
    }

    /// Returns whether there is a liveness plane.
    pub fn has_liveness(&self) -> bool {
        self.liveness
    }

    /// Returns whether the rows of the last group are rounded up to 64 instead of 512.
    pub fn has_short_last_group(&self) -> bool {
        self.short_last_group
    }

    /// Returns the number that distinguishes these planes from others.
    pub fn tag(&self) -> u64 {
        self.tag
    }

    /// Returns how lines of text become rows, if set.
    pub fn text(&self) -> Option<TextRows> {
        self.text
    }

    /// Returns the settings that are stored.
    fn stored(&self) -> (Shape, u32, KeyHash, [bool; 2], u64, Option<TextRows>) {
        let flags = [self.liveness, self.short_last_group];
        (self.shape, self.group_rows, self.key_hash, flags, self.tag, self.text)
    }
}

/// Compares the settings that are stored. Huge pages do not matter.
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
