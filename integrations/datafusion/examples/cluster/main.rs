//! Joins in a cluster of Ballista, one of 1 % and one of 100 % matches, with filters before the
//! shuffles and without. The example starts a scheduler and two executors as processes on this
//! machine, prints rows and bytes shuffled, and stops the processes.
//!
//!     cargo run --locked --release --features cluster --example cluster -- ARGUMENTS
//!
//! - no arguments: 2 M rows, each case once
//! - `measure 20000000 7`: so many rows, each case so many times, in turn; prints medians
//! - `tpch 1 3 scaled auto`: TPC-H at a scale factor, three runs of each query with
//!   `bloom_join.enabled` auto and false in turn, or one if both have the same plan. In place of
//!   `scaled` may be `scaled-static`, both with thresholds of a hundredth, as if there were a
//!   hundred times the rows; `defaults`, those of Ballista; or `one-process`. Two more numbers are
//!   the first and the last query. The variable `TABLES` names a directory to keep the tables in
//! - `generated 2000000 3 scaled auto`: the same for joins that a generator makes
//! - `tpcds FOLDER 3 scaled auto`: the same for TPC-DS in a folder that `tpcds/prepare.py` wrote; a
//!   query that a cluster does not finish, or gives wrong rows for, without filters is left out

mod data;
mod expected;
mod generated;
mod processes;
mod report;
mod tpcds;
mod tpch;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use blocked_bloom_datafusion::ballista::{connect, session_config};
use blocked_bloom_datafusion::{BloomJoinOptions, with_bloom_filters};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::prelude::{SessionConfig, SessionContext};
use tokio::time::timeout;

use expected::{Expected, Tolerance};
use processes::{Cluster, Failure};
use report::{Query, Run, print_medians};

/// Prints what this crate logs, and the warnings of all crates.
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
    if let Some(role @ ("scheduler" | "executor")) = arguments.first().map(String::as_str) {
        log::set_logger(&Log).map_err(|error| error.to_string())?;
        log::set_max_level(log::LevelFilter::Debug);
        return processes::run_role(role, &arguments[1..]).await;
    }
    let directory = std::env::temp_dir().join(format!("bloom-cluster-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        [] => run(&directory, 2_000_000, 1).await,
        ["measure", rows, runs] => run(&directory, rows.parse()?, runs.parse()?).await,
        [suite @ ("tpch" | "generated" | "tpcds"), of, runs, way, enabled, range @ ..] => {
            let suite = match *suite {
                "tpch" => Suite::Tpch(of.parse()?),
                "generated" => Suite::Generated(of.parse()?),
                _ => Suite::Tpcds(of.into()),
            };
            let queries = match range {
                [first, last] => first.parse()?..=last.parse()?,
                _ => 1..=suite.queries(),
            };
            compare(&directory, suite, runs.parse()?, way, enabled, queries).await
        }
        _ => Err("usage: cluster [measure ROWS RUNS | SUITE RUNS WAY ENABLED [FIRST LAST]], \
                  SUITE: tpch SCALE | generated ROWS | tpcds FOLDER"
            .into()),
    };
    if let Err(error) = result {
        return Err(format!("{error} (logs are in {})", directory.display()).into());
    }
    Ok(std::fs::remove_dir_all(&directory)?)
}

/// A case: its name, the foreign key, the dimension, and the value of `attr` below which rows of
/// the dimension are selected.
const CASES: [(&str, &str, &str, u32); 3] = [
    ("1 % match, 1 % of a dimension", "fk_a", "dim_a", 10),
    ("everything matches", "fk_a", "dim_a", 1000),
    ("1 % match, a whole dimension", "fk_b", "dim_b", 1000),
];

/// A way to run a case: its name, whether filters are put before shuffles, whether broadcasts are
/// allowed, and whether adaptive execution is on.
const WAYS: [(&str, bool, bool, bool); 5] = [
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
        let sql = format!(
            "SELECT count(*) AS rows, sum(f.qty) AS qty, sum(length(f.note)) AS note, sum(d.k) AS k \
             FROM fact f JOIN {dimension} d ON f.{key} = d.k WHERE d.attr < {below}"
        );
        println!("{case}:\n{sql}");
        let mut all: Vec<Vec<Run>> = WAYS.iter().map(|_| Vec::new()).collect();
        let mut answers = Vec::new();
        for run in 0..runs {
            // The order is reversed in every second run. Before each there is a second in which the
            // files of the run before are deleted.
            let mut ways: Vec<_> = WAYS.iter().enumerate().collect();
            if run % 2 == 1 {
                ways.reverse();
            }
            for (way, &(_, filter, broadcast, adaptive)) in ways {
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
                    if number == 0 && way == 1 {
                        println!("{plan}");
                    }
                }
                all[way].push(measured);
            }
        }
        println!("{}", answers[0]);
        if answers.iter().any(|answer| *answer != answers[0]) {
            return Err(format!("the answers differ: {answers:#?}").into());
        }
        print_medians(&WAYS.map(|(name, ..)| name), &all);
        in_one_process(directory, &sql, runs).await?;
    }
    Ok(())
}

