//! Estimates the share of a table's rows that remains after its predicates. As in System R, the
//! estimate depends on the kind of predicate and on the minimum and maximum of its column.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{ScalarValue, Statistics};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, Literal,
};
use datafusion::physical_expr::split_conjunction;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};

use crate::build_side::scan_predicate;
use crate::planning::{Planning, null_share};

/// Assumed selectivity of all other predicates of a table together.
pub(crate) const PREDICATE_SELECTIVITY: f64 = 0.5;
/// Assumed maximum selectivity of one value. If the range of an integer or date column is known,
/// one value of that range remains instead.
const EQUALITY_SELECTIVITY: f64 = 0.1;

/// Estimates the share of rows that remains after the predicates of a table.
pub(crate) fn predicate_selectivity(plan: &Arc<dyn ExecutionPlan>, planning: &Planning) -> f64 {
    let mut all = Conjunction::default();
    let mut seen: Vec<Arc<dyn PhysicalExpr>> = Vec::new();
    let mut at = plan;
    loop {
        let (predicate, input) = match at.downcast_ref::<FilterExec>() {
            Some(filter) => (Some(filter.predicate().clone()), filter.input()),
            None => (scan_predicate(at), at),
        };
        let values = predicate.is_some().then(|| Values::find(input, planning));
        // A scan may repeat the predicate of a filter above it.
        for part in predicate.iter().flat_map(split_conjunction) {
            if !seen.contains(part) {
                seen.push(part.clone());
                all.add(values.as_ref().expect("there is a predicate"), part);
            }
        }
        match at.children().first() {
            Some(input) => at = input,
            None => break,
        }
    }
    all.selectivity()
}

/// Predicates that are combined with AND.
#[derive(Default)]
struct Conjunction {
    /// The selectivity of each list of values, exclusion and disjunction.
    shares: Vec<f64>,
    /// For each column, the part of its range that comparisons with literals allow.
    ranges: BTreeMap<String, Range>,
    /// Whether there are predicates about which nothing is known.
    others: bool,
}

impl Conjunction {
    fn new(values: &Values, predicate: &Arc<dyn PhysicalExpr>) -> Self {
        let mut all = Conjunction::default();
        split_conjunction(predicate).into_iter().for_each(|part| all.add(values, part));
        all
    }

    fn add(&mut self, values: &Values, part: &Arc<dyn PhysicalExpr>) {
        if let Some(share) = values.values_selectivity(part) {
            self.shares.push(share.min(PREDICATE_SELECTIVITY));
        } else if let Some(share) = values.exclusion_selectivity(part) {
            self.shares.push(share);
        } else if let Some((column, allowed)) = values.allowed_range(part) {
            let range = self.ranges.entry(column).or_insert(allowed);
            *range = Range {
                low: range.low.max(allowed.low),
                high: range.high.min(allowed.high),
                ..allowed
            };
        } else {
            self.others = true;
        }
    }

    fn is_known(&self) -> bool {
        !self.shares.is_empty() || !self.ranges.is_empty()
    }

    fn selectivity(&self) -> f64 {
        let ranges = self.ranges.values().map(Range::selectivity);
        let others = if self.others { PREDICATE_SELECTIVITY } else { 1.0 };
        self.shares.iter().product::<f64>() * others * ranges.product::<f64>()
    }
}

/// Returns the operands of a chain of AND or OR of any length, in order.
pub(crate) fn operands(chain: &BinaryExpr) -> Vec<&Arc<dyn PhysicalExpr>> {
    let (mut found, mut left) = (Vec::new(), vec![chain.right(), chain.left()]);
    while let Some(operand) = left.pop() {
        match operand.downcast_ref::<BinaryExpr>().filter(|other| other.op() == chain.op()) {
            Some(chain) => left.extend([chain.right(), chain.left()]),
            None => found.push(operand),
        }
    }
    found
}

/// A part of a column's range, from 0 for the minimum to 1 for the maximum.
#[derive(Clone, Copy)]
struct Range {
    low: f64,
    high: f64,
    /// Whether the values are amounts. Most amounts are small, so the range says little about the
    /// number of values above a bound.
    are_amounts: bool,
}

impl Range {
    fn selectivity(&self) -> f64 {
        // Rows may remain even if the range seems empty.
        let left = (self.high - self.low).max(0.01);
        if self.are_amounts && self.low > 0.0 { left.min(EQUALITY_SELECTIVITY) } else { left }
    }
}

/// The statistics of columns.
struct Values {
    schema: SchemaRef,
    statistics: Option<Arc<Statistics>>,
}

impl Values {
    fn find(plan: &Arc<dyn ExecutionPlan>, planning: &Planning) -> Values {
        Values { schema: plan.schema(), statistics: planning.statistics(plan) }
    }

