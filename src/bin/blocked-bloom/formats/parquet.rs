//! Parquet's split-block filters: one by itself, or those of a whole file.

use std::collections::BTreeSet;

use blocked_bloom::interop::parquet::{
    Column, MAX_BITSET_BYTES, ParquetError, ParquetFile, PhysicalType, SplitBlockFilter,
    SplitBlockFilterRef,
};
use blocked_bloom::{Bitmask, Kernel};
use serde_json::{Value, json};

use super::{Ask, Built, bools, one_by_one, value};
use crate::build::{Args, hashes, warn_of_more_than_expected};
use crate::facts::{Facts, List, kernel, sizes};
use crate::failure::{Failure, report};
use crate::numbers::percent;
use crate::query::Question;
use crate::stored::Stored;

/// Whether a file with these first bytes is one, with or without an encrypted footer.
pub(crate) fn is_file(head: &[u8]) -> bool {
    head.starts_with(b"PAR1") || head.starts_with(b"PARE")
}

/// Whether these first bytes begin with a whole header of a filter.
pub(crate) fn is_filter(head: &[u8]) -> bool {
    use ParquetError::{BitsetLength, Length};
    matches!(
        SplitBlockFilterRef::from_bytes(head),
        Ok(_) | Err(Length { .. } | BitsetLength { .. })
    )
}

/// The length that a filter's header announces, if it is sound.
pub(crate) fn stored_bytes(head: &[u8]) -> u64 {
    match SplitBlockFilterRef::from_bytes(head) {
        Err(ParquetError::Length { expected, .. }) => expected,
        _ => head.len() as u64,
    }
}

fn open_filter(stored: &Stored) -> Result<SplitBlockFilterRef<'_>, Failure> {
    SplitBlockFilterRef::from_bytes(&stored.bytes).map_err(|error| stored.damaged(error))
}

fn open_file(stored: &Stored) -> Result<ParquetFile<'_>, Failure> {
    ParquetFile::open(&stored.bytes).map_err(|error| stored.damaged(error))
}

pub(crate) fn ask_filter<'a>(stored: &'a Stored, question: &Question) -> Result<Ask<'a>, Failure> {
    let filter = open_filter(stored)?;
    let Some(physical_type) = question.value_type else {
        let message = "give --type, such as int64 or byte-array: the filter does not say of which type its values are, and those of \
                       another are absent whatever it holds";
        return Err(Failure::of(&stored.name, message));
    };
    Ok(ask(vec![filter], physical_type, None, question.key_format.is_hex()))
}

