//! Plans that the rule leaves alone and plans that it must change.

use std::sync::Arc;

use blocked_bloom_datafusion::{
    BloomJoinOptions, BloomJoinRule, BloomQueryPlanner, Enabled, RULE_NAME, with_bloom_filters,
};
use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array};
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::common::{
    config, context, context_of, error, number, plan, probes, register, rows, run, sorted_lines,
};

fn tables(context: &SessionContext) {
    let n = 20_000;
    let column = |f: fn(i64) -> i64, n| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..n).map(f)))
    };
    let x: ArrayRef =
        Arc::new(Float64Array::from_iter_values((0..1000).map(|i| f64::from(i) / 3.0)));
    register(context, "f", vec![("id", column(|i| i, n)), ("fk", column(|i| i % 5000, n))], 4);
    register(
        context,
        "d",
        vec![("k", column(|i| i, 1000)), ("attr", column(|i| i % 10, 1000)), ("x", x)],
        2,
    );
}

fn joined(build: &str) -> String {
    format!("SELECT count(*) FROM f JOIN ({build}) d ON f.fk = d.k")
}

#[tokio::test]
async fn build_sides_that_may_change_are_refused() {
    let context = context().await;
    tables(&context);
    for (build, filters) in [
        ("SELECT k FROM d WHERE attr < 3", 1),
        ("SELECT k FROM d WHERE attr < 3 ORDER BY k", 1),
        (
            "SELECT k, count(*), min(attr), sum(attr) FROM d WHERE attr < 3 GROUP BY k HAVING max(attr) > 0",
            1,
        ),
        ("SELECT DISTINCT k FROM d WHERE attr < 3", 1),
        ("SELECT k FROM d WHERE attr < 3 AND k < extract(year FROM now())", 1),
        ("SELECT k FROM d WHERE attr < 3 AND x < (SELECT max(x) FROM d)", 1),
        ("SELECT k FROM d WHERE attr < 3 LIMIT 50", 0),
        ("SELECT k FROM (SELECT * FROM d LIMIT 50) WHERE attr < 3", 0),
        // The table has the same keys each time, and more of them than the sort returns.
        ("SELECT k FROM d WHERE attr < 3 ORDER BY attr LIMIT 50", 1),
        ("SELECT k FROM (SELECT * FROM d ORDER BY attr LIMIT 50) WHERE attr < 3", 0),
        ("SELECT k FROM d WHERE random() < 0.5", 0),
        ("SELECT k FROM d WHERE attr < 3 AND uuid() > '8'", 0),
        ("SELECT CAST(random() * 1000 AS bigint) AS k FROM d WHERE attr < 3", 0),
        ("SELECT first_value(k) AS k FROM d WHERE attr < 3 GROUP BY x", 0),
        // The keys of groups are also the same each time.
        ("SELECT k FROM d WHERE attr < 3 GROUP BY k HAVING sum(x) > 10", 1),
        ("SELECT k FROM d GROUP BY k HAVING sum(x) > 10", 0),
        ("SELECT k FROM d GROUP BY k HAVING avg(x) > 10", 0),
        ("SELECT k FROM d GROUP BY k HAVING max(x) > 10", 0),
        ("SELECT k FROM d GROUP BY k HAVING max(attr) > 2", 1),
        ("SELECT k FROM (SELECT k, row_number() OVER (ORDER BY attr) AS n FROM d) WHERE n < 50", 0),
        ("SELECT k FROM (SELECT DISTINCT attr AS k FROM d LIMIT 3) WHERE k > 0", 0),
    ] {
        let sql = joined(build);
        let plan = plan(&context, &sql).await;
        assert_eq!(plan.matches("BloomProbeExec").count(), filters, "{build}\n{plan}");
    }
}

#[tokio::test]
async fn a_source_of_unknown_kind_is_refused() {
    let context = context().await;
    tables(&context);
    // A table function has its own operator.
    let sql = "SELECT count(*) FROM f JOIN (SELECT value + 1 AS k, value AS v FROM generate_series(1, 100)) d ON f.fk = d.k WHERE d.v % 3 = 0";
    let plan = plan(&context, sql).await;
    assert!(plan.contains("LazyMemoryExec") && !plan.contains("BloomProbeExec"), "{plan}");
}

