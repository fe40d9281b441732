//! Checks that a filter has the keys of all partitions and tasks. A filter without some of them
//! would drop rows that have a partner.

use std::sync::Arc;

use datafusion::common::{Result, internal_err};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
#[cfg(feature = "distributed")]
use datafusion_distributed::{DistributedTaskContext, NetworkBoundaryExt, NetworkBroadcastExec};

#[cfg(feature = "distributed")]
use crate::probe::BloomProbeExec;
use crate::probe::NAME;

/// A session extension in tests: workers open filters without this check.
#[cfg(all(test, feature = "distributed"))]
pub(crate) struct UncheckedFilters;

/// Checks the plan of a filter in the task that is about to open it. Planners already have to
/// satisfy the distribution that operators require, so this should never fail.
pub(crate) fn check_complete(
    filter: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
) -> Result<()> {
    check_partitions(filter)?;
    #[cfg(all(test, feature = "distributed"))]
    if context.session_config().get_extension::<UncheckedFilters>().is_some() {
        return Ok(());
    }
    #[cfg(feature = "distributed")]
    if let Some(reason) =
        find_missing_part(filter, DistributedTaskContext::from_ctx(context).task_count, true)
    {
        return internal_err!("{NAME}: {reason}");
    }
    _ = context;
    Ok(())
}

/// Checks that the aggregates of a filter merge all partitions.
fn check_partitions(plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
    let partitions = plan.properties().partitioning.partition_count();
    if partitions != 1 {
        return internal_err!("{NAME}: the filter has {partitions} partitions (must be 1)");
    }
    match plan.downcast_ref::<AggregateExec>() {
        Some(aggregate) if !matches!(aggregate.mode(), AggregateMode::Partial) => {
            check_partitions(aggregate.input())
        }
        _ => Ok(()),
    }
}

/// Finds the operator that makes a filter incomplete, because it returns a different part of the
/// keys to each of several tasks.
#[cfg(feature = "distributed")]
pub(crate) fn find_missing_part(
    plan: &Arc<dyn ExecutionPlan>,
    tasks: usize,
    in_filter: bool,
) -> Option<String> {
    let (mut tasks_below, mut in_filter_below) = (tasks, in_filter);
    let is_part = in_filter && tasks > 1;
    if let Some(boundary) = plan.as_network_boundary() {
        if is_part && !plan.is::<NetworkBroadcastExec>() {
            return Some(format!("{} sends each of {tasks} tasks a part of a filter", plan.name()));
        }
        (tasks_below, in_filter_below) = (boundary.input_stage().task_count(), false);
    } else if is_part && plan.children().is_empty() {
        return Some(format!(
            "each of {tasks} tasks would build a filter from its part of the table"
        ));
    }
    let is_probe = plan.is::<BloomProbeExec>();
    let mut children = plan.children().into_iter().enumerate();
    children.find_map(|(n, child)| {
        find_missing_part(child, tasks_below, in_filter_below || (is_probe && n == 1))
    })
}
