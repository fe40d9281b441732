//! The sides of the joins in a query, and which tables reduce which others.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;

use crate::build::scan_of;
use crate::build_side::{Estimate, estimate};
use crate::columns::{lowest, source};
use crate::keys::KeyType;
use crate::operators::{Join, Kind, is_scan, kind};

type Plan = Arc<dyn ExecutionPlan>;

/// Whether rows of the (left, right) side that have no partner can be dropped before the join.
pub(crate) fn droppable(join: JoinType) -> (bool, bool) {
    use JoinType::*;
    match join {
        Inner | LeftSemi | RightSemi => (true, true),
        Left => (false, true),
        Right => (true, false),
        Full | LeftAnti | RightAnti | LeftMark | RightMark => (false, false),
    }
}

/// A side of a join.
#[derive(Clone)]
pub(crate) struct Side {
    pub(crate) plan: Plan,
    /// The columns that must equal those of the other side, of which there is at least one.
    pub(crate) columns: Vec<Column>,
    pub(crate) estimate: Estimate,
}

impl Side {
    pub(crate) fn indices(&self) -> Vec<usize> {
        self.columns.iter().map(Column::index).collect()
    }

    /// The smallest part of the plan that has all keys.
    pub(crate) fn table(&self) -> Side {
        let (plan, columns) = source(&self.plan, &self.indices());
        let schema = plan.schema();
        let column = |index: usize| Column::new(schema.field(index).name(), index);
        let columns = columns.into_iter().map(column).collect();
        Side { columns, estimate: estimate(&plan), plan }
    }
}

/// A table that is reduced by another one: a join of the query drops its rows that have no partner
/// in the other table, so that a filter of the table's keys can do without the keys of these rows.
pub(crate) struct Reduction {
    pub(crate) table: Plan,
    pub(crate) columns: Vec<usize>,
    pub(crate) by: Side,
}

/// The tables that other tables reduce by any join of the query: the one that is to have a filter,
/// or one above or below it.
pub(crate) fn reductions(plan: &Plan) -> Result<Vec<Reduction>> {
    let mut reductions = Vec::new();
    let mut tables: Vec<Plan> = Vec::new();
    plan.apply(|plan| {
        if plan.children().is_empty() {
            tables.push(plan.clone());
        }
        let Some((join_type, left, right)) = sides(plan) else {
            return Ok(TreeNodeRecursion::Continue);
        };
        let (drop_left, drop_right) = droppable(join_type);
        for (by, reduced, can) in [(&left, &right, drop_right), (&right, &left, drop_left)] {
            let point = lowest(&reduced.plan, &reduced.indices());
            if can && is_scan(&point.plan) {
                let (table, columns) = (point.plan, point.columns);
                reductions.push(Reduction { table, columns, by: by.table() });
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    // A table that is in the query twice is reduced in one of the two places only.
    reductions.retain(|reduction| {
        let scanned = scan_of(&reduction.table);
        tables.iter().filter(|table| Arc::ptr_eq(table, scanned)).count() == 1
    });
    Ok(reductions)
}

/// Whether the keys of both sides can be compared by their hashes.
pub(crate) fn has_same_keys(a: &Side, b: &Side) -> bool {
    let keys = |side: &Side| -> Result<Vec<KeyType>> {
        let schema = side.plan.schema();
        let of = |column: &Column| KeyType::of(schema.field(column.index()).data_type());
        side.columns.iter().map(of).collect()
    };
    matches!((keys(a), keys(b)), (Ok(a), Ok(b)) if a == b)
}

/// The type and the sides of a join, if they may be shuffled and rows of them may be dropped.
pub(crate) fn sides(plan: &Plan) -> Option<(JoinType, Side, Side)> {
    let join = Join::find(plan.as_ref())?;
    let children = plan.children();
    let (left, right) = (children[0], children[1]);
    // A side that is a probe already has its filter. The sides of a self-join may be one plan.
    if join.is_null_aware
        || join.collects_left
        || join.null_equality == NullEquality::NullEqualsNull
        || kind(left) == Kind::Probe
        || kind(right) == Kind::Probe
        || Arc::ptr_eq(left, right)
    {
        return None;
    }
    let column = |key: &Arc<dyn PhysicalExpr>| key.downcast_ref::<Column>().cloned();
    let is_struct = |side: &Plan, column: &Column| {
        let schema = side.schema();
        match schema.field(column.index()).data_type() {
            DataType::Dictionary(_, values) => values.is_nested(),
            of => of.is_nested(),
        }
    };
    // Keys that are no columns are left to the join: a filter of the other keys drops fewer rows,
    // and still none that has a partner. Columns of structs are left to the join too, which takes
    // NULL within one struct to equal NULL within another.
    let pairs = join.on.iter().filter_map(|(l, r)| Some((column(l)?, column(r)?)));
    let pairs = pairs.filter(|(l, r)| !is_struct(left, l) && !is_struct(right, r));
    let (left_columns, right_columns): (Vec<_>, Vec<_>) = pairs.unzip();
    if left_columns.is_empty() {
        return None;
    }
    let side =
        |plan: &Plan, columns| Side { plan: plan.clone(), columns, estimate: estimate(plan) };
    Some((join.join_type, side(left, left_columns), side(right, right_columns)))
}
