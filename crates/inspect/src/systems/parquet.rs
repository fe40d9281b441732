//! Parquet files, whose columns have split-block filters, one per row group.

use std::collections::BTreeSet;
use std::fmt::{self, Arguments, Display, Formatter};

use blocked_bloom::{Bitmask, Filter, Kernel};
use blocked_bloom_formats::parquet::{
    Column, MAGICS, ParquetError, ParquetFile, PhysicalType, Value as Typed,
};
use blocked_bloom_split::{SplitBlock, SplitBlockFilter};

use super::parquet_filter::{Hashes, Values};
use crate::blocks::Part;
use crate::error::{ADVICE, BadKey, Error, Warning};
use crate::facts::{DAMAGED, Facts, List, Summary, kernel, sizes};
use crate::message::{LookupOption, Message};
use crate::numbers::percent;
use crate::options::LookupOptions;
use crate::system::{
    Answers, Evidence, Format, LookupContext, Mark, Source, Stored, System, pass_all,
};
use crate::typed::ColumnType;
use crate::value::{Value, object};

impl Format {
    /// A Parquet file and the filters in it.
    pub const PARQUET: Format = Format::new(&System {
        recognise,
        extension: Some("parquet"),
        options: &[LookupOption::Column, LookupOption::RowGroups, LookupOption::ValueType],
        ..System::new(
            "parquet",
            "A Parquet file, with the filters in it",
            "begins with a magic number",
            open,
        )
    });
}

fn recognise(file: &Evidence<'_>) -> Option<Mark> {
    MAGICS.iter().any(|magic| file.head.starts_with(magic)).then_some(Mark::Magic)
}

fn open<'a>(source: &Source<'_, 'a>) -> Result<Box<dyn Stored + 'a>, Error> {
    match ParquetFile::open_ranges(source.file.clone()) {
        Err(ParquetError::NotLoaded { offset, length }) => Err(Error::NotLoaded { offset, length }),
        opened => source.boxed(opened),
    }
}

impl Stored for ParquetFile<'_> {
    fn describe(&self, about: &Summary) -> Facts {
        let heads =
            ["column", "type", "row group", "offset", "bytes", "blocks", "fill", "false positives"];
        let mut list = List::new(2, &heads);
        let (mut columns, mut damage, mut filters, mut bytes) = (Vec::new(), None, 0_u64, 0_u64);
        let mut left_out = 0_u64;
        for (row_group, at) in chunks(self) {
            let column = &self.row_groups()[row_group].columns()[at];
            let filter = self.filter(row_group, at);
            if let Ok(Some(filter)) = filter {
                filters += 1;
                bytes += 32 * filter.blocks().len() as u64;
            }
            if columns.len() < MAX_CHUNKS {
                list.lines.push(cells(row_group, column, &filter));
                columns.push(column_json(row_group, column, &filter));
            } else {
                left_out += 1;
            }
            if let Err(error) = filter
                && !is_not_loaded(&filter)
            {
                damage.get_or_insert_with(|| {
                    let column = column.name();
                    Format::PARQUET.damaged(ColumnDamage { column, row_group, error })
                });
            }
        }
        let rows: i64 =
            self.row_groups().iter().map(|group| group.rows().max(0)).fold(0, i64::saturating_add);
        let row_groups = self.row_groups().len();
        let json = object! {
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
            ("format", about.format.to_owned()),
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
        Facts { list: Some(list), damage, ..Facts::new(about, json, rows) }
    }

    fn lookup<'o>(&'o self, wanted: &mut LookupContext<'_>) -> Result<Answers<'o>, Error> {
        let Some(name) = &wanted.options.column else {
            let after = format!(": columns with filters are {}", columns_with_filters(self));
            return Err(Error::Options(Message::naming("give ", LookupOption::Column, after)));
        };
        let found = column(self, name, &wanted.options.row_groups)?;
        let ColumnFilters { name, column_type, row_groups, .. } = found;
        let physical_type = column_type.physical_type;
        if let Some(given) = wanted.options.value_type
            && given != physical_type
        {
            let problem =
                format_args!("column {name:?} has values of {physical_type}, not {given}");
            return Err(Error::Options(Message::new(problem)));
        }
        let (mut filters, mut without, mut is_empty) = (Vec::new(), Vec::new(), false);
        for RowGroupFilter { row_group, filter, .. } in row_groups {
            match filter {
                Ok(Some(filter)) => filters.push(filter),
                Ok(None) => without.push(row_group.to_string()),
                Err(error @ ParquetError::NoBits { .. }) => {
                    let text = format!("{error}: the answer is \"maybe\" for every value");
                    wanted.warnings.push(Warning::new(Message::new(text), true));
                    is_empty = true;
                }
                Err(ParquetError::NotLoaded { offset, length }) => {
                    return Err(Error::NotLoaded { offset, length });
                }
                Err(error) => return Err(damaged(&name, row_group, &error)),
            }
        }
        if !without.is_empty() {
            let text = format!(
                "column {name:?} has no filter in row group {}: the answer is \"maybe\" for every \
                 value; columns with filters are {}",
                without.join(", "),
                columns_with_filters(self)
            );
            wanted.warnings.push(Warning::new(Message::new(text), true));
        }
        if is_empty || !without.is_empty() {
            return pass_all();
        }
        Values { filters, column_type, encoded: wanted.options.encoded }.answers()
    }

    fn parts(&self) -> usize {
        chunks(self).count()
    }

    fn part(&self, part: usize) -> Option<Part<'_>> {
        let (group, column) = chunks(self).nth(part)?;
        self.filter(group, column).ok()?.map(Part::SplitBlock)
    }

    fn places(&self, key: &[u8], options: &LookupOptions) -> Option<Vec<(usize, u64)>> {
        let name = options.column.as_deref().unwrap_or_default();
        let column = column(self, name, &options.row_groups).ok()?;
        let value = column.column_type.encode(key, options.encoded).ok()?;
        let is_chosen = |group: usize| column.row_groups().iter().any(|of| of.row_group == group);
        let is_of_column = |&(_, (group, at)): &(usize, (usize, usize))| {
            is_chosen(group) && self.row_groups()[group].columns()[at].name() == name
        };
        let found = chunks(self).enumerate().filter(is_of_column);
        Some(found.map(|(part, _)| (part, value.hash())).collect())
    }

    fn columns(&self) -> Option<&ParquetFile<'_>> {
        Some(self)
    }
}

