//! Sessions whose joins are shuffled, and the rows and plans of their queries.

use std::sync::Arc;

use blocked_bloom_datafusion::with_bloom_filters;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};

/// A configuration in which both sides of every join are partitioned, however small they are.
pub(crate) fn config() -> SessionConfig {
    SessionConfig::new()
        .with_target_partitions(4)
        .set_u64("datafusion.optimizer.hash_join_single_partition_threshold", 0)
        .set_u64("datafusion.optimizer.hash_join_single_partition_threshold_rows", 0)
}

/// The `bloom_join.max_cost` of tables that stand for those of a hundred times the rows. The tasks
/// of a filter cost the same at any size, so that with the default `auto` filters next to nothing
/// of tables which tests take seconds for.
#[cfg(any(feature = "cluster", feature = "distributed"))]
pub(crate) const LARGER: &str = "25";

/// A session with the functions and the rule.
pub(crate) async fn context() -> SessionContext {
    context_of(config()).await
}

pub(crate) async fn context_of(config: SessionConfig) -> SessionContext {
    let state = SessionStateBuilder::new_with_default_features().with_config(config).build();
    let context = SessionContext::new_with_state(with_bloom_filters(state));
    run(&context, "SET bloom_join.enabled = true").await;
    run(&context, "SET bloom_join.min_probe_rows = 0").await;
    context
}

pub(crate) async fn run(context: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    let frame = context.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    frame.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The rows as text, sorted, so that the order in which they came does not matter.
pub(crate) async fn rows(context: &SessionContext, sql: &str) -> Vec<String> {
    sorted_lines(&run(context, sql).await)
}

pub(crate) fn sorted_lines(batches: &[RecordBatch]) -> Vec<String> {
    let text = pretty_format_batches(batches).unwrap().to_string();
    let lines = text.lines().filter(|line| !line.starts_with('+'));
    // A column is as wide as its widest value, so that the same rows give the same text.
    let mut lines: Vec<_> = lines.map(String::from).collect();
    lines.sort();
    lines
}

/// The number that a query of one row and one column gives.
pub(crate) async fn number(context: &SessionContext, sql: &str) -> i64 {
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::Int64Type;
    let batches = run(context, sql).await;
    batches[0].column(0).as_primitive::<Int64Type>().value(0)
}

/// The error of a query, whether planning or running it fails.
pub(crate) async fn error(context: &SessionContext, sql: &str) -> String {
    let result: Result<_, DataFusionError> = match context.sql(sql).await {
        Ok(frame) => frame.collect().await,
        Err(error) => Err(error),
    };
    match result {
        Ok(batches) => panic!("{sql} gave {}", pretty_format_batches(&batches).unwrap()),
        Err(error) => error.to_string(),
    }
}

/// The physical plan.
pub(crate) async fn plan(context: &SessionContext, sql: &str) -> String {
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    displayable(plan.as_ref()).indent(false).to_string()
}

pub(crate) async fn probes(context: &SessionContext, sql: &str) -> usize {
    plan(context, sql).await.matches("BloomProbeExec").count()
}

/// A table in memory, in some partitions of several batches each.
pub(crate) fn register(
    context: &SessionContext,
    name: &str,
    columns: Vec<(&str, ArrayRef)>,
    partitions: usize,
) {
    let whole = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap();
    let (rows, mut parts) = (whole.num_rows(), vec![Vec::new(); partitions]);
    let step = (rows / (3 * partitions)).max(1);
    for (n, first) in (0..rows).step_by(step).enumerate() {
        parts[n % partitions].push(whole.slice(first, step.min(rows - first)));
    }
    let table = MemTable::try_new(whole.schema(), parts).unwrap();
    context.register_table(name, Arc::new(table)).unwrap();
}
