//! The hashes of every key type: golden values, which docs/datafusion.md also lists, and
//! their canonical forms.

use std::sync::Arc;

use blocked_bloom::{KeyHash, KeyHasher};
use blocked_bloom_datafusion::{KeyType, hash_array};
use datafusion::arrow::array::*;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::*;

const DOCUMENT: &str = include_str!("../../../../docs/datafusion.md");

fn hash_of(array: ArrayRef) -> u64 {
    let mut hashes = vec![1, 2, 3];
    let nulls = hash_array(&array, &mut hashes).unwrap();
    assert_eq!((hashes.len(), nulls.map_or(0, |n| n.null_count())), (1, 0), "{array:?}");
    hashes[0]
}

fn int(value: i64, to: &DataType) -> ArrayRef {
    cast(&(Arc::new(Int64Array::from(vec![value])) as ArrayRef), to).unwrap()
}

/// Returns values of each key type, with the seed and the hashed bytes.
fn goldens() -> Vec<(&'static str, ArrayRef, u64, Vec<u8>)> {
    use TimeUnit::*;
    let number = |value: i64| value.to_le_bytes().to_vec();
    let timestamp =
        |unit, zone: Option<&str>| int(7, &DataType::Timestamp(unit, zone.map(Into::into)));
    let decimal = Decimal128Array::from(vec![150]).with_precision_and_scale(10, 2).unwrap();
    let text: ArrayRef = Arc::new(StringArray::from(vec!["apple"]));
    let field =
        |name: &str, array: &ArrayRef| Arc::new(Field::new(name, array.data_type().clone(), true));
    let seven = int(7, &DataType::Int32);
    let both: ArrayRef = Arc::new(StructArray::from(vec![
        (field("a", &seven), seven.clone()),
        (field("b", &text), text.clone()),
    ]));
    let seeds: Vec<u8> = [1_u64, 3].iter().flat_map(|seed| seed.to_le_bytes()).collect();
    let parts = [KeyHasher::with_seed(1).hash(number(7)), KeyHasher::with_seed(3).hash("apple")];
    let parts: Vec<u8> = parts.iter().flat_map(|hash| hash.to_le_bytes()).collect();
    vec![
        ("Int32 7", seven, 1, number(7)),
        ("Int64 -7", int(-7, &DataType::Int64), 1, number(-7)),
        ("Boolean true", Arc::new(BooleanArray::from(vec![true])), 1, number(1)),
        ("Float64 1.5", Arc::new(Float64Array::from(vec![1.5])), 2, 1.5_f64.to_le_bytes().into()),
        ("Float64 -0.0", Arc::new(Float64Array::from(vec![-0.0])), 2, vec![0; 8]),
        (
            "Float64 NaN",
            Arc::new(Float64Array::from(vec![-f64::NAN])),
            2,
            vec![0, 0, 0, 0, 0, 0, 0xf8, 0x7f],
        ),
        ("Utf8 apple", text, 3, b"apple".into()),
        ("Binary, empty", Arc::new(BinaryArray::from(vec![b"".as_slice()])), 3, vec![]),
        (
            "Date32 7",
            int(7, &DataType::Int32).pipe(|a| cast(&a, &DataType::Date32).unwrap()),
            4,
            number(7),
        ),
        (
            "Date64 7",
            int(7, &DataType::Int64).pipe(|a| cast(&a, &DataType::Date64).unwrap()),
            5,
            number(7),
        ),
        ("Timestamp(s) 7", timestamp(Second, None), 6, number(7)),
        ("Timestamp(us) 7", timestamp(Microsecond, None), 6 + 512, number(7)),
        ("Timestamp(ns, UTC) 7", timestamp(Nanosecond, Some("UTC")), 6 + 768 + 4096, number(7)),
        ("Time64(us) 7", int(7, &DataType::Time64(Microsecond)), 7 + 512, number(7)),
        ("Duration(ms) 7", int(7, &DataType::Duration(Millisecond)), 8 + 256, number(7)),
        ("Decimal128(10, 2) 1.50", Arc::new(decimal), 9 + 512, 150_i128.to_le_bytes().into()),
        ("struct(Int32 7, Utf8 apple)", both, KeyHasher::default().hash(seeds), parts),
    ]
}

trait Pipe: Sized {
    fn pipe<T>(self, f: impl FnOnce(Self) -> T) -> T {
        f(self)
    }
}
impl Pipe for ArrayRef {}

#[test]
fn hashes_match_the_document() {
    let mut table = String::new();
    for (value, array, seed, bytes) in goldens() {
        let key = KeyType::new(array.data_type()).unwrap();
        assert_eq!(key.key_hash(), KeyHash::Xxh3 { seed }, "{value}");
        let hash = hash_of(array);
        assert_eq!(hash, KeyHasher::with_seed(seed).hash(bytes), "{value}");
        table += &format!("{value:<30} {seed:<20} {hash:016x}\n");
    }
    assert!(DOCUMENT.contains(&table), "docs/datafusion.md has not this table:\n{table}");
}

