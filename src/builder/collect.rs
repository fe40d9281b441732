//! Keys from several threads, and finishing with several threads: the methods `par_*`.
//!
//! Each thread collects into a builder of its own, and the builders are joined in the order of the
//! iterator, so that the result does not depend on the threads.

use alloc::boxed::Box;
use alloc::collections::LinkedList;
use alloc::vec::Vec;

use rayon::prelude::*;

use super::{BloomFilterBuilder, Pending, prefixes};
use crate::filter::{BloomFilter, BuildError};
use crate::hash::{Key, KeyError};
use crate::threads::Threads;

impl BloomFilterBuilder {
    /// [`extend`](Self::extend) with keys that several threads produce, in the order of the
    /// iterator: the same builder, whatever the threads.
    ///
    /// If the iterator panics, nothing was added. Before the [memory
    /// limit](crate::FilterOptions::with_memory_limit) is checked, all keys of the iterator may be
    /// held, 8 bytes each; without a number of expected items, a part of the iterator that reaches
    /// the limit by itself holds no more. A builder of prefixes holds 32 bytes for each.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert); nothing is added then.
    pub fn par_extend<K: Key + Send>(
        &mut self,
        keys: impl IntoParallelIterator<Item = K>,
    ) -> Result<(), KeyError> {
        let hasher = self.options.hasher()?;
        let keys = keys.into_par_iter();
        if self.options.extractor().is_none() {
            self.extend_by(keys.map(|key| hasher.hash(key)));
            return Ok(());
        }
        let options = self.options.clone();
        let pairs: LinkedList<Vec<_>> = keys
            .map(|key| {
                watch!(arrive("prefixes"));
                prefixes::hashes(&options, hasher, key.as_ref())
            })
            .fold(Vec::new, |mut pairs, pair| {
                pairs.push(pair);
                pairs
            })
            .collect();
        pairs.into_iter().flatten().for_each(|pair| self.add_with_prefix(pair));
        Ok(())
    }

    fn extend_by(&mut self, hashes: impl ParallelIterator<Item = u64>) {
        let empty = self.part();
        // Boxed, since `fold` moves its state for every item.
        let parts = hashes.fold(
            || Box::new((empty.clone(), Pending::new())),
            |mut part, hash| {
                watch!(arrive("keys"));
                let (builder, pending) = &mut *part;
                pending.push(hash, builder);
                part
            },
        );
        let parts = parts.map(|mut part| {
            let (builder, pending) = &mut *part;
            pending.flush(builder);
            part
        });
        // A list keeps the order and moves no part.
        let parts: LinkedList<Box<(BloomFilterBuilder, Pending)>> = parts.collect();
        for part in parts {
            self.append(part.0);
        }
    }

    /// [`finish`](Self::finish) by the threads of the current rayon pool, if there are eight
    /// million keys or more: below, one thread is as fast. The bytes do not depend on the number of
    /// threads.
    ///
    /// # Errors
    ///
    /// As `finish`.
    pub fn par_finish(self) -> Result<BloomFilter, BuildError> {
        self.finish_by(Threads::Pool)
    }

    /// [`finish_verified`](Self::finish_verified) by the threads of the current rayon pool, as
    /// [`par_finish`](Self::par_finish).
    ///
    /// # Errors
    ///
    /// As `finish_verified`.
    pub fn par_finish_verified(self) -> Result<BloomFilter, BuildError> {
        self.finish_verified_by(Threads::Pool)
    }
}
