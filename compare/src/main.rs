//! Compares `blocked-bloom` with the filters of other Rust crates, RocksDB's loop and the memory-bound baseline in interleaved rounds,
//! and draws the pictures.

mod markdown;
mod measure;
mod peers;
mod plots;
mod removable;
mod report;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Parser, ValueEnum};

use crate::report::Report;

/// Compares blocked-bloom with other filters: queries, building, false positives. Prints Markdown tables; all times are
/// nanoseconds per key, median (least) over interleaved rounds.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    /// Two sizes and a quarter of the rounds: under two minutes.
    #[arg(long)]
    quick: bool,

    /// Keys of the filters, such as 10K,1M,100M [default: 10K,100K,1M,10M,100M; with --quick 10K,1M].
    #[arg(long, value_delimiter = ',', value_parser = number, value_name = "KEYS")]
    keys: Vec<u64>,

    /// Memory of every filter that can choose it.
    #[arg(long, default_value_t = 10.0, value_name = "BITS")]
    bits_per_key: f64,

    /// Write everything measured to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Draw the pictures into this directory.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,

    /// Measure only these parts [default: all].
    #[arg(long, value_delimiter = ',', value_name = "PARTS")]
    only: Vec<Part>,

    /// Measure nothing: read what earlier runs wrote with --json.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "keys", "bits_per_key", "only", "json"])]
    from: Vec<PathBuf>,
}

/// What can be measured for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Filling by one thread, and looking up.
    Queries,
    /// False-positive rates.
    Rates,
    /// Filling by several threads.
    Threads,
    /// Filters that keys can be removed from.
    Removable,
}

/// A number of keys, with K or M for thousands or millions.
fn number(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => text.strip_suffix(['m', 'M']).map_or((text, 1), |digits| (digits, 1_000_000)),
    };
    let keys = digits.parse::<u64>().map_err(|error| error.to_string())?.saturating_mul(unit);
    if (1_000..=1_000_000_000).contains(&keys) {
        Ok(keys)
    } else {
        Err("from 1K to 1000M keys can be compared".to_owned())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let report = match arguments.from.split_first() {
        Some((first, others)) => {
            let mut report = read(first)?;
            for other in others {
                report.append(read(other)?);
            }
            report
        }
        None => measure(&arguments)?,
    };
    if let Some(directory) = &arguments.plots {
        std::fs::create_dir_all(directory)?;
        for (name, picture) in plots::all(&report) {
            std::fs::write(directory.join(name), picture)?;
        }
    }
    print!("{}", markdown::tables(&report));
    Ok(())
}

fn read(file: &Path) -> Result<Report, Box<dyn Error>> {
    Ok(serde_json::from_slice(&std::fs::read(file)?)?)
}

fn measure(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let Arguments { quick, bits_per_key: bits, .. } = *arguments;
    if !(4.0..=30.0).contains(&bits) {
        return Err("from 4 to 30 bits per key can be compared".into());
    }
    let given = |default: &[u64]| match arguments.keys.is_empty() {
        true => default.to_vec(),
        false => arguments.keys.clone(),
    };
    let all: &[u64] = &[10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
    let (quick_sizes, removable): (&[u64], _) =
        (&[10_000, 1_000_000], &[10_000, 1_000_000, 10_000_000, 100_000_000]);
    let start = Instant::now();
    let step = |what: &str| eprintln!("[{:4.0} s] {what}", start.elapsed().as_secs_f64());
    let kinds = peers::kinds();
    let mut report = Report::new(&kinds, bits, quick);
    // Keeps what is there so far: a run of all sizes takes long.
    let save = |report: &Report| -> Result<(), Box<dyn Error>> {
        if let Some(file) = &arguments.json {
            std::fs::write(file, serde_json::to_string_pretty(report)?)?;
        }
        Ok(())
    };
    let is_wanted = |part| arguments.only.is_empty() || arguments.only.contains(&part);
    if is_wanted(Part::Queries) {
        for keys in given(if quick { quick_sizes } else { all }) {
            step(&format!("filters of {keys} keys"));
            measure::look_up(&kinds, keys, bits, quick, &mut report.times);
            save(&report)?;
        }
    }
    if is_wanted(Part::Rates) {
        step("false positives");
        let (keys, queries) = if quick { (100_000, 1_000_000) } else { (1_000_000, 8_000_000) };
        report.rates = measure::rates(&kinds, keys, queries);
        save(&report)?;
    }
    if is_wanted(Part::Threads) {
        step("threads");
        let keys = if quick { 9_000_000 } else { 10_000_000 };
        measure::by_threads(keys, bits, quick, &mut report.times);
    }
    if is_wanted(Part::Removable) {
        for keys in given(if quick { quick_sizes } else { removable }) {
            step(&format!("removable filters of {keys} keys"));
            report.removable.extend(removable::measure(keys, quick));
            save(&report)?;
        }
    }
    report.machine.load.extend(report::load());
    save(&report)?;
    step("done");
    Ok(report)
}
