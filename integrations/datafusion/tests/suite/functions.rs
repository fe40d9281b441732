//! The two functions in SQL and DataFrames.

use std::process::Command;
use std::sync::Arc;

use blocked_bloom::{BloomFilter, FilterOptions, Sizing};
use blocked_bloom_datafusion::{KeyType, bloom_filter_agg, bloom_filter_contains, filters_opened};
use datafusion::arrow::array::*;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::*;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::lit;
use datafusion::prelude::{SessionContext, col};

use crate::common::{context, error, number, register, rows, run};

fn integers(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(Int64Array::from_iter(values))
}

/// Returns the filter in the single row of a query's result.
async fn filter(context: &SessionContext, sql: &str) -> Vec<u8> {
    let batches = run(context, sql).await;
    assert_eq!(batches.iter().map(|b| b.num_rows()).sum::<usize>(), 1, "{sql}");
    batches[0].column(0).as_binary::<i32>().value(0).to_vec()
}

fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("X'{digits}'")
}

#[tokio::test]
async fn every_type_finds_its_keys_and_rejects_others() {
    use DataType::*;
    let types = [
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float32,
        Float64,
        Utf8,
        LargeUtf8,
        Utf8View,
        Date32,
        Date64,
        Timestamp(TimeUnit::Second, None),
        Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        Time64(TimeUnit::Nanosecond),
        Duration(TimeUnit::Microsecond),
        Decimal32(9, 2),
        Decimal64(18, 2),
        Decimal128(20, 3),
        Decimal256(60, 3),
        Binary,
        LargeBinary,
        BinaryView,
        Dictionary(Box::new(Int32), Box::new(Utf8)),
        Dictionary(Box::new(UInt8), Box::new(Int64)),
    ];
    let cast_to = |array: &ArrayRef, to: &DataType| -> ArrayRef {
        let text = || cast(array, &Utf8).unwrap();
        let array = match to {
            Binary | LargeBinary | BinaryView => text(),
            Date32 => cast(array, &Int32).unwrap(),
            _ => array.clone(),
        };
        cast(&array, to).unwrap_or_else(|error| panic!("{to}: {error}"))
    };
    for to in types {
        let context = context().await;
        // Filters and values are NULL in the first, the last and other rows.
        let values = integers((0..120).map(|i| (i % 11 != 0 && i != 119).then_some(i)));
        let keys = integers((0..60).map(|i| (i % 7 != 0 && i != 59).then_some(2 * i)));
        register(&context, "t", vec![("v", cast_to(&values, &to))], 3);
        register(&context, "d", vec![("k", cast_to(&keys, &to))], 2);
        let found = "SELECT v FROM t WHERE bloom_filter_contains((SELECT bloom_filter_agg(k, 100, 0.000001) FROM d), v)";
        let exact = "SELECT v FROM t WHERE v IN (SELECT k FROM d)";
        assert_eq!(rows(&context, found).await, rows(&context, exact).await, "{to}");
        let nulls = "SELECT count(*) FROM t WHERE bloom_filter_contains((SELECT bloom_filter_agg(k) FROM d), v) IS NULL";
        assert_eq!(number(&context, nulls).await, 12, "{to}: NULL keys");
        let two = "SELECT count(*) FROM t WHERE bloom_filter_contains((SELECT bloom_filter_agg(struct(k, 1), 100, 0.000001) FROM d), struct(v, 1))";
        assert_eq!(
            number(&context, two).await,
            rows(&context, exact).await.len() as i64 - 1,
            "{to}"
        );
    }
}

#[tokio::test]
async fn booleans() {
    let context = context().await;
    let sql = "SELECT bloom_filter_contains((SELECT bloom_filter_agg(a) FROM (VALUES (true), (NULL)) t(a)), b) FROM (VALUES (true), (false), (NULL)) u(b)";
    let answers = run(&context, sql).await;
    let answers: Vec<_> = answers.iter().flat_map(|b| b.column(0).as_boolean()).collect();
    assert_eq!(answers, [Some(true), Some(false), None]);
}

