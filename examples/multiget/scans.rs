//! Scans all keys with a prefix, and counts the tables that must be read with each kind of filter.
//!
//! The keys are file paths, and a scan lists a directory. The files of a directory were written
//! together and are in one table. A third of the directories are held out, so that some scans find
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;

use blocked_bloom::{FilterOptions, KeyHasher, PrefixExtractor};

use crate::TABLES;
use crate::table::{Table, flush};

/// Prints a row for each kind of filter, and returns the number of wrong answers.
pub(crate) fn report(folder: &Path, options: &FilterOptions) -> Result<usize, Box<dyn Error>> {
    let (coarse, fine) = (PrefixExtractor::delimiter(b'/', 3), PrefixExtractor::delimiter(b'/', 5));
    let lines = crate::fixture("paths.txt")?;
    // Each directory with its stored paths; held-out directories have no paths.
    let mut scans: BTreeMap<&[u8], BTreeSet<&[u8]>> = BTreeMap::new();
    let mut runs: [BTreeSet<&[u8]>; TABLES] = Default::default();
    for path in lines.lines().map(str::as_bytes) {
        let Some(start) = fine.prefix(path) else { continue };
        let random = KeyHasher::default().hash(start) as usize;
        let stored = scans.entry(start).or_default();
        if !random.is_multiple_of(3) {
            stored.insert(path);
            runs[random / 3 % TABLES].insert(path);
        }
    }
    let pairs = scans.len() * TABLES;
    println!("\n{} scans of a directory, a third held out", scans.len());
    println!("{:<36}{:>12}{:>15}{:>13}", "filters of", "bytes", "tables read", "block reads");
    let own = || options.clone();
    let mut wrong = 0;
    for (name, options, rule) in [
        ("whole keys", own(), &fine),
        ("keys and /usr/share/", own().with_prefixes(coarse.clone()), &coarse),
        ("keys and /usr/share/doc/bash/", own().with_prefixes(fine.clone()), &fine),
        ("/usr/share/doc/bash/ alone", own().with_only_prefixes(fine.clone()), &fine),
    ] {
        eprintln!("flushing and scanning {TABLES} tables with filters of {name}");
        let (mut tables, mut bytes) = (Vec::new(), 0);
        for (i, run) in runs.iter().enumerate() {
            let path = folder.join(format!("{i}.paths"));
            flush(&path, run.iter().map(|key| (key, [])), &options)?;
            let table = Table::open(&path, options.key_hash())?;
            bytes += table.filter.params().stored_bytes();
            tables.push(table);
        }
        let (mut tables_read, mut block_reads) = (0, 0);
        for (start, stored) in &scans {
            let mut found = BTreeSet::new();
            for table in tables.iter().filter(|table| table.filter.contains_prefix(rule, start)) {
                tables_read += 1;
                let records = table.scan(start, &mut block_reads)?;
                found.extend(records.into_iter().map(|(key, _)| key));
            }
            wrong += usize::from(found != *stored);
        }
        let why = match options.extractor() {
            _ if tables_read < pairs => "",
            None => "   skips no table: whole keys say nothing of a prefix",
            Some(_) => "   skips no table: every table has keys with that prefix",
        };
        println!("{name:<36}{bytes:>12}{tables_read:>15}{block_reads:>13}{why}");
    }
    Ok(wrong)
}
