//! The time to plan a query with and without the rule.

use std::time::Instant;

use blocked_bloom_datafusion::{ballista::session_config, with_bloom_filters};
use datafusion::physical_plan::displayable;
use datafusion::prelude::SessionContext;

use crate::processes::Failure;
use crate::report::median;

/// Prints the median planning times of `runs` rounds for queries with more and more joins: a fact
/// table with a dimension for each join (star), and tables that each refer to the next one (chain).
/// The session is that of a scheduler. "Refused" is the time of the rule alone: it estimates all
/// filters and plans none. A planned filter costs more, mostly because the engine then optimises
/// seven more operators.
pub(crate) async fn measure(runs: usize) -> Result<(), Failure> {
    let runs = runs.max(1);
    println!(
        "| query | joins | ms without | refused | planned | filters |\n|---|---:|---:|---:|---:|---:|"
    );
    for shape in ["star", "chain"] {
        for joins in [5, 10, 20, 40] {
            let mut sessions = Vec::new();
            for (enabled, max_cost) in [("false", 0), ("auto", 0), ("auto", 1_000_000)] {
                // No sides are broadcast.
                let config = session_config()
                    .with_target_partitions(4)
                    .set_str("bloom_join.enabled", enabled)
                    .set_u64("bloom_join.max_cost", max_cost)
                    .set_u64("bloom_join.min_probe_rows", 0)
                    .set_usize("ballista.optimizer.broadcast_join_threshold_bytes", 0)
                    .set_usize("ballista.optimizer.broadcast_join_threshold_rows", 0);
                let state = SessionContext::new_with_config(config).state();
                let context = SessionContext::new_with_state(with_bloom_filters(state));
                create_tables(&context, joins).await?;
                sessions.push((context, Vec::new(), 0));
            }
            let sql = query(shape, joins);
            for run in 0..=runs {
                let mut order: Vec<_> = sessions.iter_mut().collect();
                if run % 2 == 1 {
                    order.reverse();
                }
                for (context, times, filters) in order {
                    let start = Instant::now();
                    let plan = context.sql(&sql).await?.create_physical_plan().await?;
                    // The first run is not counted.
                    if run > 0 {
                        times.push(start.elapsed().as_secs_f64() * 1e3);
                    }
                    let plan = displayable(plan.as_ref()).indent(false).to_string();
                    *filters = plan.matches("BloomProbeExec").count();
                }
            }
            let without = &sessions[0].1;
            let ratio = |session: usize| {
                let times: &Vec<f64> = &sessions[session].1;
                median(times.iter().zip(without).map(|(time, without)| time / without).collect())
            };
            println!(
                "| {shape} | {joins} | {:.2} | {:.3} | {:.3} | {} |",
                median(without.clone()),
                ratio(1),
                ratio(2),
                sessions[2].2,
            );
        }
    }
    Ok(())
}

async fn create_tables(context: &SessionContext, joins: usize) -> Result<(), Failure> {
    let keys: Vec<String> = (0..joins).map(|i| format!("value % {} AS fk{i}", 100 + i)).collect();
    let sql = format!(
        "CREATE TABLE fact AS SELECT {}, value AS k FROM generate_series(1, 20000)",
        keys.join(", ")
    );
    context.sql(&sql).await?.collect().await?;
    for i in 0..joins {
        let sql = format!(
            "CREATE TABLE d{i} AS SELECT value AS k, value % 10 AS attr, value % 50 AS next
             FROM generate_series(1, {})",
            200 + i
        );
        context.sql(&sql).await?.collect().await?;
    }
    Ok(())
}

fn query(shape: &str, joins: usize) -> String {
    let on = |i: usize| match (shape, i) {
        ("chain", 1..) => format!("d{}.next", i - 1),
        _ => format!("fact.fk{i}"),
    };
    let tables: Vec<String> =
        (0..joins).map(|i| format!("JOIN d{i} ON {} = d{i}.k", on(i))).collect();
    let predicates: Vec<String> = (0..joins).map(|i| format!("d{i}.attr < 3")).collect();
    format!("SELECT count(*) FROM fact {} WHERE {}", tables.join(" "), predicates.join(" AND "))
}
