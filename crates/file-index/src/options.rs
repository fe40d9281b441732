//! Options of an index: columns, rate of false positives, memory.

use alloc::string::String;
use alloc::vec::Vec;

use blocked_bloom::{FilterOptions, KeyError, KeyHash, KeyHasher};
use blocked_bloom_planes::{PlanesOptions, Shape, ShapeError};

use crate::error::PART_VALUES;

/// A column: its name, the hash of its values, and its field id if the table format has one.
///
/// A file whose values have other keys (strings instead of integers) is not indexed in this column.
///
/// ```
/// use blocked_bloom::KeyHash;
/// use blocked_bloom_file_index::Column;
/// let column = Column::new("trace_id", KeyHash::Xxh3 { seed: 3 }).with_field_id(17);
/// assert_eq!((column.name(), column.field_id()), ("trace_id", Some(17)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub(crate) name: String,
    pub(crate) field_id: Option<i32>,
    pub(crate) key_hash: KeyHash,
}

impl Column {
    /// A column without a field id, whose values are hashed so.
    pub fn new(name: impl Into<String>, key_hash: KeyHash) -> Self {
        Column { name: name.into(), field_id: None, key_hash }
    }

    /// [`new`](Self::new) with the hash and seed of an engine's filters, so that they are decided
    /// once.
    ///
    /// ```
    /// use blocked_bloom::FilterOptions;
    /// use blocked_bloom_file_index::Column;
    /// let filters = FilterOptions::default();
    /// let column = Column::for_filters("trace_id", &filters);
    /// assert_eq!(column.key_hash(), filters.key_hash());
    /// ```
    pub fn for_filters(name: impl Into<String>, filters: &FilterOptions) -> Self {
        Column::new(name, filters.key_hash())
    }

    /// Sets the number by which a table format knows the column, whatever its name.
    pub fn with_field_id(self, field_id: i32) -> Self {
        Column { field_id: Some(field_id), ..self }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The field id, if there is one.
    pub fn field_id(&self) -> Option<i32> {
        self.field_id
    }

    /// The hash of the values: chosen once, stored, and checked by
    /// [`Manifest::lookup`](crate::Manifest::lookup).
    pub fn key_hash(&self) -> KeyHash {
        self.key_hash
    }

    /// The hasher of the values.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the caller hashes.
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.key_hash.hasher()
    }
}

const DEFAULT_RATE: f64 = 1e-4;
pub(crate) const DEFAULT_PART_VALUES: u32 = 256;
pub(crate) const DEFAULT_MEMORY: u64 = 64 << 20;
/// Between them the arithmetic of memory cannot overflow.
pub(crate) const MEMORY: (u64, u64) = (1 << 20, 1 << 50);

/// The settings of an index: columns, rate of false positives, size of parts, memory.
///
/// ```
/// use blocked_bloom::KeyHash;
/// use blocked_bloom_file_index::{Column, FileIndexOptions};
/// let columns = vec![Column::new("trace_id", KeyHash::Xxh3 { seed: 3 })];
/// // Of 50,000 row groups one is read in vain, as a rule. The tag is the time in nanoseconds.
/// let options = FileIndexOptions::new(columns, 1_700_000_000_123_456_789);
/// let builder = options.with_false_row_groups(1.0, 50_000).builder()?;
/// assert_eq!(builder.files(), 0);
/// # Ok::<(), blocked_bloom_file_index::FileIndexError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FileIndexOptions {
    pub(crate) columns: Vec<Column>,
    pub(crate) tag: u64,
    pub(crate) rate: f64,
    pub(crate) part_values: Option<u32>,
    pub(crate) memory: u64,
}

impl FileIndexOptions {
    /// The settings of an index of these columns, with one false-positive row group in 10,000,
    /// parts of 256 values, and 64 MiB of memory.
    ///
    /// `tag` must differ between all indexes that are ever stored at the same place, updates
    /// included: use the time in nanoseconds, or a random number. A reader that opened the manifest
    /// of a replaced index then detects that ranges are those of another one. With equal tags it
    /// could miss row groups.
    pub fn new(columns: Vec<Column>, tag: u64) -> Self {
        FileIndexOptions {
            columns,
            tag,
            rate: DEFAULT_RATE,
            part_values: None,
            memory: DEFAULT_MEMORY,
        }
    }

    /// The columns, in their order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Sets the number of false-positive row groups for the lookup of an absent value, and the
    /// number of row groups in all. Their ratio is the rate, which updates keep.
    pub fn with_false_row_groups(self, false_row_groups: f64, row_groups: u64) -> Self {
        FileIndexOptions { rate: false_row_groups / row_groups as f64, ..self }
    }

    /// Sets the most values of a part, 16 to 16,384. A lookup reads some bits of every part: parts
    /// of more values are read faster where row groups have many, and waste more where they have
    /// few.
    pub fn with_part_values(self, values: u32) -> Self {
        FileIndexOptions { part_values: Some(values), ..self }
    }

