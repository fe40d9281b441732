//! The read path: a batch of keys, hashed once, asked of every table's filter at once.

use std::io;
use std::time::{Duration, Instant};

use blocked_bloom::{Bitmask, KeyHasher};

use crate::table::Table;

/// What lookups cost so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cost {
    pub(crate) block_reads: u64,
    pub(crate) hashing: Duration,
    pub(crate) asking_filters: Duration,
}

/// Looks up batches in tables, newest first. Its memory is reused from batch to batch.
#[derive(Default)]
pub(crate) struct MultiGet<'t> {
    tables: &'t [Table],
    hashes: Vec<u64>,
    hits: Bitmask,
    values: Vec<Option<&'t [u8]>>,
    cost: Cost,
}

impl<'t> MultiGet<'t> {
    pub(crate) fn new(tables: &'t [Table]) -> Self {
        MultiGet { tables, ..MultiGet::default() }
    }

    pub(crate) fn cost(&self) -> Cost {
        self.cost
    }

    /// The value of each key, `None` for a key in no table.
    pub(crate) fn get(&mut self, keys: &[&[u8]]) -> io::Result<&[Option<&'t [u8]>]> {
        let start = Instant::now();
        KeyHasher::default().hash_batch(keys, &mut self.hashes);
        self.cost.hashing += start.elapsed();

        self.values.clear();
        self.values.resize(keys.len(), None);
        for table in self.tables {
            let start = Instant::now();
            table.filter().contains_hashes(&self.hashes, &mut self.hits);
            self.cost.asking_filters += start.elapsed();

            for i in self.hits.hits() {
                // A value in a newer table hides those in older ones.
                if self.values[i].is_none() {
                    self.values[i] = table.get(keys[i], &mut self.cost.block_reads)?;
                }
            }
        }
        Ok(&self.values)
    }
}