#[tokio::test]
async fn null_and_empty_filters() {
    let context = context().await;
    register(&context, "t", vec![("v", integers((0..1000).map(Some)))], 2);
    let count = |condition: &str| format!("SELECT count(*) FROM t WHERE {condition}");
    let empty = "(SELECT bloom_filter_agg(v) FROM t WHERE v < 0)";
    let all_null = "(SELECT bloom_filter_agg(CASE WHEN v < 0 THEN v END) FROM t)";
    for filter in [empty, all_null] {
        let hits = count(&format!("bloom_filter_contains({filter}, v)"));
        assert_eq!(number(&context, &hits).await, 0, "{filter} contains nothing");
        let misses = count(&format!("NOT bloom_filter_contains({filter}, v)"));
        assert_eq!(number(&context, &misses).await, 1000, "{filter} is not NULL");
    }
    for null in ["NULL", "CAST(NULL AS BYTEA)", "(SELECT CAST(NULL AS BYTEA))"] {
        let nulls = count(&format!("bloom_filter_contains({null}, v) IS NULL"));
        assert_eq!(number(&context, &nulls).await, 1000, "{null}");
    }
    let nulls = count(&format!("bloom_filter_contains({empty}, NULL) IS NULL"));
    assert_eq!(number(&context, &nulls).await, 1000);
}

#[tokio::test]
async fn keys_of_another_type_are_an_error() {
    let context = context().await;
    for (built, looked_up, expected) in [
        ("1", "'1'", ["has integers", "strings"]),
        ("'1'", "1", ["has strings", "integers"]),
        ("1.5::double", "1", ["floating-point", "integers"]),
        ("1.5::decimal(10,1)", "1.50::decimal(10,2)", ["scale 1", "scale 2"]),
        ("to_timestamp_seconds(1)", "to_timestamp_millis(1)", ["in seconds", "in milliseconds"]),
        ("struct(1, 2)", "1", ["several columns", "integers"]),
        ("struct(1, 2)", "struct(1, '2')", ["several columns", "several columns"]),
    ] {
        let sql = format!(
            "SELECT bloom_filter_contains((SELECT bloom_filter_agg({built})), {looked_up})"
        );
        let error = error(&context, &sql).await;
        assert!(error.contains("bloom_filter_contains: the filter has"), "{error}");
        assert!(expected.iter().all(|word| error.contains(word)), "{error}");
    }
    // Other widths and layouts have the same key type.
    for (built, looked_up) in [("1::int", "1::bigint"), ("'a'", "X'61'"), ("1::smallint", "true")] {
        let sql = format!(
            "SELECT count(*) FROM (SELECT 1) WHERE bloom_filter_contains((SELECT bloom_filter_agg({built})), {looked_up})"
        );
        assert_eq!(number(&context, &sql).await, 1, "{built} {looked_up}");
    }
}

#[tokio::test]
async fn arguments_out_of_range_are_errors() {
    let context = context().await;
    register(&context, "t", vec![("v", integers((0..10).map(Some)))], 1);
    for (call, expected) in [
        ("bloom_filter_agg(v, 0)", "expected_keys is 0"),
        ("bloom_filter_agg(v, -5)", "expected_keys is -5"),
        ("bloom_filter_agg(v, NULL)", "must not be NULL"),
        ("bloom_filter_agg(v, v)", "must be literals"),
        ("bloom_filter_agg(v, 10, 0.0)", "fpr is 0"),
        ("bloom_filter_agg(v, 10, 1.0)", "fpr is 1"),
        ("bloom_filter_agg(v, 10000000000)", "limit 1073741824"),
        ("bloom_filter_agg(make_array(v))", "cannot be keys"),
        ("bloom_filter_contains(1, 2)", "the filter must be a binary value"),
        ("bloom_filter_contains(X'00', make_array(v))", "cannot be keys"),
    ] {
        let error = error(&context, &format!("SELECT {call} FROM t")).await;
        assert!(error.contains(expected), "{call}: {error}");
    }
}

