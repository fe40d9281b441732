//! Scans skip row groups that are outside the ranges of a filter's keys.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::datasource::source::DataSourceExec;
use datafusion::parquet::column::writer::ColumnCloseResult;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;

use crate::common::{config, context_of, rows, run, sorted_lines};

/// Writes `f` with 40 row groups of 500 rows, ordered by their keys `i`, and `d`, whose rows are in
/// another order. Each key column of `f` has one of the same type in `d`. `mixed` is not ordered.
async fn write(directory: &Path) {
    let context = context_of(config()).await;
    let columns = "
        value AS i,
        arrow_cast(value, 'Int32') AS small,
        arrow_cast(value, 'Date32') AS day,
        arrow_cast(value * 604800, 'Timestamp(Second, Some(\"+01:00\"))') AS time,
        arrow_cast(value, 'UInt64') AS positive,
        arrow_cast(value, 'UInt64') + arrow_cast(9223372036854771307, 'UInt64') AS large,
        'key ' || lpad(value::VARCHAR, 9, '0') AS text,
        value * 7919 % 20000 AS mixed,
        value + 100000 AS far,
        'no ' || value AS other_text,
        CASE WHEN value % 7 <> 0 THEN value END AS some";
    for (name, rows, order, last) in
        [("f", "value", "value", 19_999), ("d", "value * 2", "value % 7", 9_999)]
    {
        let file = directory.join(format!("{name}.parquet"));
        let sql = format!(
            "COPY (SELECT {columns} FROM (SELECT {rows} AS value FROM generate_series(0, {last}))
                   ORDER BY {order}) TO '{}' STORED AS PARQUET
             OPTIONS ('format.max_row_group_size' 500, 'format.data_page_row_count_limit' 100)",
            file.display()
        );
        run(&context, &sql).await;
    }
}

async fn open(directory: &Path, enabled: bool, row_filters: bool) -> SessionContext {
    // The engine's own dynamic filters skip row groups too.
    let config = config()
        .set_bool("datafusion.optimizer.enable_dynamic_filter_pushdown", false)
        .set_u64("datafusion.optimizer.repartition_file_min_size", 0)
        .set_bool("datafusion.execution.parquet.pushdown_filters", row_filters);
    let context = context_of(config).await;
    run(&context, &format!("SET bloom_join.enabled = {enabled}")).await;
    for name in ["f", "d"] {
        let file = directory.join(format!("{name}.parquet"));
        let sql =
            format!("CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{}'", file.display());
        run(&context, &sql).await;
    }
    context
}

/// Returns the rows of a query, and the number of row groups and of parts of files that its scans
/// skipped by statistics.
async fn skipped(context: &SessionContext, sql: &str) -> (Vec<String>, usize) {
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let batches = collect(plan.clone(), context.task_ctx()).await.unwrap();
    (sorted_lines(&batches), skipped_groups(&plan))
}

fn skipped_groups(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let own = plan.metrics().filter(|_| plan.is::<DataSourceExec>());
    let own = own.iter().flat_map(|metrics| metrics.iter()).map(|metric| match metric.value() {
        MetricValue::PruningMetrics { name, pruning_metrics }
            if name == "row_groups_pruned_statistics"
                || name == "files_ranges_pruned_statistics" =>
        {
            pruning_metrics.pruned()
        }
        _ => 0,
    });
    own.sum::<usize>() + plan.children().into_iter().map(skipped_groups).sum::<usize>()
}

