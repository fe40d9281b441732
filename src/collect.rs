//! Collecting keys that several threads produce.
//!
//! Each thread collects into a builder of its own, and the builders are joined in the order of the iterator, so that the result is
//! that of one thread. This file owns no list and no sizing: those are the builder's.

use alloc::boxed::Box;
use alloc::collections::LinkedList;
use alloc::vec::Vec;
use rayon::prelude::*;

use crate::builder::BloomFilterBuilder;

/// Adds keys that several threads produce, in the order of the iterator: the same builder as by [`Extend`], whatever the threads.
///
/// If the iterator panics, nothing was added. Before the [memory limit](BloomFilterBuilder::memory_limit) is looked at, all keys of
/// the iterator may be held, 8 bytes each; without a number of expected items, a part of the iterator that reaches the limit by
/// itself holds no more. A builder of [prefixes](BloomFilterBuilder::prefixes) holds 32 bytes for each.
///
/// ```
/// # use blocked_bloom::{BloomFilterBuilder, Sizing};
/// use rayon::prelude::*;
/// let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
/// builder.par_extend((0..1_000_u64).into_par_iter().map(u64::to_le_bytes));
/// assert!(builder.finish()?.contains(999_u64.to_le_bytes()));
/// # Ok::<(), blocked_bloom::BuildError>(())
/// ```
impl<K: AsRef<[u8]> + Send> ParallelExtend<K> for BloomFilterBuilder {
    fn par_extend<I: IntoParallelIterator<Item = K>>(&mut self, keys: I) {
        let keys = keys.into_par_iter();
        match self.pair_hasher() {
            None => self.extend_by(keys, BloomFilterBuilder::insert),
            Some(hashes) => {
                let pairs: LinkedList<Vec<_>> = keys
                    .map(|key| hashes(key.as_ref()))
                    .fold(Vec::new, |mut pairs, pair| {
                        pairs.push(pair);
                        pairs
                    })
                    .collect();
                pairs.into_iter().flatten().for_each(|pair| self.add_with_prefix(pair));
            }
        }
    }
}

impl BloomFilterBuilder {
    /// [`par_extend`](ParallelExtend::par_extend) for hashes.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, Sizing};
    /// use rayon::prelude::*;
    /// let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// builder.par_extend_hashes((0..1_000_u64).into_par_iter().map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    /// assert_eq!(builder.len(), 1_000);
    /// ```
    pub fn par_extend_hashes(&mut self, hashes: impl IntoParallelIterator<Item = u64>) {
        self.extend_by(hashes.into_par_iter(), BloomFilterBuilder::insert_hash);
    }

    fn extend_by<T: Send>(
        &mut self,
        items: impl ParallelIterator<Item = T>,
        insert: impl Fn(&mut BloomFilterBuilder, T) + Sync,
    ) {
        let empty = self.part();
        // Boxed, since `fold` moves its state for every item.
        let parts = items.fold(
            || Box::new(empty.clone()),
            |mut part, item| {
                insert(&mut part, item);
                part
            },
        );
        // A list keeps the order and moves no part.
        let parts: LinkedList<Box<BloomFilterBuilder>> = parts.collect();
        for part in parts {
            self.append(*part);
        }
    }
}
