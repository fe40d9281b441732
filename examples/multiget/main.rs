//! A small LSM engine, and a program that checks every answer of it.
//!
//! The keys are file paths. The program sets values, deletes keys and whole directories, and does
//! the same in a `BTreeMap`. Then it opens the engine again, compares all lookups and scans with
//! the map, once with filters, once without, and once with a damaged filter, and counts the blocks
//! that were read. After a wrong answer, the exit status is non-zero.
//!
//! ```text
//! cargo run --release -p multiget
//! ```
//!
//! `engine.rs` has the read and write paths, `table.rs` the table files, `memtable.rs` the newest
//! changes and their log, `record.rs` the stored form of entries.
#![expect(clippy::print_stdout, reason = "an example for the command line")]

mod engine;
mod memtable;
mod record;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

use blocked_bloom::{FilterOptions, KeyHasher, PrefixExtractor, Sizing};

use crate::engine::Engine;

/// Writes per key. The later ones replace values or delete keys.
const WRITES: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    // A scan lists a directory such as /usr/share/doc/bash/.
    let rule = PrefixExtractor::delimiter(b'/', 5);
    let options = FilterOptions::new(Sizing::BitsPerKey(10.0)).with_prefixes(rule.clone());
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let paths = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/keys/paths.txt");
    let paths = fs::read_to_string(paths)?;
    let keys: Vec<&[u8]> = paths.lines().map(str::as_bytes).collect();

    eprintln!("writing {} changes of {} keys", WRITES * keys.len(), keys.len());
    let mut expected = BTreeMap::new();
    write(Engine::open(folder, options.clone())?, &keys, &rule, &mut expected)?;

    // Recovery: the engine's tables and log, opened again.
    let mut engine = Engine::open(folder, options.clone())?;
    let (mut tables, mut bytes, mut passed) = (0, 0, 0);
    let absent: Vec<_> = keys.iter().map(|key| [key, &b".absent"[..]].concat()).collect();
    for table in engine.tables() {
        (tables, bytes) = (tables + 1, bytes + table.filter.params().stored_bytes());
        passed += absent.iter().filter(|key| table.filter.contains(key)).count();
    }
    println!(
        "{} keys in {tables} tables, {bytes} bytes of filters, of which absent keys pass {:.2} %",
        expected.len(),
        100.0 * passed as f64 / (tables * absent.len()) as f64
    );
    let prefixes: BTreeSet<&[u8]> = keys.iter().filter_map(|key| rule.prefix(key)).collect();
    let check = Check { keys: &keys, absent: &absent, prefixes: &prefixes, expected: &expected };
    println!("\n{:<24}{:>20}{:>20}{:>20}", "blocks read (ns each) by", "get", "MultiGet", "scan");
    let with_filters = check.run("filters", &engine)?;

    // One bit of the largest filter is damaged on disk. Its table is read more often, and answers
    // stay right.
    let largest = engine.tables().max_by_key(|table| table.filter.params().stored_bytes());
    let largest = largest.ok_or("no table")?;
    let (path, filter) = (largest.path().to_owned(), largest.filter_range());
    let intact = fs::read(&path)?;
    let mut table = intact.clone();
    table[filter.start + 100] ^= 1;
    drop(engine);
    replace(&path, &table)?;
    engine = Engine::open(folder, options.clone())?;
    let damaged = check.run("a damaged filter", &engine)?;
    drop(engine);
    replace(&path, &intact)?;

    engine = Engine::open(folder, options)?;
    engine.drop_filters();
    let without = check.run("no filters", &engine)?;
    if !(with_filters < damaged && damaged < without) {
        return Err(format!("blocks read: {with_filters}, {damaged}, {without}").into());
    }
    println!(
        "\nevery answer was right; filters saved {:.0} % of the block reads",
        100.0 * (without - with_filters) as f64 / without as f64
    );
    Ok(())
}

/// Sets and deletes keys in an order that looks random, in the engine and in the map.
fn write<'k>(
    mut engine: Engine,
    keys: &[&'k [u8]],
    rule: &PrefixExtractor,
    expected: &mut BTreeMap<&'k [u8], Vec<u8>>,
) -> io::Result<()> {
    for i in 0..WRITES * keys.len() {
        let random = random(i);
        let key = keys[random as usize % keys.len()];
        match (random >> 32) % 1_000 {
            // The keys of a directory, or all later ones where a path has none.
            0 => {
                let start = rule.prefix(key).unwrap_or(key);
                let end = [start, &[0xff]].concat();
                engine.delete_range(start, &end)?;
                expected.retain(|key, _| *key < start || **key >= end[..]);
            }
            1..300 => {
                engine.write(key, None)?;
                expected.remove(key);
            }
            _ => {
                let value = i.to_string().into_bytes();
                engine.write(key, Some(&value))?;
                expected.insert(key, value);
            }
        }
    }
    Ok(())
}

/// The lookups, and what their answers must be.
struct Check<'a> {
    keys: &'a [&'a [u8]],
    absent: &'a [Vec<u8>],
    prefixes: &'a BTreeSet<&'a [u8]>,
    expected: &'a BTreeMap<&'a [u8], Vec<u8>>,
}

impl Check<'_> {
    /// Looks up everything, and prints and returns the number of blocks that were read.
    fn run(&self, name: &str, engine: &Engine) -> Result<u64, Box<dyn Error>> {
        // As many keys that were never written as others.
        let both = self.keys.iter().zip(self.absent).flat_map(|(key, absent)| [*key, absent]);
        let keys: Vec<&[u8]> = both.collect();
        let mut wrong = 0;
        let (mut single, mut batched, mut scanned) = (0, 0, 0);
        let start = Instant::now();
        for key in &keys {
            let found = engine.get(key, &mut single)?;
            wrong += usize::from(found != self.expected.get(key).map(|value| &value[..]));
        }
        let get = start.elapsed().as_nanos() / keys.len() as u128;
        let start = Instant::now();
        let found = engine.multi_get(&keys, &mut batched)?;
        let multi_get = start.elapsed().as_nanos() / keys.len() as u128;
        for (key, found) in keys.iter().zip(found) {
            wrong += usize::from(found != self.expected.get(key).map(|value| &value[..]));
        }
        let start = Instant::now();
        for prefix in self.prefixes {
            let found = engine.scan(prefix, &mut scanned)?;
            let expected = self.expected.range(*prefix..);
            let expected = expected.take_while(|(key, _)| key.starts_with(prefix));
            let is_equal = found.into_iter().eq(expected.map(|(key, value)| (*key, &value[..])));
            wrong += usize::from(!is_equal);
        }
        let scan = start.elapsed().as_nanos() / self.prefixes.len() as u128;
        let cells = [(single, get), (batched, multi_get), (scanned, scan)];
        let cells = cells.map(|(blocks, time)| format!("{:>20}", format!("{blocks} ({time})")));
        println!("{name:<24}{}", cells.concat());
        match wrong {
            0 => Ok(single + batched + scanned),
            _ => Err(format!("{wrong} wrong answers with {name}").into()),
        }
    }
}

/// Replaces a file as a whole, since a mapped one must not change.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    fs::write(&temporary, bytes)?;
    fs::rename(temporary, path)
}

/// The same numbers in every run.
fn random(i: usize) -> u64 {
    KeyHasher::default().hash((i as u64).to_le_bytes())
}
