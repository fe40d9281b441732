//! Parquet's split-block filters: one by itself, or those of a whole file.

use std::collections::BTreeSet;

use blocked_bloom::{Bitmask, Filter as _, Kernel};
use blocked_bloom_formats::parquet::{
    Column, ParquetError, ParquetFile, PhysicalType, SplitBlock, SplitBlockFilter, Value as Typed,
};

use super::typed::{other_zero, value_of};
use crate::error::{BadKey, ColumnNames, Damage, Error, KeyProblem, Warning};
use crate::facts::{DAMAGED, Facts, List, kernel, percent, sizes};
use crate::lookup::{Kind, LookupOptions};
use crate::opened::{About, Filter, Opened};
use crate::value::{Value, object};

/// The filters of a column of a Parquet file, one per row group: which row groups need to be read for some values.
///
/// ```
/// use blocked_bloom_formats::parquet::Value;
/// use blocked_bloom_inspect::{FileRanges, Format, Opened};
/// # let stored = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../formats/tests/fixtures/parquet/pyarrow_n5000_ndv5000_fpp0.01_2rg.parquet"));
/// let opened = Opened::new("orders.parquet", &FileRanges::from(&stored[..]), Format::Parquet, None)?;
/// let column = opened.column("i64", &[])?;
/// let hashes = [column.hash_value(Value::Int64(12345))?];
/// let mut hits = blocked_bloom::Bitmask::new();
/// for (at, row_group) in column.row_groups().iter().enumerate() {
///     column.contains_hashes(at, &hashes, &mut hits);
///     println!("row group {}: {}", row_group.row_group, if hits.count_hits() > 0 { "read" } else { "skip" });
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ColumnFilters<'o> {
    name: String,
    column: Column<'o>,
    physical_type: PhysicalType,
    row_groups: Vec<RowGroupFilter<'o>>,
}

/// The filter of a column in one row group: see [`ColumnFilters`].
///
/// ```
/// # use blocked_bloom_inspect::{FileRanges, Format, Opened};
/// # let stored = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../formats/tests/fixtures/parquet/duckdb_n3000.parquet"));
/// # let opened = Opened::new("orders.parquet", &FileRanges::from(&stored[..]), Format::Parquet, None)?;
/// let column = opened.column("i64", &[])?;
/// let first = &column.row_groups()[0];
/// assert!(first.row_group == 0 && first.rows > 0 && matches!(first.filter, Ok(Some(_))));
/// # Ok::<(), blocked_bloom_inspect::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RowGroupFilter<'o> {
    /// Its number in the file, from 0.
    pub row_group: usize,
    /// Rows, as the file says.
    pub rows: i64,
    /// The filter; none, or why it cannot be used: then the row group must be read.
    pub filter: Result<Option<SplitBlockFilter<&'o [SplitBlock]>>, ParquetError>,
}

impl ColumnFilters<'_> {
    /// The type of the column's values.
    pub fn physical_type(&self) -> PhysicalType {
        self.physical_type
    }

    /// The row groups that were chosen, in the order of the choice, or of the file.
    pub fn row_groups(&self) -> &[RowGroupFilter<'_>] {
        &self.row_groups
    }

    /// The hash of a value, to look up in every row group.
    ///
    /// # Errors
    ///
    /// [`ParquetError`] for a value that the column cannot have: of another type or length.
    pub fn hash_value(&self, value: Typed<'_>) -> Result<u64, ParquetError> {
        self.column.hash_value(value)
    }

    /// Whether the row group at this place of [`row_groups`](Self::row_groups) may have the values with these hashes, one bit per hash. Where
    /// there is no filter, or none that can be used, it may have them all; and so where there is no such place.
    pub fn contains_hashes(&self, at: usize, hashes: &[u64], hits: &mut Bitmask) {
        match self.row_groups.get(at).map(|row_group| &row_group.filter) {
            Some(Ok(Some(filter))) => filter.contains_hashes(hashes, hits),
            _ => hits.write(hashes.len(), |words| words.fill(u64::MAX)),
        }
    }

    /// The numbers of the row groups that may have any of the values, which must be read. Keys are text as [`value_of_text`] reads it, or
    /// plain-encoded bytes.
    ///
    /// # Errors
    ///
    /// [`BadKey`]: one is no value of the column.
    ///
    /// [`value_of_text`]: crate::value_of_text
    pub fn row_groups_to_read<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        encoded: bool,
    ) -> Result<Vec<usize>, BadKey> {
        let hashes = Hashes::of(keys, self.physical_type, Some(&self.column), encoded)?;
        let all = hashes.with_zeros();
        let mut hits = Bitmask::new();
        let mut may_have = |at: &usize| {
            self.contains_hashes(*at, &all, &mut hits);
            hits.count_hits() > 0
        };
        let places: Vec<usize> = (0..self.row_groups.len()).filter(&mut may_have).collect();
        Ok(places.into_iter().map(|at| self.row_groups[at].row_group).collect())
    }
}

