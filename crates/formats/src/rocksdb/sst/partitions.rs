//! A partitioned filter, and the index of its partitions.
//!
//! Partitions that overlap, or are not in the order of their keys, are errors. A key is only
//! searched for if keys are ordered by their bytes; with another comparator every partition is
//! looked up.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

use blocked_bloom::parts::fill_with_hits;
use blocked_bloom::{AllocError, Filter, Kernel};

use super::super::block::{FilterBlock, ReadKey};
use super::super::error::RocksdbError;
use super::block::{Block, BlockBytes, Handle};
use super::entries::{Cursor, Entries, Key};
use super::properties::Properties;
use super::separators::Separators;
use super::table::Table;

/// The comparator that orders keys by their bytes.
const BYTEWISE: &str = "leveldb.BytewiseComparator";

/// Sequence number and type, which follow the user key in an internal key.
const INTERNAL_BYTES: usize = 8;

#[derive(Clone)]
pub(super) struct Partitions<D> {
    /// In the order of their keys.
    pub(super) filters: Vec<FilterBlock<BlockBytes<D>>>,
    /// One per partition, unless keys are ordered by more than their bytes.
    pub(super) separators: Option<Separators>,
}

impl<D: AsRef<[u8]>> Partitions<D> {
    pub(super) fn open<'a>(
        table: &Table<'_, 'a>,
        index: Block<'a>,
        properties: &Properties,
        hold: impl Fn(Block<'a>) -> BlockBytes<D>,
    ) -> Result<Self, RocksdbError> {
        let suffix = if properties.user_key_separators { 0 } else { INTERNAL_BYTES };
        let is_bytewise = properties.comparator.as_deref() == Some(BYTEWISE);
        let mut partitions = Partitions {
            filters: Vec::new(),
            separators: is_bytewise.then(|| Separators::new(suffix)),
        };
        let mut entries = Entries::new(index)?;
        let mut last_key = Vec::new();
        let mut last = Handle { offset: 0, size: 0 };
        while !entries.is_at_end() {
            let start = entries.cursor;
            let (separator, handle) = next(&mut entries, properties.delta_handles, last)?;
            if separator.len() < suffix {
                return Err(start.malformed("a separator of at least 8 bytes"));
            }
            if let Some(separators) = &mut partitions.separators {
                separators.push(separator, &mut last_key, start)?;
            }
            // In the order of the file, so that each byte is verified once for any contents of the
            // index.
            let first = if partitions.filters.is_empty() { 0 } else { last.end() };
            let filter = match table.block("filter partition", handle, first) {
                Err(RocksdbError::NotLoaded { offset, length }) => {
                    let rest = (&mut entries, properties.delta_handles);
                    let length = length.max(length_of_run(table, handle, rest)?);
                    return Err(RocksdbError::NotLoaded { offset, length });
                }
                block => block?.filter(&hold)?,
            };
            last = handle;
            partitions.push(filter)?;
        }
        match partitions.filters.is_empty() {
            true => Err(entries.cursor.malformed("at least one partition")),
            false => Ok(partitions),
        }
    }

    pub(super) fn push(&mut self, filter: FilterBlock<BlockBytes<D>>) -> Result<(), AllocError> {
        let error = AllocError::new(size_of_val(self.filters.as_slice()) as u64);
        self.filters.try_reserve(1).map_err(|_| error)?;
        self.filters.push(filter);
        Ok(())
    }

    pub(super) fn with_kernel(self, kernel: Kernel) -> Self {
        let filters = self.filters.into_iter().map(|filter| filter.with_kernel(kernel));
        Partitions { filters: filters.collect(), ..self }
    }

    /// Returns the partition that may contain the key, or `None` if that is unknown.
    pub(super) fn partition(&self, key: &[u8]) -> Option<usize> {
        self.separators.as_ref().map(|separators| separators.partition_of_key(key))
    }

    pub(super) fn contains(&self, key: &[u8]) -> bool {
        match self.partition(key) {
            Some(partition) => self.filters[partition].contains(key),
            None => self.contains_prefix(key),
        }
    }

    /// Returns whether any partition may contain the hash.
    pub(super) fn contains_hash(&self, hash: u64) -> bool {
        self.filters.iter().any(|filter| filter.contains_hash(hash))
    }

    /// Returns whether any partition may contain the prefix.
    pub(super) fn contains_prefix(&self, prefix: &[u8]) -> bool {
        self.filters.iter().any(|filter| filter.contains(prefix))
    }

    /// Returns whether a key that begins with `start` may be present. `prefix` is its prefix in the
    /// filter.
    ///
    /// Looks up the partitions whose keys may begin with `start`, usually one or two: not every
    /// release of RocksDB also inserts a prefix into the partition before its keys.
    pub(super) fn contains_start(&self, start: &[u8], prefix: &[u8]) -> bool {
        let Some(separators) = &self.separators else { return self.contains_prefix(prefix) };
        let first = separators.partition_of_key(start);
        let last = separators.first(start, start.len(), |order| order == Ordering::Greater);
        self.filters[first..=last].iter().any(|filter| filter.contains(prefix))
    }

