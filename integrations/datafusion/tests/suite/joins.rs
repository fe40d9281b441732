//! Joins in one process return the same rows with filters as without: for every join type, every
//! key type, and NULL in every place.

use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::prelude::SessionContext;

use crate::common::{config, context, context_of, plan, probes, register, rows, run};

/// Creates a large table `f` and a small table `d`. Their keys have the type `to`; some are NULL,
/// repeated, or without a partner.
fn tables(context: &SessionContext, to: &DataType) {
    let keys = |values: &mut dyn Iterator<Item = Option<i64>>| -> ArrayRef {
        let keys: ArrayRef = Arc::new(Int64Array::from_iter(values));
        match to {
            DataType::Date32 => cast(&cast(&keys, &DataType::Int32).unwrap(), to).unwrap(),
            _ => cast(&keys, to).unwrap(),
        }
    };
    let ids = |n: i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(0..n)) };
    let column = |n: i64, f: fn(i64) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..n).map(f)))
    };
    let large = keys(&mut (0..6000).map(|i| (i % 13 != 0).then_some(i * 7 % 1000)));
    let small = keys(&mut (0..300).map(|i| (i % 17 != 0).then_some(i * 11 % 1200)));
    let columns = vec![("id", ids(6000)), ("fk", large), ("a", column(6000, |i| i % 5))];
    register(context, "f", columns, 4);
    let columns = vec![
        ("did", ids(300)),
        ("k", small),
        ("b", column(300, |i| i % 5)),
        ("attr", column(300, |i| i % 10)),
    ];
    register(context, "d", columns, 2);
}

/// Asserts that a query returns the same rows with filters as without, and has this many filters.
async fn compare(context: &SessionContext, sql: &str, filters: usize) {
    run(context, "SET bloom_join.enabled = false").await;
    assert_eq!(probes(context, sql).await, 0, "{sql}");
    let expected = rows(context, sql).await;
    run(context, "SET bloom_join.enabled = true").await;
    let plan = plan(context, sql).await;
    assert_eq!(plan.matches("BloomProbeExec").count(), filters, "{sql}\n{plan}");
    assert_eq!(rows(context, sql).await, expected, "{sql}\n{plan}");
}

/// The selected rows of `d`.
const D: &str = "(SELECT * FROM d WHERE attr < 3)";

#[tokio::test]
async fn every_join_type_and_key_type() {
    use DataType::*;
    let sql = |join: &str| format!("SELECT * FROM f {join} JOIN {D} d ON f.fk = d.k");
    let reversed = |join: &str| format!("SELECT * FROM {D} d {join} JOIN f ON f.fk = d.k");
    let types = [
        Int32,
        Int64,
        UInt16,
        Float64,
        Utf8,
        Utf8View,
        LargeUtf8,
        Date32,
        Decimal128(20, 2),
        Dictionary(Box::new(Int32), Box::new(Utf8)),
    ];
    for prefer_hash in [true, false] {
        let config = config().set_bool("datafusion.optimizer.prefer_hash_join", prefer_hash);
        for to in &types[..if prefer_hash { types.len() } else { 2 }] {
            let context = context_of(config.clone()).await;
            tables(&context, to);
            compare(&context, &sql("INNER"), 1).await;
            compare(&context, &reversed("INNER"), 1).await;
            // The large side is not preserved, so its rows need a partner.
            compare(&context, &sql("RIGHT"), 1).await;
            compare(&context, &reversed("LEFT"), 1).await;
            // The large side is preserved. Only a selective side could filter the small one, and
            // `f` is not selective.
            compare(&context, &sql("LEFT"), 0).await;
            compare(&context, &reversed("RIGHT"), 0).await;
            compare(&context, &sql("FULL"), 0).await;
            let semi = format!("SELECT * FROM f WHERE fk IN (SELECT k FROM {D} d)");
            compare(&context, &semi, 1).await;
            let semi = format!("SELECT * FROM f LEFT SEMI JOIN {D} d ON f.fk = d.k");
            compare(&context, &semi, 1).await;
            let semi = format!("SELECT * FROM {D} d RIGHT SEMI JOIN f ON f.fk = d.k");
            compare(&context, &semi, 1).await;
        }
    }
}

