//! A Parquet file in memory: the location of its filters.
//!
//! Only the parts of the footer that locate filters are read: row groups, columns, offsets, lengths
//! of values.

use alloc::string::String;
use alloc::vec::Vec;

use blocked_bloom::AllocError;
use blocked_bloom_split::thrift::{BINARY, Field, I32, I64, LIST, Reader, STRUCT, ThriftError};
use blocked_bloom_split::{SplitBlock, SplitBlockFilter};

use super::error::ParquetError;
use super::filter_at::read_filter_before;
use super::logical::{LogicalType, SchemaElement};
use super::neighbour::{self, Claim, Neighbour};
use super::value::{PhysicalType, Value};
use crate::ranges::FileRanges;

/// The filters of a Parquet file that is in memory, or mapped.
///
/// ```no_run
/// use blocked_bloom::Filter;
/// use blocked_bloom_formats::parquet::{ParquetFile, Value};
/// let bytes = std::fs::read("orders.parquet")?;
/// let file = ParquetFile::open(&bytes)?;
/// for (row_group, columns) in file.row_groups().iter().enumerate() {
///     let Some(column) = columns.position("customer.id") else { continue };
///     let hash = columns.columns()[column].hash_value(Value::Int64(4711))?;
///     let filter = file.filter(row_group, column)?;
///     let absent = filter.is_some_and(|filter| !filter.contains_hash(hash));
///     println!("row group {row_group}: {}", if absent { "skip" } else { "read" });
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParquetFile<'a> {
    file: FileRanges<'a>,
    /// Offset of the footer.
    end: u64,
    row_groups: Vec<RowGroup<'a>>,
}

/// The first and last bytes of a file, and of a file with an encrypted footer.
pub const MAGICS: [[u8; 4]; 2] = [*b"PAR1", *b"PARE"];
const MAGIC: [u8; 4] = MAGICS[0];
const MAGIC_OF_ENCRYPTED_FOOTERS: [u8; 4] = MAGICS[1];

/// Size of the footer's length and a magic number.
const TAIL: usize = 8;

impl<'a> ParquetFile<'a> {
    /// Reads the footer of a whole file.
    ///
    /// Cost: reads the footer once. Allocates a fraction of its length, and at most about 62 times
    /// its length if it is hostile. Sorts filters by their offsets, `O(n log n)`.
    ///
    /// # Errors
    ///
    /// [`ParquetError`] if the bytes are not a Parquet file, or the footer is encrypted or damaged.
    /// It has no checksum, so damage that leaves it well formed is not detected.
    pub fn open(file: &'a [u8]) -> Result<Self, ParquetError> {
        ParquetFile::open_ranges(FileRanges::from(file))
    }

    /// Opens a file like [`open`](Self::open), with only parts of it in memory: its first four
    /// bytes, its footer, and the filters to look up. [`filter`](Self::filter) returns which bytes
    /// are missing.
    ///
    /// # Errors
    ///
    /// The errors of `open`, and [`ParquetError::NotLoaded`] with the range to insert before the
    /// next call. Up to three calls return it.
    ///
    /// ```
    /// use blocked_bloom::Filter;
    /// use blocked_bloom_formats::FileRanges;
    /// use blocked_bloom_formats::parquet::{ParquetError, ParquetFile};
    /// # let stored = include_bytes!(concat!(
    /// #     env!("CARGO_MANIFEST_DIR"),
    /// #     "/tests/fixtures/parquet/duckdb_n3000.parquet"
    /// # ));
    /// let mut ranges = FileRanges::new(stored.len() as u64);
    /// let filter = loop {
    ///     // Both return which bytes are missing.
    ///     match ParquetFile::open_ranges(ranges.clone()).and_then(|file| file.filter(0, 3)) {
    ///         Err(ParquetError::NotLoaded { offset, length }) => {
    ///             ranges.insert(offset, &stored[offset as usize..][..length as usize]);
    ///         }
    ///         other => break other?,
    ///     }
    /// };
    /// assert!(!filter.is_some_and(|filter| filter.contains("word")));
    /// # Ok::<(), ParquetError>(())
    /// ```
    pub fn open_ranges(file: FileRanges<'a>) -> Result<Self, ParquetError> {
        let length = file.len();
        let range = |offset, length| {
            let not_loaded = ParquetError::NotLoaded { offset, length };
            file.get(offset, length).ok_or(not_loaded)
        };
        let tail =
            length.checked_sub(TAIL as u64).ok_or(ThriftError::Truncated { offset: length })?;
        let truncated = ThriftError::Truncated { offset: length };
        let head = range(0, MAGIC.len() as u64)?.first_chunk::<4>().ok_or(truncated)?;
        let last = range(tail, TAIL as u64)?.first_chunk::<TAIL>().ok_or(truncated)?;
        let [a, b, c, d, magic @ ..] = *last;
        for (offset, found) in [(0, *head), (length - 4, magic)] {
            match found {
                MAGIC => {}
                MAGIC_OF_ENCRYPTED_FOOTERS => return Err(ParquetError::EncryptedFooter),
                _ => return Err(ParquetError::NotParquet { offset, found }),
            }
        }
        let found = u32::from_le_bytes([a, b, c, d]);
        let limit = tail.saturating_sub(MAGIC.len() as u64);
        if u64::from(found) > limit {
            return Err(ParquetError::FooterLength { found, limit });
        }
        let end = tail - u64::from(found);
        let footer = range(end, found.into())?;
        let mut row_groups = file_metadata(&mut Reader::new(footer, end))?;
        find_neighbours(&mut row_groups, end)?;
        Ok(ParquetFile { file, end, row_groups })
    }

