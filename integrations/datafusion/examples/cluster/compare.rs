//! Compares the queries of a suite with and without filters: rows, time, CPU and bytes.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::{SessionConfig, SessionContext};
use tokio::time::timeout;

use crate::deployment::Deployment;
use crate::expected::{self, Expected, Tolerance};
use crate::processes::Failure;
use crate::report::{self, Query, Run};
use crate::{generated, tpcds, tpch};

/// A query that takes longer has failed.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A set of queries with their tables.
pub(crate) enum Suite {
    /// TPC-H at a scale factor.
    Tpch(f64),
    /// The joins of [`generated`], with this many rows in the largest table.
    Generated(i64),
    /// TPC-DS in a folder.
    Tpcds(PathBuf),
}

impl Suite {
    pub(crate) fn queries(&self) -> RangeInclusive<usize> {
        match self {
            Suite::Tpch(_) | Suite::Generated(_) => 1..=22,
            Suite::Tpcds(_) => 1..=99,
        }
    }

    fn query(&self, number: usize) -> Result<String> {
        match self {
            Suite::Tpch(_) => Ok(tpch::query(number)),
            Suite::Generated(_) => Ok(generated::query(number)),
            Suite::Tpcds(folder) => tpcds::query(folder, number),
        }
    }

    /// Returns the folder of the tables below `directory`. Writes them first if necessary.
    fn tables(&self, directory: &Path) -> Result<PathBuf, Failure> {
        let name = match self {
            Suite::Tpch(scale) => format!("tpch-{scale}"),
            Suite::Generated(rows) => format!("generated-{rows}"),
            Suite::Tpcds(folder) => return Ok(folder.clone()),
        };
        let (tables, unfinished) = (directory.join(&name), directory.join(name + ".unfinished"));
        if !tables.exists() {
            match self {
                Suite::Tpch(scale) => tpch::write(&unfinished, *scale, 4)?,
                Suite::Generated(rows) => generated::write(&unfinished, *rows)?,
                Suite::Tpcds(_) => {}
            }
            fs::rename(&unfinished, &tables)?;
        }
        Ok(tables)
    }

    async fn register(&self, context: &SessionContext, directory: &Path) -> Result<()> {
        match self {
            Suite::Tpch(_) => tpch::register(context, directory).await,
            Suite::Generated(_) => generated::register(context, directory).await,
            Suite::Tpcds(folder) => tpcds::register(context, folder).await,
        }
    }
}

/// The result of comparing a query.
enum Outcome {
    Measured(Query),
    /// The rows are those of one process. The plan has this many filters.
    Equal(usize),
    /// The query also fails, or returns wrong rows, without filters.
    LeftOut(String),
    /// The query fails, or returns wrong rows, only with filters.
    Failed(String),
}

/// Runs each query with and without filters, checks the rows, and prints seconds, CPU and bytes.
/// With 0 `runs`, each query runs once with filters, and only its rows are checked.
///
/// # Errors
///
/// If a query fails, or returns wrong rows, only with filters, or if no query could be compared.
pub(crate) async fn compare(
    directory: &Path,
    suite: Suite,
    runs: usize,
    mode: &str,
    enabled: &str,
    queries: RangeInclusive<usize>,
) -> Result<(), Failure> {
    // `TABLES` keeps the tables for another run.
    let tables = std::env::var_os("TABLES").map_or(directory.to_path_buf(), PathBuf::from);
    let tables = suite.tables(&tables)?;
    let local = SessionContext::new();
    suite.register(&local, &tables).await?;
    let mut comparison = Comparison::start(directory, suite, tables, mode, enabled)?;
    let set = std::env::var("SET").map(|set| format!(", {set}")).unwrap_or_default();
    println!("{mode}, enabled {enabled}{set}");
    report::print_head(runs, comparison.deployment.counted());
    let (mut all, mut equal, mut failed) = (Vec::new(), 0, Vec::new());
    for number in queries {
        let sql = comparison.suite.query(number)?;
        let outcome = match timeout(TIMEOUT, Expected::new(&local, &sql)).await {
            Ok(expected) if runs > 0 => comparison.measure(number, &sql, &expected?, runs).await?,
            Ok(expected) => comparison.check(number, &sql, &expected?).await?,
            Err(_) => Outcome::LeftOut(format!("in one process, {}", describe_timeout())),
        };
        let short = |text: &str| text.chars().take(200).collect::<String>().replace('\n', " ");
        match outcome {
            Outcome::Measured(query) => {
                query.print();
                all.push(query);
            }
            Outcome::Equal(filters) => {
                println!("| {number} | {filters} | equal |");
                equal += 1;
            }
            Outcome::LeftOut(why) => {
                println!("| {number} | left out: {} |", short(&why));
                comparison.restart()?;
            }
            Outcome::Failed(why) => {
                println!("| {number} | failed with filters: {} |", short(&why));
                failed.push(number);
                comparison.restart()?;
            }
        }
    }
    if !failed.is_empty() {
        return Err(format!("failed with filters: {failed:?}").into());
    }
    if all.is_empty() && equal == 0 {
        return Err("no query could be compared".into());
    }
    if !all.is_empty() {
        Query::sum("all", &all).print();
        all.retain(|query| query.filters > 0);
    }
    if !all.is_empty() {
        Query::sum("of these with filters", &all).print();
    }
    Ok(())
}

