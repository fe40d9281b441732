//! What a predicate says of indexed columns: which values a row group must have for the predicate
//! to be true of one of its rows.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, DynamicFilterPhysicalExpr, InListExpr, Literal,
};

use crate::keys::{KeyType, hash_array};
use crate::predicates::operands;

/// How many values of a list are looked up. Longer lists leave few row groups out, and every value
/// costs a lookup.
const MOST_VALUES: usize = 4096;

/// How deep predicates are looked into, chains of AND and OR being one level.
const MOST_DEPTH: usize = 64;

/// A formula over columns of an index. Each row for which the predicate is true satisfies it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Need {
    /// Any row may satisfy it: nothing is known.
    Any,
    /// No row does.
    Never,
    /// The column has one of the values with these hashes.
    OneOf {
        /// The column, by its number among those of the index.
        column: usize,
        /// Its type in the table, whose values have been compared.
        data_type: DataType,
        hashes: Vec<u64>,
    },
    /// All of these are satisfied: at least two, of which none is `Any` or `Never`.
    All(Vec<Need>),
    /// One of these is satisfied: as for `All`.
    Either(Vec<Need>),
}

/// The number of a column in the index, and its type in the table, by its name and its position.
pub(crate) type Resolve<'a> = &'a dyn Fn(&Column) -> Option<(usize, DataType)>;

/// Which parts of a predicate count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    /// What was known when the query was planned.
    Planned,
    /// What operators fill in while the query runs.
    Dynamic,
    All,
}

impl Need {
    /// What a predicate over a table needs.
    pub(crate) fn of(
        predicate: &Arc<dyn PhysicalExpr>,
        resolve: Resolve<'_>,
        parts: Parts,
    ) -> Result<Need> {
        Need::below(predicate, resolve, parts, MOST_DEPTH)
    }

    fn below(
        predicate: &Arc<dyn PhysicalExpr>,
        resolve: Resolve<'_>,
        parts: Parts,
        depth: usize,
    ) -> Result<Need> {
        let Some(depth) = depth.checked_sub(1) else { return Ok(Need::Any) };
        let of = |predicate, parts| Need::below(predicate, resolve, parts, depth);
        if let Some(filter) = predicate.downcast_ref::<DynamicFilterPhysicalExpr>() {
            return match parts {
                Parts::Planned => Ok(Need::Any),
                Parts::Dynamic | Parts::All => of(&filter.current()?, Parts::All),
            };
        }
        let binary = predicate.downcast_ref::<BinaryExpr>();
        if let Some(binary) = binary.filter(|binary| *binary.op() == Operator::And) {
            let operands = operands(binary).into_iter();
            return Need::all(operands.map(|operand| of(operand, parts)));
        }
        if parts == Parts::Dynamic {
            return Ok(Need::Any);
        }
        if let Some(literal) = predicate.downcast_ref::<Literal>() {
            return Ok(match literal.value() {
                ScalarValue::Boolean(Some(true)) => Need::Any,
                // A row is kept only where the predicate is true.
                ScalarValue::Boolean(Some(false) | None) => Need::Never,
                _ => Need::Any,
            });
        }
        if let Some(binary) = binary {
            return match binary.op() {
                Operator::Or => {
                    let operands = operands(binary).into_iter();
                    Need::either(operands.map(|operand| of(operand, parts)))
                }
                // Of a literal that is not NULL the two are the same.
                Operator::Eq | Operator::IsNotDistinctFrom => {
                    let (left, right) = (binary.left(), binary.right());
                    match (left.downcast_ref::<Literal>(), right.downcast_ref::<Literal>()) {
                        (None, Some(literal)) if !literal.value().is_null() => {
                            one_of(left, &[literal], resolve)
                        }
                        (Some(literal), None) if !literal.value().is_null() => {
                            one_of(right, &[literal], resolve)
                        }
                        _ => Ok(Need::Any),
                    }
                }
                _ => Ok(Need::Any),
            };
        }
        if let Some(list) = predicate.downcast_ref::<InListExpr>() {
            let literals = list.list().iter().map(|value| value.downcast_ref::<Literal>());
            return match literals.collect::<Option<Vec<_>>>() {
                Some(literals) if !list.negated() => one_of(list.expr(), &literals, resolve),
                _ => Ok(Need::Any),
            };
        }
        if let Some(case) = predicate.downcast_ref::<CaseExpr>() {
            // Whichever branch is taken is true of the row. Without ELSE the rest is NULL.
            let branches = case.when_then_expr().iter().map(|(_, then)| then);
            let branches = branches.chain(case.else_expr());
            return Need::either(branches.map(|branch| of(branch, parts)));
        }
        Ok(Need::Any)
    }

