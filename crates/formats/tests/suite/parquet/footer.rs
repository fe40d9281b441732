//! Footers and headers that are made by hand: encryption, other files, and what hostile metadata
//! may try.

use blocked_bloom::Filter;
use blocked_bloom_formats::parquet::ParquetError::Thrift;
use blocked_bloom_formats::parquet::{ParquetError, ParquetFile, PhysicalType, Value, filter_at};
use blocked_bloom_split::thrift::ThriftError::{FieldType, Malformed, MissingField, Truncated};
use blocked_bloom_split::{SplitBlock, SplitBlockError, SplitBlockFilter};

use crate::written::{
    BINARY, FALSE, I32, I64, LIST, MAP, STRUCT, TRUE, binary, list, number, structure,
};

fn metadata(filter_offset: i64, filter_length: i64) -> Vec<u8> {
    structure(&[
        (1, I32, number(2)),
        (3, LIST, list(BINARY, &[binary(b"a.b"), binary("ä".as_bytes())])),
        (14, I64, number(filter_offset)),
        (15, I32, number(filter_length)),
    ])
}

fn footer(columns: &[Vec<u8>]) -> Vec<u8> {
    let row_group = structure(&[(1, LIST, list(STRUCT, columns)), (3, I64, number(10))]);
    structure(&[(4, LIST, list(STRUCT, &[row_group]))])
}

pub(super) fn file(data: &[u8], footer: &[u8], magic: &[u8; 4]) -> Vec<u8> {
    let length = (footer.len() as u32).to_le_bytes();
    [b"PAR1", data, footer, &length, magic].concat()
}

#[test]
fn columns_say_what_leads_to_their_filters() {
    let mut filter = SplitBlockFilter::new(10, 0.01).unwrap();
    filter.insert(5_i64.to_le_bytes());
    let stored = filter.to_bytes();
    let length = stored.len() as i64;
    // Fields of later versions: a bool has no value after its type, and an empty map has no types.
    // The map is last, so that an extra byte read belongs to a field that is checked.
    let later = [(20, TRUE, vec![]), (33, FALSE, vec![]), (40, MAP, vec![0])];
    let known = [(2, I64, number(0)), (3, STRUCT, metadata(4, length))];
    let plain = structure(&[&later[..], &known].concat());
    // An empty list may be one of anything.
    let empty_path = [(1, I32, number(6)), (3, LIST, list(I32, &[]))];
    let no_filter = structure(&[(3, STRUCT, structure(&empty_path))]);
    let encrypted = structure(&[(3, STRUCT, metadata(4 + length, length)), (8, STRUCT, vec![0])]);
    let hidden = structure(&[(8, STRUCT, vec![0]), (9, BINARY, binary(b"secret"))]);
    let elsewhere = structure(&[(1, BINARY, binary(b"part-2")), (3, STRUCT, metadata(4, length))]);
    let bytes = file(&stored, &footer(&[plain, no_filter, encrypted, hidden, elsewhere]), b"PAR1");
    let file = ParquetFile::open(&bytes).unwrap();

    let [row_group] = file.row_groups() else { panic!("{file:?}") };
    assert_eq!(row_group.rows(), 10);
    let column = &row_group.columns()[0];
    assert_eq!((column.path(), column.name()), (["a.b", "ä"].as_slice(), "a.b.ä".to_owned()));
    assert_eq!(column.filter_offset(), Some(4));
    assert_eq!(column.filter_length(), Some(length as i32));
    let hash = column.hash_value(Value::Int64(5)).unwrap();
    let found = file.filter(0, 0).unwrap().unwrap();
    assert_eq!(found, filter.view());
    assert!(found.contains_hash(hash));

    assert_eq!(ParquetFile::open(&bytes.clone()).as_ref(), Ok(&file));
    assert!(row_group.columns()[1..].iter().all(|other| other != column));

    assert_eq!(file.filter(0, 1), Ok(None));
    assert_eq!(row_group.columns()[1].physical_type(), Some(PhysicalType::ByteArray));
    for column in [2, 3] {
        assert_eq!(
            file.filter(0, column),
            Err(ParquetError::EncryptedColumn { row_group: 0, column })
        );
    }
    assert_eq!(row_group.columns()[3].physical_type(), None);
    assert_eq!(file.filter(0, 4), Err(ParquetError::OtherFile { row_group: 0, column: 4 }));
    for (row_group, column) in [(0, 5), (1, 0), (usize::MAX, usize::MAX)] {
        assert_eq!(
            file.filter(row_group, column),
            Err(ParquetError::NoSuchColumn { row_group, column })
        );
    }
}

