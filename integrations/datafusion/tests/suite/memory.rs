//! Filters that cannot be built, read or opened: the query returns the rows that it returns without
//! the filter.

use std::fmt;
use std::sync::Arc;

use blocked_bloom_datafusion::{BloomProbeExec, with_bloom_filters};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::common::{Result, exec_err};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::{
    FairSpillPool, GreedyMemoryPool, MemoryPool, MemoryReservation,
};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;

use crate::common::{config, context, register, rows, run, sorted_lines};

/// Creates a session with this memory pool, in which joins get filters. `f` has 100,000 rows. `d`
/// has 50,000 rows, and the queries select a part of them.
async fn context_with(pool: Arc<dyn MemoryPool>) -> SessionContext {
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
    let builder = SessionStateBuilder::new_with_default_features();
    let state = builder.with_config(config()).with_runtime_env(runtime).build();
    let context = SessionContext::new_with_state(with_bloom_filters(state));
    run(&context, "SET bloom_join.min_probe_rows = 0").await;
    let column = |rows: i64, value: fn(i64) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..rows).map(value)))
    };
    let columns = vec![
        ("id", column(100_000, |i| i)),
        ("fk", column(100_000, |i| i * 7919 % 60_000)),
        ("g", column(100_000, |i| i % 50)),
    ];
    register(&context, "f", columns, 4);
    let columns = vec![("k", column(50_000, |i| i)), ("attr", column(50_000, |i| i * 31 % 100))];
    register(&context, "d", columns, 2);
    context
}

const QUERIES: [&str; 6] = [
    "SELECT count(*), sum(id) FROM f JOIN d ON fk = k WHERE attr < 50",
    "SELECT count(*), sum(id) FROM f JOIN d ON fk = k WHERE attr < 1",
    "SELECT g, sum(id) FROM f JOIN d ON fk = k WHERE attr < 20 GROUP BY g",
    "SELECT count(*) FROM f WHERE fk IN (SELECT k FROM d WHERE attr < 30)",
    "SELECT count(*), max(n) FROM f JOIN (SELECT k, count(*) n FROM d
     WHERE attr < 30 GROUP BY k) ON fk = k",
    "SELECT id, k FROM f JOIN d ON fk = k WHERE attr < 2 ORDER BY id LIMIT 10",
];

/// Returns the rows of a query, and how often its plan gave up a filter.
async fn run_plan(context: &SessionContext, sql: &str) -> Result<(Vec<String>, usize)> {
    let plan = context.sql(sql).await?.create_physical_plan().await?;
    let batches = collect(plan.clone(), context.task_ctx()).await?;
    Ok((sorted_lines(&batches), given_up(&plan)))
}

fn given_up(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let metric = plan.metrics().and_then(|metrics| metrics.sum_by_name("given_up"));
    let below: usize = plan.children().into_iter().map(given_up).sum();
    metric.map_or(0, |metric| metric.as_usize()) + below
}

#[tokio::test]
async fn no_query_fails_for_lack_of_memory_that_succeeds_without_filters() {
    let mut succeeded = 0;
    for kib in [100, 200, 400, 800, 1600, 3200, 8192] {
        for fair in [false, true] {
            let pool: Arc<dyn MemoryPool> = match fair {
                true => Arc::new(FairSpillPool::new(kib << 10)),
                false => Arc::new(GreedyMemoryPool::new(kib << 10)),
            };
            let context = context_with(pool).await;
            for sql in QUERIES {
                let case = format!("{kib} KiB, fair {fair}, {sql}");
                run(&context, "SET bloom_join.enabled = false").await;
                // At the edge of the pool, the plain query succeeds in a few of its runs.
                let mut plain = run_plan(&context, sql).await;
                for _ in 0..4 {
                    plain = plain.and(run_plan(&context, sql).await);
                }
                let Ok((expected, _)) = plain else { continue };
                run(&context, "SET bloom_join.enabled = true").await;
                let result = run_plan(&context, sql).await;
                let (rows, _) = result.unwrap_or_else(|error| panic!("{case}: {error}"));
                assert_eq!(rows, expected, "{case}");
                succeeded += 1;
            }
        }
    }
    assert!(succeeded > 10, "{succeeded} of 84 queries succeeded");
}

/// A pool that refuses memory only to filters.
#[derive(Debug)]
struct NoMemoryForFilters;

impl MemoryPool for NoMemoryForFilters {
    fn name(&self) -> &str {
        "NoMemoryForFilters"
    }

    fn grow(&self, _: &MemoryReservation, _: usize) {}

    fn shrink(&self, _: &MemoryReservation, _: usize) {}

    fn try_grow(&self, reservation: &MemoryReservation, _: usize) -> Result<()> {
        match reservation.consumer().name() {
            "BloomBuildExec" => exec_err!("no memory for filters"),
            _ => Ok(()),
        }
    }