    /// Returns the row groups, in the file's order.
    pub fn row_groups(&self) -> &[RowGroup<'a>] {
        &self.row_groups
    }

    /// Returns the filter of a column in a row group, or `None` if it has none. Without a filter,
    /// read the row group.
    ///
    /// Cost: reads the filter's header.
    ///
    /// # Errors
    ///
    /// [`ParquetError`] if the column does not exist, is encrypted, in another file or of booleans,
    /// or if its filter is damaged or overlaps that of another column chunk. If the footer does not
    /// contain the filter's length, only an overlap with the next filter is detected. Read the row
    /// group in all of these cases. [`ParquetError::NotLoaded`] if the file was opened [by
    /// ranges](Self::open_ranges) and the filter is not loaded. It contains the range to load; for
    /// a filter of unknown length, first that of its header.
    ///
    /// ```
    /// use blocked_bloom::Filter;
    /// # let bytes = include_bytes!(concat!(
    /// #     env!("CARGO_MANIFEST_DIR"),
    /// #     "/tests/fixtures/parquet/duckdb_n3000.parquet"
    /// # ));
    /// # let file = blocked_bloom_formats::parquet::ParquetFile::open(bytes)?;
    /// let may_hold_it = match file.filter(0, 3) {
    ///     Ok(Some(filter)) => filter.contains("word"),
    ///     Ok(None) => true,
    ///     Err(error) => {
    ///         eprintln!("filter ignored: {error}");
    ///         true
    ///     }
    /// };
    /// assert!(!may_hold_it);
    /// # Ok::<(), blocked_bloom_formats::parquet::ParquetError>(())
    /// ```
    pub fn filter(
        &self,
        row_group: usize,
        column: usize,
    ) -> Result<Option<SplitBlockFilter<&'a [SplitBlock]>>, ParquetError> {
        let group = self.row_groups.get(row_group);
        let chunk = group.and_then(|group| Some((group.rows, group.columns.get(column)?)));
        let (rows, found) = chunk.ok_or(ParquetError::NoSuchColumn { row_group, column })?;
        if found.encrypted {
            return Err(ParquetError::EncryptedColumn { row_group, column });
        }
        let Some(offset) = found.filter_offset else { return Ok(None) };
        if found.other_file {
            return Err(ParquetError::OtherFile { row_group, column });
        }
        if found.physical_type == Some(PhysicalType::Boolean) {
            return Err(ParquetError::BooleanColumn { row_group, column });
        }
        if let Neighbour::Overlapping(other) = found.neighbour {
            return Err(ParquetError::Overlapping { offset, other });
        }
        let (filter, end) = read_filter_before(&self.file, self.end, offset, found.filter_length)?;
        match found.neighbour {
            Neighbour::Next(other) if other.unsigned_abs() < end => {
                Err(ParquetError::Overlapping { offset, other })
            }
            // Without values, no bit is right.
            _ if rows > 0
                && !found.has_only_nulls
                && filter.blocks().as_flattened().iter().all(|&byte| byte == 0) =>
            {
                Err(ParquetError::NoBits { row_group, column })
            }
            _ => Ok(Some(filter)),
        }
    }
}

