//! A small LSM engine, and a program that checks every answer of it.
//!
//! The keys are file paths. The program sets values, deletes keys and ranges of keys, and does the
//! same in a `BTreeMap`. Then it opens the engine again and compares all lookups with the map: with
//! filters, with a damaged filter, and without filters. It counts the blocks that were read. After
//! a wrong answer, the exit status is non-zero.
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

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use blocked_bloom::{BloomFilter, FilterOptions, KeyHasher, Sizing};

use crate::engine::Engine;

/// Writes per key. The later ones replace values or delete keys.
const WRITES: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let paths = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/keys/paths.txt");
    let paths = fs::read_to_string(paths)?;
    let keys: Vec<&[u8]> = paths.lines().map(str::as_bytes).collect();

    eprintln!("writing {} changes of {} keys", WRITES * keys.len(), keys.len());
    let mut expected = BTreeMap::new();
    write(Engine::open(folder, options.clone())?, &keys, &mut expected)?;

    // Recovery: the engine's tables and log, opened again after a change was only logged in part.
    File::options().append(true).open(folder.join("log"))?.write_all(&[30, 0, 0, 0, 4, 0])?;
    let engine = Engine::open(folder, options.clone())?;
    let sizes = engine.tables.iter().map(|(_, table)| table.filter.params().stored_bytes());
    let (tables, bytes): (_, u64) = (engine.tables.len(), sizes.sum());
    println!("{} keys in {tables} tables, {bytes} bytes of filters\n", expected.len());
    println!("{:<20}{:>20}{:>20}", "blocks read (ns each)", "get", "MultiGet");
    // As many keys that were never written as others.
    let absent: Vec<_> = keys.iter().map(|key| [key, &b".absent"[..]].concat()).collect();
    let pairs = keys.iter().zip(&absent);
    let lookups: Vec<&[u8]> = pairs.flat_map(|(key, absent)| [*key, absent]).collect();
    let with_filters = check("filters", &engine, &lookups, &expected)?;

    // One bit of the oldest and largest filter is damaged on disk. Its table is read more often,
    // and answers stay right.
    let (_, oldest) = engine.tables.last().ok_or("no table")?;
    let mut table = fs::read(&oldest.path)?;
    table[oldest.filter_start + 100] ^= 1;
    fs::write(&oldest.path, table)?;
    let mut engine = Engine::open(folder, options.clone())?;
    let damaged = check("a damaged filter", &engine, &lookups, &expected)?;

    for (_, table) in &mut engine.tables {
        table.filter = BloomFilter::pass_all(options.key_hash()).to_filter()?;
    }
    let without = check("no filters", &engine, &lookups, &expected)?;
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
    expected: &mut BTreeMap<&'k [u8], Vec<u8>>,
) -> io::Result<()> {
    for i in 0..WRITES * keys.len() {
        // The same numbers in every run.
        let random = KeyHasher::default().hash((i as u64).to_le_bytes());
        let at = random as usize % keys.len();
        let key = keys[at];
        match (random >> 32) % 1_000 {
            // A hundred neighbours, or fewer at the end of the sorted keys.
            0 => {
                let end = keys[(at + 100).min(keys.len() - 1)];
                engine.delete_range(key, end)?;
                expected.retain(|other, _| *other < key || *other >= end);
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

/// Looks up all keys one by one and in batches, and compares the answers with the map. Prints and
/// returns the number of blocks that were read.
fn check(
    name: &str,
    engine: &Engine,
    keys: &[&[u8]],
    expected: &BTreeMap<&[u8], Vec<u8>>,
) -> Result<u64, Box<dyn Error>> {
    let expected: Vec<_> = keys.iter().map(|key| expected.get(key).map(|v| &v[..])).collect();
    let before = engine.block_reads();
    let start = Instant::now();
    let found = keys.iter().map(|key| engine.get(key)).collect::<io::Result<Vec<_>>>()?;
    let get = start.elapsed().as_nanos() / keys.len() as u128;
    let middle = engine.block_reads();
    let start = Instant::now();
    let found_by_batch = engine.multi_get(keys)?;
    let multi_get = start.elapsed().as_nanos() / keys.len() as u128;
    let after = engine.block_reads();
    if found != expected || found_by_batch != expected {
        return Err(format!("wrong answers with {name}").into());
    }
    let [single, batched] = [(middle - before, get), (after - middle, multi_get)]
        .map(|(blocks, nanoseconds)| format!("{blocks} ({nanoseconds})"));
    println!("{name:<20}{single:>20}{batched:>20}");
    Ok(after - before)
}