    fn reserved(&self) -> usize {
        0
    }
}

impl fmt::Display for NoMemoryForFilters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[tokio::test]
async fn queries_succeed_without_memory_for_filters() {
    let context = context_with(Arc::new(NoMemoryForFilters)).await;
    for sql in QUERIES {
        run(&context, "SET bloom_join.enabled = false").await;
        let expected = rows(&context, sql).await;
        run(&context, "SET bloom_join.enabled = true").await;
        let (rows, given_up) = run_plan(&context, sql).await.unwrap();
        assert_eq!(rows, expected, "{sql}");
        assert!(given_up > 0, "{sql}");
    }
    let sql = "EXPLAIN ANALYZE SELECT count(*) FROM f JOIN d ON fk = k WHERE attr < 50";
    let lines = rows(&context, sql).await;
    let line = |operator: &str| lines.iter().find(|line| line.contains(operator)).unwrap();
    let build = line("BloomBuildExec");
    assert!(build.contains("given_up=") && !build.contains("given_up=0"), "{build}");
    let probe = line("BloomProbeExec");
    assert!(probe.contains("given_up=0"), "the pass-all filter was opened: {probe}");
}

/// Returns the number of rows that pass a probe of 1,000 keys whose filter is the result of a
/// query, and the number of filters that it gave up.
async fn probe(filter: &str) -> (usize, usize) {
    let context = context().await;
    let plan = async |sql: &str| context.sql(sql).await.unwrap().create_physical_plan().await;
    let input = plan("SELECT value AS k FROM generate_series(1, 1000)").await.unwrap();
    let filter = plan(filter).await.unwrap();
    let probe = Arc::new(BloomProbeExec::try_new(input, filter, vec![0], 1.0).unwrap());
    let batches = collect(probe.clone(), context.task_ctx()).await.unwrap();
    let given_up = probe.metrics().unwrap().sum_by_name("given_up").unwrap().as_usize();
    (batches.iter().map(RecordBatch::num_rows).sum(), given_up)
}

#[tokio::test]
async fn a_filter_that_cannot_be_opened_drops_no_rows() {
    let (kept, given_up) = probe("SELECT bloom_filter_agg(arrow_cast(7, 'Int64'))").await;
    assert!(kept < 100 && given_up == 0, "{kept} rows, {given_up} given up");
    for filter in [
        // Damaged, of another type of key, NULL, too many, none, and an error while it is built.
        "SELECT arrow_cast('no filter', 'Binary')",
        "SELECT bloom_filter_agg('seven')",
        "SELECT arrow_cast(NULL, 'Binary')",
        "SELECT bloom_filter_agg(k) FROM (VALUES (1), (2)) t(k) GROUP BY k",
        "SELECT arrow_cast('no row', 'Binary') WHERE random() > 2",
        "SELECT bloom_filter_agg(1 / (value - 1)) FROM generate_series(1, 1)",
    ] {
        assert_eq!(probe(filter).await, (1000, 1), "{filter}");
    }
}

#[cfg(any(feature = "ballista", feature = "distributed"))]
#[tokio::test]
async fn a_probe_that_cannot_be_decoded_is_dropped_from_the_plan() {
    #[cfg(feature = "ballista")]
    use blocked_bloom_datafusion::ballista::BloomPhysicalCodec;
    #[cfg(not(feature = "ballista"))]
    use blocked_bloom_datafusion::distributed::BloomPhysicalCodec;
    use datafusion_proto::physical_plan::{
        DefaultPhysicalExtensionCodec, DefaultPhysicalProtoConverter, PhysicalExtensionCodec,
    };

    let context = context().await;
    let plan = async |sql: &str| context.sql(sql).await.unwrap().create_physical_plan().await;
    let input = plan("SELECT value AS k FROM generate_series(1, 1000)").await.unwrap();
    let filter = plan("SELECT bloom_filter_agg(7)").await.unwrap();
    let inputs = [input.clone(), filter.clone()];
    let probe = Arc::new(BloomProbeExec::try_new(input, filter, vec![0], 1.0).unwrap());
    let codec = BloomPhysicalCodec::new(Arc::new(DefaultPhysicalExtensionCodec {}));
    let (mut bytes, converter) = (Vec::new(), DefaultPhysicalProtoConverter {});
    codec.try_encode(probe, &mut bytes, &converter).unwrap();
    let decode =
        |bytes: &[u8]| codec.try_decode(bytes, &inputs, &context.task_ctx(), &converter).unwrap();
    assert!(decode(&bytes).is::<BloomProbeExec>());
    for length in 8..bytes.len() {
        assert!(Arc::ptr_eq(&decode(&bytes[..length]), &inputs[0]), "{length} bytes");
    }
}