#[tokio::test]
async fn row_groups_outside_the_keys_are_skipped() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path()).await;
    for row_filters in [false, true] {
        let plain = open(directory.path(), false, row_filters).await;
        let filtered = open(directory.path(), true, row_filters).await;
        for (key, least, most) in [
            // 38 of 40 row groups have none of the keys.
            ("i", 38, 38),
            ("small", 38, 38),
            ("day", 38, 38),
            ("time", 38, 38),
            ("positive", 38, 38),
            // Some keys are above `i64::MAX`, and for these there are no ranges.
            ("large", 0, 0),
            ("text", 0, 0),
            ("mixed", 0, 0),
        ] {
            let build_key = if key == "mixed" { "i" } else { key };
            // Statistics say nothing about this predicate, and the engine does not know that it
            // restricts the keys.
            let attribute = if build_key == "i" { "small" } else { "i" };
            let selected = format!("(d.{attribute} % 20000 BETWEEN 4010 AND 4990)");
            for sql in [
                format!("SELECT f.* FROM f JOIN d ON f.{key} = d.{build_key} WHERE {selected}"),
                // The predicate is between the filter and the scan.
                format!(
                    "SELECT f.i + 1 FROM f JOIN d ON f.{key} = d.{build_key}
                     WHERE {selected} AND f.i % 3 <> 1"
                ),
                format!(
                    "SELECT d.i, f.text FROM d LEFT JOIN f ON f.{key} = d.{build_key} WHERE {selected}"
                ),
                format!(
                    "SELECT i FROM f WHERE {key} IN (SELECT {build_key} FROM d WHERE {selected})"
                ),
            ] {
                let (expected, none) = skipped(&plain, &sql).await;
                let (answer, groups) = skipped(&filtered, &sql).await;
                assert_eq!(none, 0, "{sql}");
                assert!(expected.len() > 100, "{sql}: {} lines", expected.len());
                assert_eq!(answer, expected, "{sql}");
                let plan = crate::common::plan(&filtered, &sql).await;
                assert!((least..=most).contains(&groups), "{groups} skipped: {sql}\n{plan}");
            }
        }
    }
}

#[tokio::test]
async fn two_filters_of_a_table_both_skip() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path()).await;
    for row_filters in [false, true] {
        let plain = open(directory.path(), false, row_filters).await;
        let filtered = open(directory.path(), true, row_filters).await;
        let sql = "SELECT f.i FROM f JOIN d ON f.i = d.i JOIN d e ON f.day = e.day
                   WHERE (d.small % 20000 BETWEEN 4000 AND 4999)
                     AND (e.i % 20000 BETWEEN 4600 AND 9000)";
        let (answer, groups) = skipped(&filtered, sql).await;
        assert_eq!(answer, rows(&plain, sql).await);
        assert!(groups >= 39, "{groups} skipped");
    }
}