    /// Chooses the values of a part from the numbers of values that row groups have, as the footers
    /// of files say, unless [`with_part_values`](Self::with_part_values) has set it. A few hundred
    /// row groups of different files suffice.
    ///
    /// Of all sizes of parts up to 512 values it takes the one with the fewest bits in all, or 256
    /// if that needs at most 2 % more. Row groups of 300 values take 24 bits a value instead of 39.
    pub fn with_row_groups_of(self, values: &[u64]) -> Self {
        let part_values = self.part_values.or_else(|| cheapest_part_values(values, self.rate));
        FileIndexOptions { part_values, ..self }
    }

    /// Sets the memory of a builder, 1 MiB to 1 PiB. It is at least twice the bits of 512 parts: 47
    /// MB for each column with parts of 16,384 values at the default rate. Half is for the
    /// different values of a row group in the columns that have not
    /// [ended](crate::FileBuilder::end_column): 3.6 million in 64 MiB. Columns with more are not
    /// indexed in this row group, which is always read.
    pub fn with_memory(self, bytes: u64) -> Self {
        FileIndexOptions { memory: bytes.clamp(MEMORY.0, MEMORY.1), ..self }
    }

    /// The options of the planes of a column, without a tag. A builder holds a group of rows twice,
    /// and each takes a quarter of the column's share of the memory.
    pub(crate) fn planes(&self, column: &Column, shape: Shape) -> PlanesOptions {
        let bytes = self.memory / 4 / self.columns.len() as u64;
        let rows = (8 * bytes / u64::from(shape.planes())).clamp(512, 1 << 20) as u32;
        let options = PlanesOptions::new(shape).with_key_hash(column.key_hash);
        // In this range every multiple of 512 is possible.
        options.with_group_rows(rows - rows % 512).unwrap_or(options).with_short_last_group()
    }
}

/// Parts that are looked at together when a shape is chosen: their numbers of values vary.
const PARTS: u32 = 8;

/// The rate of row groups whose parts have this many values on average.
pub(crate) fn row_group_rate(shape: Shape, values: f64) -> Result<f64, ShapeError> {
    // Parts are chosen by the hash, as the blocks of one filter are.
    let parts = Shape::new(PARTS * shape.blocks(), shape.block_bits(), shape.probes())?;
    Ok(parts.false_positive_rate((f64::from(PARTS) * values) as u64))
}

/// The shape of parts with this many values on average.
pub(crate) fn shape(values: u32, rate: f64) -> Result<Shape, ShapeError> {
    let mut shape = Shape::for_rate(values.into(), rate)?;
    let mut bits_per_value = f64::from(shape.planes()) / f64::from(values);
    while row_group_rate(shape, values.into())? > rate {
        bits_per_value *= 1.01;
        shape = Shape::for_bits_per_item(values.into(), bits_per_value)?;
    }
    Ok(shape)
}

/// Most values of a part that [`FileIndexOptions::with_row_groups_of`] chooses: larger parts are
/// wasted on the next row groups if these are smaller.
const MAX_CHOSEN: u64 = 512;
/// Row groups of at least so many values fill parts of any size.
const VALUES_CAP: u64 = 64 * MAX_CHOSEN;

/// The values of a part with which row groups of these sizes take the fewest bits; `None` for the
/// default.
fn cheapest_part_values(row_groups: &[u64], rate: f64) -> Option<u32> {
    let mut sizes: Vec<u64> =
        row_groups.iter().map(|&values| values.min(VALUES_CAP)).filter(|&v| v > 0).collect();
    sizes.sort_unstable();
    // A quantile in 64 stands for the sizes around it.
    let quantiles: Vec<u64> =
        (0..64).filter_map(|i| sizes.get(i * sizes.len() / 64)).copied().collect();
    let bits = |part_values: u32| {
        let planes = u64::from(shape(part_values, rate).ok()?.planes());
        let parts = |values: &u64| values.div_ceil(part_values.into());
        Some(planes * quantiles.iter().map(parts).sum::<u64>())
    };
    let default = bits(DEFAULT_PART_VALUES).filter(|&bits| bits > 0)?;
    // The best size divides one of the row groups into parts without a rest.
    let divided = quantiles.iter().flat_map(|&values| {
        let fewest = values.div_ceil(MAX_CHOSEN);
        (fewest..fewest + 3).map(move |parts| values.div_ceil(parts))
    });
    let smallest = u64::from(PART_VALUES.0);
    let mut candidates: Vec<u32> =
        divided.map(|values| values.clamp(smallest, MAX_CHOSEN) as u32).collect();
    candidates.sort_unstable();
    candidates.dedup();
    let costs = candidates.into_iter().filter_map(|values| Some((bits(values)?, values)));
    let (least, best) = costs.min()?;
    (least as f64 * 1.02 < default as f64).then_some(best)
}
