//! Logical types of columns: the union `LogicalType` and the older `ConvertedType` of
//! `parquet.thrift`.

use blocked_bloom_formats::parquet::LogicalType::{
    self, Decimal, Integer, Time, Timestamp, Unknown,
};
use blocked_bloom_formats::parquet::ParquetFile;
use blocked_bloom_formats::parquet::TimeUnit::{Micros, Millis, Nanos};
use blocked_bloom_split::thrift::I8;

use super::footer::file;
use crate::written::{FALSE, I32, I64, LIST, STRUCT, TRUE, list, number, structure};

/// A field of a structure in compact Thrift.
type Field = (i64, u8, Vec<u8>);

/// The logical type of the only column of a file, whose schema has these fields and a type.
fn read(fields: &[Field]) -> Option<LogicalType> {
    let leaf = [&[(1, I32, number(2))], fields].concat();
    let column = structure(&[(3, STRUCT, structure(&[(1, I32, number(2))]))]);
    let row_group = structure(&[(1, LIST, list(STRUCT, &[column])), (3, I64, number(10))]);
    let schema = list(STRUCT, &[structure(&[(5, I32, number(1))]), structure(&leaf)]);
    let footer = structure(&[(2, LIST, schema), (4, LIST, list(STRUCT, &[row_group]))]);
    let bytes = file(&[], &footer, b"PAR1");
    ParquetFile::open(&bytes).unwrap().row_groups()[0].columns()[0].logical_type()
}

/// The field `logicalType` with this member of the union.
fn union(id: i64, member: &[Field]) -> Field {
    (10, STRUCT, structure(&[(id, STRUCT, structure(member))]))
}

fn converted(number_of_type: i64) -> Field {
    (6, I32, number(number_of_type))
}

#[test]
fn members_of_the_union_have_their_parameters() {
    let unit = |id| (2, STRUCT, structure(&[(id, STRUCT, vec![0])]));
    let (utc, local) = ((1, TRUE, vec![]), (1, FALSE, vec![]));
    let integer = |bits: i8, sign| union(10, &[(1, I8, vec![bits as u8]), (2, sign, vec![])]);
    for (field, expected) in [
        (union(1, &[]), LogicalType::String),
        (union(4, &[]), LogicalType::Enum),
        (union(6, &[]), LogicalType::Date),
        (union(11, &[]), Unknown),
        (union(12, &[]), LogicalType::Json),
        (union(13, &[]), LogicalType::Bson),
        (union(14, &[]), LogicalType::Uuid),
        (union(15, &[]), LogicalType::Float16),
        (union(7, &[utc.clone(), unit(1)]), Time(Millis)),
        (union(7, &[local.clone(), unit(2)]), Time(Micros)),
        (union(7, &[local.clone(), unit(3)]), Time(Nanos)),
        (union(7, &[local.clone(), unit(4)]), Unknown),
        (union(7, std::slice::from_ref(&utc)), Unknown),
        (union(8, &[utc.clone(), unit(1)]), Timestamp { unit: Millis, is_utc: true }),
        (union(8, &[local.clone(), unit(2)]), Timestamp { unit: Micros, is_utc: false }),
        (union(8, &[utc.clone(), unit(3)]), Timestamp { unit: Nanos, is_utc: true }),
        (union(8, &[local, unit(3)]), Timestamp { unit: Nanos, is_utc: false }),
        (integer(8, TRUE), Integer { bits: 8, is_signed: true }),
        (integer(16, FALSE), Integer { bits: 16, is_signed: false }),
        (integer(32, FALSE), Integer { bits: 32, is_signed: false }),
        (integer(64, TRUE), Integer { bits: 64, is_signed: true }),
        (integer(24, TRUE), Unknown),
    ] {
        assert_eq!(read(std::slice::from_ref(&field)), Some(expected), "{field:?}");
    }
}

/// The scale has the lower id in the union, and in a schema's element.
#[test]
fn decimals_have_their_scale() {
    for (scale, precision, expected) in [
        (2, 9, Decimal { precision: 9, scale: 2 }),
        (0, 1, Decimal { precision: 1, scale: 0 }),
        (38, 38, Decimal { precision: 38, scale: 38 }),
        (9, 2, Unknown),
        (0, 0, Unknown),
        (-1, 5, Unknown),
    ] {
        let member = [(1, I32, number(scale)), (2, I32, number(precision))];
        assert_eq!(read(&[union(5, &member)]), Some(expected), "{scale} of {precision}");
        let element = [converted(5), (7, I32, number(scale)), (8, I32, number(precision))];
        assert_eq!(read(&element), Some(expected), "{scale} of {precision}");
    }
    // Without a scale it is 0.
    let whole = Decimal { precision: 7, scale: 0 };
    assert_eq!(read(&[converted(5), (8, I32, number(7))]), Some(whole));
}

#[test]
fn converted_types_are_those_of_the_enumeration() {
    let integer = |bits, is_signed| Some(Integer { bits, is_signed });
    for (found, expected) in [
        (0, Some(LogicalType::String)),
        (1, None),
        (2, None),
        (3, None),
        (4, Some(LogicalType::Enum)),
        (6, Some(LogicalType::Date)),
        (7, Some(Time(Millis))),
        (8, Some(Time(Micros))),
        (9, Some(Timestamp { unit: Millis, is_utc: true })),
        (10, Some(Timestamp { unit: Micros, is_utc: true })),
        (11, integer(8, false)),
        (12, integer(16, false)),
        (13, integer(32, false)),
        (14, integer(64, false)),
        (15, integer(8, true)),
        (16, integer(16, true)),
        (17, integer(32, true)),
        (18, integer(64, true)),
        (19, Some(LogicalType::Json)),
        (20, Some(LogicalType::Bson)),
        (21, Some(LogicalType::Interval)),
        (22, Some(Unknown)),
        (-1, Some(Unknown)),
    ] {
        assert_eq!(read(&[converted(found)]), expected, "{found}");
    }
    assert_eq!(read(&[]), None);
}

/// Writers store both. A timestamp in no time zone has a converted type that says UTC.
#[test]
fn the_union_is_believed_before_the_converted_type() {
    let unit = (2, STRUCT, structure(&[(2, STRUCT, vec![0])]));
    let local = union(8, &[(1, FALSE, vec![]), unit]);
    let expected = Some(Timestamp { unit: Micros, is_utc: false });
    assert_eq!(read(&[converted(10), local]), expected);
    // A member that no release knew is not what its converted type says.
    assert_eq!(read(&[converted(0), union(100, &[])]), Some(Unknown));
}
