//! What is stored and what is looked up: the lines of a key file, in an order that has no pattern.

use std::fs;
use std::path::Path;

use blocked_bloom::KeyHasher;

/// A key and its value, the number of the first line that has it.
pub(crate) type Record<'a> = (&'a [u8], [u8; 8]);

/// A file with at least one line that is not empty.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let file = path.display();
    match fs::read(path) {
        Err(error) => Err(format!("{file}: {error}")),
        Ok(bytes) if bytes.iter().all(|&byte| byte == b'\n') => {
            Err(format!("{file}: no key in it"))
        }
        Ok(bytes) => Ok(bytes),
    }
}

/// The distinct lines that are not empty.
pub(crate) fn shuffled_records(lines: &[u8]) -> Vec<Record<'_>> {
    let numbered = lines.split(|&byte| byte == b'\n').zip(1_u64..);
    let mut records: Vec<Record> = numbered
        .filter(|(line, _)| !line.is_empty())
        .map(|(line, number)| (line, number.to_le_bytes()))
        .collect();
    records.sort_by_key(|(key, _)| *key);
    records.dedup_by_key(|(key, _)| *key);
    shuffle(&mut records);
    records
}

/// Two lookups per key of the file, with the given percentage of absent keys.
pub(crate) fn shuffled_lookups<'a>(
    held_out: &[Record<'a>],
    stored: &[Record<'a>],
    absent: u8,
) -> Vec<&'a [u8]> {
    let count = 2 * (held_out.len() + stored.len());
    let absent = count * usize::from(absent) / 100;
    let held_out = held_out.iter().cycle().take(absent);
    let stored = stored.iter().cycle().take(count - absent);
    let mut lookups: Vec<&[u8]> = held_out.chain(stored).map(|(key, _)| *key).collect();
    shuffle(&mut lookups);
    lookups
}

/// The same order in every run, and no order in particular.
fn shuffle<T>(items: &mut [T]) {
    for i in (1..items.len()).rev() {
        let random = KeyHasher::default().hash((i as u64).to_le_bytes());
        items.swap(i, (random % (i as u64 + 1)) as usize);
    }
}