struct Comparison<'a> {
    directory: &'a Path,
    suite: Suite,
    tables: PathBuf,
    mode: &'a str,
    /// `bloom_join.enabled` of sessions with filters.
    enabled: &'a str,
    starts: usize,
    deployment: Deployment,
    config: SessionConfig,
}

impl<'a> Comparison<'a> {
    fn start(
        directory: &'a Path,
        suite: Suite,
        tables: PathBuf,
        mode: &'a str,
        enabled: &'a str,
    ) -> Result<Self, Failure> {
        let (deployment, config) = (Deployment::OneProcess, SessionConfig::new());
        let starts = 0;
        let mut comparison =
            Comparison { directory, suite, tables, mode, enabled, starts, deployment, config };
        comparison.restart()?;
        Ok(comparison)
    }

    /// Stops the processes, which may still be busy after a failure, and starts new ones with logs
    /// in a new folder.
    fn restart(&mut self) -> Result<(), Failure> {
        self.deployment = Deployment::OneProcess;
        self.starts += 1;
        let directory = self.directory.join(self.starts.to_string());
        fs::create_dir_all(&directory)?;
        self.deployment = Deployment::start(self.mode, &directory)?;
        self.config = self.deployment.config(self.mode)?;
        Ok(())
    }

    async fn session(&self, number: usize, filter: bool) -> Result<SessionContext, Failure> {
        let setting = if filter { self.enabled } else { "false" };
        let mut config = self.config.clone().set_str("bloom_join.enabled", setting);
        if matches!(
            (&self.deployment, &self.suite, number),
            (Deployment::Ballista(_), Suite::Tpch(_), 10)
        ) {
            // The strings of its 38,000 rows are views of shared buffers. Arrow Flight splits
            // batches above 2 MiB and sends all buffers with each part: gigabytes, during which the
            // executor misses its heartbeats. See docs/datafusion.md.
            config = config.set_bool("datafusion.execution.parquet.schema_force_view_types", false);
        }
        let context = self.deployment.session(config).await?;
        self.suite.register(&context, &self.tables).await?;
        Ok(context)
    }

    async fn plan(&self, number: usize, sql: &str, filter: bool) -> Result<String, String> {
        let context = self.session(number, filter).await.map_err(|error| error.to_string())?;
        let explained = answer(&context, &format!("EXPLAIN {sql}")).await?;
        let explained = report::lines(&explained).map_err(|error| error.to_string())?;
        // Ballista appends its stages as the text of hash tables, which differs from run to run.
        Ok(explained.split("distributed_plan|").next().unwrap_or_default().to_string())
    }

    /// Runs a query once with filters and, if it fails, once without.
    async fn check(
        &mut self,
        number: usize,
        sql: &str,
        expected: &Expected,
    ) -> Result<Outcome, Failure> {
        let with = match self.plan(number, sql, true).await {
            Err(error) => error,
            Ok(plan) => {
                let context = self.session(number, true).await?;
                match check_rows(expected, answer(&context, sql).await) {
                    Ok(()) => return Ok(Outcome::Equal(plan.matches("BloomProbeExec").count())),
                    Err(error) => error,
                }
            }
        };
        self.restart()?;
        let context = self.session(number, false).await?;
        Ok(match check_rows(expected, answer(&context, sql).await) {
            Ok(()) => Outcome::Failed(with),
            Err(without) => Outcome::LeftOut(format!("{without}; with filters: {with}")),
        })
    }