#[tokio::test]
async fn every_damaged_byte_is_an_error_that_names_the_function() {
    let context = context().await;
    register(&context, "t", vec![("v", integers((0..50).map(Some)))], 1);
    let stored = filter(&context, "SELECT bloom_filter_agg(v) FROM t").await;
    assert_eq!(stored.len(), 128, "one block");
    let query = |bytes: &[u8]| {
        format!("SELECT count(*) FROM t WHERE bloom_filter_contains({}, v)", hex(bytes))
    };
    assert_eq!(number(&context, &query(&stored)).await, 50);
    for at in 0..stored.len() {
        let mut damaged = stored.clone();
        damaged[at] ^= 1 << (at % 8);
        let error = error(&context, &query(&damaged)).await;
        assert!(error.contains("bloom_filter_contains: "), "byte {at}: {error}");
    }
    for len in [0, 1, 63, 64, 127] {
        let error = error(&context, &query(&stored[..len])).await;
        assert!(error.contains("bloom_filter_contains: "), "{len} bytes: {error}");
    }
    // Another program's filter with caller-supplied hashes is refused.
    let foreign = BloomFilter::from_hashes(&FilterOptions::default(), &[1, 2]).unwrap().to_bytes();
    assert!(error(&context, &query(&foreign)).await.contains("the filter has"), "seed 0");
}

#[tokio::test]
async fn filters_of_other_programs_can_be_looked_up() {
    let context = context().await;
    register(&context, "t", vec![("v", integers((0..1000).map(Some)))], 2);
    let key = KeyType::new(&DataType::Int64).unwrap();
    let options = FilterOptions::new(Sizing::FalsePositiveRate(1e-6)).with_key_hash(key.key_hash());
    let mut builder = options.builder();
    for value in [1_i64, 500, 999] {
        builder.insert(value.to_le_bytes()).unwrap();
    }
    let stored = builder.finish().unwrap().to_bytes();
    let sql = format!("SELECT v FROM t WHERE bloom_filter_contains({}, v)", hex(&stored));
    assert_eq!(rows(&context, &sql).await.len(), 3 + 1);
}

#[tokio::test]
async fn partitions_with_any_state_are_merged() {
    let context = context().await;
    register(&context, "t", vec![("v", integers((0..200_000).map(|i| Some(i * 3))))], 4);
    // 4 partitions of 50,000 keys. Their states are hashes, filters, or, if rows are filtered,
    // both.
    for (expected, condition) in [
        (1_000_000, "true"),
        (200_000, "true"),
        (1_000, "true"),
        (50_000, "v % 30 = 0 OR v < 150000"),
        (1, "true"),
    ] {
        let agg = format!("SELECT bloom_filter_agg(v, {expected}) FROM t WHERE {condition}");
        let stored = filter(&context, &agg).await;
        let missed = format!(
            "SELECT count(*) FROM t WHERE ({condition}) AND NOT bloom_filter_contains(({agg}), v)"
        );
        assert_eq!(number(&context, &missed).await, 0, "{expected}: keys are absent");
        let view = BloomFilter::from_bytes_any_hash(&stored).unwrap();
        if expected >= 200_000 {
            let false_hits =
                format!("SELECT count(*) FROM t WHERE bloom_filter_contains(({agg}), v + 1)");
            let false_hits = number(&context, &false_hits).await;
            assert!((1..2500).contains(&false_hits), "{false_hits} of 200000 (1 %)");
            // The filter is as small as its keys allow.
            let bits = view.params().bits_per_key() * view.params().expected_items() as f64;
            assert!(stored.len() < 320_000, "{} bytes, {bits} bits", stored.len());
        }
    }
    // Repeated keys stay hashes, and few keys make a small filter.
    let repeated = filter(&context, "SELECT bloom_filter_agg(v % 100) FROM t").await;
    assert!(repeated.len() <= 256, "{} bytes for 100 keys", repeated.len());
    let few = filter(&context, "SELECT bloom_filter_agg(v, 10000000) FROM t WHERE v < 30").await;
    assert_eq!(few.len(), 128);
}