/// The hashes of keys; and those of zeros with the other sign, with the places of theirs.
struct Hashes {
    hashes: Vec<u64>,
    zeros: Vec<(usize, u64)>,
}

impl Hashes {
    /// Zeros that are given as text are looked up with both signs.
    fn of<K: AsRef<[u8]>>(
        keys: &[K],
        physical_type: PhysicalType,
        column: Option<&Column<'_>>,
        encoded: bool,
    ) -> Result<Self, BadKey> {
        let (mut hashes, mut zeros) = (Vec::with_capacity(keys.len()), Vec::new());
        for (index, key) in keys.iter().enumerate() {
            let bad = |problem| BadKey { index, problem };
            let value = value_of(physical_type, key.as_ref(), encoded).map_err(bad)?;
            hashes.push(match column {
                Some(column) => {
                    column.hash_value(value).map_err(|error| bad(KeyProblem::Column(error)))?
                }
                None => value.hash(),
            });
            let other = if encoded { None } else { other_zero(value) };
            zeros.extend(other.map(|zero| (index, zero.hash())));
        }
        Ok(Hashes { hashes, zeros })
    }

    fn with_zeros(&self) -> Vec<u64> {
        let zeros = self.zeros.iter().map(|&(_, hash)| hash);
        self.hashes.iter().copied().chain(zeros).collect()
    }
}

/// Lookups of values in filters, any of which may have them.
pub(crate) struct Values<'o> {
    filters: Vec<SplitBlockFilter<&'o [SplitBlock]>>,
    physical_type: PhysicalType,
    column: Option<Column<'o>>,
    encoded: bool,
}

impl Values<'_> {
    pub(crate) fn contains_batch<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        hits: &mut Bitmask,
    ) -> Result<(), BadKey> {
        let Hashes { hashes, zeros } =
            Hashes::of(keys, self.physical_type, self.column.as_ref(), self.encoded)?;
        let mut found = Bitmask::new();
        hits.write(keys.len(), |words| {
            words.fill(0);
            for filter in &self.filters {
                filter.contains_hashes(&hashes, &mut found);
                words.iter_mut().zip(found.words()).for_each(|(any, found)| *any |= found);
                for &(at, hash) in &zeros {
                    words[at / 64] |= u64::from(filter.contains_hash(hash)) << (at % 64);
                }
            }
        });
        Ok(())
    }
}

pub(crate) fn lookup_filter<'o>(
    filter: &SplitBlockFilter<&'o [SplitBlock]>,
    options: &LookupOptions,
) -> Result<Kind<'o>, Error> {
    let physical_type = options.value_type.ok_or(Error::TypeNotGiven)?;
    let (filters, encoded) = (vec![*filter], options.encoded);
    Ok(Kind::Values(Values { filters, physical_type, column: None, encoded }))
}

pub(crate) fn lookup_file<'o>(
    opened: &'o Opened<'_>,
    options: &LookupOptions,
    warnings: &mut Vec<Warning>,
) -> Result<Kind<'o>, Error> {
    let columns = || opened.columns_with_filters();
    let Some(name) = &options.column else {
        return Err(Error::ColumnNotGiven { columns: columns() });
    };
    let found = column(opened, name, &options.row_groups)?;
    let ColumnFilters { name, column, physical_type, row_groups } = found;
    if let Some(given) = options.value_type
        && given != physical_type
    {
        return Err(Error::ColumnType { column: name, expected: physical_type, found: given });
    }
    let (mut filters, mut without) = (Vec::new(), Vec::new());
    for RowGroupFilter { row_group, filter, .. } in row_groups {
        match filter {
            Ok(Some(filter)) => filters.push(filter),
            Ok(None) => without.push(row_group),
            Err(ParquetError::NotLoaded { offset, length }) => {
                return Err(Error::NotLoaded { offset, length });
            }
            Err(error) => return Err(Error::ColumnDamaged { column: name, row_group, error }),
        }
    }
    if !without.is_empty() {
        let row_groups = without;
        warnings.push(Warning::RowGroupsWithoutFilter {
            column: name,
            row_groups,
            columns: columns(),
        });
        return Ok(Kind::PassAll);
    }
    let (column, encoded) = (Some(column), options.encoded);
    Ok(Kind::Values(Values { filters, physical_type, column, encoded }))
}

