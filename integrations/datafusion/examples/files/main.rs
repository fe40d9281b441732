//! Measures the requests, bytes, files and time that one index over many Parquet files saves. The
//! files are in a directory that counts requests and delays them.
//!
//!     cargo run --locked --profile measure --example files -- [RUNS [RESULTS]]
//!
//! The example writes 658 files with 4.5 M rows (1 GB together with a copy that has Parquet's Bloom
//! filters), prints its measurements and the bounds that they keep, and writes them to the file
//! `RESULTS` in the format of `benches/results`. `FILES=DIRECTORY` keeps the files for the next
//! run. Times need an idle machine. Without `--profile measure`, queries are not timed and joins do
//! not run.

#[expect(dead_code, reason = "the tests need more of it")]
mod data;
mod report;
mod simulated;
mod store;

use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use blocked_bloom_datafusion::{
    FileIndexReport, StoredFileIndex, build_file_index, file_index_column, with_file_index,
};
use blocked_bloom_file_index::FileIndexOptions;
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::object_store::ObjectStore;
use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::TryStreamExt;

use data::{Random, START, schema, spans, write};
use report::{Report, forget_peak, peak_bytes};
use simulated::{LARGE, ROW_GROUP_COUNTS, SHAPES, UNEVEN, measure_many_row_groups, uneven};
use store::{Counting, Requested};

type Failure = Box<dyn Error + Send + Sync>;

const FILES: usize = 658;
const URL: &str = "count://data";
const COMMAND: &str = "cargo run --locked --profile PROFILE --manifest-path \
                       integrations/datafusion/Cargo.toml --example files --";
/// Selected columns, so that a wrong row changes the result.
const SELECTED: &str =
    "count(*) AS n, count(DISTINCT status) AS s, max(ts) AS t, max(message) AS m";

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let own = std::env::temp_dir().join(format!("bloom-files-{}", std::process::id()));
    let directory = std::env::var_os("FILES").map_or_else(|| own.clone(), PathBuf::from);
    let runs = arguments.first().map_or(Ok(5), |runs| runs.parse())?;
    std::fs::create_dir_all(&directory)?;
    let result = measure(&directory, runs).await;
    if own.exists() {
        std::fs::remove_dir_all(&own)?;
    }
    let profile = if IS_TIMED { "measure" } else { "dev" };
    let command = format!("{COMMAND} {}", arguments.join(" ")).replace("PROFILE", profile);
    result?.end(&command, arguments.get(1).map(Path::new))
}

async fn measure(directory: &Path, runs: usize) -> Result<Report, Failure> {
    let traces = generate(directory)?;
    let store = Arc::new(Counting::new(directory)?);
    let mut report = Report::default();
    build(directory, &store, &mut report, runs).await?;
    for &latency in LATENCIES {
        store.set_latency(latency);
        points(&store, &traces, latency, runs, &mut report).await?;
        if IS_TIMED {
            joins(&store, &traces, latency, runs, &mut report).await?;
        }
    }
    store.set_latency(0);
    if IS_TIMED {
        measure_overhead(&store, 6 * runs, &mut report).await?;
    }
    numbers_of_files(directory, &store, &mut report).await?;
    uneven(&mut report)?;
    measure_many_row_groups(&mut report)?;
    bounds(&mut report);
    Ok(report)
}

