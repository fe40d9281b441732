//! TPC-H: with filters, its queries return the rows of the plain engine in its order.

use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::prelude::{SessionConfig, SessionContext};

use self::generated::{query, register, write};
use crate::common::{config, context_of, plan, run};

#[path = "../../examples/cluster/tpch.rs"]
pub(crate) mod generated;

/// Returns the scale factor of the 22 queries: `BLOCKED_BLOOM_TPCH_SCALE`, or this default, which
/// takes seconds.
pub(crate) fn scale(few_seconds: f64) -> f64 {
    std::env::var("BLOCKED_BLOOM_TPCH_SCALE").map_or(few_seconds, |scale| scale.parse().unwrap())
}

/// Returns the rows in their order as text.
fn format_rows(batches: &[RecordBatch]) -> String {
    pretty_format_batches(batches).unwrap().to_string()
}

async fn session(config: SessionConfig, directory: &Path) -> SessionContext {
    let context = context_of(config).await;
    register(&context, directory).await.unwrap();
    context
}

/// Asserts that a query returns the rows of the plain engine in the same order. Returns its number
/// of filters.
async fn compare(plain: &SessionContext, filtered: &SessionContext, sql: &str) -> usize {
    let expected = format_rows(&run(plain, sql).await);
    let plan = plan(filtered, sql).await;
    assert_eq!(format_rows(&run(filtered, sql).await), expected, "{sql}\n{plan}");
    plan.matches("BloomProbeExec").count()
}

/// The engine's sort pushdown counts the columns of an operator through its inputs, one after the
/// other.
#[tokio::test]
async fn sorts_below_a_filter_use_the_right_columns() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 0.01, 2).unwrap();
    let sums = "SELECT sum(l_quantity) s, l_partkey k FROM lineitem GROUP BY l_partkey";
    for (hash, sql) in [
        (
            false,
            format!(
                "SELECT count(*), sum(a.s) FROM ({sums}) a
                    JOIN (SELECT * FROM part WHERE p_brand = 'Brand#23') p ON a.k = p.p_partkey"
            ),
        ),
        (
            true,
            format!(
                "SELECT a.k, a.s FROM ({sums}) a JOIN part p ON a.k = p.p_partkey
                    WHERE p_brand = 'Brand#23' ORDER BY a.s, a.k"
            ),
        ),
        (
            true,
            "SELECT a.k, a.s FROM (SELECT l_partkey k, sum(l_quantity) s FROM lineitem GROUP BY l_partkey) a
                JOIN part p ON a.k = p.p_partkey WHERE p_brand = 'Brand#23' ORDER BY a.s, a.k"
                .to_string(),
        ),
        (
            false,
            "SELECT l_orderkey, l_linenumber, o_totalprice FROM lineitem
                JOIN (SELECT * FROM orders WHERE o_orderstatus = 'P') o ON l_orderkey = o_orderkey
                ORDER BY l_orderkey, l_linenumber"
                .to_string(),
        ),
    ] {
        let config = config().set_bool("datafusion.optimizer.prefer_hash_join", hash);
        let filtered = session(config.clone(), directory.path()).await;
        let plain = session(config, directory.path()).await;
        run(&plain, "SET bloom_join.enabled = false").await;
        assert_eq!(compare(&plain, &filtered, &sql).await, 1, "{sql}");
    }
}

#[tokio::test]
async fn the_22_queries_in_one_process() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), scale(0.02), 2).unwrap();
    for hash in [true, false] {
        let config = config().set_bool("datafusion.optimizer.prefer_hash_join", hash);
        let filtered = session(config.clone(), directory.path()).await;
        let plain = session(config, directory.path()).await;
        run(&plain, "SET bloom_join.enabled = false").await;
        let mut filters = [0; 22];
        for number in 1..=22 {
            filters[number - 1] = compare(&plain, &filtered, &query(number)).await;
        }
        println!("hash joins {hash}: filters {filters:?}");
        assert!(filters.iter().filter(|filters| **filters > 0).count() > 10, "{filters:?}");
    }
}