    /// Returns the minimum and maximum of a column.
    fn range(&self, column: &Column) -> Option<(&ScalarValue, &ScalarValue)> {
        // A scan's predicate counts the columns of the file, so columns are found by name.
        let index = self.schema.index_of(column.name()).ok()?;
        let column = self.statistics.as_ref()?.column_statistics.get(index)?;
        Some((column.min_value.get_value()?, column.max_value.get_value()?))
    }

    /// Returns the selectivity of one value of an expression.
    fn equality_selectivity(&self, expression: &Arc<dyn PhysicalExpr>) -> f64 {
        let range = expression.downcast_ref::<Column>().and_then(|column| self.range(column));
        let distance = range.and_then(|(least, greatest)| match least.data_type() {
            DataType::Date32 => greatest.distance_u64(least),
            integer if integer.is_integer() => greatest.distance_u64(least),
            _ => None,
        });
        distance.map_or(EQUALITY_SELECTIVITY, |n| EQUALITY_SELECTIVITY.min(1.0 / (n as f64 + 1.0)))
    }

    /// Returns the selectivity of a predicate that lists values or alternatives.
    fn values_selectivity(&self, predicate: &Arc<dyn PhysicalExpr>) -> Option<f64> {
        if let Some(list) = predicate.downcast_ref::<InListExpr>() {
            let values = list.list().len() as f64;
            return (!list.negated()).then(|| self.equality_selectivity(list.expr()) * values);
        }
        let binary = predicate.downcast_ref::<BinaryExpr>()?;
        let (left, right) = (binary.left(), binary.right());
        match binary.op() {
            Operator::Eq if right.is::<Literal>() => Some(self.equality_selectivity(left)),
            Operator::Eq if left.is::<Literal>() => Some(self.equality_selectivity(right)),
            // The planner converts short lists to OR.
            Operator::Or => {
                let sides = operands(binary).into_iter().map(|side| Conjunction::new(self, side));
                sides.map(|side| side.is_known().then(|| side.selectivity())).sum()
            }
            _ => None,
        }
    }

    /// Returns the selectivity of a test for NULL, or of a predicate that excludes one value.
    fn exclusion_selectivity(&self, predicate: &Arc<dyn PhysicalExpr>) -> Option<f64> {
        let nulls = |argument: &Arc<dyn PhysicalExpr>| {
            let index = self.schema.index_of(argument.downcast_ref::<Column>()?.name()).ok()?;
            null_share(self.statistics.as_ref()?, index)
        };
        // Rows may remain even if statistics know none.
        if let Some(is_null) = predicate.downcast_ref::<IsNullExpr>() {
            return Some(nulls(is_null.arg())?.max(0.01));
        }
        if let Some(is_not_null) = predicate.downcast_ref::<IsNotNullExpr>() {
            return Some((1.0 - nulls(is_not_null.arg())?).max(0.01));
        }
        let binary = predicate.downcast_ref::<BinaryExpr>()?;
        let value = match (binary.op(), binary.left(), binary.right()) {
            (Operator::NotEq, value, literal) if literal.is::<Literal>() => value,
            (Operator::NotEq, literal, value) if literal.is::<Literal>() => value,
            _ => return None,
        };
        Some((1.0 - self.equality_selectivity(value)).max(PREDICATE_SELECTIVITY))
    }

    /// Returns the part of a column's range that a comparison with a literal allows.
    fn allowed_range(&self, predicate: &Arc<dyn PhysicalExpr>) -> Option<(String, Range)> {
        let binary = predicate.downcast_ref::<BinaryExpr>()?;
        let (left, right) = (binary.left(), binary.right());
        let (column, literal, operator) = match left.downcast_ref::<Column>() {
            Some(column) => (column, right, *binary.op()),
            None => (right.downcast_ref::<Column>()?, left, binary.op().swap()?),
        };
        let (least, greatest) = self.range(column)?;
        let literal =
            literal.downcast_ref::<Literal>()?.value().cast_to(&least.data_type()).ok()?;
        let at = match (literal.partial_cmp(least)?, literal.partial_cmp(greatest)?) {
            (Ordering::Less, _) => 0.0,
            (_, Ordering::Greater) => 1.0,
            _ => {
                let span = greatest.distance_u64(least)?.max(1) as f64;
                literal.distance_u64(least)? as f64 / span
            }
        };
        let (low, high) = match operator {
            Operator::Lt | Operator::LtEq => (0.0, at),
            Operator::Gt | Operator::GtEq => (at, 1.0),
            _ => return None,
        };
        let data_type = least.data_type();
        let are_amounts = data_type.is_decimal() || data_type.is_floating();
        Some((column.name().to_string(), Range { low, high, are_amounts }))
    }
}

#[cfg(test)]
#[path = "../tests/unit/predicates.rs"]
mod tests;
