//! A filter in partitions: which of them a key or prefix falls into.
//!
//! The partition index has separators, each not below the last key of its partition, and handles.
//! Partitions that overlap or lie in another order than their keys are errors, and so are long runs
//! of separators that share bytes, since a search reads a whole run. Keys are searched for only
//! where they are ordered by their bytes; under another comparator every partition is looked up.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::slice;

use blocked_bloom::parts::fill_with_hits;
use blocked_bloom::{AllocError, Filter, Kernel};

use super::super::block::{BytesOf, FilterBlock};
use super::super::error::RocksdbError;
use super::block::{Block, Handle};
use super::entries::{Cursor, Entries, Key};
use super::properties::Properties;
use super::table::Table;

/// The comparator under which keys are ordered by their bytes.
const BYTEWISE: &str = "leveldb.BytewiseComparator";

/// Sequence number and type, which follow the user key in an internal key.
const INTERNAL_BYTES: usize = 8;

/// The most separators from one that shares no bytes with the one before to the next such. It
/// bounds the cost of a lookup, whatever the file. RocksDB's `index_block_restart_interval`, 1 by
/// default.
const MAX_RUN: usize = 4_096;

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Partitions<'a> {
    /// At least one, in the order of their keys.
    list: Vec<Partition<'a>>,
    /// The indices of those whose separators share nothing: the first, and one at least every
    /// [`MAX_RUN`] if `bytewise`.
    runs: Vec<usize>,
    /// Bytes at the end of a separator that do not belong to the user key.
    suffix: usize,
    /// Whether the keys are ordered by their bytes.
    bytewise: bool,
}

/// Separators are kept as they are stored, as what differs from the one before: decoded they may be
/// as long as the square of the index.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Partition<'a> {
    separator: Key<'a>,
    filter: FilterBlock<&'a [u8]>,
}

impl<'a> Partitions<'a> {
    pub(super) fn of(
        table: &Table<'_, 'a>,
        index: Block<'a>,
        properties: &Properties<'_>,
    ) -> Result<Self, RocksdbError> {
        let mut partitions = Partitions {
            list: Vec::new(),
            runs: Vec::new(),
            suffix: if properties.user_key_separators { 0 } else { INTERNAL_BYTES },
            bytewise: properties.comparator == Some(BYTEWISE),
        };
        let mut entries = Entries::of(index)?;
        let mut last_key = Vec::new();
        let mut last = Handle { offset: 0, size: 0 };
        while !entries.is_at_end() {
            let start = entries.cursor;
            let (separator, handle) = next(&mut entries, properties.delta_handles, last)?;
            if separator.len() < partitions.suffix {
                return Err(start.malformed("a separator of at least 8 bytes"));
            }
            if partitions.bytewise && !partitions.are_in_order(&last_key, separator) {
                return Err(start.malformed("a separator that is not below the one before it"));
            }
            let index = partitions.list.len();
            if separator.shared == 0 {
                let error = AllocError::new(size_of_val(partitions.runs.as_slice()) as u64);
                partitions.runs.try_reserve(1).map_err(|_| error)?;
                partitions.runs.push(index);
            }
            let run = partitions.runs.last().map_or(0, |start| index - start);
            if partitions.bytewise && run >= MAX_RUN {
                return Err(
                    start.malformed("a separator that shares no bytes, after 4,096 that do")
                );
            }
            separator.follow(&mut last_key)?;
            // In the order of the file, so that each byte is verified once, whatever the index
            // says.
            let first = if partitions.list.is_empty() { 0 } else { last.end() };
            let filter = match table.block("filter partition", handle, first) {
                Err(RocksdbError::NotLoaded { offset, length }) => {
                    let rest = (&mut entries, properties.delta_handles);
                    let length = length.max(length_of_run(table, handle, rest)?);
                    return Err(RocksdbError::NotLoaded { offset, length });
                }
                block => block?.filter()?,
            };
            last = handle;
            let error = AllocError::new(size_of_val(partitions.list.as_slice()) as u64);
            partitions.list.try_reserve(1).map_err(|_| error)?;
            partitions.list.push(Partition { separator, filter });
        }
        match partitions.list.is_empty() {
            true => Err(entries.cursor.malformed("at least one partition")),
            false => Ok(partitions),
        }
    }

