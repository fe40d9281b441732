//! What one index over many Parquet files saves: requests, bytes, files and time of queries, by a
//! directory that counts requests and takes its time for them.
//!
//!     cargo run --locked --release --example files -- [DIRECTORY [RUNS]]
//!
//! writes 658 files of 4.5 M rows (1 GB with a copy that has Parquet's Bloom filters) to the
//! directory, or reads those that it wrote there before, and prints the tables of
//! `docs/file-index.md`. Without a directory it writes to one that it deletes.

#[expect(dead_code, reason = "the tests need more of it")]
mod data;
mod store;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use blocked_bloom::KeyHash;
use blocked_bloom_datafusion::{
    StoredFileIndex, build_file_index, file_index_column, with_file_index,
};
use blocked_bloom_file_index::{Column, FileIdentity, FileIndex, FileIndexOptions};
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::object_store::ObjectStore;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::TryStreamExt;

use data::{Random, START, schema, spans, write};
use store::{Counting, Requested};

type Failure = Box<dyn Error + Send + Sync>;

const FILES: usize = 658;
const URL: &str = "count://data";
/// Selected columns, so that a wrong row changes the answer.
const SELECTED: &str =
    "count(*) AS n, count(DISTINCT status) AS s, max(ts) AS t, max(message) AS m";

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let own = std::env::temp_dir().join(format!("bloom-files-{}", std::process::id()));
    let directory = arguments.first().map_or_else(|| own.clone(), PathBuf::from);
    let runs = arguments.get(1).map_or(Ok(9), |runs| runs.parse())?;
    std::fs::create_dir_all(&directory)?;
    let result = measure(&directory, runs).await;
    if own.exists() {
        std::fs::remove_dir_all(&own)?;
    }
    result
}

async fn measure(directory: &Path, runs: usize) -> Result<(), Failure> {
    let traces = generate(directory)?;
    let store = Arc::new(Counting::new(directory)?);
    build(&store).await?;
    for latency in [0, 5000] {
        store.set_latency(latency);
        points(&store, &traces, latency, runs).await?;
        joins(&store, &traces, latency).await?;
    }
    store.set_latency(0);
    nothing_gained(&store, 3 * runs).await?;
    uneven()?;
    for row_groups in [10_000, 100_000] {
        many(row_groups)?;
    }
    Ok(())
}

/// Writes the files unless they are there. Returns a trace of each.
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
        let groups = 1 + random.below(4) as usize;
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

async fn build(store: &Arc<Counting>) -> Result<(), Failure> {
    let schema = schema();
    for name in ["trace_id", "user_id"] {
        let files = store.list(Some(&"plain".into())).try_collect().await?;
        let column = file_index_column(schema.field_with_name(name)?)?;
        let options = FileIndexOptions::new(vec![column], 1);
        let (start, index) = (Instant::now(), format!("{name}.index").into());
        let store = store.clone() as Arc<dyn ObjectStore>;
        let report = build_file_index(store, files, &options, &index, |_| ()).await?;
        println!(
            "index of {name}: {} values, {} bytes, {:.2} bits a value, {:.2} s",
            report.values,
            report.bytes,
            report.bytes as f64 * 8.0 / report.values as f64,
            start.elapsed().as_secs_f64(),
        );
    }
    store.take();
    Ok(())
}

/// A way to run queries.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Plain,
    Filters,
    Ranges,
    Memory,
}

