//! Which row groups of a Parquet file a query must read, by the Bloom filters of its columns.
//!
//! ```text
//! cargo run -p blocked-bloom-formats --example parquet_prune
//! ```
//!
//! pyarrow wrote the file in `tests/fixtures/parquet`: two row groups of 2,500 rows. First, queries
//! of one and of two columns are pruned. Then the values of the table next to the file, which
//! contains pyarrow's answers, are looked up in each column. Prints the row groups to read, and for
//! each column how many row groups without the value are read nevertheless.
#![expect(clippy::print_stdout, reason = "an example for the command line")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;

use blocked_bloom::{Bitmask, Filter};
use blocked_bloom_formats::parquet::{ParquetError, ParquetFile, Value};
use blocked_bloom_split::hash_value;

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/fixtures/parquet/pyarrow_n5000_ndv5000_fpp0.01_2rg"
);

/// The row groups that may have a row with all these values. A value of another type than its
/// column's is an error.
fn prune(file: &ParquetFile<'_>, query: &[(&str, Value<'_>)]) -> Result<Vec<usize>, ParquetError> {
    let mut to_read = Vec::new();
    for (number, row_group) in file.row_groups().iter().enumerate() {
        let mut may_have_all = true;
        for &(name, value) in query {
            let Some(column) = row_group.position(name) else { continue };
            let hash = row_group.columns()[column].hash_value(value)?;
            may_have_all &= match file.filter(number, column) {
                Ok(filter) => filter.is_none_or(|filter| filter.contains_hash(hash)),
                Err(error) => {
                    eprintln!("{name}, row group {number}: filter not used: {error}");
                    true
                }
            };
        }
        to_read.extend(may_have_all.then_some(number));
    }
    Ok(to_read)
}

/// A value, plain-encoded; for each row group whether it has the value, and what its filter answers
/// pyarrow.
struct Line<'a> {
    plain: Vec<u8>,
    stored: &'a str,
    expected: &'a str,
}

/// Looks a batch of values up in the filter of each row group. Returns the row groups read for
/// nothing.
fn look_up(
    file: &ParquetFile<'_>,
    column: usize,
    lines: &[Line<'_>],
) -> Result<usize, Box<dyn Error>> {
    // Callers that have the column's stored bytes hash them unchanged, once for all row groups.
    let hashes: Vec<u64> = lines.iter().map(|line| hash_value(&line.plain)).collect();
    let (mut false_positives, mut hits) = (0, Bitmask::new());
    for row_group in 0..file.row_groups().len() {
        let filter = file.filter(row_group, column)?.ok_or("pyarrow wrote a filter")?;
        filter.contains_hashes(&hashes, &mut hits);
        for (i, line) in lines.iter().enumerate() {
            let [stored, expected] =
                [line.stored, line.expected].map(|bits| &bits[row_group..][..1] == "1");
            assert_eq!(hits.get(i), Some(expected), "another answer than pyarrow's");
            assert!(expected || !stored, "a row group that has the value is skipped");
            false_positives += usize::from(expected && !stored);
        }
    }
    Ok(false_positives)
}

fn main() -> Result<(), Box<dyn Error>> {
    let bytes = fs::read(format!("{FILE}.parquet"))?;
    let file = ParquetFile::open(&bytes)?;
    let rows: Vec<i64> = file.row_groups().iter().map(|row_group| row_group.rows()).collect();

    println!("row groups of {rows:?} rows");
    let (first, later) = (Value::Int64(-1_000), Value::Int64(8_777));
    let word = Value::ByteArray("key-007056\u{e9}\u{e9}\u{e9}".as_bytes());
    let queries: [(&str, &[_], &[usize]); 4] = [
        ("i64 = -1000", &[("i64", first)], &[0]),
        ("i64 = 8777", &[("i64", later)], &[1]),
        ("str = key-007056...", &[("str", word)], &[1]),
        ("i64 = -1000 and str = key-007056...", &[("i64", first), ("str", word)], &[]),
    ];
    for (query, columns, expected) in queries {
        let to_read = prune(&file, columns)?;
        println!("{query:<36} reads row groups {to_read:?}");
        assert_eq!(to_read, expected);
    }

    let text = fs::read_to_string(format!("{FILE}.csv"))?;
    let mut columns: BTreeMap<usize, Vec<Line<'_>>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let [column, _, _, hex, stored, expected] = line.split(',').collect::<Vec<_>>()[..] else {
            return Err(format!("{line}: not six columns").into());
        };
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16);
        let plain = (0..hex.len()).step_by(2).map(byte).collect::<Result<_, _>>()?;
        columns.entry(column.parse()?).or_default().push(Line { plain, stored, expected });
    }
    println!("column           lookups   without the value   read all the same");
    for (column, lines) in columns {
        let without: usize = lines.iter().map(|line| line.stored.matches('0').count()).sum();
        let false_positives = look_up(&file, column, &lines)?;
        let (name, lookups) =
            (file.row_groups()[0].columns()[column].name(), rows.len() * lines.len());
        println!("{name:<17}{lookups:>7}{without:>20}{false_positives:>20}");
    }
    Ok(())
}
