//! Limits and volatile expressions: parts of a plan that depend on which rows arrive.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::physical_expr_common::physical_expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

/// Whether an operator of a plan ends after some rows. Moving a predicate from above such an
/// operator to below it changes these rows. The engine's scans and merges with a limit do not
/// refuse such predicates.
pub(crate) fn has_limit(plan: &Arc<dyn ExecutionPlan>) -> bool {
    ends_early(plan) || plan.children().into_iter().any(has_limit)
}

/// Whether this operator ends after some rows.
pub(crate) fn ends_early(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let aggregate = plan.downcast_ref::<AggregateExec>();
    plan.fetch().is_some() || aggregate.is_some_and(|aggregate| aggregate.limit_options().is_some())
}

/// Whether an operator computes something that its rows do not determine, such as a call counter.
pub(crate) fn is_volatile(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let mut volatile = false;
    plan.apply_expressions(&mut |expression| {
        volatile |= physical_expr::is_volatile(expression);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(volatile)
}
