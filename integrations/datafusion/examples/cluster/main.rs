//! Joins in a Ballista cluster, with 1 % and 100 % matches, with and without filters before the
//! shuffles. The example starts a scheduler and two executors as processes on this machine, prints
//! rows and shuffled bytes, and stops the processes.
//!
//!     cargo run --locked --release --all-features --example cluster -- ARGUMENTS
//!
//! - no arguments: 2 M rows, each case once
//! - `measure 20000000 7`: the number of rows and the runs of each case, in turn. Prints medians,
//!   also for one process with its dynamic filters and with a Bloom filter instead of them
//! - `tpch 1 3 scaled auto`: TPC-H with a scale factor and three runs of each query, in turn with
//!   `bloom_join.enabled` auto and false; one run if both have the same plan. Further numbers are
//!   the first and the last query
//! - `generated 2000000 3 scaled auto`: the same for generated joins
//! - `tpcds FOLDER 3 scaled auto`: the same for TPC-DS in a folder that `suites/prepare.py` wrote.
//!   Queries that fail in the cluster without filters are left out
//! - `planning 21`: the time to plan queries of 5 to 40 joins, with and without the rule
//!
//! Modes: `scaled` is Ballista's adaptive planner, `scaled-static` its static planner, and
//! `scaled-workers` two workers of datafusion-distributed. These divide thresholds by a hundred, as
//! if there were a hundred times the rows. `defaults` is Ballista with its own thresholds, and
//! `one-process` has no cluster. With 0 runs, rows are checked and nothing is measured. The
//! variable `TABLES` names a directory that keeps the tables, and `SET` has settings such as
//! `SET=KEY=VALUE,KEY=VALUE`.

mod compare;
mod data;
mod deployment;
mod expected;
mod generated;
mod planning;
mod processes;
mod report;
mod tpcds;
mod tpch;
mod urls;
mod workers;

use std::path::Path;
use std::time::{Duration, Instant};

use blocked_bloom_datafusion::ballista::{connect, session_config};
use blocked_bloom_datafusion::with_bloom_filters;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::common::ScalarValue;
use datafusion::prelude::{SessionConfig, SessionContext};

use compare::{Suite, compare};
use processes::{Cluster, Failure};
use report::{Run, print_medians};

/// Prints this crate's log and the warnings of all crates.
struct Log;

impl log::Log for Log {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn || metadata.target().starts_with("blocked_bloom")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            eprintln!("{} {}: {}", record.level(), record.target(), record.args());
        }
    }

    fn flush(&self) {}
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(role @ ("scheduler" | "executor" | "worker")) =
        arguments.first().map(String::as_str)
    {
        log::set_logger(&Log).map_err(|error| error.to_string())?;
        log::set_max_level(log::LevelFilter::Debug);
        return match (role, &arguments[1..]) {
            ("worker", [port]) => workers::run_role(port.parse()?).await,
            (role, arguments) => processes::run_role(role, arguments).await,
        };
    }
    let directory = std::env::temp_dir().join(format!("bloom-cluster-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        [] => run(&directory, 2_000_000, 1).await,
        ["planning", runs] => planning::measure(runs.parse()?).await,
        ["measure", rows, runs] => run(&directory, rows.parse()?, runs.parse()?).await,
        [suite @ ("tpch" | "generated" | "tpcds"), of, runs, mode, enabled, range @ ..] => {
            let suite = match *suite {
                "tpch" => Suite::Tpch(of.parse()?),
                "generated" => Suite::Generated(of.parse()?),
                _ => Suite::Tpcds(of.into()),
            };
            let queries = match range {
                [first, last] => first.parse()?..=last.parse()?,
                _ => suite.queries(),
            };
            compare(&directory, suite, runs.parse()?, mode, enabled, queries).await
        }
        _ => Err("usage: cluster [measure ROWS RUNS | planning RUNS | \
                  SUITE RUNS MODE ENABLED [FIRST LAST]], \
                  SUITE: tpch SCALE | generated ROWS | tpcds FOLDER"
            .into()),
    };
    if let Err(error) = result {
        return Err(format!("{error} (logs are in {})", directory.display()).into());
    }
    Ok(std::fs::remove_dir_all(&directory)?)
}

/// A case: its name, the foreign key, the dimension, and the upper bound of `attr` in the
/// dimension's predicate.
const CASES: [(&str, &str, &str, u32); 3] = [
    ("1 % match, 1 % of a dimension", "fk_a", "dim_a", 10),
    ("everything matches", "fk_a", "dim_a", 1000),
    ("1 % match, a whole dimension", "fk_b", "dim_b", 1000),
];

/// A mode of a case: its name, and whether it has filters, broadcasts and adaptive execution.
const MODES: [(&str, bool, bool, bool); 5] = [
    ("adaptive", false, false, true),
    ("adaptive, filter", true, false, true),
    ("static", false, false, false),
    ("static, filter", true, false, false),
    ("Ballista's defaults", false, true, true),
];