/// Checks the bounds that an index must keep.
fn bounds(report: &mut Report) {
    println!();
    for &latency in LATENCIES {
        let both = |measure| {
            [Method::Ranges, Method::Filters].map(|method| {
                let title = title("absent value, new session, statistics", latency);
                report.median(&title, measure, method.name())
            })
        };
        let (requests, ms) = (both("requests"), both("ms"));
        report.must("requests for an absent value by ranges", requests[0], 4.0);
        let share = requests[0] / requests[1];
        report.must("of those of Bloom filters of row groups", share, 1.0 / 400.0);
        if IS_TIMED {
            let most = if latency == 0 { 1.0 / 5.0 } else { 1.0 / 20.0 };
            report.must("time, of that of Bloom filters of row groups", ms[0] / ms[1], most);
        }
    }
    for (workload, _) in UNEVEN {
        report.must(workload, report.median(SHAPES, "bits a value", workload), 20.0);
        report.must(workload, report.median(SHAPES, "false row groups of 1,000", workload), 1.2);
    }
    for (row_groups, most) in ROW_GROUP_COUNTS {
        let name = format!("{row_groups} row groups");
        report.must(&name, report.median(LARGE, "us in memory", &name), most);
    }
    if !IS_TIMED {
        return;
    }
    let [alone, built] = BUILT.map(|row| report.median(BUILDING, "us a row", row));
    report.must("us a row to build, beside reading the column", built - alone, 0.3);
    let [alone, built] = BUILT.map(|row| report.median(BUILDING, "MB", row));
    report.must("MB to build, beside reading the column", built - alone, 64.0);
    for (workload, _) in EMPTY_WORKLOADS {
        let title = format!("nothing gained: {workload}");
        report.must(&title, report.ratio(&title, "ms", Method::Memory.name()), 1.02);
    }
}

/// Writes the files unless they exist. Returns one trace of each.
fn generate(directory: &Path) -> Result<Vec<String>, Failure> {
    let list = directory.join("traces.txt");
    if let Ok(traces) = std::fs::read_to_string(&list) {
        return Ok(traces.lines().map(String::from).collect());
    }
    let (mut random, mut traces, mut all) = (Random(7), Vec::new(), 0);
    for kind in ["plain", "filters"] {
        std::fs::create_dir_all(directory.join(kind))?;
    }
    for file in 0..FILES {
        let rows = (700.0 * 36.0f64.powf(random.unit())) as usize;
        let groups = 1 + random.number_below(4) as usize;
        let batch = spans(&mut random, rows, START + file as i64 * 100_000_000);
        use datafusion::arrow::array::AsArray;
        traces.extend(batch.column(1).as_string::<i32>().iter().flatten().last().map(String::from));
        for (kind, filters) in [("plain", false), ("filters", true)] {
            let path = directory.join(format!("{kind}/f{file:05}.parquet"));
            write(&path, &batch, groups, filters)?;
        }
        all += rows;
    }
    std::fs::write(list, traces.join("\n"))?;
    println!("{FILES} files, {all} rows");
    Ok(traces)
}

const BUILDING: &str = "index of trace_id";
const BUILT: [&str; 2] = ["reading the column", "reading it and building the index"];

/// Builds the indexes, one of them several times. For comparison, reads the column alone.
async fn build(
    directory: &Path,
    store: &Arc<Counting>,
    report: &mut Report,
    runs: usize,
) -> Result<(), Failure> {
    let (mut us, mut memory, mut bits) = ([vec![], vec![]], [vec![], vec![]], vec![]);
    build_index(store, "", "user_id").await?;
    let files: Vec<_> = store.list(Some(&"plain".into())).try_collect().await?;
    for _ in 0..runs {
        forget_peak();
        let (start, mut rows) = (Instant::now(), 0);
        for file in &files {
            let path = directory.join(file.location.as_ref());
            let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
            let mask = ProjectionMask::columns(builder.parquet_schema(), ["trace_id"]);
            for batch in builder.with_projection(mask).build()? {
                rows += batch?.num_rows();
            }
        }
        us[0].push(start.elapsed().as_secs_f64() * 1e6 / rows as f64);
        memory[0].push(peak_bytes() / 1e6);
        forget_peak();
        let start = Instant::now();
        let built = build_index(store, "", "trace_id").await?;
        us[1].push(start.elapsed().as_secs_f64() * 1e6 / rows as f64);
        memory[1].push(peak_bytes() / 1e6);
        bits.push(built.bytes as f64 * 8.0 / built.values as f64);
    }
    let ([alone, both], [alone_mb, both_mb]) = (us, memory);
    let rows = [(BUILT[0], vec![alone, alone_mb]), (BUILT[1], vec![both, both_mb])];
    if IS_TIMED {
        report.add(BUILDING, &["us a row", "MB"], &rows);
    }
    report.add("size of the index", &["bits a value"], &[("trace_id", vec![bits])]);
    Ok(())
}

