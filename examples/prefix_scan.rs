//! Scans all keys that start with given bytes, and uses filters of key prefixes to find the tables
//! that must be read.
//!
//! ```text
//! cargo run --release --example prefix_scan
//! ```
//!
//! The keys are file paths. The prefix of a key is its directory, such as `/usr/share/doc/bash/`.
//! Each directory is in one of eight tables, except for a third of the directories, which are in no
//! table. Prints the sizes of filters of paths, of directories, and of both, and for three kinds of
//! scans the number of tables read. Every scan must find the same keys as a scan of all keys.
#![expect(clippy::print_stdout, reason = "an example for the command line")]

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;

use blocked_bloom::{
    Bitmask, BloomFilter, BuildError, FilterOptions, KeyHasher, PrefixExtractor, Sizing,
};

const PATHS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/keys/paths.txt");
const TABLES: usize = 8;

/// The sorted keys of one table, or of all tables.
type Run<'k> = BTreeSet<&'k [u8]>;

fn scan<'k>(run: &Run<'k>, start: &[u8]) -> usize {
    run.range(start..).take_while(|key| key.starts_with(start)).count()
}

fn main() -> Result<(), Box<dyn Error>> {
    let lines = fs::read(PATHS)?;
    let rule = PrefixExtractor::delimiter(b'/', 5);
    let mut directories = Run::new();
    let mut runs: [Run<'_>; TABLES] = Default::default();
    for path in lines.split(|&byte| byte == b'\n') {
        let Some(directory) = rule.prefix(path) else { continue };
        directories.insert(directory);
        let random = KeyHasher::default().hash(directory) as usize;
        if !random.is_multiple_of(3) {
            runs[random / 3 % TABLES].insert(path);
        }
    }
    let all: Run<'_> = runs.iter().flatten().copied().collect();
    println!("{} paths in {TABLES} tables", all.len());

    let options = || FilterOptions::new(Sizing::BitsPerKey(10.0));
    let paths = filters("paths", &runs, options())?;
    let both = filters("paths and directories", &runs, options().with_prefixes(rule.clone()))?;
    let only = filters("directories", &runs, options().with_only_prefixes(rule.clone()))?;

    println!();
    println!("scans of                 number   tables read   in vain   without filters");
    let whole: Vec<Vec<u8>> = directories.iter().map(|start| start.to_vec()).collect();
    let some: Vec<Vec<u8>> = whole.iter().map(|start| [start, &b"lib"[..]].concat()).collect();
    let many = vec![b"/usr/share/".to_vec(), b"/usr/include/".to_vec()];
    let (read, in_vain) = scan_all("a directory", &whole, &rule, &both, &runs, &all);
    // At 10 bits per key, 1 % of the tables that do not have the directory are false positives.
    assert!(in_vain > 0 && in_vain < TABLES * whole.len() / 50);
    // All names in a directory have the same prefix. Filters cannot help a scan of many
    // directories.
    assert_eq!(scan_all("names in a directory", &some, &rule, &both, &runs, &all).0, read);
    let (read, _) = scan_all("many directories", &many, &rule, &both, &runs, &all);
    assert_eq!(read, TABLES * many.len());

    // A filter without directories, or with another prefix rule, answers "maybe" to scans. A filter
    // of directories only answers "maybe" to lookups of paths.
    assert!(paths.iter().all(|filter| filter.contains_prefix(&rule, "/a/b/c/d/")));
    let changed = PrefixExtractor::delimiter(b'/', 3);
    assert!(both.iter().all(|filter| filter.contains_prefix(&changed, "/a/b/c/d/")));
    assert!(only.iter().all(|filter| filter.contains("/a/b/c/d/e")));
    Ok(())
}

/// Builds the filters of all tables with these options.
fn filters(
    what: &str,
    runs: &[Run<'_>],
    options: FilterOptions,
) -> Result<Vec<BloomFilter>, BuildError> {
    let filters: Result<Vec<BloomFilter>, BuildError> = (runs.iter())
        .map(|run| {
            let mut builder = options.builder();
            builder.extend(run)?;
            builder.finish()
        })
        .collect();
    let bytes: u64 = filters.iter().flatten().map(|filter| filter.params().stored_bytes()).sum();
    println!("filters of {what:<22} {bytes:>6} bytes");
    filters
}

/// Runs each scan on the tables whose filters answer "maybe". Returns the number of tables read,
/// and how many of those had no matching key.
fn scan_all(
    what: &str,
    starts: &[Vec<u8>],
    rule: &PrefixExtractor,
    filters: &[BloomFilter],
    runs: &[Run<'_>],
    all: &Run<'_>,
) -> (usize, usize) {
    let (mut read, mut in_vain, mut hits) = (0, 0, Bitmask::new());
    let mut found = vec![0; starts.len()];
    for (filter, run) in filters.iter().zip(runs) {
        filter.contains_prefix_batch(rule, starts, &mut hits);
        for i in hits.hits() {
            let keys = scan(run, &starts[i]);
            found[i] += keys;
            read += 1;
            in_vain += usize::from(keys == 0);
        }
    }
    assert!(starts.iter().zip(found).all(|(start, found)| scan(all, start) == found));
    let without = filters.len() * starts.len();
    println!("{what:<22}{:>9}{read:>14}{in_vain:>10}{without:>18}", starts.len());
    (read, in_vain)
}