#[tokio::test]
async fn joins_that_keep_rows_without_a_partner_have_no_filter() {
    let context = context().await;
    tables(&context, &DataType::Int64);
    for sql in [
        format!("SELECT * FROM f LEFT ANTI JOIN {D} d ON f.fk = d.k"),
        format!("SELECT * FROM {D} d RIGHT ANTI JOIN f ON f.fk = d.k"),
        format!("SELECT * FROM {D} d LEFT ANTI JOIN f ON f.fk = d.k"),
        format!("SELECT * FROM f WHERE fk NOT IN (SELECT k FROM {D} d)"),
        format!("SELECT * FROM f WHERE fk NOT IN (SELECT k FROM {D} d WHERE k IS NOT NULL)"),
        format!("SELECT * FROM f WHERE NOT EXISTS (SELECT 1 FROM {D} d WHERE d.k = f.fk)"),
        // Mark joins.
        format!("SELECT * FROM f WHERE a = 1 OR fk IN (SELECT k FROM {D} d)"),
        format!("SELECT * FROM f WHERE a = 1 OR EXISTS (SELECT 1 FROM {D} d WHERE d.k = f.fk)"),
        // NULL equals NULL.
        format!("SELECT * FROM f JOIN {D} d ON f.fk IS NOT DISTINCT FROM d.k"),
        format!("SELECT fk FROM f INTERSECT SELECT k FROM {D} d"),
        format!("SELECT fk FROM f EXCEPT SELECT k FROM {D} d"),
        format!("SELECT * FROM f FULL JOIN {D} d ON f.fk = d.k AND f.a < d.b"),
        format!("SELECT * FROM f CROSS JOIN {D} d WHERE f.id < 20"),
        format!("SELECT * FROM f JOIN {D} d ON f.fk < d.k WHERE f.id < 20"),
    ] {
        compare(&context, &sql, 0).await;
    }
}

#[tokio::test]
async fn several_keys_conditions_and_expressions() {
    let context = context().await;
    tables(&context, &DataType::Utf8);
    for (sql, filters) in [
        (format!("SELECT * FROM f JOIN {D} d ON f.fk = d.k AND f.a = d.b"), 1),
        (format!("SELECT * FROM f JOIN {D} d ON f.fk = d.k AND f.a < d.b"), 1),
        (format!("SELECT * FROM f RIGHT JOIN {D} d ON f.fk = d.k AND f.a < d.b"), 1),
        (format!("SELECT * FROM f RIGHT JOIN {D} d ON f.fk = d.k AND d.b > 2"), 1),
        (format!("SELECT * FROM f LEFT JOIN {D} d ON f.fk = d.k AND f.a > 2"), 0),
        (format!("SELECT * FROM f JOIN {D} d ON concat(f.fk, 'x') = concat(d.k, 'x')"), 1),
        (format!("SELECT * FROM f JOIN {D} d ON f.a + 1 = d.b"), 1),
        (
            format!("SELECT * FROM f JOIN {D} d ON f.id = d.did AND f.fk IS NOT DISTINCT FROM d.k"),
            1,
        ),
        // Both sides are selective; the larger one is probed.
        (format!("SELECT * FROM (SELECT * FROM f WHERE a < 4) f JOIN {D} d ON f.fk = d.k"), 1),
        (format!("SELECT * FROM (SELECT * FROM f WHERE a < 4) f LEFT JOIN {D} d ON f.fk = d.k"), 0),
    ] {
        compare(&context, &sql, filters).await;
    }
}

/// A join treats NULL in one struct as equal to NULL in another. The functions treat a struct with
/// a NULL as NULL.
#[tokio::test]
async fn struct_columns_are_left_to_the_join() {
    let context = context().await;
    tables(&context, &DataType::Int64);
    let f = "(SELECT id, a, struct(fk, a) AS s FROM f)";
    let d = "(SELECT did, b, struct(k, b) AS s FROM d WHERE attr < 3)";
    compare(&context, &format!("SELECT * FROM {f} f JOIN {d} d ON f.s = d.s"), 0).await;
    compare(&context, &format!("SELECT * FROM {f} f JOIN {d} d ON f.s = d.s AND f.a = d.b"), 1)
        .await;
    let nulls = format!("SELECT * FROM {f} f JOIN {d} d ON f.s = d.s WHERE f.id % 13 = 0");
    assert!(rows(&context, &nulls).await.len() > 10, "NULL within structs has partners");
}

