//! Sessions whose joins are shuffled, and helpers for rows and plans.

use std::sync::Arc;

use blocked_bloom_datafusion::with_bloom_filters;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};

/// Returns a configuration that partitions both sides of every join, even of small tables.
pub(crate) fn config() -> SessionConfig {
    SessionConfig::new()
        .with_target_partitions(4)
        .set_u64("datafusion.optimizer.hash_join_single_partition_threshold", 0)
        .set_u64("datafusion.optimizer.hash_join_single_partition_threshold_rows", 0)
}

/// A `bloom_join.max_cost` for tables that stand for tables of a hundred times the rows. The tasks
/// of a filter cost the same at any size. With the default, `auto` would filter almost nothing in
/// tables that are small enough for tests.
#[cfg(any(feature = "cluster", feature = "distributed"))]
pub(crate) const LARGER: &str = "25";

/// Creates a session with the functions and the rule.
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

/// Returns the rows as sorted text, so that their order does not matter.
pub(crate) async fn rows(context: &SessionContext, sql: &str) -> Vec<String> {
    sorted_lines(&run(context, sql).await)
}

pub(crate) fn sorted_lines(batches: &[RecordBatch]) -> Vec<String> {
    let text = pretty_format_batches(batches).unwrap().to_string();
    let lines = text.lines().filter(|line| !line.starts_with('+'));
    // A column is as wide as its widest value, so equal rows have equal text.
    let mut lines: Vec<_> = lines.map(String::from).collect();
    lines.sort();
    lines
}

/// Returns the number in the single row and column of a query's result.
pub(crate) async fn number(context: &SessionContext, sql: &str) -> i64 {
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::Int64Type;
    let batches = run(context, sql).await;
    batches[0].column(0).as_primitive::<Int64Type>().value(0)
}

/// Returns the error of planning or running a query.
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

/// Returns the physical plan as text.
pub(crate) async fn plan(context: &SessionContext, sql: &str) -> String {
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    displayable(plan.as_ref()).indent(false).to_string()
}

pub(crate) async fn probes(context: &SessionContext, sql: &str) -> usize {
    plan(context, sql).await.matches("BloomProbeExec").count()
}

/// Registers a table in memory, with several batches per partition.
pub(crate) fn register(
    context: &SessionContext,
    name: &str,
    columns: Vec<(&str, ArrayRef)>,
    partitions: usize,
) {
    let all_rows = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap();
    let (rows, mut parts) = (all_rows.num_rows(), vec![Vec::new(); partitions]);
    let step = (rows / (3 * partitions)).max(1);
    for (n, first) in (0..rows).step_by(step).enumerate() {
        parts[n % partitions].push(all_rows.slice(first, step.min(rows - first)));
    }
    let table = MemTable::try_new(all_rows.schema(), parts).unwrap();
    context.register_table(name, Arc::new(table)).unwrap();
}