/// The engine compares a file of another type than the table without converting its values. Keys
/// near the bounds of a row group find their rows nevertheless.
#[tokio::test]
async fn files_of_other_types_lose_no_rows() {
    for (file_type, table_type, value) in [
        ("Decimal128(10, 2)", "BIGINT", "value::DOUBLE / 100 - 90"),
        ("Float64", "INT", "value::DOUBLE / 100 - 90"),
        ("Utf8", "BIGINT", "value"),
        ("Int64", "BIGINT UNSIGNED", "value"),
        ("Timestamp(Nanosecond, None)", "TIMESTAMP(3)", "(value - 9000) * 10000"),
        ("Timestamp(Microsecond, None)", "TIMESTAMP WITH TIME ZONE", "value * 60000000"),
        ("Timestamp(Microsecond, Some(\"+05:00\"))", "TIMESTAMP", "value * 60000000"),
        ("Timestamp(Millisecond, None)", "DATE", "(value - 9000) * 3600000"),
        // Times of day, which are in another order than the values of the file.
        ("Timestamp(Microsecond, None)", "TIME", "value * 600000000"),
        ("Date32", "TIMESTAMP", "value - 9000"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let (f, d) = (directory.path().join("f.parquet"), directory.path().join("d.parquet"));
        let writer = context_of(config()).await;
        let sql = format!(
            "COPY (SELECT arrow_cast({value}, '{file_type}') AS k, value AS i
                   FROM generate_series(0, 19999)) TO '{}' STORED AS PARQUET
             OPTIONS ('format.max_row_group_size' 530)",
            f.display()
        );
        run(&writer, &sql).await;
        let mut sessions = Vec::new();
        for (enabled, row_filters) in [(false, false), (true, false), (true, true)] {
            let config = config()
                .set_bool("datafusion.optimizer.enable_dynamic_filter_pushdown", false)
                .set_bool("datafusion.execution.parquet.pushdown_filters", row_filters)
                .set_u64("datafusion.optimizer.repartition_file_min_size", 0)
                .set_str("datafusion.execution.time_zone", "+05:00");
            let context = context_of(config).await;
            run(&context, &format!("SET bloom_join.enabled = {enabled}")).await;
            let sql = format!(
                "CREATE EXTERNAL TABLE f (k {table_type}, i BIGINT) STORED AS PARQUET
                 LOCATION '{}'",
                f.display()
            );
            run(&context, &sql).await;
            if sessions.is_empty() {
                // The keys have the table's type.
                let sql = format!("COPY (SELECT k, i FROM f) TO '{}'", d.display());
                run(&context, &sql).await;
            }
            let sql =
                format!("CREATE EXTERNAL TABLE d STORED AS PARQUET LOCATION '{}'", d.display());
            run(&context, &sql).await;
            sessions.push(context);
        }
        // Each range ends near the first row of a row group.
        for first in [515, 1045, 8465, 10070, 19065] {
            let sql = format!(
                "SELECT f.i FROM f JOIN (SELECT DISTINCT k FROM d
                 WHERE i % 20000 BETWEEN {first} AND {first} + 30) d ON f.k = d.k"
            );
            let expected = rows(&sessions[0], &sql).await;
            assert!(expected.len() > 30, "{file_type} as {table_type}: {} lines", expected.len());
            for filtered in &sessions[1..] {
                let answer = rows(filtered, &sql).await;
                assert_eq!(answer, expected, "{file_type} as {table_type}: {sql}");
            }
        }
    }
}

/// The engine compares statistics with some computed keys wrongly, and it computes keys of rows
/// that a predicate would have dropped. The scan therefore only compares keys that are columns.
#[tokio::test]
async fn computed_keys_are_not_compared_in_the_scan() {
    let time = "arrow_cast(value * 600000000, 'Timestamp(Microsecond, None)')";
    let zoned = "arrow_cast(f.k, 'Timestamp(Microsecond, Some(\"+05:00\"))')";
    let text = "CASE WHEN value % 3 = 0 THEN 'n/a' ELSE value::VARCHAR END";
    for (file, keys, key, selected, lines) in [
        (time, &format!("CAST({time} AS TIME)"), "CAST(f.k AS TIME)", "139 AND 140", 276),
        (
            time,
            &"value * 600000000".into(),
            &format!("arrow_cast({zoned}, 'Int64')"),
            "5 AND 15",
            11,
        ),
        ("arrow_cast(value / 100 - 128, 'Int8')", &"-128".into(), "-f.k", "0 AND 0", 100),
        // The tags of a row say that its key cannot be computed.
        (text, &"value".into(), "CAST(f.k AS BIGINT)", "1000 AND 1010", 8),
        ("value", &"value".into(), "600 / (f.k - 999)", "100 AND 300", 3),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let writer = context_of(config()).await;
        for (name, key, last) in [("f", file, 19_999), ("d", keys, 1_999)] {
            let sql = format!(
                "COPY (SELECT {key} AS k, [1, 2, value % 3] AS tags, value AS i
                       FROM generate_series(0, {last})) TO '{}' STORED AS PARQUET
                 OPTIONS ('format.max_row_group_size' 100)",
                directory.path().join(format!("{name}.parquet")).display()
            );
            run(&writer, &sql).await;
        }
        let sql = format!(
            "SELECT f.i FROM f JOIN (SELECT DISTINCT k FROM d WHERE i % 9000 BETWEEN {selected}) d
             ON {key} = d.k WHERE NOT array_has(f.tags, 0)",
        );
        let sql = if lines > 8 { sql.replace(" WHERE NOT array_has(f.tags, 0)", "") } else { sql };
        for (enabled, row_filters) in [(false, false), (true, false), (true, true)] {
            let context = open(directory.path(), enabled, row_filters).await;
            let (answer, skipped) = skipped(&context, &sql).await;
            // The first lines are those of the header.
            assert_eq!((answer.len(), skipped), (lines + 1, 0), "{sql}");
        }
    }
}

