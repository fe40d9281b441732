//! A filter in partitions: which of them a key or prefix falls into.
//!
//! This file owns the partition index: separators, each not below the last key of its partition, and handles. It refuses
//! partitions that overlap or lie in another order than their keys. It searches only where keys are ordered by their bytes; under
//! another comparator every partition is asked.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::slice;

use super::super::block::FilterBlock;
use super::super::error::RocksdbError;
use super::entries::{Cursor, Entries, Key};
use super::properties::Properties;
use super::table::{Block, Handle, Table};
use super::{BYTEWISE, filter_block};
use crate::error::AllocError;
use crate::kernel::Kernel;

/// Sequence number and type, which follow the user key in an internal key.
const INTERNAL_BYTES: usize = 8;

#[derive(Clone)]
pub(super) struct Partitions<'a> {
    /// At least one, in the order of their keys.
    list: Vec<Partition<'a>>,
    /// Bytes at the end of a separator that do not belong to the user key.
    suffix: usize,
    /// Whether the keys are ordered by their bytes.
    bytewise: bool,
}

/// Separators are kept as they are stored, in terms of the one before: decoded they may be as long as the square of the index.
#[derive(Clone, Copy)]
struct Partition<'a> {
    separator: Key<'a>,
    filter: FilterBlock<'a>,
}

impl<'a> Partitions<'a> {
    pub(super) fn of(
        table: &Table<'a>,
        index: Block<'a>,
        properties: &Properties<'_>,
    ) -> Result<Self, RocksdbError> {
        let mut partitions = Partitions {
            list: Vec::new(),
            suffix: if properties.user_key_separators { 0 } else { INTERNAL_BYTES },
            bytewise: properties.comparator == Some(BYTEWISE),
        };
        let mut entries = Entries::of(index)?;
        let mut last_key = Vec::new();
        let mut last = Handle { offset: 0, size: 0 };
        while !entries.is_at_end() {
            let start = entries.cursor;
            let (separator, handle) = if properties.delta_handles {
                let separator = entries.next_key()?;
                (separator, delta_handle(&mut entries.cursor, separator, last)?)
            } else {
                let (separator, value) = entries.next()?;
                (separator, Cursor::new(value).handle()?)
            };
            if separator.len() < partitions.suffix {
                return Err(start.malformed("a separator of at least 8 bytes"));
            }
            if partitions.bytewise && !partitions.are_in_order(&last_key, separator) {
                return Err(start.malformed("a separator that is not below the one before it"));
            }
            separator.follow(&mut last_key)?;
            // In the order of the file, so that each byte is verified once, whatever the index says.
            let first = if partitions.list.is_empty() { 0 } else { last.end() };
            let filter = filter_block(table.block("filter partition", handle, first)?)?;
            last = handle;
            let error = AllocError { bytes: size_of_val(partitions.list.as_slice()) as u64 };
            partitions.list.try_reserve(1).map_err(|_| error)?;
            partitions.list.push(Partition { separator, filter });
        }
        match partitions.list.is_empty() {
            true => Err(entries.cursor.malformed("at least one partition")),
            false => Ok(partitions),
        }
    }

    /// Whether the user key of a separator is at least that of the key before it. Bytes that they share are not read again.
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

    pub(super) fn filters(&self) -> impl ExactSizeIterator<Item = FilterBlock<'a>> {
        self.list.iter().map(|partition| partition.filter)
    }

    pub(super) fn with_kernel(mut self, kernel: Kernel) -> Self {
        for partition in &mut self.list {
            partition.filter = partition.filter.with_kernel(kernel);
        }
        self
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

    /// Whether a key that begins with `start`, of which `prefix` was added to the filter, may be present.
    ///
    /// The partitions whose keys may begin so are asked, usually one or two: not every release of RocksDB adds a prefix to the
    /// partition before its keys as well.
    pub(super) fn contains_start(&self, start: &[u8], prefix: &[u8]) -> bool {
        if !self.bytewise {
            return self.contains_prefix(prefix);
        }
        let first = self.of_key(start);
        let last = self.first(|i| self.compare(i, start, start.len()) == Ordering::Greater);
        self.list[first..=last].iter().any(|partition| partition.filter.contains(prefix))
    }

    pub(super) fn keys<K: AsRef<[u8]>>(&self, keys: &[K], words: &mut [u64]) {
        words.fill(0);
        if !self.bytewise {
            let mut hits = vec![0; words.len()];
            for partition in &self.list {
                partition.filter.keys(keys, &mut hits);
                words.iter_mut().zip(&hits).for_each(|(word, hits)| *word |= hits);
            }
            return;
        }
        let place = |(i, key): (usize, &K)| (self.of_key(key.as_ref()), i);
        let mut places: Vec<(usize, usize)> = keys.iter().enumerate().map(place).collect();
        places.sort_unstable();
        let (mut group, mut hits) = (Vec::new(), Vec::new());
        for places in places.chunk_by(|a, b| a.0 == b.0) {
            group.clear();
            group.extend(places.iter().map(|&(_, i)| keys[i].as_ref()));
            hits.resize(group.len().div_ceil(64), 0);
            self.list[places[0].0].filter.keys(&group, &mut hits);
            for (at, &(_, i)) in places.iter().enumerate() {
                words[i / 64] |= (hits[at / 64] >> (at % 64) & 1) << (i % 64);
            }
        }
    }

    /// The partition that holds the key if any does.
    fn of_key(&self, key: &[u8]) -> usize {
        self.first(|i| self.compare(i, key, usize::MAX) != Ordering::Less)
    }

    /// The first partition of which `holds` is true, or the last of all; `holds` is false up to some partition.
    fn first(&self, holds: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut high) = (0, self.list.len() - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(middle) { high = middle } else { low = middle + 1 }
        }
        low
    }

    /// The first `most` bytes of a separator's user key, compared with `key`.
    fn compare(&self, index: usize, key: &[u8], most: usize) -> Ordering {
        let mut end = (self.list[index].separator.len() - self.suffix).min(most);
        let mut order = end.cmp(&key.len());
        // From the back, entry by entry, as far as each shares bytes with the one before: what differs earlier decides.
        for Partition { separator: Key { shared, suffix }, .. } in self.list[..=index].iter().rev()
        {
            if *shared < end {
                let own = &suffix[..end - shared];
                let other = key.get(*shared..).unwrap_or_default();
                let both = own.len().min(other.len());
                order = own[..both].cmp(&other[..both]).then(order);
                end = *shared;
            }
            if end == 0 {
                break;
            }
        }
        order
    }
}

/// A handle that is stored as the difference from the last one's size, except where its key shares nothing with the last.
fn delta_handle(
    cursor: &mut Cursor<'_>,
    separator: Key<'_>,
    last: Handle,
) -> Result<Handle, RocksdbError> {
    if separator.shared == 0 {
        return cursor.handle();
    }
    let error = cursor.malformed("a size that differs from the last by less than that");
    let zigzag = cursor.varint()?;
    let difference = (zigzag >> 1).cast_signed() ^ -((zigzag & 1).cast_signed());
    let size = last.size.checked_add_signed(difference).ok_or(error)?;
    Ok(Handle { offset: last.end(), size })
}
