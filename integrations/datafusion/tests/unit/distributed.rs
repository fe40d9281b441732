use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};

use super::workers::Workers;
use super::*;
use crate::completeness::UncheckedFilters;

async fn unchecked_worker_session(mut context: WorkerQueryContext) -> Result<SessionState> {
    let config = context.builder.config().get_or_insert_default();
    config.set_extension(Arc::new(UncheckedFilters));
    worker_session(context).await
}

async fn run(context: &SessionContext, sql: &str) -> Result<(String, String)> {
    let plan = context.sql(sql).await?.create_physical_plan().await?;
    let shown = displayable(plan.as_ref()).indent(false).to_string();
    let batches = datafusion::physical_plan::collect(plan, context.task_ctx()).await?;
    Ok((shown, pretty_format_batches(&batches)?.to_string()))
}

/// The build side is one small file. Each of three tasks reads two of its six row groups. A
/// task that built its own filter would drop rows whose partner is in another task's part.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn incomplete_filters_are_found_twice() {
    let directory = tempfile::tempdir().unwrap();
    let local = SessionContext::new();
    let path = |table| format!("{}/{table}.parquet", directory.path().display());
    let row_groups = "SET datafusion.execution.parquet.max_row_group_size = 500";
    run(&local, row_groups).await.unwrap();
    for (table, sql) in [
        ("fact", "SELECT value AS id, value * 7919 % 3000 AS k FROM generate_series(1, 30000)"),
        ("dim", "SELECT value AS k, value % 3 AS attr FROM generate_series(0, 2999)"),
    ] {
        run(&local, &format!("COPY ({sql}) TO '{}'", path(table))).await.unwrap();
    }
    let register = async |context: &SessionContext| {
        for table in ["fact", "dim"] {
            let options = ParquetReadOptions::default();
            context.register_parquet(table, path(table), options).await.unwrap();
        }
    };
    register(&local).await;
    let sql = "SELECT count(*), sum(id) FROM fact JOIN dim ON fact.k = dim.k WHERE attr = 1";
    let (_, expected) = run(&local, sql).await.unwrap();

    let checked = Workers::start(3, worker_session).await;
    let unchecked = Workers::start(3, unchecked_worker_session).await;
    // With the repartition, the partitions of the build side are coalesced for the filter, and
    // one task probes. Without it, the build side has one partition.
    let with = async |workers: &Workers, broadcast, check, repartition| {
        let threshold = "datafusion.optimizer.hash_join_single_partition_threshold";
        let config = SessionConfig::new()
            .with_target_partitions(2)
            .set_u64(threshold, 0)
            .set_u64(&format!("{threshold}_rows"), 0)
            .set_bool("datafusion.optimizer.enable_round_robin_repartition", repartition)
            .with_option_extension(BloomJoinOptions {
                enabled: Enabled::True,
                min_probe_rows: 0,
                ..Default::default()
            })
            .with_distributed_worker_resolver(workers.resolver());
        let builder = SessionStateBuilder::new().with_default_features().with_config(config);
        let state = session_with(builder, Steps { broadcast, check })
            .with_distributed_file_scan_config_bytes_per_partition(1)
            .unwrap()
            .build();
        let context = SessionContext::new_with_state(state);
        register(&context).await;
        run(&context, sql).await
    };

    // The answers are right, also without the checks.
    for (workers, check) in [(&checked, true), (&unchecked, false)] {
        for repartition in [true, false] {
            let (plan, answer) = with(workers, true, check, repartition).await.unwrap();
            assert!(plan.contains("BloomProbeExec"), "{plan}");
            assert!(plan.contains("NetworkBroadcastExec"), "{plan}");
            assert_eq!(answer, expected, "{plan}");
        }
    }
    // Without the broadcast and the checks, rows are lost.
    let (plan, answer) = with(&unchecked, false, false, false).await.unwrap();
    assert!(plan.contains("BloomProbeExec"), "{plan}");
    assert_ne!(answer, expected, "{plan}");
    // Either check alone is enough: the planner's, and that of the workers.
    let (plan, answer) = with(&unchecked, false, true, false).await.unwrap();
    assert!(!plan.contains("BloomProbeExec"), "{plan}");
    assert_eq!(answer, expected, "{plan}");
    let (plan, answer) = with(&checked, false, false, false).await.unwrap();
    assert!(plan.contains("BloomProbeExec"), "{plan}");
    assert_eq!(answer, expected, "{plan}");
}