    /// Runs a query alternately with and without filters.
    async fn measure(
        &self,
        number: usize,
        sql: &str,
        expected: &Expected,
        runs: usize,
    ) -> Result<Outcome, Failure> {
        let (with, without) =
            (self.plan(number, sql, true).await, self.plan(number, sql, false).await);
        let (with, without) = match (with, without) {
            (Ok(with), Ok(without)) => (with, without),
            (_, Err(error)) => return Ok(Outcome::LeftOut(error)),
            (Err(error), _) => return Ok(Outcome::Failed(error)),
        };
        let mut query = Query {
            name: number.to_string(),
            filters: with.matches("BloomProbeExec").count(),
            same_plan: with == without,
            plain: Vec::new(),
            filtered: Vec::new(),
        };
        let mut times = 1;
        // The first run of each is not counted: it reads the files into the page cache. Queries
        // with the same plan run once, and the run counts for both.
        let last = if query.same_plan { 0 } else { runs };
        for run in 0..=last {
            let both = if run % 2 == 1 { [true, false] } else { [false, true] };
            for filter in both.into_iter().filter(|filter| !(query.same_plan && *filter)) {
                let context = self.session(number, filter).await?;
                self.wait_until_idle().await;
                let (start, before) = (Instant::now(), self.deployment.cpu_seconds());
                let (mut bytes, mut answers) = (0, Vec::new());
                for _ in 0..times {
                    let counter = self.deployment.count_bytes();
                    answers.push(answer(&context, sql).await);
                    bytes += counter.finish();
                    if answers.last().is_some_and(Result::is_err) {
                        break;
                    }
                }
                let each = f64::from(times);
                let seconds = start.elapsed().as_secs_f64() / each;
                let cpu = (self.deployment.cpu_seconds() - before) / each;
                let of = Run { seconds, cpu, bytes: bytes / u64::from(times), probed: None };
                for answer in answers {
                    match check_rows(expected, answer) {
                        Ok(()) => {}
                        Err(error) if filter => return Ok(Outcome::Failed(error)),
                        Err(error) => return Ok(Outcome::LeftOut(error)),
                    }
                }
                match (run, filter) {
                    _ if query.same_plan => {
                        query.plain = vec![of; runs];
                        query.filtered = query.plain.clone();
                    }
                    // Ratios need runs of about a second of CPU, a hundred steps of the clock, so
                    // short queries run up to six times.
                    (0, false) => times = (1.0 / cpu).ceil().clamp(1.0, 6.0) as u32,
                    (0, _) => {}
                    (_, false) => query.plain.push(of),
                    (_, true) => query.filtered.push(of),
                }
            }
        }
        Ok(Outcome::Measured(query))
    }

    /// Waits up to ten seconds until the processes have finished the previous run.
    async fn wait_until_idle(&self) {
        let (start, mut before) = (Instant::now(), self.deployment.cpu_seconds());
        while start.elapsed() < Duration::from_secs(10) {
            tokio::time::sleep(Duration::from_millis(60)).await;
            let now = self.deployment.cpu_seconds();
            if now - before < 0.015 {
                break;
            }
            before = now;
        }
    }
}

fn check_rows(expected: &Expected, answer: Result<Vec<RecordBatch>, String>) -> Result<(), String> {
    let rows = expected::rows(&answer?).map_err(|error| error.to_string())?;
    expected.check(&rows, Tolerance::ROUNDING)
}

async fn answer(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>, String> {
    let answer = async { context.sql(sql).await?.collect().await };
    match timeout(TIMEOUT, answer).await {
        Ok(answer) => answer.map_err(|error: DataFusionError| error.to_string()),
        Err(_) => Err(describe_timeout()),
    }
}

fn describe_timeout() -> String {
    format!("no answer in {} s", TIMEOUT.as_secs())
}