/// A row group: the number of its rows, and its columns.
///
/// ```
/// # let bytes = include_bytes!(concat!(
/// #     env!("CARGO_MANIFEST_DIR"),
/// #     "/tests/fixtures/parquet/duckdb_n3000.parquet"
/// # ));
/// # let file = blocked_bloom_formats::parquet::ParquetFile::open(bytes)?;
/// for row_group in file.row_groups() {
///     println!("{} rows in {} columns", row_group.rows(), row_group.columns().len());
/// }
/// # Ok::<(), blocked_bloom_formats::parquet::ParquetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowGroup<'a> {
    rows: i64,
    columns: Vec<Column<'a>>,
}

impl<'a> RowGroup<'a> {
    /// Returns the number of rows stored in the file.
    pub fn rows(&self) -> i64 {
        self.rows
    }

    /// Returns the leaf columns, in the schema's order.
    pub fn columns(&self) -> &[Column<'a>] {
        &self.columns
    }

    /// Returns the index of the column with this [`name`](Column::name).
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name() == name)
    }
}

/// A leaf column in a row group, with the location of its filter.
///
/// ```
/// # let bytes = include_bytes!(concat!(
/// #     env!("CARGO_MANIFEST_DIR"),
/// #     "/tests/fixtures/parquet/duckdb_n3000.parquet"
/// # ));
/// # let file = blocked_bloom_formats::parquet::ParquetFile::open(bytes)?;
/// let row_group = &file.row_groups()[0];
/// let column = &row_group.columns()[row_group.position("i64").unwrap()];
/// assert!(column.filter_offset().is_some());
/// # Ok::<(), blocked_bloom_formats::parquet::ParquetError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column<'a> {
    path: Vec<&'a str>,
    physical_type: Option<PhysicalType>,
    type_length: Option<u32>,
    logical_type: Option<LogicalType>,
    /// Whether the metadata says that every value is NULL.
    has_only_nulls: bool,
    filter_offset: Option<i64>,
    filter_length: Option<i32>,
    encrypted: bool,
    other_file: bool,
    neighbour: Neighbour,
}

impl<'a> Column<'a> {
    /// Returns the names from the schema's root to the column, without the root. Empty if the
    /// column's metadata is encrypted.
    pub fn path(&self) -> &[&'a str] {
        &self.path
    }

    /// Returns the [`path`](Self::path) joined by dots. Names may contain dots; only the path is
    /// then unambiguous.
    pub fn name(&self) -> String {
        self.path.join(".")
    }

    /// Returns the type of the stored values. `None` if the column's metadata is encrypted.
    pub fn physical_type(&self) -> Option<PhysicalType> {
        self.physical_type
    }

    /// Returns the length of each value of a column of
    /// [`FixedLenByteArray`](PhysicalType::FixedLenByteArray), from the schema's `type_length`.
    /// Returns `None` for all other columns, and if the schema lacks it or has other columns than
    /// the row group.
    pub fn type_length(&self) -> Option<u32> {
        self.type_length
    }

    /// Returns the logical type of the values, from the schema. Returns `None` if the schema has no
    /// logical type for the column, and [`LogicalType::Unknown`] if it has other columns than the
    /// row group.
    pub fn logical_type(&self) -> Option<LogicalType> {
        self.logical_type
    }

    /// Returns the hash of a value, to look it up in the column's filters.
    ///
    /// # Errors
    ///
    /// [`ParquetError::ValueType`] if the column has another type, and
    /// [`ParquetError::ValueLength`] if the value has another [length](Self::type_length): the
    /// filter would answer "absent" for any contents.
    pub fn hash_value(&self, value: Value<'_>) -> Result<u64, ParquetError> {
        let found = value.physical_type();
        if let Some(expected) = self.physical_type
            && found != expected
        {
            return Err(ParquetError::ValueType { found, expected });
        }
        if let (Value::FixedLenByteArray(bytes), Some(expected)) = (value, self.type_length)
            && bytes.len() as u64 != u64::from(expected)
        {
            return Err(ParquetError::ValueLength { found: bytes.len() as u64, expected });
        }
        Ok(value.hash())
    }

