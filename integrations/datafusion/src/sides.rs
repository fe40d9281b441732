//! The sides of the joins in a query, and the tables that reduce other tables.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;

use crate::build::scan_of;
use crate::columns::{find_probe_point, source_table};
use crate::keys::KeyType;
use crate::operators::{Join, droppable_sides, is_scan};
use crate::planning::{Estimate, Planning};

type Plan = Arc<dyn ExecutionPlan>;

/// A side of a join.
#[derive(Clone)]
pub(crate) struct Side {
    pub(crate) plan: Plan,
    /// The columns (at least one) that must equal those of the other side.
    pub(crate) columns: Vec<Column>,
    pub(crate) estimate: Estimate,
}

impl Side {
    pub(crate) fn indices(&self) -> Vec<usize> {
        self.columns.iter().map(Column::index).collect()
    }

    /// Returns the smallest part of the plan that has all keys.
    pub(crate) fn table(&self, planning: &Planning) -> Side {
        let (plan, columns) = source_table(&self.plan, &self.indices());
        let schema = plan.schema();
        let column = |index: usize| Column::new(schema.field(index).name(), index);
        let columns = columns.into_iter().map(column).collect();
        Side { columns, estimate: planning.estimate(&plan), plan }
    }
}

/// A table and another one that reduces it: a join of the query drops rows of the table that have
/// no partner in the other one. A filter of the table's keys does not need the keys of those rows.
pub(crate) struct Reduction {
    pub(crate) table: Plan,
    pub(crate) columns: Vec<usize>,
    pub(crate) reducer: Side,
}

/// Returns the tables that other tables reduce through any join of the query.
pub(crate) fn reductions(plan: &Plan, planning: &Planning) -> Result<Vec<Reduction>> {
    let mut reductions = Vec::new();
    let mut tables: Vec<Plan> = Vec::new();
    plan.apply(|plan| {
        if plan.children().is_empty() {
            tables.push(plan.clone());
        }
        let Some((join_type, left, right)) = join_sides(plan, planning) else {
            return Ok(TreeNodeRecursion::Continue);
        };
        let (drop_left, drop_right) = droppable_sides(join_type);
        for (by, reduced, can) in [(&left, &right, drop_right), (&right, &left, drop_left)] {
            let point = find_probe_point(&reduced.plan, &reduced.indices(), planning);
            if can && is_scan(&point.plan) {
                let (table, columns) = (point.plan, point.columns);
                reductions.push(Reduction { table, columns, reducer: by.table(planning) });
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    // A table that occurs twice in the query is reduced in only one of the two places.
    reductions.retain(|reduction| {
        let scanned = scan_of(&reduction.table);
        tables.iter().filter(|table| Arc::ptr_eq(table, scanned)).count() == 1
    });
    Ok(reductions)
}

/// Whether the hashes of both sides' keys are comparable.
pub(crate) fn has_same_keys(a: &Side, b: &Side) -> bool {
    let keys = |side: &Side| -> Result<Vec<KeyType>> {
        let schema = side.plan.schema();
        let key_type = |column: &Column| KeyType::new(schema.field(column.index()).data_type());
        side.columns.iter().map(key_type).collect()
    };
    matches!((keys(a), keys(b)), (Ok(a), Ok(b)) if a == b)
}

/// Returns the type and sides of a join that may be shuffled and whose rows may be dropped.
pub(crate) fn join_sides(plan: &Plan, planning: &Planning) -> Option<(JoinType, Side, Side)> {
    let join = Join::find(plan.as_ref())?;
    let children = plan.children();
    let (left, right) = (children[0], children[1]);
    // Both sides of a self-join may be one plan.
    if join.is_null_aware
        || join.collects_left
        || join.null_equality == NullEquality::NullEqualsNull
        || Arc::ptr_eq(left, right)
    {
        return None;
    }
    let column = |key: &Arc<dyn PhysicalExpr>| key.downcast_ref::<Column>().cloned();
    let is_struct = |side: &Plan, column: &Column| {
        let schema = side.schema();
        match schema.field(column.index()).data_type() {
            DataType::Dictionary(_, values) => values.is_nested(),
            data_type => data_type.is_nested(),
        }
    };
    // Key expressions that are not columns are left to the join. A filter of the other keys drops
    // fewer rows, but none with a partner. Structs are left to the join too, because it treats NULL
    // in one struct as equal to NULL in another.
    let pairs = join.on.iter().filter_map(|(l, r)| Some((column(l)?, column(r)?)));
    let pairs = pairs.filter(|(l, r)| !is_struct(left, l) && !is_struct(right, r));
    let (left_columns, right_columns): (Vec<_>, Vec<_>) = pairs.unzip();
    if left_columns.is_empty() {
        return None;
    }
    let side = |plan: &Plan, columns| {
        let estimate = planning.estimate(plan);
        Side { plan: plan.clone(), columns, estimate }
    };
    Some((join.join_type, side(left, left_columns), side(right, right_columns)))
}
