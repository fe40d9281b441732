//! Scans of all keys with a prefix: which tables have to be read, by what their filters know.
//!
//! The keys are file paths, a scan lists a directory. The files of a directory were written together
//! and are in one table; a third of the directories are held out, so that there are scans that find
//! nothing.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

use blocked_bloom::{FilterOptions, KeyHasher, PrefixExtractor};

use crate::flush::flush;
use crate::table::Table;

/// A path up to its fifth slash: `/usr/share/doc/bash/`.
fn directory() -> PrefixExtractor {
    PrefixExtractor::delimiter(b'/', 5)
}

/// What the filters of tables hold, and the rule by which they are looked up.
fn filters(options: &FilterOptions) -> [(&'static str, FilterOptions, PrefixExtractor); 4] {
    let options = || options.clone();
    let (coarse, fine) = (PrefixExtractor::delimiter(b'/', 3), directory());
    [
        ("whole keys", options(), fine.clone()),
        ("keys and /usr/share/", options().with_prefixes(coarse.clone()), coarse),
        ("keys and /usr/share/doc/bash/", options().with_prefixes(fine.clone()), fine.clone()),
        ("/usr/share/doc/bash/ alone", options().with_only_prefixes(fine.clone()), fine),
    ]
}

/// Writes a row for each kind of filter, and returns the number of wrong answers.
pub(crate) fn report(
    folder: &Path,
    paths: &[u8],
    tables: u16,
    options: &FilterOptions,
    output: &mut Vec<u8>,
) -> Result<u64, Box<dyn Error>> {
    let rule = directory();
    let mut paths: Vec<&[u8]> = paths.split(|&byte| byte == b'\n').collect();
    paths.retain(|path| !path.is_empty());
    paths.sort_unstable();
    paths.dedup();
    // Directory of a path to the number of paths in it; 0 for those that are held out.
    let mut scans: BTreeMap<&[u8], usize> = BTreeMap::new();
    let mut runs = vec![Vec::new(); tables.into()];
    for path in paths {
        let Some(start) = rule.prefix(path) else { continue };
        let random = KeyHasher::default().hash(start);
        let stored = scans.entry(start).or_default();
        if !random.is_multiple_of(3) {
            *stored += 1;
            runs[(random / 3 % u64::from(tables)) as usize].push((path, start));
        }
    }
    let absent = scans.values().filter(|&&paths| paths == 0).count();
    writeln!(
        output,
        "prefix scans       {} directories, {:.1} % absent",
        scans.len(),
        100.0 * absent as f64 / scans.len() as f64
    )?;
    writeln!(
        output,
        "  filters of                       bytes   tables read   block reads   wrong"
    )?;
    let mut wrong = 0;
    for (name, options, rule) in filters(options) {
        let opened: io::Result<Vec<Table>> = (runs.iter().enumerate())
            .map(|(i, run)| {
                let path = folder.join(format!("{i}.paths"));
                flush(&path, run.iter().copied(), &options)?;
                Table::open(&path, options.key_hash())
            })
            .collect();
        let cost = scan_all(&opened?, &scans, &rule)?;
        wrong += cost.wrong;
        let Cost { filter_bytes, table_reads, block_reads, wrong } = cost;
        writeln!(
            output,
            "  {name:<29}{filter_bytes:>9}{table_reads:>14}{block_reads:>14}{wrong:>8}"
        )?;
    }
    Ok(wrong)
}

#[derive(Default)]
struct Cost {
    filter_bytes: u64,
    table_reads: u64,
    block_reads: u64,
    wrong: u64,
}

fn scan_all(
    tables: &[Table],
    scans: &BTreeMap<&[u8], usize>,
    rule: &PrefixExtractor,
) -> io::Result<Cost> {
    let filter_bytes =
        tables.iter().map(|table| table.filter().view().params().stored_bytes()).sum();
    let mut cost = Cost { filter_bytes, ..Cost::default() };
    for (&start, &stored) in scans {
        let mut found = HashMap::new();
        for table in
            tables.iter().filter(|table| table.filter().view().contains_prefix(rule, start))
        {
            cost.table_reads += 1;
            found.extend(table.scan(start, &mut cost.block_reads)?);
        }
        cost.wrong += u64::from(found.len() != stored);
    }
    Ok(cost)
}
