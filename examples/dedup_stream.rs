//! Deduplicates a stream of unknown length: prints what its filter has certainly not seen before, and to standard error what that took.
//!
//! ```text
//! cargo run --release --example dedup_stream                 invented URLs of a crawl, counted against a HashSet
//! cargo run --release --example dedup_stream -- - < urls     lines of standard input; the new ones are printed
//! ```
//!
//! A new line is dropped with the probability of a false positive, under 0.1 %; a repeated one is never printed.
#![expect(clippy::print_stderr, clippy::print_stdout, reason = "an example for the command line")]

use std::collections::HashSet;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use blocked_bloom::{Bitmask, ScalableBloomFilter};
use clap::Parser;

/// Prints the lines that were certainly not there before
#[derive(Parser)]
struct Args {
    /// File of lines, or - for standard input; without one, invented URLs of a crawl are counted against
    /// a HashSet
    file: Option<PathBuf>,
    /// Share of new lines that may be dropped, however long the stream gets
    #[arg(long, default_value_t = 0.001)]
    rate: f64,
}

const FIRST_ITEMS: u64 = 10_000;
/// Lines asked at once: enough for the batch kernel, few enough to keep them waiting.
const BATCH: usize = 4_096;

struct Dedup {
    seen: ScalableBloomFilter,
    answers: Bitmask,
    lines: u64,
}

impl Dedup {
    fn new(rate: f64) -> Result<Self, Box<dyn Error>> {
        let seen = ScalableBloomFilter::new(rate, FIRST_ITEMS)?;
        Ok(Dedup { seen, answers: Bitmask::new(), lines: 0 })
    }

    /// Calls `new` for each line that was certainly not there before, and forgets the batch.
    fn pass(
        &mut self,
        batch: &mut Vec<Vec<u8>>,
        mut new: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), Box<dyn Error>> {
        self.seen.insert_batch(batch, &mut self.answers)?;
        self.lines += batch.len() as u64;
        self.answers.misses().try_for_each(|i| new(&batch[i]))?;
        batch.clear();
        Ok(())
    }

    fn report(&self) {
        let (new, bytes) = (self.seen.keys_inserted(), self.seen.memory_bytes());
        eprintln!("{} lines, {new} new", self.lines);
        eprintln!(
            "{} links, {bytes} bytes, {:.1} bits for each new line",
            self.seen.links().len(),
            8.0 * bytes as f64 / new.max(1) as f64
        );
        eprintln!(
            "false positives: {:.4} % now, {:.4} % at most",
            100.0 * self.seen.estimated_false_positive_rate(),
            100.0 * self.seen.false_positive_rate()
        );
    }
}

fn deduplicate(file: &Path, rate: f64) -> Result<(), Box<dyn Error>> {
    let mut input: Box<dyn BufRead> = match file.to_str() {
        Some("-") => Box::new(io::stdin().lock()),
        _ => Box::new(BufReader::new(
            File::open(file).map_err(|error| format!("{}: {error}", file.display()))?,
        )),
    };
    let (mut dedup, mut batch) = (Dedup::new(rate)?, Vec::with_capacity(BATCH));
    let mut output = BufWriter::new(io::stdout().lock());
    loop {
        let mut line = Vec::new();
        let is_end = input.read_until(b'\n', &mut line)? == 0;
        if !is_end {
            batch.push(line);
        }
        if is_end || batch.len() == BATCH {
            dedup.pass(&mut batch, |line| output.write_all(line))?;
        }
        if is_end {
            break;
        }
    }
    output.flush()?;
    dedup.report();
    Ok(())
}

/// A crawl finds two links on each page: one to a page near by, often known, and one anywhere.
fn invented_urls(rate: f64) -> Result<(), Box<dyn Error>> {
    let (mut dedup, mut batch) = (Dedup::new(rate)?, Vec::with_capacity(BATCH));
    let (mut truth, mut printed) = (HashSet::new(), 0_u64);
    let mut state = 1_u64;
    for page in 0..1_000_000_u64 {
        state = state.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        let near = page.saturating_sub(state >> 52);
        for target in [near, state >> 42] {
            let url = format!("https://site{}.example/page/{target}", target % 1_000);
            truth.insert(url.clone());
            batch.push(url.into_bytes());
        }
        if batch.len() >= BATCH || page == 999_999 {
            dedup.pass(&mut batch, |_| {
                printed += 1;
                Ok(())
            })?;
        }
    }
    dedup.report();
    let dropped = truth.len() as u64 - printed;
    println!(
        "a HashSet counts {} distinct URLs; {dropped} of them ({:.4} %) were taken for seen",
        truth.len(),
        100.0 * dropped as f64 / truth.len() as f64
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let done = match &args.file {
        Some(file) => deduplicate(file, args.rate),
        None => invented_urls(args.rate),
    };
    match done {
        // Whoever reads the lines has seen enough.
        Err(error) if error.downcast_ref().map(io::Error::kind) == Some(ErrorKind::BrokenPipe) => {
            Ok(())
        }
        done => done,
    }
}
