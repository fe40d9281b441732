//! Traces columns through a plan: the lowest point where rows can be dropped by a join's keys, and
//! the smallest plan that has all of these keys.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;

use crate::build_side::{filters_within, has_selective_join, is_selective};
use crate::operators::{Origin, is_scan, trace, trace_dropping, with_children};
use crate::predicates::{PREDICATE_SELECTIVITY, predicate_selectivity};

type Plan = Arc<dyn ExecutionPlan>;

/// The lowest plan whose rows can be dropped by some columns. This is the table that the columns
/// come from, with its predicates, unless an operator above it needs the dropped rows for its
/// result.
#[derive(Debug)]
pub(crate) struct ProbePoint {
    pub(crate) plan: Plan,
    /// The columns in this plan.
    pub(crate) columns: Vec<usize>,
    /// Assumed share of rows that remains after predicates and other joins; see
    /// [`JOIN_SELECTIVITY`].
    pub(crate) selectivity: f64,
    /// The operators between the join and this plan, from the top.
    pub(crate) path: Vec<Plan>,
}

/// Assumed share of rows that remains after a join whose other side drops rows. Joins with a part
/// of a dimension leave few rows, so another filter can save little.
const JOIN_SELECTIVITY: f64 = 0.1;

/// Finds the [`ProbePoint`] for these columns.
pub(crate) fn find_probe_point(plan: &Plan, columns: &[usize]) -> ProbePoint {
    if let Some(Origin { input, columns, .. }) = trace_dropping(plan, columns) {
        let mut point = find_probe_point(plan.children()[input], &columns);
        point.path.insert(0, plan.clone());
        let reduces = |(n, other): (usize, &Plan)| n != input && is_selective(other);
        let reduced = plan.children().into_iter().enumerate().any(reduces);
        point.selectivity *= if reduced { JOIN_SELECTIVITY } else { 1.0 };
        return point;
    }
    let selectivity = match (filters_within(plan), is_selective(plan)) {
        (0, false) => 1.0,
        (0, true) if is_scan(plan) => predicate_selectivity(plan),
        (0, true) if has_selective_join(plan) => JOIN_SELECTIVITY,
        (0, true) => PREDICATE_SELECTIVITY,
        _ => JOIN_SELECTIVITY,
    };
    ProbePoint { plan: plan.clone(), columns: columns.to_vec(), selectivity, path: Vec::new() }
}

/// Replaces the plan at the [`ProbePoint`] of these columns.
pub(crate) fn with_probe(plan: &Plan, columns: &[usize], probe: Plan) -> Result<Plan> {
    if let Some(Origin { input, columns, .. }) = trace_dropping(plan, columns) {
        let mut children: Vec<Plan> = plan.children().into_iter().cloned().collect();
        children[input] = with_probe(&children[input], &columns, probe)?;
        return with_children(plan.clone(), children);
    }
    Ok(probe)
}

/// Returns the smallest part of a plan that has all values of these columns: the table that they
/// come from, without the joins, groups and limits above it. These operators add no value except
/// NULL.
pub(crate) fn source_table(plan: &Plan, columns: &[usize]) -> (Plan, Vec<usize>) {
    match trace(plan, columns) {
        Some(origin) if !is_scan(plan) => {
            source_table(plan.children()[origin.input], &origin.columns)
        }
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

    /// A computed column comes from no table, so rows can only be dropped above the joins.
    #[test]
    fn a_join_with_a_selective_side_keeps_a_tenth() {
        let fields = ["k", "attr"].map(|name| Field::new(name, DataType::Int32, true));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let table = || -> Plan { Arc::new(EmptyExec::new(schema.clone())) };
        let part = |input: Plan| -> Plan {
            let attr = col("attr", &input.schema()).unwrap();
            let predicate = binary(attr, Operator::NotEq, lit(3), &input.schema()).unwrap();
            Arc::new(FilterExec::try_new(predicate, input).unwrap())
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
        let computed = |input: Plan| -> Plan {
            let k: Arc<dyn PhysicalExpr> = Arc::new(Column::new("k", 0));
            let sum = binary(k.clone(), Operator::Plus, k, &input.schema()).unwrap();
            Arc::new(ProjectionExec::try_new([(sum, "sum".to_string())], input).unwrap())
        };
        for (left, plan) in [
            (1.0, table()),
            (0.5, part(table())),
            (1.0, join(table(), table())),
            (0.1, join(part(table()), table())),
            (0.1, join(join(table(), part(table())), table())),
        ] {
            let found = find_probe_point(&computed(plan), &[0]);
            assert!((found.selectivity - left).abs() < 1e-9, "{} ({left})", found.selectivity);
        }
        // The probe point is a table without predicates below a join with a part of another table.
        let found = find_probe_point(&join(part(table()), table()), &[2]);
        assert!((found.selectivity - 0.1).abs() < 1e-9, "{}", found.selectivity);
        assert!(found.plan.is::<EmptyExec>());
    }
}