#[tokio::test]
async fn gates() {
    let selective = joined("SELECT * FROM d WHERE attr < 3");
    for (sql, set, filters) in [
        (selective.clone(), "", 1),
        (joined("SELECT * FROM d"), "", 0),
        (selective.clone(), "SET bloom_join.enabled = false", 0),
        (selective.clone(), "SET bloom_join.min_probe_rows = 20000", 1),
        (selective.clone(), "SET bloom_join.min_probe_rows = 20001", 0),
        // The filter of 1,000 keys may have 20 blocks, then only 5.
        (selective.clone(), "SET bloom_join.max_filter_bytes = 1400", 1),
        (selective.clone(), "SET bloom_join.max_filter_bytes = 400", 0),
        (selective.clone(), "SET bloom_join.max_filter_bytes = 64", 0),
        (
            selective.clone(),
            "SET bloom_join.max_false_positive_rate = 0.5; SET bloom_join.max_filter_bytes = 400",
            1,
        ),
        (
            selective.clone(),
            "SET bloom_join.max_false_positive_rate = 0.001; SET bloom_join.max_filter_bytes = 128",
            0,
        ),
        (selective.clone(), "SET bloom_join.max_bytes_read = 100", 0),
        (selective.clone(), "SET bloom_join.false_positive_rate = 0.2", 1),
        (selective.clone(), "SET datafusion.execution.target_partitions = 1", 0),
        (
            "SELECT count(*) FROM (SELECT fk, rank() OVER (PARTITION BY fk ORDER BY id) AS r FROM f) f
                JOIN (SELECT * FROM d WHERE attr < 3) d ON f.fk = d.k + 1 AND f.r = d.attr"
                .into(),
            "",
            0,
        ),
        // The probed side is smaller than the build side.
        (
            "SELECT count(*) FROM d JOIN (SELECT * FROM f WHERE id % 2 = 1) f ON f.fk = d.k".into(),
            "",
            0,
        ),
    ] {
        let context = context().await;
        tables(&context);
        for set in set.split(';').filter(|set| !set.is_empty()) {
            run(&context, set).await;
        }
        let plan = plan(&context, &sql).await;
        assert_eq!(plan.matches("BloomProbeExec").count(), filters, "{set}: {sql}\n{plan}");
        let expected = if filters == 0 { None } else { Some(rows(&context, &sql).await) };
        run(&context, "SET bloom_join.enabled = false").await;
        let without = rows(&context, &sql).await;
        assert_eq!(expected.unwrap_or(without.clone()), without, "{set}: {sql}");
    }
}

/// By its kind, the predicate leaves a tenth of the build side, fewer rows than are probed. The
/// engine estimates a fifth, which would be more.
#[tokio::test]
async fn a_larger_table_filters_a_smaller_one_if_its_predicate_leaves_fewer_rows() {
    let context = context().await;
    tables(&context);
    let column = |f: fn(i64) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..150_000).map(f)))
    };
    register(&context, "large", vec![("k", column(|i| i)), ("attr", column(|i| i % 10))], 4);
    for (predicate, filters, rows) in [("attr = 3", 1, 2_000), ("k % 2 < 1", 0, 10_000)] {
        let sql = joined(&format!("SELECT k FROM large WHERE {predicate}"));
        let plan = plan(&context, &sql).await;
        assert_eq!(plan.matches("BloomProbeExec: key=[fk@").count(), filters, "{plan}");
        assert_eq!(number(&context, &sql).await, rows, "{plan}");
    }
}

#[tokio::test]
async fn settings_have_limits() {
    let context = context().await;
    tables(&context);
    let sql = joined("SELECT * FROM d WHERE attr < 3");
    for (name, refused, allowed) in [
        ("max_cost", &["-1", "-0.001", "NaN"][..], &["0", "3", "inf"][..]),
        ("false_positive_rate", &["0", "0.000000001", "1", "2", "-0.1", "NaN"], &["2e-9", "0.999"]),
        ("max_filter_bytes", &["0", "-1"], &["1"]),
        ("max_bytes_read", &["0"], &["1"]),
        ("default_keys", &["0", "1000000000001"], &["1", "1000000000000"]),
        ("stop_above", &["-0.1", "1.1", "NaN"], &["0", "1"]),
        ("max_false_positive_rate", &["-0.1", "1.1", "NaN"], &["0", "1"]),
        ("enabled", &["perhaps"], &["auto"]),
    ] {
        for value in refused {
            let set = format!("SET bloom_join.{name} = '{value}'");
            let error = error(&context, &set).await;
            assert!(error.contains(&format!("bloom_join.{name}: {value}")), "{set}: {error}");
        }
        for value in allowed {
            run(&context, &format!("SET bloom_join.{name} = '{value}'")).await;
            plan(&context, &sql).await;
        }
    }

    // A struct literal can contain any value, so the rule checks it.
    let options = BloomJoinOptions { max_cost: f64::NAN, ..Default::default() };
    let config = config().with_option_extension(options);
    let state = SessionStateBuilder::new_with_default_features().with_config(config).build();
    let context = SessionContext::new_with_state(with_bloom_filters(state));
    tables(&context);
    let error = error(&context, &sql).await;
    assert!(
        error.contains("bloom_join.max_cost: NaN is not allowed (must be 0 or more)"),
        "{error}"
    );
}