    /// What satisfies each of several needs.
    pub(crate) fn all(needs: impl IntoIterator<Item = Result<Need>>) -> Result<Need> {
        let mut all = Vec::new();
        for need in needs {
            match need? {
                Need::Any => {}
                Need::Never => return Ok(Need::Never),
                need => all.push(need),
            }
        }
        Ok(match all.len() {
            0 => Need::Any,
            1 => all.remove(0),
            _ => Need::All(all),
        })
    }

    /// What satisfies one of several needs. Values of one column are one list, so that a chain of
    /// OR costs what an IN list does.
    fn either(needs: impl IntoIterator<Item = Result<Need>>) -> Result<Need> {
        let mut either = Vec::new();
        for need in needs {
            match need? {
                Need::Any => return Ok(Need::Any),
                Need::Never => {}
                Need::Either(needs) => needs.into_iter().for_each(|need| add(&mut either, need)),
                need => add(&mut either, need),
            }
        }
        Ok(match either.len() {
            0 => Need::Never,
            1 => either.remove(0),
            _ => Need::Either(either),
        })
    }

    /// Whether there is something to look up, and, if so, why it is not looked up all the same.
    pub(crate) fn is_looked_up(&self) -> Result<bool, String> {
        match self.values() {
            _ if matches!(self, Need::Any | Need::Never) => Ok(false),
            values if values > MOST_VALUES => {
                Err(format!("{values} values are not looked up (at most {MOST_VALUES})"))
            }
            _ => Ok(true),
        }
    }

    fn values(&self) -> usize {
        match self {
            Need::Any | Need::Never => 0,
            Need::OneOf { hashes, .. } => hashes.len(),
            Need::All(needs) | Need::Either(needs) => needs.iter().map(Need::values).sum(),
        }
    }
}

/// Adds a need to those of which one must be satisfied.
fn add(either: &mut Vec<Need>, need: Need) {
    let Need::OneOf { column, data_type, hashes } = need else { return either.push(need) };
    for other in either.iter_mut() {
        if let Need::OneOf { column: same, data_type: typed, hashes: all } = other
            && (*same, &*typed) == (column, &data_type)
        {
            all.extend(hashes);
            return;
        }
    }
    either.push(Need::OneOf { column, data_type, hashes });
}

/// The need of `expression IN (literals)`.
fn one_of(
    expression: &Arc<dyn PhysicalExpr>,
    literals: &[&Literal],
    resolve: Resolve<'_>,
) -> Result<Need> {
    let Some((column, data_type, compared)) = indexed(expression, resolve) else {
        return Ok(Need::Any);
    };
    let values = literals.iter().map(|literal| literal.value());
    let values: Vec<&ScalarValue> = values.filter(|value| !value.is_null()).collect();
    if values.is_empty() {
        return Ok(Need::Never);
    }
    let same = |value: &&ScalarValue| is_compared(&compared, &value.data_type());
    if !values.iter().all(same) || KeyType::of(&compared).is_err() {
        return Ok(Need::Any);
    }
    let (mut hashes, mut hash) = (Vec::with_capacity(values.len()), Vec::new());
    for value in values {
        hash_array(&value.to_array()?, &mut hash)?;
        hashes.push(hash[0]);
    }
    Ok(Need::OneOf { column, data_type, hashes })
}