/// What takes longer has failed.
const LONGEST: Duration = Duration::from_secs(120);

/// Queries and their tables.
enum Suite {
    /// TPC-H at a scale factor.
    Tpch(f64),
    /// The joins of [`generated`], with so many rows in the largest table.
    Generated(i64),
    /// TPC-DS in a folder.
    Tpcds(PathBuf),
}

impl Suite {
    fn queries(&self) -> usize {
        match self {
            Suite::Tpch(_) | Suite::Generated(_) => 22,
            Suite::Tpcds(_) => 99,
        }
    }

    fn query(&self, number: usize) -> datafusion::common::Result<String> {
        match self {
            Suite::Tpch(_) => Ok(tpch::query(number)),
            Suite::Generated(_) => Ok(generated::query(number)),
            Suite::Tpcds(folder) => tpcds::query(folder, number),
        }
    }

    fn write(&self, directory: &Path) -> datafusion::common::Result<()> {
        let is_there = |table: &str| directory.join(table).exists();
        match self {
            Suite::Tpch(scale) if !is_there("lineitem") => tpch::write(directory, *scale, 4),
            Suite::Generated(rows) if !is_there("cast_info") => generated::write(directory, *rows),
            _ => Ok(()),
        }
    }

    async fn register(
        &self,
        context: &SessionContext,
        directory: &Path,
    ) -> datafusion::common::Result<()> {
        match self {
            Suite::Tpch(_) => tpch::register(context, directory).await,
            Suite::Generated(_) => generated::register(context, directory).await,
            Suite::Tpcds(folder) => tpcds::register(context, folder).await,
        }
    }
}

