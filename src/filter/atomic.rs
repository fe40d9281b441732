//! A filter that threads add to and query at the same time: a memtable's.
//!
//! The blocks are only ever touched as atomic words: a plain load of a word that another thread is
//! writing is undefined behaviour, so the kernels, which load plainly, do not serve here.
//! Statistics and bytes are [`BloomFilter`]'s: both types turn into each other without copying.
//! There are no locks. Exists where the machine has atomic words of 64 or of 32 bits.

mod word;

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use self::word::{Word, copy_words, set};
use super::insert::{insert_keys, insert_methods};
use super::{BloomFilter, Filter, Meta};
use crate::batch::{LengthError, check_words};
use crate::bitmask::Bitmask;
use crate::buffer::{AtomicBuffer, AtomicWord};
use crate::hash::{Key, KeyError, KeyHash};
use crate::kernel::{Kernel, Prefetch, PrefetchAhead, prefetch_block};
use crate::params::Params;
use crate::probe::{self, BLOCK_BYTES};

/// A filter that any number of threads add to and query through `&self`, without locks.
///
/// For a memtable: writers insert, readers look up, at the same time. Share it by reference or in
/// an `Arc`; a filter that one thread owns is better a [`BloomFilter`], whose batches are answered
/// by a SIMD kernel. [`FilterOptions::atomic_filter`](crate::FilterOptions::atomic_filter) makes an
/// empty one, `from` one of a filter that there is.
///
/// **What a reader finds.** A key is never absent for a thread that learned of its insertion: if
/// `insert` returned before `contains` was called, and that order was established by any
/// synchronisation (a channel, a lock, a `Release` store read by an `Acquire` load, joining a
/// thread), `contains` returns true. A query that races with the insertion may answer either way.
///
/// **What it does not do.** All accesses are relaxed. An answer of true is no synchronisation: it
/// does not make visible what the other thread wrote before it inserted. The memtable's own
/// structure must do that.
///
/// The bits are those that a [`BloomFilter`] would have after the same insertions, in any order.
///
/// Exists on targets with atomic words of 64 or 32 bits (`target_has_atomic`). Prices on Zen 3, 6
/// probes, one thread, 100,000 keys in cache: 29 ns to insert a new key, 6 ns one that is there, 8
/// ns to look one up; `benches/NOTES.md` has more.
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
/// // No writer is left: statistics, kernels and the stored format are those of the owned filter.
/// let filter = filter.into_filter();
/// assert_eq!(filter.keys_inserted(), 2_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AtomicBloomFilter {
    blocks: AtomicBuffer,
    /// As of the conversion: `keys_inserted` lacks what was added since.
    meta: Meta,
    /// Hashes batches of keys that are inserted. Lookups do not use it; the owned filter has it
    /// again after `into_filter`.
    kernel: Kernel,
    /// Whether the filter holds what is looked up, as in a [`BloomFilter`].
    answers: bool,
    additions: Additions,
}

impl AtomicBloomFilter {
    /// Adds a key. Returns true if it was certainly not there before, as
    /// [`insert_hash`](Self::insert_hash) says it.
    ///
    /// Cost: one hash and one [`insert_hash`](Self::insert_hash).
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the filter is of the caller's hashes or of prefixes; nothing is changed.
    #[inline]
    pub fn insert(&self, key: impl Key) -> Result<bool, KeyError> {
        let hasher = self.hasher()?;
        self.insert_hash(hasher.hash(key))
    }

    /// Adds the key with this hash. Returns true if this call set a bit that was not set.
    ///
    /// True means that the key was certainly not there: no insertion of it had returned before this
    /// one began (in the sense of the [type's](Self) documentation). False means that it may have
    /// been there. Each bit is set by one call, so of threads that race to insert one new key at
    /// least one gets true, and more than one may, each for bits of its own. Only if keys that
    /// share its bits are inserted at the same time may they all get false.
    ///
    /// Cost: one cache line. Bits that are set already are not written, so a key that is inserted
    /// again and again leaves the line shared among the cores; a new one costs one atomic
    /// read-modify-write for each bit that it sets.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoPrefix`] if the filter holds prefixes. Nothing is changed then.
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> Result<bool, KeyError> {
        self.meta.contents.check_insert()?;
        self.additions.add(1);
        Ok(self.set(hash))
    }