/// Builds the index of a column for the files of a directory. `plain` and the suffix name it.
async fn build_index(
    store: &Arc<Counting>,
    files: &str,
    column: &str,
) -> Result<FileIndexReport, Failure> {
    let listed = store.list(Some(&format!("plain{files}").into())).try_collect().await?;
    let options =
        FileIndexOptions::new(vec![file_index_column(schema().field_with_name(column)?)?], 1);
    let (index, inner) = (format!("{column}{files}.index").into(), store.clone());
    let built = build_file_index(inner as Arc<dyn ObjectStore>, listed, &options, &index, |_| ());
    let built = built.await?;
    store.take();
    Ok(built)
}

/// A method of running queries.
#[derive(Clone, Copy, PartialEq)]
enum Method {
    Plain,
    Filters,
    Ranges,
    Memory,
}

/// The files and the settings of a session.
#[derive(Clone, Copy)]
struct Session<'s> {
    column: &'s str,
    /// Suffix of the names of the directory and the index.
    files: &'s str,
    statistics: bool,
    partitioned: bool,
}

const SESSION: Session<'_> =
    Session { column: "trace_id", files: "", statistics: true, partitioned: false };

impl Method {
    const ALL: [Method; 4] = [Method::Plain, Method::Filters, Method::Ranges, Method::Memory];

    fn name(self) -> &'static str {
        match self {
            Method::Plain => "plain",
            Method::Filters => "Bloom filters of row groups",
            Method::Ranges => "index by ranges",
            Method::Memory => "index in memory",
        }
    }

    /// Creates a session. It opens the index with counted requests.
    async fn context(
        self,
        store: &Arc<Counting>,
        session: Session<'_>,
    ) -> Result<SessionContext, Failure> {
        let Session { column, files: directory, statistics, partitioned } = session;
        let mut config =
            SessionConfig::new().with_target_partitions(8).with_collect_statistics(statistics);
        if partitioned {
            config = config
                .set_u64("datafusion.optimizer.hash_join_single_partition_threshold", 0)
                .set_u64("datafusion.optimizer.hash_join_single_partition_threshold_rows", 0);
        }
        let url = ObjectStoreUrl::parse(URL)?;
        let builder = SessionStateBuilder::new_with_default_features();
        let mut state = builder.with_config(config).build();
        let files = store.clone() as Arc<dyn ObjectStore>;
        let path = format!("{column}{directory}.index").into();
        let index = match self {
            Method::Plain | Method::Filters => None,
            Method::Ranges => Some(StoredFileIndex::open_ranges(files, &path).await?),
            Method::Memory => Some(StoredFileIndex::open(files, &path).await?),
        };
        if let Some(index) = index {
            state = with_file_index(state, url.clone(), Arc::new(index));
        }
        let context = SessionContext::new_with_state(state);
        context.register_object_store(url.as_ref(), store.clone());
        let kind = if self == Method::Filters { "filters" } else { "plain" };
        let options = ListingOptions::new(Arc::new(ParquetFormat::default()));
        let options = options.with_file_extension(".parquet");
        let table =
            ListingTableConfig::new(ListingTableUrl::parse(format!("{URL}/{kind}{directory}/"))?)
                .with_listing_options(options)
                .with_schema(schema());
        context.register_table("spans", Arc::new(ListingTable::try_new(table)?))?;
        Ok(context)
    }
}

/// A result, with its requests and its time.
struct QueryRun {
    answer: String,
    requested: Requested,
    ms: f64,
}

async fn run(store: &Counting, context: &SessionContext, sql: &str) -> Result<QueryRun, Failure> {
    let start = Instant::now();
    let batches = context.sql(sql).await?.collect().await?;
    let ms = start.elapsed().as_secs_f64() * 1e3;
    let answer = pretty_format_batches(&batches)?.to_string();
    Ok(QueryRun { answer, requested: store.take(), ms })
}