/// The filters of a column in the row groups that were chosen, or in all.
pub(crate) fn column<'o>(
    opened: &'o Opened<'_>,
    name: &str,
    chosen: &[usize],
) -> Result<ColumnFilters<'o>, Error> {
    let column = || name.to_owned();
    let none = |row_group| Error::NoSuchColumn {
        column: column(),
        row_group,
        columns: opened.columns_with_filters(),
    };
    let Filter::Parquet(file) = &opened.filter else { return Err(none(None)) };
    let groups = file.row_groups();
    let chosen = match chosen {
        [] => (0..groups.len()).collect(),
        some => some.to_vec(),
    };
    let mut first: Option<Column<'o>> = None;
    let mut row_groups = Vec::new();
    for row_group in chosen {
        let group = groups
            .get(row_group)
            .ok_or(Error::NoSuchRowGroup { row_group, row_groups: groups.len() })?;
        let at = group.position(name).ok_or_else(|| none(Some(row_group)))?;
        if group.columns()[at + 1..].iter().any(|other| other.name() == name) {
            return Err(Error::AmbiguousColumn { column: column() });
        }
        let found = &group.columns()[at];
        let expected = first.get_or_insert_with(|| found.clone()).physical_type();
        if expected != found.physical_type() {
            return Err(Error::ColumnTypeChanges { column: column(), row_group });
        }
        let filter = file.filter(row_group, at);
        row_groups.push(RowGroupFilter { row_group, rows: group.rows(), filter });
    }
    let first = first.ok_or_else(|| none(None))?;
    let physical_type = first.physical_type();
    match physical_type {
        Some(physical_type) => {
            Ok(ColumnFilters { name: column(), column: first, physical_type, row_groups })
        }
        // Its metadata is encrypted.
        None => match row_groups
            .into_iter()
            .find_map(|group| Some((group.row_group, group.filter.err()?)))
        {
            Some((row_group, error)) => {
                Err(Error::ColumnDamaged { column: column(), row_group, error })
            }
            None => Err(none(None)),
        },
    }
}

/// Ranges that are needed for the filters of a column, or of all.
pub(crate) fn missing(file: &ParquetFile<'_>, column: Option<&str>) -> Vec<(u64, u64)> {
    let mut ranges = Vec::new();
    for (row_group, group) in file.row_groups().iter().enumerate() {
        for (at, found) in group.columns().iter().enumerate() {
            if column.is_none_or(|name| found.name() == name)
                && let Err(ParquetError::NotLoaded { offset, length }) = file.filter(row_group, at)
            {
                ranges.push((offset, length));
            }
        }
    }
    ranges
}

/// Names of columns that a message lists.
const MOST_NAMES: usize = 20;

/// Chunks of columns that a description lists.
const MOST_CHUNKS: usize = 10_000;

pub(crate) fn columns_with_filters(file: &ParquetFile<'_>) -> ColumnNames {
    let columns = file.row_groups().iter().flat_map(|row_group| row_group.columns());
    let with = columns.filter(|column| column.filter_offset().is_some());
    let names: BTreeSet<String> = with.map(Column::name).collect();
    let more = names.len().saturating_sub(MOST_NAMES);
    ColumnNames { names: names.into_iter().take(MOST_NAMES).collect(), more }
}

pub(crate) fn describe_filter(about: &About, filter: &SplitBlockFilter<&[SplitBlock]>) -> Facts {
    let (fill_ratio, rate) = (filter.fill_ratio(), filter.estimated_false_positive_rate());
    let blocks = filter.blocks().len();
    let json = object! {
        "file": about.name.clone(),
        "format": about.format.name(),
        "stored_bytes": about.length,
        "blocks": blocks,
        "fill_ratio": fill_ratio,
        "estimated_false_positive_rate": rate,
        "checksum": None::<bool>,
        "kernel": Kernel::default().name(),
    };
    let blocks = match blocks.is_power_of_two() {
        true => format!("{blocks} of 32 bytes"),
        false => format!("{blocks} of 32 bytes, not a power of two: some readers reject it"),
    };
    let rows = vec![
        ("file", about.name.clone()),
        ("format", about.format.to_string()),
        ("stored size", sizes(about.length)),
        ("blocks", blocks),
        ("probes", "8".to_owned()),
        ("fill ratio", format!("{:.2} % of all bits", fill_ratio * 100.0)),
        ("false positives, from the bits", percent(rate)),
        ("checksum", "none: damage in the bits cannot be seen".to_owned()),
        ("kernel here", kernel()),
    ];
    Facts::new(json, rows)
}

