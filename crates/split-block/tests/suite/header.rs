//! Headers are read as Thrift, field by field, with any fields between them.

use blocked_bloom_split::thrift::{Reader, ThriftError};
use blocked_bloom_split::{SplitBlockError, SplitBlockFilter};

use crate::written::{BINARY, I32, I64, LIST, STRUCT, binary, list, number, structure};

#[test]
fn headers_are_read_as_thrift_and_checked_field_by_field() {
    let arm = |id: i64| structure(&[(id, STRUCT, vec![0])]);
    let header = |fields: &[(i64, u8, Vec<u8>)]| {
        let mut bytes = structure(fields);
        bytes.extend([0; 32]);
        bytes
    };
    let open =
        |bytes: &[u8]| SplitBlockFilter::from_bytes(bytes).map(|filter| filter.blocks().len());
    let fields =
        [(1, I32, number(32)), (2, STRUCT, arm(1)), (3, STRUCT, arm(1)), (4, STRUCT, arm(1))];
    assert_eq!(open(&header(&fields)), Ok(1));
    // In any order, with unknown fields of every type between and inside them.
    let unknown = [
        (9, 1, vec![]),
        (9, 2, vec![]),
        (9, 3, vec![7]),
        (9, 4, number(-300)),
        (9, 7, vec![1; 8]),
        (9, BINARY, binary(b"text")),
        (9, LIST, list(1, &[vec![1], vec![2]])),
        (9, 10, list(7, &[vec![0; 8]])),
        (9, 11, vec![0]),
        (9, 11, [vec![2, 0x58], number(1), binary(b"a"), number(2), binary(b"b")].concat()),
        (9, 13, vec![3; 16]),
        (9, STRUCT, arm(-5)),
    ];
    let mut shuffled = fields.to_vec();
    shuffled.reverse();
    shuffled.extend(unknown.clone());
    shuffled.rotate_left(3);
    assert_eq!(open(&header(&shuffled)), Ok(1));
    let mut inside = fields.to_vec();
    inside[2].2 = structure(&[(1, STRUCT, structure(&unknown))]);
    assert_eq!(open(&header(&inside)), Ok(1));

    for (missing, name) in ["numBytes", "algorithm", "hash", "compression"].into_iter().enumerate()
    {
        let mut fields = fields.to_vec();
        let (id, kind, _) = fields.remove(missing);
        let error = open(&header(&fields)).unwrap_err();
        let is_missing = |error: &SplitBlockError| {
            matches!(
                error,
                SplitBlockError::Thrift(ThriftError::MissingField { field, .. }) if *field == name
            )
        };
        assert!(is_missing(&error), "{error}");
        // The wrong type.
        fields.push((id, if kind == I32 { I64 } else { I32 }, number(32)));
        let error = open(&header(&fields)).unwrap_err();
        assert!(
            matches!(
                error,
                SplitBlockError::Thrift(ThriftError::FieldType { field, .. }) if field == name
            ),
            "{error}"
        );
        if kind == STRUCT {
            for (arms, found) in [(arm(2), 2), (arm(-1), -1)] {
                fields.pop();
                fields.push((id, STRUCT, arms));
                let error = open(&header(&fields)).unwrap_err();
                assert!(matches!(
                    error,
                    SplitBlockError::Unsupported { field, found: arm, .. }
                        if field == name && arm == found
                ));
            }
            fields.pop();
            fields.push((id, STRUCT, vec![0]));
            let error = open(&header(&fields)).unwrap_err();
            assert!(is_missing(&error), "{error}");
        }
    }
    for found in [0, -32, 1, 8, 16, 31, 33, 40, 48, i32::MAX.into(), i32::MIN.into()] {
        let mut fields = fields.to_vec();
        fields[0].2 = number(found);
        assert_eq!(open(&header(&fields)), Err(SplitBlockError::BitsetLength { found }));
    }
    // Larger filters than Arrow's are read if the bytes exist.
    for found in [(128 << 20) + 32, i64::from(i32::MAX) - 31] {
        let mut fields = fields.to_vec();
        fields[0].2 = number(found);
        assert!(matches!(open(&header(&fields)), Err(SplitBlockError::Length { .. })));
    }
    let mut wide = fields.to_vec();
    wide[0].2 = number(i64::from(i32::MAX) + 1);
    assert!(matches!(
        open(&header(&wide)),
        Err(SplitBlockError::Thrift(ThriftError::Malformed { .. }))
    ));
}

/// A number that does not fit is an error, and not truncated.
#[test]
fn numbers_have_64_bits() {
    let read = |last: &[u8]| Reader::new(&[&[0xff; 9], last].concat(), 5).i64();
    assert_eq!(read(&[1]), Ok(i64::MIN));
    for last in [&[2][..], &[3], &[0x7f], &[0x81, 0], &[0xff, 1]] {
        let problem = "a number does not fit 64 bits";
        assert_eq!(read(last), Err(ThriftError::Malformed { offset: 5, problem }), "{last:?}");
    }
}
