//! Fills, folds, merges, stores and maps a filter of any size, and at every step looks up present
//! and absent keys.
//!
//! ```text
//! cargo run --release --example soak                                   20 M keys, 25 MB
//! cargo run --release --example soak -- --keys 500M --queries 1G       625 MB; takes 1.3 GB
//! ```
//!
//! Keys are numbers that are generated as needed; no list of keys, hashes or expected answers is
//! kept. In each step, half of the queries look up keys that were added, and all of these must be
//! found. The other half look up absent keys. The number of false positives must agree with the
//! formula, within 2 % plus five standard deviations of the count. The program stops at the first
//! step that fails.
#![expect(clippy::print_stderr, clippy::print_stdout, reason = "a program for the command line")]

use std::error::Error;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use blocked_bloom::{
    Bitmask, Block, BloomFilter, FilterOptions, KeyError, KeyHash, Sizing, Stored,
};
use clap::{Parser, value_parser};
use memmap2::Mmap;

/// Number of keys added or looked up per call.
const BATCH: u64 = 1 << 14;
/// Numbers from this one upwards are never added.
const ABSENT: u64 = 1 << 63;

/// Fills, folds, merges, stores and maps one filter, and looks up keys in it at every step.
#[derive(Parser)]
struct Args {
    /// Keys of the filter, 100K to 4G; suffixes K, M and G
    #[arg(long, value_name = "N", default_value = "20M")]
    #[arg(value_parser = number::<100_000, 4_000_000_000>)]
    keys: u64,
    /// Queries of the first step, 1M to 3G; each later step has a quarter as many
    #[arg(long, value_name = "N", default_value = "40M")]
    #[arg(value_parser = number::<1_000_000, 3_000_000_000>)]
    queries: u64,
    /// Bits per key, 5 to 30
    #[arg(long, value_name = "B", default_value_t = 10)]
    #[arg(value_parser = value_parser!(u8).range(5..=30))]
    bits_per_key: u8,
    /// Folder in which the filter is stored temporarily [default: the system's temporary folder]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

fn number<const MIN: u64, const MAX: u64>(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1_000),
        Some((at, 'm' | 'M')) => (&text[..at], 1_000_000),
        Some((at, 'g' | 'G')) => (&text[..at], 1_000_000_000),
        _ => (text, 1),
    };
    let value = digits.parse::<u64>().ok().and_then(|value| value.checked_mul(unit));
    value
        .filter(|value| (MIN..=MAX).contains(value))
        .ok_or_else(|| format!("give a whole number of {MIN} to {MAX}, such as 20M"))
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let options = FilterOptions::new(Sizing::BitsPerKey(args.bits_per_key.into())).foldable();
    let empty = || options.empty_filter(args.keys);
    let params = options.params(args.keys)?;
    println!("{} keys: {params}, {} bits", args.keys, u64::from(params.blocks()) * 512);
    println!();
    println!(
        "{:<15} {:>13} {:>8} {:>8} {:>8} {:>8}",
        "step", "items", "s", "ns/item", "MB", "peak"
    );

    let mut filter = timed("allocate", params.blocks().into(), empty)?;
    timed("add", args.keys, || add(&mut filter, 0..args.keys))?;
    look_up("look up", filter.view(), args.keys, args.queries)?;

    let folded = timed("fold by 2", params.blocks().into(), || filter.folded(2))?;
    look_up("look up folded", folded.view(), args.keys, args.queries / 4)?;
    drop(folded);

    let all = args.keys + args.keys / 4;
    let mut other = empty()?;
    timed("add to another", all - args.keys, || add(&mut other, args.keys..all))?;
    timed("merge", params.blocks().into(), || filter.union_with(&other))?;
    drop(other);
    let before = look_up("look up merged", filter.view(), all, args.queries / 4)?;

    let folder = args.folder.unwrap_or_else(std::env::temp_dir);
    let path = tempfile::Builder::new().prefix("soak-").tempfile_in(folder)?.into_temp_path();
    let stored = params.stored_bytes();
    timed("store", stored, || {
        let file = File::create(&path)?;
        filter.write_to(&file)?;
        file.sync_all()
    })?;
    let mapped = timed("map and verify", stored, || map(&path, options.key_hash()))?;
    if mapped != filter {
        return Err("the mapped filter is another than the one that was stored".into());
    }
    drop(filter);
    let after = look_up("look up mapped", mapped.view(), all, args.queries / 4)?;
    if after != before {
        return Err(
            format!("{after} absent keys found in the mapped filter, {before} before").into()
        );
    }
    println!();
    println!("no key missing, every rate as predicted");
    Ok(())
}