impl Way {
    const ALL: [(Way, &'static str); 4] = [
        (Way::Plain, "plain"),
        (Way::Filters, "Bloom filters of row groups"),
        (Way::Ranges, "index by ranges"),
        (Way::Memory, "index in memory"),
    ];

    /// A new session. The index is opened in it, by counted requests.
    async fn context(
        self,
        store: &Arc<Counting>,
        column: &str,
        statistics: bool,
        partitioned: bool,
    ) -> Result<SessionContext, Failure> {
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
        let path = format!("{column}.index").into();
        let index = match self {
            Way::Plain | Way::Filters => None,
            Way::Ranges => Some(StoredFileIndex::open_ranges(files, &path).await?),
            Way::Memory => Some(StoredFileIndex::open(files, &path).await?),
        };
        if let Some(index) = index {
            state = with_file_index(state, url.clone(), Arc::new(index));
        }
        let context = SessionContext::new_with_state(state);
        context.register_object_store(url.as_ref(), store.clone());
        let kind = if self == Way::Filters { "filters" } else { "plain" };
        let options = ListingOptions::new(Arc::new(ParquetFormat::default()));
        let options = options.with_file_extension(".parquet");
        let table = ListingTableConfig::new(ListingTableUrl::parse(format!("{URL}/{kind}/"))?)
            .with_listing_options(options)
            .with_schema(schema());
        context.register_table("spans", Arc::new(ListingTable::try_new(table)?))?;
        Ok(context)
    }
}

/// The answer, with what was requested since `begun` and how long it took.
struct Ran {
    answer: String,
    requested: Requested,
    ms: f64,
}

async fn run(store: &Counting, context: &SessionContext, sql: &str) -> Result<Ran, Failure> {
    let start = Instant::now();
    let batches = context.sql(sql).await?.collect().await?;
    let ms = start.elapsed().as_secs_f64() * 1e3;
    let answer = pretty_format_batches(&batches)?.to_string();
    Ok(Ran { answer, requested: store.take(), ms })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn row(name: &str, runs: &[Ran]) {
    let of = |value: fn(&Ran) -> f64| median(runs.iter().map(value).collect());
    println!(
        "| {name} | {} | {:.2} | {} | {:.1} |",
        of(|run| run.requested.requests as f64),
        of(|run| run.requested.bytes as f64) / 1e6,
        of(|run| run.requested.files as f64),
        of(|run| run.ms),
    );
}

fn header(what: &str, latency: u64) {
    println!("\n| {what}, {latency} us a request | requests | MB | files | ms |");
    println!("|---|---|---|---|---|");
}

/// Queries for one value and for ten, in sessions that are new and in sessions that have read all
/// footers, which the engine keeps.
async fn points(
    store: &Arc<Counting>,
    traces: &[String],
    latency: u64,
    runs: usize,
) -> Result<(), Failure> {
    let mut random = Random(99);
    for (what, values, present) in
        [("absent", 1, 0), ("present", 1, 1), ("IN of 10, 5 present", 10, 5)]
    {
        let queries: Vec<String> = (0..runs)
            .map(|_| {
                let value = |n| match n < present {
                    true => random.pick(traces).clone(),
                    false => random.trace(),
                };
                let values: Vec<_> = (0..values).map(value).map(|v| format!("'{v}'")).collect();
                let values = values.join(", ");
                format!("SELECT {SELECTED} FROM spans WHERE trace_id IN ({values})")
            })
            .collect();
        for cold in [true, false] {
            for statistics in [true, false] {
                let mut seen: Vec<Vec<Ran>> = Way::ALL.iter().map(|_| Vec::new()).collect();
                let mut warm = Vec::new();
                for (way, _) in Way::ALL.into_iter().filter(|_| !cold) {
                    let context = way.context(store, "trace_id", statistics, false).await?;
                    let all = format!("SELECT {SELECTED} FROM spans WHERE status >= 0");
                    run(store, &context, &all).await?;
                    warm.push(context);
                }
                for sql in &queries {
                    let mut answers = Vec::new();
                    for (number, (way, _)) in Way::ALL.into_iter().enumerate() {
                        store.take();
                        let start = Instant::now();
                        let ran = match warm.get(number) {
                            Some(context) => run(store, context, sql).await?,
                            None => {
                                let context =
                                    way.context(store, "trace_id", statistics, false).await?;
                                let ran = run(store, &context, sql).await?;
                                Ran { ms: start.elapsed().as_secs_f64() * 1e3, ..ran }
                            }
                        };
                        answers.push(ran.answer.clone());
                        seen[number].push(ran);
                    }
                    if answers.iter().any(|answer| *answer != answers[0]) {
                        return Err(format!("{sql}: {answers:?}").into());
                    }
                }
                let session = if cold { "new session" } else { "footers known" };
                let collected = if statistics { "statistics" } else { "no statistics" };
                header(&format!("{what}, {session}, {collected}"), latency);
                for ((_, name), runs) in Way::ALL.iter().zip(&seen) {
                    row(name, runs);
                }
            }
        }
    }
    Ok(())
}

/// Joins with few keys, which are known when they run, in sessions that have read all footers.
async fn joins(store: &Arc<Counting>, traces: &[String], latency: u64) -> Result<(), Failure> {
    for (mode, partitioned) in [("one list", false), ("partitioned", true)] {
        for keys in [1, 20, 400] {
            header(&format!("join with {keys} keys, {mode}"), latency);
            let mut answers = Vec::new();
            for (way, name) in Way::ALL {
                let context = way.context(store, "trace_id", true, partitioned).await?;
                let id = |i: usize| match i % 2 {
                    0 => traces[i * 7 % traces.len()].clone(),
                    _ => format!("{i:032x}"),
                };
                let ids: ArrayRef = Arc::new(StringArray::from_iter_values((0..keys).map(id)));
                context.register_batch("keys", RecordBatch::try_from_iter([("id", ids)])?)?;
                let sql = format!("SELECT {SELECTED} FROM keys JOIN spans ON id = trace_id");
                run(store, &context, &sql).await?;
                let ran = run(store, &context, &sql).await?;
                answers.push(ran.answer.clone());
                row(name, &[ran]);
            }
            if answers.iter().any(|answer| *answer != answers[0]) {
                return Err(format!("{keys} keys: {answers:?}").into());
            }
        }
    }
    Ok(())
}

/// Queries that no index helps: the time with an index in memory over the time without.
async fn nothing_gained(store: &Arc<Counting>, runs: usize) -> Result<(), Failure> {
    println!("\n| nothing gained | ms, plain | ms, index | ratio |\n|---|---|---|---|");
    let plain = Way::Plain.context(store, "user_id", true, false).await?;
    let indexed = Way::Memory.context(store, "user_id", true, false).await?;
    for (what, filter) in [
        ("another column", "status = 500"),
        ("a range", "user_id > 500000"),
        ("a value of nearly all files", "user_id = 7919"),
    ] {
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
        let (a, b) = (median(a), median(b));
        println!("| {what} | {a:.1} | {b:.1} | {:.3} |", b / a);
    }
    Ok(())
}

/// An index of row groups with so many different values each, all random.
fn index(values: impl Iterator<Item = u64>) -> Result<(FileIndex, u64, f64), Failure> {
    let options = FileIndexOptions::new(vec![Column::new("v", KeyHash::Xxh3 { seed: 1 })], 1);
    let mut builder = options.builder()?;
    let (mut random, mut bytes, mut all) = (Random(5), Vec::new(), 0);
    let mut seconds = 0.0;
    for (number, values) in values.enumerate() {
        let hashes: Vec<u64> = (0..values).map(|_| random.next()).collect();
        let start = Instant::now();
        let name = format!("data/part-{number:06}.parquet");
        let mut file =
            builder.file(FileIdentity::new(&name, 1).with_etag("e"), &[Some("Int64")], 1)?;
        file.insert_hashes(0, &hashes)?;
        bytes.extend(file.end_row_group()?);
        file.end()?;
        seconds += start.elapsed().as_secs_f64();
        all += values;
    }
    let start = Instant::now();
    bytes.extend(builder.finish()?);
    seconds += start.elapsed().as_secs_f64();
    Ok((FileIndex::from_bytes(bytes)?, all, seconds * 1e6 / all as f64))
}

/// How many row groups are found in vain of a value, over so many values, and microseconds.
fn look_up(index: &FileIndex, values: u64) -> Result<(f64, f64), Failure> {
    let (mut random, mut found, mut all) = (Random(6), 0, Vec::new());
    for _ in 0..values {
        let hash = random.next();
        let start = Instant::now();
        let lookup = index.manifest().lookup(0, KeyHash::Xxh3 { seed: 1 }, |_| true, [hash])?;
        found += index.candidates(&lookup)?.count();
        all.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok((found as f64 / values as f64, median(all)))
}

/// Row groups of sizes that differ by factors of hundreds.
fn uneven() -> Result<(), Failure> {
    println!("\n| row groups | values | bits a value | false row groups of 1,000 | us a value |");
    println!("|---|---|---|---|---|");
    type Size = fn(&mut Random) -> u64;
    let sizes: [(&str, Size); 3] = [
        ("2,000 of 2,000 values", |_| 2000),
        ("2,000 of 10 to 100,000 values, log-uniform", |r| (10.0 * 1e4f64.powf(r.unit())) as u64),
        ("2,000, log-normal about 1,000", |r| {
            let normal = (0..12).map(|_| r.unit()).sum::<f64>() - 6.0;
            (1000.0 * (1.5 * normal).exp()).max(1.0) as u64
        }),
    ];
    for (what, size) in sizes {
        let mut random = Random(8);
        let (index, values, us) = index((0..2000).map(|_| size(&mut random)))?;
        let bits = index.as_bytes().len() as f64 * 8.0 / values as f64;
        let (found, _) = look_up(&index, 2000)?;
        println!("| {what} | {values} | {bits:.2} | {:.3} | {us:.3} |", found / 2.0);
    }
    Ok(())
}

/// Many row groups, in memory.
fn many(row_groups: u64) -> Result<(), Failure> {
    let (index, values, us) = index((0..row_groups).map(|_| 200))?;
    let (found, lookup) = look_up(&index, 500)?;
    println!(
        "{row_groups} row groups, {values} values, {} bytes: a lookup in memory {lookup:.1} us, \
         {found:.2} false row groups, built in {us:.3} us a value",
        index.as_bytes().len()
    );
    Ok(())
}