/// A value of another length is in no filter of the column, whatever the column holds.
#[test]
fn fixed_lengths_come_from_the_schema() {
    let group = structure(&[(4, BINARY, binary(b"root")), (5, I32, number(2))]);
    let leaf = |kind, length| structure(&[(1, I32, number(kind)), (2, I32, number(length))]);
    let column = |kind| structure(&[(3, STRUCT, structure(&[(1, I32, number(kind))]))]);
    let lengths = |schema: &[Vec<u8>], schema_first: bool| {
        let columns = list(STRUCT, &[column(7), column(2), column(7)]);
        let row_group = structure(&[(1, LIST, columns), (3, I64, number(10))]);
        let mut fields = [(2, LIST, list(STRUCT, schema)), (4, LIST, list(STRUCT, &[row_group]))];
        if !schema_first {
            fields.reverse();
        }
        let bytes = file(&[], &structure(&fields), b"PAR1");
        let file = ParquetFile::open(&bytes).unwrap();
        let [first, second, third] = file.row_groups()[0].columns() else { panic!("{file:?}") };
        assert_eq!(second.type_length(), None);
        let error = |found| Err(ParquetError::ValueLength { found, expected: 16 });
        if first.type_length() == Some(16) {
            assert_eq!(first.hash_value(Value::FixedLenByteArray(&[0; 15])), error(15));
            assert_eq!(first.hash_value(Value::FixedLenByteArray(&[])), error(0));
            assert_eq!(
                first.hash_value(Value::ByteArray(&[0; 16])),
                Err(ParquetError::ValueType {
                    found: PhysicalType::ByteArray,
                    expected: PhysicalType::FixedLenByteArray
                })
            );
        }
        let value = Value::FixedLenByteArray(&[0; 16]);
        assert_eq!(first.hash_value(value), Ok(value.hash()));
        [first.type_length(), third.type_length()]
    };
    let schema = [group.clone(), leaf(7, 16), group.clone(), leaf(2, 8), leaf(7, 0)];
    assert_eq!(lengths(&schema, true), [Some(16), Some(0)]);
    assert_eq!(lengths(&schema, false), [Some(16), Some(0)]);
    let without = structure(&[(1, I32, number(7))]);
    let schema = [group.clone(), without, leaf(2, 8), leaf(7, -1)];
    assert_eq!(lengths(&schema, true), [None, None]);
    // A schema of other columns says nothing of these.
    for schema in [
        vec![],
        vec![group.clone(), leaf(7, 15), leaf(2, 0)],
        vec![group.clone(), leaf(7, 15), leaf(7, 15), leaf(7, 15)],
        vec![group.clone(), leaf(7, 15), leaf(2, 0), leaf(99, 15)],
        vec![group, leaf(7, 15), leaf(2, 0), leaf(7, 15), leaf(7, 15)],
    ] {
        assert_eq!(lengths(&schema, true), [None, None]);
    }
    let footer = structure(&[(2, LIST, list(I32, &[number(1)])), (4, LIST, list(STRUCT, &[]))]);
    let error = ParquetFile::open(&file(&[], &footer, b"PAR1")).unwrap_err();
    assert!(matches!(error, Thrift(FieldType { field: "schema", .. })), "{error}");
}

#[test]
fn offsets_and_lengths_of_filters_are_checked() {
    let mut filter = SplitBlockFilter::new(10, 0.01).unwrap();
    filter.insert("a");
    let stored = filter.to_bytes();
    let length = stored.len() as i64;
    let open = |offset, length| {
        let column = structure(&[(3, STRUCT, metadata(offset, length))]);
        let bytes = file(&stored, &footer(&[column]), b"PAR1");
        ParquetFile::open(&bytes).unwrap().filter(0, 0).map(|filter| filter.is_some())
    };
    assert_eq!(open(4, length), Ok(true));
    let end = 4 + stored.len() as u64;
    for offset in [i64::MIN, -1, end as i64, end as i64 + 1, i64::MAX] {
        assert_eq!(open(offset, length), Err(ParquetError::OutsideFile { offset, length: 1, end }));
    }
    for wrong in [0, length - 1, length + 1, i32::MAX.into(), -1, i32::MIN.into()] {
        let error = SplitBlockError::Length { found: wrong.max(0) as u64, expected: length as u64 };
        assert_eq!(open(4, wrong), Err(error.into()));
    }
    assert!(open(5, length).is_err());
    // Into the footer, where no filter can be.
    let bytes = [b"PAR1".as_slice(), &stored[..stored.len() - 1]].concat();
    let error = filter_at(&bytes, 4, None).unwrap_err();
    let end = bytes.len() as u64;
    assert_eq!(error, ParquetError::OutsideFile { offset: 4, length: length as u64, end });
}

