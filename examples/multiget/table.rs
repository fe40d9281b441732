//! Table files: sorted runs that are written once and then only read. Damage causes an error;
//! damage in the filter only disables the filter.
//!
//! ```text
//! table   blocks | zeros | filter | ranges | index | starts of filter, ranges and index, u64 each
//! block   records | XXH3-64 of the records, u64
//! record  length of the key, u16 | length of the entry, u16 | key | entry
//! entry   1 and the value, or 0 for a deletion
//! ranges  a block that has a record for each range tombstone: its start and end
//! index   a block that has a record for each block: its last key, its start and end, u64
//! ```
//!
//! Integers are little-endian. Zeros pad the filter's offset to a multiple of 64, so that each of
//! its blocks is one cache line of the mapping.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blocked_bloom::{BloomFilter, FilterOptions, KeyHash, Stored};
use memmap2::Mmap;

use crate::record::{decode, encode, put, records, seal};

/// Size of a block, without its last record. Only the index and the range tombstones exceed it.
const BLOCK_BYTES: usize = 4096;
/// Three offsets.
const FOOTER: usize = 24;

/// A value, or `None` for a deletion.
pub(crate) type Entry<'t> = Option<&'t [u8]>;

/// Writes a table file from distinct keys in ascending order, with a filter of these options. An
/// entry without a value is a deletion. Renames the file to its final name after everything is
/// stored. No earlier table had this name, so no file mode must be preserved. An engine would also
/// sync the directory, but the standard library has no portable function for that.
pub(crate) fn write<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    path: &Path,
    run: impl IntoIterator<Item = (K, Option<V>)>,
    tombstones: &[Range<Vec<u8>>],
    options: &FilterOptions,
) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    let mut file = BufWriter::new(File::create(&temporary)?);
    let mut filter = options.builder();
    let (mut block, mut index, mut end) = (Vec::new(), Vec::new(), 0);
    let mut run = run.into_iter().peekable();
    while let Some((key, value)) = run.next() {
        // Deletions too: without them, lookups would skip this table and find an older value.
        filter.insert(&key).map_err(io::Error::other)?;
        put(&mut block, key.as_ref(), &encode(value.as_ref().map(AsRef::as_ref)))?;
        if run.peek().is_none() || block.len() >= BLOCK_BYTES {
            let start = end;
            end += write_block(&mut file, &mut block)?;
            put(&mut index, key.as_ref(), [start, end].map(u64::to_le_bytes).as_flattened())?;
        }
    }
    let filter_start = end.next_multiple_of(64);
    file.write_all(&[0; 64][..(filter_start - end) as usize])?;
    let filter = filter.finish().map_err(io::Error::other)?;
    let ranges_start = filter_start + filter.write_to(&mut file)?;
    let mut ranges = Vec::new();
    tombstones.iter().try_for_each(|range| put(&mut ranges, &range.start, &range.end))?;
    let index_start = ranges_start + write_block(&mut file, &mut ranges)?;
    write_block(&mut file, &mut index)?;
    let footer = [filter_start, ranges_start, index_start].map(u64::to_le_bytes);
    file.write_all(footer.as_flattened())?;
    file.into_inner()?.sync_all()?;
    fs::rename(temporary, path)
}

/// Writes the block and starts the next one. Returns the number of bytes written.
fn write_block(file: &mut impl Write, block: &mut Vec<u8>) -> io::Result<u64> {
    seal(block);
    file.write_all(block)?;
    let bytes = block.len() as u64;
    block.clear();
    Ok(bytes)
}

/// An open table: the mapped file, its index and range tombstones in memory, and its filter, which
/// is queried in place.
pub(crate) struct Table {
    path: PathBuf,
    /// Last key and byte range of each block.
    index: Vec<(Vec<u8>, Range<usize>)>,
    /// Deletions of all keys of a range, older than every entry of the table.
    pub(crate) tombstones: Vec<Range<Vec<u8>>>,
    section: Section,
    pub(crate) filter: BloomFilter<Stored<Section>>,
}

/// Part of a mapped file, which stays mapped as long as this value lives. A filter can own it
/// without a copy.
#[derive(Clone)]
pub(crate) struct Section {
    map: Arc<Mmap>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Section {
    fn as_ref(&self) -> &[u8] {
        // A range outside the file means that the filter is damaged; an empty slice does not open.
        self.map.get(self.range.clone()).unwrap_or_default()
    }
}

impl Table {
    /// Opens a table file. Damage is an error that names the file. A damaged filter, or one with a
    /// hash other than `key_hash`, only causes a warning.
    pub(crate) fn open(path: &Path, key_hash: KeyHash) -> io::Result<Self> {
        let file = File::open(path)?;
        #[expect(unsafe_code, reason = "mapped bytes change if somebody changes the file")]
        // SAFETY: table files are never written to after `write` has renamed them.
        let map = Arc::new(unsafe { Mmap::map(&file)? });
        let footer = map.last_chunk::<FOOTER>().and_then(|footer| offsets(footer));
        let [filter, ranges, index] = footer.ok_or_else(|| damaged(path, "footer"))?;
        let tombstones = map
            .get(ranges..index)
            .and_then(records)
            .map(|records| records.map(|(start, end)| start.to_vec()..end.to_vec()).collect());
        let tombstones = tombstones.ok_or_else(|| damaged(path, "list of range tombstones"))?;
        let index = map.get(index..map.len() - FOOTER).and_then(records).and_then(|records| {
            let block = |(last_key, at): (&[u8], _)| {
                let [start, end] = offsets(at)?;
                Some((last_key.to_vec(), start..end))
            };
            records.map(block).collect()
        });
        let index = index.ok_or_else(|| damaged(path, "index"))?;
        let section = Section { map, range: filter..ranges };
        // A filter that cannot be trusted must not answer "absent". Without it, lookups cost more
        // block reads but lose no keys.
        let (filter, error) = BloomFilter::open_or_pass_all(section.clone(), key_hash);
        if let Some(error) = error {
            eprintln!("warning: {}: filter not used: {error}", path.display());
        }
        Ok(Table { path: path.to_owned(), index, tombstones, section, filter })
    }

