//! Looks up batches of keys in the table files of a small engine, with and without filters.
//!
//! The keys of a file are flushed to tables that each cover the whole key range, as the newest runs
//! of an LSM tree do. A third of the keys is held out, so that absent keys look like stored ones.
//! Every answer is compared with the truth. Then directories of file paths are scanned, with filters
//! that know their prefixes and with some that do not.
//!
//! ```text
//! cargo run --release --example multiget -- --tables 8 --batch 128 --absent 50
//! ```

#![expect(clippy::print_stdout, reason = "the report is the purpose")]

mod block;
mod multi_get;
mod scans;
mod table;
mod workload;

use std::collections::HashMap;
use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{fs, io};

use blocked_bloom::{Bitmask, BloomFilterBuilder, BuildError, KeyHasher, Params, Sizing};
use clap::{Parser, value_parser};

use crate::multi_get::{Cost, MultiGet};
use crate::table::{Table, flush};
use crate::workload::{Record, shuffled_lookups, shuffled_records};

const WORDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/keys/words.txt");
const PATHS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/keys/paths.txt");

/// Looks up batches of keys in table files, with and without filters.
#[derive(Parser)]
struct Args {
    /// File of keys, one per line
    #[arg(long, value_name = "FILE", default_value = WORDS)]
    keys: PathBuf,
    /// File of paths, one per line, whose directories are scanned
    #[arg(long, value_name = "FILE", default_value = PATHS)]
    paths: PathBuf,
    /// Tables that the stored keys are spread over
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = value_parser!(u16).range(1..))]
    tables: u16,
    /// Keys looked up at once
    #[arg(long, value_name = "N", default_value_t = 128)]
    #[arg(value_parser = value_parser!(u32).range(1..))]
    batch: u32,
    /// Share of lookups whose key is in no table
    #[arg(long, value_name = "PERCENT", default_value_t = 50)]
    #[arg(value_parser = value_parser!(u8).range(..=100))]
    absent: u8,
    /// Filter bits per key, 0 (no filter) to 100
    #[arg(long, value_name = "B", default_value = "10", value_parser = parse_bits_per_key)]
    bits_per_key: Sizing,
}