    /// Looks up every hash in every partition, because a hash does not determine its key's
    /// partition.
    pub(super) fn look_up_hashes(&self, hashes: &[u64], words: &mut [u64]) {
        // If the owner of the file panics, the remaining answers are "maybe".
        fill_with_hits(words, hashes.len());
        self.merge_hits(words, |filter, hits| _ = filter.contains_hashes_into(hashes, hits));
    }

    /// Looks up keys, whose bytes `bytes` reads; `words` has one word per 64 keys.
    pub(super) fn look_up<K>(&self, keys: &[K], words: &mut [u64], bytes: impl ReadKey<K> + Copy) {
        // If a key or the owner of the file panics, the remaining answers are "maybe".
        fill_with_hits(words, keys.len());
        let Some(separators) = &self.separators else {
            return self.merge_hits(words, |filter, hits| _ = filter.look_up(keys, hits, bytes));
        };
        let place = |(i, key)| (bytes.with_bytes(key, |key| separators.partition_of_key(key)), i);
        let mut places: Vec<(usize, usize)> = keys.iter().enumerate().map(place).collect();
        places.sort_unstable();
        let mut hits = Vec::new();
        for places in places.chunk_by(|a, b| a.0 == b.0) {
            hits.resize(places.len().div_ceil(64), 0);
            // There is one word per 64 keys.
            _ = self.filters[places[0].0].look_up(places, &mut hits, IndexedKeys(keys, bytes));
            for (at, &(_, i)) in places.iter().enumerate() {
                let miss = !hits[at / 64] >> (at % 64) & 1;
                words[i / 64] &= !(miss << (i % 64));
            }
        }
    }

    /// Combines the hits of all partitions.
    fn merge_hits(
        &self,
        words: &mut [u64],
        look_up: impl Fn(&FilterBlock<BlockBytes<D>>, &mut [u64]),
    ) {
        if let [filter] = &self.filters[..] {
            return look_up(filter, words);
        }
        let (mut any, mut hits) = (vec![0; words.len()], vec![0; words.len()]);
        for filter in &self.filters {
            look_up(filter, &mut hits);
            any.iter_mut().zip(&hits).for_each(|(any, hits)| *any |= hits);
        }
        words.copy_from_slice(&any);
    }
}

/// Reads the bytes of keys that are given as partition and index in the batch.
struct IndexedKeys<'k, K, B>(&'k [K], B);

impl<K, B: ReadKey<K>> ReadKey<(usize, usize)> for IndexedKeys<'_, K, B> {
    fn with_bytes<R>(&self, &(_, i): &(usize, usize), read: impl FnOnce(&[u8]) -> R) -> R {
        self.1.with_bytes(&self.0[i], read)
    }
}

/// Maximum bytes of partitions requested at once, so that callers that load them can show progress.
const MAX_RUN_BYTES: u64 = 64 << 20;

/// If fewer bytes than this are between two partitions, they are loaded too. A file with gaps,
/// which no writer produces, is then not reopened for each partition.
const MAX_GAP: u64 = 1 << 20;

/// Returns the bytes from `start` to the end of the last partition to load together.
fn length_of_run(
    table: &Table<'_, '_>,
    start: Handle,
    (entries, is_delta): (&mut Entries<'_>, bool),
) -> Result<u64, RocksdbError> {
    let mut last = start;
    while !entries.is_at_end() {
        let (_, handle) = next(entries, is_delta, last)?;
        let gap = handle.offset.checked_sub(last.end());
        let is_near = gap.is_some_and(|gap| gap < MAX_GAP);
        let run = handle.end().checked_sub(start.offset);
        let is_within = run.is_some_and(|run| run <= MAX_RUN_BYTES);
        if !is_near || !is_within || handle.end() > table.footer {
            break;
        }
        last = handle;
    }
    Ok(last.end() - start.offset)
}

/// Reads the next separator and the handle of its partition.
fn next<'a>(
    entries: &mut Entries<'a>,
    is_delta: bool,
    last: Handle,
) -> Result<(Key<'a>, Handle), RocksdbError> {
    if is_delta {
        let separator = entries.next_key()?;
        return Ok((separator, delta_handle(&mut entries.cursor, separator, last)?));
    }
    let (separator, value) = entries.next()?;
    Ok((separator, Cursor::new(value).handle()?))
}

/// Reads a handle that is stored as the difference from the previous size. If the separator shares
/// nothing with the previous one, the whole handle is stored.
fn delta_handle(
    cursor: &mut Cursor<'_>,
    separator: Key<'_>,
    last: Handle,
) -> Result<Handle, RocksdbError> {
    if separator.shared == 0 {
        return cursor.handle();
    }
    let error = cursor.malformed("a difference of sizes within 64 bits");
    let zigzag = cursor.varint()?;
    let difference = (zigzag >> 1).cast_signed() ^ -((zigzag & 1).cast_signed());
    let size = last.size.checked_add_signed(difference).ok_or(error)?;
    Ok(Handle { offset: last.end(), size })
}