    insert_methods!(self: [&self]);

    /// Adds every hash. `new` is empty, or one word per 64 hashes, for which were new.
    fn insert_all(&self, hashes: &[u64], new: &mut [u64]) {
        self.additions.add(hashes.len());
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
        let blocks = self.blocks.blocks();
        let index = probe::block_index(hash, blocks.len() as u32);
        set(&blocks[index as usize], probe::bits(hash, u32::from(self.meta.probes)))
    }

    /// Visits every hash and its place in order; prefetches if the cache is outgrown.
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

    /// Additions so far, saturating (on 32-bit machines at the first 2^32 - 1 of one thread).
    ///
    /// Insertions under way may be counted or not. Cost: reads eight cache lines.
    pub fn keys_inserted(&self) -> u64 {
        self.meta.keys_inserted.saturating_add(self.additions.sum())
    }

    /// Bytes of the blocks.
    pub fn memory_bytes(&self) -> u64 {
        size_of_val(self.blocks.blocks()) as u64
    }

    /// Whether the filter answers "maybe" to everything.
    pub fn is_pass_all(&self) -> bool {
        self.meta.pass_all
    }

    /// Blocks, probes and predicted rate, with the keys inserted so far as the expected items.
    pub fn params(&self) -> Params {
        let (blocks, probes) = (self.blocks.blocks().len() as u32, u32::from(self.meta.probes));
        Params::from_fields(self.keys_inserted(), blocks, probes, self.is_pass_all())
    }

    /// The same filter for one owner, with kernels, statistics and stored form. Not a copy.
    ///
    /// Whoever can call this is the last to hold the filter, so every insertion is in it. An `Arc`
    /// gives it up with `Arc::into_inner`.
    #[must_use]
    pub fn into_filter(self) -> BloomFilter {
        let meta = Meta { keys_inserted: self.keys_inserted(), ..self.meta };
        let AtomicBloomFilter { blocks, kernel, answers, .. } = self;
        BloomFilter { data: blocks.into_inner(), meta, kernel, answers }
    }
}

/// A key that is inserted meanwhile may be answered either way. Cost: as single lookups, with
/// prefetch where the filter outgrows the cache.
impl Filter for AtomicBloomFilter {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        let blocks = self.blocks.blocks();
        let index = probe::block_index(hash, blocks.len() as u32);
        let mut copy = [0; BLOCK_BYTES];
        copy_words(&blocks[index as usize], &mut copy);
        !self.answers || probe::contains(&copy, hash, u32::from(self.meta.probes))
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

/// Shares a filter among threads, to be added to. Nothing is copied.
impl From<BloomFilter> for AtomicBloomFilter {
    fn from(filter: BloomFilter) -> Self {
        let BloomFilter { data, meta, kernel, answers } = filter;
        let blocks = AtomicBuffer::new(data);
        AtomicBloomFilter { blocks, meta, kernel, answers, additions: Additions::default() }
    }
}

/// The shape, without the bits.
impl core::fmt::Debug for AtomicBloomFilter {
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
    fn fetch_or(&self, bits: u64) -> u64 {
        self.fetch_or(bits, Relaxed)
    }
}

/// Counts additions in one of eight cache lines; which one depends on the thread.
///
/// In a single line, threads would wait for the count: two that insert with 6 probes take 58 ns for
/// a new key and 18 for a known one. With these they take 41 and 10, without a count 40 and 10.
#[derive(Default)]
struct Additions([Line; 8]);

#[derive(Default)]
#[repr(align(64))]
struct Line(AtomicUsize);

impl Additions {
    #[inline]
    fn add(&self, additions: usize) {
        // Threads have stacks of their own: the address of a variable tells most of them apart,
        // without `std`. Two threads in one line, or one in two, cost time only.
        let variable = 0_u8;
        let stack = (&raw const variable).addr() as u64 >> 16;
        let line = stack.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61;
        let Line(count) = &self.0[line as usize];
        let mut so_far = count.load(Relaxed);
        while let Err(changed) =
            count.compare_exchange_weak(so_far, so_far.saturating_add(additions), Relaxed, Relaxed)
        {
            so_far = changed;
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
