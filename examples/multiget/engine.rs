//! A small LSM engine: changes go to a memtable, which is flushed to a table of level 0. Four
//! tables of a level are merged into one of the next.
//!
//! One thread, and no snapshots. Newer tables hide older ones, so entries need no sequence numbers.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use blocked_bloom::{Bitmask, FilterOptions, KeyHasher};
use blocked_bloom_lsm::tables_to_read;

use crate::memtable::{Memtable, has_tombstone};
use crate::record::Entry;
use crate::table::{self, Table};

/// Number of keys after which the engine flushes.
const MEMTABLE_KEYS: usize = 4_096;
/// Number of keys hashed and looked up per batch.
const BATCH: usize = 128;
const TABLES_PER_LEVEL: usize = 4;

pub(crate) struct Engine {
    folder: PathBuf,
    /// All settings of the filters. Code that builds, opens or queries filters takes them from
    /// here.
    options: FilterOptions,
    hasher: KeyHasher,
    memtable: Memtable,
    /// From the newest to the oldest, with their levels.
    pub(crate) tables: Vec<(u32, Table)>,
    /// Number of the last table file.
    last: u64,
}

impl Engine {
    /// Opens the engine of a folder: its tables, and the changes that were not flushed.
    pub(crate) fn open(folder: &Path, options: FilterOptions) -> io::Result<Self> {
        let hasher = options.hasher().map_err(io::Error::other)?;
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            // A table that was being written when the engine stopped.
            if path.extension().is_some_and(|extension| extension == "tmp") {
                fs::remove_file(&path)?;
            }
            files.extend(parse_name(&path).map(|(level, number)| (level, Reverse(number), path)));
        }
        files.sort();
        let last = files.iter().map(|(_, number, _)| number.0).max().unwrap_or(0);
        let open = |(level, _, path): (_, _, PathBuf)| {
            Ok((level, Table::open(&path, options.key_hash())?))
        };
        let tables = files.into_iter().map(open).collect::<io::Result<_>>()?;
        let memtable = Memtable::open(&folder.join("log"))?;
        Ok(Engine { folder: folder.to_owned(), options, hasher, memtable, tables, last })
    }

    /// Sets a value, or deletes the key.
    pub(crate) fn write(&mut self, key: &[u8], value: Entry<'_>) -> io::Result<()> {
        self.memtable.insert(key, value)?;
        if self.memtable.entries.len() >= MEMTABLE_KEYS { self.flush() } else { Ok(()) }
    }

    /// Deletes all keys from `start` up to, but without, `end`.
    pub(crate) fn delete_range(&mut self, start: &[u8], end: &[u8]) -> io::Result<()> {
        self.memtable.delete_range(start, end)
    }

    fn flush(&mut self) -> io::Result<()> {
        let path = self.next_path(0);
        let Memtable { entries, tombstones, .. } = &self.memtable;
        let run = entries.iter().map(|(key, value)| (&key[..], value.as_deref()));
        table::write(&path, run, tombstones, &self.options)?;
        self.tables.insert(0, (0, Table::open(&path, self.options.key_hash())?));
        // Only now, since the table has all changes of the log.
        let log = self.folder.join("log");
        fs::remove_file(&log)?;
        self.memtable = Memtable::open(&log)?;
        let mut level = 0;
        while self.tables_of(level).len() >= TABLES_PER_LEVEL {
            self.merge(level)?;
            level += 1;
        }
        Ok(())
    }

    /// Merges the tables of a level into one of the next level. An engine would not collect the
    /// entries in memory.
    fn merge(&mut self, level: u32) -> io::Result<()> {
        let (path, merged) = (self.next_path(level + 1), self.tables_of(level));
        let (mut entries, mut tombstones) = (BTreeMap::<&[u8], Entry<'_>>::new(), Vec::new());
        for (_, table) in self.tables[merged.clone()].iter().rev() {
            entries.retain(|key, _| !has_tombstone(&table.tombstones, key));
            entries.extend(table.entries()?);
            tombstones.extend_from_slice(&table.tombstones);
        }
        // Nothing is left that deletions could hide.
        if merged.end == self.tables.len() {
            entries.retain(|_, value| value.is_some());
            tombstones.clear();
        }
        table::write(&path, entries, &tombstones, &self.options)?;
        let table = Table::open(&path, self.options.key_hash())?;
        // The oldest first: if the engine stops here, the newer ones still hide what is left.
        for (_, table) in self.tables.drain(merged.clone()).rev() {
            fs::remove_file(table.path)?;
        }
        self.tables.insert(merged.start, (level + 1, table));
        Ok(())
    }

    fn tables_of(&self, level: u32) -> Range<usize> {
        let start = self.tables.partition_point(|table| table.0 < level);
        start..self.tables.partition_point(|table| table.0 <= level)
    }

    fn next_path(&mut self, level: u32) -> PathBuf {
        self.last += 1;
        self.folder.join(format!("{level}-{}.table", self.last))
    }

    /// The tables that can decide on a key. Range tombstones are in no filter: those of all tables
    /// are checked first, also where a filter rules the key out.
    fn tables_for(&self, key: &[u8]) -> &[(u32, Table)] {
        let deletes = |(_, table): &(_, Table)| has_tombstone(&table.tombstones, key);
        let end = self.tables.iter().position(deletes).map_or(self.tables.len(), |at| at + 1);
        &self.tables[..end]
    }

    /// Returns the value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> io::Result<Entry<'_>> {
        if let Some(entry) = self.memtable.get(key) {
            return Ok(entry);
        }
        let hash = self.hasher.hash(key);
        for (_, table) in tables_to_read(self.tables_for(key), |table| (&table.1.filter, hash)) {
            if let Some(entry) = table.get(key)? {
                return Ok(entry);
            }
        }
        Ok(None)
    }

    /// Returns the value of each key. Each key is hashed once, and each filter looks up a whole
    /// batch.
    pub(crate) fn multi_get(&self, keys: &[&[u8]]) -> io::Result<Vec<Entry<'_>>> {
        let mut values = vec![None; keys.len()];
        let (mut hashes, mut hits) = (Vec::new(), Bitmask::new());
        for (keys, values) in keys.chunks(BATCH).zip(values.chunks_mut(BATCH)) {
            self.hasher.hash_batch(keys, &mut hashes);
            // How many tables can still decide on each key.
            let mut undecided: Vec<usize> =
                keys.iter().map(|key| self.tables_for(key).len()).collect();
            for (i, key) in keys.iter().enumerate() {
                if let Some(entry) = self.memtable.get(key) {
                    (values[i], undecided[i]) = (entry, 0);
                }
            }
            for (at, (_, table)) in self.tables.iter().enumerate() {
                // Load the first blocks of the next filter while this filter is looked up. Each
                // call prefetches its later blocks itself.
                if let Some((_, next)) = self.tables.get(at + 1) {
                    hashes.iter().take(64).for_each(|&hash| next.filter.prefetch_hash(hash));
                }
                table.filter.contains_hashes(&hashes, &mut hits);
                for i in hits.hits() {
                    if at < undecided[i]
                        && let Some(entry) = table.get(keys[i])?
                    {
                        (values[i], undecided[i]) = (entry, 0);
                    }
                }
            }
        }
        Ok(values)
    }

    /// Returns the number of blocks that lookups have read.
    pub(crate) fn block_reads(&self) -> u64 {
        self.tables.iter().map(|(_, table)| table.block_reads.get()).sum()
    }
}

/// The level and number of a table file.
fn parse_name(path: &Path) -> Option<(u32, u64)> {
    let (level, number) = path.file_name()?.to_str()?.strip_suffix(".table")?.split_once('-')?;
    Some((level.parse().ok()?, number.parse().ok()?))
}