#[tokio::test]
async fn explain_verbose_says_why_there_is_no_filter() {
    let context = context().await;
    tables(&context);
    let explained = async |sql: &str| {
        let batches = run(&context, &format!("EXPLAIN VERBOSE {sql}")).await;
        let text = sorted_lines(&batches);
        text.into_iter().filter(|line| line.contains("bloom_join: ")).collect::<Vec<_>>()
    };
    let lines = explained(&joined("SELECT * FROM d")).await;
    assert_eq!(lines.len(), 2, "the filter on either side: {lines:#?}");
    assert!(lines.iter().any(|line| {
        line.contains("no filter for Inner join by [\"fk\"]: nothing drops rows of the build side")
    }));
    let lines = explained(&joined("SELECT * FROM d WHERE attr < 3")).await;
    assert_eq!(lines, Vec::<String>::new());
    run(&context, "SET bloom_join.enabled = auto").await;
    let lines = explained(&joined("SELECT * FROM d WHERE attr < 3")).await;
    assert!(lines[0].contains("no filters in one process"), "{lines:?}");
    run(&context, "SET bloom_join.enabled = false").await;
    let lines = explained(&joined("SELECT * FROM d WHERE attr < 3")).await;
    assert!(lines[0].contains("bloom_join.enabled = false"), "{lines:?}");
}

/// Plans for a cluster, which are not run.
#[cfg(feature = "ballista")]
mod cluster {
    use super::*;