    /// Returns the offset of the filter's header in the file, if there is a filter:
    /// `bloom_filter_offset`, unchecked.
    pub fn filter_offset(&self) -> Option<i64> {
        self.filter_offset
    }

    /// Returns the length of the filter's header and bitset: `bloom_filter_length`, unchecked.
    /// Files of older writers do not have it.
    pub fn filter_length(&self) -> Option<i32> {
        self.filter_length
    }
}

/// Finds the neighbour of every filter by its offset. Filters in other files, and those that begin
/// at or after the footer (`end`), have none.
fn find_neighbours(row_groups: &mut [RowGroup<'_>], end: u64) -> Result<(), AllocError> {
    let mut claims: Vec<Claim<'_>> = Vec::new();
    for column in row_groups.iter_mut().flat_map(|row_group| &mut row_group.columns) {
        let Some(offset) = column.filter_offset.filter(|_| !column.other_file) else { continue };
        if u64::try_from(offset).is_ok_and(|offset| offset < end) {
            let bytes = (claims.len() as u64 + 1) * size_of::<Claim<'_>>() as u64;
            claims.try_reserve(1).map_err(|_| AllocError::new(bytes))?;
            let (length, neighbour) = (column.filter_length, &mut column.neighbour);
            claims.push(Claim { offset, length, neighbour });
        }
    }
    neighbour::find(&mut claims);
    Ok(())
}

/// `FileMetaData` of `parquet.thrift`.
fn file_metadata<'a>(reader: &mut Reader<'a>) -> Result<Vec<RowGroup<'a>>, ParquetError> {
    let (mut schema, mut row_groups) = (Vec::new(), None);
    reader.structure::<ParquetError>(|reader, field| match field.id {
        2 => {
            schema = list(reader, field, (STRUCT, 1), "schema", |reader| {
                Ok(SchemaElement::read(reader)?)
            })?;
            Ok(())
        }
        4 => {
            row_groups = Some(list(reader, field, (STRUCT, 5), "row_groups", row_group)?);
            Ok(())
        }
        _ => Ok(reader.skip(field.kind)?),
    })?;
    let missing = ThriftError::MissingField { offset: reader.offset(), field: "row_groups" };
    let mut row_groups = row_groups.ok_or(missing)?;
    schema.retain(|element| element.physical_type.is_some());
    for row_group in &mut row_groups {
        set_types(&mut row_group.columns, &schema);
    }
    Ok(row_groups)
}

/// Sets the lengths and logical types of values. The schema's leaves and a row group's columns have
/// the same order. If their numbers or types differ, the logical types are unknown. Cost: one step
/// per column, for any length of a hostile schema.
fn set_types(columns: &mut [Column<'_>], leaves: &[SchemaElement]) {
    let fits = |(column, leaf): (&Column<'_>, &SchemaElement)| {
        let physical_type = leaf.physical_type.and_then(PhysicalType::from_number);
        column.physical_type.is_none() || column.physical_type == physical_type
    };
    if leaves.len() != columns.len() || !columns.iter().zip(leaves).all(fits) {
        let unknown = Some(LogicalType::Unknown);
        return columns.iter_mut().for_each(|column| column.logical_type = unknown);
    }
    for (column, leaf) in columns.iter_mut().zip(leaves) {
        if column.physical_type == Some(PhysicalType::FixedLenByteArray) {
            column.type_length = leaf.type_length.and_then(|length| u32::try_from(length).ok());
        }
        column.logical_type = leaf.logical_type();
    }
}

/// Reads `RowGroup`: at least its two fields of two bytes each, and the end.
fn row_group<'a>(reader: &mut Reader<'a>) -> Result<RowGroup<'a>, ParquetError> {
    let (mut columns, mut rows) = (None, None);
    reader.structure::<ParquetError>(|reader, field| match field.id {
        1 => {
            columns = Some(list(reader, field, (STRUCT, 2), "columns", column_chunk)?);
            Ok(())
        }
        3 => {
            field.expect(I64, "num_rows")?;
            rows = Some(reader.i64()?);
            Ok(())
        }
        _ => Ok(reader.skip(field.kind)?),
    })?;
    let missing = |field| ThriftError::MissingField { offset: reader.offset(), field };
    Ok(RowGroup {
        rows: rows.ok_or(missing("num_rows"))?,
        columns: columns.ok_or(missing("columns"))?,
    })
}

