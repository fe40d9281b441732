//! Generated joins with unusual features. They return the same rows with filters as without.

use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::prelude::SessionContext;

use crate::common::{config, context_of, plan, register, rows, run};
use crate::stars::generated::Random;

fn key_types() -> Vec<DataType> {
    use DataType::*;
    vec![
        Int64,
        Int32,
        UInt16,
        Float64,
        Utf8,
        Utf8View,
        Date32,
        Decimal128(20, 2),
        Dictionary(Box::new(Int32), Box::new(Utf8)),
    ]
}

/// Creates three tables with keys `k` and `j`, some of which are NULL, repeated, or without a
/// partner.
fn tables(context: &SessionContext, to: &DataType) {
    for (table, rows, factor, keys) in
        [("t0", 3000, 7, 400), ("t1", 700, 11, 500), ("t2", 250, 3, 300)]
    {
        let key = |modulus: i64, null: i64| -> ArrayRef {
            let keys = (0..rows).map(|i| (i % null != 0).then_some(i * factor % modulus));
            let keys: ArrayRef = Arc::new(Int64Array::from_iter(keys));
            match to {
                DataType::Date32 => cast(&cast(&keys, &DataType::Int32).unwrap(), to).unwrap(),
                _ => cast(&keys, to).unwrap(),
            }
        };
        let number = |modulus: i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values((0..rows).map(|i| i * 13 % modulus)))
        };
        let columns =
            vec![("id", number(rows)), ("k", key(keys, 17)), ("j", key(40, 23)), ("a", number(10))];
        register(context, table, columns, 3);
    }
}

/// Returns a table or a subquery with the columns `k`, `j`, `a` and `id`, and with a predicate if
/// `selective`.
fn relation(random: &mut Random, depth: usize) -> String {
    let table = random.choose(&["t0", "t1", "t2"]);
    let predicate = random.choose(&[
        "a < 3",
        "a < 3",
        "a = 7 OR a = 2",
        "id % 4 = 1",
        "a < 0",
        "true",
        "k IS NOT NULL",
    ]);
    let selected = format!("SELECT id, k, j, a FROM {table} WHERE {predicate}");
    match random.number_below(if depth > 0 { 8 } else { 6 }) {
        0 => table.to_string(),
        1 => format!(
            "(SELECT count(*) AS id, k, min(j) AS j, sum(a) AS a FROM {table} WHERE {predicate} GROUP BY k)"
        ),
        2 => format!(
            "(SELECT max(id) AS id, k, j, count(*) AS a FROM {table} GROUP BY k, j HAVING count(*) > 1)"
        ),
        3 => format!("({selected} UNION ALL SELECT id, k, j, a FROM t1 WHERE a = 5)"),
        4 => format!("(SELECT DISTINCT id, k, j, a FROM {table} WHERE {predicate})"),
        6 => {
            let (left, right) = (relation(random, depth - 1), relation(random, depth - 1));
            let join = random.choose(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
            let from = random.choose(&["l", "r"]);
            format!(
                "(SELECT {from}.id, {from}.k, r.j, l.a FROM {left} l {join} {right} r ON l.k = r.k AND l.a <> r.a)"
            )
        }
        7 => {
            let (left, right) = (relation(random, depth - 1), relation(random, depth - 1));
            let not = random.choose(&["", "NOT "]);
            format!(
                "(SELECT * FROM {left} l WHERE {not}EXISTS (SELECT 1 FROM {right} r WHERE r.j = l.j AND r.a > l.a))"
            )
        }
        _ => format!("({selected})"),
    }
}

fn query(random: &mut Random) -> String {
    let (x, y) = (relation(random, 2), relation(random, 2));
    let mut sql = String::new();
    let (x, y) = match random.number_below(4) {
        // The same relation is joined twice.
        0 => {
            write!(sql, "WITH x AS (SELECT * FROM {x} w) ").unwrap();
            ("x".to_string(), if random.number_below(2) == 0 { "x".to_string() } else { y })
        }
        _ => (x, y),
    };
    let on = random.choose(&[
        "x.k = y.k",
        "x.k = y.k",
        "x.k = y.k AND x.j = y.j",
        "x.j = y.j AND x.a = y.a AND x.id < y.id",
        "x.k = y.k AND x.a < y.a",
        "x.k IS NOT DISTINCT FROM y.k AND x.a = y.a",
    ]);
    let sum = "count(*), sum(x.id), count(x.k), min(x.k), max(x.j), sum(x.a)";
    match random.number_below(10) {
        0..5 => {
            let join = random.choose(&["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
            write!(sql, "SELECT {sum}, sum(y.id), count(y.k), max(y.j) FROM {x} x {join} {y} y ON {on}")
        }
        5 => {
            let join = random.choose(&["LEFT SEMI JOIN", "LEFT ANTI JOIN"]);
            write!(sql, "SELECT {sum} FROM {x} x {join} {y} y ON {on}")
        }
        6 => write!(sql, "SELECT {sum} FROM {x} x WHERE x.k NOT IN (SELECT y.k FROM {y} y WHERE y.a > 1)"),
        7 => write!(sql, "SELECT {sum} FROM {x} x WHERE x.k IN (SELECT y.k FROM {y} y) OR x.a = 4"),
        8 => write!(
            sql,
            "SELECT {sum} FROM {x} x JOIN {y} y ON {on} JOIN t2 z ON z.k = x.k AND z.a < 5 LEFT JOIN t1 w ON w.j = z.j AND w.a = 1"
        ),
        _ => write!(
            sql,
            "SELECT {sum} FROM {x} x JOIN {y} y ON {on} WHERE x.a < (SELECT max(a) FROM t1 s WHERE s.k = y.k)"
        ),
    }
    .unwrap();
    sql
}

#[tokio::test]
async fn generated_joins_return_the_rows_of_the_plain_engine() {
    let mut random = Random(38);
    let (mut filters, mut compared) = (0, 0);
    for hash in [true, false] {
        for to in &key_types() {
            let config = config().set_bool("datafusion.optimizer.prefer_hash_join", hash);
            let filtered = context_of(config.clone()).await;
            let plain = context_of(config).await;
            run(&plain, "SET bloom_join.enabled = false").await;
            tables(&filtered, to);
            tables(&plain, to);
            for _ in 0..24 {
                let sql = query(&mut random);
                // The engine itself refuses some queries, such as sums of a column that a CTE
                // lacks.
                let Ok(frame) = plain.sql(&sql).await else { continue };
                if frame.create_physical_plan().await.is_err() {
                    continue;
                }
                let explained = plan(&filtered, &sql).await;
                // The engine itself panics in some sort-merge joins with a condition.
                let (engine, query) = (plain.clone(), sql.clone());
                let expected = tokio::spawn(async move { rows(&engine, &query).await });
                let Ok(expected) = expected.await else { continue };
                filters += explained.matches("BloomProbeExec").count();
                compared += 1;
                assert_eq!(rows(&filtered, &sql).await, expected, "{to} {sql}\n{explained}");
            }
        }
    }
    println!("{compared} joins with {filters} filters");
    assert!(compared > 270 && filters > 270, "{compared} joins with {filters} filters");
}