#[tokio::test]
async fn chains_of_joins_aggregates_and_unions() {
    let context = context().await;
    tables(&context, &DataType::Int64);
    let e = "(SELECT k AS ek, count(*) AS n FROM d WHERE attr < 5 GROUP BY k HAVING count(*) > 0)";
    for (sql, filters) in [
        (format!("SELECT * FROM f JOIN {D} d ON f.fk = d.k JOIN {e} e ON f.fk = e.ek"), 2),
        // The second filter is built from the table that its keys come from, not from the join.
        (format!("SELECT * FROM f JOIN {D} d ON f.fk = d.k JOIN f f2 ON f2.id = d.did"), 2),
        // The keys come from a table that has a filter itself. Both are read again.
        (
            format!(
                "SELECT count(*), sum(g.id) FROM f g JOIN (SELECT f.id, f.fk FROM f JOIN {D} d ON f.fk = d.k) j ON g.fk = j.fk"
            ),
            3,
        ),
        (
            format!(
                "SELECT count(*) FROM f JOIN (SELECT * FROM {D} UNION ALL SELECT * FROM d WHERE attr = 7) d ON f.fk = d.k"
            ),
            1,
        ),
        (
            format!(
                "SELECT a, count(*) FROM f WHERE fk IN (SELECT k FROM {D} d) GROUP BY a ORDER BY a LIMIT 3"
            ),
            1,
        ),
        ("SELECT count(*) FROM f JOIN f g ON f.fk = g.id WHERE g.a = 1".into(), 1),
    ] {
        compare(&context, &sql, filters).await;
    }
}

/// A smaller table reduces a table without a predicate, which then reduces the large table. The two
/// are joined above or below.
#[tokio::test]
async fn filters_of_filtered_tables() {
    let context = context().await;
    tables(&context, &DataType::Int64);
    let numbers = |n: i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(0..n)) };
    register(&context, "n", vec![("nk", numbers(5)), ("name", numbers(5))], 1);
    let n = "(SELECT * FROM n WHERE name = 3)";
    for (sql, nested) in [
        (format!("SELECT * FROM f JOIN d ON f.fk = d.k JOIN {n} n ON d.b = n.nk"), true),
        (
            format!(
                "SELECT * FROM f JOIN (SELECT d.* FROM d JOIN {n} n ON d.b = n.nk) d ON f.fk = d.k"
            ),
            true,
        ),
        (format!("SELECT * FROM d LEFT JOIN f ON f.fk = d.k JOIN {n} n ON d.b = n.nk"), true),
        // Rows of `d` without a partner in `n` stay, and so do their partners in `f`.
        (format!("SELECT * FROM f JOIN d ON f.fk = d.k LEFT JOIN {n} n ON d.b = n.nk"), false),
        (format!("SELECT * FROM f JOIN d ON f.fk = d.k FULL JOIN {n} n ON d.b = n.nk"), false),
        (
            format!("SELECT * FROM f JOIN d ON f.fk = d.k WHERE d.b NOT IN (SELECT nk FROM {n} n)"),
            false,
        ),
        (
            format!(
                "SELECT k, b, count(*) FROM (SELECT f.id, d.k, count(*) AS b FROM f JOIN d ON f.fk = d.k GROUP BY f.id, d.k) g JOIN {n} n ON g.b = n.nk GROUP BY k, b"
            ),
            false,
        ),
    ] {
        run(&context, "SET bloom_join.enabled = false").await;
        let expected = rows(&context, &sql).await;
        run(&context, "SET bloom_join.enabled = true").await;
        let plan = plan(&context, &sql).await;
        assert_eq!(rows(&context, &sql).await, expected, "{sql}\n{plan}");
        let fact = plan.find("BloomProbeExec: key=[fk@");
        assert_eq!(fact.is_some(), nested, "{sql}\n{plan}");
        if let Some(fact) = fact {
            assert!(plan[fact + 1..].contains("BloomProbeExec: key=[b@"), "{sql}\n{plan}");
        }
    }
}