async fn run(directory: &Path, rows: u64, runs: usize) -> Result<(), Failure> {
    println!("writing a fact table of {rows} rows");
    data::write(directory, rows)?;
    let cluster = Cluster::start(&std::env::current_exe()?, directory, 2, 2)?;
    println!("a scheduler and two executors of two cores each are running\n");
    for (number, (case, key, dimension, below)) in CASES.into_iter().enumerate() {
        let sql = star(key, dimension, below);
        println!("{case}:\n{sql}");
        let mut all: Vec<Vec<Run>> = MODES.iter().map(|_| Vec::new()).collect();
        let mut answers = Vec::new();
        for run in 0..runs {
            // Every second run has the reverse order. One second before each run lets Ballista
            // delete the files of the previous one.
            let mut modes: Vec<_> = MODES.iter().enumerate().collect();
            if run % 2 == 1 {
                modes.reverse();
            }
            for (mode, &(_, filter, broadcast, adaptive)) in modes {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let context = client(&cluster.url, filter, broadcast, adaptive).await?;
                data::register(&context, directory).await?;
                let watch = cluster.watch();
                let (start, cpu) = (Instant::now(), cluster.cpu_seconds());
                let batches = context.sql(&sql).await?.collect().await?;
                let (seconds, cpu) = (start.elapsed().as_secs_f64(), cluster.cpu_seconds() - cpu);
                let shuffled = watch.finish();
                answers.push(pretty_format_batches(&batches)?.to_string());
                let mut measured = Run { seconds, cpu, bytes: shuffled.bytes(), probed: None };
                if run == 0 && filter {
                    let explained = format!("EXPLAIN ANALYZE {sql}");
                    let plan = context.sql(&explained).await?.collect().await?;
                    let plan = pretty_format_batches(&plan)?.to_string();
                    measured.probed = report::probed(&plan);
                    if number == 0 && mode == 1 {
                        println!("{plan}");
                    }
                }
                all[mode].push(measured);
            }
        }
        println!("{}", answers[0]);
        if answers.iter().any(|answer| *answer != answers[0]) {
            return Err(format!("the answers differ: {answers:#?}").into());
        }
        print_medians(&MODES.map(|(name, ..)| name), &all);
        compare_in_one_process(directory, [key, dimension], below, runs, &answers[0]).await?;
    }
    Ok(())
}

fn star(key: &str, dimension: &str, below: u32) -> String {
    format!(
        "SELECT count(*) AS rows, sum(f.qty) AS qty, sum(length(f.note)) AS note, sum(d.k) AS k \
         FROM fact f JOIN {dimension} d ON f.{key} = d.k WHERE d.attr < {below}"
    )
}

async fn client(
    url: &str,
    filter: bool,
    broadcast: bool,
    adaptive: bool,
) -> Result<SessionContext, Failure> {
    let mut config = session_config()
        .with_target_partitions(4)
        .set_bool("bloom_join.enabled", filter)
        .set_bool("ballista.planner.adaptive.enabled", adaptive);
    if !broadcast {
        // Turns broadcasts off, so that both sides of every join are shuffled, as large sides are.
        config = config
            .set_u64("datafusion.optimizer.hash_join_single_partition_threshold", 0)
            .set_u64("datafusion.optimizer.hash_join_single_partition_threshold_rows", 0)
            .set_usize("ballista.optimizer.broadcast_join_threshold_bytes", 0)
            .set_usize("ballista.optimizer.broadcast_join_threshold_rows", 0);
    }
    Ok(connect(url, config).await?)
}

/// Compares uses of the build side's keys in one process: none; DataFusion's dynamic filter; the
/// same as a row filter of the scan; and one of our filters there, which another query builds
/// first.
async fn compare_in_one_process(
    directory: &Path,
    [key, dimension]: [&str; 2],
    below: u32,
    runs: usize,
    expected: &str,
) -> Result<(), Failure> {
    let modes = ["no filter", "dynamic filter", "dynamic, row filter", "Bloom, row filter"];
    let session = async |mode: usize| -> Result<SessionContext, Failure> {
        let config = SessionConfig::new()
            .with_target_partitions(4)
            .set_bool("datafusion.optimizer.enable_dynamic_filter_pushdown", mode == 1 || mode == 2)
            .set_bool("datafusion.execution.parquet.pushdown_filters", mode > 1);
        let state = SessionContext::new_with_config(config).state();
        let context = SessionContext::new_with_state(with_bloom_filters(state));
        data::register(&context, directory).await?;
        Ok(context)
    };
    let sql = star(key, dimension, below);
    let with_filter = format!("{sql} AND bloom_filter_contains($1, f.{key})");
    let (mut all, mut making) = (vec![Vec::new(); 4], Vec::new());
    for run in 0..=runs {
        let mut order = [0, 1, 2, 3];
        if run % 2 == 1 {
            order.reverse();
        }
        for mode in order {
            let context = session(mode).await?;
            let process = std::process::id();
            let (start, cpu) = (Instant::now(), processes::cpu_seconds(process));
            let taken = || Run {
                seconds: start.elapsed().as_secs_f64(),
                cpu: processes::cpu_seconds(process) - cpu,
                bytes: 0,
                probed: None,
            };
            let frame = if mode == 3 {
                let keys = context.table(dimension).await?.count().await?;
                let make = format!(
                    "SELECT bloom_filter_agg(k, {keys}, 0.01) FROM {dimension} WHERE attr < {below}"
                );
                let made = context.sql(&make).await?.collect().await?;
                let filter = made[0].column(0).as_binary::<i32>().value(0).to_vec();
                if run > 0 {
                    making.push(taken());
                }
                let filter = vec![ScalarValue::Binary(Some(filter))];
                context.sql(&with_filter).await?.with_param_values(filter)?
            } else {
                context.sql(&sql).await?
            };
            let batches = frame.collect().await?;
            // The first run reads the files into the page cache.
            if run > 0 {
                all[mode].push(taken());
            }
            let answer = pretty_format_batches(&batches)?.to_string();
            if answer != expected {
                return Err(format!("{}: {answer} is not {expected}", modes[mode]).into());
            }
        }
    }
    println!("in one process");
    print_medians(&modes, &all);
    print_medians(&["of which making it"], &[making]);
    println!();
    Ok(())
}
