//! Files and filters of pyarrow, arrow-rs, parquet-mr and DuckDB, with the answers of the real
//! readers.

use std::fs;
use std::path::PathBuf;

use blocked_bloom::{Bitmask, Filter, Kernel};
use blocked_bloom_formats::parquet::{
    ParquetError, ParquetFile, PhysicalType, SplitBlock, SplitBlockFilter, Value, hash_value,
};

use crate::common::kernels;
use crate::fixtures::{committed, unhex};

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

/// Looks up in every way there is, by every kernel.
fn check(
    filter: SplitBlockFilter<&[SplitBlock]>,
    keys: &[Vec<u8>],
    expected: &[bool],
    context: &str,
) {
    let hashes: Vec<u64> = keys.iter().map(hash_value).collect();
    let mut hits = Bitmask::new();
    for kernel in kernels() {
        let filter = filter.with_kernel(kernel);
        let answers = |hits: &Bitmask| -> Vec<bool> {
            (0..hits.len()).map(|i| hits.get(i).unwrap()).collect()
        };
        filter.contains_hashes(&hashes, &mut hits);
        assert_eq!(answers(&hits), expected, "hashes, {kernel:?}, {context}");
        filter.contains_batch(keys, &mut hits);
        assert_eq!(answers(&hits), expected, "keys, {kernel:?}, {context}");
        let mut words = vec![u64::MAX; keys.len().div_ceil(64)];
        filter.contains_batch_into(keys, &mut words).unwrap();
        assert_eq!(words, hits.words(), "words of keys, {kernel:?}, {context}");
        words.fill(u64::MAX);
        filter.contains_hashes_into(&hashes, &mut words).unwrap();
        assert_eq!(words, hits.words(), "words of hashes, {kernel:?}, {context}");
    }
    for ((key, &hash), &expected) in keys.iter().zip(&hashes).zip(expected) {
        assert_eq!(filter.contains(key), expected, "{key:02x?}, {context}");
        assert_eq!(filter.contains_hash(hash), expected, "{key:02x?}, {context}");
    }
}

