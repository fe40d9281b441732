//! The queries of a suite with filters and without: their rows, and what they take.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use tokio::time::timeout;

use crate::expected::{self, Expected, Tolerance};
use crate::place::Place;
use crate::processes::Failure;
use crate::report::{self, Query, Run};
use crate::{generated, tpcds, tpch};

/// What takes longer has failed.
const LONGEST: Duration = Duration::from_secs(120);

/// Queries and their tables.
pub(crate) enum Suite {
    /// TPC-H at a scale factor.
    Tpch(f64),
    /// The joins of [`generated`], with so many rows in the largest table.
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

    fn write(&self, directory: &Path) -> Result<()> {
        let is_there = |table: &str| directory.join(table).exists();
        match self {
            Suite::Tpch(scale) if !is_there("lineitem") => tpch::write(directory, *scale, 4),
            Suite::Generated(rows) if !is_there("cast_info") => generated::write(directory, *rows),
            _ => Ok(()),
        }
    }

    async fn register(&self, context: &SessionContext, directory: &Path) -> Result<()> {
        match self {
            Suite::Tpch(_) => tpch::register(context, directory).await,
            Suite::Generated(_) => generated::register(context, directory).await,
            Suite::Tpcds(folder) => tpcds::register(context, folder).await,
        }
    }
}

/// What came of a query.
enum Ended {
    Measured(Query),
    /// Its rows are those of one process, with so many filters.
    Equal(usize),
    /// It fails, or gives wrong rows, without filters.
    LeftOut(String),
    /// It fails, or gives wrong rows, with filters alone.
    Wrong(String),
}

/// Runs each query with filters and without, checks the rows, and prints seconds, CPU and bytes. If
/// `runs` is 0, each runs once with filters, and only its rows are checked.
pub(crate) async fn compare(
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
    let local = SessionContext::new();
    suite.register(&local, &tables).await?;
    let start = || Place::start(way, directory);
    let place = start()?;
    let config = place.config(way)?;
    let mut comparison = Comparison { suite, tables, config, enabled: enabled.into(), place };
    report::print_head(runs);
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for number in queries {
        let sql = comparison.suite.query(number)?;
        let ended = match timeout(LONGEST, Expected::of(&local, &sql)).await {
            Ok(expected) if runs > 0 => comparison.measure(number, &sql, &expected?, runs).await?,
            Ok(expected) => {
                let expected = expected?;
                match comparison.check(number, &sql, &expected, true).await {
                    Ok(filters) => Ended::Equal(filters),
                    Err(with) => {
                        // It may still be busy.
                        comparison.place = start()?;
                        match comparison.check(number, &sql, &expected, false).await {
                            Ok(_) => Ended::Wrong(with),
                            Err(without) => Ended::LeftOut(without),
                        }
                    }
                }
            }
            Err(_) => Ended::LeftOut("no answer in one process".into()),
        };
        let short = |text: &str| text.chars().take(200).collect::<String>().replace('\n', " ");
        match &ended {
            Ended::Measured(query) => query.print(),
            Ended::Equal(filters) => println!("| {number} | {filters} | equal |"),
            Ended::LeftOut(why) => println!("| {number} | left out: {} |", short(why)),
            Ended::Wrong(what) => println!("| {number} | wrong with filters: {} |", short(what)),
        }
        match ended {
            Ended::Measured(query) => all.push(query),
            Ended::Equal(_) => {}
            Ended::LeftOut(_) => comparison.place = start()?,
            Ended::Wrong(_) => {
                wrong.push(number);
                comparison.place = start()?;
            }
        }
    }
    if runs > 0 {
        Query::sum("all", &all).print();
        all.retain(|query| !query.same_plan);
    }
    if !all.is_empty() {
        Query::sum("of these with filters", &all).print();
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("wrong with filters: {wrong:?}").into()) }
}

struct Comparison {
    suite: Suite,
    tables: PathBuf,
    config: SessionConfig,
    /// `bloom_join.enabled` of sessions with filters.
    enabled: String,
    place: Place,
}

