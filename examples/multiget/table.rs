//! A table file: a sorted run that was written once and then is only read. Damage is an error, or a
//! filter that is not used.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blocked_bloom::{BloomFilterBytes, KeyHash};
use memmap2::Mmap;

use crate::block::Block;
use crate::footer::{decode, footer};

/// A key and its value.
pub(crate) type Record<'t> = (&'t [u8], &'t [u8]);

/// An open table: the file mapped, its index in memory, its filter looked up where it lies.
pub(crate) struct Table {
    path: PathBuf,
    map: Arc<Mmap>,
    /// Last key and range of each data block.
    index: Vec<(Vec<u8>, Range<usize>)>,
    filter: BloomFilterBytes<Section>,
}

/// Part of a mapped file, which it keeps mapped: bytes that a filter can own without a copy.
pub(crate) struct Section {
    map: Arc<Mmap>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Section {
    fn as_ref(&self) -> &[u8] {
        // A range outside the file is a damaged filter, and no bytes are no filter.
        self.map.get(self.range.clone()).unwrap_or_default()
    }
}

impl Table {
    /// Opens a table file. Damage is an error that names the file; in the filter, or if that is not of `key_hash`, a warning.
    pub(crate) fn open(path: &Path, key_hash: KeyHash) -> io::Result<Self> {
        let file = File::open(path)?;
        #[expect(unsafe_code, reason = "mapped bytes change if somebody changes the file")]
        // SAFETY: nothing writes to a table file once `flush` has given it its name.
        let map = Arc::new(unsafe { Mmap::map(&file)? });

        let (filter, index) = footer(&map).ok_or_else(|| damaged(path, "footer"))?;
        let index = map.get(index).and_then(read_index);
        let index = index.ok_or_else(|| damaged(path, "index"))?;
        let filter = Section { map: Arc::clone(&map), range: filter };
        Ok(Table { path: path.to_owned(), map, index, filter: open_filter(path, filter, key_hash) })
    }

    /// The same table as if its filter were damaged.
    pub(crate) fn without_filter(self) -> Self {
        let none = Section { map: Arc::clone(&self.map), range: 0..0 };
        let (pass_all, _) = BloomFilterBytes::open_or_pass_all(none, self.filter.view().key_hash());
        Table { filter: pass_all, ..self }
    }

    pub(crate) fn filter(&self) -> &BloomFilterBytes<Section> {
        &self.filter
    }

    /// The key's value, from the only block that may hold it. A key past the last costs no read.
    pub(crate) fn get(&self, key: &[u8], block_reads: &mut u64) -> io::Result<Option<&[u8]>> {
        let i = self.index.partition_point(|(last_key, _)| &last_key[..] < key);
        let Some((_, range)) = self.index.get(i) else {
            return Ok(None);
        };
        Ok(self.read(range, block_reads)?.get(key))
    }

    /// The keys and values whose keys start with `start`.
    pub(crate) fn scan(&self, start: &[u8], block_reads: &mut u64) -> io::Result<Vec<Record<'_>>> {
        let mut found = Vec::new();
        let first = self.index.partition_point(|(last_key, _)| &last_key[..] < start);
        for (last_key, range) in &self.index[first..] {
            for record in self.read(range, block_reads)?.records() {
                let record = record.ok_or_else(|| damaged(&self.path, "data block"))?;
                found.extend(record.0.starts_with(start).then_some(record));
            }
            if !last_key.starts_with(start) {
                break;
            }
        }
        Ok(found)
    }

    fn read(&self, range: &Range<usize>, block_reads: &mut u64) -> io::Result<Block<'_>> {
        *block_reads += 1;
        let block = self.map.get(range.clone()).and_then(Block::verify);
        block.ok_or_else(|| damaged(&self.path, "data block"))
    }
}

/// A filter that cannot be trusted must not say "absent", nor one of other hashes than those it is
/// looked up with. To do without costs block reads, not keys.
fn open_filter(path: &Path, section: Section, key_hash: KeyHash) -> BloomFilterBytes<Section> {
    let (filter, error) = BloomFilterBytes::open_or_pass_all(section, key_hash);
    if let Some(error) = error {
        eprintln!("warning: {}: filter not used: {error}", path.display());
    }
    filter
}

fn read_index(bytes: &[u8]) -> Option<Vec<(Vec<u8>, Range<usize>)>> {
    let entry = |(last_key, range): (&[u8], &[u8])| {
        Some((last_key.to_vec(), decode(range.try_into().ok()?)?))
    };
    Block::verify(bytes)?.records().map(|record| entry(record?)).collect()
}

fn damaged(path: &Path, part: &str) -> io::Error {
    let message = format!("{}: the {part} is damaged", path.display());
    io::Error::new(io::ErrorKind::InvalidData, message)
}