#[test]
fn equal_values_have_equal_hashes_in_every_layout() {
    use DataType::*;
    for (value, types) in [(1, &[Boolean, Int8, Int16, Int32, UInt8, UInt16, UInt32, UInt64][..])] {
        for to in types {
            assert_eq!(hash_of(int(value, to)), hash_of(int(value, &Int64)), "{to}");
        }
    }
    for to in [Int8, Int16, Int32] {
        assert_eq!(hash_of(int(-5, &to)), hash_of(int(-5, &Int64)), "{to}");
    }
    for to in [Float16, Float32] {
        assert_eq!(hash_of(int(-5, &to)), hash_of(int(-5, &Float64)), "{to}");
    }
    let zero = |z: f32| hash_of(Arc::new(Float32Array::from(vec![z])));
    assert_eq!(zero(0.0), zero(-0.0));
    assert_eq!(zero(f32::NAN), hash_of(Arc::new(Float64Array::from(vec![-f64::NAN]))));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a string of more than twelve bytes"]));
    let dictionary = |values: DataType| Dictionary(Box::new(UInt16), Box::new(values));
    for to in [LargeUtf8, Utf8View, Binary, LargeBinary, BinaryView, dictionary(Utf8)] {
        assert_eq!(hash_of(cast(&text, &to).unwrap()), hash_of(text.clone()), "{to}");
    }
    let fixed = FixedSizeBinaryArray::try_from_iter(["0123".as_bytes()].into_iter()).unwrap();
    assert_eq!(hash_of(Arc::new(fixed)), hash_of(Arc::new(StringArray::from(vec!["0123"]))));
    for to in [Decimal32(9, 2), Decimal64(18, 2), Decimal256(50, 2)] {
        assert_eq!(hash_of(int(-5, &to)), hash_of(int(-5, &Decimal128(20, 2))), "{to}");
    }
    assert_eq!(hash_of(int(7, &dictionary(Int32))), hash_of(int(7, &Int64)));
}

#[test]
fn different_units_and_scales_are_different_keys() {
    use DataType::*;
    let zone = |zone: &str| Timestamp(TimeUnit::Second, Some(zone.into()));
    assert_eq!(KeyType::new(&zone("UTC")).unwrap(), KeyType::new(&zone("+02:00")).unwrap());
    let types = [
        Int64,
        Float64,
        Utf8,
        Date32,
        Date64,
        Timestamp(TimeUnit::Second, None),
        Timestamp(TimeUnit::Nanosecond, None),
        zone("UTC"),
        Time32(TimeUnit::Second),
        Duration(TimeUnit::Second),
        Decimal128(10, 2),
        Decimal128(10, 3),
        Decimal128(10, -2),
    ];
    for (i, a) in types.iter().enumerate() {
        for b in &types[..i] {
            assert_ne!(KeyType::new(a).unwrap(), KeyType::new(b).unwrap(), "{a} {b}");
        }
    }
    let list = List(Arc::new(Field::new_list_field(Int64, true)));
    for refused in [Null, list, Interval(IntervalUnit::DayTime)] {
        let error = KeyType::new(&refused).unwrap_err().to_string();
        assert!(error.contains("cannot be keys"), "{error}");
    }
}

/// Arrays of every length, and slices with any start, have the hashes of their single values.
#[test]
fn batches_and_slices_are_hashed_as_single_values() {
    let numbers: ArrayRef =
        Arc::new(Int64Array::from_iter((0..2100).map(|i| (i % 7 != 3).then_some(i * 37 - 500))));
    let to = [
        DataType::Int64,
        DataType::Int32,
        DataType::UInt16,
        DataType::Boolean,
        DataType::Float32,
        DataType::Decimal128(20, 1),
        DataType::Decimal256(50, 1),
        DataType::Utf8,
        DataType::LargeUtf8,
        DataType::Utf8View,
        DataType::Timestamp(TimeUnit::Millisecond, None),
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
    ];
    let (mut hashes, mut one) = (Vec::new(), Vec::new());
    for to in to {
        let array = cast(&numbers, &to).unwrap();
        for (offset, len) in [(0, 2100), (1, 1025), (3, 63), (65, 257), (1030, 0), (2099, 1)] {
            let slice = array.slice(offset, len);
            let nulls = hash_array(&slice, &mut hashes).unwrap();
            assert_eq!(hashes.len(), len);
            for (i, hash) in hashes.iter().enumerate() {
                let single = array.slice(offset + i, 1);
                hash_array(&single, &mut one).unwrap();
                let null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(i));
                assert_eq!(null, single.logical_nulls().is_some_and(|n| n.is_null(0)), "{to}");
                assert!(null || *hash == one[0], "{to} at {offset} + {i}");
            }
        }
    }
}

#[test]
fn a_struct_with_a_null_field_is_null() {
    let a: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3), Some(4)]));
    let b: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), Some("y"), None, Some("x")]));
    let fields = [("a", a), ("b", b)]
        .map(|(name, array)| (Arc::new(Field::new(name, array.data_type().clone(), true)), array));
    let both: ArrayRef = Arc::new(StructArray::from(fields.to_vec()));
    let mut hashes = Vec::new();
    let nulls = hash_array(&both, &mut hashes).unwrap().unwrap();
    assert_eq!(nulls.iter().collect::<Vec<_>>(), [true, false, false, true]);
    assert_ne!(hashes[0], hashes[3]);
    let nulls = hash_array(&both.slice(2, 2), &mut hashes).unwrap().unwrap();
    assert_eq!(nulls.iter().collect::<Vec<_>>(), [false, true]);
}