#[tokio::test]
async fn empty_and_null_build_sides() {
    let context = context().await;
    tables(&context, &DataType::Int64);
    for condition in ["attr < 0", "attr > 0 AND k < -1", "k IS NULL"] {
        let d = format!("(SELECT * FROM d WHERE {condition})");
        for join in ["INNER", "RIGHT", "LEFT", "FULL", "LEFT SEMI", "LEFT ANTI"] {
            let sql = format!("SELECT * FROM f {join} JOIN {d} d ON f.fk = d.k");
            let droppable_sides = usize::from(matches!(join, "INNER" | "RIGHT" | "LEFT SEMI"));
            compare(&context, &sql, droppable_sides).await;
        }
    }
}

/// A filter of all keys drops the rows whose key is NULL. The task that builds it must read to the
/// end.
#[tokio::test]
async fn keys_that_are_often_null_are_dropped_by_a_filter_of_all_keys() {
    let context = context().await;
    let keys = |f: fn(i64) -> Option<i64>, n: i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter((0..n).map(f)))
    };
    let columns =
        vec![("id", keys(Some, 200_000)), ("fk", keys(|i| (i % 20 < 3).then_some(i), 200_000))];
    register(&context, "n", columns, 4);
    register(&context, "e", vec![("k", keys(Some, 150_000))], 2);
    for join in ["JOIN", "RIGHT JOIN", "LEFT SEMI JOIN"] {
        compare(&context, &format!("SELECT * FROM n {join} e ON n.fk = e.k"), 1).await;
    }
    for join in ["LEFT JOIN", "FULL JOIN", "LEFT ANTI JOIN"] {
        compare(&context, &format!("SELECT * FROM n {join} e ON n.fk = e.k"), 0).await;
    }
    let sql = "EXPLAIN ANALYZE SELECT count(*) FROM n JOIN e ON n.fk = e.k";
    let explained = rows(&context, sql).await.join("\n");
    let probe = explained.lines().find(|line| line.contains("BloomProbeExec")).unwrap().to_string();
    let (input, output) = (metric(&probe, "input_rows="), metric(&probe, "output_rows="));
    // 22,500 keys have a partner, and one in a hundred of the other 7,500 may pass.
    assert!(input == 200_000.0 && output < 23_000.0, "{probe}");
}

/// The partitions of a scan share a queue of files. The two runs of the build side must not share
/// one.
#[tokio::test]
async fn scans_of_files() {
    let directory = tempfile::tempdir().unwrap();
    let context = context().await;
    for (table, files, rows) in [("f", 4, 2000), ("d", 8, 50)] {
        std::fs::create_dir(directory.path().join(table)).unwrap();
        let path = format!("{}/{table}", directory.path().display());
        for file in 0..files {
            let sql = format!(
                "COPY (SELECT value * 7 % 400 AS k FROM generate_series({}, {})) TO '{path}/{file}.parquet'",
                file * rows,
                (file + 1) * rows - 1
            );
            run(&context, &sql).await;
        }
        let sql = format!("CREATE EXTERNAL TABLE {table} STORED AS PARQUET LOCATION '{path}/'");
        run(&context, &sql).await;
    }
    for pushdown in [false, true] {
        run(&context, &format!("SET datafusion.execution.parquet.pushdown_filters = {pushdown}"))
            .await;
        let d = "(SELECT k FROM d WHERE k % 3 = 0)";
        for _ in 0..5 {
            compare(&context, &format!("SELECT f.k FROM f JOIN {d} d ON f.k = d.k"), 1).await;
            compare(&context, &format!("SELECT f.k FROM f RIGHT JOIN {d} d ON f.k = d.k"), 1).await;
        }
    }
}

