//! Where the columns of a plan come from: how far down rows can be dropped by the keys of a join,
//! and the smallest plan that has all of these keys.

use std::sync::Arc;

use datafusion::common::{JoinType, Result};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, PhysicalExpr, ReplaceChildrenOptions,
};

use crate::build_side::{filters_within, is_selective};
use crate::limits::is_volatile;
use crate::predicates::{LEFT_BY_PREDICATE, left_by_predicates};
use crate::probe::BloomProbeExec;

type Plan = Arc<dyn ExecutionPlan>;

/// The number of the input from which all these columns come unchanged, and which of its columns
/// they are; `None` if there is no such input. Outer joins may add NULL to the columns.
fn origin(plan: &Plan, columns: &[usize]) -> Option<(usize, Vec<usize>)> {
    let column =
        |expression: &Arc<dyn PhysicalExpr>| expression.downcast_ref::<Column>().map(Column::index);
    let mapped = |projection: Option<&[usize]>| -> Option<Vec<usize>> {
        match projection {
            Some(projection) => columns.iter().map(|&c| projection.get(c).copied()).collect(),
            None => Some(columns.to_vec()),
        }
    };
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let columns = columns.iter().map(|&c| column(&projection.expr()[c].expr));
        return Some((0, columns.collect::<Option<_>>()?));
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return Some((0, mapped(filter.projection().as_deref())?));
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let groups = aggregate.group_expr();
        if !groups.is_single() {
            return None;
        }
        let columns = columns.iter().map(|&c| column(&groups.expr().get(c)?.0));
        return Some((0, columns.collect::<Option<_>>()?));
    }
    let (join_type, projection) = if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        (*join.join_type(), join.projection.as_deref())
    } else if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        (join.join_type(), None)
    } else {
        let passes = plan.is::<BloomProbeExec>()
            || plan.is::<RepartitionExec>()
            || plan.is::<CoalescePartitionsExec>()
            || plan.is::<SortExec>()
            || plan.is::<SortPreservingMergeExec>()
            || plan.is::<CooperativeExec>();
        return passes.then(|| (0, columns.to_vec()));
    };
    let columns = mapped(projection)?;
    let fields = |child: usize| plan.children()[child].schema().fields().len();
    // How many columns of the left and of the right input the join has, before its projection.
    let (left, right) = match join_type {
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => (fields(0), 0),
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => (0, fields(1)),
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
            (fields(0), fields(1))
        }
    };
    if columns.iter().all(|&c| c < left) {
        return Some((0, columns));
    }
    let in_right = columns.iter().all(|&c| c >= left && c < left + right);
    in_right.then(|| (1, columns.iter().map(|c| c - left).collect()))
}

/// Whether rows can be dropped by columns of this input below an operator as well as above it: they
/// cannot if the operator keeps the first rows or numbers them. The operator must be one that
/// [`origin`] knows.
fn commutes_with_dropping(plan: &Plan, input: usize) -> bool {
    if plan.fetch().is_some() || is_volatile(plan).unwrap_or(true) {
        return false;
    }
    let join_type = if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        if join.null_aware {
            return false;
        }
        *join.join_type()
    } else if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        join.join_type()
    } else if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return aggregate.limit_options().is_none();
    } else {
        return true;
    };
    match join_type {
        JoinType::Inner => true,
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => input == 0,
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
            input == 1
        }
        JoinType::Full => false,
    }
}

/// Whether the plan is a table, with whatever predicates, expressions and filters above it.
pub(crate) fn is_scan(plan: &Plan) -> bool {
    plan.children().first().is_none_or(|input| computes_by_row(plan) && is_scan(input))
}

/// Whether what the operator gives is computed from each row of its first input alone. It then has
/// the partitions of that input.
pub(crate) fn computes_by_row(plan: &Plan) -> bool {
    plan.is::<FilterExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<BloomProbeExec>()
        || plan.is::<CooperativeExec>()
}

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
        && let Some((input, below)) = origin(plan, columns)
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

/// Whether a side of a join in the plan drops rows.
fn has_selective_join(plan: &Plan) -> bool {
    let is_join = plan.is::<HashJoinExec>() || plan.is::<SortMergeJoinExec>();
    let children = plan.children();
    (is_join && children.iter().any(|side| is_selective(side)))
        || children.into_iter().any(has_selective_join)
}

/// The plan with `replacement` in place of its [`lowest`] plan.
pub(crate) fn with_lowest(plan: &Plan, columns: &[usize], replacement: Plan) -> Result<Plan> {
    if !is_scan(plan)
        && let Some((input, below)) = origin(plan, columns)
        && commutes_with_dropping(plan, input)
    {
        let mut children: Vec<Plan> = plan.children().into_iter().cloned().collect();
        children[input] = with_lowest(&children[input], &below, replacement)?;
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        return plan.clone().replace_children(children, options);
    }
    Ok(replacement)
}

/// The smallest part of a plan that has all values of these columns, and perhaps more: the table
/// that they come from, without the joins, groups and limits above it. Whatever these do to a
/// column, they add no value but NULL.
pub(crate) fn source(plan: &Plan, columns: &[usize]) -> (Plan, Vec<usize>) {
    match origin(plan, columns) {
        Some((input, below)) if !is_scan(plan) => source(plan.children()[input], &below),
        _ => (plan.clone(), columns.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::NullEquality;
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{binary, col, lit};
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion::physical_plan::joins::PartitionMode;

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
