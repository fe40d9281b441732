//! Parquet's split-block filters: one by itself, or those of a whole file.

use std::collections::BTreeSet;

use blocked_bloom::{Bitmask, Kernel};
use blocked_bloom_formats::parquet::{
    Column, MAX_BITSET_BYTES, ParquetError, ParquetFile, PhysicalType, SplitBlock, SplitBlockFilter,
};
use serde_json::{Value, json};

use super::builder::{BuildOptions, Builder, Built, Fit, push};
use super::lookup::{Lookup, LookupArgs, pass_all};
use super::value;
use crate::facts::{DAMAGED, Facts, List, kernel, sizes};
use crate::failure::{Failure, warn};
use crate::keys::Key;
use crate::numbers::percent;
use crate::stored::Stored;

fn open_filter(stored: &Stored) -> Result<SplitBlockFilter<&[SplitBlock]>, Failure> {
    SplitBlockFilter::from_bytes(&stored.bytes).map_err(|error| stored.damaged(error))
}

fn open_file(stored: &Stored) -> Result<ParquetFile<'_>, Failure> {
    ParquetFile::open(&stored.bytes).map_err(|error| stored.damaged(error))
}

pub(super) fn lookup_filter<'a>(
    stored: &'a Stored,
    args: &LookupArgs,
) -> Result<Lookup<'a>, Failure> {
    let filter = open_filter(stored)?;
    let Some(physical_type) = args.value_type else {
        let message = "give --type, such as int64 or byte-array: the filter does not say of which type its values are, and those of \
                       another are absent whatever it holds";
        return Err(Failure::of(&stored.name, message));
    };
    Ok(lookup(vec![filter], physical_type, None, args.key_format.is_hex()))
}

pub(super) fn lookup_file<'a>(
    stored: &'a Stored,
    args: &LookupArgs,
) -> Result<Lookup<'a>, Failure> {
    let file = open_file(stored)?;
    let fail = |message: String| Failure::of(&stored.name, message);
    let names = || format!("columns with filters are {}", columns_with_filters(&file).join(", "));
    let Some(name) = &args.column else {
        return Err(fail(format!("give --column: {}", names())));
    };
    let row_groups = file.row_groups();
    let chosen = match &args.row_groups[..] {
        [] => (0..row_groups.len()).collect(),
        some => some.to_vec(),
    };
    let (mut filters, mut without, mut physical_type) = (Vec::new(), Vec::new(), None);
    let mut first = None;
    for row_group in chosen {
        let Some(columns) = row_groups.get(row_group) else {
            let count = row_groups.len();
            return Err(fail(format!("no row group {row_group}: there are {count}, from 0")));
        };
        let Some(at) = columns.position(name) else {
            return Err(fail(format!("no column {name:?} in row group {row_group}: {}", names())));
        };
        if columns.columns()[at + 1..].iter().any(|column| column.name() == *name) {
            return Err(fail(format!("more than one column {name:?}, since names have dots")));
        }
        let found = columns.columns()[at].physical_type();
        if *physical_type.get_or_insert(found) != found {
            return Err(fail(format!(
                "column {name:?} has another type in row group {row_group} than in those before: give --row-group"
            )));
        }
        first.get_or_insert_with(|| columns.columns()[at].clone());
        let filter = file.filter(row_group, at).map_err(|error| {
            stored.damaged(format!(
                "column {name:?}, row group {row_group}: {error}; --row-group selects the others"
            ))
        })?;
        match filter {
            Some(filter) => filters.push(filter),
            None => without.push(row_group),
        }
    }
    let Some(physical_type) = physical_type.flatten() else {
        return Err(fail(format!("no column {name:?}: {}", names())));
    };
    if let Some(type_given) = args.value_type
        && type_given != physical_type
    {
        return Err(fail(format!(
            "column {name:?} has values of {physical_type}, not {type_given}"
        )));
    }
    if !without.is_empty() {
        warn(format!(
            "{}: column {name:?} has no filter in row group {}: the answer is \"maybe\" for every value; {}",
            stored.name,
            without.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
            names()
        ));
        return Ok(pass_all());
    }
    Ok(lookup(filters, physical_type, first, args.key_format.is_hex()))
}

