//! Converts a predicate to the values that a row group must contain for any of its rows to match.

use std::sync::Arc;

use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, DynamicFilterPhysicalExpr, InListExpr, Literal,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

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
                            compare_values(left, vec![literal.value().clone()], resolve)
                        }
                        (Some(literal), None) if !literal.value().is_null() => {
                            compare_values(right, vec![literal.value().clone()], resolve)
                        }
                        _ => Ok(Self::Any),
                    }
                }
                _ => Ok(Self::Any),
            };
        }
        if let Some(list) = predicate.downcast_ref::<InListExpr>() {
            let literals = list.list().iter().map(|value| value.downcast_ref::<Literal>());
            let values = literals.map(|literal| Some(literal?.value().clone()));
            return match values.collect::<Option<Vec<_>>>() {
                Some(values) if !list.negated() => compare_values(list.expr(), values, resolve),
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

/// Converts `expression IN (values)`.
fn compare_values(
    expression: &Arc<dyn PhysicalExpr>,
    mut values: Vec<ScalarValue>,
    resolve: Resolve<'_>,
) -> Result<Condition> {
    values.retain(|value| !value.is_null());
    let cast = expression.downcast_ref::<CastExpr>();
    let row = cast.map_or(expression, |cast| cast.expr()).downcast_ref::<ScalarFunctionExpr>();
    if let Some(row) = row.filter(|row| row.name() == "struct") {
        return compare_rows(row, cast, &values, resolve);
    }
    // An integer column is compared with floats as floats.
    let floats = cast.filter(|cast| cast.cast_type().is_floating());
    let integers = floats.and_then(|cast| indexed_column(cast.expr(), resolve));
    let indexed = match integers.filter(|(.., compared)| compared.is_integer()) {
        Some(indexed) => {
            let integers = values.iter().map(|value| integers_equal_to(value, &indexed.2));
            let Some(integers) = integers.collect::<Option<Vec<_>>>() else {
                return Ok(Condition::Any);
            };
            values = integers.into_iter().flatten().collect();
            Some(indexed)
        }
        None => indexed_column(expression, resolve),
    };
    let Some((column, data_type, compared)) = indexed else { return Ok(Condition::Any) };
    if values.is_empty() {
        return Ok(Condition::Never);
    }
    let same = |value: &ScalarValue| is_compared(&compared, &value.data_type());
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

/// Converts `(expressions) IN (rows)`: each expression has one of the values that the rows have in
/// its place. A cast of the row casts its fields, which are found by their names.
fn compare_rows(
    row: &ScalarFunctionExpr,
    cast: Option<&CastExpr>,
    rows: &[ScalarValue],
    resolve: Resolve<'_>,
) -> Result<Condition> {
    let mut columns = vec![Vec::new(); row.args().len()];
    for literal in rows {
        let ScalarValue::Struct(values) = literal else { return Ok(Condition::Any) };
        let named = values.fields().iter().enumerate().all(|(i, f)| f.name() == &format!("c{i}"));
        let same = cast.is_none_or(|cast| named && cast.cast_type() == values.data_type());
        if !same || values.num_columns() != columns.len() {
            return Ok(Condition::Any);
        }
        for (column, value) in columns.iter_mut().zip(values.columns()) {
            column.push(ScalarValue::try_from_array(value, 0)?);
        }
    }
    Condition::all(row.args().iter().zip(columns).map(|(argument, values)| {
        let to = values.first().filter(|_| cast.is_some()).map(ScalarValue::data_type);
        let to = to.map(|to| Arc::new(CastExpr::new(argument.clone(), to, None)) as _);
        match values.iter().any(ScalarValue::is_null) {
            // NULL may equal NULL in a row.
            true => Ok(Condition::Any),
            false => compare_values(to.as_ref().unwrap_or(argument), values, resolve),
        }
    }))
}

/// Returns the integers of a type that a cast to a float makes equal to `value`: one or none.
/// Returns `None` if there may be several.
fn integers_equal_to(value: &ScalarValue, data_type: &DataType) -> Option<Option<ScalarValue>> {
    let (float, first_inexact) = match *value {
        ScalarValue::Float64(Some(float)) => (float, (1_u64 << 53) as f64),
        ScalarValue::Float32(Some(float)) => (f64::from(float), (1_u64 << 24) as f64),
        _ => return None,
    };
    if float.fract() != 0.0 {
        return Some(None);
    }
    let integer = ScalarValue::Int64(Some(float as i64)).cast_to(data_type).ok();
    (float.abs() < first_inexact).then(|| integer.filter(|integer| !integer.is_null()))
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
#[path = "../../tests/unit/condition.rs"]
mod tests;