    /// A fact table of a million rows, and a dimension. By its kind, the predicate leaves a tenth
    /// of the dimension; the engine estimates a fifth.
    async fn context(settings: &[(&str, &str)]) -> SessionContext {
        let mut config = blocked_bloom_datafusion::ballista::session_config()
            .with_target_partitions(4)
            .set_usize("ballista.optimizer.broadcast_join_threshold_bytes", 100_000)
            .set_str("bloom_join.max_cost", "1");
        for (name, value) in settings {
            config = config.set_str(name, value);
        }
        let state = SessionStateBuilder::new_with_default_features().with_config(config).build();
        let context = SessionContext::new_with_state(with_bloom_filters(state));
        let column = |f: fn(i64) -> i64, n| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values((0..n).map(f)))
        };
        let million = 1_000_000;
        register(
            &context,
            "f",
            vec![("id", column(|i| i, million)), ("fk", column(|i| i, million))],
            4,
        );
        let columns = vec![("k", column(|i| i, 100_000)), ("attr", column(|i| i % 10, 100_000))];
        register(&context, "d", columns, 4);
        context
    }

    const JOIN: &str =
        "SELECT count(f.id) FROM f JOIN (SELECT k FROM d WHERE attr = 3) d ON f.fk = d.k";
    const GROUPED: &str = "SELECT count(n) FROM (SELECT fk, sum(id) AS n FROM f GROUP BY fk) f
         JOIN (SELECT k FROM d WHERE attr = 3) d ON f.fk = d.k";

    #[tokio::test]
    async fn a_measured_broadcast_saves_only_its_own_shuffle() {
        let adaptive = context(&[]).await;
        assert_eq!(probes(&adaptive, JOIN).await, 0, "the side may be broadcast");
        let explained = sorted_lines(&run(&adaptive, &format!("EXPLAIN VERBOSE {JOIN}")).await);
        let reason =
            "saves at most 0.0 ms (0 rows, 0.000 MB, below a join that may be a broadcast)";
        assert!(explained.iter().any(|line| line.contains(reason)), "{explained:#?}");
        assert_eq!(probes(&adaptive, GROUPED).await, 1, "the shuffle of the groups is saved");

        for (setting, value) in [
            ("ballista.planner.adaptive.enabled", "false"),
            ("ballista.planner.adaptive_join.enabled", "false"),
            ("ballista.optimizer.stage_build_side", "false"),
            ("ballista.optimizer.stage_build_side_max_estimate_multiple", "1"),
            ("ballista.optimizer.stage_build_side_min_probe_ratio", "1000"),
            // A tenth of the rows is too large.
            ("ballista.optimizer.broadcast_join_threshold_bytes", "70000"),
            ("ballista.optimizer.broadcast_join_threshold_bytes", "0"),
            ("bloom_join.enabled", "true"),
        ] {
            let other = context(&[(setting, value)]).await;
            let plan = plan(&other, JOIN).await;
            assert_eq!(plan.matches("BloomProbeExec").count(), 1, "{setting} {value}\n{plan}");
        }
        let certain = [("ballista.optimizer.broadcast_join_threshold_bytes", "1000000")];
        for sql in [JOIN, GROUPED] {
            assert_eq!(probes(&context(&certain).await, sql).await, 0, "{sql}");
        }
    }

    /// All orders of these numbers.
    fn permutations(numbers: &[usize]) -> Vec<Vec<usize>> {
        if numbers.is_empty() {
            return vec![vec![]];
        }
        let first = |&first: &usize| {
            let rest: Vec<_> = numbers.iter().copied().filter(|number| *number != first).collect();
            let orders = permutations(&rest).into_iter();
            orders.map(move |rest| [vec![first], rest].concat()).collect::<Vec<_>>()
        };
        numbers.iter().flat_map(first).collect()
    }

    /// Whatever the order of the tables in FROM, the same joins of a star get filters.
    #[tokio::test]
    async fn the_order_of_a_star_does_not_decide_which_joins_get_filters() {
        let context = context(&[
            ("ballista.planner.adaptive.enabled", "false"),
            ("ballista.optimizer.broadcast_join_threshold_bytes", "0"),
        ])
        .await;
        let column = |f: fn(i64) -> i64, n| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values((0..n).map(f)))
        };
        let names = ["fk0", "fk1", "fk2", "fk3"];
        let keys = names.map(|name| (name, column(|i| i % 10_000, 1_000_000)));
        register(&context, "facts", keys.to_vec(), 4);
        for table in ["d0", "d1", "d2", "d3"] {
            let columns = ["k", "a", "b"].map(|name| (name, column(|i| i, 10_000)));
            register(&context, table, columns.to_vec(), 4);
        }
        // Nine tenths of d0 are assumed to remain, a tenth of d1 and a hundredth of d2.
        let where_ = "d0.a <> 3 AND d1.a = 3 AND d2.a = 3 AND d2.b = 4";
        for order in permutations(&[0, 1, 2, 3]) {
            let join = |n: &usize| format!("JOIN d{n} ON facts.fk{n} = d{n}.k");
            let joins: Vec<_> = order.iter().map(join).collect();
            // The facts are the first or second table.
            let second = format!("d{} JOIN facts ON facts.fk{0} = d{0}.k", order[0]);
            for from in
                [format!("facts {}", joins.join(" ")), format!("{second} {}", joins[1..].join(" "))]
            {
                let sql = format!("SELECT count(*) FROM {from} WHERE {where_}");
                let plan = plan(&context, &sql).await;
                let probes = plan.lines().filter(|line| line.contains("BloomProbeExec"));
                let key = |line: &str| line.split("key=[").nth(1).map(|key| key[..3].to_string());
                let mut keys: Vec<_> = probes.filter_map(key).collect();
                keys.sort();
                assert_eq!(keys, ["fk1", "fk2"], "{sql}\n{plan}");
            }
        }
    }

    /// Rows whose key is NULL have no partner. Even a filter of all keys drops them before the
    /// shuffle.
    #[tokio::test]
    async fn keys_that_are_often_null_get_a_filter() {
        let context = context(&[
            ("ballista.planner.adaptive.enabled", "false"),
            ("ballista.optimizer.broadcast_join_threshold_bytes", "0"),
            ("bloom_join.max_cost", "0.4"),
        ])
        .await;
        let column = |f: &dyn Fn(i64) -> Option<i64>, n| -> ArrayRef {
            Arc::new(Int64Array::from_iter((0..n).map(f)))
        };
        let present = |n: i64| move |i: i64| (i % 100 < n).then_some(i % 10_000);
        let names = ["few", "some", "most", "all"];
        let keys = [15, 50, 90, 100].map(|n| column(&present(n), 1_000_000));
        let columns = names.into_iter().zip(keys).chain([("id", column(&Some, 1_000_000))]);
        register(&context, "n", columns.collect(), 4);
        let columns = vec![("k", column(&Some, 10_000)), ("attr", column(&present(15), 10_000))];
        register(&context, "e", columns, 4);
        for (sql, filters) in [
            ("SELECT count(n.id) FROM n JOIN e ON n.few = e.k", 1),
            ("SELECT count(n.id) FROM n RIGHT JOIN e ON n.few = e.k", 1),
            ("SELECT count(n.id) FROM n JOIN e ON n.few = e.k AND n.all = e.k", 1),
            ("SELECT count(n.id) FROM n JOIN e ON n.some = e.k", 1),
            ("SELECT count(n.id) FROM n JOIN e ON n.most = e.k", 0),
            ("SELECT count(n.id) FROM n JOIN e ON n.all = e.k", 0),
            ("SELECT count(n.id) FROM n LEFT JOIN e ON n.few = e.k", 0),
            ("SELECT count(n.id) FROM n JOIN e ON n.few = e.k WHERE n.few IS NOT NULL", 0),
            // A second filter of the same key would drop nothing.
            ("SELECT count(n.id) FROM n JOIN e ON n.few = e.k JOIN e e2 ON n.few = e2.k", 1),
            // Most keys of the build side are dropped, and none without the predicate.
            ("SELECT count(n.id) FROM n JOIN e ON n.all = e.k WHERE e.attr IS NOT NULL", 1),
            ("SELECT count(n.id) FROM n JOIN e ON n.all = e.k WHERE e.k IS NOT NULL", 0),
        ] {
            let plan = plan(&context, sql).await;
            assert_eq!(plan.matches("BloomProbeExec").count(), filters, "{sql}\n{plan}");
        }
    }

    #[tokio::test]
    async fn predicates_that_leave_nearly_all_get_no_filter() {
        let context = context(&[("ballista.planner.adaptive.enabled", "false")]).await;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("p.parquet");
        let file = file.display();
        // The statistics of files have the minimum and maximum of each column.
        for sql in [
            format!(
                "COPY (SELECT value AS k, value % 100 AS attr FROM generate_series(0, 99999))
                 TO '{file}'"
            ),
            format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{file}'"),
        ] {
            run(&context, &sql).await;
        }
        for (predicate, filters) in [
            ("attr < 50", 1),
            ("attr < 95", 0),
            // Of a hundred values, 99 remain.
            ("attr <> 5", 0),
            ("attr IS NOT NULL", 0),
        ] {
            let sql = format!(
                "SELECT count(f.id) FROM f JOIN (SELECT k FROM p WHERE {predicate}) p ON f.fk = p.k"
            );
            let plan = plan(&context, &sql).await;
            assert_eq!(plan.matches("BloomProbeExec").count(), filters, "{predicate}\n{plan}");
        }
    }
}

