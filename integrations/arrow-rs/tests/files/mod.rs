//! Files that `parquet` writes, and those of other writers: the same filters, found by both.

use std::fs;
use std::sync::Arc;

use blocked_bloom::Filter;
use blocked_bloom_formats::parquet::{ParquetFile, Value};
use blocked_bloom_split::SplitBlockFilter;
use bytes::Bytes;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::file::properties::{ReaderProperties, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::serialized_reader::ReadOptionsBuilder;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::{fixtures, stored};

/// Compares the filters that both readers find, and returns their number.
fn compare(bytes: Vec<u8>) -> usize {
    let properties = ReaderProperties::builder().set_read_bloom_filter(true).build();
    let options = ReadOptionsBuilder::new().with_reader_properties(properties).build();
    let ours = ParquetFile::open(&bytes).unwrap();
    let theirs =
        SerializedFileReader::new_with_options(Bytes::from(bytes.clone()), options).unwrap();
    assert_eq!(ours.row_groups().len(), theirs.num_row_groups());
    let mut filters = 0;
    for (number, row_group) in ours.row_groups().iter().enumerate() {
        let of_theirs = theirs.get_row_group(number).unwrap();
        for column in 0..row_group.columns().len() {
            let ours = ours.filter(number, column).unwrap();
            let theirs = of_theirs.get_column_bloom_filter(column);
            assert_eq!(ours.is_some(), theirs.is_some(), "row group {number}, column {column}");
            let Some((ours, theirs)) = ours.zip(theirs) else { continue };
            let (opened, stored) = (ours.to_filter().unwrap(), stored(theirs));
            assert!(opened.to_bytes() == stored);
            for value in -5_000..20_000_i64 {
                let hash = Value::Int64(value).hash();
                assert_eq!(ours.contains_hash(hash), theirs.check(&value));
            }
            filters += 1;
        }
    }
    filters
}

#[test]
fn files_of_other_writers_have_the_same_filters() {
    let mut found = Vec::new();
    for entry in fs::read_dir(fixtures()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "parquet") {
            found.push(compare(fs::read(path).unwrap()));
        }
    }
    found.sort_unstable();
    assert!(found.len() >= 5 && found.iter().sum::<usize>() >= 43, "{found:?}");
}

/// What `parquet` writes has the bits of a filter that is filled and folded here.
#[test]
fn a_file_of_theirs_has_our_bytes() {
    let text =
        "message m { required int32 a; required int64 b; required double c; required binary d; }";
    let schema = Arc::new(parse_message_type(text).unwrap());
    for (max_ndv, fpp) in [(3_000, 0.01), (1_000_000, 0.01), (1_000_000, 0.05), (10, 0.2)] {
        let properties = WriterProperties::builder()
            .set_bloom_filter_enabled(true)
            .set_bloom_filter_fpp(fpp)
            .set_bloom_filter_max_ndv(max_ndv)
            .set_dictionary_enabled(false)
            .build();
        let mut bytes = Vec::new();
        let mut writer =
            SerializedFileWriter::new(&mut bytes, Arc::clone(&schema), Arc::new(properties))
                .unwrap();
        let rows = 0..3_000_i64;
        let number = |row: i64| row.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed());
        let text = |row: i64| format!("row {row}");
        let mut row_group = writer.next_row_group().unwrap();
        macro_rules! column {
            ($type:ty, $value:expr) => {{
                let mut column = row_group.next_column().unwrap().unwrap();
                let values: Vec<_> = rows.clone().map($value).collect();
                column.typed::<$type>().write_batch(&values, None, None).unwrap();
                column.close().unwrap();
            }};
        }
        column!(Int32Type, |row| number(row) as i32);
        column!(Int64Type, number);
        column!(DoubleType, |row| number(row) as f64);
        column!(ByteArrayType, |row| ByteArray::from(text(row).as_str()));
        row_group.close().unwrap();
        writer.close().unwrap();

        let file = ParquetFile::open(&bytes).unwrap();
        let hash = |column: usize, row: i64| match column {
            0 => Value::Int32(number(row) as i32).hash(),
            1 => Value::Int64(number(row)).hash(),
            2 => Value::Double(number(row) as f64).hash(),
            _ => Value::ByteArray(text(row).as_bytes()).hash(),
        };
        for column in 0..4 {
            let written = file.filter(0, column).unwrap().unwrap();
            let mut filter = SplitBlockFilter::new(max_ndv, fpp).unwrap();
            let hashes: Vec<u64> = rows.clone().map(|row| hash(column, row)).collect();
            filter.insert_hashes(&hashes);
            filter.shrink_to_false_positive_rate(fpp);
            assert_eq!(written, filter, "column {column}, {max_ndv} values at {fpp}");
        }
        assert_eq!(compare(bytes), 4);
    }
}