    /// Whether the user key of a separator is at least that of the key before it. Bytes that they
    /// share are not read again.
    fn are_in_order(&self, before: &[u8], separator: Key<'_>) -> bool {
        let before = &before[..before.len().saturating_sub(self.suffix)];
        let length = separator.len() - self.suffix;
        let equal = separator.shared.min(before.len()).min(length);
        let own =
            length.checked_sub(separator.shared).map_or(&[][..], |own| &separator.suffix[..own]);
        match equal == separator.shared {
            true => &before[equal..] <= own,
            // One of the two ends within the bytes that they share.
            false => before.len() <= length,
        }
    }

    pub(super) fn filters(&self) -> impl ExactSizeIterator<Item = &FilterBlock<&'a [u8]>> {
        self.list.iter().map(|partition| &partition.filter)
    }

    pub(super) fn with_kernel(mut self, kernel: Kernel) -> Self {
        for partition in &mut self.list {
            partition.filter = partition.filter.with_kernel(kernel);
        }
        self
    }

    /// The partition that holds the key if any does, unless that is not known.
    pub(super) fn partition(&self, key: &[u8]) -> Option<usize> {
        self.bytewise.then(|| self.of_key(key))
    }

    pub(super) fn contains(&self, key: &[u8]) -> bool {
        let list =
            if self.bytewise { slice::from_ref(&self.list[self.of_key(key)]) } else { &self.list };
        list.iter().any(|partition| partition.filter.contains(key))
    }

    /// Whether any partition may hold the prefix.
    pub(super) fn contains_prefix(&self, prefix: &[u8]) -> bool {
        self.list.iter().any(|partition| partition.filter.contains(prefix))
    }

    /// Whether a key that begins with `start`, of which `prefix` was added to the filter, may be
    /// present.
    ///
    /// Looks up the partitions whose keys may begin with `start`, usually one or two: not every
    /// release of RocksDB adds a prefix to the partition before its keys as well.
    pub(super) fn contains_start(&self, start: &[u8], prefix: &[u8]) -> bool {
        if !self.bytewise {
            return self.contains_prefix(prefix);
        }
        let first = self.of_key(start);
        let last = self.first(start, start.len(), |order| order == Ordering::Greater);
        self.list[first..=last].iter().any(|partition| partition.filter.contains(prefix))
    }

    /// Looks up every hash in every partition: a hash does not tell which one its key is in.
    pub(super) fn look_up_hashes(&self, hashes: &[u64], words: &mut [u64]) {
        self.in_any(words, |filter, hits| _ = filter.contains_hashes_into(hashes, hits));
    }

    /// Looks up keys, whose bytes `bytes` reads. There is one word per 64 keys.
    pub(super) fn look_up<K>(&self, keys: &[K], words: &mut [u64], bytes: impl BytesOf<K> + Copy) {
        // If a key panics when it is read, what is left says "maybe".
        fill_with_hits(words, keys.len());
        if !self.bytewise {
            return self.in_any(words, |filter, hits| _ = filter.look_up(keys, hits, bytes));
        }
        let place = |(i, key)| (bytes.with(key, |key| self.of_key(key)), i);
        let mut places: Vec<(usize, usize)> = keys.iter().enumerate().map(place).collect();
        places.sort_unstable();
        let mut hits = Vec::new();
        for places in places.chunk_by(|a, b| a.0 == b.0) {
            hits.resize(places.len().div_ceil(64), 0);
            // There is a word per 64 places.
            _ = self.list[places[0].0].filter.look_up(places, &mut hits, Of(keys, bytes));
            for (at, &(_, i)) in places.iter().enumerate() {
                let miss = !hits[at / 64] >> (at % 64) & 1;
                words[i / 64] &= !(miss << (i % 64));
            }
        }
    }

    /// The hits of any partition.
    fn in_any(&self, words: &mut [u64], look_up: impl Fn(&FilterBlock<&'a [u8]>, &mut [u64])) {
        let (mut any, mut hits) = (vec![0; words.len()], vec![0; words.len()]);
        for partition in &self.list {
            look_up(&partition.filter, &mut hits);
            any.iter_mut().zip(&hits).for_each(|(any, hits)| *any |= hits);
        }
        words.copy_from_slice(&any);
    }

    /// The partition that holds the key if any does.
    fn of_key(&self, key: &[u8]) -> usize {
        self.first(key, usize::MAX, |order| order != Ordering::Less)
    }

    /// The first partition for which `holds` is true, or the last of all. `holds` gets the order of
    /// the first `most` bytes of the separator's user key and `key`. It is false up to some
    /// partition, and true from there on.
    ///
    /// Cost: a binary search for the run, then one step for each separator in it.
    fn first(&self, key: &[u8], most: usize, holds: impl Fn(Ordering) -> bool) -> usize {
        let order = |walk: &mut Walk<'_>, i: usize| {
            let separator = self.list[i].separator;
            walk.step(separator, (separator.len() - self.suffix).min(most))
        };
        let start = Walk { key, common: 0, next: None };
        let run = self.runs.partition_point(|&i| !holds(order(&mut start.clone(), i)));
        let Some(before) = run.checked_sub(1) else { return 0 };
        let end = self.runs.get(run).map_or(self.list.len(), |&end| end);
        let mut walk = start;
        let found = (self.runs[before]..end).find(|&i| holds(order(&mut walk, i)));
        found.unwrap_or(end).min(self.list.len() - 1)
    }
}

