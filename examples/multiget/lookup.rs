//! The read paths: batches of keys, each hashed once and looked up in the filter of every table,
//! and one key after the other.

use std::io;

use blocked_bloom::{Bitmask, KeyHasher};

use crate::table::Table;

/// Keys hashed and looked up at once.
const BATCH: usize = 128;

/// The value of each key, `None` for a key in no table, and what they cost.
pub(crate) struct Answers<'t> {
    pub(crate) values: Vec<Option<&'t [u8]>>,
    pub(crate) block_reads: u64,
}

/// Looks up keys in batches, in tables from the newest to the oldest.
pub(crate) fn multi_get<'t>(
    tables: &'t [Table],
    hasher: KeyHasher,
    keys: &[&[u8]],
) -> io::Result<Answers<'t>> {
    let mut answers = Answers { values: vec![None; keys.len()], block_reads: 0 };
    let (mut hashes, mut hits) = (Vec::new(), Bitmask::new());
    for (keys, values) in keys.chunks(BATCH).zip(answers.values.chunks_mut(BATCH)) {
        hasher.hash_batch(keys, &mut hashes);
        for (i, table) in tables.iter().enumerate() {
            // The first lines of the next filter come from memory while this one is looked up; a
            // call prefetches its own further ones.
            if let Some(next) = tables.get(i + 1) {
                hashes.iter().take(64).for_each(|&hash| next.filter.prefetch_hash(hash));
            }
            table.filter.contains_hashes(&hashes, &mut hits);
            for key in hits.hits() {
                // A value in a newer table hides those in older ones.
                if values[key].is_none() {
                    values[key] = table.get(keys[key], &mut answers.block_reads)?;
                }
            }
        }
    }
    Ok(answers)
}

/// Looks up one key after the other: its hash is prefetched in all tables, then those that may have
/// it are read.
pub(crate) fn get_each<'t>(
    tables: &'t [Table],
    hasher: KeyHasher,
    keys: &[&[u8]],
    prefetch: impl Fn(&Table, u64),
    may_have: impl Fn(&Table, u64) -> bool,
) -> io::Result<Answers<'t>> {
    let mut answers = Answers { values: vec![None; keys.len()], block_reads: 0 };
    for (key, value) in keys.iter().zip(&mut answers.values) {
        let hash = hasher.hash(key);
        // The lines of all filters come from memory at the same time.
        tables.iter().for_each(|table| prefetch(table, hash));
        for table in tables {
            if value.is_none() && may_have(table, hash) {
                *value = table.get(key, &mut answers.block_reads)?;
            }
        }
    }
    Ok(answers)
}
