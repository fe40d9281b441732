//! `blocked-bloom bench`: this machine's times per key, beside what the machine allows.

mod build;
mod limits;
mod measure;
mod metrics;
mod set;
#[cfg(feature = "interop-parquet")]
mod split;
mod workload;

use std::cell::Cell;
use std::io::{IsTerminal, stderr};
use std::process::ExitCode;

use blocked_bloom::{
    Bitmask, BloomFilter, BloomFilterRef, Kernel, KeyHash, KeyHasher, Params, Sizing,
};
use clap::ValueEnum;
use indicatif::{BinaryBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use self::limits::SplitBlock;
use self::measure::{Case, Timing, interleaved};
use self::workload::{Mix, filled, for_all_keys, question_count};
use crate::failure::Failure;
use crate::numbers::parse_keys;
use crate::output::print;

const SIZES: [u64; 5] = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

const EXPLANATION: &str = "\
ns/key  median over the rounds, and in brackets the least; all rows of a block ran in turn
ratio   to the limit of the same keys and batch: the faster of two loops that load one line per key
        and test nothing, with and without requesting lines ahead
kernel  one_by_one: a call for each key; early_exit: the scalar law inlined, stopping at the first bit
        that is not set; split_block: Parquet's law in one AVX2 loop, which only counts and accepts some 30 %
        more absent keys at 10 bits/key; ahead: requesting lines ahead
";

/// Measure this machine: nanoseconds per key of every kernel, beside loops that only load memory
///
/// Filters of several sizes are filled and asked about keys that are absent, present, or half and
/// half; keys are inserted; keys are hashed and asked. Everything that is compared runs in turn, round
/// after round, since machines change their speed. By default this takes about a minute and half a gigabyte.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to measure; may be repeated or a list separated by commas [default: query, single, keys, insert]
    #[arg(long, value_name = "OP", value_delimiter = ',')]
    op: Vec<Op>,

    /// Keys in the filter; may be repeated or a list separated by commas; suffixes K, M and G
    /// [default: 10K,100K,1M,10M,100M, with --quick without the last two]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_keys)]
    keys: Vec<u64>,

    /// Bits of memory per key, above 0 and up to 100
    #[arg(long, value_name = "BITS", default_value_t = 10.0)]
    bits_per_key: f64,

    /// Bits set and tested per key, 1 to 30 [default: the best for the bits per key]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=30))]
    probes: Option<u32>,

    /// Keys a call; may be repeated or a list separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "4096,32",
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    batch: Vec<u32>,

    /// Rounds, of which median and minimum are taken [default: 41 for up to a million keys, else 11; with --quick 11]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: Option<u32>,

    /// Fewer rounds, and no filter above a million keys: some seconds
    #[arg(long)]
    quick: bool,

    /// Print one JSON object per line and measurement instead of the table
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Op {
    /// Batches of hashes, by every kernel, and one by one in a loop
    Query,
    /// One hash a call, by every kernel
    Single,
    /// Batches of 16-byte keys, hashing included
    Keys,
    /// Inserting batches of hashes, by every kernel, and one by one
    Insert,
    /// Batches of hashes asked of a split-block filter as large, Parquet's, by every kernel, beside the same kernel's own law; only if
    /// asked for
    #[cfg(feature = "interop-parquet")]
    Split,
    /// Whole filters from hashes and from 16-byte keys, by one thread and by all; only if asked for,
    /// since 100M keys take a minute and 7 GB
    Build,
    /// Batches of 128 and 4,096 hashes with and without counting them; only if asked for
    Metrics,
    /// One key against 64 filters and a batch against 8, each of so many keys; only if asked for, and then by
    /// default up to a million keys a filter
    Set,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let sizes: &[u64] = match args {
        Args { keys, .. } if !keys.is_empty() => keys,
        Args { quick: true, .. } => &SIZES[..3],
        Args { op, .. } if op.contains(&Op::Set) => &SIZES[..3],
        _ => &SIZES,
    };
    const DEFAULT: &[Op] = &[Op::Query, Op::Single, Op::Keys, Op::Insert];
    let ops = if args.op.is_empty() { DEFAULT } else { &args.op };
    let progress = Progress::new((sizes.len() * ops.len()) as u64);
    if !args.json {
        print(EXPLANATION)?;
        if ops.contains(&Op::Build) {
            print(build::EXPLANATION)?;
        }
        if ops.contains(&Op::Metrics) {
            print(metrics::EXPLANATION)?;
        }
        if ops.contains(&Op::Set) {
            print(set::EXPLANATION)?;
        }
    }
    for &keys in sizes {
        let setting = Setting::new(args, keys)?;
        if !args.json {
            print(&setting.head())?;
        }
        let filter = filled(setting.params, keys).map_err(Failure::new)?;
        for op in ops {
            progress.step(&format!("{keys} keys, {op:?}"));
            let rows = match op {
                Op::Query => query(&setting, &filter),
                Op::Single => single(&setting, &filter),
                Op::Keys => whole_keys(&setting, &filter),
                Op::Insert => insert(&setting)?,
                #[cfg(feature = "interop-parquet")]
                Op::Split => split::measure(&setting, &filter)?,
                Op::Build => build::measure(&setting)?,
                Op::Metrics => metrics::measure(&setting, &filter)?,
                Op::Set => set::measure(&setting)?,
            };
            for row in rows {
                print(&if args.json { row.json(&setting) } else { row.text() })?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// One filter and how it is measured.
struct Setting {
    keys: u64,
    sizing: Sizing,
    params: Params,
    rounds: usize,
    batches: Vec<usize>,
}

impl Setting {
    fn new(args: &Args, keys: u64) -> Result<Self, Failure> {
        let sizing = Sizing::BitsPerKey(args.bits_per_key);
        let params = sizing.params(keys).map_err(Failure::new)?;
        if params.is_pass_all() {
            return Err(Failure::new("0 bits per key mean no filter: there is nothing to measure"));
        }
        let params = match args.probes {
            Some(probes) => params.with_probes(probes).map_err(Failure::new)?,
            None => params,
        };
        let default = if args.quick || keys > 1_000_000 { 11 } else { 41 };
        Ok(Setting {
            keys,
            sizing,
            params,
            rounds: args.rounds.unwrap_or(default) as usize,
            batches: args.batch.iter().map(|&batch| batch as usize).collect(),
        })
    }

    fn head(&self) -> String {
        let (keys, params) = (self.keys, &self.params);
        let size = BinaryBytes(u64::from(params.blocks()) * 64);
        format!(
            "\n{keys} keys, {size}, {:.2} bits/key, {} probes, {} rounds\n{:<16} {:<8} {:<17} {:>7} {:>9} {:>16} {:>6}\n",
            params.bits_per_key(),
            params.probes(),
            self.rounds,
            "op",
            "mix",
            "kernel",
            "threads",
            "batch",
            "ns/key",
            "ratio"
        )
    }
}

/// One measurement.
struct Row {
    op: &'static str,
    mix: &'static str,
    kernel: &'static str,
    threads: usize,
    batch: usize,
    time: Timing,
    /// None for what no loop over lines limits.
    limit: Option<Timing>,
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        self.limit.map(|limit| self.time.median / limit.median)
    }

    fn text(&self) -> String {
        let ratio = self.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
        let time = format!("{:.2} ({:.2})", self.time.median, self.time.min);
        format!(
            "{:<16} {:<8} {:<17} {:>7} {:>9} {time:>16} {ratio:>6}\n",
            self.op, self.mix, self.kernel, self.threads, self.batch
        )
    }

    fn json(&self, setting: &Setting) -> String {
        let row = json!({
            "op": self.op,
            "mix": self.mix,
            "kernel": self.kernel,
            "threads": self.threads,
            "keys": setting.keys,
            "bits_per_key": setting.params.bits_per_key(),
            "probes": setting.params.probes(),
            "batch": self.batch,
            "ns_per_key": self.time.median,
            "limit_ns_per_key": self.limit.map(|limit| limit.median),
            "ratio": self.ratio(),
            "min_ns_per_key": self.time.min,
            "min_limit_ns_per_key": self.limit.map(|limit| limit.min),
            "rounds": setting.rounds,
        });
        format!("{row}\n")
    }
}

/// Cases of one op that run in turn, with what their rows say; the first two are the limit loops.
struct Group<'a> {
    op: &'static str,
    mix: &'static str,
    batch: usize,
    names: Vec<&'static str>,
    cases: Vec<Case<'a>>,
}

impl<'a> Group<'a> {
    /// The limit of asking or inserting `hashes`.
    fn new(
        op: &'static str,
        mix: &'static str,
        batch: usize,
        blocks: &'a [blocked_bloom::Block],
        hashes: &'a [u64],
    ) -> Self {
        let mut group = Group { op, mix, batch, names: Vec::new(), cases: Vec::new() };
        for (name, ahead) in [("limit", false), ("limit_ahead", true)] {
            group.add(name, hashes, move |hashes| limits::load_lines(blocks, hashes, ahead));
        }
        group
    }

    /// A case that calls `run` with batch after batch.
    fn add<R>(
        &mut self,
        name: &'static str,
        hashes: &'a [u64],
        mut run: impl FnMut(&[u64]) -> R + 'a,
    ) {
        let batch = self.batch;
        self.names.push(name);
        self.cases.push(Case::new(hashes.len(), move || {
            for hashes in hashes.chunks(batch) {
                std::hint::black_box(run(std::hint::black_box(hashes)));
            }
        }));
    }

    fn rows(mut self, rounds: usize) -> Vec<Row> {
        let times = interleaved(&mut self.cases, rounds);
        let limit = Timing {
            median: times[0].median.min(times[1].median),
            min: times[0].min.min(times[1].min),
        };
        let Group { op, mix, batch, names, .. } = self;
        let rows = names.into_iter().zip(times);
        rows.map(|(kernel, time)| Row {
            op,
            mix,
            kernel,
            threads: 1,
            batch,
            time,
            limit: Some(limit),
        })
        .collect()
    }
}

fn query(setting: &Setting, filter: &BloomFilter) -> Vec<Row> {
    let view = filter.view();
    let blocks = view.blocks();
    let mut split_block = SplitBlock::new(size_of_val(blocks));
    for_all_keys(setting.keys, |hashes| split_block.insert_hashes(hashes));
    let mut rows = Vec::new();
    for &batch in &setting.batches {
        for mix in Mix::ALL {
            let hashes = mix.questions(setting.keys, question_count(setting.keys));
            let mut group = Group::new("contains_hashes", mix.name(), batch, blocks, &hashes);
            for kernel in Kernel::supported() {
                let view = view.with_kernel(kernel);
                let mut hits = Bitmask::new();
                group.add(kernel.name(), &hashes, move |hashes| {
                    view.contains_hashes(hashes, &mut hits);
                });
            }
            group.add("one_by_one", &hashes, move |hashes| count_one_by_one(view, hashes));
            group.add("early_exit", &hashes, move |hashes| {
                limits::early_exit(blocks, setting.params.probes(), hashes)
            });
            if split_block.count_hits(&[], false).is_some() {
                let split_block = &split_block;
                for (name, ahead) in [("split_block", false), ("split_block_ahead", true)] {
                    group.add(name, &hashes, move |hashes| split_block.count_hits(hashes, ahead));
                }
            }
            rows.extend(group.rows(setting.rounds));
        }
    }
    rows
}

/// Keys asked one at a time: the call for one by every kernel.
fn single(setting: &Setting, filter: &BloomFilter) -> Vec<Row> {
    let view = filter.view();
    let mut rows = Vec::new();
    for mix in Mix::ALL {
        let hashes = mix.questions(setting.keys, question_count(setting.keys));
        let mut group = Group::new("contains_hash", mix.name(), 1, view.blocks(), &hashes);
        for kernel in Kernel::supported() {
            let view = view.with_kernel(kernel);
            group.add(kernel.name(), &hashes, move |hashes| view.contains_hash(hashes[0]));
        }
        rows.extend(group.rows(setting.rounds));
    }
    rows
}

fn count_one_by_one(view: BloomFilterRef<'_>, hashes: &[u64]) -> usize {
    hashes.iter().filter(|&&hash| view.contains_hash(hash)).count()
}

/// Keys of 16 bytes that are absent: hashed and asked in one call, or in two.
fn whole_keys(setting: &Setting, filter: &BloomFilter) -> Vec<Row> {
    let view = filter.view();
    let count = question_count(setting.keys);
    let keys: Vec<[u8; 16]> = (0..count as u128).map(|i| (i << 64 | i).to_le_bytes()).collect();
    let hasher = KeyHasher::default();
    let mut rows = Vec::new();
    for &batch in &setting.batches {
        let mut hashes = Vec::new();
        let mut hashes_of_two_calls = Vec::new();
        let (mut hits, mut hits_of_two_calls) = (Bitmask::new(), Bitmask::new());
        let mut cases = [
            Case::new(count, || {
                for keys in keys.chunks(batch) {
                    hasher.hash_batch(keys, &mut hashes);
                    std::hint::black_box(&hashes);
                }
            }),
            Case::new(count, || {
                for keys in keys.chunks(batch) {
                    view.contains_batch(keys, &mut hits);
                    std::hint::black_box(&hits);
                }
            }),
            Case::new(count, || {
                for keys in keys.chunks(batch) {
                    hasher.hash_batch(keys, &mut hashes_of_two_calls);
                    view.contains_hashes(&hashes_of_two_calls, &mut hits_of_two_calls);
                    std::hint::black_box(&hits_of_two_calls);
                }
            }),
        ];
        let names = [
            ("hash_batch", "-"),
            ("contains_batch", view.kernel().name()),
            ("hash, contains", view.kernel().name()),
        ];
        let times = interleaved(&mut cases, setting.rounds);
        for ((op, kernel), time) in names.into_iter().zip(times) {
            rows.push(Row { op, mix: "absent", kernel, threads: 1, batch, time, limit: None });
        }
    }
    rows
}

/// Keys that were not in the filter when it was made: what is set already costs the same, since no kernel looks.
fn insert(setting: &Setting) -> Result<Vec<Row>, Failure> {
    let filter =
        BloomFilter::with_params(setting.params, KeyHash::default()).map_err(Failure::new)?;
    let lines = filter.clone();
    let lines = lines.view().blocks();
    // All kernels insert into one filter, in turn.
    let filter = &Cell::new(Some(filter));
    let hashes = Mix::Absent.questions(setting.keys, question_count(setting.keys));
    let mut rows = Vec::new();
    for &batch in &setting.batches {
        let mut group = Group::new("insert_hashes", "absent", batch, lines, &hashes);
        for kernel in Kernel::supported() {
            group.add(kernel.name(), &hashes, move |hashes| {
                filter.set(filter.take().map(|filter| {
                    let mut filter = filter.with_kernel(kernel);
                    filter.insert_hashes(hashes);
                    filter
                }));
            });
        }
        group.add("one_by_one", &hashes, |hashes| {
            filter.set(filter.take().map(|mut filter| {
                for &hash in hashes {
                    filter.insert_hash(hash);
                }
                filter
            }));
        });
        rows.extend(group.rows(setting.rounds));
    }
    Ok(rows)
}

/// What is being measured, on standard error if someone may be looking.
struct Progress(ProgressBar);

impl Progress {
    fn new(steps: u64) -> Self {
        let bar = ProgressBar::new(steps);
        let style = ProgressStyle::with_template("{bar:20} {pos}/{len} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        if !stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        Progress(bar)
    }

    fn step(&self, message: &str) {
        self.0.set_message(message.to_owned());
        self.0.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
