//! Table files: sorted runs that are written once and then only read. Damage causes an error;
//! damage in the filter only disables the filter.
//!
//! ```text
//! table   blocks | zeros | filter | index | start of the filter, u64 | start of the index, u64
//! block   records | XXH3-64 of the records, u64
//! record  length of the key, u16 | length of the value, u16 | key | value
//! index   a block that has a record for each block: its last key, its start and end, u64
//! ```
//!
//! Integers are little-endian. Zeros pad the filter's offset to a multiple of 64, so that each of
//! its blocks is one cache line of the mapping.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::iter;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blocked_bloom::{BloomFilter, FilterOptions, KeyHash, KeyHasher, Stored};
use memmap2::Mmap;

/// Size of a block. Only a single larger record and the index exceed it.
const BLOCK_BYTES: usize = 4096;

/// A key and its value.
type Record<'t> = (&'t [u8], &'t [u8]);

/// Writes a table file from records with distinct keys in ascending order, with a filter that has
/// these options. Renames the file to its final name after everything is stored. No earlier table
/// had this name, so no file mode must be preserved. An engine would also sync the directory, but
/// the standard library has no portable function for that.
pub(crate) fn flush<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    path: &Path,
    run: impl IntoIterator<Item = (K, V)>,
    options: &FilterOptions,
) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    let mut file = BufWriter::new(File::create(&temporary)?);
    let mut filter = options.builder();
    let (mut block, mut index, mut end) = (Vec::new(), Vec::new(), 0);
    let mut run = run.into_iter().peekable();
    while let Some((key, value)) = run.next() {
        filter.insert(&key).map_err(io::Error::other)?;
        put(&mut block, key.as_ref(), value.as_ref())?;
        let size = |(key, value): &(K, V)| 4 + key.as_ref().len() + value.as_ref().len() + 8;
        if run.peek().is_none_or(|next| block.len() + size(next) > BLOCK_BYTES) {
            let start = end;
            end += write_block(&mut file, &mut block)?;
            put(&mut index, key.as_ref(), [start, end].map(u64::to_le_bytes).as_flattened())?;
        }
    }
    let filter_start = end.next_multiple_of(64);
    file.write_all(&[0; 64][..(filter_start - end) as usize])?;
    let filter = filter.finish().map_err(io::Error::other)?;
    let index_start = filter_start + filter.write_to(&mut file)?;
    write_block(&mut file, &mut index)?;
    file.write_all([filter_start, index_start].map(u64::to_le_bytes).as_flattened())?;
    file.into_inner()?.sync_all()?;
    fs::rename(temporary, path)
}

fn put(block: &mut Vec<u8>, key: &[u8], value: &[u8]) -> io::Result<()> {
    for part in [key, value] {
        block.extend(u16::try_from(part.len()).map_err(io::Error::other)?.to_le_bytes());
    }
    block.extend([key, value].concat());
    Ok(())
}

/// Writes the block and starts the next one. Returns the number of bytes written.
fn write_block(file: &mut impl Write, block: &mut Vec<u8>) -> io::Result<u64> {
    block.extend(KeyHasher::default().hash(&block).to_le_bytes());
    file.write_all(block)?;
    let bytes = block.len() as u64;
    block.clear();
    Ok(bytes)
}

/// Returns the records of a block, or `None` if it is damaged. The checksum is verified first, so
/// every record is complete.
fn records(block: &[u8]) -> Option<impl Iterator<Item = Record<'_>>> {
    let (mut records, checksum) = block.split_last_chunk()?;
    let is_sound = KeyHasher::default().hash(records) == u64::from_le_bytes(*checksum);
    let next = move || {
        let ([k0, k1, v0, v1], rest) = records.split_first_chunk()?;
        let (key, rest) = rest.split_at_checked(u16::from_le_bytes([*k0, *k1]).into())?;
        let (value, rest) = rest.split_at_checked(u16::from_le_bytes([*v0, *v1]).into())?;
        records = rest;
        Some((key, value))
    };
    is_sound.then(|| iter::from_fn(next))
}