/// Returns the row group and column of each part, column by column. Some row groups may have fewer
/// columns.
fn chunks(file: &ParquetFile<'_>) -> impl Iterator<Item = (usize, usize)> {
    let mut of_column: Vec<Vec<usize>> = Vec::new();
    for (group, columns) in file.row_groups().iter().enumerate() {
        let count = columns.columns().len();
        of_column.resize(of_column.len().max(count), Vec::new());
        of_column[..count].iter_mut().for_each(|groups| groups.push(group));
    }
    let columns = of_column.into_iter().enumerate();
    columns.flat_map(|(at, groups)| groups.into_iter().map(move |group| (group, at)))
}

/// Creates the error for a damaged filter. Other filters of its column may be intact.
fn damaged(column: &str, row_group: usize, error: &ParquetError) -> Error {
    Error::Options(Message::naming(
        format_args!("column {column:?}, row group {row_group}: {error}; "),
        LookupOption::RowGroups,
        format_args!(" selects the others (read as {}; {ADVICE})", Format::PARQUET),
    ))
}

/// The first damaged filter of a file.
#[derive(Debug)]
struct ColumnDamage {
    column: String,
    row_group: usize,
    error: ParquetError,
}

impl Display for ColumnDamage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ColumnDamage { column, row_group, error } = self;
        write!(f, "{column}, row group {row_group}: {error}")
    }
}

impl std::error::Error for ColumnDamage {}

/// The filters of a column of a Parquet file, one per row group. They tell which row groups must be
/// read for a value.
///
/// ```
/// use blocked_bloom_formats::parquet::Value;
/// use blocked_bloom_inspect::{FileRanges, Format, Opened};
/// # let stored = include_bytes!(concat!(
/// #     env!("CARGO_MANIFEST_DIR"),
/// #     "/../formats/tests/fixtures/parquet/pyarrow_n5000_ndv5000_fpp0.01_2rg.parquet"
/// # ));
/// let file = FileRanges::from(&stored[..]);
/// let opened = Opened::new("orders.parquet", &file, Format::PARQUET, None)?;
/// let column = opened.column("i64", &[])?;
/// let hashes = [column.hash_value(Value::Int64(12345))?];
/// let mut hits = blocked_bloom::Bitmask::new();
/// for (at, row_group) in column.row_groups().iter().enumerate() {
///     column.contains_hashes(at, &hashes, &mut hits);
///     let what = if hits.count_hits() > 0 { "read" } else { "skip" };
///     println!("row group {}: {what}", row_group.row_group);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ColumnFilters<'o> {
    name: String,
    column: Column<'o>,
    column_type: ColumnType,
    row_groups: Vec<RowGroupFilter<'o>>,
}

