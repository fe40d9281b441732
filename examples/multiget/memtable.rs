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
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::Path;

use crate::record::{Entry, decode, encode, put, records, seal};

pub(crate) struct Memtable {
    /// A value, or `None` for a deletion.
    pub(crate) entries: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// Deletions of ranges, older than every entry.
    pub(crate) tombstones: Vec<Range<Vec<u8>>>,
    log: File,
}

impl Memtable {
    /// Opens the log, and repeats its changes. A change that was not stored completely, and what
    /// follows it, is dropped: its caller did not learn that it succeeded.
    pub(crate) fn open(log: &Path) -> io::Result<Self> {
        let mut log = File::options().create(true).read(true).append(true).open(log)?;
        let mut logged = Vec::new();
        log.read_to_end(&mut logged)?;
        let mut memtable = Memtable { entries: BTreeMap::new(), tombstones: Vec::new(), log };
        let mut rest = &logged[..];
        while let Some((length, after)) = rest.split_first_chunk()
            && let Some((block, after)) =
                after.split_at_checked(u32::from_le_bytes(*length) as usize)
            && let Some((key, entry)) = records(block).and_then(|mut records| records.next())
        {
            memtable.apply(key, entry);
            rest = after;
        }
        memtable.log.set_len((logged.len() - rest.len()) as u64)?;
        Ok(memtable)
    }

    /// Sets a value, or deletes the key.
    pub(crate) fn insert(&mut self, key: &[u8], value: Entry<'_>) -> io::Result<()> {
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
        self.apply(key, entry);
        Ok(())
    }

    fn apply(&mut self, key: &[u8], entry: &[u8]) {
        if let [2, end @ ..] = entry {
            let range = key.to_vec()..end.to_vec();
            self.entries.retain(|key, _| !range.contains(key));
            self.tombstones.push(range);
        } else {
            self.entries.insert(key.to_vec(), decode(entry).map(Into::into));
        }
    }

    /// Returns the key's entry: `Some(None)` for a deletion, also for a key in a deleted range, and
    /// `None` if tables must be read.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Entry<'_>> {
        let deleted = || has_tombstone(&self.tombstones, key).then_some(None);
        self.entries.get(key).map(Option::as_deref).or_else(deleted)
    }
}

/// Whether a range tombstone deletes older values of this key.
pub(crate) fn has_tombstone(tombstones: &[Range<Vec<u8>>], key: &[u8]) -> bool {
    tombstones.iter().any(|range| &range.start[..] <= key && key < &range.end[..])
}
