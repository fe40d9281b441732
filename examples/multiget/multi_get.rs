//! The read paths: one key, whose hash is prefetched in the filters of all tables before the first is tested, and a batch of keys, which
//! is hashed once and looked up in all filters together.

use std::io;
use std::time::{Duration, Instant};

use blocked_bloom::{BitMatrix, FilterOptions, FilterSet, KeyHasher};

use crate::table::Table;

/// What lookups cost so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cost {
    pub(crate) block_reads: u64,
    pub(crate) hashing: Duration,
    pub(crate) filters: Duration,
}

/// The value of one key, `None` for a key in no table.
pub(crate) fn get_one<'t>(
    tables: &'t [Table],
    hasher: KeyHasher,
    key: &[u8],
    block_reads: &mut u64,
) -> io::Result<Option<&'t [u8]>> {
    let hash = hasher.hash(key);
    // The lines of all filters come from memory at the same time.
    tables.iter().for_each(|table| table.filter().prefetch_hash(hash));
    for table in tables {
        if table.filter().contains_hash(hash)
            && let Some(value) = table.get(key, block_reads)?
        {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// Looks up batches in tables, newest first. Its memory is reused from batch to batch.
pub(crate) struct MultiGet<'t> {
    tables: &'t [Table],
    filters: FilterSet<'t>,
    hasher: KeyHasher,
    hashes: Vec<u64>,
    hits: BitMatrix,
    values: Vec<Option<&'t [u8]>>,
    cost: Cost,
}

impl<'t> MultiGet<'t> {
    /// For tables whose filters are of these options.
    pub(crate) fn new(tables: &'t [Table], options: &FilterOptions) -> io::Result<Self> {
        let filters = FilterSet::new(options.key_hash(), tables.iter().map(Table::filter));
        let filters = filters.map_err(io::Error::other)?;
        let hasher = filters.hasher().map_err(io::Error::other)?;
        Ok(MultiGet {
            tables,
            filters,
            hasher,
            hashes: Vec::new(),
            hits: BitMatrix::new(),
            values: Vec::new(),
            cost: Cost::default(),
        })
    }

    pub(crate) fn cost(&self) -> Cost {
        self.cost
    }

    /// The value of each key, `None` for a key in no table.
    pub(crate) fn get(&mut self, keys: &[&[u8]]) -> io::Result<&[Option<&'t [u8]>]> {
        let start = Instant::now();
        self.hasher.hash_batch(keys, &mut self.hashes);
        self.cost.hashing += start.elapsed();

        let start = Instant::now();
        self.filters.contains_hashes(&self.hashes, &mut self.hits).map_err(io::Error::other)?;
        self.cost.filters += start.elapsed();

        self.values.clear();
        self.values.resize(keys.len(), None);
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