#[test]
fn files_that_are_none_are_errors() {
    let good = file(&[], &footer(&[]), b"PAR1");
    assert!(ParquetFile::open(&good).is_ok());
    let encrypted = file(&[], &footer(&[]), b"PARE");
    assert_eq!(ParquetFile::open(&encrypted).unwrap_err(), ParquetError::EncryptedFooter);
    let other = file(&[], &footer(&[]), b"ORC1");
    let error = ParquetFile::open(&other).unwrap_err();
    let offset = other.len() as u64 - 4;
    assert_eq!(error, ParquetError::NotParquet { offset, found: *b"ORC1" });
    for length in 0..12 {
        assert!(ParquetFile::open(&good[..length]).is_err());
    }
    // Magic numbers that overlap, and a footer longer than the file.
    assert!(ParquetFile::open(b"PAR1PAR1").is_err());
    let error = ParquetFile::open(b"PAR1\x01\x00\x00\x00PAR1").unwrap_err();
    assert_eq!(error, ParquetError::FooterLength { found: 1, limit: 0 });
    let error = ParquetFile::open(b"PAR1\xff\xff\xff\xffPAR1").unwrap_err();
    assert_eq!(error, ParquetError::FooterLength { found: u32::MAX, limit: 0 });
}

#[test]
fn hostile_metadata_is_an_error_at_once() {
    let open = |footer: &[u8]| ParquetFile::open(&file(&[], footer, b"PAR1")).unwrap_err();
    // A huge number of row groups, none of them present.
    let many = |kind| [&[LIST, 8, 0xf0 | kind][..], &[0xff; 9], &[1]].concat();
    assert!(matches!(open(&many(STRUCT)), Thrift(Truncated { .. })));
    let (found, expected) = (I64, STRUCT);
    let error = FieldType { offset: 6, field: "row_groups", found, expected };
    assert_eq!(open(&many(I64)), Thrift(error));
    // The same in an unknown field, and in a map.
    for skipped in [
        [&[LIST, 100, 0xf0 | STRUCT][..], &[0xff; 9], &[1]].concat(),
        [&[LIST, 100, 0xf1][..], &[0xff; 9], &[1]].concat(),
        [&[11, 100][..], &[0xff; 9], &[1, 0x55]].concat(),
        [&[BINARY, 100][..], &[0xff; 9], &[1]].concat(),
    ] {
        assert!(matches!(open(&skipped), Thrift(Truncated { .. })), "{skipped:02x?}");
    }
    // Nested as deep as the bytes reach: structures, lists, maps.
    for nested in [[0x1c_u8].repeat(100_000), [0x19, 0x19].repeat(50_000), {
        [[0x1b, 1].as_slice(), &[0xbb, 1].repeat(50_000)].concat()
    }] {
        let error = open(&nested);
        assert!(error.to_string().contains("nested too deeply"), "{error}");
    }
    // Numbers and ids that fit nothing.
    for footer in [
        [&[I64, 100][..], &[0xff; 20]].concat(),
        [&[I64, 100][..], &[0xff; 9], &[2]].concat(),
        [&[I64][..], &number(40_000)].concat(),
        [&[I64][..], &number(32_767), &[0, 0x16, 0]].concat(),
        vec![0x1e, 0],
        vec![0x1f, 0],
    ] {
        assert!(matches!(open(&footer), Thrift(Malformed { .. })), "{footer:02x?}");
    }
    let error = open(&[0]);
    assert!(matches!(error, Thrift(MissingField { field: "row_groups", .. })), "{error}");
    for (column, field) in
        [(structure(&[]), "meta_data"), (structure(&[(3, STRUCT, structure(&[]))]), "type")]
    {
        assert!(matches!(
            open(&footer(&[column])),
            Thrift(MissingField { field: found, .. }) if found == field
        ));
    }
    let column = |type_of_offset| {
        let metadata = structure(&[(1, I32, number(2)), (14, type_of_offset, number(4))]);
        footer(&[structure(&[(3, STRUCT, metadata)])])
    };
    assert!(matches!(open(&column(I32)), Thrift(FieldType { field: "bloom_filter_offset", .. })));
    let unknown_type = structure(&[(1, I32, number(8))]);
    let unknown_type = footer(&[structure(&[(3, STRUCT, unknown_type)])]);
    assert!(matches!(open(&unknown_type), Thrift(Malformed { .. })));
}