pub(crate) fn describe_file(about: &About, file: &ParquetFile<'_>) -> Facts {
    let heads =
        ["column", "type", "row group", "offset", "bytes", "blocks", "fill", "false positives"];
    let mut list = List::new(2, &heads);
    let (mut columns, mut damage, mut filters, mut bytes) = (Vec::new(), None, 0_u64, 0_u64);
    let mut left_out = 0_u64;
    for (row_group, group) in file.row_groups().iter().enumerate() {
        for (at, column) in group.columns().iter().enumerate() {
            let filter = file.filter(row_group, at);
            if let Ok(Some(filter)) = filter {
                filters += 1;
                bytes += 32 * filter.blocks().len() as u64;
            }
            if columns.len() < MOST_CHUNKS {
                list.lines.push(cells(row_group, column, &filter));
                columns.push(column_json(row_group, column, &filter));
            } else {
                left_out += 1;
            }
            if let Err(error) = filter
                && !is_not_loaded(&filter)
            {
                damage.get_or_insert_with(|| {
                    about.damaged(Damage::ColumnChunk { column: column.name(), row_group, error })
                });
            }
        }
    }
    let rows: i64 =
        file.row_groups().iter().map(|group| group.rows().max(0)).fold(0, i64::saturating_add);
    let row_groups = file.row_groups().len();
    let json = object! {
        "file": about.name.clone(),
        "format": about.format.name(),
        "stored_bytes": about.length,
        "row_groups": row_groups,
        "rows": rows,
        "filters": filters,
        "bitset_bytes": bytes,
        "column_chunks": columns,
        "column_chunks_left_out": left_out,
        "checksum": None::<bool>,
        "kernel": Kernel::default().name(),
    };
    let mut rows = vec![
        ("file", about.name.clone()),
        ("format", about.format.to_string()),
        ("stored size", sizes(about.length)),
        ("row groups", row_groups.to_string()),
        ("rows", rows.to_string()),
        ("filters", format!("{filters}, with bitsets of {}", sizes(bytes))),
        ("checksum of filters", "none: damage in the bits cannot be seen".to_owned()),
        ("kernel here", kernel()),
    ];
    if left_out > 0 {
        rows.push(("not listed", format!("{left_out} more chunks of columns")));
    }
    Facts { list: Some(list), damage, ..Facts::new(json, rows) }
}

type Found<'a> = Result<Option<SplitBlockFilter<&'a [SplitBlock]>>, ParquetError>;

fn is_not_loaded(filter: &Found<'_>) -> bool {
    matches!(filter, Err(ParquetError::NotLoaded { .. }))
}

fn cells(row_group: usize, column: &Column<'_>, filter: &Found<'_>) -> Vec<String> {
    let dash = || "-".to_owned();
    let found = filter.as_ref().ok().and_then(|filter| filter.as_ref());
    let none = match filter {
        _ if is_not_loaded(filter) => "not loaded",
        Err(_) => DAMAGED,
        Ok(_) => "no filter",
    };
    vec![
        column.name(),
        column.physical_type().map_or_else(dash, |physical_type| physical_type.to_string()),
        row_group.to_string(),
        column.filter_offset().map_or_else(dash, |offset| offset.to_string()),
        found.map_or_else(dash, |filter| (32 * filter.blocks().len()).to_string()),
        found.map_or_else(dash, |filter| filter.blocks().len().to_string()),
        found.map_or_else(dash, |filter| percent(filter.fill_ratio())),
        found.map_or_else(
            || none.to_owned(),
            |filter| percent(filter.estimated_false_positive_rate()),
        ),
    ]
}

fn column_json(row_group: usize, column: &Column<'_>, filter: &Found<'_>) -> Value {
    let found = filter.as_ref().ok().and_then(|filter| filter.as_ref());
    let is_loaded = !is_not_loaded(filter);
    object! {
        "row_group": row_group,
        "column": column.name(),
        "type": column.physical_type().map(|physical_type| physical_type.to_string()),
        "filter_offset": column.filter_offset(),
        "filter_length": column.filter_length(),
        "loaded": is_loaded,
        "blocks": found.map(|filter| filter.blocks().len()),
        "fill_ratio": found.map(SplitBlockFilter::fill_ratio),
        "estimated_false_positive_rate": found.map(SplitBlockFilter::estimated_false_positive_rate),
        "error": filter.as_ref().err().filter(|_| is_loaded).map(ParquetError::to_string),
    }
}