pub(crate) fn ask_file<'a>(stored: &'a Stored, question: &Question) -> Result<Ask<'a>, Failure> {
    let file = open_file(stored)?;
    let fail = |message: String| Failure::of(&stored.name, message);
    let names = || format!("columns with filters are {}", columns_with_filters(&file).join(", "));
    let Some(name) = &question.column else {
        return Err(fail(format!("give --column: {}", names())));
    };
    let row_groups = file.row_groups();
    let chosen = match &question.row_groups[..] {
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
                "column {name:?} has another type in row group {row_group} than in those before: ask with --row-group"
            )));
        }
        first.get_or_insert_with(|| columns.columns()[at].clone());
        let filter = file.filter(row_group, at).map_err(|error| {
            stored.damaged(format!(
                "column {name:?}, row group {row_group}: {error}; --row-group asks the others alone"
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
    if let Some(type_given) = question.value_type
        && type_given != physical_type
    {
        return Err(fail(format!(
            "column {name:?} has values of {physical_type}, not {type_given}"
        )));
    }
    if !without.is_empty() {
        report(&format!(
            "{}: column {name:?} has no filter in row group {}, so that every value may be there: {}",
            stored.name,
            without.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
            names()
        ));
        return Ok(one_by_one(|_| true));
    }
    Ok(ask(filters, physical_type, first, question.key_format.is_hex()))
}

/// A value may be present if any filter says so. Zeros are asked about with both signs. Values that cannot be of the column are
/// refused.
fn ask<'a>(
    filters: Vec<SplitBlockFilterRef<'a>>,
    physical_type: PhysicalType,
    column: Option<Column<'a>>,
    hex: bool,
) -> Ask<'a> {
    let (mut hashes, mut zeros, mut hits) = (Vec::new(), Vec::new(), Bitmask::new());
    Box::new(move |keys| {
        hashes.clear();
        zeros.clear();
        for (at, key) in keys.iter().enumerate() {
            let value = value::parse(physical_type, key, hex).map_err(|problem| (at, problem))?;
            let hash = match &column {
                Some(column) => column.key_hash(value).map_err(|error| (at, error.to_string()))?,
                None => value.hash(),
            };
            hashes.push(hash);
            let other = if hex { None } else { value::other_zero(value) };
            zeros.extend(other.map(|zero| (at, zero.hash())));
        }
        let mut answers = vec![false; keys.len()];
        for filter in &filters {
            filter.contains_hashes(&hashes, &mut hits);
            for (answer, hit) in answers.iter_mut().zip(bools(&hits)) {
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

pub(crate) fn describe_filter(stored: &Stored) -> Result<Facts, Failure> {
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
        false => format!("{blocks} of 32 bytes, no power of two: some readers refuse it"),
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

pub(crate) fn describe_file(stored: &Stored) -> Result<(Facts, Option<Failure>), Failure> {
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

type Found<'a> = Result<Option<SplitBlockFilterRef<'a>>, ParquetError>;

fn cells(row_group: usize, column: &Column<'_>, filter: &Found<'_>) -> Vec<String> {
    let dash = || "-".to_owned();
    let found = filter.as_ref().ok().and_then(|filter| filter.as_ref());
    let none = match filter {
        Err(_) => "damaged",
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
        "fill_ratio": found.map(SplitBlockFilterRef::fill_ratio),
        "estimated_false_positive_rate": found.map(SplitBlockFilterRef::estimated_false_positive_rate),
        "error": filter.as_ref().err().map(ParquetError::to_string),
    })
}

/// Says so if Parquet's largest filter lets more pass than was asked for.
fn warn_of_cap(filter: &SplitBlockFilter, values: u64, rate: f64) {
    const PROBES: f64 = 8.0;
    if 32 * filter.view().blocks().len() as u64 != u64::from(MAX_BITSET_BYTES) {
        return;
    }
    let bits = 8.0 * f64::from(MAX_BITSET_BYTES);
    let reached = (1.0 - (-PROBES * values as f64 / bits).exp()).powf(PROBES);
    if reached > rate {
        report(&format!(
            "{} is the most that Parquet has for a filter: expect {} false positives of {values} values, where {} was asked for",
            sizes(u64::from(MAX_BITSET_BYTES)),
            percent(reached),
            percent(rate),
        ));
    }
}

/// For `--keys`, or the distinct values read, and the rate as Arrow counts it.
pub(crate) fn build(args: &Args) -> Result<Built, Failure> {
    let physical_type = args.value_type.unwrap_or(PhysicalType::ByteArray);
    let hex = args.key_format.is_hex();
    let rate = args.sizing.fpr.unwrap_or(0.01);
    // Ranges do not depend on the values: refuse before reading them.
    SplitBlockFilter::new(0, rate).map_err(Failure::new)?;
    let (name, mut hashes) =
        hashes(args, |key| Ok(Some(value::parse(physical_type, key, hex)?.hash())))?;
    hashes.sort_unstable();
    hashes.dedup();
    let values = args.expected_items.unwrap_or(hashes.len() as u64);
    warn_of_more_than_expected(args, hashes.len() as u64);
    let mut filter = SplitBlockFilter::new(values, rate).map_err(Failure::new)?;
    warn_of_cap(&filter, values, rate);
    filter.insert_hashes(&hashes);
    let mut hits = Bitmask::new();
    if args.verify {
        filter.view().contains_hashes(&hashes, &mut hits);
    }
    let (values, blocks) = (hashes.len(), filter.view().blocks().len());
    let default = if args.value_type.is_none() { " (no --type given)" } else { "" };
    let summary = format!("{values} distinct values of {physical_type}{default}, {blocks} blocks");
    Built { bytes: filter.to_bytes(), summary }.verified(&name, hits.count_misses())
}
