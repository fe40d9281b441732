//! Where the columns of a plan come from: how far down rows can be dropped by the keys of a join,
//! and the smallest plan that has all of these keys.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;

use crate::build_side::{filters_within, has_selective_join, is_selective};
use crate::operators::{commutes_with_dropping, is_scan, trace, with_children};
use crate::predicates::{LEFT_BY_PREDICATE, left_by_predicates};

type Plan = Arc<dyn ExecutionPlan>;

/// The lowest plan whose rows can be dropped by some columns: the table that the columns come from,
/// with its predicates, unless the result of an operator above it depends on the rows that would be
/// dropped.
#[derive(Debug)]
pub(crate) struct Lowest {
    pub(crate) plan: Plan,
    /// Which columns of this plan they are.
    pub(crate) columns: Vec<usize>,
    /// The share of its rows that is assumed to be left when predicates and other joins have
    /// dropped rows: see [`LEFT_BY_JOIN`].
    pub(crate) left: f64,
    /// The operators above this plan through which rows can be dropped, from the top.
    pub(crate) passed: Vec<Plan>,
}

/// The share of rows that is assumed to be left by a join whose other side drops rows. Joins with a
/// part of a dimension leave few rows, so that a filter can save little more.
const LEFT_BY_JOIN: f64 = 0.1;

/// The [`Lowest`] plan for these columns.
pub(crate) fn lowest(plan: &Plan, columns: &[usize]) -> Lowest {
    if !is_scan(plan)
        && let Some((input, below)) = trace(plan, columns)
        && commutes_with_dropping(plan, input)
    {
        let mut lowest = lowest(plan.children()[input], &below);
        lowest.passed.insert(0, plan.clone());
        let reduces = |(n, other): (usize, &Plan)| n != input && is_selective(other);
        let reduced = plan.children().into_iter().enumerate().any(reduces);
        return Lowest { left: lowest.left * if reduced { LEFT_BY_JOIN } else { 1.0 }, ..lowest };
    }
    let left = match (filters_within(plan), is_selective(plan)) {
        (0, false) => 1.0,
        (0, true) if is_scan(plan) => left_by_predicates(plan),
        (0, true) if has_selective_join(plan) => LEFT_BY_JOIN,
        (0, true) => LEFT_BY_PREDICATE,
        _ => LEFT_BY_JOIN,
    };
    Lowest { plan: plan.clone(), columns: columns.to_vec(), left, passed: Vec::new() }
}

/// The plan with `replacement` in place of its [`lowest`] plan.
pub(crate) fn with_lowest(plan: &Plan, columns: &[usize], replacement: Plan) -> Result<Plan> {
    if !is_scan(plan)
        && let Some((input, below)) = trace(plan, columns)
        && commutes_with_dropping(plan, input)
    {
        let mut children: Vec<Plan> = plan.children().into_iter().cloned().collect();
        children[input] = with_lowest(&children[input], &below, replacement)?;
        return with_children(plan.clone(), children);
    }
    Ok(replacement)
}

/// The smallest part of a plan that has all values of these columns, and perhaps more: the table
/// that they come from, without the joins, groups and limits above it. Whatever these do to a
/// column, they add no value but NULL.
pub(crate) fn source(plan: &Plan, columns: &[usize]) -> (Plan, Vec<usize>) {
    match trace(plan, columns) {
        Some((input, below)) if !is_scan(plan) => source(plan.children()[input], &below),
        _ => (plan.clone(), columns.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::{JoinType, NullEquality};
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{Column, binary, col, lit};
    use datafusion::physical_plan::PhysicalExpr;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion::physical_plan::filter::FilterExec;
    use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
    use datafusion::physical_plan::projection::ProjectionExec;

    use super::*;

    /// A column that is computed comes from no table, so that rows are dropped above the joins.
    #[test]
    fn a_join_with_a_part_of_a_table_leaves_a_tenth() {
        let fields = ["k", "attr"].map(|name| Field::new(name, DataType::Int32, true));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let table = || -> Plan { Arc::new(EmptyExec::new(schema.clone())) };
        let part = |of: Plan| -> Plan {
            let attr = col("attr", &of.schema()).unwrap();
            let predicate = binary(attr, Operator::NotEq, lit(3), &of.schema()).unwrap();
            Arc::new(FilterExec::try_new(predicate, of).unwrap())
        };
        let join = |left: Plan, right: Plan| -> Plan {
            let k = || col("k", &schema).unwrap();
            let (on, mode) = (vec![(k(), k())], PartitionMode::Partitioned);
            let nulls = NullEquality::NullEqualsNothing;
            let join_type = JoinType::Inner;
            let join =
                HashJoinExec::try_new(left, right, on, None, &join_type, None, mode, nulls, false);
            Arc::new(join.unwrap())
        };
        let computed = |of: Plan| -> Plan {
            let k: Arc<dyn PhysicalExpr> = Arc::new(Column::new("k", 0));
            let sum = binary(k.clone(), Operator::Plus, k, &of.schema()).unwrap();
            Arc::new(ProjectionExec::try_new([(sum, "sum".to_string())], of).unwrap())
        };
        for (left, plan) in [
            (1.0, table()),
            (0.5, part(table())),
            (1.0, join(table(), table())),
            (0.1, join(part(table()), table())),
            (0.1, join(join(table(), part(table())), table())),
        ] {
            let found = lowest(&computed(plan), &[0]);
            assert!((found.left - left).abs() < 1e-9, "{} ({left})", found.left);
        }
        // Below a join with a part, of a table without predicates.
        let found = lowest(&join(part(table()), table()), &[2]);
        assert!((found.left - 0.1).abs() < 1e-9, "{}", found.left);
        assert!(found.plan.is::<EmptyExec>());
    }
}
