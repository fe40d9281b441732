//! A filter that threads insert into and query at the same time, for a memtable.
//!
//! The blocks are accessed only as atomic words. A plain load of a word that another thread writes
//! is undefined behaviour, so the kernels, which use plain loads, cannot be used. [`BloomFilter`]
//! has the statistics and the stored form: the two types convert into each other without copying.
//! There are no locks. The type requires atomic words of 64 or 32 bits.

mod word;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use self::word::{Word, contains, insert, insert_alone};
use super::insert::{insert_keys, insert_keys_new, insert_methods};
use super::{BloomFilter, Filter, Meta};
use crate::batch::{LengthError, check_words};
use crate::bitmask::Bitmask;
use crate::buffer::{AtomicBlock, AtomicBuffer, AtomicWord};
use crate::hash::{HashBytes, HashIntegers, KernelHash, Key, KeyError, KeyHash};
use crate::kernel::{Kernel, Prefetch, PrefetchAhead, prefetch_block};
use crate::params::Params;
use crate::probe;

/// A filter that any number of threads insert into and query through `&self`, without locks.
///
/// For a memtable whose writers and readers work at the same time. Share the filter by reference or
/// in an `Arc`. If one thread owns the filter, use a [`BloomFilter`], which looks up batches with a
/// SIMD kernel. [`FilterOptions::atomic_filter`](crate::FilterOptions::atomic_filter) creates an
/// empty filter, and `from` converts an existing one.
///
/// **Visibility.** Suppose `insert` returned before `contains` was called, and some synchronisation
/// established that order: a channel, a lock, a `Release` store read by an `Acquire` load, or
/// joining a thread. Then `contains` returns true. A lookup that races with the insertion may
/// return either.
///
/// **No synchronisation.** All accesses are relaxed. A lookup that returns true does not make other
/// writes of the inserting thread visible; the memtable's own structure must do that.
///
/// The bits are those of a [`BloomFilter`] after the same insertions in any order.
///
/// **One writer.** If only one thread inserts, [`into_writer`](Self::into_writer) makes insertion
/// faster. Other threads then share an `AtomicBloomFilter<false>`, which has all lookups and no
/// insertion.
///
/// The type requires a target with atomic words of 64 or 32 bits (`target_has_atomic`).
///
/// ```
/// use blocked_bloom::{Filter, FilterOptions, Sizing};
/// let filter = FilterOptions::new(Sizing::BitsPerKey(10.0)).atomic_filter(2_000)?;
/// std::thread::scope(|threads| {
///     for writer in 0..2_u32 {
///         let filter = &filter;
///         threads.spawn(move || {
///             for key in writer * 1_000..(writer + 1) * 1_000 {
///                 filter.insert(key.to_le_bytes()).expect("the filter hashes keys");
///             }
///         });
///     }
/// });
/// assert!((0..2_000_u32).all(|key| filter.contains(key.to_le_bytes())));
///
/// // After the last insertion, convert it: the owned filter has statistics and a stored form.
/// let filter = filter.into_filter();
/// assert_eq!(filter.keys_inserted(), 2_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AtomicBloomFilter<const SHARED: bool = true> {
    blocks: AtomicBuffer,
    /// Values at the conversion: `keys_inserted` does not include later insertions.
    meta: Meta,
    /// Hashes batches of keys for insertion. Lookups do not use it; `into_filter` returns it.
    kernel: Kernel,
    /// Whether the filter can answer lookups; see [`BloomFilter`].
    answers: bool,
    additions: Additions,
}

impl AtomicBloomFilter {
    insert_methods!(self, self, [&self]);

    /// Inserts the key with this hash. Returns true if a bit of the key was clear.
    ///
    /// True means that the key was certainly not present: no insertion of it returned before this
    /// one started (in the sense of the [type's](Self) documentation). False means that it may have
    /// been present. If threads race to insert the same new key, one or more of them return true.
    /// All of them return false only if other keys that share its bits are inserted at the same
    /// time.
    ///
    /// Cost: one cache line. The line of a key whose bits are all set is not written, so the line
    /// of a key that is inserted repeatedly stays shared between cores. A new key costs one atomic
    /// read-modify-write for each word of the block that lacks bits.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoPrefix`] if the filter holds prefixes. Nothing is changed then.
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> Result<bool, KeyError> {
        self.insert_one(hash)
    }

    /// Converts the filter for one writer and any number of concurrent readers. Copies nothing.
    pub fn into_writer(self) -> BloomFilterWriter {
        let AtomicBloomFilter { blocks, meta, kernel, answers, additions } = self;
        let filter = AtomicBloomFilter { blocks, meta, kernel, answers, additions };
        BloomFilterWriter(Arc::new(filter))
    }
}

