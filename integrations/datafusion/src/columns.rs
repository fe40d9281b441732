//! Traces columns through a plan: the lowest point where rows can be dropped by a join's keys, and
//! the smallest plan that has all of these keys.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::physical_plan::ExecutionPlan;

use crate::broadcast::predict;
use crate::build_side::{build_of, is_selective};
use crate::cost::shuffles;
use crate::operators::{Join, Kind, Origin, droppable_sides, is_scan, kind, trace, trace_dropping};
use crate::planning::{Planning, null_share};
use crate::predicates::{PREDICATE_SELECTIVITY, predicate_selectivity};
use crate::probe::BloomProbeExec;

type Plan = Arc<dyn ExecutionPlan>;

/// The lowest plan whose rows can be dropped by some columns. This is the table that the columns
/// come from, with its predicates, unless an operator above it needs the dropped rows for its
/// result.
#[derive(Debug)]
pub(crate) struct ProbePoint {
    pub(crate) plan: Plan,
    /// The columns in this plan.
    pub(crate) columns: Vec<usize>,
    /// The share of the table's rows that this plan returns: after predicates and filters.
    pub(crate) returned: f64,
    /// The operators between the join and this plan, from the top, each with the number of the
    /// input that leads to this plan.
    pub(crate) path: Vec<(Plan, usize)>,
}

/// Finds the [`ProbePoint`] for these columns.
pub(crate) fn find_probe_point(plan: &Plan, columns: &[usize], planning: &Planning) -> ProbePoint {
    let (mut at, mut columns, mut path) = (plan.clone(), columns.to_vec(), Vec::new());
    while let Some(Origin { input, columns: traced, .. }) = trace_dropping(&at, &columns) {
        let below = at.children()[input].clone();
        path.push((at, input));
        (at, columns) = (below, traced);
    }
    let returned = remaining(&at, planning);
    ProbePoint { plan: at, columns, returned, path }
}

impl ProbePoint {
    /// Returns each shuffle of these rows, from the bottom: those of the operators above, and that
    /// of the join with this side. For each, returns the share of the rows that joins below leave,
    /// and the columns.
    pub(crate) fn shuffles(&self, side: &Plan, planning: &Planning) -> Vec<(f64, SchemaRef)> {
        let (mut share, mut found) = (1.0, Vec::new());
        for (plan, input) in self.path.iter().rev() {
            let children = plan.children();
            if shuffles(plan, planning) {
                found.push((share, children[*input].schema()));
            }
            if let Some(join) = Join::find(plan.as_ref()) {
                let (left, right) = droppable_sides(join.join_type);
                let drops_rows = [left, right][*input];
                share *= match drops_rows {
                    true => remaining(children[1 - input], planning).sqrt(),
                    false => 1.0,
                };
            }
        }
        found.push((share, side.schema()));
        found
    }
}

/// Returns the share of a plan's rows that its predicates, joins and filters probably leave. Of a
/// filter, only the square root of the predicted share counts, and of a join above it too. Together
/// they leave the predicted share. As long as only one of them is known, a prediction that is far
/// too low does not rule out another filter.
pub(crate) fn remaining(plan: &Plan, planning: &Planning) -> f64 {
    if let (Some(probe), [input, filter]) = (plan.downcast_ref(), &plan.children()[..]) {
        let keys = build_of(filter).map_or(1.0, |build| remaining(build.input(), planning));
        let present = present(input, BloomProbeExec::columns(probe), planning);
        return remaining(input, planning) * present * keys.sqrt();
    }
    if matches!(kind(plan), Kind::Union | Kind::Interleave) {
        let rows = |input| predict(input, planning).map(|predicted| predicted.rows);
        let left = |input| Some((rows(input)?, remaining(input, planning)));
        let inputs: Option<Vec<(f64, f64)>> = plan.children().into_iter().map(left).collect();
        if let Some(inputs) = inputs {
            let rows: f64 = inputs.iter().map(|(rows, _)| rows).sum();
            return inputs.iter().map(|(rows, left)| rows * left).sum::<f64>() / rows.max(1.0);
        }
    }
    match predict(plan, planning) {
        Some(predicted) => predicted.selectivity,
        None if is_scan(plan) => predicate_selectivity(plan, planning),
        None if is_selective(plan) => PREDICATE_SELECTIVITY,
        None => 1.0,
    }
}

/// Returns the share of a table's rows without a NULL in these columns, as far as statistics know
/// it. A row with a NULL has no partner.
pub(crate) fn present(plan: &Plan, columns: &[usize], planning: &Planning) -> f64 {
    let nulls = columns.iter().filter_map(|&column| nulls(plan, column, planning));
    1.0 - nulls.fold(0.0, f64::max)
}

/// Returns the share of NULL in a table's column, without predicates and filters of other columns:
/// the engine's estimate of the rows that they leave may be far too low.
fn nulls(plan: &Plan, column: usize, planning: &Planning) -> Option<f64> {
    let nulls = null_share(planning.statistics(plan)?.as_ref(), column)?;
    let is_key = |probe: &BloomProbeExec| probe.columns().contains(&column);
    match plan.children().first() {
        _ if nulls == 0.0 || plan.downcast_ref().is_some_and(is_key) => Some(0.0),
        Some(input) if is_scan(plan) => {
            self::nulls(input, trace(plan, &[column])?.columns[0], planning)
        }
        Some(_) => None,
        None => Some(nulls),
    }
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
#[path = "../tests/unit/columns.rs"]
mod tests;