/// A value may be present if any filter says so. Zeros are looked up with both signs. A value that the column cannot have is an error.
fn lookup<'a>(
    filters: Vec<SplitBlockFilter<&'a [SplitBlock]>>,
    physical_type: PhysicalType,
    column: Option<Column<'a>>,
    is_hex: bool,
) -> Lookup<'a> {
    let (mut hashes, mut zeros, mut hits) = (Vec::new(), Vec::new(), Bitmask::new());
    Box::new(move |keys| {
        hashes.clear();
        zeros.clear();
        for (at, key) in keys.iter().enumerate() {
            let value =
                value::parse(physical_type, key, is_hex).map_err(|problem| (at, problem))?;
            let hash = match &column {
                Some(column) => {
                    column.hash_value(value).map_err(|error| (at, error.to_string()))?
                }
                None => value.hash(),
            };
            hashes.push(hash);
            let other = if is_hex { None } else { value::other_zero(value) };
            zeros.extend(other.map(|zero| (at, zero.hash())));
        }
        let mut answers = vec![false; keys.len()];
        for filter in &filters {
            filter.contains_hashes(&hashes, &mut hits);
            for (answer, hit) in answers.iter_mut().zip(hits.iter()) {
                *answer |= hit;
            }
            for &(at, hash) in &zeros {
                answers[at] |= filter.contains_hash(hash);
            }
        }
        Ok(answers)
    })
}

/// Names of columns that a message lists.
const MOST_NAMES: usize = 20;

/// Chunks of columns that `info` lists.
const MOST_CHUNKS: usize = 10_000;

fn columns_with_filters(file: &ParquetFile<'_>) -> Vec<String> {
    let columns = file.row_groups().iter().flat_map(|row_group| row_group.columns());
    let with = columns.filter(|column| column.filter_offset().is_some());
    let names: BTreeSet<String> = with.map(Column::name).collect();
    let more = names.len().saturating_sub(MOST_NAMES);
    let mut listed: Vec<String> = names.into_iter().take(MOST_NAMES).collect();
    match more {
        0 if listed.is_empty() => listed.push("none".to_owned()),
        0 => {}
        more => listed.push(format!("and {more} more")),
    }
    listed
}

pub(super) fn describe_filter(stored: &Stored) -> Result<Facts, Failure> {
    let filter = open_filter(stored)?;
    let (fill_ratio, rate) = (filter.fill_ratio(), filter.estimated_false_positive_rate());
    let (blocks, bytes) = (filter.blocks().len(), stored.bytes.len() as u64);
    let json = json!({
        "file": stored.name,
        "format": stored.format.to_string(),
        "stored_bytes": bytes,
        "blocks": blocks,
        "fill_ratio": fill_ratio,
        "estimated_false_positive_rate": rate,
        "checksum": null,
        "kernel": Kernel::default().name(),
    });
    let blocks = match blocks.is_power_of_two() {
        true => format!("{blocks} of 32 bytes"),
        false => format!("{blocks} of 32 bytes, not a power of two: some readers reject it"),
    };
    let rows = vec![
        ("file", stored.name.clone()),
        ("format", stored.format.to_string()),
        ("stored size", sizes(bytes)),
        ("blocks", blocks),
        ("probes", "8".to_owned()),
        ("fill ratio", format!("{:.2} % of all bits", fill_ratio * 100.0)),
        ("false positives, from the bits", percent(rate)),
        ("checksum", "none: damage in the bits cannot be seen".to_owned()),
        ("kernel here", kernel()),
    ];
    Ok(Facts { json, rows, list: None })
}

pub(super) fn describe_file(stored: &Stored) -> Result<(Facts, Option<Failure>), Failure> {
    let file = open_file(stored)?;
    let heads =
        ["column", "type", "row group", "offset", "bytes", "blocks", "fill", "false positives"];
    let mut list = List::new(2, &heads);
    let (mut columns, mut failure, mut filters, mut bytes) = (Vec::new(), None, 0_u64, 0_u64);
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
            if let Err(error) = filter {
                let error = format!("{}, row group {row_group}: {error}", column.name());
                failure.get_or_insert_with(|| stored.damaged(error));
            }
        }
    }
    let rows: i64 =
        file.row_groups().iter().map(|group| group.rows().max(0)).fold(0, i64::saturating_add);
    let row_groups = file.row_groups().len();
    let json = json!({
        "file": stored.name,
        "format": stored.format.to_string(),
        "stored_bytes": stored.bytes.len(),
        "row_groups": row_groups,
        "rows": rows,
        "filters": filters,
        "bitset_bytes": bytes,
        "columns": columns,
        "columns_left_out": left_out,
        "checksum": null,
        "kernel": Kernel::default().name(),
    });
    let mut rows = vec![
        ("file", stored.name.clone()),
        ("format", stored.format.to_string()),
        ("stored size", sizes(stored.bytes.len() as u64)),
        ("row groups", row_groups.to_string()),
        ("rows", rows.to_string()),
        ("filters", format!("{filters}, with bitsets of {}", sizes(bytes))),
        ("checksum of filters", "none: damage in the bits cannot be seen".to_owned()),
        ("kernel here", kernel()),
    ];
    if left_out > 0 {
        rows.push(("not listed", format!("{left_out} more chunks of columns")));
    }
    Ok((Facts { json, rows, list: Some(list) }, failure))
}