impl<const SHARED: bool> AtomicBloomFilter<SHARED> {
    /// Unless the filter is `SHARED`, only the writer may call it, once at a time.
    #[inline]
    fn insert_one(&self, hash: u64) -> Result<bool, KeyError> {
        self.meta.contents.check_insert()?;
        self.additions.add::<SHARED>(1);
        Ok(self.set(hash))
    }

    /// Inserts every hash. `new` is empty, or has one word per 64 hashes, which reports the new
    /// ones. Unless the filter is `SHARED`, only the writer may call it, once at a time.
    fn insert_all(&self, hashes: &[u64], new: &mut [u64]) {
        self.additions.add::<SHARED>(hashes.len());
        new.fill(0);
        self.for_each_ahead(hashes, |i, hash| {
            let is_new = self.set(hash);
            if let Some(word) = new.get_mut(i / 64) {
                *word |= u64::from(is_new) << (i % 64);
            }
        });
    }

    #[inline]
    fn set(&self, hash: u64) -> bool {
        let (words, bits) = self.words_and_bits(hash);
        if SHARED { insert(words, bits) } else { insert_alone(words, bits) }
    }

    /// Returns the block of a hash, and the bits of the hash.
    #[inline(always)]
    fn words_and_bits(&self, hash: u64) -> (&AtomicBlock, impl Iterator<Item = u32> + Clone) {
        let blocks = self.blocks.blocks();
        let index = probe::block_index(hash, blocks.len() as u32);
        (&blocks[index as usize], probe::bits(hash, u32::from(self.meta.probes)))
    }

    /// Calls `visit` with the index and value of every hash, in order. Prefetches if the filter is
    /// larger than the cache.
    fn for_each_ahead(&self, hashes: &[u64], mut visit: impl FnMut(usize, u64)) {
        let blocks = self.blocks.blocks();
        let later = if Prefetch::for_blocks(blocks) == Prefetch::Off { &[] } else { hashes };
        let mut ahead =
            PrefetchAhead::start(later, |&hash| prefetch_block::<1, 1, _>(blocks, hash));
        for (i, &hash) in hashes.iter().enumerate() {
            ahead.advance(1);
            watch!(ran("shared"));
            visit(i, hash);
        }
    }

    /// Returns the number of insertions so far (saturating). On 32-bit machines, the count may
    /// saturate after 2^32 - 1 insertions by one thread.
    ///
    /// Concurrent insertions may be counted or not. Cost: reads eight cache lines.
    pub fn keys_inserted(&self) -> u64 {
        self.meta.keys_inserted.saturating_add(self.additions.sum())
    }

    /// Returns the size of the blocks in bytes.
    pub fn memory_bytes(&self) -> u64 {
        size_of_val(self.blocks.blocks()) as u64
    }

    /// Whether the filter answers "maybe" to everything.
    pub fn is_pass_all(&self) -> bool {
        self.meta.pass_all
    }

    /// Returns the blocks, the probes and the predicted rate for the number of keys inserted.
    pub fn params(&self) -> Params {
        let Meta { probes, pass_all, .. } = self.meta;
        let blocks = self.blocks.blocks().len() as u32;
        Params { expected_items: self.keys_inserted(), blocks, probes, pass_all }
    }

    /// Converts the filter into a [`BloomFilter`], which has kernels, statistics and a stored form.
    /// Copies nothing.
    ///
    /// The caller is the only owner, so the result has all insertions. Use `Arc::into_inner` to
    /// take the filter out of an `Arc`.
    #[must_use]
    pub fn into_filter(self) -> BloomFilter {
        let meta = Meta { keys_inserted: self.keys_inserted(), ..self.meta };
        let AtomicBloomFilter { blocks, kernel, answers, .. } = self;
        BloomFilter { data: blocks.into_inner(), meta, kernel, answers }
    }
}

/// Inserts into a filter while any number of threads look keys up. Created by
/// [`AtomicBloomFilter::into_writer`].
///
/// For a memtable with one writer. Each filter has only one writer, because two could overwrite
/// each other's bits. Put it in a lock if several threads write. Insertion needs no atomic
/// read-modify-write and takes about 0.3x the time of [`AtomicBloomFilter::insert_hash`]. Readers
/// share [`reader`](Self::reader). Visibility is that of an [`AtomicBloomFilter`].
///
/// ```
/// use std::sync::Arc;
/// use blocked_bloom::{Filter, FilterOptions, Sizing};
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
/// let mut writer = options.atomic_filter(1_000)?.into_writer();
/// let reader = Arc::clone(writer.reader());
/// writer.insert("apple")?;
/// std::thread::spawn(move || assert!(reader.contains("apple"))).join().unwrap();
///
/// // After the last insertion, take the filter out of the `Arc`.
/// let reader = Arc::clone(writer.reader());
/// drop(writer);
/// let filter = Arc::into_inner(reader).expect("no other reader").into_filter();
/// assert_eq!(filter.keys_inserted(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BloomFilterWriter(Arc<AtomicBloomFilter<false>>);