fn map(path: &Path, key_hash: KeyHash) -> Result<BloomFilter<Stored<Mmap>>, Box<dyn Error>> {
    let file = File::open(path)?;
    // SAFETY: the file belongs to this program, which does not shorten it.
    #[expect(unsafe_code, reason = "mapping a file is unsafe in Rust, whatever is done with it")]
    let map = unsafe { Mmap::map(&file)? };
    Ok(BloomFilter::from_bytes(map, key_hash)?)
}

/// Calls `each` with the keys of `count` numbers in batches, and prints progress every few seconds.
fn batches(name: &str, count: u64, number: impl Fn(u64) -> u64, mut each: impl FnMut(&[[u8; 8]])) {
    let mut keys = Vec::with_capacity(BATCH as usize);
    let (start, mut told) = (Instant::now(), Duration::from_secs(5));
    for batch in (0..count).step_by(BATCH as usize) {
        let end = count.min(batch + BATCH);
        keys.clear();
        keys.extend((batch..end).map(|i| number(i).to_le_bytes()));
        each(&keys);
        if start.elapsed() > told {
            eprintln!("{name}: {} %", end * 100 / count);
            told += Duration::from_secs(5);
        }
    }
}

fn add(filter: &mut BloomFilter, keys: Range<u64>) -> Result<(), KeyError> {
    let mut added = Ok(());
    let number = |i| keys.start + i;
    batches("add", keys.end - keys.start, number, |batch| {
        added = added.and(filter.insert_batch(batch));
    });
    added
}

/// Looks up keys that were added, evenly spread over all of them, and as many absent keys. Returns
/// the number of absent keys that were found.
fn look_up(
    name: &str,
    filter: BloomFilter<&[Block]>,
    keys: u64,
    queries: u64,
) -> Result<u64, Box<dyn Error>> {
    let (present, absent) = (queries - queries / 2, queries / 2);
    let (mut missing, mut found, mut hits) = (0, 0, Bitmask::new());
    timed(name, queries, || {
        // With at least as many queries as keys, every key is looked up.
        let spread = |i| i * keys / present;
        batches(name, present, spread, |batch| {
            filter.contains_batch(batch, &mut hits);
            missing += hits.count_misses() as u64;
        });
        let beyond = |i| ABSENT + i;
        batches(name, absent, beyond, |batch| {
            filter.contains_batch(batch, &mut hits);
            found += hits.count_hits() as u64;
        });
    });
    let rate = filter.expected_false_positive_rate();
    let expected = absent as f64 * rate;
    let (off, deviation) = (found as f64 - expected, (expected * (1.0 - rate)).sqrt());
    println!(
        "    {missing} of {present} present keys missing; {:.4} % of absent keys found, \
         predicted {:.4} %: {:+.2} %, {:+.1} sigma",
        100.0 * found as f64 / absent as f64,
        100.0 * rate,
        100.0 * off / expected,
        off / deviation,
    );
    if missing > 0 {
        return Err(format!("{name}: {missing} keys that were added are absent").into());
    }
    if off.abs() > 0.02 * expected + 5.0 * deviation {
        return Err(format!("{name}: {found} absent keys found, {expected:.0} predicted").into());
    }
    Ok(found)
}

/// Runs a step and prints its time, and the memory of the process after it.
fn timed<T>(step: &str, items: u64, run: impl FnOnce() -> T) -> T {
    eprintln!("{step}");
    let start = Instant::now();
    let result = run();
    let seconds = start.elapsed().as_secs_f64();
    let [now, peak] = memory_mb().unwrap_or_default();
    let each = 1e9 * seconds / items.max(1) as f64;
    println!("{step:<15} {items:>13} {seconds:>8.2} {each:>8.2} {now:>8} {peak:>8}");
    result
}

/// Current and largest resident memory of the process; zero on systems other than Linux. A mapped
/// file counts while it is being read.
fn memory_mb() -> io::Result<[u64; 2]> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    Ok(["VmRSS:", "VmHWM:"].map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kibibytes.unwrap_or(0) * 1024 / 1_000_000
    }))
}
