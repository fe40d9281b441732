//! The size of a filter, and the plan that builds it.

use std::sync::Arc;

use blocked_bloom::Sizing;
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::functions::core::r#struct;
use datafusion::physical_expr::aggregate::AggregateExprBuilder;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::projection::ProjectionExec;

use crate::aggregate::bloom_filter_agg;
use crate::build::{ALL, BloomBuildExec};
use crate::cost::{Balance, Tasks, Transport};
use crate::engine::Engine;
use crate::filter::Size;
use crate::options::BloomJoinOptions;
use crate::planning::Planning;
use crate::sides::Side;

type Plan = Arc<dyn ExecutionPlan>;

/// Maximum bytes of a filter in a cluster. Ballista's messages hold 16 MiB.
const MAX_CLUSTER_BYTES: u64 = 12 << 20;

/// Returns the size of the filter and its transport, or the reason why it would be too large or too
/// full.
pub(crate) fn size(
    build: &Side,
    tasks: Tasks,
    limit: Option<&Balance>,
    options: &BloomJoinOptions,
    planning: &Planning,
) -> Result<(Size, Transport), String> {
    let rate = options.false_positive_rate;
    let most_bytes = match Engine::from_config(planning.config).is_cluster() {
        true => options.max_filter_bytes.min(MAX_CLUSTER_BYTES),
        false => options.max_filter_bytes,
    };
    let keys = planning.max_keys(&build.plan).map_or(options.default_keys, |keys| keys as u64);
    let keys = keys.max(1);
    let moved = |bytes| tasks.transport(bytes, keys);
    let fits = |bytes| {
        bytes <= most_bytes
            && moved(bytes).bytes <= options.max_bytes_read
            && limit.is_none_or(|balance| balance.allows(options.max_cost, moved(bytes)))
    };
    let bytes = |size: Size| size.params().map(|params| params.stored_bytes());
    let size = Size { expected_keys: keys, rate };
    match bytes(size) {
        Ok(bytes) if fits(bytes) => return Ok((size, moved(bytes))),
        _ => {}
    }
    // A filter for every row of the tables would be too large. A smaller one is enough if only the
    // estimated number of rows remains. If more remain, it fills up, and the share of hits shows
    // this while the query runs.
    let likely = build.estimate.rows.map_or(keys, |rows| (rows as u64).min(keys)).max(1);
    let mut expected_keys = likely;
    loop {
        let size = Size { expected_keys, rate };
        match bytes(size) {
            Ok(bytes) if fits(bytes) => {
                let filled = Sizing::MaxBytes(bytes).params(likely);
                let filled = filled.map_err(|error| error.to_string())?.false_positive_rate();
                if filled <= options.max_false_positive_rate {
                    return Ok((size, moved(bytes)));
                }
                return Err(format!(
                    "{likely} keys in {bytes} bytes would have a false-positive rate of \
                     {filled:.3} (bloom_join.max_false_positive_rate {})",
                    options.max_false_positive_rate
                ));
            }
            // Shrink the filter in steps of 3 %. Its rate exceeds the configured one, but not
            // `max_false_positive_rate`.
            _ if expected_keys > 1 => expected_keys -= (expected_keys / 32).max(1),
            _ => {
                return Err(format!(
                    "no filter of {likely} keys is within bloom_join.max_filter_bytes \
                     {most_bytes}, max_bytes_read {} and max_cost {}",
                    options.max_bytes_read, options.max_cost
                ));
            }
        }
    }
}

/// Returns the plan of the filter: one row with one column. It runs the build side a second time,
/// and uses only the keys.
pub(crate) fn filter_plan(
    build: &Side,
    size: Size,
    merged: bool,
    stop_above: Option<f64>,
    config: &ConfigOptions,
) -> Result<Plan> {
    let key = |(number, column): (usize, &Column)| {
        let expression: Arc<dyn PhysicalExpr> = Arc::new(column.clone());
        (expression, format!("key{number}"))
    };
    let keys: Vec<_> = build.columns.iter().enumerate().map(key).collect();
    let count = keys.len();
    // Operators keep the state of a run, so the second run needs its own operators.
    let again = reset_plan_states(build.plan.clone())?;
    let keys: Plan = Arc::new(ProjectionExec::try_new(keys, again)?);
    let schema = keys.schema();
    let column = |number| -> Arc<dyn PhysicalExpr> {
        Arc::new(Column::new(&format!("key{number}"), number))
    };
    let key = match count {
        1 => column(0),
        _ => {
            let columns = (0..count).map(column).collect();
            let options = Arc::new(config.clone());
            Arc::new(ScalarFunctionExpr::try_new(r#struct(), columns, &schema, options)?)
        }
    };
    let literal = |value| -> Arc<dyn PhysicalExpr> { Arc::new(Literal::new(value)) };
    let arguments = vec![
        key,
        literal(ScalarValue::Int64(Some(size.expected_keys as i64))),
        literal(ScalarValue::Float64(Some(size.rate))),
    ];
    let aggregate = AggregateExprBuilder::new(bloom_filter_agg(), arguments)
        .schema(schema.clone())
        .alias("bloom_filter")
        .build()?;
    let aggregate = vec![Arc::new(aggregate)];
    let partial: Plan = Arc::new(BloomBuildExec::try_new(keys, size, stop_above, merged)?);
    let finish = |mode, groups, input: Plan| -> Result<Plan> {
        let groups = PhysicalGroupBy::new_single(groups);
        Ok(Arc::new(AggregateExec::try_new(mode, groups, aggregate, vec![None], input, schema)?))
    };
    if !merged {
        let all = Arc::new(CoalescePartitionsExec::new(partial));
        return finish(AggregateMode::Final, vec![], all);
    }
    // All keys are one group. The shuffle of a group-by then sends the partial filters of all
    // partitions to one task.
    let all: Arc<dyn PhysicalExpr> = Arc::new(Column::new(ALL, 0));
    let merged = finish(AggregateMode::FinalPartitioned, vec![(all, ALL.into())], partial)?;
    let filter: Arc<dyn PhysicalExpr> = Arc::new(Column::new("bloom_filter", 1));
    let filter = ProjectionExec::try_new([(filter, "bloom_filter".to_string())], merged)?;
    Ok(Arc::new(CoalescePartitionsExec::new(Arc::new(filter))))
}

#[cfg(test)]
#[path = "../tests/unit/filter_plan.rs"]
mod tests;