type Found<'a> = Result<Option<SplitBlockFilter<&'a [SplitBlock]>>, ParquetError>;

fn cells(row_group: usize, column: &Column<'_>, filter: &Found<'_>) -> Vec<String> {
    let dash = || "-".to_owned();
    let found = filter.as_ref().ok().and_then(|filter| filter.as_ref());
    let none = match filter {
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
    json!({
        "row_group": row_group,
        "column": column.name(),
        "type": column.physical_type().map(|physical_type| physical_type.to_string()),
        "filter_offset": column.filter_offset(),
        "filter_length": column.filter_length(),
        "blocks": found.map(|filter| filter.blocks().len()),
        "fill_ratio": found.map(SplitBlockFilter::fill_ratio),
        "estimated_false_positive_rate": found.map(SplitBlockFilter::estimated_false_positive_rate),
        "error": filter.as_ref().err().map(ParquetError::to_string),
    })
}

/// Warns if Parquet's largest filter has a higher rate than was given.
fn warn_of_cap(filter: &SplitBlockFilter, values: u64, rate: f64) {
    const PROBES: f64 = 8.0;
    if 32 * filter.blocks().len() as u64 != u64::from(MAX_BITSET_BYTES) {
        return;
    }
    let bits = 8.0 * f64::from(MAX_BITSET_BYTES);
    let reached = (1.0 - (-PROBES * values as f64 / bits).exp()).powf(PROBES);
    if reached > rate {
        warn(format!(
            "Parquet's largest filter has {}: expect {} false positives with {values} values, not {}",
            sizes(u64::from(MAX_BITSET_BYTES)),
            percent(reached),
            percent(rate),
        ));
    }
}

/// Collects the hashes of a column's values. The filter is sized for the expected number of values, or for the distinct ones, as Arrow
/// sizes it.
struct Values {
    /// None if the user did not give it.
    physical_type: Option<PhysicalType>,
    is_hex: bool,
    expected_values: Option<u64>,
    rate: f64,
    verify: bool,
    hashes: Vec<u64>,
}

impl Values {
    fn physical_type(&self) -> PhysicalType {
        self.physical_type.unwrap_or(PhysicalType::ByteArray)
    }
}

pub(super) fn builder(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    let rate = options.false_positive_rate.unwrap_or(0.01);
    // The range does not depend on the values: an error before they are read.
    SplitBlockFilter::new(0, rate).map_err(Failure::new)?;
    Ok(Box::new(Values {
        physical_type: options.value_type,
        is_hex: options.is_hex,
        expected_values: options.expected_keys,
        rate,
        verify: options.verify,
        hashes: Vec::new(),
    }))
}

impl Builder for Values {
    fn bytes_per_key(&self) -> u64 {
        size_of::<u64>() as u64
    }

    fn add(&mut self, key: &Key) -> Result<(), String> {
        let value = value::parse(self.physical_type(), key, self.is_hex)?;
        push(&mut self.hashes, value.hash())
    }

    fn finish(mut self: Box<Self>, _: &str) -> Result<Built, Failure> {
        self.hashes.sort_unstable();
        self.hashes.dedup();
        let distinct = self.hashes.len() as u64;
        let values = self.expected_values.unwrap_or(distinct);
        let mut filter = SplitBlockFilter::new(values, self.rate).map_err(Failure::new)?;
        warn_of_cap(&filter, values, self.rate);
        filter.insert_hashes(&self.hashes);
        let mut hits = Bitmask::new();
        if self.verify {
            filter.contains_hashes(&self.hashes, &mut hits);
        }
        let (physical_type, blocks) = (self.physical_type(), filter.blocks().len());
        let default = if self.physical_type.is_none() { " (no --type given)" } else { "" };
        let bytes = filter.to_bytes();
        let fit = self.expected_values.map(|_| {
            let needed = SplitBlockFilter::new(distinct, self.rate).ok();
            Fit {
                keys: distinct,
                bytes: bytes.len() as u64,
                needed: needed.map(|filter| filter.to_bytes().len() as u64),
                false_positive_rate: filter.estimated_false_positive_rate(),
            }
        });
        Ok(Built {
            bytes,
            fit,
            verified: hits.len(),
            missing: hits.count_misses(),
            summary: format!(
                "{distinct} distinct values of {physical_type}{default}, {blocks} blocks"
            ),
        })
    }
}