#[tokio::test]
async fn likely_broadcasts_are_left_alone() {
    let context = context_of(SessionConfig::new().with_target_partitions(4)).await;
    tables(&context);
    let sql = joined("SELECT * FROM d WHERE attr < 3");
    assert_eq!(probes(&context, &sql).await, 0, "DataFusion's own threshold");
    run(&context, "SET bloom_join.despite_broadcast = true").await;
    assert_eq!(probes(&context, &sql).await, 1);
}

#[tokio::test]
async fn chains_of_filters_do_not_grow_exponentially() {
    let context = context().await;
    tables(&context);
    let mut build = "SELECT k FROM d WHERE attr < 3".to_string();
    for _ in 0..5 {
        build =
            format!("SELECT f.fk AS k FROM f JOIN ({build}) d ON f.fk = d.k WHERE f.id < 15000");
    }
    let plan = plan(&context, &joined(&build)).await;
    let count = plan.matches("BloomProbeExec").count();
    assert!((1..20).contains(&count), "{count} filters for 6 joins\n{plan}");
}

#[tokio::test]
async fn the_rule_is_added_once_and_first() {
    let state = SessionStateBuilder::new_with_default_features().with_config(config()).build();
    let state = with_bloom_filters(with_bloom_filters(state));
    let names: Vec<_> = state.physical_optimizers().iter().map(|rule| rule.name()).collect();
    assert_eq!(names[0], RULE_NAME);
    assert_eq!(names.iter().filter(|name| **name == RULE_NAME).count(), 1);
    assert_eq!(BloomJoinRule::default().name(), RULE_NAME);

    // The query planner adds the rule to any other rules, but not a second time.
    for rules in [vec![], state.physical_optimizers().to_vec()] {
        let planner = BloomQueryPlanner::new(state.query_planner().clone());
        let state = SessionStateBuilder::new_with_default_features()
            .with_config(config().with_option_extension(BloomJoinOptions::default()))
            .with_physical_optimizer_rules(rules)
            .with_query_planner(Arc::new(planner))
            .build();
        let context = SessionContext::new_with_state(state);
        tables(&context);
        run(&context, "SET bloom_join.enabled = true").await;
        run(&context, "SET bloom_join.min_probe_rows = 0").await;
        let sql = joined("SELECT * FROM d WHERE attr < 3");
        let plan = plan(&context, &sql).await;
        assert_eq!(plan.matches("BloomProbeExec").count(), 1, "{plan}");
    }
}