/// The filter of a column in one row group: see [`ColumnFilters`].
///
/// ```
/// # use blocked_bloom_inspect::{FileRanges, Format, Opened};
/// # let stored = include_bytes!(concat!(
/// #     env!("CARGO_MANIFEST_DIR"),
/// #     "/../formats/tests/fixtures/parquet/duckdb_n3000.parquet"
/// # ));
/// # let file = FileRanges::from(&stored[..]);
/// # let opened = Opened::new("orders.parquet", &file, Format::PARQUET, None)?;
/// let column = opened.column("i64", &[])?;
/// let first = &column.row_groups()[0];
/// assert!(first.row_group == 0 && first.rows > 0 && matches!(first.filter, Ok(Some(_))));
/// # Ok::<(), blocked_bloom_inspect::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RowGroupFilter<'o> {
    /// Number of the row group in the file, from 0.
    pub row_group: usize,
    /// Number of rows according to the file.
    pub rows: i64,
    /// The filter, if there is one. Without a usable filter, the row group must be read.
    pub filter: Result<Option<SplitBlockFilter<&'o [SplitBlock]>>, ParquetError>,
}

impl ColumnFilters<'_> {
    /// Returns the physical type of the column.
    pub fn physical_type(&self) -> PhysicalType {
        self.column_type.physical_type
    }

    /// Returns the type of the column's values, which determines the meaning of keys.
    pub fn column_type(&self) -> ColumnType {
        self.column_type
    }

    /// Returns the chosen row groups in the given order, or all in the order of the file.
    pub fn row_groups(&self) -> &[RowGroupFilter<'_>] {
        &self.row_groups
    }

    /// Returns the hash of a value, for lookups in every row group.
    ///
    /// # Errors
    ///
    /// [`ParquetError`] for a value of another type or length than the column's.
    pub fn hash_value(&self, value: Typed<'_>) -> Result<u64, ParquetError> {
        self.column.hash_value(value)
    }

    /// Tests whether a row group may hold the values with these hashes, one bit per hash. `at` is
    /// its place in [`row_groups`](Self::row_groups). Every answer is "maybe" if it has no usable
    /// filter or does not exist.
    pub fn contains_hashes(&self, at: usize, hashes: &[u64], hits: &mut Bitmask) {
        match self.row_groups.get(at).map(|row_group| &row_group.filter) {
            Some(Ok(Some(filter))) => filter.contains_hashes(hashes, hits),
            _ => hits.write(hashes.len(), |words| words.fill(u64::MAX)),
        }
    }

    /// Returns the numbers of the row groups that may hold any of the values and must be read. Keys
    /// have the form that [`ColumnType::encode`] takes. They are not parsed if no row group has a
    /// filter.
    ///
    /// # Errors
    ///
    /// [`BadKey`] if a key is not a value of the column.
    pub fn row_groups_to_read<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        encoded: bool,
    ) -> Result<Vec<usize>, BadKey> {
        let mut groups = self.row_groups.iter();
        if groups.all(|group| !matches!(group.filter, Ok(Some(_)))) {
            return Ok(self.row_groups.iter().map(|group| group.row_group).collect());
        }
        let all = Hashes::new(keys, &self.column_type, encoded)?.all();
        let mut hits = Bitmask::new();
        let mut may_have = |at: &usize| {
            self.contains_hashes(*at, &all, &mut hits);
            hits.count_hits() > 0
        };
        let places: Vec<usize> = (0..self.row_groups.len()).filter(&mut may_have).collect();
        Ok(places.into_iter().map(|at| self.row_groups[at].row_group).collect())
    }
}

/// Returns the filters of a column in the chosen row groups, or in all.
pub(crate) fn column<'o>(
    file: &'o ParquetFile<'_>,
    name: &str,
    chosen: &[usize],
) -> Result<ColumnFilters<'o>, Error> {
    let wrong = |problem: Arguments<'_>| Error::Options(Message::new(problem));
    let none = |of: &str| {
        let columns = columns_with_filters(file);
        wrong(format_args!("no column {name:?}{of}: columns with filters are {columns}"))
    };
    let groups = file.row_groups();
    let chosen = match chosen {
        [] => (0..groups.len()).collect(),
        some => some.to_vec(),
    };
    let mut first: Option<Column<'o>> = None;
    let mut row_groups = Vec::new();
    for row_group in chosen {
        let group = groups.get(row_group).ok_or_else(|| {
            let count = groups.len();
            wrong(format_args!("no row group {row_group}: there are {count}, from 0"))
        })?;
        let at = group.position(name).ok_or_else(|| none(&format!(" in row group {row_group}")))?;
        if group.columns()[at + 1..].iter().any(|other| other.name() == name) {
            let problem = format_args!("more than one column {name:?}: names may have dots");
            return Err(wrong(problem));
        }
        let found = &group.columns()[at];
        let expected = first.get_or_insert_with(|| found.clone()).physical_type();
        if expected != found.physical_type() {
            let problem = format!(
                "column {name:?} has another type in row group {row_group} than in those before: \
                 give "
            );
            return Err(Error::Options(Message::naming(problem, LookupOption::RowGroups, "")));
        }
        let filter = file.filter(row_group, at);
        row_groups.push(RowGroupFilter { row_group, rows: group.rows(), filter });
    }
    let column = first.ok_or_else(|| none(""))?;
    let Some(column_type) = ColumnType::from_column(&column) else {
        // The metadata of the column is encrypted.
        let mut groups = row_groups.into_iter();
        let error = groups.find_map(|group| Some((group.row_group, group.filter.err()?)));
        return Err(match error {
            Some((row_group, error)) => damaged(name, row_group, &error),
            None => none(""),
        });
    };
    Ok(ColumnFilters { name: name.to_owned(), column, column_type, row_groups })
}