/// An open table: the mapped file, its index in memory, and its filter, which is queried in place.
pub(crate) struct Table {
    path: PathBuf,
    /// Last key and byte range of each block.
    index: Vec<(Vec<u8>, Range<usize>)>,
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
        // SAFETY: table files are never written to after `flush` has renamed them.
        let map = Arc::new(unsafe { Mmap::map(&file)? });
        let footer = map.split_last_chunk::<16>().and_then(|(_, footer)| range(footer));
        let filter = footer.ok_or_else(|| damaged(path, "footer"))?;
        let index = map.get(filter.end..map.len() - 16).and_then(records).and_then(|records| {
            records.map(|(last_key, at)| Some((last_key.to_vec(), range(at)?))).collect()
        });
        let index = index.ok_or_else(|| damaged(path, "index"))?;
        let section = Section { map, range: filter };
        // A filter that cannot be trusted must not answer "absent". Without it, lookups cost more
        // block reads but lose no keys.
        let (filter, error) = BloomFilter::open_or_pass_all(section.clone(), key_hash);
        if let Some(error) = error {
            eprintln!("warning: {}: filter not used: {error}", path.display());
        }
        Ok(Table { path: path.to_owned(), index, section, filter })
    }

    /// The same table as if its filter were damaged.
    pub(crate) fn to_unfiltered(&self) -> Self {
        let none = Section { map: Arc::clone(&self.section.map), range: 0..0 };
        let (filter, _) = BloomFilter::open_or_pass_all(none, self.filter.key_hash());
        let (path, index) = (self.path.clone(), self.index.clone());
        Table { path, index, section: self.section.clone(), filter }
    }

    /// Returns the filter's bytes, like a block cache. They were verified when the table was
    /// opened.
    pub(crate) fn filter_bytes(&self) -> &[u8] {
        self.section.as_ref()
    }

    /// Returns the key's value, from the only block that may contain it. A key after the last key
    /// of the table costs no read.
    pub(crate) fn get(&self, key: &[u8], block_reads: &mut u64) -> io::Result<Option<&[u8]>> {
        let i = self.index.partition_point(|(last_key, _)| &last_key[..] < key);
        let Some((_, range)) = self.index.get(i) else { return Ok(None) };
        let found = self.read(range, block_reads)?.find(|(found, _)| *found >= key);
        Ok(found.filter(|(found, _)| *found == key).map(|(_, value)| value))
    }

    /// Returns all keys that start with `start`, and their values.
    pub(crate) fn scan(&self, start: &[u8], block_reads: &mut u64) -> io::Result<Vec<Record<'_>>> {
        let mut found = Vec::new();
        let first = self.index.partition_point(|(last_key, _)| &last_key[..] < start);
        for (last_key, range) in &self.index[first..] {
            let records = self.read(range, block_reads)?;
            found.extend(records.filter(|(key, _)| key.starts_with(start)));
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
    ) -> io::Result<impl Iterator<Item = Record<'_>>> {
        *block_reads += 1;
        let block = self.section.map.get(range.clone()).and_then(records);
        block.ok_or_else(|| damaged(&self.path, "data block"))
    }
}

/// Reads two offsets in the file.
fn range(bytes: &[u8]) -> Option<Range<usize>> {
    let [start, end] = *bytes.as_chunks().0 else { return None };
    let offset = |bytes| usize::try_from(u64::from_le_bytes(bytes)).ok();
    Some(offset(start)?..offset(end)?)
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
        let path = folder.path().join("0.table");
        let options = FilterOptions::default();
        let keys: Vec<[u8; 4]> = (0..3_000_u32).map(u32::to_be_bytes).collect();
        flush(&path, keys.iter().map(|key| (key, b"value")), &options)?;
        let sound = fs::read(&path)?;
        let filter = sound.last_chunk().and_then(|footer: &[u8; 16]| range(footer)).unwrap().start;
        let (index, footer) = (sound.len() - 20, sound.len() - 1);
        for (byte, is_error) in [(9, true), (filter + 100, false), (index, true), (footer, true)] {
            let mut bytes = sound.clone();
            bytes[byte] ^= 64;
            fs::write(&path, bytes)?;
            let found = Table::open(&path, options.key_hash()).and_then(|table| {
                keys.iter().try_for_each(|key| {
                    assert!(table.filter.contains(key));
                    table.get(key, &mut 0).map(|value| assert_eq!(value, Some(&b"value"[..])))
                })
            });
            assert_eq!(found.is_err(), is_error, "{byte}");
        }
        Ok(())
    }
}
