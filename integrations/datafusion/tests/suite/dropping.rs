//! Partitions that are dropped while others continue, and queries that are cancelled. With dynamic
//! filters, the partitions of a join wait for each other.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect, displayable};
use datafusion::prelude::SessionContext;
use futures::{FutureExt, StreamExt};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use crate::common::{config, context_of, run};

/// The time after which a query counts as one that never ends.
const LIMIT: Duration = Duration::from_secs(20);

/// Joins whose inputs are other joins, in the same partitions. In the first two, a filter lies in
/// between: rows cannot be dropped below a volatile projection, nor below a union.
const QUERIES: [&str; 3] = [
    "SELECT x.* FROM (SELECT f.fk, f.id, random() AS r FROM f JOIN g ON f.fk = g.k) x
         JOIN (SELECT k FROM d WHERE attr < 3) d ON x.fk = d.k",
    "SELECT x.* FROM (SELECT f.fk, f.id FROM f JOIN g ON f.fk = g.k UNION ALL
                      SELECT f.fk, f.id FROM f JOIN h ON f.fk = h.k) x
         JOIN (SELECT k FROM d WHERE attr < 3) d ON x.fk = d.k",
    "SELECT f.* FROM f JOIN g ON f.fk = g.k JOIN (SELECT k FROM d WHERE attr < 3) d ON f.fk = d.k",
];

/// Writes three files per table. Only scans of files accept dynamic filters.
async fn context(enabled: bool, directory: &Path) -> SessionContext {
    let context = context_of(config().with_target_partitions(3).with_batch_size(64)).await;
    run(&context, &format!("SET bloom_join.enabled = {enabled}")).await;
    for (table, columns, rows) in [
        ("f", "value AS id, value % 500 AS fk", 2_000),
        ("g", "value AS k", 300),
        ("h", "value * 2 AS k", 200),
        ("d", "value AS k, value % 10 AS attr", 150),
    ] {
        let path = directory.join(table);
        std::fs::create_dir_all(&path).unwrap();
        for file in 0..3 {
            let (first, path) = (file * rows, path.join(format!("{file}.parquet")));
            let sql = format!(
                "COPY (SELECT {columns} FROM generate_series({first}, {})) TO '{}'",
                first + rows - 1,
                path.display()
            );
            if !path.exists() {
                run(&context, &sql).await;
            }
        }
        let path = path.display();
        let sql = format!("CREATE EXTERNAL TABLE {table} STORED AS PARQUET LOCATION '{path}/'");
        run(&context, &sql).await;
    }
    context
}

async fn plan(context: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    assert_eq!(plan.output_partitioning().partition_count(), 3, "{sql}");
    plan
}

/// The first partition is dropped while it waits for the filter. It has not started the join below,
/// for whose build side the other partitions wait.
#[tokio::test]
async fn a_partition_that_is_dropped_while_it_waits_for_a_filter_does_not_stop_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let context = context(true, directory.path()).await;
    for sql in QUERIES {
        for polled in [true, false] {
            let plan = plan(&context, sql).await;
            let shown = displayable(plan.as_ref()).indent(false).to_string();
            assert!(shown.contains("BloomProbeExec") && shown.contains("DynamicFilter"), "{shown}");
            let execute = |partition| plan.execute(partition, context.task_ctx()).unwrap();
            let [mut first, second, third] = [0, 1, 2].map(execute);
            if polled {
                assert!(first.next().now_or_never().is_none(), "it waits");
            }
            drop(first);
            let others = async move { tokio::join!(second.count(), third.count()) };
            let ended = timeout(LIMIT, others).await;
            assert!(matches!(ended, Ok((a, b)) if a + b > 0), "{sql}, polled {polled}\n{shown}");
        }
    }
}

/// A generator of numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn number_below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_that_are_dropped_at_random_do_not_stop_the_others() {
    let directory = tempfile::tempdir().unwrap();
    for enabled in [false, true] {
        let context = context(enabled, directory.path()).await;
        let (mut hung, mut runs) = (0, 0);
        for (number, sql) in QUERIES.into_iter().enumerate() {
            for seed in 0..20 {
                let plan = plan(&context, sql).await;
                let mut numbers = Numbers(seed * 10 + number as u64);
                let drain = |partition| {
                    let mut stream = plan.execute(partition, context.task_ctx()).unwrap();
                    let (micros, batches) = match numbers.number_below(3) {
                        0 => (u64::MAX, usize::MAX),
                        1 => (numbers.number_below(20_000), usize::MAX),
                        _ => (u64::MAX, numbers.number_below(4) as usize),
                    };
                    tokio::spawn(async move {
                        let read = async {
                            for _ in 0..batches {
                                if stream.next().await.is_none() {
                                    break;
                                }
                            }
                        };
                        _ = timeout(Duration::from_micros(micros), read).await;
                    })
                };
                let partitions: Vec<_> = [0, 1, 2].map(drain).into();
                let all = futures::future::join_all(partitions);
                runs += 1;
                hung += usize::from(timeout(LIMIT, all).await.is_err());
            }
        }
        println!("enabled {enabled}: {hung} of {runs} runs did not end");
        assert_eq!(hung, 0, "enabled {enabled}");
    }
}

/// After a query is cancelled, all of its tasks end, and its memory is free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_queries_leave_no_task_and_no_memory() {
    let directory = tempfile::tempdir().unwrap();
    let context = context(true, directory.path()).await;
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let mut numbers = Numbers(7);
    for sql in QUERIES.iter().cycle().take(60) {
        let plan = plan(&context, sql).await;
        let (start, context_of_tasks) = (tokio::time::Instant::now(), context.task_ctx());
        let query = tokio::spawn(collect(plan, context_of_tasks));
        sleep(Duration::from_micros(numbers.number_below(30_000))).await;
        query.abort();
        _ = query.await;
        let left = || (tasks(), context.runtime_env().memory_pool.reserved());
        while left() != (0, 0) {
            assert!(start.elapsed() < LIMIT, "{sql}: (tasks, bytes) {:?} are left", left());
            sleep(Duration::from_millis(1)).await;
        }
    }
}