/// Tools that join files write row groups with statistics and others without. The engine then takes
/// the smallest and the largest known value for those of the file.
#[tokio::test]
async fn files_with_statistics_of_some_row_groups_lose_no_rows() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let writer = context_of(config()).await;
    for (name, first, last, statistics) in [
        ("a.parquet", 0, 9_999, "page"),
        ("b.parquet", 10_000, 19_999, "none"),
        ("d.parquet", 0, 19_999, "page"),
    ] {
        let sql = format!(
            "COPY (SELECT value AS k, value AS i FROM generate_series({first}, {last})) TO '{}'
             STORED AS PARQUET OPTIONS ('format.max_row_group_size' 500,
                                        'format.statistics_enabled' '{statistics}')",
            path(name).display()
        );
        run(&writer, &sql).await;
    }
    append(&path("f.parquet"), &[path("a.parquet"), path("b.parquet")]);
    let sql = "SELECT f.i FROM f JOIN (SELECT k FROM d WHERE i % 20000 BETWEEN 15000 AND 15020) d
               ON f.k = d.k";
    for (enabled, row_filters) in [(false, false), (true, false), (true, true)] {
        let context = open(directory.path(), enabled, row_filters).await;
        assert_eq!(rows(&context, sql).await.len(), 22);
    }
}

/// Writes a file with the row groups of others.
fn append(path: &Path, others: &[PathBuf]) {
    let open = |path: &PathBuf| SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let first = open(&others[0]);
    let first = first.metadata().file_metadata();
    let properties =
        WriterProperties::builder().set_key_value_metadata(first.key_value_metadata().cloned());
    let schema = first.schema_descr().root_schema_ptr();
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build())).unwrap();
    for other in others {
        for group in open(other).metadata().row_groups() {
            let mut copy = writer.next_row_group().unwrap();
            for column in group.columns() {
                let result = ColumnCloseResult {
                    bytes_written: column.compressed_size() as u64,
                    rows_written: group.num_rows() as u64,
                    metadata: column.clone(),
                    bloom_filter: None,
                    column_index: None,
                    offset_index: None,
                };
                copy.append_column(&File::open(other).unwrap(), result).unwrap();
            }
            copy.close().unwrap();
        }
    }
    writer.close().unwrap();
}

/// With `reorder_filters`, the engine would compute keys before a predicate that the file's values
/// need.
#[tokio::test]
async fn scans_that_reorder_row_filters_have_no_filter() {
    let directory = tempfile::tempdir().unwrap();
    let writer = context_of(config()).await;
    for (name, key) in
        [("f", "CASE WHEN value % 3 = 0 THEN 'n/a' ELSE value::VARCHAR END"), ("d", "value")]
    {
        let kind = "repeat(CASE WHEN value % 3 = 0 THEN 'no' ELSE 'yes' END, 9)";
        let sql = format!(
            "COPY (SELECT {key} AS k, {kind} AS kind, value AS i
                   FROM generate_series(0, 19999)) TO '{}' STORED AS PARQUET",
            directory.path().join(format!("{name}.parquet")).display()
        );
        run(&writer, &sql).await;
    }
    for enabled in [false, true] {
        let config = config()
            .set_bool("datafusion.execution.parquet.reorder_filters", true)
            .set_bool("datafusion.execution.parquet.pushdown_filters", true);
        let context = context_of(config).await;
        run(&context, &format!("SET bloom_join.enabled = {enabled}")).await;
        for name in ["f", "d"] {
            let sql = format!(
                "CREATE EXTERNAL TABLE {name} (k BIGINT, kind VARCHAR, i BIGINT) STORED AS PARQUET
                 LOCATION '{}'",
                directory.path().join(format!("{name}.parquet")).display()
            );
            run(&context, &sql).await;
        }
        let sql = "SELECT f.i FROM f JOIN (SELECT k FROM d WHERE i % 20000 BETWEEN 1000 AND 1010) d
                   ON f.k = d.k WHERE f.kind LIKE 'y%'";
        assert_eq!(rows(&context, sql).await.len(), 9);
    }
}