/// Reads `ColumnChunk`: at least one field, which takes a byte if it is a bool, and the end.
fn column_chunk<'a>(reader: &mut Reader<'a>) -> Result<Column<'a>, ParquetError> {
    let mut column = Column::default();
    reader.structure::<ParquetError>(|reader, field| {
        match field.id {
            1 => column.other_file = true,
            3 => {
                field.expect(STRUCT, "meta_data")?;
                return column_metadata(reader, &mut column);
            }
            // The column's encryption and its encrypted metadata. Nothing else is known about it.
            8 | 9 => column.encrypted = true,
            _ => {}
        }
        Ok(reader.skip(field.kind)?)
    })?;
    if column.physical_type.is_none() && !column.encrypted {
        let offset = reader.offset();
        return Err(ThriftError::MissingField { offset, field: "meta_data" }.into());
    }
    Ok(column)
}

/// Reads `ColumnMetaData`.
fn column_metadata<'a>(
    reader: &mut Reader<'a>,
    column: &mut Column<'a>,
) -> Result<(), ParquetError> {
    let (mut values, mut nulls) = (None, None);
    reader.structure::<ParquetError>(|reader, field| {
        match field.id {
            1 => {
                field.expect(I32, "type")?;
                let problem = "no such physical type";
                let unknown = ThriftError::Malformed { offset: reader.offset(), problem };
                let found = PhysicalType::from_number(reader.i32()?);
                column.physical_type = Some(found.ok_or(unknown)?);
            }
            3 => column.path = list(reader, field, (BINARY, 1), "path_in_schema", name)?,
            5 => {
                field.expect(I64, "num_values")?;
                values = Some(reader.i64()?);
            }
            12 => {
                field.expect(STRUCT, "statistics")?;
                nulls = null_count(reader)?;
            }
            14 => {
                field.expect(I64, "bloom_filter_offset")?;
                column.filter_offset = Some(reader.i64()?);
            }
            15 => {
                field.expect(I32, "bloom_filter_length")?;
                column.filter_length = Some(reader.i32()?);
            }
            _ => reader.skip(field.kind)?,
        }
        Ok(())
    })?;
    column.has_only_nulls = values.is_some() && values == nulls;
    match column.physical_type {
        Some(_) => Ok(()),
        None => Err(ThriftError::MissingField { offset: reader.offset(), field: "type" }.into()),
    }
}

/// The field `null_count` of `Statistics`.
fn null_count(reader: &mut Reader<'_>) -> Result<Option<i64>, ThriftError> {
    let mut nulls = None;
    reader.structure::<ThriftError>(|reader, field| match field.id {
        3 => {
            field.expect(I64, "null_count")?;
            nulls = Some(reader.i64()?);
            Ok(())
        }
        _ => reader.skip(field.kind),
    })?;
    Ok(nulls)
}

fn name<'a>(reader: &mut Reader<'a>) -> Result<&'a str, ParquetError> {
    let offset = reader.offset();
    let problem = "a name is not UTF-8";
    let name = reader.binary()?;
    core::str::from_utf8(name).map_err(|_| ThriftError::Malformed { offset, problem }.into())
}

/// Reads a list of elements of the type `kind`, each of at least `least` bytes. For any stored
/// length, memory is reserved for at most as many elements as the remaining bytes can contain.
fn list<'a, T>(
    reader: &mut Reader<'a>,
    field: Field,
    (kind, least): (u8, u64),
    name: &'static str,
    mut read: impl FnMut(&mut Reader<'a>) -> Result<T, ParquetError>,
) -> Result<Vec<T>, ParquetError> {
    field.expect(LIST, name)?;
    let offset = reader.offset();
    let (found, length) = reader.list()?;
    if found != kind && length > 0 {
        return Err(ThriftError::FieldType { offset, field: name, found, expected: kind }.into());
    }
    let capacity = length.min(reader.left() / least);
    let error = AllocError::new(capacity.saturating_mul(size_of::<T>() as u64));
    let mut elements = Vec::new();
    elements.try_reserve_exact(capacity as usize).map_err(|_| error)?;
    for _ in 0..length {
        elements.push(read(reader)?);
    }
    Ok(elements)
}
