//! The separators of a partition index, which determine the partition of a key or prefix.
//!
//! Each separator is at least the last key of its partition. Separators out of order are errors,
//! and so are long runs of separators that share bytes, since a search reads one run. They are
//! copied once, so a search does not depend on later bytes of the file's owner.

use alloc::vec::Vec;
use core::cmp::Ordering;

use blocked_bloom::AllocError;

use super::super::error::RocksdbError;
use super::entries::{Cursor, Key};

/// Maximum number of separators in a run, from one that shares no bytes to the next such. It bounds
/// the cost of a query for any file. RocksDB's `index_block_restart_interval` is 1 by default.
const MAX_RUN: usize = 4_096;

/// Separators ordered by their bytes. Each is kept in the stored form, relative to the previous
/// one. The decoded separators of a hostile index could take memory quadratic in its length.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Separators {
    list: Vec<Separator>,
    /// The bytes of each separator that it does not share with the previous one.
    bytes: Vec<u8>,
    /// Indices of separators that share nothing: the first, and at least one every [`MAX_RUN`].
    runs: Vec<usize>,
    /// Number of bytes at the end of a separator that do not belong to the user key.
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
    /// Creates an empty list. The last `suffix` bytes of each separator do not belong to the user
    /// key.
    pub(super) fn new(suffix: usize) -> Self {
        Separators { list: Vec::new(), bytes: Vec::new(), runs: Vec::new(), suffix }
    }

    /// Appends a separator, read at `place` and not shorter than the suffix. `last` becomes it.
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

    /// Returns whether the user key of a separator is at least the previous one. Shared bytes are
    /// not read again.
    fn are_in_order(&self, before: &[u8], separator: Key<'_>) -> bool {
        let before = &before[..before.len().saturating_sub(self.suffix)];
        let length = separator.len() - self.suffix;
        let equal = separator.shared.min(before.len()).min(length);
        let own =
            length.checked_sub(separator.shared).map_or(&[][..], |own| &separator.suffix[..own]);
        match equal == separator.shared {
            true => &before[equal..] <= own,
            // One of the two ends within the shared bytes.
            false => before.len() <= length,
        }
    }

    fn get(&self, i: usize) -> Key<'_> {
        let Separator { shared, start, end } = self.list[i];
        Key { shared, suffix: &self.bytes[start..end] }
    }

    /// Returns the partition that contains the key, if any does.
    pub(super) fn partition_of_key(&self, key: &[u8]) -> usize {
        self.first(key, usize::MAX, |order| order != Ordering::Less)
    }

    /// Returns the first partition for which `holds` is true, or the last partition. `holds` takes
    /// the order of the first `most` bytes of the separator's user key relative to `key`. It must
    /// be false up to some partition and true afterwards.
    ///
    /// Cost: a binary search for the run, then one step per separator in it.
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

/// Compares the separators of a run with a key, one after the other, without decoding them.
#[derive(Clone)]
struct Walk<'k> {
    key: &'k [u8],
    /// The separator's byte after the common bytes.
    common: usize,
    /// The separator's byte after the common bytes.
    next: Option<u8>,
}

impl Walk<'_> {
    /// Returns the order of the next separator's first `length` bytes relative to the key. The
    /// first separator shares nothing.
    fn step(&mut self, separator: Key<'_>, length: usize) -> Ordering {
        let Key { shared, suffix } = separator;
        // If it shares more than the common bytes, the order does not change.
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