/// Between two clusters of keys, row groups are skipped too. Keys and probed columns have NULL.
#[tokio::test]
async fn row_groups_between_the_keys_are_skipped() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path()).await;
    for row_filters in [false, true] {
        let plain = open(directory.path(), false, row_filters).await;
        let filtered = open(directory.path(), true, row_filters).await;
        for selected in [
            "d.small % 9000 BETWEEN 10 AND 390",
            "(d.small % 9000 BETWEEN 10 AND 390 OR d.some IS NULL)",
        ] {
            for key in ["i", "some"] {
                let sql = format!(
                    "SELECT f.i, d.text FROM f JOIN d ON f.{key} = d.{key} WHERE {selected}"
                );
                let (expected, _) = skipped(&plain, &sql).await;
                let (answer, groups) = skipped(&filtered, &sql).await;
                assert_eq!(answer, expected, "{sql}");
                // The keys are in 3 of 40 row groups. A row filter compares only with the smallest
                // and the largest key.
                let expected = match (row_filters, selected.starts_with('(') && key == "i") {
                    (false, false) => 37,
                    (true, false) => 3,
                    _ => 0,
                };
                assert_eq!(groups, expected, "row filters {row_filters}: {sql}");
            }
        }
    }
}

/// A build side without keys, and one whose keys no row has.
#[tokio::test]
async fn a_row_passes_if_the_scan_drops_all() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path()).await;
    for row_filters in [false, true] {
        let plain = open(directory.path(), false, row_filters).await;
        let filtered = open(directory.path(), true, row_filters).await;
        for selected in ["d.small % 20000 = -5", "d.small % 7919 BETWEEN 80 AND 85"] {
            for key in ["f.i", "f.i - 100000"] {
                let sql = format!(
                    "SELECT count(*), sum(g.i) FROM (SELECT {key} AS k, * FROM f) g
                     JOIN d ON g.k = d.i WHERE {selected}"
                );
                assert_eq!(rows(&filtered, &sql).await, rows(&plain, &sql).await, "{sql}");
            }
        }
        // A hash join without keys does not read the other side.
        run(&filtered, "SET datafusion.optimizer.prefer_hash_join = false").await;
        for (key, of, selected, parts) in [
            ("i", "far", "d.small % 7919 < 80", 4),
            ("text", "other_text", "d.small % 7919 < 80", 0),
            ("i", "i", "d.small % 20000 = -5", 0),
            ("text", "text", "d.small % 20000 = -5", 0),
        ] {
            let sql = format!("SELECT f.i FROM f JOIN d ON f.{key} = d.{of} WHERE {selected}");
            let plan = filtered.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
            let rows = collect(plan.clone(), filtered.task_ctx()).await.unwrap();
            assert_eq!(rows.iter().map(|rows| rows.num_rows()).sum::<usize>(), 0);
            // There are a few false positives.
            let passed = probed(&plan).unwrap();
            assert!((1..500).contains(&passed), "{passed} rows passed: {sql}");
            assert_eq!(skipped_groups(&plan), parts, "parts of the file: {sql}");
        }
    }
}

/// Returns the number of output rows of a plan's filter.
fn probed(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    if plan.name() == "BloomProbeExec" {
        return plan.metrics()?.output_rows();
    }
    plan.children().into_iter().find_map(probed)
}