/// A file of filters one after another; their offsets and lengths as `claims` has them for the
/// columns, of the given types.
fn claiming(stored: &[Vec<u8>], claims: &[(i64, i64, Option<i64>)]) -> Vec<u8> {
    let columns: Vec<Vec<u8>> = claims
        .iter()
        .map(|&(kind, offset, length)| {
            let mut fields = vec![(1, I32, number(kind)), (14, I64, number(offset))];
            fields.extend(length.map(|length| (15, I32, number(length))));
            structure(&[(3, STRUCT, structure(&fields))])
        })
        .collect();
    file(&stored.concat(), &footer(&columns), b"PAR1")
}

/// Without the check, a column with a damaged offset answers "absent" for present values.
#[test]
fn filters_that_overlap_are_believed_of_no_column() {
    let stored: Vec<Vec<u8>> = (0..4)
        .map(|value: i64| {
            let mut filter = SplitBlockFilter::new(10, 0.01).unwrap();
            filter.insert(value.to_le_bytes());
            filter.to_bytes()
        })
        .collect();
    let length = stored[0].len() as i64;
    let at = |index: i64| 4 + index * length;
    // Whether the filter is the column's own, or which two overlap.
    let look_up = |claims: &[(i64, Option<i64>)]| -> Vec<Result<bool, ParquetError>> {
        let claims: Vec<_> = claims.iter().map(|&(offset, length)| (2, offset, length)).collect();
        let bytes = claiming(&stored, &claims);
        let file = ParquetFile::open(&bytes).unwrap();
        let own = |(i, filter): (usize, Result<Option<SplitBlockFilter<&[SplitBlock]>>, _>)| {
            filter.map(|filter| filter.unwrap().contains((i as i64).to_le_bytes()))
        };
        (0..claims.len()).map(|i| file.filter(0, i)).enumerate().map(own).collect()
    };
    let overlap = |offset, other| Err(ParquetError::Overlapping { offset, other });
    for known in [Some(length), None] {
        let good = [0, 1, 2, 3].map(|i| (at(i), known));
        assert_eq!(look_up(&good), [const { Ok(true) }; 4]);
        // Every column given the offset of every other; in the order of offsets and against it.
        for (damaged, target) in (0..4).flat_map(|i| (0..4).map(move |j| (i, j))) {
            if damaged == target {
                continue;
            }
            let mut claims = good;
            claims[damaged].0 = at(target as i64);
            let answers = look_up(&claims);
            for (column, answer) in answers.into_iter().enumerate() {
                let equal = at(target as i64);
                match column == damaged || column == target {
                    true => assert_eq!(answer, overlap(equal, equal), "{damaged} to {target}"),
                    false => assert_eq!(answer, Ok(true)),
                }
            }
        }
    }
    // One byte too many, or enough for all that follow: nothing tells whether the length or an
    // offset is damaged.
    let mut claims = [0, 1, 2, 3].map(|i| (at(i), Some(length)));
    claims[0].1 = Some(length + 1);
    let others = [overlap(at(0), at(1)), overlap(at(1), at(0)), Ok(true), Ok(true)];
    assert_eq!(look_up(&claims), others);
    claims[0].1 = Some(i32::MAX.into());
    let answers = look_up(&claims);
    assert!((1..4).all(|i| answers[i] == overlap(at(i as i64), at(0))), "{answers:?}");
    assert!(matches!(answers[0], Err(ParquetError::Overlapping { offset: 4, .. })));
    // Of unknown length, and ended by the next one's offset.
    let inside = at(1) + length - 1;
    let answers = look_up(&[(at(0), None), (at(1), None), (inside, None)]);
    assert_eq!(answers[..2], [Ok(true), overlap(at(1), inside)]);
    assert!(answers[2].is_err());
    // Of a length that is not known or nonsense, and at another's offset.
    for nonsense in [None, Some(0), Some(-1), Some(i32::MIN.into())] {
        for claims in [[(at(0), None), (at(0), nonsense)], [(at(0), nonsense), (at(0), None)]] {
            assert_eq!(
                look_up(&claims),
                [overlap(at(0), at(0)), overlap(at(0), at(0))],
                "{nonsense:?}"
            );
        }
    }
    // Ranges outside of the file do not affect other filters.
    let answers =
        look_up(&[(at(0), Some(length)), (-1, Some(i32::MAX.into())), (i64::MAX, Some(1))]);
    assert_eq!(answers[0], Ok(true));
    assert!(
        answers[1..]
            .iter()
            .all(|answer| { matches!(answer, Err(ParquetError::OutsideFile { length: 1, .. })) })
    );
}

