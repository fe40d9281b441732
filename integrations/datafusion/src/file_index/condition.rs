//! Converts a predicate to the values that a row group must contain for any of its rows to match.

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

/// Maximum number of values to look up. Longer lists rule out few row groups, and every value costs
/// a lookup.
const MAX_VALUES: usize = 4096;

/// Maximum depth of a predicate. A chain of AND or OR is one level.
const MAX_DEPTH: usize = 64;

/// A formula over index columns. Every row that matches the predicate satisfies it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    /// Any row may match: nothing is known.
    Any,
    /// No row matches.
    Never,
    /// The column has one of the values with these hashes.
    OneOf {
        /// The number of the column in the index.
        column: usize,
        /// Its type in the table, which the values were compared as.
        data_type: DataType,
        hashes: Vec<u64>,
    },
    /// All of these hold. There are at least two, and none is `Any` or `Never`.
    All(Vec<Condition>),
    /// At least one of these holds. Otherwise as `All`.
    Either(Vec<Condition>),
}

/// Maps a column's name and position to its number in the index and its type in the table.
pub(crate) type Resolve<'a> = &'a dyn Fn(&Column) -> Option<(usize, DataType)>;

/// The parts of a predicate that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    /// Parts that were known when the query was planned.
    Planned,
    /// Parts that operators fill in while the query runs.
    Dynamic,
    All,
}

impl Condition {
    /// Converts a predicate over a table.
    pub(crate) fn new(
        predicate: &Arc<dyn PhysicalExpr>,
        resolve: Resolve<'_>,
        parts: Parts,
    ) -> Result<Self> {
        Self::new_at_depth(predicate, resolve, parts, MAX_DEPTH)
    }

    fn new_at_depth(
        predicate: &Arc<dyn PhysicalExpr>,
        resolve: Resolve<'_>,
        parts: Parts,
        depth: usize,
    ) -> Result<Self> {
        let Some(depth) = depth.checked_sub(1) else { return Ok(Self::Any) };
        let convert = |predicate, parts| Self::new_at_depth(predicate, resolve, parts, depth);
        if let Some(filter) = predicate.downcast_ref::<DynamicFilterPhysicalExpr>() {
            return match parts {
                Parts::Planned => Ok(Self::Any),
                Parts::Dynamic | Parts::All => convert(&filter.current()?, Parts::All),
            };
        }
        let binary = predicate.downcast_ref::<BinaryExpr>();
        if let Some(binary) = binary.filter(|binary| *binary.op() == Operator::And) {
            let operands = operands(binary).into_iter();
            return Self::all(operands.map(|operand| convert(operand, parts)));
        }
        if parts == Parts::Dynamic {
            return Ok(Self::Any);
        }
        if let Some(literal) = predicate.downcast_ref::<Literal>() {
            return Ok(match literal.value() {
                ScalarValue::Boolean(Some(true)) => Self::Any,
                // A row matches only if the predicate is true.
                ScalarValue::Boolean(Some(false) | None) => Self::Never,
                _ => Self::Any,
            });
        }
        if let Some(binary) = binary {
            return match binary.op() {
                Operator::Or => {
                    let operands = operands(binary).into_iter();
                    Self::disjunction(operands.map(|operand| convert(operand, parts)))
                }
                // For a non-NULL literal the two are equivalent.
                Operator::Eq | Operator::IsNotDistinctFrom => {
                    let (left, right) = (binary.left(), binary.right());
                    match (left.downcast_ref::<Literal>(), right.downcast_ref::<Literal>()) {
                        (None, Some(literal)) if !literal.value().is_null() => {
                            compare_values(left, &[literal], resolve)
                        }
                        (Some(literal), None) if !literal.value().is_null() => {
                            compare_values(right, &[literal], resolve)
                        }
                        _ => Ok(Self::Any),
                    }
                }
                _ => Ok(Self::Any),
            };
        }
        if let Some(list) = predicate.downcast_ref::<InListExpr>() {
            let literals = list.list().iter().map(|value| value.downcast_ref::<Literal>());
            return match literals.collect::<Option<Vec<_>>>() {
                Some(literals) if !list.negated() => {
                    compare_values(list.expr(), &literals, resolve)
                }
                _ => Ok(Self::Any),
            };
        }
        if let Some(case) = predicate.downcast_ref::<CaseExpr>() {
            // The branch that is taken must be true for the row. Without ELSE the result is NULL.
            let branches = case.when_then_expr().iter().map(|(_, then)| then);
            let branches = branches.chain(case.else_expr());
            return Self::disjunction(branches.map(|branch| convert(branch, parts)));
        }
        Ok(Self::Any)
    }

    /// Combines predicates with AND.
    pub(crate) fn all(conditions: impl IntoIterator<Item = Result<Self>>) -> Result<Self> {
        let mut all = Vec::new();
        for condition in conditions {
            match condition? {
                Self::Any => {}
                Self::Never => return Ok(Self::Never),
                condition => all.push(condition),
            }
        }
        Ok(match all.len() {
            0 => Self::Any,
            1 => all.remove(0),
            _ => Self::All(all),
        })
    }

