//! The read paths: batches of keys, where each key is hashed once and looked up in the filter of
//! every table, and single keys.

use std::io;

use blocked_bloom::{Bitmask, KeyHasher};

use crate::table::Table;

/// Number of keys hashed and looked up per batch.
const BATCH: usize = 128;

/// The value of each key (`None` if no table has it), and the cost of the lookups.
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
            // Load the first blocks of the next filter from memory while this filter is looked up.
            // Each call prefetches its later blocks itself.
            if let Some(next) = tables.get(i + 1) {
                hashes.iter().take(64).for_each(|&hash| next.filter.prefetch_hash(hash));
            }
            table.filter.contains_hashes(&hashes, &mut hits);
            for key in hits.hits() {
                // A value in a newer table hides values in older tables.
                if values[key].is_none() {
                    values[key] = table.get(keys[key], &mut answers.block_reads)?;
                }
            }
        }
    }
    Ok(answers)
}

/// Looks up one key at a time: prefetches the key's hash in all tables, then reads the tables that
/// may have the key.
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
        // The cache misses of all filters overlap.
        tables.iter().for_each(|table| prefetch(table, hash));
        for table in tables {
            if value.is_none() && may_have(table, hash) {
                *value = table.get(key, &mut answers.block_reads)?;
            }
        }
    }
    Ok(answers)
}
