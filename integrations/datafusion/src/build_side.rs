//! What must hold of the build side of a join before its keys become a filter.
//!
//! Its plan runs a second time, for the filter. If the two runs may differ, the filter can lack
//! keys of the run that is joined, and drop rows that have a partner. So only operators that are
//! known to give the same rows each time are accepted, and every other is not.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::memory::{DataSourceExec, MemorySourceConfig};
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::Boundedness;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec,
};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::statistics::StatisticsContext;
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr, StatisticsArgs};

use crate::aggregate::BLOOM_FILTER_AGG;
use crate::probe::BloomProbeExec;

type Plan = Arc<dyn ExecutionPlan>;

/// Why a plan may give other rows the second time, or `None` if it cannot.
pub(crate) fn not_repeatable(plan: &Plan) -> Result<Option<String>> {
    let name = plan.name();
    if plan.fetch().is_some() {
        return Ok(Some(format!("{name} stops after some rows")));
    }
    if !matches!(plan.properties().boundedness, Boundedness::Bounded) {
        return Ok(Some(format!("{name} is not bounded")));
    }
    if !is_known(plan) {
        return Ok(Some(format!("{name} is not known to give the same rows each time")));
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
            let is_filter = number == 1 && plan.is::<BloomProbeExec>();
            reason = not_repeatable(if is_filter { keys_of(child) } else { child })?;
        }
    }
    Ok(reason)
}

/// The plan of the keys of a filter within the build side. The filter itself may differ from run to
/// run in its false positives, which the join above it drops. Other uses of the aggregate may not:
/// what is above them sees false positives.
fn keys_of(plan: &Plan) -> &Plan {
    let is_filter = |aggregate: &AggregateExec| {
        aggregate.aggr_expr().iter().all(|a| a.fun().name() == BLOOM_FILTER_AGG)
    };
    let mut at = plan;
    loop {
        let [child] = at.children()[..] else { return plan };
        match at.downcast_ref::<AggregateExec>() {
            Some(aggregate) if !is_filter(aggregate) => return plan,
            Some(aggregate) if !is_final(*aggregate.mode()) => return child,
            Some(_) => {}
            // One task's merging has the two others.
            None if at.is::<CoalescePartitionsExec>()
                || at.is::<ProjectionExec>()
                || at.is::<RepartitionExec>() => {}
            None => return plan,
        }
        at = child;
    }
}

fn is_final(mode: AggregateMode) -> bool {
    matches!(mode, AggregateMode::Final | AggregateMode::FinalPartitioned)
}

fn is_known(plan: &Plan) -> bool {
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return aggregate.limit_options().is_none()
            && aggregate.aggr_expr().iter().all(|a| is_independent_of_order(a));
    }
    if let Some(source) = plan.downcast_ref::<DataSourceExec>() {
        let source = source.data_source();
        return source.downcast_ref::<FileScanConfig>().is_some()
            || source.downcast_ref::<MemorySourceConfig>().is_some();
    }
    plan.is::<FilterExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<BloomProbeExec>()
        || plan.is::<HashJoinExec>()
        || plan.is::<SortMergeJoinExec>()
        || plan.is::<NestedLoopJoinExec>()
        || plan.is::<CrossJoinExec>()
        || plan.is::<UnionExec>()
        || plan.is::<InterleaveExec>()
        || plan.is::<RepartitionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<SortExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<EmptyExec>()
        || plan.is::<PlaceholderRowExec>()
}

/// Whether an aggregate is the same in whatever order its rows come, which differs from run to run:
/// sums of floating-point numbers and first values are not.
fn is_independent_of_order(aggregate: &AggregateFunctionExpr) -> bool {
    match aggregate.fun().name() {
        "count" | "bool_and" | "bool_or" | "bit_and" | "bit_or" | "bit_xor" => true,
        // The least of values among which is NaN may depend on where it comes.
        "min" | "max" | "sum" => {
            let field = aggregate.field();
            let of = field.data_type();
            !of.is_floating() && !of.is_nested() && !matches!(of, DataType::Dictionary(..))
        }
        _ => false,
    }
}

fn is_dynamic(expression: &Arc<dyn PhysicalExpr>) -> Result<bool> {
    expression.exists(|part| Ok(part.is::<DynamicFilterPhysicalExpr>()))
}

/// The predicate of a scan of files, that of which it may use only statistics too.
pub(crate) fn scan_predicate(plan: &Plan) -> Option<Arc<dyn PhysicalExpr>> {
    let source = plan.downcast_ref::<DataSourceExec>()?.data_source();
    source.downcast_ref::<FileScanConfig>()?.file_source().filter()
}

/// Whether something in the plan drops rows. Without it the keys of a build side are all there are,
/// and most rows are hits.
pub(crate) fn is_selective(plan: &Plan) -> bool {
    plan.is::<FilterExec>()
        || plan.is::<BloomProbeExec>()
        || scan_predicate(plan).is_some()
        || plan.children().into_iter().any(is_selective)
}

/// Whether a window function is computed in the plan. Ballista may divide windows by ranges, and
/// then plans no operator of two inputs above them.
pub(crate) fn has_window(plan: &Plan) -> bool {
    plan.is::<WindowAggExec>()
        || plan.is::<BoundedWindowAggExec>()
        || plan.children().into_iter().any(has_window)
}

/// Filters within the plan. Each doubles what is below it, so that a chain of them would grow
/// exponentially.
pub(crate) fn filters_within(plan: &Plan) -> usize {
    let below: usize = plan.children().into_iter().map(filters_within).sum();
    below + usize::from(plan.is::<BloomProbeExec>())
}

/// Rows and bytes, as far as statistics have them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Estimate {
    pub(crate) rows: Option<usize>,
    pub(crate) bytes: Option<usize>,
}

pub(crate) fn estimate(plan: &Plan) -> Estimate {
    match StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()) {
        Ok(statistics) => Estimate {
            rows: statistics.num_rows.get_value().copied(),
            bytes: statistics.total_byte_size.get_value().copied(),
        },
        Err(_) => Estimate::default(),
    }
}

/// About how many keys the plan can have at most: the rows of the tables that they can come from.
/// Unlike an estimate of what a predicate leaves, it is not too small by orders of magnitude; a key
/// that combines columns of two tables can still have more values.
pub(crate) fn most_keys(plan: &Plan) -> Option<usize> {
    let children = plan.children();
    match children.as_slice() {
        [] => estimate(plan).rows,
        [child] => most_keys(child),
        // The filter is no table.
        [input, _] if plan.is::<BloomProbeExec>() => most_keys(input),
        inputs => {
            let keys: Option<Vec<usize>> = inputs.iter().map(|plan| most_keys(plan)).collect();
            let keys = keys?;
            if plan.is::<UnionExec>() || plan.is::<InterleaveExec>() {
                keys.iter().try_fold(0, |sum: usize, keys| sum.checked_add(*keys))
            } else {
                keys.into_iter().max()
            }
        }
    }
}