/// Reads the bytes of keys that are given as partition and index in the batch.
struct Of<'k, K, B>(&'k [K], B);

impl<K, B: BytesOf<K>> BytesOf<(usize, usize)> for Of<'_, K, B> {
    fn with<R>(&self, &(_, i): &(usize, usize), read: impl FnOnce(&[u8]) -> R) -> R {
        self.1.with(&self.0[i], read)
    }
}

/// Compares separator after separator of a run with a key, without decoding them.
#[derive(Clone)]
struct Walk<'k> {
    key: &'k [u8],
    /// Bytes that the last separator and the key have in common.
    common: usize,
    /// The last separator's byte after them, if it has one.
    next: Option<u8>,
}

impl Walk<'_> {
    /// The order of the next separator's first `length` bytes and the key. The first separator
    /// shares nothing.
    fn step(&mut self, separator: Key<'_>, length: usize) -> Ordering {
        let Key { shared, suffix } = separator;
        // If it shares more than is common, it differs from the key where the last one did.
        if shared <= self.common {
            let own = suffix.iter().zip(&self.key[shared..]).take_while(|(a, b)| a == b).count();
            self.common = shared + own;
            self.next = suffix.get(own).copied();
        }
        match (self.next, self.key.get(self.common)) {
            (Some(next), Some(byte)) if self.common < length => next.cmp(byte),
            _ => length.cmp(&self.key.len()),
        }
    }
}

/// The most bytes of partitions that are needed at once, so that whoever loads them can show
/// progress.
const MAX_RUN_BYTES: u64 = 64 << 20;

/// If there are fewer bytes than this between two partitions, they are loaded, too: a file with
/// gaps, which no writer makes, is then not opened again for each partition.
const MAX_GAP: u64 = 1 << 20;

/// Bytes from the partition at `start` to the end of the last that may be loaded with it.
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
        let is_within =
            handle.end() <= table.footer && handle.end() - start.offset <= MAX_RUN_BYTES;
        if !is_near || !is_within {
            break;
        }
        last = handle;
    }
    Ok(last.end() - start.offset)
}

/// The next separator and the handle of its partition.
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

/// Reads a handle of which only the difference from the last one's size is stored; the whole handle
/// is, where the separator shares nothing with the last.
fn delta_handle(
    cursor: &mut Cursor<'_>,
    separator: Key<'_>,
    last: Handle,
) -> Result<Handle, RocksdbError> {
    if separator.shared == 0 {
        return cursor.handle();
    }
    let error = cursor.malformed("a difference of sizes that gives a number of 64 bits");
    let zigzag = cursor.varint()?;
    let difference = (zigzag >> 1).cast_signed() ^ -((zigzag & 1).cast_signed());
    let size = last.size.checked_add_signed(difference).ok_or(error)?;
    Ok(Handle { offset: last.end(), size })
}
