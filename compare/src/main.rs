//! Compares `blocked-bloom` with the filters of other Rust crates, RocksDB's loop and the
//! memory-bound baseline in interleaved rounds, and draws the pictures.

mod calls;
mod markdown;
mod measure;
mod peers;
mod plots;
mod ranges;
mod removable;
mod report;
mod split;

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use benches::results::Report;
use clap::{Parser, ValueEnum};

/// Compares blocked-bloom with other filters: queries, building, false positives. Prints Markdown
/// tables; all times are nanoseconds per key, median (least) over interleaved rounds.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    /// Two sizes and a quarter of the rounds: under two minutes.
    #[arg(long)]
    quick: bool,

    /// Keys of the filters, such as 10K,1M,100M [default: 10K,100K,1M,10M,100M; with --quick
    /// 10K,1M].
    #[arg(long, value_delimiter = ',', value_parser = number, value_name = "KEYS")]
    keys: Vec<u64>,

    /// Memory of every filter that can choose it.
    #[arg(long, default_value_t = 10.0, value_name = "BITS")]
    bits_per_key: f64,

    /// Write all results to this file; its other contents stay.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Draw the pictures into this directory.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,

    /// Measure only these parts [default: all].
    #[arg(long, value_delimiter = ',', value_name = "PARTS")]
    only: Vec<Part>,

    /// Measure nothing: read what earlier runs wrote with --json.
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["quick", "keys", "bits_per_key", "only", "json"])]
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
    /// Split-block filters, if named: a table of its own.
    Split,
    /// Range filters, if named: the workloads of Grafite's benchmark.
    Ranges,
    /// The calls that engines make and the plainest alternatives, if named: MultiGets of 2 to 64
    /// keys, memtables, flushes, prefix scans, opening, merging, folding.
    Calls,
}

/// A number of keys, with K or M for thousands or millions.
fn number(text: &str) -> Result<u64, String> {
    let digits = text.replace(['k', 'K'], "000").replace(['m', 'M'], "000000");
    let keys = digits.parse().ok().filter(|keys| (1_000..=1_000_000_000).contains(keys));
    keys.ok_or_else(|| "from 1K to 1000M keys can be compared".to_owned())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let mut reports = arguments.from.iter().map(|file| Report::read(file));
    let mut report = reports.next().unwrap_or_else(|| measure(&arguments))?;
    for other in reports {
        report.append(other?);
    }
    if let Some(directory) = &arguments.plots {
        std::fs::create_dir_all(directory)?;
        for (name, picture) in plots::all(&report) {
            std::fs::write(directory.join(name), picture)?;
        }
    }
    print!("{}", markdown::tables(&report));
    Ok(())
}

fn measure(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let Arguments { quick, bits_per_key: bits, .. } = *arguments;
    if !(4.0..=30.0).contains(&bits) {
        return Err("from 4 to 30 bits per key can be compared".into());
    }
    let sizes: &[u64] = match (&arguments.keys[..], quick) {
        ([], true) => &[10_000, 1_000_000],
        ([], false) => &[10_000, 100_000, 1_000_000, 10_000_000, 100_000_000],
        (given, _) => given,
    };
    let start = Instant::now();
    let kinds = peers::kinds();
    let mut report = report::empty(&kinds, bits);
    let before = match &arguments.json {
        Some(file) if file.exists() => Some(Report::read(file)?),
        _ => None,
    };
    // Saves the results so far, since a run of all sizes takes long.
    let keep = |report: &Report| match &arguments.json {
        Some(file) => {
            let mut all = before.clone().unwrap_or_else(|| report.clone());
            all.append(report.clone());
            all.write(file)
        }
        None => Ok(()),
    };
    if arguments.only.contains(&Part::Split) {
        let (text, tables) = split::measure(quick, &report.machine);
        println!("{text}");
        report.tables = tables;
        keep(&report)?;
    }
    if arguments.only.contains(&Part::Calls) {
        let (text, tables) = calls::measure(quick, &report.machine);
        println!("{text}");
        report.tables.extend(tables);
        keep(&report)?;
    }
    if arguments.only.contains(&Part::Ranges) {
        ranges::measure(quick);
    }
    let all = [Part::Queries, Part::Rates, Part::Threads, Part::Removable].into_iter();
    for part in all.filter(|part| arguments.only.is_empty() || arguments.only.contains(part)) {
        let sizes = match part {
            Part::Queries | Part::Removable => sizes,
            Part::Split | Part::Ranges | Part::Calls => &[],
            Part::Rates if quick => &[100_000],
            Part::Rates => &[1_000_000],
            Part::Threads => &[10_000_000],
        };
        for &keys in sizes {
            eprintln!("[{:4.0} s] {part:?}, {keys} keys", start.elapsed().as_secs_f64());
            match part {
                Part::Queries => measure::look_up(&kinds, keys, quick, &mut report),
                Part::Rates => report.rates = measure::rates(&kinds, keys, 8 * keys),
                Part::Threads => measure::build_in_pools(keys, quick, &mut report),
                Part::Removable => report.removable.extend(removable::measure(keys, quick)),
                Part::Split | Part::Ranges | Part::Calls => {}
            }
            keep(&report)?;
        }
    }
    Ok(report)
}
