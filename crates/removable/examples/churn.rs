//! Fills filters until a key is rejected, inserts and removes keys at full load for a long time,
//! and removes keys that were never inserted. Shows how full a filter gets, what churn does to it,
//! and what misuse costs.
//!
//! ```text
//! cargo run --release -p blocked-bloom-removable --example churn            seconds
//! cargo run --release -p blocked-bloom-removable --example churn -- --operations 100M --fills 100
//! cargo run --release -p blocked-bloom-removable --example churn -- \
//!     --lanes 29 --operations 100M --fills 0
//! ```
//!
//! Keys are numbers. The program keeps the present keys and looks each up in every check and before
//! its removal. It fails at the first missing key.
#![expect(clippy::print_stdout, reason = "a program for the command line")]

use std::error::Error;
use std::time::Instant;

use blocked_bloom::{Bitmask, Filter, FilterOptions, KeyHash};
use blocked_bloom_removable::{RemovableError, RemovableFilter, RemovableOptions};
use clap::{Parser, value_parser};

/// Keys per call.
const BATCH: usize = 1_024;

/// How full a removable filter gets, what churn does to it, and what misuse costs.
#[derive(Parser)]
struct Args {
    /// Keys in each filter, 10K to 1G (suffixes K, M and G)
    #[arg(long, value_name = "N", default_value = "1M", value_parser = number::<10_000, 1_000_000_000>)]
    keys: u64,
    /// Insertions plus removals at full load, 0 to 100G
    #[arg(long, value_name = "N", default_value = "4M", value_parser = number::<0, 100_000_000_000>)]
    operations: u64,
    /// Average number of lanes, of 32, in use at full load; 16 to 30
    #[arg(long, value_name = "LANES", default_value_t = 28, value_parser = value_parser!(u8).range(16..=30))]
    lanes: u8,
    /// Number of filters to fill until a key is rejected
    #[arg(long, value_name = "N", default_value_t = 5)]
    fills: u64,
    /// Seed of the keys
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
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
    let hashes = FilterOptions::default().with_key_hash(KeyHash::Caller { tag: args.seed });
    let options = RemovableOptions::for_filters(&hashes, args.keys)
        .with_slack(1.0 - f64::from(args.lanes) / 32.0);
    fill(&args, &options)?;
    churn(&args, &options)?;
    misuse(&args, &options)?;
    Ok(())
}