    /// Combines conditions with OR. Values of one column become one list, so that a chain of OR
    /// costs as much as an IN list.
    fn disjunction(conditions: impl IntoIterator<Item = Result<Self>>) -> Result<Self> {
        let mut either = Vec::new();
        for condition in conditions {
            match condition? {
                Self::Any => return Ok(Self::Any),
                Self::Never => {}
                Self::Either(conditions) => {
                    conditions.into_iter().for_each(|condition| add(&mut either, condition))
                }
                condition => add(&mut either, condition),
            }
        }
        Ok(match either.len() {
            0 => Self::Never,
            1 => either.remove(0),
            _ => Self::Either(either),
        })
    }

    /// Whether there is something to look up. Returns the reason as an error if it is too much.
    pub(crate) fn is_looked_up(&self) -> Result<bool, String> {
        match self.values() {
            _ if matches!(self, Self::Any | Self::Never) => Ok(false),
            values if values > MAX_VALUES => {
                Err(format!("{values} values are not looked up (at most {MAX_VALUES})"))
            }
            _ => Ok(true),
        }
    }

    fn values(&self) -> usize {
        match self {
            Self::Any | Self::Never => 0,
            Self::OneOf { hashes, .. } => hashes.len(),
            Self::All(conditions) | Self::Either(conditions) => {
                conditions.iter().map(Self::values).sum()
            }
        }
    }
}

/// Adds an alternative.
fn add(either: &mut Vec<Condition>, condition: Condition) {
    let Condition::OneOf { column, data_type, hashes } = condition else {
        return either.push(condition);
    };
    for other in either.iter_mut() {
        if let Condition::OneOf { column: same, data_type: typed, hashes: all } = other
            && (*same, &*typed) == (column, &data_type)
        {
            all.extend(hashes);
            return;
        }
    }
    either.push(Condition::OneOf { column, data_type, hashes });
}

/// Converts `expression IN (literals)`.
fn compare_values(
    expression: &Arc<dyn PhysicalExpr>,
    literals: &[&Literal],
    resolve: Resolve<'_>,
) -> Result<Condition> {
    let Some((column, data_type, compared)) = indexed_column(expression, resolve) else {
        return Ok(Condition::Any);
    };
    let values = literals.iter().map(|literal| literal.value());
    let values: Vec<&ScalarValue> = values.filter(|value| !value.is_null()).collect();
    if values.is_empty() {
        return Ok(Condition::Never);
    }
    let same = |value: &&ScalarValue| is_compared(&compared, &value.data_type());
    if !values.iter().all(same) || KeyType::new(&compared).is_err() {
        return Ok(Condition::Any);
    }
    let (mut hashes, mut hash) = (Vec::with_capacity(values.len()), Vec::new());
    for value in values {
        hash_array(&value.to_array()?, &mut hash)?;
        hashes.push(hash[0]);
    }
    Ok(Condition::OneOf { column, data_type, hashes })
}

/// Returns the indexed column of an expression, the column's type in the table, and the type of the
/// expression: the column's type, or a type that it is cast to with the same keys.
fn indexed_column(
    expression: &Arc<dyn PhysicalExpr>,
    resolve: Resolve<'_>,
) -> Option<(usize, DataType, DataType)> {
    if let Some(column) = expression.downcast_ref::<Column>() {
        let (column, data_type) = resolve(column)?;
        return Some((column, data_type.clone(), data_type));
    }
    let cast = expression.downcast_ref::<CastExpr>()?;
    let (column, data_type, compared) = indexed_column(cast.expr(), resolve)?;
    keeps_keys(&compared, cast.cast_type()).then(|| (column, data_type, cast.cast_type().clone()))
}

fn value_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => value_type(values),
        other => other,
    }
}

/// Whether the engine compares values of two types without a conversion.
fn is_compared(a: &DataType, b: &DataType) -> bool {
    use DataType::Timestamp;
    match (value_type(a), value_type(b)) {
        (Timestamp(a, Some(_)), Timestamp(b, Some(_))) => a == b,
        (a, b) => a == b,
    }
}

/// Whether every value that a cast returns has the key of the original value. Numeric casts that
/// can fail or round are not listed; a query with such a cast reads as much as without an index.
pub(crate) fn keeps_keys(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    let (from, to) = (value_type(from), value_type(to));
    let strings = |data_type: &DataType| matches!(data_type, Utf8 | LargeUtf8 | Utf8View);
    let binary = |data_type: &DataType| matches!(data_type, Binary | LargeBinary | BinaryView);
    let unscaled = |data_type: &DataType| match *data_type {
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
            (both(wide(DataType::Float64), Operator::Eq, lit(3.0)), Condition::Any),
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
}
