//! Scans of all keys with a prefix: which tables have to be read, by what their filters know.
//!
//! The keys are file paths, a scan lists a directory. The files of a directory were written together
//! and are in one table; a third of the directories are held out, so that there are scans that find
//! nothing.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::io;
use std::path::Path;

use blocked_bloom::{BloomFilterBuilder, KeyHasher, PrefixExtractor, Sizing};

use crate::flush::flush;
use crate::table::Table;

/// What a table's filter is built of.
type Filter = (&'static str, fn(Sizing) -> BloomFilterBuilder);

/// A path up to its fifth slash: `/usr/share/doc/bash/`.
fn directory() -> PrefixExtractor {
    PrefixExtractor::delimiter(b'/', 5)
}

const FILTERS: [Filter; 4] = [
    ("whole keys", BloomFilterBuilder::new),
    ("keys and /usr/share/", |sizing| {
        BloomFilterBuilder::new(sizing).prefixes(PrefixExtractor::delimiter(b'/', 3))
    }),
    ("keys and /usr/share/doc/bash/", |sizing| {
        BloomFilterBuilder::new(sizing).prefixes(directory())
    }),
    ("/usr/share/doc/bash/ alone", |sizing| {
        BloomFilterBuilder::new(sizing).only_prefixes(directory())
    }),
];

/// The rules by which each filter is asked, in the order of [`FILTERS`].
fn rules() -> [PrefixExtractor; 4] {
    [directory(), PrefixExtractor::delimiter(b'/', 3), directory(), directory()]
}

/// Prints a row for each kind of filter, and returns the number of wrong answers.
pub(crate) fn report(
    folder: &Path,
    paths: &[u8],
    tables: u16,
    sizing: Sizing,
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
    println!(
        "prefix scans       {} directories, {:.1} % absent",
        scans.len(),
        100.0 * absent as f64 / scans.len() as f64
    );
    println!("  filters of                       bytes   tables read   block reads   wrong");
    let mut wrong = 0;
    for ((name, builder), rule) in FILTERS.into_iter().zip(rules()) {
        let opened: io::Result<Vec<Table>> = (runs.iter().enumerate())
            .map(|(i, run)| {
                let path = folder.join(format!("{i}.paths"));
                flush(&path, run.iter().copied(), builder(sizing))?;
                Table::open(&path)
            })
            .collect();
        let cost = scan_all(&opened?, &scans, &rule)?;
        wrong += cost.wrong;
        let Cost { filter_bytes, table_reads, block_reads, wrong } = cost;
        println!("  {name:<29}{filter_bytes:>9}{table_reads:>14}{block_reads:>14}{wrong:>8}");
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
    let filter_bytes = tables.iter().map(|table| table.filter().params().stored_bytes()).sum();
    let mut cost = Cost { filter_bytes, ..Cost::default() };
    for (&start, &stored) in scans {
        let mut found = HashMap::new();
        for table in tables.iter().filter(|table| table.filter().contains_prefix(rule, start)) {
            cost.table_reads += 1;
            found.extend(table.scan(start, &mut cost.block_reads)?);
        }
        cost.wrong += u64::from(found.len() != stored);
    }
    Ok(cost)
}