/// Returns the ranges that are needed for the filters of a column, or of all columns.
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

/// Names of columns for a message: the first twenty, and the number of others.
///
/// ```
/// # use blocked_bloom_inspect::{FileRanges, Format, Opened};
/// # let stored = include_bytes!(concat!(
/// #     env!("CARGO_MANIFEST_DIR"),
/// #     "/../formats/tests/fixtures/parquet/duckdb_n3000.parquet"
/// # ));
/// let file = FileRanges::from(&stored[..]);
/// let opened = Opened::new("duckdb.parquet", &file, Format::PARQUET, None)?;
/// let columns = opened.columns_with_filters();
/// assert_eq!(columns.to_string(), columns.names.join(", "));
/// # Ok::<(), blocked_bloom_inspect::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnNames {
    /// Names in the order of the file.
    pub names: Vec<String>,
    /// Number of names left out.
    pub more: usize,
}

impl Display for ColumnNames {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ColumnNames { names, .. } if names.is_empty() => f.write_str("none"),
            ColumnNames { names, more: 0 } => f.write_str(&names.join(", ")),
            ColumnNames { names, more } => write!(f, "{}, and {more} more", names.join(", ")),
        }
    }
}

/// Number of column names in a message.
const MAX_NAMES: usize = 20;

/// Number of column chunks in a description.
const MAX_CHUNKS: usize = 10_000;

pub(crate) fn columns_with_filters(file: &ParquetFile<'_>) -> ColumnNames {
    let columns = chunks(file).map(|(group, at)| &file.row_groups()[group].columns()[at]);
    let with = columns.filter(|column| column.filter_offset().is_some());
    let mut seen = BTreeSet::new();
    let mut names: Vec<String> =
        with.map(Column::name).filter(|name| seen.insert(name.clone())).collect();
    let more = names.len().saturating_sub(MAX_NAMES);
    names.truncate(MAX_NAMES);
    ColumnNames { names, more }
}

type ChunkFilter<'a> = Result<Option<SplitBlockFilter<&'a [SplitBlock]>>, ParquetError>;

fn is_not_loaded(filter: &ChunkFilter<'_>) -> bool {
    matches!(filter, Err(ParquetError::NotLoaded { .. }))
}

fn cells(row_group: usize, column: &Column<'_>, filter: &ChunkFilter<'_>) -> Vec<String> {
    let dash = || "-".to_owned();
    let found = filter.as_ref().ok().and_then(|filter| filter.as_ref());
    let none = match filter {
        _ if is_not_loaded(filter) => "not loaded",
        Err(_) => DAMAGED,
        Ok(_) => "no filter",
    };
    vec![
        column.name(),
        match (column.physical_type(), column.logical_type()) {
            (Some(physical), Some(logical)) => format!("{physical} {logical}"),
            (physical, _) => physical.map_or_else(dash, |physical| physical.to_string()),
        },
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

fn column_json(row_group: usize, column: &Column<'_>, filter: &ChunkFilter<'_>) -> Value {
    let found = filter.as_ref().ok().and_then(|filter| filter.as_ref());
    let is_loaded = !is_not_loaded(filter);
    object! {
        "row_group": row_group,
        "column": column.name(),
        "type": column.physical_type().map(|physical_type| physical_type.to_string()),
        "logical_type": column.logical_type().map(|logical_type| logical_type.to_string()),
        "filter_offset": column.filter_offset(),
        "filter_length": column.filter_length(),
        "loaded": is_loaded,
        "blocks": found.map(|filter| filter.blocks().len()),
        "fill_ratio": found.map(SplitBlockFilter::fill_ratio),
        "estimated_false_positive_rate": found.map(SplitBlockFilter::estimated_false_positive_rate),
        "error": filter.as_ref().err().filter(|_| is_loaded).map(ParquetError::to_string),
    }
}
