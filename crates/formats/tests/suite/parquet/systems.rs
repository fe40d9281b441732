//! Files and filters of pyarrow, arrow-rs, parquet-mr and DuckDB, with the answers of the real
//! readers.

use std::fs;
use std::path::PathBuf;

use blocked_bloom::Kernel;
use blocked_bloom_formats::parquet::{ParquetError, ParquetFile, PhysicalType, Value, filter_at};
use blocked_bloom_split::thrift::ThriftError;
use blocked_bloom_split::{SplitBlockError, SplitBlockFilter, hash_value};

use crate::fixtures::{committed, unhex};
use crate::split_blocks::check;

const FILES: [&str; 5] = [
    "arrowrs_n3000_ndv3000",
    "duckdb_n3000",
    "mr_n100_ndv100",
    "pyarrow_n5000_ndv5000_fpp0.01_2rg",
    "pyarrow_special",
];

fn fixture(name: &str) -> PathBuf {
    committed("parquet").join(name)
}

/// A line of a file's `.csv`.
struct Query {
    column: usize,
    name: String,
    physical_type: String,
    key: Vec<u8>,
    /// For each row group: whether the value is present, and the answers of the real readers.
    present: Vec<bool>,
    expected: Vec<bool>,
}

fn queries(name: &str) -> Vec<Query> {
    let csv = fs::read_to_string(fixture(&format!("{name}.csv"))).unwrap();
    let ones = |digits: &str| digits.bytes().map(|digit| digit == b'1').collect();
    let query = |line: &str| {
        let [column, name, physical_type, key, present, expected] =
            line.split(',').collect::<Vec<_>>().try_into().unwrap();
        Query {
            column: column.parse().unwrap(),
            name: name.to_owned(),
            physical_type: physical_type.to_owned(),
            key: unhex(key),
            present: ones(present),
            expected: ones(expected),
        }
    };
    csv.lines().skip(1).map(query).collect()
}

#[test]
#[expect(clippy::print_stdout, reason = "a run shows what it covered")]
fn every_answer_of_every_file() {
    let (mut filters, mut checked) = (0, 0);
    for name in FILES {
        let bytes = fs::read(fixture(&format!("{name}.parquet"))).unwrap();
        let file = ParquetFile::open(&bytes).unwrap();
        let queries = queries(name);
        for (row_group, columns) in file.row_groups().iter().enumerate() {
            for (index, column) in columns.columns().iter().enumerate() {
                let looked_up: Vec<&Query> =
                    queries.iter().filter(|query| query.column == index).collect();
                let filter = file.filter(row_group, index).unwrap();
                assert_eq!(filter.is_some(), !looked_up.is_empty(), "{name} {}", column.name());
                let Some(filter) = filter else { continue };
                assert_eq!(columns.position(&column.name()), Some(index));
                assert_eq!(looked_up[0].name, column.name());
                let physical_type = column.physical_type().unwrap();
                assert_eq!(looked_up[0].physical_type, physical_type.to_string());
                let keys: Vec<Vec<u8>> =
                    looked_up.iter().map(|looked_up| looked_up.key.clone()).collect();
                let expected: Vec<bool> =
                    looked_up.iter().map(|looked_up| looked_up.expected[row_group]).collect();
                assert!(looked_up.iter().all(
                    |looked_up| !looked_up.present[row_group] || looked_up.expected[row_group]
                ));
                check(filter, &keys, &expected, &format!("{name} {}", column.name()));
                for key in &keys {
                    assert_eq!(column.hash_value(value(physical_type, key)), Ok(hash_value(key)));
                }
                filters += 1;
                checked += keys.len();
            }
        }
    }
    let kernels = Kernel::supported().count();
    println!(
        "{} Parquet files, {filters} filters x {checked} answers checked x {kernels} kernels",
        FILES.len()
    );
    assert_eq!((filters, checked), (43, 23_670));
}

/// The value with these plain bytes.
fn value(physical_type: PhysicalType, plain: &[u8]) -> Value<'_> {
    match physical_type {
        PhysicalType::Int32 => Value::Int32(i32::from_le_bytes(plain.try_into().unwrap())),
        PhysicalType::Int64 => Value::Int64(i64::from_le_bytes(plain.try_into().unwrap())),
        PhysicalType::Int96 => Value::Int96(plain.try_into().unwrap()),
        PhysicalType::Float => Value::Float(f32::from_le_bytes(plain.try_into().unwrap())),
        PhysicalType::Double => Value::Double(f64::from_le_bytes(plain.try_into().unwrap())),
        PhysicalType::ByteArray => Value::ByteArray(plain),
        PhysicalType::FixedLenByteArray => Value::FixedLenByteArray(plain),
        other => panic!("{other}"),
    }
}

#[test]
fn a_value_of_another_type_is_an_error() {
    let bytes = fs::read(fixture("pyarrow_special.parquet")).unwrap();
    let file = ParquetFile::open(&bytes).unwrap();
    let column = &file.row_groups()[0].columns()[0];
    let (found, expected) = (PhysicalType::Float, PhysicalType::Double);
    let error = column.hash_value(Value::Float(0.0)).unwrap_err();
    assert_eq!(error, ParquetError::ValueType { found, expected });
}