#[tokio::test]
async fn groups_windows_and_distinct() {
    let context = context().await;
    register(&context, "t", vec![("v", integers((0..3000).map(Some)))], 3);
    let grouped = "SELECT count(*) FROM t JOIN (SELECT v % 3 AS g, bloom_filter_agg(v, 1000, 0.000001) AS f FROM t GROUP BY v % 3) g
        ON t.v % 3 = g.g WHERE bloom_filter_contains(g.f, t.v) AND NOT bloom_filter_contains(g.f, t.v + 1)";
    assert_eq!(number(&context, grouped).await, 3000);
    let distinct = "SELECT count(*) FROM t WHERE bloom_filter_contains((SELECT bloom_filter_agg(DISTINCT v / 2) FROM t), v)";
    assert!((1500..1600).contains(&number(&context, distinct).await));
    let filtered = "SELECT count(*) FROM t WHERE bloom_filter_contains((SELECT bloom_filter_agg(v) FILTER (WHERE v < 10) FROM t), v)";
    assert!((10..60).contains(&number(&context, filtered).await));
    // The filter of a running window contains each key from that key's row onwards.
    let window = "SELECT count(*) FROM (SELECT v, bloom_filter_agg(v, 1000) OVER (ORDER BY v) AS f FROM t WHERE v < 200)
        WHERE NOT bloom_filter_contains(f, v)";
    assert_eq!(number(&context, window).await, 0);
}

#[tokio::test]
async fn data_frames() {
    let context = context().await;
    register(&context, "t", vec![("v", integers((0..1000).map(Some)))], 2);
    let build = context.table("t").await.unwrap().filter(col("v").lt(lit(100))).unwrap();
    let agg = bloom_filter_agg().call(vec![col("v"), lit(100), lit(0.000_001)]);
    let built = build.aggregate(vec![], vec![agg]).unwrap().collect().await.unwrap();
    let bytes = built[0].column(0).as_binary::<i32>().value(0).to_vec();
    let contains =
        bloom_filter_contains().call(vec![lit(ScalarValue::Binary(Some(bytes))), col("v")]);
    let found = context.table("t").await.unwrap().filter(contains.clone()).unwrap();
    assert_eq!(found.count().await.unwrap(), 100);
    // The function is selected as a column with a short name.
    let frame = context.table("t").await.unwrap().select(vec![contains]).unwrap();
    let name = frame.schema().field(0).name().clone();
    assert!(name.starts_with("bloom_filter_contains(filter ") && name.len() < 64, "{name}");
    assert_eq!(frame.collect().await.unwrap()[0].schema().field(0).name(), &name);
}

/// Other tests open filters too, so a separate process counts.
#[test]
fn a_filter_is_opened_once_per_query() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "functions::counts_in_a_separate_process", "--ignored"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && text.contains("1 passed"), "{text}");
}

#[tokio::test]
#[ignore = "run by a_filter_is_opened_once_per_query"]
async fn counts_in_a_separate_process() {
    let context = context().await;
    run(&context, "SET datafusion.execution.batch_size = 100").await;
    register(&context, "t", vec![("v", integers((0..100_000).map(Some)))], 4);
    let stored = filter(&context, "SELECT bloom_filter_agg(v) FROM t WHERE v < 1000").await;
    let before = filters_opened();
    let literal =
        format!("SELECT count(*) FROM t WHERE bloom_filter_contains({}, v)", hex(&stored));
    for query in 1..=3 {
        assert!(number(&context, &literal).await >= 1000);
        assert_eq!(
            filters_opened() - before,
            query,
            "literals, batches of 100 rows in 4 partitions"
        );
    }
    let before = filters_opened();
    let subquery = "SELECT count(*) FROM t WHERE bloom_filter_contains((SELECT bloom_filter_agg(v) FROM t WHERE v < 1000), v)";
    assert!(number(&context, subquery).await >= 1000);
    assert_eq!(filters_opened() - before, 1, "a subquery");
    let before = filters_opened();
    let join =
        "SELECT count(*) FROM t JOIN (SELECT v AS k FROM t WHERE v % 100 = 0) d ON t.v = d.k";
    assert_eq!(number(&context, join).await, 1000);
    assert_eq!(filters_opened() - before, 1, "a probe of a join");
}
