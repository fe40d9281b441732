//! Looks up batches of keys in the table files of a small engine, with and without filters.
//!
//! The keys of a file are flushed to tables that each cover the whole key range, as the newest runs
//! of an LSM tree do. A third of the keys is held out, so that absent keys look like stored ones.
//! Then directories of file paths are scanned, with filters that know their prefixes and with some
//! that do not. Prints block reads, false positives and times, with filters and without.
//!
//! Every answer is compared with the truth; a wrong one makes the exit status non-zero.
//!
//! ```text
//! cargo run --release -p multiget -- --tables 8 --batch 128 --absent 50
//! ```

mod args;
mod block;
mod flush;
mod footer;
mod measure;
mod multi_get;
mod scans;
mod table;
mod workload;

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;

use blocked_bloom::FilterOptions;

use crate::args::{Args, Command, HELP};
use crate::flush::flush;
use crate::measure::{
    count_false_positives, look_up, look_up_one_by_one, nanos, percent, size_and_rate,
    time_to_build,
};
use crate::table::Table;
use crate::workload::{Record, read, shuffled_lookups, shuffled_records};

fn main() -> ExitCode {
    let mut report = Vec::new();
    let done = match args::parse(std::env::args_os()) {
        Err(error) => {
            eprintln!("error: {error}\n\nFor more information, try '--help'.");
            return ExitCode::from(2);
        }
        Ok(Command::Help) => write!(report, "{HELP}").map(|()| 0).map_err(Into::into),
        Ok(Command::Version) => {
            let version = env!("CARGO_PKG_VERSION");
            writeln!(report, "multiget {version}").map(|()| 0).map_err(Into::into)
        }
        Ok(Command::Run(args)) => run(&args, &mut report),
    };
    // Written at the end, so that wrong answers are told also if nobody reads the report.
    let written = match io::stdout().write_all(&report) {
        // Whoever reads it has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    };
    match done.and_then(|wrong| Ok(written.map(|()| wrong)?)) {
        Ok(0) => return ExitCode::SUCCESS,
        Ok(wrong) => eprintln!("error: {wrong} wrong answers"),
        Err(error) => eprintln!("error: {error}"),
    }
    ExitCode::FAILURE
}

/// Flushes, looks up and reports. Returns the number of wrong answers.
fn run(args: &Args, output: &mut Vec<u8>) -> Result<u64, Box<dyn Error>> {
    // Everything about the filters is stated here, once: whoever builds, opens or looks them up has it from these options.
    let options = FilterOptions::new(args.sizing);
    let lines = read(&args.keys)?;
    let records = shuffled_records(&lines);
    let (held_out, stored) = records.split_at(records.len() / 3);

    let folder = tempfile::tempdir()?;
    let (mut tables, mut build_time) = (Vec::new(), Duration::ZERO);
    for i in 0..usize::from(args.tables) {
        let every = stored.iter().skip(i).step_by(args.tables.into());
        let mut run: Vec<Record> = every.copied().collect();
        run.sort_unstable();
        let path = folder.path().join(format!("{i}.table"));
        flush(&path, run.iter().copied(), &options)?;
        tables.push(Table::open(&path, options.key_hash())?);
        build_time += time_to_build(&run, &options)?;
    }
    let (filter_bytes, predicted) = size_and_rate(&tables);
    let (false_positives, pairs) =
        count_false_positives(&tables, &records, stored.len(), &options)?;
    let measured = percent(false_positives as f64, pairs as f64);
    let kernel = tables[0].filter().view().kernel();

    let truth: HashMap<_, _> = stored.iter().copied().collect();
    let lookups = shuffled_lookups(held_out, stored, args.absent);
    let absent = lookups.iter().filter(|key| !truth.contains_key(**key));
    let with = look_up(&tables, &options, &lookups, args.batch, &truth)?;
    let single = look_up_one_by_one(&tables, &options, &lookups, &truth)?;
    let tables: Vec<Table> = tables.into_iter().map(Table::without_filter).collect();
    let without = look_up(&tables, &options, &lookups, args.batch, &truth)?;
    let (reads, reads_without) = (with.cost.block_reads, without.cost.block_reads);
    let wrong = with.wrong + single.wrong + without.wrong;

    write!(
        output,
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
filter lookups     {filters:.1} ns/key and table
whole lookup       {whole:.0} ns/key
  one key a call   {one_by_one:.0} ns/key
  without filters  {whole_without:.0} ns/key
wrong answers      {wrong}
",
        keys = records.len(),
        file = args.keys.display(),
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
        filters = nanos(with.cost.filters, lookups.len() * tables.len()),
        whole = nanos(with.time, lookups.len()),
        one_by_one = nanos(single.time, lookups.len()),
        whole_without = nanos(without.time, lookups.len()),
    )?;
    let paths = read(&args.paths)?;
    Ok(wrong + scans::report(folder.path(), &paths, args.tables, &options, output)?)
}