    /// Stops using the filter, as if it were damaged.
    pub(crate) fn drop_filter(&mut self) {
        let none = Section { map: Arc::clone(&self.section.map), range: 0..0 };
        self.filter = BloomFilter::open_or_pass_all(none, self.filter.key_hash()).0;
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the bytes of the file that its filter takes.
    pub(crate) fn filter_range(&self) -> Range<usize> {
        self.section.range.clone()
    }

    /// Whether a range tombstone deletes older values of this key.
    pub(crate) fn has_tombstone(&self, key: &[u8]) -> bool {
        has_tombstone(&self.tombstones, key)
    }

    /// Returns the key's entry, from the only block that may contain it: `Some(None)` for a
    /// deletion, `None` if the table has no entry. A key after the last key of the table costs no
    /// read.
    pub(crate) fn get(&self, key: &[u8], block_reads: &mut u64) -> io::Result<Option<Entry<'_>>> {
        let i = self.index.partition_point(|(last_key, _)| &last_key[..] < key);
        let Some((_, range)) = self.index.get(i) else { return Ok(None) };
        let found = self.read(range, block_reads)?.find(|(found, _)| *found >= key);
        Ok(found.filter(|(found, _)| *found == key).map(|(_, entry)| decode(entry)))
    }

    /// Returns all keys that start with `start`, and their entries.
    pub(crate) fn scan(
        &self,
        start: &[u8],
        block_reads: &mut u64,
    ) -> io::Result<Vec<(&[u8], Entry<'_>)>> {
        let mut found = Vec::new();
        let first = self.index.partition_point(|(last_key, _)| &last_key[..] < start);
        for (last_key, range) in &self.index[first..] {
            let records = self.read(range, block_reads)?;
            let records = records.filter(|(key, _)| key.starts_with(start));
            found.extend(records.map(|(key, entry)| (key, decode(entry))));
            if !last_key.starts_with(start) {
                break;
            }
        }
        Ok(found)
    }

    fn read(
        &self,
        range: &Range<usize>,
        block_reads: &mut u64,
    ) -> io::Result<impl Iterator<Item = (&[u8], &[u8])>> {
        *block_reads += 1;
        let block = self.section.map.get(range.clone()).and_then(records);
        block.ok_or_else(|| damaged(&self.path, "data block"))
    }
}

pub(crate) fn has_tombstone(tombstones: &[Range<Vec<u8>>], key: &[u8]) -> bool {
    tombstones.iter().any(|range| &range.start[..] <= key && key < &range.end[..])
}

/// Reads offsets in the file.
fn offsets<const N: usize>(bytes: &[u8]) -> Option<[usize; N]> {
    let numbers: [[u8; 8]; N] = bytes.as_chunks().0.try_into().ok()?;
    let offsets = numbers.map(|bytes| usize::try_from(u64::from_le_bytes(bytes)).ok());
    offsets.iter().all(Option::is_some).then(|| offsets.map(Option::unwrap_or_default))
}

fn damaged(path: &Path, part: &str) -> io::Error {
    let message = format!("{}: the {part} is damaged", path.display());
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_hides_no_key() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("0-1.table");
        let options = FilterOptions::default();
        let keys: Vec<[u8; 4]> = (0..3_000_u32).map(u32::to_be_bytes).collect();
        let tombstone = vec![1]..vec![2];
        write(&path, keys.iter().map(|key| (key, Some(b"value"))), &[tombstone], &options)?;
        let sound = fs::read(&path)?;
        let [filter, ranges, index] = offsets(&sound[sound.len() - FOOTER..]).unwrap();
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
                assert!(table.has_tombstone(&[1, 0]) && !table.has_tombstone(&[2]));
                keys.iter().try_for_each(|key| {
                    assert!(table.filter.contains(key));
                    let value = table.get(key, &mut 0)?;
                    assert_eq!(value, Some(Some(&b"value"[..])));
                    Ok(())
                })
            });
            assert_eq!(found.is_err(), is_error, "{byte}");
        }
        Ok(())
    }
}
