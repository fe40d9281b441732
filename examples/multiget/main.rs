//! Looks up keys in the table files of a small engine, with and without filters, and checks every
//! answer.
//!
//! Flushes dictionary words to tables that each cover the whole key range, like the newest runs of
//! an LSM tree. A third of the words are held out, so that absent keys look like stored ones. Then
//! scans directories of file paths, using filters with and without prefixes. After a wrong answer,
//! the exit status is non-zero.
//!
//! ```text
//! cargo run --release -p multiget
//! ```
#![expect(clippy::print_stdout, reason = "an example for the command line")]

mod lookup;
mod scans;
mod table;

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

use blocked_bloom::{Bitmask, BloomFilter, FilterOptions, KeyHasher, Sizing};

use crate::lookup::{Answers, get_each, multi_get};
use crate::table::{Table, flush};

const TABLES: usize = 8;

/// Rounds of all read paths, interleaved so that noise affects all equally; times are medians.
/// Debug builds only check the answers.
const ROUNDS: usize = if cfg!(debug_assertions) { 1 } else { 5 };

type ReadPath<'a> = (&'static str, Box<dyn Fn() -> io::Result<Answers<'a>> + 'a>);

fn main() -> Result<(), Box<dyn Error>> {
    // All settings of the filters are here. Code that builds, opens or queries filters takes them
    // from these options.
    let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
    let (hasher, key_hash) = (options.hasher()?, options.key_hash());
    let folder = tempfile::tempdir()?;
    eprintln!("flushing {TABLES} tables to {}", folder.path().display());
    let lines = fixture("words.txt")?;
    let mut words: Vec<&[u8]> = lines.lines().map(str::as_bytes).collect();
    shuffle(&mut words);
    let (held_out, stored) = words.split_at(words.len() / 3);

    let (mut tables, mut truth) = (Vec::new(), HashMap::new());
    for i in 0..TABLES {
        let mut run: Vec<_> = stored.iter().skip(i).step_by(TABLES).copied().collect();
        run.sort_unstable();
        let values: Vec<[u8; 8]> = run.iter().map(|key| hasher.hash(key).to_le_bytes()).collect();
        let path = folder.path().join(format!("{i}.table"));
        flush(&path, run.iter().zip(&values), &options)?;
        tables.push(Table::open(&path, key_hash)?);
        truth.extend(run.into_iter().zip(values));
    }
    let (mut passed, mut predicted, mut hits) = (0, 0.0, Bitmask::new());
    for table in &tables {
        table.filter.contains_batch(held_out, &mut hits);
        passed += hits.count_hits();
        predicted += table.filter.expected_false_positive_rate() / TABLES as f64;
    }
    let bytes: u64 = tables.iter().map(|table| table.filter.params().stored_bytes()).sum();
    println!(
        "{} words in {TABLES} tables, filters of {:.2} bits per word, kernel {}",
        stored.len(),
        8.0 * bytes as f64 / stored.len() as f64,
        tables[0].filter.kernel()
    );
    let measured = 100.0 * passed as f64 / (TABLES * held_out.len()) as f64;
    println!("absent words pass {measured:.3} % of filters, predicted {:.3} %", 100.0 * predicted);

    // Look up as many absent words as stored ones.
    let of_both = held_out.iter().cycle().zip(stored.iter().cycle()).take(words.len());
    let mut lookups: Vec<&[u8]> = of_both.flat_map(|(absent, stored)| [*absent, *stored]).collect();
    shuffle(&mut lookups);
    let bare: Vec<Table> = tables.iter().map(Table::to_unfiltered).collect();
    let (tables, bare, keys) = (&tables[..], &bare[..], &lookups[..]);
    let prefetch = |table: &Table, hash| table.filter.prefetch_hash(hash);
    let opened = |table: &Table, hash| table.filter.contains_hash(hash);
    // An engine that keeps filters as bytes in a block cache need not open one for a single lookup.
    let fetched =
        |table: &Table, hash| BloomFilter::contains_hash_in(table.filter_bytes(), key_hash, hash);
    let each = || get_each(tables, hasher, keys, prefetch, opened);
    let each_in_bytes = || get_each(tables, hasher, keys, |_, _| (), fetched);
    let ways: [ReadPath<'_>; 4] = [
        ("MultiGet of 128", Box::new(|| multi_get(tables, hasher, keys))),
        ("one key a call", Box::new(each)),
        ("one key a call, no filter kept open", Box::new(each_in_bytes)),
        ("MultiGet of 128, no filter", Box::new(|| multi_get(bare, hasher, keys))),
    ];
    let (mut wrong, mut reads, mut times) = (0, [0; 4], [const { Vec::new() }; 4]);
    for round in 1..=ROUNDS {
        eprintln!("{} lookups in {} ways, round {round} of {ROUNDS}", keys.len(), ways.len());
        for (i, (_, look_up)) in ways.iter().enumerate() {
            let start = Instant::now();
            let answers = look_up()?;
            times[i].push(start.elapsed().as_nanos() / keys.len() as u128);
            reads[i] = answers.block_reads;
            let is_wrong =
                |(key, value): &(_, &Option<&[u8]>)| truth.get(*key).map(|v| &v[..]) != **value;
            wrong += keys.iter().zip(&answers.values).filter(is_wrong).count();
        }
    }
    println!("\n{:<36}{:>12}{:>15}", "lookups, half of absent words", "block reads", "ns each");
    for (((name, _), reads_of), times) in ways.iter().zip(reads).zip(&mut times) {
        times.sort_unstable();
        let skips_none = reads_of == reads[3];
        let why = if skips_none { "   skips no table: nothing says what is absent" } else { "" };
        println!("{name:<36}{reads_of:>12}{:>15}{why}", times[ROUNDS / 2]);
    }
    wrong += scans::report(folder.path(), &options)?;
    if wrong > 0 {
        return Err(format!("{wrong} wrong answers").into());
    }
    let fewer = reads[3] as f64 / reads[0] as f64;
    println!(
        "\n{fewer:.0} times fewer block reads by {bytes} bytes of filters, every answer right"
    );
    Ok(())
}

/// Reads one of the repository's key files, with one key per line.
fn fixture(name: &str) -> io::Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/keys").join(name);
    fs::read_to_string(path)
}

/// Shuffles into the same pseudo-random order in every run.
fn shuffle<T>(items: &mut [T]) {
    for i in (1..items.len()).rev() {
        let random = KeyHasher::default().hash((i as u64).to_le_bytes());
        items.swap(i, (random % (i as u64 + 1)) as usize);
    }
}
