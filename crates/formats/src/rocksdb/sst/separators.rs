//! The separators of a partition index: which partition a key or prefix falls into.
//!
//! Each is not below the last key of its partition. Separators in another order are errors, and so
//! are long runs of them that share bytes: a search reads one run. They are copied once, so that a
//! search depends on nothing that the owner of the file lends later.

use alloc::vec::Vec;
use core::cmp::Ordering;

use blocked_bloom::AllocError;

use super::super::error::RocksdbError;
use super::entries::{Cursor, Key};

/// Most separators from one that shares no bytes with the last to the next such: what a query may
/// cost, whatever the file. RocksDB's `index_block_restart_interval`, 1 by default.
const MAX_RUN: usize = 4_096;

/// Separators that are ordered by their bytes. They are kept as they are stored, in terms of the
/// one before: decoded they may be as long as the square of the index.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Separators {
    list: Vec<Separator>,
    /// What each does not share with the one before it.
    bytes: Vec<u8>,
    /// The indices of those that share nothing: the first, and one at least every [`MAX_RUN`].
    runs: Vec<usize>,
    /// Bytes at the end of a separator that do not belong to the user key.
    suffix: usize,
}

/// A [`Key`] whose own bytes are those from `start` to `end`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Separator {
    shared: usize,
    start: usize,
    end: usize,
}

impl Separators {
    /// None yet; of each the last `suffix` bytes do not belong to the user key.
    pub(super) fn new(suffix: usize) -> Self {
        Separators { list: Vec::new(), bytes: Vec::new(), runs: Vec::new(), suffix }
    }

    /// Adds a separator, read at `place` and no shorter than the suffix; `last` becomes it.
    pub(super) fn push(
        &mut self,
        separator: Key<'_>,
        last: &mut Vec<u8>,
        place: Cursor<'_>,
    ) -> Result<(), RocksdbError> {
        if !self.are_in_order(last, separator) {
            return Err(place.malformed("a separator that is not below the one before it"));
        }
        let index = self.list.len();
        if separator.shared == 0 {
            let error = AllocError::new(size_of_val(self.runs.as_slice()) as u64);
            self.runs.try_reserve(1).map_err(|_| error)?;
            self.runs.push(index);
        }
        let run = self.runs.last().map_or(0, |start| index - start);
        if run >= MAX_RUN {
            return Err(place.malformed("a separator that shares no bytes, after 4,096 that do"));
        }
        separator.follow(last)?;
        let Key { shared, suffix } = separator;
        let (start, end) = (self.bytes.len(), self.bytes.len() + suffix.len());
        self.bytes.try_reserve(suffix.len()).map_err(|_| AllocError::new(end as u64))?;
        self.bytes.extend_from_slice(suffix);
        let error = AllocError::new(size_of_val(self.list.as_slice()) as u64);
        self.list.try_reserve(1).map_err(|_| error)?;
        self.list.push(Separator { shared, start, end });
        Ok(())
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

    fn get(&self, i: usize) -> Key<'_> {
        let Separator { shared, start, end } = self.list[i];
        Key { shared, suffix: &self.bytes[start..end] }
    }

    /// The partition that holds the key if any does.
    pub(super) fn partition_of_key(&self, key: &[u8]) -> usize {
        self.first(key, usize::MAX, |order| order != Ordering::Less)
    }

    /// The first partition of which `holds` is true, or the last of all: of the order of the first
    /// `most` bytes of its separator's user key and `key`. `holds` is false up to some partition.
    ///
    /// Cost: a binary search for the run, then one step for each separator in it.
    pub(super) fn first(&self, key: &[u8], most: usize, holds: impl Fn(Ordering) -> bool) -> usize {
        let order = |walk: &mut Walk<'_>, i: usize| {
            let separator = self.get(i);
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

/// Compares separator after separator of a run with a key, without decoding them.
#[derive(Clone)]
struct Walk<'k> {
    key: &'k [u8],
    /// Bytes that the last separator and the key have in common,
    common: usize,
    /// and the separator's byte after them.
    next: Option<u8>,
}

impl Walk<'_> {
    /// The order of the next separator's first `length` bytes and the key. The first separator
    /// shares nothing.
    fn step(&mut self, separator: Key<'_>, length: usize) -> Ordering {
        let Key { shared, suffix } = separator;
        // Where it shares more than is common, what was not common still is not.
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