/// A line of a file's `.csv`.
struct Query {
    column: usize,
    name: String,
    physical_type: String,
    key: Vec<u8>,
    /// Per row group: whether the value is there, and what the real readers say.
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
                    filter.insert(in_sequence(column_name, i));
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

fn in_sequence(column: &str, i: i64) -> Vec<u8> {
    match column {
        "i64" => (3 * i - 1_000).to_le_bytes().to_vec(),
        "i32" => (7 * i as i32 - 500).to_le_bytes().to_vec(),
        "f64" => (0.5 * i as f64 - 3.25).to_le_bytes().to_vec(),
        "f32" => (0.25 * i as f32 + 1.0).to_le_bytes().to_vec(),
        _ => (0x80_0000_0000 + 11 * i).to_be_bytes()[3..].to_vec(),
    }
}

/// Columns all of whose values are in the `.csv`: the same bits in as many blocks. DuckDB and
/// pyarrow chose the size after the values.
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

#[test]
#[expect(clippy::print_stdout, reason = "a run shows what it covered")]
fn raw_filters_are_answered_and_written_byte_for_byte() {
    let (added, absent) = (lines("raw/keys_added.hex"), lines("raw/keys_absent.hex"));
    let answers = fs::read_to_string(fixture("raw/answers.csv")).unwrap();
    let mut checked = 0;
    for line in answers.lines().filter(|line| line.starts_with("arrowrs_")) {
        let [file, "ok", answers] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let bytes = fs::read(fixture(&format!("raw/{file}"))).unwrap();
        let filter = SplitBlockFilter::from_bytes(&bytes).unwrap();
        let keys = [added.clone(), absent.clone()].concat();
        let expected: Vec<bool> = answers.bytes().map(|answer| answer == b'1').collect();
        check(filter.view(), &keys, &expected, file);
        checked += keys.len();

        let shape = file.strip_prefix("arrowrs_ndv").unwrap().strip_suffix(".sbbf").unwrap();
        let (distinct_values, rate) = shape.split_once("_fpp").unwrap();
        let mut written =
            SplitBlockFilter::new(distinct_values.parse().unwrap(), rate.parse().unwrap()).unwrap();
        added.iter().for_each(|key| _ = written.insert(key));
        assert!(written.to_bytes() == bytes, "{file}");
        let mut file = Vec::new();
        #[cfg(feature = "std")]
        assert_eq!(written.write_to(&mut file).unwrap(), bytes.len() as u64);
        #[cfg(not(feature = "std"))]
        file.extend(written.to_bytes());
        assert_eq!(file, bytes);
    }
    println!("3 raw filters x {checked} answers checked x {} kernels", Kernel::supported().count());
    assert_eq!(checked, 3 * 1400);
}

/// What a careful reader says of headers that no writer writes; the answers in `answers.csv` are
/// for 20 keys added and 20 absent.
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
        let within = SplitBlockFilter::at(&bytes, 0, None);
        let expected_error = match file {
            "odd_numbytes0.sbbf" => ParquetError::BitsetLength { found: 0 },
            "odd_numbytes33.sbbf" => ParquetError::BitsetLength { found: 33 },
            "odd_huge.sbbf" => ParquetError::BitsetLength { found: i64::from(i32::MAX) },
            "odd_short.sbbf" => ParquetError::Length { found: 56, expected: 16 + 64 },
            "odd_hash_arm2.sbbf" => {
                ParquetError::Unsupported { offset: 7, field: "hash", found: 2 }
            }
            "odd_empty.sbbf" => ParquetError::Truncated { offset: 0 },
            _ => {
                assert!(!verdict.starts_with("ERR"), "{line}");
                let filter = within.unwrap();
                let expected: Vec<bool> = verdict.bytes().map(|answer| answer == b'1').collect();
                check(filter, &keys, &expected, file);
                accepted += 1;
                match file {
                    "odd_trailing.sbbf" => {
                        let error = ParquetError::Length { found: 55, expected: 47 };
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

#[test]
fn sizes_are_arrows() {
    // Bits as arrow-rs gives them, cut to bytes and rounded up to a power of two.
    for (rate, distinct_values, bits) in [
        (0.1, 10, 57),
        (0.01, 10, 96),
        (0.001, 10, 146),
        (0.01, 100, 968),
        (0.1, 1_000, 5_772),
        (0.001, 10_000, 146_076),
        (0.01, 1_000_000, 9_681_526_u64),
        (0.5, 0, 0),
        (0.999, 1, 0),
        (1e-50, 1_000_000_000_000, u64::MAX),
        (1e-300, 1, u64::MAX),
        (1e-300, 0, 0),
        (f64::MIN_POSITIVE, u64::MAX, u64::MAX),
    ] {
        let bytes = (bits / 8).clamp(32, 128 << 20).next_power_of_two();
        let filter = SplitBlockFilter::new(distinct_values, rate).unwrap();
        assert_eq!(filter.view().blocks().len() as u64 * 32, bytes, "{distinct_values} at {rate}");
    }
    for rate in [0.0, -0.0, 1.0, -1.0, 2.0, f64::INFINITY] {
        let error = SplitBlockFilter::new(10, rate).unwrap_err();
        assert_eq!(error, ParquetError::RateOutOfRange { rate });
    }
    assert!(SplitBlockFilter::new(10, f64::NAN).is_err());
    for blocks in [0, 3, 12, u32::MAX] {
        let error = SplitBlockFilter::with_blocks(blocks).unwrap_err();
        assert_eq!(error, ParquetError::NotAPowerOfTwo { blocks });
    }
    let error = SplitBlockFilter::with_blocks(1 << 23).unwrap_err();
    assert_eq!(error, ParquetError::BitsetLength { found: 256 << 20 });
}