/// The rule runs after the others, which have pushed limits into sorts, scans and filters and have
/// decided about shuffles.
#[tokio::test]
async fn the_rule_works_after_all_other_rules() {
    let mut rules = PhysicalOptimizer::new().rules;
    rules.push(Arc::new(BloomJoinRule::default()));
    let options =
        BloomJoinOptions { enabled: Enabled::True, min_probe_rows: 0, ..Default::default() };
    let config = config().with_option_extension(options);
    let state = SessionStateBuilder::new_with_default_features()
        .with_config(config)
        .with_physical_optimizer_rules(rules)
        .build();
    let context = SessionContext::new_with_state(state);
    tables(&context);
    for (build, filters) in [
        ("SELECT k FROM d WHERE attr < 3", 1),
        ("SELECT k FROM (SELECT * FROM d ORDER BY attr LIMIT 50) WHERE attr < 3", 0),
        ("SELECT k FROM d WHERE attr < 3 LIMIT 50", 0),
        ("SELECT k FROM (SELECT * FROM d LIMIT 50) WHERE attr < 3", 0),
        ("SELECT k FROM (SELECT DISTINCT k FROM d LIMIT 50) WHERE k % 3 = 0", 0),
    ] {
        let sql = joined(build);
        let plan = plan(&context, &sql).await;
        assert_eq!(plan.matches("BloomProbeExec").count(), filters, "{build}\n{plan}");
        if filters > 0 {
            assert_eq!(number(&context, &sql).await, 300 * 4, "{plan}");
        }
    }
}

#[tokio::test]
async fn invalid_settings_are_errors() {
    let context = context().await;
    for (set, expected) in [
        ("SET bloom_join.enabled = 7", "bloom_join.enabled: 7: must be true, false or auto"),
        ("SET bloom_join.max_filter_bytes = -1", "bloom_join.max_filter_bytes: -1: invalid digit"),
        ("SET bloom_join.nothing = 1", "unknown setting bloom_join.nothing"),
    ] {
        let error = crate::common::error(&context, set).await;
        assert!(error.contains(expected), "{error}");
    }
}

/// A session keeps its tables when the rule is added. So does the session that it was created from.
#[tokio::test]
async fn registered_tables_stay() {
    let before = SessionContext::new_with_config(config());
    tables(&before);
    let after = SessionContext::new_with_state(with_bloom_filters(before.state()));
    for context in [&before, &after] {
        assert_eq!(number(context, "SELECT count(*) FROM f").await, 20_000);
    }
    run(&after, "SET bloom_join.enabled = true").await;
    run(&after, "SET bloom_join.min_probe_rows = 0").await;
    assert_eq!(probes(&after, &joined("SELECT k FROM d WHERE attr < 3")).await, 1);
}

#[tokio::test]
async fn filters_above_a_byte_limit_are_not_planned() {
    let context = context().await;
    tables(&context);
    let sql = joined("SELECT k FROM d WHERE attr < 3");
    for (setting, value, default) in
        [("max_filter_bytes", "100", "8388608"), ("max_bytes_read", "16", "1073741824")]
    {
        run(&context, &format!("SET bloom_join.{setting} = '{value}'")).await;
        assert_eq!(probes(&context, &sql).await, 0, "{setting} {value}");
        run(&context, &format!("SET bloom_join.{setting} = '{default}'")).await;
        assert_eq!(probes(&context, &sql).await, 1, "{setting}");
    }
}