/// The indexed column of an expression, the column's type in the table, and the type of the
/// expression: that of the column, or one that it is cast to without a change of its keys.
fn indexed(
    expression: &Arc<dyn PhysicalExpr>,
    resolve: Resolve<'_>,
) -> Option<(usize, DataType, DataType)> {
    if let Some(column) = expression.downcast_ref::<Column>() {
        let (column, data_type) = resolve(column)?;
        return Some((column, data_type.clone(), data_type));
    }
    let cast = expression.downcast_ref::<CastExpr>()?;
    let (column, data_type, compared) = indexed(cast.expr(), resolve)?;
    keeps_keys(&compared, cast.cast_type()).then(|| (column, data_type, cast.cast_type().clone()))
}

fn plain(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain(values),
        other => other,
    }
}

/// Whether the engine compares values of two types as they are.
fn is_compared(a: &DataType, b: &DataType) -> bool {
    use DataType::Timestamp;
    match (plain(a), plain(b)) {
        (Timestamp(a, Some(_)), Timestamp(b, Some(_))) => a == b,
        (a, b) => a == b,
    }
}

/// Whether each value that a cast from one type to another gives has the key of the value that was
/// cast. A cast that can fail of numbers is left out, as is one that rounds: a query then reads
/// what it would read without an index.
pub(crate) fn keeps_keys(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    let (from, to) = (plain(from), plain(to));
    let strings = |of: &DataType| matches!(of, Utf8 | LargeUtf8 | Utf8View);
    let binary = |of: &DataType| matches!(of, Binary | LargeBinary | BinaryView);
    let unscaled = |of: &DataType| match *of {
        Decimal32(precision, scale)
        | Decimal64(precision, scale)
        | Decimal128(precision, scale)
        | Decimal256(precision, scale) => Some((precision, scale)),
        _ => None,
    };
    if is_compared(from, to) {
        return true;
    }
    match (from, to) {
        (Int8, Int16 | Int32 | Int64)
        | (Int16, Int32 | Int64)
        | (Int32, Int64)
        | (UInt8, UInt16 | UInt32 | UInt64 | Int16 | Int32 | Int64)
        | (UInt16, UInt32 | UInt64 | Int32 | Int64)
        | (UInt32, UInt64 | Int64)
        | (Float16, Float32 | Float64)
        | (Float32, Float64) => true,
        (FixedSizeBinary(_), to) => binary(to),
        (from, to) if strings(from) || binary(from) => strings(to) || binary(to),
        (from, to) => match (unscaled(from), unscaled(to)) {
            (Some(from), Some(to)) => from.1 == to.1 && from.0 <= to.0,
            _ => false,
        },
    }
}

#[cfg(test)]
mod tests {
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

    fn need(predicate: &Arc<dyn PhysicalExpr>, parts: Parts) -> Need {
        let resolve = |column: &Column| match (column.name(), column.index()) {
            ("id", 0) => Some((0, DataType::Utf8)),
            ("n", 2) => Some((1, DataType::Int32)),
            _ => None,
        };
        Need::of(predicate, &resolve, parts).unwrap()
    }

    fn hash(value: ScalarValue) -> u64 {
        let mut hashes = Vec::new();
        hash_array(&value.to_array().unwrap(), &mut hashes).unwrap();
        hashes[0]
    }

    fn ids(values: &[&str]) -> Need {
        let hashes = values.iter().map(|&v| hash(v.into())).collect();
        Need::OneOf { column: 0, data_type: DataType::Utf8, hashes }
    }

    fn n(value: i32) -> Need {
        Need::OneOf { column: 1, data_type: DataType::Int32, hashes: vec![hash(value.into())] }
    }