/// Runs each query with filters and without, checks the rows, and prints seconds, CPU and bytes.
async fn compare(
    directory: &Path,
    suite: Suite,
    runs: usize,
    way: &str,
    enabled: &str,
    queries: RangeInclusive<usize>,
) -> Result<(), Failure> {
    // The tables are written elsewhere if they are to stay for another run.
    let tables = std::env::var_os("TABLES").map_or(directory.to_path_buf(), PathBuf::from);
    suite.write(&tables)?;
    let mut config = match way {
        "one-process" => SessionConfig::new().with_option_extension(BloomJoinOptions::default()),
        "defaults" | "scaled" | "scaled-static" => session_config(),
        _ => return Err(format!("unknown way {way}").into()),
    };
    config = config.with_target_partitions(4);
    if way.starts_with("scaled") {
        let optimizer = "datafusion.optimizer.hash_join_single_partition_threshold";
        config = config
            .set_u64(optimizer, (1 << 20) / 100)
            .set_u64(&format!("{optimizer}_rows"), (128 << 10) / 100)
            .set_usize("ballista.optimizer.broadcast_join_threshold_bytes", (128 << 20) / 100)
            .set_usize("ballista.optimizer.broadcast_join_threshold_rows", 10_000)
            .set_u64("bloom_join.min_probe_rows", 1000)
            .set_bool("ballista.planner.adaptive.enabled", way == "scaled");
    }
    let start = || match way {
        "one-process" => Ok(None),
        _ => Cluster::start(&std::env::current_exe()?, directory, 2, 2).map(Some),
    };
    let mut cluster = start()?;
    let local = SessionContext::new();
    suite.register(&local, &tables).await?;
    report::print_head();
    let (mut all, mut left_out) = (Vec::new(), Vec::new());
    'queries: for number in queries {
        let sql = suite.query(number)?;
        let expected = Expected::of(&local, &sql).await?;
        if left_out.last() == Some(&(number - 1)) {
            // It may still be busy with the query before.
            drop(cluster);
            cluster = start()?;
        }
        let mut config = config.clone();
        if cluster.is_some() && matches!(suite, Suite::Tpch(_)) && number == 10 {
            // Its 38,000 rows have strings as views of shared buffers. Arrow Flight splits batches
            // above 2 MiB and sends all of the buffers with each part: gigabytes, for which an
            // executor misses its heartbeats. See docs/datafusion.md.
            config = config.set_bool("datafusion.execution.parquet.schema_force_view_types", false);
        }
        let session = async |filter: bool| -> Result<SessionContext, Failure> {
            let setting = if filter { enabled } else { "false" };
            let config = config.clone().set_str("bloom_join.enabled", setting);
            let context = match &cluster {
                Some(cluster) => connect(&cluster.url, config).await?,
                None => {
                    let state = SessionContext::new_with_config(config).state();
                    SessionContext::new_with_state(with_bloom_filters(state))
                }
            };
            suite.register(&context, &tables).await?;
            Ok(context)
        };
        let explain = async |filter: bool| -> Result<String, Failure> {
            let context = session(filter).await?;
            let explained = context.sql(&format!("EXPLAIN {sql}")).await?.collect().await?;
            let explained = report::lines(&explained)?;
            // Ballista adds its stages as the text of hash tables, which differs from run to run.
            Ok(explained.split("distributed_plan|").next().unwrap_or_default().to_string())
        };
        let plan = explain(true).await?;
        let mut query = Query {
            name: number.to_string(),
            filters: plan.matches("BloomProbeExec").count(),
            same_plan: plan == explain(false).await?,
            plain: Vec::new(),
            filtered: Vec::new(),
        };
        let mut times = 1;
        // The first run of each is not counted: it reads the files into the page cache. Queries
        // with the same plan run once, which counts for both.
        let last = if query.same_plan { 0 } else { runs };
        for run in 0..=last {
            let both = if run % 2 == 1 { [true, false] } else { [false, true] };
            for filter in both.into_iter().filter(|filter| !(query.same_plan && *filter)) {
                let context = session(filter).await?;
                let used = || match &cluster {
                    Some(cluster) => cluster.cpu_seconds(),
                    None => processes::cpu_seconds(std::process::id()),
                };
                // Wait until the processes have finished the work of the run before.
                let mut before = used();
                loop {
                    tokio::time::sleep(Duration::from_millis(60)).await;
                    let now = used();
                    if now - before < 0.015 {
                        break;
                    }
                    before = now;
                }
                let (start, before) = (Instant::now(), used());
                let (mut bytes, mut answers) = (0, Vec::new());
                for _ in 0..times {
                    let watch = cluster.as_ref().map(Cluster::watch);
                    let answer = async { context.sql(&sql).await?.collect().await };
                    let answer = match timeout(LONGEST, answer).await {
                        Ok(Ok(batches)) => batches,
                        failure if (run, filter) == (0, false) => {
                            println!("| {number} | left out, without filters: {failure:?} |");
                            left_out.push(number);
                            continue 'queries;
                        }
                        failure => return Err(format!("query {number}: {failure:?}").into()),
                    };
                    bytes += watch.map_or(0, |watch| watch.finish().bytes());
                    answers.push(expected::rows(&answer)?);
                }
                let each = f64::from(times);
                let seconds = start.elapsed().as_secs_f64() / each;
                let cpu = (used() - before) / each;
                let of = Run { seconds, cpu, bytes: bytes / u64::from(times), probed: None };
                match (run, filter) {
                    _ if query.same_plan => {
                        query.plain = vec![of; runs];
                        query.filtered = query.plain.clone();
                    }
                    // Where a ratio will be printed, so often that the clock's steps of a hundredth
                    // of a second are less than a hundredth of the time.
                    (0, false) if !query.same_plan => times = (1.0 / cpu).clamp(1.0, 6.0) as u32,
                    (0, _) => {}
                    (_, false) => query.plain.push(of),
                    (_, true) => query.filtered.push(of),
                }
                for answer in answers {
                    match expected.check(&answer, Tolerance::ROUNDING) {
                        Ok(()) => {}
                        Err(error) if (run, filter) == (0, false) => {
                            println!("| {number} | left out, wrong without filters: {error} |");
                            continue 'queries;
                        }
                        Err(error) => {
                            return Err(format!("query {number}, filter {filter}: {error}").into());
                        }
                    }
                }
            }
        }
        query.print();
        all.push(query);
    }
    Query::sum("all", &all).print();
    all.retain(|query| !query.same_plan);
    if !all.is_empty() {
        Query::sum("of these with filters", &all).print();
    }
    Ok(())
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
        // Both sides of every join are shuffled, as are sides that are too large for a broadcast.
        config = config
            .set_u64("datafusion.optimizer.hash_join_single_partition_threshold", 0)
            .set_u64("datafusion.optimizer.hash_join_single_partition_threshold_rows", 0)
            .set_usize("ballista.optimizer.broadcast_join_threshold_bytes", 0)
            .set_usize("ballista.optimizer.broadcast_join_threshold_rows", 0);
    }
    Ok(connect(url, config).await?)
}

/// DataFusion's own dynamic filters, without a cluster.
async fn in_one_process(directory: &Path, sql: &str, runs: usize) -> Result<(), Failure> {
    let mut all = Vec::new();
    for _ in 0..runs {
        let config = SessionConfig::new().with_target_partitions(4);
        let context = SessionContext::new_with_config(config);
        data::register(&context, directory).await?;
        let process = std::process::id();
        let (start, cpu) = (Instant::now(), processes::cpu_seconds(process));
        context.sql(sql).await?.collect().await?;
        let (seconds, cpu) = (start.elapsed().as_secs_f64(), processes::cpu_seconds(process) - cpu);
        all.push(Run { seconds, cpu, bytes: 0, probed: None });
    }
    print_medians(&["DataFusion, one process"], &[all]);
    println!();
    Ok(())
}
