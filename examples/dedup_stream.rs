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
use std::io::{self, BufRead, BufWriter, Write};

use blocked_bloom::{Bitmask, ScalableBloomFilter};

/// The target for the whole stream, however long it gets.
const RATE: f64 = 0.001;
const FIRST_ITEMS: u64 = 10_000;
/// Lines asked at once: enough for the batch kernel, few enough to keep them waiting.
const BATCH: usize = 4_096;

struct Dedup {
    seen: ScalableBloomFilter,
    answers: Bitmask,
    lines: u64,
}

impl Dedup {
    fn new() -> Result<Self, Box<dyn Error>> {
        let seen = ScalableBloomFilter::new(RATE, FIRST_ITEMS)?;
        Ok(Dedup { seen, answers: Bitmask::new(), lines: 0 })
    }

    /// Calls `new` for each line that was certainly not there before, and forgets the batch.
    fn pass<E>(
        &mut self,
        batch: &mut Vec<String>,
        mut new: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), Box<dyn Error>>
    where
        E: Error + 'static,
    {
        self.seen.insert_batch(batch, &mut self.answers)?;
        self.lines += batch.len() as u64;
        for i in self.answers.misses() {
            new(&batch[i])?;
        }
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

fn standard_input() -> Result<(), Box<dyn Error>> {
    let (mut dedup, mut batch) = (Dedup::new()?, Vec::with_capacity(BATCH));
    let mut output = BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        batch.push(line?);
        if batch.len() == BATCH {
            dedup.pass(&mut batch, |line| writeln!(output, "{line}"))?;
        }
    }
    dedup.pass(&mut batch, |line| writeln!(output, "{line}"))?;
    output.flush()?;
    dedup.report();
    Ok(())
}

/// A crawl finds two links on each page: one to a page near by, often known, and one anywhere.
fn invented_urls() -> Result<(), Box<dyn Error>> {
    let (mut dedup, mut batch) = (Dedup::new()?, Vec::with_capacity(BATCH));
    let (mut truth, mut printed) = (HashSet::new(), 0_u64);
    let mut state = 1_u64;
    for page in 0..1_000_000_u64 {
        state = state.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        let near = page.saturating_sub(state >> 52);
        for target in [near, state >> 42] {
            let url = format!("https://site{}.example/page/{target}", target % 1_000);
            truth.insert(url.clone());
            batch.push(url);
        }
        if batch.len() >= BATCH || page == 999_999 {
            dedup.pass(&mut batch, |_| {
                printed += 1;
                Ok::<(), io::Error>(())
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
    if std::env::args().nth(1).as_deref() == Some("-") { standard_input() } else { invented_urls() }
}