/// Without optimisation, times would only be those of reading and planning.
const IS_TIMED: bool = !cfg!(debug_assertions);
/// Minimum time of a request in microseconds.
const LATENCIES: &[u64] = if IS_TIMED { &[0, 5000] } else { &[0] };
const MEASURES: &[&str] = if IS_TIMED {
    &["requests", "MB", "files opened", "ms"]
} else {
    &["requests", "MB", "files opened"]
};

fn title(workload: &str, latency: u64) -> String {
    format!("{workload}, {latency} us a request")
}

/// Adds the measurements of each method in each run.
fn add(report: &mut Report, title: &str, seen: &[Vec<QueryRun>]) {
    let values = |runs: &[QueryRun], value: fn(&QueryRun) -> f64| {
        runs.iter().map(value).collect::<Vec<f64>>()
    };
    let rows = Method::ALL.iter().zip(seen).map(|(method, runs)| {
        let measures: [fn(&QueryRun) -> f64; 4] = [
            |run| run.requested.requests as f64,
            |run| run.requested.bytes as f64 / 1e6,
            |run| run.requested.files as f64,
            |run| run.ms,
        ];
        (
            method.name(),
            measures[..MEASURES.len()].iter().map(|value| values(runs, *value)).collect(),
        )
    });
    report.add(title, MEASURES, &rows.collect::<Vec<_>>());
}

/// Returns an error if the results differ.
fn check<'r>(
    workload: &str,
    mut answers: impl Iterator<Item = &'r QueryRun>,
) -> Result<(), Failure> {
    let first = answers.next().map(|ran| &ran.answer);
    match answers.all(|ran| Some(&ran.answer) == first) {
        true => Ok(()),
        false => Err(format!("answers differ: {workload}").into()),
    }
}

/// Measures queries for one value and for ten, in new sessions and in sessions that have read all
/// footers, which the engine keeps. `statistics` says whether the engine collects statistics, as it
/// does by default.
async fn points(
    store: &Arc<Counting>,
    traces: &[String],
    latency: u64,
    runs: usize,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut random = Random(99);
    for (workload, values, present, is_new, statistics) in [
        ("absent value", 1, 0, true, true),
        ("absent value", 1, 0, true, false),
        ("absent value", 1, 0, false, true),
        ("present value", 1, 1, true, true),
        ("IN of 10, 5 present", 10, 5, true, true),
    ] {
        let session = Session { statistics, ..SESSION };
        let mut warm = Vec::new();
        for method in Method::ALL.into_iter().filter(|_| !is_new) {
            let context = method.context(store, session).await?;
            run(store, &context, "SELECT count(*) FROM spans WHERE status >= 0").await?;
            warm.push(context);
        }
        let mut seen = Method::ALL.map(|_| Vec::new());
        for _ in 0..runs {
            let value = |n| match n < present {
                true => random.pick(traces).clone(),
                false => random.trace(),
            };
            let values: Vec<_> = (0..values).map(value).map(|v| format!("'{v}'")).collect();
            let sql =
                format!("SELECT {SELECTED} FROM spans WHERE trace_id IN ({})", values.join(", "));
            for (number, method) in Method::ALL.into_iter().enumerate() {
                store.take();
                let start = Instant::now();
                let ran = match warm.get(number) {
                    Some(context) => run(store, context, &sql).await?,
                    None => {
                        let context = method.context(store, session).await?;
                        let ran = run(store, &context, &sql).await?;
                        QueryRun { ms: start.elapsed().as_secs_f64() * 1e3, ..ran }
                    }
                };
                seen[number].push(ran);
            }
            check(&sql, seen.iter().flat_map(|runs| runs.last()))?;
        }
        let kind = if is_new { "new session" } else { "footers known" };
        let collected = if statistics { "statistics" } else { "no statistics" };
        add(report, &title(&format!("{workload}, {kind}, {collected}"), latency), &seen);
    }
    Ok(())
}