impl BloomFilterWriter {
    /// Returns the filter, for lookups. Clone the `Arc` for other threads.
    pub fn reader(&self) -> &Arc<AtomicBloomFilter<false>> {
        &self.0
    }

    insert_methods!(self, self.0, [&mut self]);

    /// Inserts the key with this hash. Returns true if it was certainly not present before.
    ///
    /// Cost: one cache line, and one load and one store for each probe.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoPrefix`] if the filter holds prefixes. Nothing is changed then.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> Result<bool, KeyError> {
        self.0.insert_one(hash)
    }
}

/// For a key that is inserted at the same time, either answer is possible. Batches cost as much as
/// single lookups, but prefetch if the filter is larger than the cache.
impl<const SHARED: bool> Filter for AtomicBloomFilter<SHARED> {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        let (words, bits) = self.words_and_bits(hash);
        contains(words, bits) || !self.answers
    }

    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        check_words(hashes.len(), words)?;
        words.fill(0);
        self.for_each_ahead(hashes, |i, hash| {
            words[i / 64] |= u64::from(self.contains_hash(hash)) << (i % 64);
        });
        Ok(())
    }

    #[inline]
    fn prefetch_hash(&self, hash: u64) {
        prefetch_block::<1, 1, _>(self.blocks.blocks(), hash);
    }

    #[inline]
    fn key_hash(&self) -> KeyHash {
        self.meta.key_hash
    }

    #[inline]
    fn hash_key(&self, key: &[u8]) -> Option<u64> {
        Some(self.hasher().ok()?.hash(key))
    }
}

/// Converts a filter into one that threads share. Copies nothing.
impl From<BloomFilter> for AtomicBloomFilter {
    fn from(filter: BloomFilter) -> Self {
        let BloomFilter { data, meta, kernel, answers } = filter;
        let blocks = AtomicBuffer::new(data);
        AtomicBloomFilter { blocks, meta, kernel, answers, additions: Additions::default() }
    }
}

/// Prints the shape, without the bits.
impl<const SHARED: bool> core::fmt::Debug for AtomicBloomFilter<SHARED> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("AtomicBloomFilter")
            .field("blocks", &self.blocks.blocks().len())
            .field("meta", &Meta { keys_inserted: self.keys_inserted(), ..self.meta })
            .finish()
    }
}

impl Word for AtomicWord {
    const BYTES: usize = size_of::<AtomicWord>();

    #[inline]
    fn load(&self) -> u64 {
        self.load(Relaxed)
    }

    #[inline]
    fn store(&self, word: u64) {
        self.store(word, Relaxed);
    }

    #[inline]
    fn or(&self, bits: u64) {
        self.fetch_or(bits, Relaxed);
    }
}

/// Counts insertions in one of eight cache lines; the thread determines the line.
///
/// With a single counter, threads would wait for its line: two threads that insert with 6 probes
/// take 58 ns for a new key and 18 ns for a known one. With eight lines they take 41 and 10 ns,
/// without a counter 40 and 10 ns (Zen 3, with one read-modify-write per probe).
#[derive(Default)]
struct Additions([Line; 8]);

#[derive(Default)]
#[repr(align(64))]
struct Line(AtomicUsize);

impl Additions {
    #[inline]
    fn add<const SHARED: bool>(&self, additions: usize) {
        // Each thread has its own stack, so the address of a variable distinguishes most threads
        // without `std`. If two threads use one line, or one thread two, only time is lost.
        let variable = 0_u8;
        let stack = (&raw const variable).addr() as u64 >> 16;
        let line = stack.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61;
        let Line(count) = &self.0[line as usize];
        let add = |so_far: usize| so_far.saturating_add(additions);
        match SHARED {
            true => _ = count.fetch_update(Relaxed, Relaxed, |so_far| Some(add(so_far))),
            // Only one thread counts. An atomic read-modify-write would make its insertion 1.5x as
            // slow.
            false => count.store(add(count.load(Relaxed)), Relaxed),
        }
    }

    fn sum(&self) -> u64 {
        let counts = self.0.iter().map(|Line(count)| count.load(Relaxed) as u64);
        counts.fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
#[path = "../../tests/unit/atomic.rs"]
mod tests;
