//! A small LSM engine: changes go to a memtable, which is flushed to a table of level 0. Four
//! tables of a level are merged into one of the next.
//!
//! One thread, and no snapshots. Newer tables hide older ones, so entries need no sequence numbers.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use blocked_bloom::{Bitmask, FilterOptions, KeyHasher};
use blocked_bloom_lsm::tables_to_read;

use crate::memtable::{MEMTABLE_KEYS, Memtable};
use crate::table::{self, Entry, Table, has_tombstone};

/// Number of keys hashed and looked up per batch.
const BATCH: usize = 128;
const TABLES_PER_LEVEL: usize = 4;
const LOG: &str = "log";

pub(crate) struct Engine {
    folder: PathBuf,
    /// All settings of the filters. Code that builds, opens or queries filters takes them from
    /// here.
    options: FilterOptions,
    hasher: KeyHasher,
    memtable: Memtable,
    /// From the newest to the oldest, with their levels.
    tables: Vec<(u32, Table)>,
    /// Number of the last table file.
    next: u64,
}

impl Engine {
    /// Opens the engine of a folder: its tables, and the changes that were not flushed.
    pub(crate) fn open(folder: &Path, options: FilterOptions) -> io::Result<Self> {
        let hasher = options.hasher().map_err(io::Error::other)?;
        let (mut files, mut next) = (Vec::new(), 0);
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            // What was being written when the engine stopped.
            if path.extension().is_some_and(|extension| extension == "tmp") {
                fs::remove_file(&path)?;
            }
            if let Some((level, number)) = parse_name(&path) {
                files.push((level, std::cmp::Reverse(number), path));
                next = next.max(number);
            }
        }
        files.sort();
        let open = |(level, _, path): (_, _, PathBuf)| {
            Ok((level, Table::open(&path, options.key_hash())?))
        };
        let tables = files.into_iter().map(open).collect::<io::Result<_>>()?;
        let memtable = Memtable::open(&folder.join(LOG), &options)?;
        Ok(Engine { folder: folder.to_owned(), options, hasher, memtable, tables, next })
    }

    /// Sets a value, or deletes the key.
    pub(crate) fn write(&mut self, key: &[u8], value: Option<&[u8]>) -> io::Result<()> {
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
        let run = entries.iter().map(|(key, value)| (key, value.as_ref()));
        table::write(&path, run, tombstones, &self.options)?;
        self.tables.insert(0, (0, Table::open(&path, self.options.key_hash())?));
        // Only now, since the table has all changes of the log.
        let log = self.folder.join(LOG);
        fs::remove_file(&log)?;
        self.memtable = Memtable::open(&log, &self.options)?;
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
            entries.retain(|key, _| !table.has_tombstone(key));
            entries.extend(table.scan(b"", &mut 0)?);
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
            fs::remove_file(table.path())?;
        }
        self.tables.insert(merged.start, (level + 1, table));
        Ok(())
    }

    fn tables_of(&self, level: u32) -> Range<usize> {
        let start = self.tables.partition_point(|table| table.0 < level);
        start..self.tables.partition_point(|table| table.0 <= level)
    }

    fn next_path(&mut self, level: u32) -> PathBuf {
        self.next += 1;
        self.folder.join(format!("{level}-{}.table", self.next))
    }

    /// The tables that can decide on a key. Range tombstones are in no filter: those of all tables
    /// are checked first, also where a filter rules the key out.
    fn tables_for(&self, key: &[u8]) -> &[(u32, Table)] {
        let deleted = self.tables.iter().position(|(_, table)| table.has_tombstone(key));
        deleted.map_or(&self.tables[..], |at| &self.tables[..=at])
    }

    /// Returns the value of a key. Counts the blocks that it reads.
    pub(crate) fn get(&self, key: &[u8], block_reads: &mut u64) -> io::Result<Entry<'_>> {
        let hash = self.hasher.hash(key);
        if let Some(entry) = self.memtable.get(key, hash) {
            return Ok(entry);
        }
        for (_, table) in tables_to_read(self.tables_for(key), |table| (&table.1.filter, hash)) {
            if let Some(entry) = table.get(key, block_reads)? {
                return Ok(entry);
            }
        }
        Ok(None)
    }

    /// Returns the value of each key. Each key is hashed once, and each filter looks up a whole
    /// batch.
    pub(crate) fn multi_get(
        &self,
        keys: &[&[u8]],
        block_reads: &mut u64,
    ) -> io::Result<Vec<Entry<'_>>> {
        let mut values = vec![None; keys.len()];
        let (mut hashes, mut hits) = (Vec::new(), Bitmask::new());
        for (keys, values) in keys.chunks(BATCH).zip(values.chunks_mut(BATCH)) {
            self.hasher.hash_batch(keys, &mut hashes);
            // How many tables can still decide on each key.
            let mut undecided: Vec<usize> =
                keys.iter().map(|key| self.tables_for(key).len()).collect();
            for (i, key) in keys.iter().enumerate() {
                if let Some(entry) = self.memtable.get(key, hashes[i]) {
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
                        && let Some(entry) = table.get(keys[i], block_reads)?
                    {
                        (values[i], undecided[i]) = (entry, 0);
                    }
                }
            }
        }
        Ok(values)
    }

    /// Returns the values of all keys that start with `start`. Tables whose filter has no key of
    /// this prefix are not read.
    pub(crate) fn scan(
        &self,
        start: &[u8],
        block_reads: &mut u64,
    ) -> io::Result<Vec<(&[u8], &[u8])>> {
        let mut found = BTreeMap::<&[u8], Entry<'_>>::new();
        for (_, table) in self.tables.iter().rev() {
            found.retain(|key, _| !table.has_tombstone(key));
            let rule = self.options.extractor();
            if rule.is_none_or(|rule| table.filter.contains_prefix(rule, start)) {
                found.extend(table.scan(start, block_reads)?);
            }
        }
        let Memtable { entries, tombstones, .. } = &self.memtable;
        found.retain(|key, _| !has_tombstone(tombstones, key));
        let newest = entries.range(start.to_vec()..).take_while(|(key, _)| key.starts_with(start));
        found.extend(newest.map(|(key, value)| (&key[..], value.as_deref())));
        Ok(found.into_iter().filter_map(|(key, value)| Some((key, value?))).collect())
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.iter().map(|(_, table)| table)
    }

    /// Stops using the filters of all tables, to show what they save.
    pub(crate) fn drop_filters(&mut self) {
        self.tables.iter_mut().for_each(|(_, table)| table.drop_filter());
    }
}

/// The level and number of a table file.
fn parse_name(path: &Path) -> Option<(u32, u64)> {
    let (level, number) = path.file_name()?.to_str()?.strip_suffix(".table")?.split_once('-')?;
    Some((level.parse().ok()?, number.parse().ok()?))
}