impl Comparison {
    async fn session(&self, number: usize, filter: bool) -> Result<SessionContext, Failure> {
        let setting = if filter { &self.enabled } else { "false" };
        let mut config = self.config.clone().set_str("bloom_join.enabled", setting);
        if matches!((&self.place, &self.suite, number), (Place::Ballista(_), Suite::Tpch(_), 10)) {
            // Its 38,000 rows have strings as views of shared buffers. Arrow Flight splits batches
            // above 2 MiB and sends all of the buffers with each part: gigabytes, for which an
            // executor misses its heartbeats. See docs/datafusion.md.
            config = config.set_bool("datafusion.execution.parquet.schema_force_view_types", false);
        }
        let context = self.place.session(config).await?;
        self.suite.register(&context, &self.tables).await?;
        Ok(context)
    }

    async fn plan(&self, number: usize, sql: &str, filter: bool) -> Result<String, Failure> {
        let context = self.session(number, filter).await?;
        let explained = context.sql(&format!("EXPLAIN {sql}")).await?.collect().await?;
        let explained = report::lines(&explained)?;
        // Ballista adds its stages as the text of hash tables, which differs from run to run.
        Ok(explained.split("distributed_plan|").next().unwrap_or_default().to_string())
    }

    /// Runs a query once and checks its rows; gives the number of its filters.
    async fn check(
        &self,
        number: usize,
        sql: &str,
        expected: &Expected,
        filter: bool,
    ) -> Result<usize, String> {
        let text = |error: Failure| error.to_string();
        let plan = self.plan(number, sql, filter).await.map_err(text)?;
        let context = self.session(number, filter).await.map_err(text)?;
        let rows = expected::rows(&answer(&context, sql).await?).map_err(|e| e.to_string())?;
        expected.check(&rows, Tolerance::ROUNDING)?;
        Ok(plan.matches("BloomProbeExec").count())
    }

    /// Runs a query with filters and without in turn, so many times each.
    async fn measure(
        &self,
        number: usize,
        sql: &str,
        expected: &Expected,
        runs: usize,
    ) -> Result<Ended, Failure> {
        let plan = self.plan(number, sql, true).await?;
        let mut query = Query {
            name: number.to_string(),
            filters: plan.matches("BloomProbeExec").count(),
            same_plan: plan == self.plan(number, sql, false).await?,
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
                let context = self.session(number, filter).await?;
                self.wait_until_idle().await;
                let (start, before) = (Instant::now(), self.place.cpu_seconds());
                let (mut bytes, mut answers) = (0, Vec::new());
                for _ in 0..times {
                    let count = self.place.count_bytes();
                    answers.push(answer(&context, sql).await);
                    bytes += count.finish();
                }
                let each = f64::from(times);
                let seconds = start.elapsed().as_secs_f64() / each;
                let cpu = (self.place.cpu_seconds() - before) / each;
                let of = Run { seconds, cpu, bytes: bytes / u64::from(times), probed: None };
                for answer in answers {
                    let rows = answer.and_then(|a| expected::rows(&a).map_err(|e| e.to_string()));
                    match rows.and_then(|rows| expected.check(&rows, Tolerance::ROUNDING)) {
                        Ok(()) => {}
                        Err(error) if (run, filter) == (0, false) => {
                            return Ok(Ended::LeftOut(error));
                        }
                        Err(error) => {
                            return Ok(Ended::Wrong(format!("filter {filter}: {error}")));
                        }
                    }
                }
                match (run, filter) {
                    _ if query.same_plan => {
                        query.plain = vec![of; runs];
                        query.filtered = query.plain.clone();
                    }
                    // Where a ratio will be printed, so often that the clock's steps of a hundredth
                    // of a second are less than a hundredth of the time.
                    (0, false) => times = (1.0 / cpu).clamp(1.0, 6.0) as u32,
                    (0, _) => {}
                    (_, false) => query.plain.push(of),
                    (_, true) => query.filtered.push(of),
                }
            }
        }
        Ok(Ended::Measured(query))
    }

    /// Waits until the processes have finished the work of the run before.
    async fn wait_until_idle(&self) {
        let mut before = self.place.cpu_seconds();
        loop {
            tokio::time::sleep(Duration::from_millis(60)).await;
            let now = self.place.cpu_seconds();
            if now - before < 0.015 {
                break;
            }
            before = now;
        }
    }
}

async fn answer(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>, String> {
    let answer = async { context.sql(sql).await?.collect().await };
    match timeout(LONGEST, answer).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err("no answer in two minutes".into()),
    }
}