fn parse_bits_per_key(text: &str) -> Result<Sizing, Box<dyn Error + Send + Sync>> {
    let sizing = Sizing::BitsPerKey(text.parse()?);
    sizing.params(0)?;
    Ok(sizing)
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Flushes, looks up and reports. Returns the number of wrong answers.
fn run(args: &Args) -> Result<u64, Box<dyn Error>> {
    let file = args.keys.display();
    let lines = fs::read(&args.keys).map_err(|error| format!("{file}: {error}"))?;
    let records = shuffled_records(&lines);
    if records.is_empty() {
        return Err(format!("{file}: no key in it").into());
    }
    let (held_out, stored) = records.split_at(records.len() / 3);

    let folder = tempfile::tempdir()?;
    let mut tables = Vec::new();
    let mut build_time = Duration::ZERO;
    for i in 0..usize::from(args.tables) {
        let every = stored.iter().skip(i).step_by(args.tables.into());
        let mut run: Vec<Record> = every.copied().collect();
        run.sort_unstable();
        let path = folder.path().join(format!("{i}.table"));
        flush(&path, run.iter().copied(), BloomFilterBuilder::new(args.bits_per_key))?;
        tables.push(Table::open(&path)?);
        build_time += time_to_build(&run, args.bits_per_key)?;
    }

    let shapes: Vec<Params> = tables.iter().map(|table| table.filter().params()).collect();
    let filter_bytes: u64 = shapes.iter().map(Params::stored_bytes).sum();
    let rates = shapes.iter().map(Params::false_positive_rate);
    let predicted = 100.0 * rates.sum::<f64>() / shapes.len() as f64;
    let (false_positives, pairs) = count_false_positives(&tables, &records, stored.len());
    let measured = percent(false_positives as f64, pairs as f64);
    let kernel = tables[0].filter().kernel().name();

    let truth: HashMap<_, _> = stored.iter().copied().collect();
    let lookups = shuffled_lookups(held_out, stored, args.absent);
    let absent = lookups.iter().filter(|key| !truth.contains_key(**key));
    let with = look_up(&tables, &lookups, args.batch, &truth)?;
    let tables: Vec<Table> = tables.into_iter().map(Table::without_filter).collect();
    let without = look_up(&tables, &lookups, args.batch, &truth)?;
    let (reads, reads_without) = (with.cost.block_reads, without.cost.block_reads);
    let wrong = with.wrong + without.wrong;

    print!(
        "\
keys               {keys} of {file}, {held_out} held out
tables             {tables} of {stored} keys in all
filters            {filter_bytes} bytes, {bits_per_key:.2} bits/key, kernel {kernel}
filter build       {build:.1} ns/key
lookups            {lookups} in batches of {batch}, {absent:.1} % absent
block reads        {reads}
  without filters  {reads_without}
  saved            {saved:.1} %
false positives    {measured:.3} % of {pairs} pairs of a key and a table without it
  predicted        {predicted:.3} %, ratio {ratio:.3}
hashing            {hashing:.1} ns/key
asking filters     {asking:.1} ns/key and table
whole lookup       {whole:.0} ns/key
  without filters  {whole_without:.0} ns/key
wrong answers      {wrong}
",
        keys = records.len(),
        held_out = held_out.len(),
        tables = tables.len(),
        stored = stored.len(),
        bits_per_key = 8.0 * filter_bytes as f64 / stored.len() as f64,
        build = nanos(build_time, stored.len()),
        lookups = lookups.len(),
        batch = args.batch,
        absent = percent(absent.count() as f64, lookups.len() as f64),
        saved = percent(reads_without as f64 - reads as f64, reads_without as f64),
        ratio = measured / predicted,
        hashing = nanos(with.cost.hashing, lookups.len()),
        asking = nanos(with.cost.asking_filters, lookups.len() * tables.len()),
        whole = nanos(with.time, lookups.len()),
        whole_without = nanos(without.time, lookups.len()),
    );
    let paths =
        fs::read(&args.paths).map_err(|error| format!("{}: {error}", args.paths.display()))?;
    Ok(wrong + scans::report(folder.path(), &paths, args.tables, args.bits_per_key)?)
}

fn percent(part: f64, whole: f64) -> f64 {
    100.0 * part / whole.max(1.0)
}

fn nanos(time: Duration, count: usize) -> f64 {
    time.as_nanos() as f64 / count.max(1) as f64
}

/// Times the filter's part of a flush, which is too short per key to be timed there.
fn time_to_build(run: &[Record], sizing: Sizing) -> Result<Duration, BuildError> {
    let start = Instant::now();
    let mut builder = BloomFilterBuilder::new(sizing);
    builder.extend(run.iter().map(|(key, _)| key));
    black_box(builder.finish()?);
    Ok(start.elapsed())
}

/// Asks every filter about every key once. Returns the hits on keys that are not in the filter's
/// table, and the number of pairs of a key and a table without it.
fn count_false_positives(tables: &[Table], records: &[Record], stored: usize) -> (usize, usize) {
    let hasher = KeyHasher::default();
    let hashes: Vec<u64> = records.iter().map(|(key, _)| hasher.hash(key)).collect();
    let mut hits = Bitmask::new();
    let mut all_hits = 0;
    for table in tables {
        table.filter().contains_hashes(&hashes, &mut hits);
        all_hits += hits.count_hits();
    }
    // Each stored key is one true hit, in the table that has it.
    let pairs = records.len() * tables.len();
    (all_hits.saturating_sub(stored), pairs - stored)
}

struct Outcome {
    cost: Cost,
    time: Duration,
    wrong: u64,
}

fn look_up(
    tables: &[Table],
    lookups: &[&[u8]],
    batch: u32,
    truth: &HashMap<&[u8], [u8; 8]>,
) -> io::Result<Outcome> {
    let mut multi_get = MultiGet::new(tables);
    let mut time = Duration::ZERO;
    let mut wrong = 0;
    for keys in lookups.chunks(batch as usize) {
        let start = Instant::now();
        let values = multi_get.get(keys)?;
        time += start.elapsed();
        for (key, value) in keys.iter().zip(values) {
            wrong += u64::from(truth.get(key).map(|number| &number[..]) != *value);
        }
    }
    let cost = multi_get.cost();
    Ok(Outcome { cost, time, wrong })
}
