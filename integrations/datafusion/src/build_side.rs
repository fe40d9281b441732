//! Requirements on the build side of a join before its keys become a filter.
//!
//! The build side runs twice: once for the join and once for the filter. If the runs returned
//! different rows, the filter could lack keys of the join and drop rows that have a partner.
//! Therefore only operators are accepted that are known to return the same rows each time.

use std::sync::Arc;

use datafusion::catalog::memory::DataSourceExec;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::execution_plan::Boundedness;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};

use crate::build::BloomBuildExec;
use crate::operators::{Kind, is_repeatable, kind};

type Plan = Arc<dyn ExecutionPlan>;

/// Returns the reason why a plan may return other rows when it runs again, or `None` if it cannot.
pub(crate) fn obstacle_to_repeating(plan: &Plan) -> Result<Option<String>> {
    let name = plan.name();
    if plan.fetch().is_some() {
        return Ok(Some(format!("{name} stops after some rows")));
    }
    if !matches!(plan.properties().boundedness, Boundedness::Bounded) {
        return Ok(Some(format!("{name} is not bounded")));
    }
    if !is_repeatable(plan) {
        return Ok(Some(format!("{name} is not known to return the same rows each time")));
    }
    let mut reason = None;
    plan.apply_expressions(&mut |expression| {
        if is_volatile(expression) {
            reason = Some(format!("{expression} is volatile"));
        } else if is_dynamic(expression)? {
            reason = Some(format!("{expression} changes while the query runs"));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    for (number, child) in plan.children().into_iter().enumerate() {
        if reason.is_none() {
            // A filter within the build side may have other false positives in each run: the join
            // above drops them. Its keys must be the same.
            let is_filter = number == 1 && kind(plan) == Kind::Probe;
            let keys = is_filter.then(|| build_of(child)).flatten().map(BloomBuildExec::input);
            reason = obstacle_to_repeating(keys.unwrap_or(child))?;
        }
    }
    Ok(reason)
}

/// Returns the operator that collects the keys of a filter.
pub(crate) fn build_of(filter: &Plan) -> Option<&BloomBuildExec> {
    match filter.downcast_ref::<BloomBuildExec>() {
        Some(build) => Some(build),
        None => build_of(filter.children().first()?),
    }
}

fn is_dynamic(expression: &Arc<dyn PhysicalExpr>) -> Result<bool> {
    expression.exists(|part| Ok(part.is::<DynamicFilterPhysicalExpr>()))
}

/// Returns the predicate of a file scan, even if the scan only compares statistics with it.
pub(crate) fn scan_predicate(plan: &Plan) -> Option<Arc<dyn PhysicalExpr>> {
    let source = plan.downcast_ref::<DataSourceExec>()?.data_source();
    source.downcast_ref::<FileScanConfig>()?.file_source().filter()
}

/// Whether an operator of the plan drops rows. If none does, the build side has all keys and most
/// probed rows are hits.
pub(crate) fn is_selective(plan: &Plan) -> bool {
    matches!(kind(plan), Kind::Filter | Kind::Probe)
        || scan_predicate(plan).is_some()
        || plan.children().into_iter().any(is_selective)
}

/// Whether the plan contains a window function. Ballista may divide a window's rows by ranges, and
/// cannot plan an operator with two inputs above such a window.
pub(crate) fn has_window(plan: &Plan) -> bool {
    kind(plan) == Kind::Window || plan.children().into_iter().any(has_window)
}

/// Returns the length of the longest chain of filters in the plan, in which each filter reduces the
/// keys of the next one. Each runs the plan below it a second time, so a chain multiplies the work.
pub(crate) fn filter_depth(plan: &Plan) -> usize {
    let below = plan.children().into_iter().enumerate().map(|(input, child)| {
        let is_filter = input == 1 && kind(plan) == Kind::Probe;
        filter_depth(child) + usize::from(is_filter)
    });
    below.max().unwrap_or(0)
}
