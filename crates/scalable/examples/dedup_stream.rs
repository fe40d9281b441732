//! Deduplicates a stream of unknown length: prints the lines that are certainly new, and statistics
//! to standard error.
//!
//! ```text
//! cargo run --release -p blocked-bloom-scalable --example dedup_stream
//!     generated URLs of a crawl, compared with a HashSet
//! cargo run --release -p blocked-bloom-scalable --example dedup_stream -- - < urls
//!     lines of standard input; new lines are printed
//! ```
//!
//! A new line is dropped with the probability of a false positive, below 0.1 %. A repeated line is
//! never printed. The run with URLs checks both.
#![expect(clippy::print_stderr, clippy::print_stdout, reason = "an example for the command line")]

use std::collections::HashSet;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use blocked_bloom::Bitmask;
use blocked_bloom_scalable::ScalableOptions;
use clap::Parser;

/// Prints the lines that are certainly new
#[derive(Parser)]
struct Args {
    /// File of lines, or - for standard input; without it, generated URLs are compared with a
    /// HashSet
    file: Option<PathBuf>,
    /// Maximum fraction of new lines that may be dropped, for any length of the stream
    #[arg(long, default_value_t = 0.001)]
    rate: f64,
}

/// Lines looked up at once: enough for the batch kernel, and few enough to keep in memory.
const BATCH: usize = 4_096;

/// Calls `new` for each line that is certainly new.
fn deduplicate(
    lines: impl Iterator<Item = io::Result<Vec<u8>>>,
    rate: f64,
    mut new: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), Box<dyn Error>> {
    let mut seen = ScalableOptions::new(rate, 10_000).build()?;
    let (mut lines, mut count, mut added) = (lines.peekable(), 0, Bitmask::new());
    while lines.peek().is_some() {
        let batch = lines.by_ref().take(BATCH).collect::<io::Result<Vec<Vec<u8>>>>()?;
        seen.insert_batch_new(&batch, &mut added)?;
        added.hits().try_for_each(|i| new(&batch[i]))?;
        count += batch.len();
    }
    let (links, bytes, inserted) = (seen.links().len(), seen.memory_bytes(), seen.keys_inserted());
    let bits = 8.0 * bytes as f64 / inserted.max(1) as f64;
    eprintln!("{count} lines, {inserted} new");
    eprintln!("{links} filters in the chain, {bytes} bytes, {bits:.1} bits for each new line");
    eprintln!(
        "false positives: {:.4} % now, {:.4} % at most",
        100.0 * seen.estimated_false_positive_rate(),
        100.0 * seen.false_positive_rate()
    );
    Ok(())
}

fn print_new_lines(file: &Path, rate: f64) -> Result<(), Box<dyn Error>> {
    let mut input: Box<dyn BufRead> = match file.to_str() {
        Some("-") => Box::new(io::stdin().lock()),
        _ => Box::new(BufReader::new(
            File::open(file).map_err(|error| format!("{}: {error}", file.display()))?,
        )),
    };
    let lines = std::iter::from_fn(|| {
        let mut line = Vec::new();
        match input.read_until(b'\n', &mut line) {
            Ok(0) => None,
            read => Some(read.map(|_| line)),
        }
    });
    let mut output = BufWriter::new(io::stdout().lock());
    deduplicate(lines, rate, |line| output.write_all(line))?;
    Ok(output.flush()?)
}

/// A crawl finds two links per page: a nearby page, which is often known, and any other page.
fn invented_urls(rate: f64) -> Result<(), Box<dyn Error>> {
    let mut state = 1_u64;
    let urls = (0..500_000_u64).flat_map(|page| {
        state = state.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        [page.saturating_sub(state >> 52), state >> 42]
            .map(|page| format!("https://site{}.example/page/{page}", page % 1_000))
    });
    let (mut truth, mut passed) = (HashSet::new(), HashSet::new());
    let lines = urls.map(|url| {
        truth.insert(url.clone());
        Ok(url.into_bytes())
    });
    deduplicate(lines, rate, |url| {
        assert!(passed.insert(url.to_vec()), "passed twice");
        Ok(())
    })?;
    let dropped = truth.len() - passed.len();
    let share = dropped as f64 / truth.len() as f64;
    println!(
        "a HashSet counts {} distinct URLs; {dropped} of them ({:.4} %) were taken for seen",
        truth.len(),
        100.0 * share
    );
    assert!(share <= rate, "more than {rate} were dropped");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let done = match &args.file {
        Some(file) => print_new_lines(file, args.rate),
        None => invented_urls(args.rate),
    };
    match done {
        // The reader closed the pipe.
        Err(error) if error.downcast_ref().map(io::Error::kind) == Some(ErrorKind::BrokenPipe) => {
            Ok(())
        }
        done => done,
    }
}