    #[test]
    fn predicates_say_which_values_a_row_group_must_have() {
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
            (and(is("a"), n_is(3)), Need::All(vec![ids(&["a"]), n(3)])),
            (or(is("a"), n_is(3)), Need::Either(vec![ids(&["a"]), n(3)])),
            (or(is("a"), other()), Need::Any),
            (or(and(is("a"), other()), is("b")), ids(&["a", "b"])),
            (or(or(is("a"), n_is(3)), is("b")), Need::Either(vec![ids(&["a", "b"]), n(3)])),
            (
                or(and(is("a"), n_is(3)), is("b")),
                Need::Either(vec![Need::All(vec![ids(&["a"]), n(3)]), ids(&["b"])]),
            ),
            (list(&[Some("a"), None, Some("b")], false), ids(&["a", "b"])),
            (list(&[None], false), Need::Never),
            (list(&[Some("a")], true), Need::Any),
            (Arc::new(NotExpr::new(is("a"))), Need::Any),
            (both(column("id"), Operator::NotEq, lit("a")), Need::Any),
            (both(column("id"), Operator::Lt, lit("a")), Need::Any),
            (both(column("id"), Operator::IsDistinctFrom, lit("a")), Need::Any),
            (both(column("id"), Operator::IsNotDistinctFrom, lit("a")), ids(&["a"])),
            (both(column("id"), Operator::IsNotDistinctFrom, nothing()), Need::Any),
            (both(column("id"), Operator::Eq, nothing()), Need::Any),
            (or(null(), is("a")), ids(&["a"])),
            (and(null(), is("a")), Need::Never),
            (when(vec![is("a"), is("b")], None), ids(&["a", "b"])),
            (when(vec![is("a")], Some(lit(true))), Need::Any),
            (when(vec![is("a")], Some(lit(false))), ids(&["a"])),
            (both(wide(DataType::Int64), Operator::Eq, lit(3i64)), n(3)),
            (both(wide(DataType::Int8), Operator::Eq, lit(3i8)), Need::Any),
            (both(wide(DataType::Float64), Operator::Eq, lit(3.0)), Need::Any),
            (dynamic(&is("a")), ids(&["a"])),
        ] {
            assert_eq!(need(&predicate, Parts::All), expected, "{predicate}");
        }
        let chain = |values: usize| (0..values).map(|v| is(&v.to_string())).reduce(or).unwrap();
        let nested = |levels: usize| {
            (0..levels).fold(is("a"), |all, level| match level % 2 {
                0 => and(or(all, is("b")), other()),
                _ => or(and(all, other()), is("b")),
            })
        };
        assert_eq!(need(&nested(10), Parts::All).is_looked_up(), Ok(true));
        assert_eq!(need(&nested(2 * MOST_DEPTH), Parts::All), Need::Any);
        assert_eq!(need(&chain(MOST_VALUES), Parts::All).is_looked_up(), Ok(true));
        let too_many = "4097 values are not looked up (at most 4096)".to_string();
        assert_eq!(need(&chain(MOST_VALUES + 1), Parts::All).is_looked_up(), Err(too_many));
        assert_eq!((Need::Any.is_looked_up(), Need::Never.is_looked_up()), (Ok(false), Ok(false)));
        let mixed = and(is("a"), dynamic(&is("b")));
        assert_eq!(need(&mixed, Parts::Planned), ids(&["a"]));
        assert_eq!(need(&mixed, Parts::Dynamic), ids(&["b"]));
        assert_eq!(need(&mixed, Parts::All), Need::All(vec![ids(&["a"]), ids(&["b"])]));
    }

    /// For every pair of types that is said to keep keys, values whose cast is equal to a value
    /// have that value's hash.
    #[test]
    fn casts_that_keep_keys_give_values_with_the_same_hash() {
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
            // Of the numbers that a date or a timestamp holds, too.
            let direct = cast(&texts, plain(from));
            let numbers = || cast(&cast(&texts, &Int64).unwrap(), plain(from));
            let Ok(values) = direct.or_else(|_| numbers()).and_then(|v| cast(&v, from)) else {
                continue;
            };
            for to in types.iter().filter(|to| keeps_keys(from, to)) {
                kept += 1;
                assert_eq!(KeyType::of(from).unwrap(), KeyType::of(to).unwrap());
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
}
