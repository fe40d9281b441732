//! The share of a table's rows that its predicates are assumed to leave, from the kinds of the
//! predicates and from the least and the greatest value of their columns, as System R did.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{ScalarValue, Statistics};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr, Literal};
use datafusion::physical_expr::split_conjunction;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::statistics::StatisticsContext;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr, StatisticsArgs};

use crate::build_side::scan_predicate;

/// The share that all predicates of a table leave together of which nothing else is known.
pub(crate) const LEFT_BY_PREDICATE: f64 = 0.5;
/// The most that a predicate leaves for each value that it allows. Integers and dates of which the
/// range is known leave one value of the range.
const LEFT_BY_EQUALITY: f64 = 0.1;

/// The share of rows that the predicates of a table are assumed to leave.
pub(crate) fn left_by_predicates(plan: &Arc<dyn ExecutionPlan>) -> f64 {
    let mut all = Conjunction::default();
    let mut seen: Vec<Arc<dyn PhysicalExpr>> = Vec::new();
    let mut at = plan;
    loop {
        let (predicate, input) = match at.downcast_ref::<FilterExec>() {
            Some(filter) => (Some(filter.predicate().clone()), filter.input()),
            None => (scan_predicate(at), at),
        };
        let values = predicate.is_some().then(|| Values::of(input));
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
    all.left()
}

/// Predicates that a row must satisfy all of.
#[derive(Default)]
struct Conjunction {
    /// The share that each predicate leaves that lists values, or alternatives.
    shares: Vec<f64>,
    /// Of each column the part of its range that comparisons with literals allow.
    ranges: BTreeMap<String, Range>,
    /// Whether there are predicates of which nothing is known.
    others: bool,
}

impl Conjunction {
    fn of(values: &Values, predicate: &Arc<dyn PhysicalExpr>) -> Self {
        let mut all = Conjunction::default();
        split_conjunction(predicate).into_iter().for_each(|part| all.add(values, part));
        all
    }

    fn add(&mut self, values: &Values, part: &Arc<dyn PhysicalExpr>) {
        if let Some(share) = values.left_by_values(part) {
            self.shares.push(share.min(LEFT_BY_PREDICATE));
        } else if let Some((column, allowed)) = values.range_allowed(part) {
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

    fn left(&self) -> f64 {
        let ranges = self.ranges.values().map(Range::left);
        let others = if self.others { LEFT_BY_PREDICATE } else { 1.0 };
        self.shares.iter().product::<f64>() * others * ranges.product::<f64>()
    }
}

/// The operands of a chain of AND or of OR, however long, in their order.
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

/// A part of the range of a column's values, from 0 for the least to 1 for the greatest.
#[derive(Clone, Copy)]
struct Range {
    low: f64,
    high: f64,
    /// Amounts, of which most are small: the range says little of how many are above a bound.
    are_amounts: bool,
}

impl Range {
    fn left(&self) -> f64 {
        // A range of which nothing is left by these figures may still have a value.
        let left = (self.high - self.low).max(0.01);
        if self.are_amounts && self.low > 0.0 { left.min(LEFT_BY_EQUALITY) } else { left }
    }
}

/// What is known of the values of columns.
struct Values {
    schema: SchemaRef,
    statistics: Option<Arc<Statistics>>,
}

impl Values {
    fn of(plan: &Arc<dyn ExecutionPlan>) -> Values {
        let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new());
        Values { schema: plan.schema(), statistics: statistics.ok() }
    }

    /// The least and the greatest value of a column.
    fn range(&self, column: &Column) -> Option<(&ScalarValue, &ScalarValue)> {
        // The predicate of a scan counts the columns of files, so that the name decides.
        let index = self.schema.index_of(column.name()).ok()?;
        let column = self.statistics.as_ref()?.column_statistics.get(index)?;
        Some((column.min_value.get_value()?, column.max_value.get_value()?))
    }

    /// The share of rows that one value of an expression leaves.
    fn left_by_equality(&self, of: &Arc<dyn PhysicalExpr>) -> f64 {
        let range = of.downcast_ref::<Column>().and_then(|column| self.range(column));
        let distance = range.and_then(|(least, greatest)| match least.data_type() {
            DataType::Date32 => greatest.distance_u64(least),
            of if of.is_integer() => greatest.distance_u64(least),
            _ => None,
        });
        distance.map_or(LEFT_BY_EQUALITY, |n| LEFT_BY_EQUALITY.min(1.0 / (n as f64 + 1.0)))
    }

    /// The share of rows that a predicate leaves if it lists values, or alternatives.
    fn left_by_values(&self, predicate: &Arc<dyn PhysicalExpr>) -> Option<f64> {
        if let Some(list) = predicate.downcast_ref::<InListExpr>() {
            let values = list.list().len() as f64;
            return (!list.negated()).then(|| self.left_by_equality(list.expr()) * values);
        }
        let binary = predicate.downcast_ref::<BinaryExpr>()?;
        let (left, right) = (binary.left(), binary.right());
        match binary.op() {
            Operator::Eq if right.is::<Literal>() => Some(self.left_by_equality(left)),
            Operator::Eq if left.is::<Literal>() => Some(self.left_by_equality(right)),
            // The planner turns short lists into this.
            Operator::Or => {
                let sides = operands(binary).into_iter().map(|side| Conjunction::of(self, side));
                sides.map(|side| side.is_known().then(|| side.left())).sum()
            }
            _ => None,
        }
    }

    /// The part of a column's range that a comparison with a literal allows.
    fn range_allowed(&self, predicate: &Arc<dyn PhysicalExpr>) -> Option<(String, Range)> {
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
                let whole = greatest.distance_u64(least)?.max(1) as f64;
                literal.distance_u64(least)? as f64 / whole
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
mod tests {
    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::common::ColumnStatistics;
    use datafusion::common::stats::Precision;
    use datafusion::physical_expr::expressions::{binary, col, in_list, lit};
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion::physical_plan::test::exec::StatisticsExec;

    use super::*;

    fn left(table: Arc<dyn ExecutionPlan>, predicate: &Arc<dyn PhysicalExpr>) -> f64 {
        let once = FilterExec::try_new(predicate.clone(), table).unwrap();
        let once: Arc<dyn ExecutionPlan> = Arc::new(once);
        let twice = FilterExec::try_new(predicate.clone(), once.clone()).unwrap();
        let share = left_by_predicates(&once);
        let repeated = left_by_predicates(&(Arc::new(twice) as Arc<dyn ExecutionPlan>));
        assert!((share - repeated).abs() < 1e-9, "{predicate}: {share}, repeated {repeated}");
        share
    }

    #[test]
    fn each_value_that_a_predicate_allows_leaves_a_tenth() {
        let fields = ["a", "b"].map(|name| Field::new(name, DataType::Utf8, true));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let a = || col("a", &schema).unwrap();
        let both = |l, op, r| binary(l, op, r, &schema).unwrap();
        let less = || both(col("b", &schema).unwrap(), Operator::Lt, lit("3"));
        let equal = |n: &str| both(a(), Operator::Eq, lit(n));
        let list = |negated| {
            let values = ["1", "2", "3"].map(lit).to_vec();
            in_list(a(), values, &negated, &schema).unwrap()
        };
        for (share, predicate) in [
            (0.5, less()),
            (0.5, both(less(), Operator::And, both(a(), Operator::Gt, lit("1")))),
            (0.1, equal("1")),
            (0.05, both(equal("1"), Operator::And, less())),
            (0.05, both(both(less(), Operator::And, equal("1")), Operator::And, equal("1"))),
            (0.2, both(equal("1"), Operator::Or, equal("2"))),
            (0.5, both(equal("1"), Operator::Or, less())),
            (0.15, both(both(equal("1"), Operator::And, less()), Operator::Or, equal("2"))),
            (0.3, list(false)),
            (0.5, list(true)),
            (0.5, both(a(), Operator::Eq, col("b", &schema).unwrap())),
        ] {
            let computed = left(Arc::new(EmptyExec::new(schema.clone())), &predicate);
            assert!((computed - share).abs() < 1e-9, "{predicate}: {computed} ({share})");
        }
    }

    /// Programs generate chains so long that a step of recursion for each operand would exhaust the
    /// stack.
    #[test]
    fn alternatives_are_estimated_however_many() {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Utf8, true)]));
        let a = col("a", &schema).unwrap();
        let equal = |n: usize| -> Arc<dyn PhysicalExpr> {
            Arc::new(BinaryExpr::new(a.clone(), Operator::Eq, lit(n.to_string())))
        };
        let values = Values { schema, statistics: None };
        for (n, share) in [(1, 0.1), (4, 0.4), (5, 0.5), (6, 0.5), (100_000, 0.5)] {
            let mut chain = (1..n).fold(equal(0), |chain, n| -> Arc<dyn PhysicalExpr> {
                Arc::new(BinaryExpr::new(chain, Operator::Or, equal(n)))
            });
            let computed = Conjunction::of(&values, &chain).left();
            // To drop the whole chain at once would recurse as well.
            while let Some(left) = chain.downcast_ref::<BinaryExpr>().map(|b| b.left().clone()) {
                chain = left;
            }
            assert!((computed - share).abs() < 1e-9, "{n} alternatives: {computed} ({share})");
        }
    }

    #[test]
    fn amounts_above_a_bound_are_few() {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Float64, true)]));
        let column = ColumnStatistics {
            min_value: Precision::Exact(ScalarValue::Float64(Some(0.0))),
            max_value: Precision::Exact(ScalarValue::Float64(Some(1000.0))),
            ..Default::default()
        };
        let statistics = Statistics::new_unknown(&schema);
        let statistics = Statistics { column_statistics: vec![column], ..statistics };
        let of = |op, n: f64| binary(col("a", &schema).unwrap(), op, lit(n), &schema).unwrap();
        let (above, below) = (of(Operator::Gt, 400.0), of(Operator::Lt, 600.0));
        let both = binary(above.clone(), Operator::And, below.clone(), &schema).unwrap();
        for (share, predicate) in
            [(0.1, above), (0.6, below), (0.1, both), (0.05, of(Operator::Gt, 950.0))]
        {
            let table = StatisticsExec::new(statistics.clone(), schema.as_ref().clone());
            let filter = FilterExec::try_new(predicate.clone(), Arc::new(table)).unwrap();
            let computed = left_by_predicates(&(Arc::new(filter) as Arc<dyn ExecutionPlan>));
            assert!((computed - share).abs() < 1e-9, "{predicate}: {computed} ({share})");
        }
    }

    #[test]
    fn comparisons_leave_their_part_of_the_range() {
        let fields = ["a", "b"].map(|name| Field::new(name, DataType::Int32, true));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let column = |least, greatest| ColumnStatistics {
            min_value: Precision::Exact(ScalarValue::Int32(Some(least))),
            max_value: Precision::Exact(ScalarValue::Int32(Some(greatest))),
            ..Default::default()
        };
        let statistics = Statistics::new_unknown(&schema);
        let column_statistics = vec![column(100, 300), column(0, 6)];
        let statistics = Statistics { column_statistics, ..statistics };
        let of = |name, op, n: i32| binary(col(name, &schema).unwrap(), op, lit(n), &schema);
        let of = |name, op, n| of(name, op, n).unwrap();
        let both = |l, r| binary(l, Operator::And, r, &schema).unwrap();
        let either = |l, r| binary(l, Operator::Or, r, &schema).unwrap();
        let between = |low, high| both(of("a", Operator::GtEq, low), of("a", Operator::LtEq, high));
        for (share, predicate) in [
            (0.25, of("a", Operator::Lt, 150)),
            (0.75, of("a", Operator::GtEq, 150)),
            (1.0, of("a", Operator::Gt, 7)),
            (0.01, of("a", Operator::Gt, 301)),
            (0.05, both(of("a", Operator::GtEq, 150), of("a", Operator::LtEq, 160))),
            // Of seven values each has more than a tenth, which is the most that is assumed.
            (0.025, both(of("a", Operator::Lt, 150), of("b", Operator::Eq, 3))),
            (1.0 / 201.0, of("a", Operator::Eq, 150)),
            (0.5, of("a", Operator::NotEq, 150)),
            (0.25, binary(lit(250), Operator::Lt, col("a", &schema).unwrap(), &schema).unwrap()),
            (0.15, either(between(100, 110), between(120, 140))),
            (0.5, either(between(100, 240), between(120, 140))),
            (0.075, either(both(between(100, 110), of("b", Operator::Lt, 3)), between(120, 130))),
        ] {
            let table = StatisticsExec::new(statistics.clone(), schema.as_ref().clone());
            let filter = FilterExec::try_new(predicate.clone(), Arc::new(table)).unwrap();
            let computed = left_by_predicates(&(Arc::new(filter) as Arc<dyn ExecutionPlan>));
            assert!((computed - share).abs() < 1e-9, "{predicate}: {computed} ({share})");
        }
    }
}
