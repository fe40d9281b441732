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
use crate::build_side::max_keys;
use crate::cost::{Balance, Tasks, Transport};
use crate::engine::Engine;
use crate::filter::Size;
use crate::options::BloomJoinOptions;
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
    config: &ConfigOptions,
) -> Result<(Size, Transport), String> {
    let rate = options.false_positive_rate;
    let most_bytes = match Engine::from_config(config).is_cluster() {
        true => options.max_filter_bytes.min(MAX_CLUSTER_BYTES),
        false => options.max_filter_bytes,
    };
    let keys = max_keys(&build.plan).map_or(options.default_keys, |keys| keys as u64).max(1);
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
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::Statistics;
    use datafusion::common::stats::Precision;
    use datafusion::physical_plan::test::exec::StatisticsExec;

    use super::*;
    use crate::build_side::estimate;

    fn side(rows: Precision<usize>) -> Side {
        let schema = Schema::new(vec![Field::new("k", DataType::Int64, true)]);
        let statistics = Statistics::new_unknown(&schema).with_num_rows(rows);
        let plan: Plan = Arc::new(StatisticsExec::new(statistics, schema));
        Side { columns: vec![Column::new("k", 0)], estimate: estimate(&plan), plan }
    }

    #[cfg(feature = "ballista")]
    #[test]
    fn a_chain_pays_for_each_run_of_a_one_partition_build_side() {
        use datafusion::arrow::array::{Int64Array, RecordBatch};
        use datafusion::catalog::memory::MemorySourceConfig;

        use crate::BloomProbeExec;
        use crate::cost::work;

        let scan = |partitions: usize, rows: usize| -> Plan {
            let keys =
                || Arc::new(Int64Array::from_iter_values(0..(rows / partitions) as i64)) as _;
            let batch = RecordBatch::try_from_iter([("k", keys())]).unwrap();
            let (batches, schema) = (vec![vec![batch.clone()]; partitions], batch.schema());
            MemorySourceConfig::try_new_exec(&batches, schema, None).unwrap()
        };
        let mut config = ConfigOptions::new();
        config.extensions.insert(ballista_core::config::BallistaConfig::default());
        config.optimizer.repartition_file_scans = false;
        let plan = scan(1, 100_000);
        let build = Side { columns: vec![Column::new("k", 0)], estimate: estimate(&plan), plan };
        let size = Size { expected_keys: 100_000, rate: 0.01 };
        let probed_by = |partitions| {
            let filter = filter_plan(&build, size, false, None, &config).unwrap();
            let probed = scan(partitions, 1 << 20);
            let probe = BloomProbeExec::try_new(probed, filter, vec![0], 1.0).unwrap();
            work(&(Arc::new(probe) as Plan), &config).unwrap().time
        };
        let (four, eight) = (probed_by(4), probed_by(8));
        let once = work(&build.plan, &config).unwrap().time;
        assert!(eight - four > 4.0 * once, "{four} {eight} {once}");
    }

    #[test]
    fn filters_stay_within_their_limits() {
        let options = BloomJoinOptions { max_filter_bytes: 1 << 30, ..Default::default() };
        let mut config = ConfigOptions::new();
        config.execution.target_partitions = 2;
        let bytes = |rows, config: &ConfigOptions| {
            let tasks = config.execution.target_partitions as u64;
            let engine = Engine::from_config(config);
            let tasks = Tasks { building: tasks, merging: tasks, probing: tasks, engine };
            let (size, _) = size(&side(rows), tasks, None, &options, config)?;
            Ok::<_, String>(size.params().unwrap().stored_bytes())
        };
        let keys = Precision::Inexact(12_000_000);
        let in_one_process = bytes(keys, &config).unwrap();
        assert!(in_one_process > 14 << 20, "{in_one_process}");
        assert!(bytes(Precision::Absent, &config).unwrap() < 2 << 20, "the default, 1 M keys");
        assert!(bytes(Precision::Inexact(usize::MAX), &config).unwrap_err().contains("rate"));
        // Each of 256 tasks reads 256 partial filters, of at most 8 bytes per key.
        config.execution.target_partitions = 256;
        assert!(bytes(Precision::Inexact(500_000), &config).is_ok());
        assert!(bytes(Precision::Inexact(700_000), &config).is_err());

        #[cfg(feature = "ballista")]
        {
            config.execution.target_partitions = 2;
            config.extensions.insert(ballista_core::config::BallistaConfig::default());
            let in_a_cluster = bytes(keys, &config).unwrap();
            assert!(in_a_cluster <= MAX_CLUSTER_BYTES, "{in_a_cluster}");
            assert!(in_a_cluster > MAX_CLUSTER_BYTES / 10 * 9, "{in_a_cluster}");
            assert!(bytes(Precision::Inexact(100_000_000), &config).is_err());
            // One task merges them, and the other tasks read one filter each.
            config.execution.target_partitions = 256;
            assert!(bytes(Precision::Inexact(700_000), &config).is_ok());
        }
    }
}
