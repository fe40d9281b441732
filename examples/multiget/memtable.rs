//! The newest changes: in memory, in order of their keys, and in a log file until they are flushed.
//!
//! ```text
//! log     changes
//! change  length of the block, u32 | block of one record
//! ```
//!
//! The record's key is that of the change, and its entry that of a table; or 2 and the end of the
//! range that begins with the key.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use blocked_bloom::{BloomFilter, FilterOptions};

use crate::record::{decode, encode, put, records, seal};
use crate::table::{Entry, has_tombstone};

/// Number of keys after which the engine flushes.
pub(crate) const MEMTABLE_KEYS: usize = 4_096;

pub(crate) struct Memtable {
    /// A value, or `None` for a deletion.
    pub(crate) entries: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// Deletions of ranges, older than every entry.
    pub(crate) tombstones: Vec<Range<Vec<u8>>>,
    /// Most lookups end here, without a search in the map. An engine with several threads uses an
    /// `AtomicBloomFilter`.
    filter: BloomFilter,
    log: File,
}

impl Memtable {
    /// Opens the log, and repeats its changes. A change that was not stored completely, and what
    /// follows it, is dropped: its caller did not learn that it succeeded.
    pub(crate) fn open(log: &Path, options: &FilterOptions) -> io::Result<Self> {
        let logged = fs::read(log).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(Vec::new()),
            _ => Err(error),
        })?;
        // Scans read the map, so this filter needs no prefixes.
        let whole_keys = FilterOptions::new(options.sizing()).with_key_hash(options.key_hash());
        let filter = whole_keys.empty_filter(MEMTABLE_KEYS as u64).map_err(io::Error::other)?;
        let file = File::options().create(true).append(true).open(log)?;
        let (entries, tombstones) = Default::default();
        let mut memtable = Memtable { entries, tombstones, filter, log: file };
        let mut rest = &logged[..];
        while let Some((length, after)) = rest.split_first_chunk() {
            let block = after.split_at_checked(u32::from_le_bytes(*length) as usize);
            let Some((block, after)) = block else { break };
            let Some((key, entry)) = records(block).and_then(|mut records| records.next()) else {
                break;
            };
            memtable.apply(key, entry)?;
            rest = after;
        }
        memtable.log.set_len((logged.len() - rest.len()) as u64)?;
        Ok(memtable)
    }

    /// Sets a value, or deletes the key.
    pub(crate) fn insert(&mut self, key: &[u8], value: Option<&[u8]>) -> io::Result<()> {
        self.write(key, &encode(value))
    }

    pub(crate) fn delete_range(&mut self, start: &[u8], end: &[u8]) -> io::Result<()> {
        self.write(start, &[&[2], end].concat())
    }

    /// Stores a change before it can be seen. An engine that must survive a power failure would
    /// also sync the log.
    fn write(&mut self, key: &[u8], entry: &[u8]) -> io::Result<()> {
        let mut block = Vec::new();
        put(&mut block, key, entry)?;
        seal(&mut block);
        self.log.write_all(&[&(block.len() as u32).to_le_bytes(), &block[..]].concat())?;
        self.apply(key, entry)
    }

    fn apply(&mut self, key: &[u8], entry: &[u8]) -> io::Result<()> {
        if let [2, end @ ..] = entry {
            let range = key.to_vec()..end.to_vec();
            self.entries.retain(|key, _| !range.contains(key));
            self.tombstones.push(range);
            return Ok(());
        }
        self.filter.insert(key).map_err(io::Error::other)?;
        self.entries.insert(key.to_vec(), decode(entry).map(Into::into));
        Ok(())
    }

    /// Returns the key's entry like [`Table::get`](crate::table::Table::get), also for a key in a
    /// deleted range.
    pub(crate) fn get(&self, key: &[u8], hash: u64) -> Option<Entry<'_>> {
        let found = self.filter.contains_hash(hash).then(|| self.entries.get(key)).flatten();
        // The filter does not know the keys of deleted ranges.
        let deleted = || has_tombstone(&self.tombstones, key).then_some(None);
        found.map(Option::as_deref).or_else(deleted)
    }
}
