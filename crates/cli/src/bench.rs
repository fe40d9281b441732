//! `blocked-bloom bench`: this machine's times per key, next to those of loops that only load
//! memory.

mod rows;

use std::process::ExitCode;

use benches::ops::{self, Op};
use benches::workload::filled;
use blocked_bloom_inspect::numbers::{parse_bits, parse_keys};
use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Failure;
use crate::numbers::DEFAULT_BITS_PER_KEY;
use crate::output::print;

const SIZES: [u64; 5] = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Measure this machine: nanoseconds per key of every kernel, next to loops that only load memory
///
/// Filters of several sizes are filled, and keys that are absent, present, or half and half are
/// looked up; keys are inserted; keys are hashed and looked up. Everything that is compared is
/// interleaved, round after round, since machines change their speed. By default this takes about a
/// minute and half a gigabyte.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to measure; may be repeated or a list separated by commas [default: query, single,
    /// keys, insert]
    #[arg(long, value_name = "OP", value_delimiter = ',')]
    op: Vec<Op>,

    /// Keys in the filter; may be repeated or a list separated by commas; suffixes K, M and G
    /// [default: 10K,100K,1M,10M,100M, with --quick without the last two]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_keys)]
    keys: Vec<u64>,

    /// Bits of memory per key, above 0 and up to 100
    #[arg(long, value_name = "BITS", default_value_t = DEFAULT_BITS_PER_KEY,
          value_parser = parse_bits)]
    bits_per_key: f64,

    /// Bits set and tested per key, 1 to 30 [default: the best for the bits per key]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=30))]
    probes: Option<u32>,

    /// Keys a call; may be repeated or a list separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "4096,32",
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    batch: Vec<u32>,

    /// Rounds; rows show their median and minimum [default: 41 for up to a million keys, else
    /// 11; with --quick 11]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: Option<u32>,

    /// Fewer rounds, and no filter above a million keys: some seconds. Ends with a summary: the
    /// library's kernel next to the memory-bound baseline
    #[arg(long)]
    quick: bool,

    /// Print one JSON object per line and measurement instead of the table
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let sizes: &[u64] = match args {
        Args { keys, .. } if !keys.is_empty() => keys,
        Args { quick: true, .. } => &SIZES[..3],
        _ => &SIZES,
    };
    const DEFAULT: &[Op] = &[Op::Query, Op::Single, Op::Keys, Op::Insert];
    let ops = if args.op.is_empty() { DEFAULT } else { &args.op };
    // The current measurement, on standard error if that is a terminal.
    let progress = ProgressBar::new((sizes.len() * ops.len()) as u64);
    let style = ProgressStyle::with_template("{bar:20} {pos}/{len} {msg}");
    progress.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let more = [(Op::Build, ops::BUILD_HELP), (Op::Metrics, ops::METRICS_HELP)];
    let more = more.into_iter().filter(|(op, _)| ops.contains(op)).map(|(_, text)| text);
    // If the reader of the rows is gone, the rest is not worth measuring.
    let mut is_read =
        args.json || print(&(ops::EXPLANATION.to_owned() + &more.collect::<String>()))?;
    let mut summary = None;
    for &keys in sizes {
        if !is_read {
            break;
        }
        let setting = rows::setting(keys, args)?;
        is_read = args.json || print(&rows::head(&setting))?;
        let mut all = Vec::new();
        let filter = filled(setting.params, keys).map_err(Failure::new)?;
        for &op in ops {
            if !is_read {
                break;
            }
            progress.set_message(format!("{keys} keys, {op:?}"));
            progress.inc(1);
            let measured = ops::measure(op, &setting, &filter).map_err(Failure::new)?;
            let lines = measured.iter().map(|row| match args.json {
                true => rows::json(row, &setting),
                false => row.text(),
            });
            is_read = print(&lines.collect::<String>())?;
            all.extend(measured);
        }
        summary = ops::summary(&setting, &all);
    }
    if let Some(summary) = summary.filter(|_| is_read && args.quick && !args.json) {
        print(&summary)?;
    }
    Ok(ExitCode::SUCCESS)
}
