//! Collecting keys, and finishing a filter, with several threads: the methods `par_*`.
//!
//! Each thread collects into its own builder. The builders are joined in the order of the iterator,
//! so that the result does not depend on the threads.

use alloc::boxed::Box;
use alloc::collections::LinkedList;
use alloc::vec::Vec;

use rayon::prelude::*;

use super::verify::{Found, look_up, mix};
use super::{BloomFilterBuilder, CHUNK, Pending, prefixes};
use crate::filter::{BloomFilter, BuildError};
use crate::hash::{Key, KeyError};
use crate::threads::Threads;

impl BloomFilterBuilder {
    /// Inserts keys that several threads produce, like [`extend`](Self::extend). The keys are
    /// inserted in the order of the iterator, with any number of threads.
    ///
    /// If the iterator panics, nothing is inserted. Before the [memory
    /// limit](crate::FilterOptions::with_memory_limit) is checked, the hashes of all keys of the
    /// iterator may be in memory, 8 bytes each. Without a number of expected items, a part of the
    /// iterator that reaches the limit by itself uses no more memory. With prefixes, each key takes
    /// 32 bytes.
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert). Nothing is inserted then.
    pub fn par_extend<K: Key + Send>(
        &mut self,
        keys: impl IntoParallelIterator<Item = K>,
    ) -> Result<(), KeyError> {
        let hasher = self.options.hasher()?;
        let keys = keys.into_par_iter();
        if self.options.extractor().is_none() {
            self.par_extend_hashes(keys.map(|key| hasher.hash(key)));
            return Ok(());
        }
        let options = self.options.clone();
        let hash = |mut pairs: Vec<_>, key: K| {
            watch!(arrive("prefixes"));
            pairs.push(prefixes::hashes(&options, hasher, key.as_ref()));
            pairs
        };
        let pairs: LinkedList<Vec<_>> = keys.fold(Vec::new, hash).collect();
        pairs.into_iter().flatten().for_each(|pair| self.add_with_prefix(pair));
        Ok(())
    }

    fn par_extend_hashes(&mut self, hashes: impl ParallelIterator<Item = u64>) {
        let empty = self.part();
        // Boxed, since `fold` moves its state for every item.
        let parts = hashes.fold(
            || Box::new(Pending::new(empty.clone())),
            |mut part, hash| {
                watch!(arrive("keys"));
                part.push(hash);
                part
            },
        );
        // A list keeps the order and moves no part.
        let parts: LinkedList<Box<Pending<BloomFilterBuilder>>> = parts.collect();
        for mut part in parts {
            part.flush();
            self.append(&mut part.builder);
        }
    }

    /// Returns an empty builder whose keys will be [appended](Self::append) to this one.
    fn part(&self) -> Self {
        // With a number of expected items, only the whole builder flushes its list into a filter
        // when it reaches the limit: a part has no limit then.
        let memory_limit = self.options.expected_items.map_or(self.memory_limit, |_| u64::MAX);
        BloomFilterBuilder { memory_limit, ..BloomFilterBuilder::new(self.options.clone()) }
    }

    /// Moves the keys of `part` to the end of this builder. Large chunks of the list are not
    /// copied.
    fn append(&mut self, part: &mut Self) {
        if let Some(error) = part.failed {
            self.fail(error);
        }
        let Some(first) = part.first else { return };
        if self.last == Some(first) {
            // The last key equals the first one of the part.
            part.sum = part.sum.wrapping_sub(mix(first));
            match part.chunks.first_mut() {
                Some(chunk) => _ = chunk.remove(0),
                None => part.keys_without_filter -= 1,
            }
        }
        self.first.get_or_insert(first);
        self.last = part.last;
        self.sum = self.sum.wrapping_add(part.sum);
        self.keys_without_filter += part.keys_without_filter;
        if self.failed.is_some() {
            self.keys_without_filter += part.len() - part.keys_without_filter;
            return;
        }
        for chunk in core::mem::take(&mut part.chunks) {
            // Small chunks are copied, since each chunk has a cost when threads fill the filter.
            // With a limit all chunks are copied, so that the result does not depend on the parts.
            let is_kept = chunk.len() >= CHUNK / 2 && self.memory_limit == u64::MAX;
            if is_kept && self.failed.is_none() && self.chunks.try_reserve(1).is_ok() {
                self.chunks.push(chunk);
            } else {
                self.copy(&chunk);
            }
        }
    }

    /// Finishes like [`finish`](Self::finish), with the threads of the current rayon pool, and
    /// returns the same bytes. With fewer than eight million keys it uses one thread, which is as
    /// fast.
    ///
    /// # Errors
    ///
    /// The errors of `finish`.
    pub fn par_finish(self) -> Result<BloomFilter, BuildError> {
        self.finish_with(Threads::Pool, false)
    }

    /// Finishes like [`finish_verified`](Self::finish_verified), with the threads of the current
    /// rayon pool; see [`par_finish`](Self::par_finish).
    ///
    /// # Errors
    ///
    /// The errors of `finish_verified`.
    pub fn par_finish_verified(self) -> Result<BloomFilter, BuildError> {
        self.finish_with(Threads::Pool, true)
    }
}

/// Looks up all chunks with the threads of the current rayon pool.
pub(super) fn par_look_up_all(filter: &BloomFilter, chunks: &[Vec<u64>]) -> Found {
    let look_up = |chunk: &Vec<u64>| {
        watch!(arrive("verify"));
        look_up(filter, chunk)
    };
    chunks.par_iter().map(look_up).reduce(Found::default, Found::add)
}
