//! Table files: sorted runs that are written once and then only read. Damage causes an error;
//! damage in the filter only disables the filter.
//!
//! ```text
//! table   blocks | filter | ranges | index | starts of filter, ranges and index, u32 each
//! ranges  a block that has a record for each range tombstone: its start and end
//! index   a block that has a record for each block: its last key and end, u32
//! ```

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Write};
use std::mem;
use std::ops::Range;
use std::path::{Path, PathBuf};

use blocked_bloom::{BloomFilter, FilterOptions, KeyHash};

use crate::record::{Entry, decode, encode, put, records, seal};

/// Size of a block, without its last record. Only the index and the range tombstones exceed it.
const BLOCK_BYTES: usize = 4096;

/// Writes a table file from distinct keys in ascending order, with a filter of these options.
/// Renames the file to its final name after everything is stored. An engine would not collect the
/// file in memory, and would also sync the folder.
pub(crate) fn write<'a>(
    path: &Path,
    run: impl IntoIterator<Item = (&'a [u8], Entry<'a>)>,
    tombstones: &[Range<Vec<u8>>],
    options: &FilterOptions,
) -> io::Result<()> {
    let (mut table, mut block, mut index) = (Vec::new(), Vec::new(), Vec::new());
    let mut filter = options.builder();
    let mut run = run.into_iter().peekable();
    while let Some((key, entry)) = run.next() {
        // Deletions too: without them, lookups would skip this table and find an older value.
        filter.insert(key).map_err(io::Error::other)?;
        put(&mut block, key, &encode(entry))?;
        if run.peek().is_none() || block.len() >= BLOCK_BYTES {
            table.append(seal(&mut block));
            put(&mut index, key, &offset(&table)?)?;
        }
    }
    let filter_start = offset(&table)?;
    filter.finish().map_err(io::Error::other)?.write_to(&mut table)?;
    let ranges_start = offset(&table)?;
    tombstones.iter().try_for_each(|range| put(&mut block, &range.start, &range.end))?;
    table.append(seal(&mut block));
    let index_start = offset(&table)?;
    table.append(seal(&mut index));
    table.extend([filter_start, ranges_start, index_start].as_flattened());
    let temporary = path.with_extension("tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(&table)?;
    file.sync_all()?;
    fs::rename(temporary, path)
}

/// The stored form of the offset at the end of these bytes.
fn offset(bytes: &[u8]) -> io::Result<[u8; 4]> {
    Ok(u32::try_from(bytes.len()).map_err(io::Error::other)?.to_le_bytes())
}

/// An open table.
pub(crate) struct Table {
    pub(crate) path: PathBuf,
    /// The whole file. An engine would map the file, or read its blocks through a cache.
    bytes: Vec<u8>,
    /// Last key and byte range of each block.
    index: Vec<(Vec<u8>, Range<usize>)>,
    /// Deletions of all keys of a range, older than every entry of the table.
    pub(crate) tombstones: Vec<Range<Vec<u8>>>,
    pub(crate) filter: BloomFilter,
    /// Where the filter is in the file.
    pub(crate) filter_start: usize,
    /// Number of blocks that were read.
    pub(crate) block_reads: Cell<u64>,
}

impl Table {
    /// Opens a table file. Damage is an error that names the file. A damaged filter, or one with a
    /// hash other than `key_hash`, only causes a warning.
    pub(crate) fn open(path: &Path, key_hash: KeyHash) -> io::Result<Self> {
        let bytes = fs::read(path)?;
        let damaged = || damaged(path, "index, footer or list of range tombstones");
        let (filter_range, tombstones, index) = parse(&bytes).ok_or_else(damaged)?;
        let filter_start = filter_range.start;
        // An empty slice is a damaged filter. A filter that cannot be trusted must not answer
        // "absent". Without it, lookups cost more block reads but lose no keys.
        let stored = bytes.get(filter_range).unwrap_or_default();
        let (filter, error) = BloomFilter::open_or_pass_all(stored, key_hash);
        if let Some(error) = error {
            eprintln!("warning: {}: filter not used: {error}", path.display());
        }
        // In the copy, each block is one cache line.
        let filter = filter.to_filter().map_err(io::Error::other)?;
        let (path, block_reads) = (path.to_owned(), Cell::new(0));
        Ok(Table { path, bytes, index, tombstones, filter, filter_start, block_reads })
    }

    /// Returns the key's entry, from the only block that may contain it: `Some(None)` for a
    /// deletion, `None` if the table has no entry. A key after the last key of the table costs no
    /// read.
    pub(crate) fn get(&self, key: &[u8]) -> io::Result<Option<Entry<'_>>> {
        let i = self.index.partition_point(|(last_key, _)| &last_key[..] < key);
        let Some((_, range)) = self.index.get(i) else { return Ok(None) };
        let found = self.read(range)?.find(|(found, _)| *found == key);
        Ok(found.map(|(_, entry)| decode(entry)))
    }

    /// Returns all entries, in the order of their keys.
    pub(crate) fn entries(&self) -> io::Result<Vec<(&[u8], Entry<'_>)>> {
        let mut entries = Vec::new();
        for (_, range) in &self.index {
            entries.extend(self.read(range)?.map(|(key, entry)| (key, decode(entry))));
        }
        Ok(entries)
    }

    fn read(&self, range: &Range<usize>) -> io::Result<impl Iterator<Item = (&[u8], &[u8])>> {
        self.block_reads.update(|reads| reads + 1);
        let block = self.bytes.get(range.clone()).and_then(records);
        block.ok_or_else(|| damaged(&self.path, "data block"))
    }
}

