//! The read path: a batch of keys, hashed once, asked of every table's filter at once.

use std::io;
use std::time::{Duration, Instant};

use blocked_bloom::{BitMatrix, FilterSet, KeyHash, KeyHasher};

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
    hits: BitMatrix,
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
        let start = Instant::now();
        let filters = FilterSet::new(KeyHash::default(), self.tables.iter().map(Table::filter));
        let filters = filters.map_err(io::Error::other)?;
        filters.contains_hashes(&self.hashes, &mut self.hits).map_err(io::Error::other)?;
        self.cost.asking_filters += start.elapsed();

        for (i, table) in self.tables.iter().enumerate() {
            for key in self.hits.keys_of(i) {
                // A value in a newer table hides those in older ones.
                if self.values[key].is_none() {
                    self.values[key] = table.get(keys[key], &mut self.cost.block_reads)?;
                }
            }
        }
        Ok(&self.values)
    }
}