/// What "Undetected damage" of `docs/parquet.md` says of filters whose length only their headers
/// have.
#[test]
fn rejects_only_the_filter_that_overlaps_the_next() {
    let own = |value: i64, blocks| {
        let mut filter = SplitBlockFilter::with_blocks(blocks).unwrap();
        filter.insert(value.to_le_bytes());
        filter.to_bytes()
    };
    let small = own(1, 1).len();
    let whole = own(0, 4);
    // All of it; without its last byte; into the second of two others.
    for cut in [whole.len(), whole.len() - 1, whole.len() - small - 1] {
        let stored = [whole[..cut].to_vec(), own(1, 1), own(2, 1), vec![0; 100]];
        let at = [4, 4 + cut, 4 + cut + small].map(|offset| offset as i64);
        for length in [None, Some(small as i64)] {
            let claims = [(2, at[0], None), (2, at[1], length), (2, at[2], length)];
            let bytes = claiming(&stored, &claims);
            let file = ParquetFile::open(&bytes).unwrap();
            let first = file.filter(0, 0).map(|filter| filter.unwrap().contains([0; 8]));
            match cut == whole.len() {
                true => assert_eq!(first, Ok(true)),
                false => {
                    let (offset, other) = (at[0], at[1]);
                    assert_eq!(first, Err(ParquetError::Overlapping { offset, other }));
                }
            }
            for value in [1, 2] {
                let filter = file.filter(0, value).unwrap().unwrap();
                assert!(filter.contains((value as i64).to_le_bytes()));
            }
            // No header at all, right in front of the next.
            let bytes = claiming(&stored, &[(2, at[1] - 1, None), (2, at[1], length)]);
            let file = ParquetFile::open(&bytes).unwrap();
            assert!(file.filter(0, 0).is_err());
            assert!(file.filter(0, 1).unwrap().unwrap().contains(1_i64.to_le_bytes()));
        }
    }
}

/// A writer sets bits for every value. A filter without bits is damaged, unless the metadata says
/// that there are no values.
#[test]
fn a_filter_without_bits_is_an_error_if_there_may_be_values() {
    let stored = SplitBlockFilter::new(10, 0.01).unwrap().to_bytes();
    let open = |rows, values: Option<i64>, nulls: Option<i64>| {
        let mut fields = vec![(1, I32, number(2)), (14, I64, number(4))];
        fields.extend(values.map(|values| (5, I64, number(values))));
        fields.extend(nulls.map(|nulls| (12, STRUCT, structure(&[(3, I64, number(nulls))]))));
        let column = structure(&[(3, STRUCT, structure(&fields))]);
        let row_group = structure(&[(1, LIST, list(STRUCT, &[column])), (3, I64, number(rows))]);
        let footer = structure(&[(4, LIST, list(STRUCT, &[row_group]))]);
        let bytes = file(&stored, &footer, b"PAR1");
        ParquetFile::open(&bytes).unwrap().filter(0, 0).map(|filter| filter.is_some())
    };
    let error = Err(ParquetError::NoBits { row_group: 0, column: 0 });
    assert_eq!(open(10, None, None), error);
    assert_eq!(open(10, Some(10), None), error);
    assert_eq!(open(10, None, Some(10)), error);
    assert_eq!(open(10, Some(10), Some(9)), error);
    assert_eq!(open(10, Some(10), Some(10)), Ok(true));
    assert_eq!(open(0, None, None), Ok(true));
    assert_eq!(open(0, Some(0), None), Ok(true));
}

#[test]
fn columns_of_booleans_have_no_filter() {
    let stored = SplitBlockFilter::new(10, 0.01).unwrap().to_bytes();
    let bytes = claiming(&[stored], &[(0, 4, None)]);
    let file = ParquetFile::open(&bytes).unwrap();
    let error = ParquetError::BooleanColumn { row_group: 0, column: 0 };
    assert_eq!(file.filter(0, 0), Err(error));
    let expected = PhysicalType::Boolean;
    for value in [Value::Int32(1), Value::ByteArray(&[1])] {
        let found = value.physical_type();
        let error = ParquetError::ValueType { found, expected };
        assert_eq!(file.row_groups()[0].columns()[0].hash_value(value), Err(error));
    }
}