/// By default no plan changes in one process, where the engine's dynamic filters have the same
/// effect.
#[tokio::test]
async fn one_process_keeps_its_plans_by_default() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 0.001, 1).unwrap();
    for hash in [true, false] {
        let config = config().set_bool("datafusion.optimizer.prefer_hash_join", hash);
        let context = session(config, directory.path()).await;
        for number in 1..=22 {
            let mut plans = Vec::new();
            for enabled in ["false", "auto", "true"] {
                run(&context, &format!("SET bloom_join.enabled = {enabled}")).await;
                plans.push(plan(&context, &query(number)).await);
            }
            assert_eq!(plans[0], plans[1], "query {number}, hash joins {hash}");
            // Query 3 has two selective tables. With filters, its plan differs in other ways too.
            assert!(number != 3 || plans[2].contains("BloomProbeExec"), "{}", plans[2]);
        }
    }
}

/// With row filters in scans, the reader drops rows without a partner and decodes only their key.
#[tokio::test]
async fn filters_move_into_scans_that_accept_them() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 0.01, 2).unwrap();
    let number = |explained: &str, operator: &str, metric: &str| -> u64 {
        let line = explained.lines().find(|line| line.contains(operator)).unwrap();
        let value = line.split(&format!("{metric}=")).nth(1).unwrap_or_else(|| panic!("{line}"));
        let value = value.split([',', ']']).next().unwrap().trim();
        let (digits, unit) = value.split_once(' ').unwrap_or((value, ""));
        let unit = if unit.starts_with('K') { 1e3 } else { 1.0 };
        (digits.parse::<f64>().unwrap() * unit) as u64
    };
    let scan = "/lineitem/";
    for hash in [true, false] {
        let config = config()
            .set_bool("datafusion.optimizer.prefer_hash_join", hash)
            // Hash joins also push their own filters into scans.
            .set_bool("datafusion.optimizer.enable_join_dynamic_filter_pushdown", false);
        let probing = session(config.clone(), directory.path()).await;
        let config = config.set_bool("datafusion.execution.parquet.pushdown_filters", true);
        let filtered = session(config.clone(), directory.path()).await;
        let plain = session(config, directory.path()).await;
        run(&plain, "SET bloom_join.enabled = false").await;
        let mut filters = [0; 22];
        for number in 1..=22 {
            filters[number - 1] = compare(&plain, &filtered, &query(number)).await;
        }
        assert!(filters.iter().filter(|filters| **filters > 0).count() > 10, "{filters:?}");
        let sql = "SELECT l_orderkey, l_comment FROM lineitem JOIN part ON l_partkey = p_partkey
            WHERE p_brand = 'Brand#23' AND l_quantity < 40 ORDER BY l_orderkey, l_comment";
        assert_eq!(compare(&plain, &filtered, sql).await, 1);
        let mut explained = Vec::new();
        for context in [&plain, &filtered, &probing] {
            explained.push(format_rows(&run(context, &format!("EXPLAIN ANALYZE {sql}")).await));
        }
        let [by_predicate, in_scan, above] = &explained[..] else { unreachable!() };
        let before = number(by_predicate, scan, "pushdown_rows_pruned");
        assert!(number(in_scan, scan, "pushdown_rows_pruned") > before + 30_000, "{in_scan}");
        let rows = number(in_scan, scan, "output_rows");
        assert!(rows * 10 < number(by_predicate, scan, "output_rows"), "{in_scan}");
        assert!(number(in_scan, "BloomProbeExec", "input_rows") > 10 * rows, "{in_scan}");
        // Without row filters in scans the operator probes.
        assert!(number(above, scan, "output_rows") > 30_000, "{above}");
        assert!(number(above, "BloomProbeExec", "input_rows") > 30_000, "{above}");
    }
}