/// Returns where the filter is, the range tombstones and the index, or `None` for damaged bytes.
#[expect(clippy::type_complexity, reason = "the parts of a table")]
fn parse(
    bytes: &[u8],
) -> Option<(Range<usize>, Vec<Range<Vec<u8>>>, Vec<(Vec<u8>, Range<usize>)>)> {
    let (body, footer) = bytes.split_last_chunk::<12>()?;
    let mut starts = footer.as_chunks().0.iter().map(|start| u32::from_le_bytes(*start) as usize);
    let (filter, ranges, index) = (starts.next()?, starts.next()?, starts.next()?);
    let tombstones = records(body.get(ranges..index)?)?;
    let tombstones = tombstones.map(|(start, end)| start.to_vec()..end.to_vec()).collect();
    let mut start = 0;
    let blocks = records(body.get(index..)?)?.map(|(last_key, end)| {
        let end = u32::from_le_bytes(end.try_into().ok()?) as usize;
        Some((last_key.to_vec(), mem::replace(&mut start, end)..end))
    });
    Some((filter..ranges, tombstones, blocks.collect::<Option<_>>()?))
}

fn damaged(path: &Path, part: &str) -> io::Error {
    let message = format!("{}: damaged: {part}", path.display());
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memtable::has_tombstone;

    #[test]
    fn damage_hides_no_key() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("0-1.table");
        let options = FilterOptions::default();
        let keys: Vec<[u8; 4]> = (0..3_000_u32).map(u32::to_be_bytes).collect();
        let run = keys.iter().map(|key| (&key[..], Some(&b"value"[..])));
        write(&path, run, &[vec![1]..vec![2]], &options)?;
        let sound = fs::read(&path)?;
        let starts = sound.last_chunk::<12>().unwrap().as_chunks().0;
        let [filter, ranges, index] = [0, 1, 2].map(|i| u32::from_le_bytes(starts[i]) as usize);
        for (byte, is_error) in [
            (9, true),
            (filter + 100, false),
            (ranges + 1, true),
            (index + 1, true),
            (sound.len() - 1, true),
        ] {
            let mut bytes = sound.clone();
            bytes[byte] ^= 64;
            fs::write(&path, bytes)?;
            let found = Table::open(&path, options.key_hash()).and_then(|table| {
                let is_deleted = |key: &[u8]| has_tombstone(&table.tombstones, key);
                assert!(is_deleted(&[1, 0]) && !is_deleted(&[2]));
                keys.iter().try_for_each(|key| {
                    assert!(table.filter.contains(key));
                    assert_eq!(table.get(key)?, Some(Some(&b"value"[..])));
                    Ok(())
                })
            });
            assert_eq!(found.is_err(), is_error, "{byte}");
        }
        Ok(())
    }
}