/// The bytes as the writer writes them, of all values of a column: of those columns whose values
/// are a sequence.
#[test]
fn filters_of_sequences_are_written_byte_for_byte() {
    let filters = [
        // name, distinct values announced, rate
        ("arrowrs_n3000_ndv3000", 3_000, 0.01),
        ("mr_n100_ndv100", 100, 0.01),
        ("pyarrow_n5000_ndv5000_fpp0.01_2rg", 5_000, 0.01),
        // Folded as far as one sized for the values; pyarrow announces this many by itself.
        ("pyarrow_n5000_ndv5000_fpp0.01_2rg", 1_048_576, 0.01),
    ];
    for (name, distinct_values, rate) in filters {
        let bytes = fs::read(fixture(&format!("{name}.parquet"))).unwrap();
        let file = ParquetFile::open(&bytes).unwrap();
        for column_name in ["i64", "i32", "f64", "f32", "fsb"] {
            let mut start = 0;
            for (row_group, columns) in file.row_groups().iter().enumerate() {
                let column = columns.position(column_name).unwrap();
                let mut filter = SplitBlockFilter::new(distinct_values, rate).unwrap();
                for i in start..start + columns.rows() {
                    filter.insert(sequence_value(column_name, i));
                }
                start += columns.rows();
                if name.starts_with("pyarrow") {
                    filter.shrink_to_false_positive_rate(rate);
                }
                let column = &columns.columns()[column];
                let offset = column.filter_offset().unwrap() as usize;
                let length = column.filter_length().unwrap() as usize;
                let written = &bytes[offset..offset + length];
                assert!(filter.to_bytes() == written, "{name} {column_name} {row_group}");
                let opened = SplitBlockFilter::from_bytes(written).unwrap();
                assert_eq!(opened, filter.view());
                assert_eq!(opened.to_filter().unwrap(), filter);
            }
        }
    }
}

fn sequence_value(column: &str, i: i64) -> Vec<u8> {
    match column {
        "i64" => (3 * i - 1_000).to_le_bytes().to_vec(),
        "i32" => (7 * i as i32 - 500).to_le_bytes().to_vec(),
        "f64" => (0.5 * i as f64 - 3.25).to_le_bytes().to_vec(),
        "f32" => (0.25 * i as f32 + 1.0).to_le_bytes().to_vec(),
        _ => (0x80_0000_0000 + 11 * i).to_be_bytes()[3..].to_vec(),
    }
}

/// The `.csv` lists all values of these columns. A filter of those values with as many blocks has
/// the same bits. DuckDB and pyarrow chose the number of blocks after the values.
#[test]
fn filters_of_listed_values_have_the_same_bits() {
    for name in ["duckdb_n3000", "mr_n100_ndv100", "pyarrow_special"] {
        let bytes = fs::read(fixture(&format!("{name}.parquet"))).unwrap();
        let file = ParquetFile::open(&bytes).unwrap();
        let queries = queries(name);
        for index in 0..file.row_groups()[0].columns().len() {
            let Some(filter) = file.filter(0, index).unwrap() else { continue };
            let mut same = SplitBlockFilter::with_blocks(filter.blocks().len() as u32).unwrap();
            let mut announced = SplitBlockFilter::new(1_048_576, 0.01).unwrap();
            for query in
                queries.iter().filter(|looked_up| looked_up.column == index && looked_up.present[0])
            {
                same.insert(&query.key);
                announced.insert(&query.key);
            }
            assert_eq!(same.view(), filter, "{name} {index}");
            if name == "pyarrow_special" {
                announced.shrink_to_false_positive_rate(0.01);
                assert_eq!(announced.view(), filter, "{name} {index}");
            }
        }
    }
}

fn lines(name: &str) -> Vec<Vec<u8>> {
    fs::read_to_string(fixture(name)).unwrap().lines().map(unhex).collect()
}

/// A careful reader's answers for headers that no writer produces. The answers in `answers.csv` are
/// for 20 inserted and 20 absent keys.
#[test]
fn odd_headers_get_their_verdicts() {
    let (added, absent) = (lines("raw/keys_added.hex"), lines("raw/keys_absent.hex"));
    let keys = [&added[..20], &absent[..20]].concat();
    let verdicts = fs::read_to_string(fixture("raw/answers.csv")).unwrap();
    let mut accepted = 0;
    for line in verdicts.lines().filter(|line| line.starts_with("odd_")) {
        let (file, verdict) = line.split_once(',').unwrap();
        let verdict = verdict.trim_end_matches(',');
        let bytes = fs::read(fixture(&format!("raw/{file}"))).unwrap();
        let exact = SplitBlockFilter::from_bytes(&bytes);
        let within = filter_at(&bytes, 0, None);
        let expected_error = match file {
            "odd_numbytes0.sbbf" => SplitBlockError::BitsetLength { found: 0 },
            "odd_numbytes33.sbbf" => SplitBlockError::BitsetLength { found: 33 },
            "odd_huge.sbbf" => SplitBlockError::BitsetLength { found: i64::from(i32::MAX) },
            "odd_short.sbbf" => SplitBlockError::Length { found: 56, expected: 16 + 64 },
            "odd_hash_arm2.sbbf" => {
                SplitBlockError::Unsupported { offset: 7, field: "hash", found: 2 }
            }
            "odd_empty.sbbf" => ThriftError::Truncated { offset: 0 }.into(),
            _ => {
                assert!(!verdict.starts_with("ERR"), "{line}");
                let filter = within.unwrap();
                let expected: Vec<bool> = verdict.bytes().map(|answer| answer == b'1').collect();
                check(filter, &keys, &expected, file);
                accepted += 1;
                match file {
                    "odd_trailing.sbbf" => {
                        let error = SplitBlockError::Length { found: 55, expected: 47 };
                        assert_eq!(exact, Err(error));
                    }
                    _ => assert!(exact.is_ok_and(|exact| exact == filter), "{file}"),
                }
                continue;
            }
        };
        assert!(verdict.starts_with("ERR"), "{line}");
        assert_eq!(exact, Err(expected_error), "{file}");
        assert!(within.is_err());
    }
    assert_eq!(accepted, 4);
}