/// Fills filters until a key is rejected.
fn fill(args: &Args, options: &RemovableOptions) -> Result<(), RemovableError> {
    let mut loads = Vec::new();
    for fill in 0..args.fills {
        let mut filter = options.empty_filter()?;
        let mut numbers = Numbers::new(args.seed, fill + 1);
        let mut hashes = [0; BATCH];
        loop {
            hashes.fill_with(|| numbers.next());
            match filter.insert_hashes(&hashes) {
                Ok(()) => {}
                Err(RemovableError::Full { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        loads.push(filter.load());
    }
    loads.sort_by(f64::total_cmp);
    if let [least, .., most] | [least @ most] = loads[..] {
        println!(
            "{} fills of filters for {} keys: the first key is rejected at a load of {least:.4} \
             to {most:.4}, median {:.4}",
            args.fills,
            args.keys,
            loads[loads.len() / 2]
        );
    }
    Ok(())
}

/// Removes present keys and inserts others, at full load.
fn churn(args: &Args, options: &RemovableOptions) -> Result<(), Box<dyn Error>> {
    let mut filter = options.empty_filter()?;
    let mut numbers = Numbers::new(args.seed, 0);
    let (mut live, mut rejected) = (Vec::new(), 0);
    add(&mut filter, &mut numbers, args.keys as usize, &mut live, &mut rejected)?;
    println!(
        "{} keys in {} bytes, {:.2} bits per key, load {:.4}; {rejected} rejected",
        live.len(),
        filter.memory_bytes(),
        filter.memory_bytes() as f64 * 8.0 / live.len() as f64,
        filter.load()
    );
    rate(&filter, &mut numbers);
    rejected = 0;
    let (start, mut checked, mut done) = (Instant::now(), 0_u64, 0);
    let mut found = Bitmask::new();
    while done < args.operations {
        let mut out = [0; BATCH];
        for hash in &mut out {
            let at = numbers.next() % live.len() as u64;
            *hash = live.swap_remove(at as usize);
        }
        if filter.remove_hashes(&out, &mut found) != BATCH {
            return Err(
                format!("after {done} operations: a key was not there to be removed").into()
            );
        }
        let missing = args.keys as usize - live.len();
        add(&mut filter, &mut numbers, missing, &mut live, &mut rejected)?;
        done += (BATCH + missing) as u64;
        // Ten checks in all, the last one at the end.
        if done * 10 / args.operations.max(1) > checked || done >= args.operations {
            checked = done * 10 / args.operations;
            filter.contains_hashes(&live, &mut found);
            if found.count_misses() > 0 || filter.keys_inserted() != live.len() as u64 {
                return Err(format!(
                    "after {done} operations: {} keys are lost",
                    found.count_misses()
                )
                .into());
            }
        }
    }
    println!(
        "{done} additions and removals: {rejected} rejected, 0 keys lost, load {:.4}, {:.1} s",
        filter.load(),
        start.elapsed().as_secs_f64()
    );
    rate(&filter, &mut numbers);
    Ok(())
}

/// Inserts as many new keys. Keys that are not rejected become live.
fn add(
    filter: &mut RemovableFilter,
    numbers: &mut Numbers,
    count: usize,
    live: &mut Vec<u64>,
    rejected: &mut u64,
) -> Result<(), RemovableError> {
    let mut hashes: Vec<u64> = (0..count).map(|_| numbers.next()).collect();
    let mut rest = &mut hashes[..];
    loop {
        match filter.insert_hashes(rest) {
            Ok(()) => {
                live.extend_from_slice(rest);
                return Ok(());
            }
            Err(RemovableError::Full { inserted, .. }) => {
                live.extend_from_slice(&rest[..inserted]);
                *rejected += 1;
                rest = &mut rest[inserted + 1..];
            }
            Err(error) => return Err(error),
        }
    }
}

/// Counts false positives among keys that were never inserted.
fn rate(filter: &RemovableFilter, numbers: &mut Numbers) {
    let (mut hits, mut passed) = (Bitmask::new(), 0);
    const QUERIES: usize = 8_000_000;
    for _ in 0..QUERIES / 8_000 {
        let absent: Vec<u64> = (0..8_000).map(|_| numbers.next()).collect();
        filter.contains_hashes(&absent, &mut hits);
        passed += hits.count_hits();
    }
    println!(
        "  false positives: {:.4} % of {QUERIES}, expected {:.4} %",
        100.0 * passed as f64 / QUERIES as f64,
        100.0 * filter.expected_false_positive_rate()
    );
}

/// Removes a million keys that were never inserted, and counts the inserted keys that are lost.
fn misuse(args: &Args, options: &RemovableOptions) -> Result<(), RemovableError> {
    const REMOVALS: usize = 1_000_000;
    let mut filter = options.empty_filter()?;
    let mut numbers = Numbers::new(args.seed, u64::MAX);
    let (mut live, mut rejected) = (Vec::new(), 0);
    add(&mut filter, &mut numbers, args.keys as usize, &mut live, &mut rejected)?;
    let never: Vec<u64> = (0..REMOVALS).map(|_| numbers.next()).collect();
    let mut found = Bitmask::new();
    let carried_out = filter.remove_hashes(&never, &mut found);
    filter.contains_hashes(&live, &mut found);
    println!(
        "{REMOVALS} removals of keys that were never added: {carried_out} found a tag, {} keys \
         are lost by it",
        found.count_misses()
    );
    Ok(())
}

/// Distinct, well-mixed numbers: SplitMix64 (Steele, Lea, Flood 2014).
struct Numbers(u64);

impl Numbers {
    fn new(seed: u64, part: u64) -> Self {
        Numbers(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ part.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}