/// The table below a group is probed in its four partitions, not in the partitions after the
/// group's shuffle.
#[tokio::test]
async fn each_probing_partition_reads_a_filter() {
    let config = SessionConfig::new()
        .with_target_partitions(64)
        .set_bool("datafusion.optimizer.repartition_file_scans", false)
        .set_u64("datafusion.optimizer.hash_join_single_partition_threshold", 0)
        .set_u64("datafusion.optimizer.hash_join_single_partition_threshold_rows", 0);
    let context = context_of(config).await;
    let column = |n: i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(0..n)) };
    register(&context, "f", vec![("id", column(200_000)), ("fk", column(200_000))], 4);
    register(&context, "d", vec![("k", column(50_000)), ("attr", column(50_000))], 4);
    let plan = plan(
        &context,
        "SELECT count(n) FROM (SELECT fk, sum(id) AS n FROM f GROUP BY fk) f
         JOIN (SELECT k FROM d WHERE attr < 3) d ON f.fk = d.k",
    )
    .await;
    let figures = plan.split(" MB shuffled again, ").nth(1).expect("a filter with figures");
    let (shuffled, rest) = figures.split_once(" MB of filters shuffled and ").unwrap();
    let (read, _) = rest.split_once(" read)").unwrap();
    let (shuffled, read): (f64, f64) = (shuffled.parse().unwrap(), read.parse().unwrap());
    assert!(shuffled > 0.1 && (read / shuffled - 4.0).abs() < 0.1, "{plan}");
}

/// In a cluster of 200 tasks, each task would read 200 partial filters, so one task merges them
/// first.
#[cfg(feature = "ballista")]
#[tokio::test]
async fn two_hundred_partitions_read_one_merged_filter() {
    let config = blocked_bloom_datafusion::ballista::session_config()
        .with_target_partitions(200)
        .set_u64("datafusion.optimizer.hash_join_single_partition_threshold", 0)
        .set_u64("datafusion.optimizer.hash_join_single_partition_threshold_rows", 0)
        .set_usize("ballista.optimizer.broadcast_join_threshold_bytes", 0)
        .set_usize("ballista.optimizer.broadcast_join_threshold_rows", 0);
    let context = context_of(config).await;
    let (keys, n) = (1_200_000, 1_500_000);
    let column = |f: fn(i64) -> i64, n| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..n).map(f)))
    };
    register(&context, "f", vec![("id", column(|i| i, n)), ("fk", column(|i| i * 7, n))], 200);
    register(
        &context,
        "d",
        vec![("k", column(|i| i * 3, keys)), ("attr", column(|i| i % 10, keys))],
        200,
    );
    for (predicate, rows) in [("attr < 3", 51_429), ("attr < 0", 0)] {
        let sql = joined(&format!("SELECT * FROM d WHERE {predicate}"));
        let plan = plan(&context, &sql).await;
        assert_eq!(plan.matches("BloomProbeExec").count(), 1, "{plan}");
        let merged =
            "AggregateExec: mode=FinalPartitioned, gby=[all@0 as all], aggr=[bloom_filter]";
        let before = plan.find(merged).unwrap_or_else(|| panic!("no merge in {plan}"));
        assert!(
            plan[before..].contains("RepartitionExec: partitioning=Hash([all@0], 200)"),
            "{plan}"
        );
        assert_eq!(number(&context, &sql).await, rows, "{plan}");
        run(&context, "SET bloom_join.enabled = false").await;
        assert_eq!(number(&context, &sql).await, rows, "{predicate}");
        run(&context, "SET bloom_join.enabled = true").await;
    }
    // A table with a merged filter is the build side of another join.
    register(&context, "g", vec![("gk", column(|i| i * 5, n))], 200);
    let sql = "SELECT count(*) FROM g JOIN (SELECT f.id FROM f JOIN d ON f.fk = d.k WHERE attr < 3) x ON g.gk = x.id";
    let chain = plan(&context, sql).await;
    assert!(chain.matches("BloomProbeExec").count() > 1, "{chain}");
    let rows = number(&context, sql).await;
    run(&context, "SET bloom_join.enabled = false").await;
    assert_eq!(number(&context, sql).await, rows);
}
