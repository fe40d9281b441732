//! Conditions of predicates.

use datafusion::arrow::array::{ArrayRef, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{Field, Schema, TimeUnit};
use datafusion::physical_expr::expressions::{
    NotExpr, binary, case, cast as cast_to, col, in_list, lit,
};

use super::*;

fn schema() -> Schema {
    Schema::new(vec![
        Field::new("id", DataType::Utf8, true),
        Field::new("other", DataType::Int32, true),
        Field::new("n", DataType::Int32, true),
    ])
}

fn convert(predicate: &Arc<dyn PhysicalExpr>, parts: Parts) -> Condition {
    let resolve = |column: &Column| match (column.name(), column.index()) {
        ("id", 0) => Some((0, DataType::Utf8)),
        ("n", 2) => Some((1, DataType::Int32)),
        _ => None,
    };
    Condition::new(predicate, &resolve, parts).unwrap()
}

fn hash(value: ScalarValue) -> u64 {
    let mut hashes = Vec::new();
    hash_array(&value.to_array().unwrap(), &mut hashes).unwrap();
    hashes[0]
}

fn ids(values: &[&str]) -> Condition {
    let hashes = values.iter().map(|&v| hash(v.into())).collect();
    Condition::OneOf { column: 0, data_type: DataType::Utf8, hashes }
}

fn n(value: i32) -> Condition {
    Condition::OneOf { column: 1, data_type: DataType::Int32, hashes: vec![hash(value.into())] }
}

#[test]
fn predicates_become_required_values() {
    let schema = schema();
    let column = |name: &str| col(name, &schema).unwrap();
    let both = |l, op, r| binary(l, op, r, &schema).unwrap();
    let is = |value: &str| both(column("id"), Operator::Eq, lit(value));
    let n_is = |value: i32| both(lit(value), Operator::Eq, column("n"));
    let other = || both(column("other"), Operator::Eq, lit(1));
    let and = |l, r| both(l, Operator::And, r);
    let or = |l, r| both(l, Operator::Or, r);
    let list = |values: &[Option<&str>], negated| {
        let values = values.iter().map(|v| lit(ScalarValue::from(*v))).collect();
        in_list(column("id"), values, &negated, &schema).unwrap()
    };
    let when = |then: Vec<Arc<dyn PhysicalExpr>>, or_else| {
        let then = then.into_iter().map(|then| (lit(true), then)).collect();
        case(None, then, or_else).unwrap()
    };
    let null = || lit(ScalarValue::Boolean(None));
    let nothing = || lit(ScalarValue::Utf8(None));
    let wide = |to: DataType| cast_to(column("n"), &schema, to).unwrap();
    let dynamic = |predicate: &Arc<dyn PhysicalExpr>| -> Arc<dyn PhysicalExpr> {
        let filter = DynamicFilterPhysicalExpr::new(vec![column("id")], lit(true));
        filter.update(predicate.clone()).unwrap();
        Arc::new(filter)
    };
    for (predicate, expected) in [
        (is("a"), ids(&["a"])),
        (and(is("a"), other()), ids(&["a"])),
        (and(is("a"), n_is(3)), Condition::All(vec![ids(&["a"]), n(3)])),
        (or(is("a"), n_is(3)), Condition::Either(vec![ids(&["a"]), n(3)])),
        (or(is("a"), other()), Condition::Any),
        (or(and(is("a"), other()), is("b")), ids(&["a", "b"])),
        (or(or(is("a"), n_is(3)), is("b")), Condition::Either(vec![ids(&["a", "b"]), n(3)])),
        (
            or(and(is("a"), n_is(3)), is("b")),
            Condition::Either(vec![Condition::All(vec![ids(&["a"]), n(3)]), ids(&["b"])]),
        ),
        (list(&[Some("a"), None, Some("b")], false), ids(&["a", "b"])),
        (list(&[None], false), Condition::Never),
        (list(&[Some("a")], true), Condition::Any),
        (Arc::new(NotExpr::new(is("a"))), Condition::Any),
        (both(column("id"), Operator::NotEq, lit("a")), Condition::Any),
        (both(column("id"), Operator::Lt, lit("a")), Condition::Any),
        (both(column("id"), Operator::IsDistinctFrom, lit("a")), Condition::Any),
        (both(column("id"), Operator::IsNotDistinctFrom, lit("a")), ids(&["a"])),
        (both(column("id"), Operator::IsNotDistinctFrom, nothing()), Condition::Any),
        (both(column("id"), Operator::Eq, nothing()), Condition::Any),
        (or(null(), is("a")), ids(&["a"])),
        (and(null(), is("a")), Condition::Never),
        (when(vec![is("a"), is("b")], None), ids(&["a", "b"])),
        (when(vec![is("a")], Some(lit(true))), Condition::Any),
        (when(vec![is("a")], Some(lit(false))), ids(&["a"])),
        (both(wide(DataType::Int64), Operator::Eq, lit(3i64)), n(3)),
        (both(wide(DataType::Int8), Operator::Eq, lit(3i8)), Condition::Any),
        (both(wide(DataType::Float64), Operator::Eq, lit(3.0)), n(3)),
        (dynamic(&is("a")), ids(&["a"])),
    ] {
        assert_eq!(convert(&predicate, Parts::All), expected, "{predicate}");
    }
    let chain = |values: usize| (0..values).map(|v| is(&v.to_string())).reduce(or).unwrap();
    let nested = |levels: usize| {
        (0..levels).fold(is("a"), |all, level| match level % 2 {
            0 => and(or(all, is("b")), other()),
            _ => or(and(all, other()), is("b")),
        })
    };
    assert_eq!(convert(&nested(10), Parts::All).is_looked_up(), Ok(true));
    assert_eq!(convert(&nested(2 * MAX_DEPTH), Parts::All), Condition::Any);
    assert_eq!(convert(&chain(MAX_VALUES), Parts::All).is_looked_up(), Ok(true));
    let too_many = "4097 values are not looked up (at most 4096)".to_string();
    assert_eq!(convert(&chain(MAX_VALUES + 1), Parts::All).is_looked_up(), Err(too_many));
    assert_eq!(
        (Condition::Any.is_looked_up(), Condition::Never.is_looked_up()),
        (Ok(false), Ok(false))
    );
    let mixed = and(is("a"), dynamic(&is("b")));
    assert_eq!(convert(&mixed, Parts::Planned), ids(&["a"]));
    assert_eq!(convert(&mixed, Parts::Dynamic), ids(&["b"]));
    assert_eq!(convert(&mixed, Parts::All), Condition::All(vec![ids(&["a"]), ids(&["b"])]));
}

/// For every listed pair of types, a value and its cast have the same hash.
#[test]
fn casts_that_keep_keys_keep_hashes() {
    use DataType::*;
    let plain_types = "Boolean Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 UInt64 Float16 \
         Float32 Float64 Utf8 LargeUtf8 Utf8View Binary LargeBinary BinaryView Date32 Date64";
    let plain_types = plain_types.split(' ').map(|name| name.parse::<DataType>().unwrap());
    let zone = |zone: &str| Timestamp(TimeUnit::Millisecond, Some(zone.into()));
    let others = [
        FixedSizeBinary(3),
        Timestamp(TimeUnit::Second, None),
        Timestamp(TimeUnit::Millisecond, None),
        zone("UTC"),
        zone("+02:00"),
        Duration(TimeUnit::Second),
        Decimal128(9, 2),
        Decimal128(20, 2),
        Decimal128(20, 3),
        Decimal256(40, 2),
        Dictionary(Int32.into(), Utf8.into()),
        Dictionary(Int8.into(), Int16.into()),
    ];
    let types: Vec<DataType> = plain_types.chain(others).collect();
    let texts = ["0", "1", "-1", "-0.0", "1.5", "100", "255", "NaN", "200", "65536", "abc"];
    let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
    let (mut kept, mut compared) = (0, 0);
    for from in &types {
        // Dates and timestamps are also made from numbers.
        let direct = cast(&texts, value_type(from));
        let numbers = || cast(&cast(&texts, &Int64).unwrap(), value_type(from));
        let Ok(values) = direct.or_else(|_| numbers()).and_then(|v| cast(&v, from)) else {
            continue;
        };
        for to in types.iter().filter(|to| keeps_keys(from, to)) {
            kept += 1;
            assert_eq!(KeyType::new(from).unwrap(), KeyType::new(to).unwrap());
            let cast = cast(&values, to).unwrap();
            let (mut before, mut after) = (Vec::new(), Vec::new());
            hash_array(&values, &mut before).unwrap();
            hash_array(&cast, &mut after).unwrap();
            for row in (0..cast.len()).filter(|&row| cast.is_valid(row)) {
                assert_eq!(before[row], after[row], "{from} to {to}, row {row}");
                compared += 1;
            }
        }
    }
    assert!(kept > 70 && compared > 400, "{kept} pairs, {compared} values");
    for (from, to) in [
        (Int32, Boolean),
        (Int64, Int32),
        (Int32, UInt32),
        (UInt64, Int64),
        (Int32, Utf8),
        (Int64, Float64),
        (Float64, Float32),
        (Date32, Date64),
        (Decimal128(20, 2), Decimal128(9, 2)),
        (Decimal128(9, 2), Decimal128(20, 3)),
        (Timestamp(TimeUnit::Second, None), Timestamp(TimeUnit::Millisecond, None)),
        (Timestamp(TimeUnit::Millisecond, None), zone("UTC")),
    ] {
        assert!(!keeps_keys(&from, &to), "{from} to {to}");
    }
}