#[tokio::test]
async fn rows_pass_unprobed_when_nearly_all_are_hits() {
    let context = context().await;
    let n = 1_000_000;
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..n));
    // In one partition, one sample is probed, then the rows of sixteen samples are not, and so on.
    register(&context, "f", vec![("fk", ids.clone())], 1);
    register(&context, "d", vec![("k", ids)], 2);
    let sql = "SELECT count(*) FROM f JOIN (SELECT * FROM d WHERE k >= 0) d ON f.fk = d.k";
    run(&context, "SET datafusion.optimizer.enable_round_robin_repartition = false").await;
    compare(&context, sql, 1).await;
    let explained = rows(&context, &format!("EXPLAIN ANALYZE {sql}")).await.join("\n");
    let probe = explained.lines().find(|line| line.contains("BloomProbeExec")).unwrap().to_string();
    let unprobed: f64 = metric(&probe, "unprobed_rows=");
    assert!(unprobed > 850_000.0, "{probe}");
    for name in
        ["input_rows=1.00 M", "output_rows=1.00 M", "filter_bytes=", "filter_time=", "probe_time="]
    {
        assert!(probe.contains(name), "{name}: {probe}");
    }
    run(&context, "SET bloom_join.stop_above = 1").await;
    let explained = rows(&context, &format!("EXPLAIN ANALYZE {sql}")).await.join("\n");
    assert!(explained.contains("unprobed_rows=0"), "{explained}");
}

fn metric(line: &str, name: &str) -> f64 {
    let value = line.split(name).nth(1).unwrap().split([',', ']']).next().unwrap().trim();
    let (digits, unit) = value.split_once(' ').unwrap_or((value, ""));
    let scale = match unit {
        "K" => 1e3,
        "M" => 1e6,
        _ => 1.0,
    };
    digits.parse::<f64>().unwrap() * scale
}

/// Writes Parquet files of a dimension and a fact table. The values of `attr` are spread over the
/// table; those of `day` ascend.
async fn files(context: &SessionContext, directory: &std::path::Path) {
    let directory = directory.display();
    for sql in [
        format!(
            "COPY (SELECT value AS k, value * 7919 % 100 AS attr, value / 2000 AS day
                   FROM generate_series(0, 199999)) TO '{directory}/d.parquet'
             OPTIONS ('format.max_row_group_size' 20000)"
        ),
        format!(
            "COPY (SELECT value AS id, value * 31 % 400000 AS fk, -1 - value AS none
                   FROM generate_series(0, 299999))
             TO '{directory}/f.parquet'"
        ),
        format!("CREATE EXTERNAL TABLE d STORED AS PARQUET LOCATION '{directory}/d.parquet'"),
        format!("CREATE EXTERNAL TABLE f STORED AS PARQUET LOCATION '{directory}/f.parquet'"),
    ] {
        run(context, &sql).await;
    }
}

#[tokio::test]
async fn rows_pass_if_the_build_side_stopped_reading() {
    let directory = tempfile::tempdir().unwrap();
    for pushdown in [false, true] {
        let config = config()
            .with_target_partitions(2)
            .set_bool("datafusion.execution.parquet.pushdown_filters", pushdown)
            .set_bool("datafusion.optimizer.enable_dynamic_filter_pushdown", false);
        let context = context_of(config).await;
        run(&context, "SET bloom_join.stop_above = 0.8").await;
        files(&context, directory.path()).await;
        for predicate in ["attr < 90", "attr < 70", "attr <> 5", "day < 90", "day >= 10"] {
            let sql = format!(
                "SELECT count(*), sum(id) FROM f JOIN (SELECT * FROM d WHERE {predicate}) d ON f.fk = d.k"
            );
            compare(&context, &sql, 1).await;
        }
    }
}

#[tokio::test]
async fn a_filter_keeps_one_row_per_partition() {
    let directory = tempfile::tempdir().unwrap();
    for pushdown in [false, true] {
        let config = config()
            .with_target_partitions(2)
            .set_bool("datafusion.execution.parquet.pushdown_filters", pushdown)
            .set_bool("datafusion.optimizer.enable_dynamic_filter_pushdown", false);
        let context = context_of(config).await;
        files(&context, directory.path()).await;
        run(&context, "SET bloom_join.false_positive_rate = 1e-8").await;
        let sql = "SELECT count(*) FROM f JOIN (SELECT * FROM d WHERE attr < 9) d ON f.none = d.k";
        compare(&context, sql, 1).await;
        let analyzed = rows(&context, &format!("EXPLAIN ANALYZE {sql}")).await;
        let probe = analyzed.iter().find(|line| line.contains("BloomProbeExec")).unwrap();
        // One row for each of at most two partitions.
        let rows = ["output_rows=1,", "output_rows=2,"].iter().any(|rows| probe.contains(rows));
        assert!(rows, "row filters {pushdown}: {probe}");
    }
}
