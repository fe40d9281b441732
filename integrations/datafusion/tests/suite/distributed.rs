//! datafusion-distributed with three workers. With filters, queries return the rows of the plain
//! engine in one process.

use blocked_bloom_datafusion::distributed::{session, worker_session};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_distributed::DistributedExt;

use crate::common::{LARGER, config, plan, run};
use crate::tpcds::{self, Tolerance};
use crate::tpch::generated;
use crate::workers::Workers;

/// Creates a session with filters (`true`, `false` or `auto`) whose scans are divided among all
/// workers, even of small tables.
fn context(workers: &Workers, config: SessionConfig, enabled: &str) -> SessionContext {
    let config = config.with_distributed_worker_resolver(workers.resolver());
    let builder = SessionStateBuilder::new().with_default_features().with_config(config);
    let builder = session(builder).with_distributed_file_scan_config_bytes_per_partition(1);
    let state = builder.unwrap().build();
    let context = SessionContext::new_with_state(state);
    let options = context.state_ref();
    let mut state = options.write();
    let options = state.config_mut().options_mut();
    options.set("bloom_join.enabled", enabled).unwrap();
    options.set("bloom_join.min_probe_rows", "0").unwrap();
    options.set("bloom_join.max_cost", LARGER).unwrap();
    drop(state);
    context
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tpch_in_three_workers() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    generated::write(directory, crate::tpch::scale(0.01), 2).unwrap();
    let local = SessionContext::new();
    generated::register(&local, directory).await.unwrap();
    let workers = Workers::start(3, worker_session).await;
    for (hash, enabled) in [(true, "true"), (false, "true"), (false, "auto")] {
        let config = config().set_bool("datafusion.optimizer.prefer_hash_join", hash);
        let context = context(&workers, config, enabled);
        generated::register(&context, directory).await.unwrap();
        let mut filters = [0; 22];
        for number in 1..=22 {
            let sql = generated::query(number);
            let expected = pretty_format_batches(&run(&local, &sql).await).unwrap();
            let plan = plan(&context, &sql).await;
            filters[number - 1] = plan.matches("BloomProbeExec").count();
            assert!(filters[number - 1] == 0 || plan.contains("NetworkBroadcastExec"), "{plan}");
            let answer = pretty_format_batches(&run(&context, &sql).await).unwrap();
            let case = format!("query {number}, hash joins {hash}, {enabled}");
            assert_eq!(answer.to_string(), expected.to_string(), "{case}\n{plan}");
        }
        println!("hash joins {hash}, {enabled}: filters {filters:?}");
        let least = if enabled == "true" { 11 } else { 7 };
        assert!(filters.iter().filter(|filters| **filters > 0).count() >= least, "{filters:?}");
    }
}

/// Queries that also fail without filters are named and skipped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tpcds_in_three_workers() {
    let Some(folder) = tpcds::folder() else { return };
    let queries = tpcds::expected(&folder).await;
    let workers = Workers::start(3, worker_session).await;
    let (mut wrong, mut left_out) = (Vec::new(), Vec::new());
    for hash in [true, false] {
        let session = async |enabled| {
            let config = config().set_bool("datafusion.optimizer.prefer_hash_join", hash);
            let context = context(&workers, config, enabled);
            tpcds::register(&context, &folder).await.unwrap();
            context
        };
        let (filtered, unfiltered) = (session("true").await, session("false").await);
        let mut filters = 0;
        for (number, (sql, expected)) in (1..).zip(&queries) {
            let answer = async |context| {
                let (filters, rows) = tpcds::answer(context, sql).await;
                (filters, rows.and_then(|rows| expected.check(&rows, Tolerance::ROUNDING)))
            };
            let case = format!("query {number}, hash joins {hash}");
            let (planned, checked) = answer(&filtered).await;
            filters += planned;
            if let Err(with) = checked {
                match answer(&unfiltered).await.1 {
                    Ok(()) => wrong.push(format!("{case}: {with}")),
                    Err(without) => left_out.push(format!("{case}: {without}")),
                }
            }
        }
        println!("hash joins {hash}: {filters} filters");
        assert!(filters > 50, "{filters} filters");
    }
    println!("left out:\n{}", left_out.join("\n"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Stages that are created while the query runs are unknown when filters are planned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_filters_with_dynamic_task_counts() {
    let directory = tempfile::tempdir().unwrap();
    generated::write(directory.path(), 0.001, 2).unwrap();
    let workers = Workers::start(3, worker_session).await;
    let local = SessionContext::new();
    generated::register(&local, directory.path()).await.unwrap();
    let sql = generated::query(3);
    let expected = pretty_format_batches(&run(&local, &sql).await).unwrap().to_string();
    for dynamic in [false, true] {
        let context = context(&workers, config(), "true");
        run(&context, &format!("SET distributed.dynamic_task_count = {dynamic}")).await;
        generated::register(&context, directory.path()).await.unwrap();
        let plan = plan(&context, &sql).await;
        assert_eq!(plan.contains("BloomProbeExec"), !dynamic, "{plan}");
        let answer = pretty_format_batches(&run(&context, &sql).await).unwrap().to_string();
        assert_eq!(answer, expected, "dynamic {dynamic}");
    }
}