/// Measures joins with few keys, which are known when they run, in sessions that have read all
/// footers.
async fn joins(
    store: &Arc<Counting>,
    traces: &[String],
    latency: u64,
    runs: usize,
    report: &mut Report,
) -> Result<(), Failure> {
    for (keys, mode, partitioned) in
        [(20, "one list", false), (400, "partitioned", true), (400, "one list", false)]
    {
        let mut seen = Method::ALL.map(|_| Vec::new());
        let sql = format!("SELECT {SELECTED} FROM keys JOIN spans ON id = trace_id");
        let mut contexts = Vec::new();
        for method in Method::ALL {
            let context = method.context(store, Session { partitioned, ..SESSION }).await?;
            let id = |i: usize| match i % 2 {
                0 => traces[i * 7 % traces.len()].clone(),
                _ => format!("{i:032x}"),
            };
            let ids: ArrayRef = Arc::new(StringArray::from_iter_values((0..keys).map(id)));
            context.register_batch("keys", RecordBatch::try_from_iter([("id", ids)])?)?;
            run(store, &context, &sql).await?;
            contexts.push(context);
        }
        for _ in 0..runs.div_ceil(2) {
            for (context, runs) in contexts.iter().zip(&mut seen) {
                runs.push(run(store, context, &sql).await?);
            }
        }
        check(&sql, seen.iter().flatten())?;
        add(report, &title(&format!("join with {keys} keys, {mode}"), latency), &seen);
    }
    Ok(())
}

const EMPTY_WORKLOADS: [(&str, &str); 3] = [
    ("another column", "status = 500"),
    ("a range", "user_id > 500000"),
    ("a value of nearly all files", "user_id = 7919"),
];

/// Measures queries that no index helps, with an index in memory and without.
async fn measure_overhead(
    store: &Arc<Counting>,
    runs: usize,
    report: &mut Report,
) -> Result<(), Failure> {
    let session = Session { column: "user_id", ..SESSION };
    let plain = Method::Plain.context(store, session).await?;
    let indexed = Method::Memory.context(store, session).await?;
    for (workload, filter) in EMPTY_WORKLOADS {
        let sql = format!("SELECT {SELECTED} FROM spans WHERE {filter}");
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for number in 0..runs + 2 {
            let mut both = [(&plain, &mut a), (&indexed, &mut b)];
            if number % 2 == 1 {
                both.reverse();
            }
            for (context, ms) in both {
                let ran = run(store, context, &sql).await?;
                if number >= 2 {
                    ms.push(ran.ms);
                }
            }
        }
        let rows = [(Method::Plain.name(), vec![a]), (Method::Memory.name(), vec![b])];
        report.add(&format!("nothing gained: {workload}"), &["ms"], &rows);
    }
    Ok(())
}

/// Measures the requests for an absent value in a new session, by the number of files.
async fn numbers_of_files(
    directory: &Path,
    store: &Arc<Counting>,
    report: &mut Report,
) -> Result<(), Failure> {
    let sql = format!("SELECT {SELECTED} FROM spans WHERE trace_id = 'absent'");
    for number in [10, 30, 100, 300, FILES] {
        let files = format!("-{number}");
        for kind in ["plain", "filters"] {
            let some = directory.join(format!("{kind}{files}"));
            std::fs::create_dir_all(&some)?;
            for file in 0..number {
                let name = format!("f{file:05}.parquet");
                if !some.join(&name).exists() {
                    std::fs::hard_link(directory.join(kind).join(&name), some.join(&name))?;
                }
            }
        }
        build_index(store, &files, "trace_id").await?;
        let mut seen = Method::ALL.map(|_| Vec::new());
        for (method, runs) in Method::ALL.into_iter().zip(&mut seen) {
            let context = method.context(store, Session { files: &files, ..SESSION }).await?;
            runs.push(run(store, &context, &sql).await?);
        }
        check(&sql, seen.iter().flatten())?;
        add(report, &format!("{number} files"), &seen);
    }
    Ok(())
}
