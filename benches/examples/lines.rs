//! The input and the baseline of `tools/dedup.sh`: generates lines to deduplicate, and reads them
//! in a loop.
//!
//! ```text
//! cargo run --release -p blocked-bloom-benches --example lines -- make 20000000 FILE
//!     lines of 2 to 9 words, two for every three distinct ones that there could be
//! cargo run --release -p blocked-bloom-benches --example lines -- read FILE
//!     counts lines by `BufRead::read_until`
//! cargo run --release -p blocked-bloom-benches --example lines -- set FILE
//!     counts distinct lines by a `HashSet` of them
//! ```
#![expect(clippy::print_stdout, reason = "a program for the command line")]

use std::collections::HashSet;
use std::env;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};

use benches::workload::hash;

const WORDS: &str = include_str!("../../tests/fixtures/keys/words.txt");

/// This many lines, chosen of 3/5 as many: 1 - 5/3 e^-1 ... of them were there before.
fn make(count: u64, path: &str) -> io::Result<()> {
    let words: Vec<&[u8]> = WORDS.lines().map(str::as_bytes).collect();
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    for i in 0..count {
        let id = hash(i) % (count * 3 / 5).max(1);
        for word in 0..id % 8 + 2 {
            if word > 0 {
                out.write_all(b" ")?;
            }
            let at = hash(id * 16 + word + count) % words.len() as u64;
            out.write_all(words[at as usize])?;
        }
        out.write_all(b"\n")?;
    }
    out.flush()
}

fn read_lines(path: &str, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let mut input = BufReader::with_capacity(256 << 10, File::open(path)?);
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        take(&line);
        line.clear();
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["make", count, path] => make(count.parse()?, path)?,
        ["read", path] => {
            let mut count = 0_u64;
            read_lines(path, |_| count += 1)?;
            println!("{count}");
        }
        ["set", path] => {
            let mut seen = HashSet::new();
            read_lines(path, |line| _ = seen.contains(line) || seen.insert(line.to_vec()))?;
            println!("{}", seen.len());
        }
        _ => return Err("give make COUNT FILE, read FILE or set FILE".into()),
    }
    Ok(())
}
