//! A filter that threads add to and ask at the same time: a memtable's.
//!
//! This file owns setting bits that others read, and the argument why no order between words is needed. The blocks are only
//! ever touched as atomic words: a plain load of a word that another thread is writing is undefined behaviour, so the kernels,
//! which load plainly, do not serve here. Statistics and bytes are [`BloomFilter`]'s: both types turn into each other without
//! copying. This file refuses locks.
//!
//! Exists where the machine has atomic words of 64 or of 32 bits.

mod word;

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use self::word::{Additions, copy_words, set};
use crate::bitmask::{self, Bitmask};
use crate::buffer::AtomicBuffer;
use crate::error::{AllocError, LengthError};
use crate::filter::BloomFilter;
use crate::hash::KeyHash;
use crate::kernel::{AHEAD, Kernel, Prefetch};
use crate::params::Params;
use crate::probe::{self, BLOCK_BYTES};
use crate::view::{Meta, check_length};

/// A filter that any number of threads add to and ask through `&self`, without locks.
///
/// For a memtable: writers insert, readers ask, at the same time. Share it by reference or in an `Arc`; a filter that one
/// thread owns is better a [`BloomFilter`], whose batches are answered by a SIMD kernel.
///
/// **What a reader finds.** A key is never absent for a thread that learned of its insertion: if `insert` returned before
/// `contains` was called, and that order was established by any synchronisation (a channel, a lock, a `Release` store read
/// by an `Acquire` load, joining a thread), `contains` returns true. A query that races with the insertion may answer either way.
///
/// **What it does not do.** All accesses are relaxed. An answer of true is no synchronisation: it does not make visible what the
/// other thread wrote before it inserted. The memtable's own structure must do that.
///
/// The bits are those that a [`BloomFilter`] would have after the same insertions, in any order.
///
/// Exists on targets with atomic words of 64 or 32 bits (`target_has_atomic`). Prices on Zen 3, 6 probes, one thread, 100,000 keys
/// in cache: 29 ns to insert a new key, 6 ns one that is there, 8 ns to ask; `benches/NOTES.md` has more.
///
/// ```
/// use blocked_bloom::{AtomicBloomFilter, KeyHash, Sizing};
/// let params = Sizing::BitsPerKey(10.0).params(2_000)?;
/// let filter = AtomicBloomFilter::with_params(params, KeyHash::default())?;
/// std::thread::scope(|threads| {
///     for writer in 0..2_u32 {
///         let filter = &filter;
///         threads.spawn(move || {
///             for key in writer * 1_000..(writer + 1) * 1_000 {
///                 filter.insert(key.to_le_bytes());
///             }
///         });
///     }
/// });
/// assert!((0..2_000_u32).all(|key| filter.contains(key.to_le_bytes())));
///
/// // No writer is left: statistics, SIMD kernels and the stored format are those of the owned filter.
/// let filter = filter.into_filter();
/// assert_eq!(filter.view().keys_inserted(), 2_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AtomicBloomFilter {
    blocks: AtomicBuffer,
    /// As of the conversion: of a filter that was added to since, `keys_inserted` and `pass_all` are not the whole truth.
    meta: Meta,
    /// Not used here: the conversion back returns it.
    kernel: Kernel,
    /// A key was added that this filter cannot hash, so nothing is absent any more. Only set where the caller hashes.
    unhashed: AtomicBool,
    additions: Additions,
}

impl AtomicBloomFilter {
    /// An empty filter of the given shape and hash; pass-all if `params` are.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory for the blocks.
    ///
    /// ```
    /// # use blocked_bloom::{AtomicBloomFilter, KeyHash, Sizing};
    /// let params = Sizing::FalsePositiveRate(0.01).params(1_000)?;
    /// let filter = AtomicBloomFilter::with_params(params, KeyHash::Xxh3 { seed: 42 })?;
    /// assert!(!filter.contains("apple"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_params(params: Params, key_hash: KeyHash) -> Result<Self, AllocError> {
        BloomFilter::with_params(params, key_hash).map(Self::from)
    }

    /// Adds a key. Returns true if it was certainly not there before, as [`insert_hash`](Self::insert_hash) says it.
    ///
    /// A filter of [`KeyHash::Caller`] cannot hash a key. So that the key is never reported absent, such a filter then answers
    /// "maybe" to everything, and [`into_filter`](Self::into_filter) makes it pass-all; add hashes to it with
    /// [`insert_hash`](Self::insert_hash).
    ///
    /// Cost: one hash, and that of [`insert_hash`](Self::insert_hash).
    ///
    /// ```
    /// # use blocked_bloom::{AtomicBloomFilter, KeyHash, Sizing};
    /// # let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// # let filter = AtomicBloomFilter::with_params(params, KeyHash::default())?;
    /// assert!(filter.insert("apple"));
    /// assert!(!filter.insert("apple"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert(&self, key: impl AsRef<[u8]>) -> bool {
        match self.meta.key_hash.hasher() {
            Some(hasher) => self.insert_hash(hasher.hash(key)),
            None => {
                // Tested first, so that the line, which every query reads, stays shared.
                if !self.unhashed.load(Relaxed) {
                    self.unhashed.store(true, Relaxed);
                }
                self.additions.add(1);
                false
            }
        }
    }

    /// Adds the key with this hash. Returns true if this call set at least one bit that was not set.
    ///
    /// True means that the key was certainly not there: no insertion of it had returned before this one began (in the sense of
    /// the [type's](Self) documentation). False means that it may have been there. Each bit is set by one call, so of
    /// threads that race to insert one new key at least one gets true, and more than one may, each for bits of its own. Only
    /// if keys that share its bits are inserted at the same time may they all get false.
    ///
    /// Cost: one cache line. Bits that are set already are not written, so a key that is inserted again and again leaves the line
    /// shared among the cores; a new one costs one atomic read-modify-write for each bit that it sets.
    ///
    /// ```
    /// # use blocked_bloom::{AtomicBloomFilter, KeyHash, Sizing};
    /// # let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// let filter = AtomicBloomFilter::with_params(params, KeyHash::Caller { tag: 1 })?;
    /// assert!(filter.insert_hash(0x9c1c_34f1_0a4e_7ab3));
    /// assert!(!filter.insert_hash(0x9c1c_34f1_0a4e_7ab3));
    /// assert!(filter.contains_hash(0x9c1c_34f1_0a4e_7ab3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> bool {
        self.additions.add(1);
        self.set(hash)
    }

    /// Adds every key, as [`insert`](Self::insert) does, requesting lines ahead where the filter outgrows the cache.
    ///
    /// ```
    /// # use blocked_bloom::{AtomicBloomFilter, KeyHash, Sizing};
    /// # let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// # let filter = AtomicBloomFilter::with_params(params, KeyHash::default())?;
    /// filter.insert_batch(&["apple", "banana"]);
    /// assert!(filter.contains("banana"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_batch<K: AsRef<[u8]>>(&self, keys: &[K]) {
        match self.meta.key_hash.hasher() {
            Some(hasher) => {
                self.additions.add(keys.len());
                self.ahead(keys.iter().map(|key| hasher.hash(key)), |hash| {
                    self.set(hash);
                });
            }
            None => keys.iter().for_each(|key| _ = self.insert(key)),
        }
    }

    /// Adds every hash.
    ///
    /// Cost: as [`insert_hash`](Self::insert_hash), with the lines of a filter that outgrows the cache requested ahead.
    ///
    /// ```
    /// # use blocked_bloom::{AtomicBloomFilter, KeyHash, Sizing};
    /// # let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// # let filter = AtomicBloomFilter::with_params(params, KeyHash::default())?;
    /// filter.insert_hashes(&[1, 2, 3]);
    /// assert_eq!(filter.keys_inserted(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_hashes(&self, hashes: &[u64]) {
        self.additions.add(hashes.len());
        self.ahead(hashes.iter().copied(), |hash| {
            self.set(hash);
        });
    }

    /// Whether the key may be present: false means certainly absent.
    ///
    /// A filter of [`KeyHash::Caller`] cannot hash a key and answers true.
    ///
    /// Cost: one hash, one cache line.
    ///
    /// ```
    /// # use blocked_bloom::{AtomicBloomFilter, KeyHash, Sizing};
    /// # let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// # let filter = AtomicBloomFilter::with_params(params, KeyHash::default())?;
    /// filter.insert("apple");
    /// assert!(filter.contains("apple"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        match self.meta.key_hash.hasher() {
            Some(hasher) => self.test(hasher.hash(key)),
            None => true,
        }
    }

    /// Whether the key with this hash may be present.
    ///
    /// The hash must be of the filter's [`key_hash`](Self::key_hash): asked with the hash of another seed, the filter answers
    /// "absent" for a key that is there.
    ///
    /// Cost: one cache line.
    ///
    /// ```
    /// # use blocked_bloom::{AtomicBloomFilter, KeyHash, KeyHasher, Sizing};
    /// # let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// # let filter = AtomicBloomFilter::with_params(params, KeyHash::default())?;
    /// filter.insert("apple");
    /// assert!(filter.contains_hash(KeyHasher::default().hash("apple")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.unhashed.load(Relaxed) || self.test(hash)
    }

    /// Asks about every key; `hits` then has one bit per key. Batches may have any length.
    ///
    /// A key that is inserted meanwhile may be answered either way. A filter of [`KeyHash::Caller`] cannot hash keys and answers
    /// "maybe" to each.
    ///
    /// Cost: as [`contains`](Self::contains), with the lines of a filter that outgrows the cache requested ahead.
    ///
    /// ```
    /// # use blocked_bloom::{AtomicBloomFilter, Bitmask, KeyHash, Sizing};
    /// # let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// # let filter = AtomicBloomFilter::with_params(params, KeyHash::default())?;
    /// filter.insert("apple");
    /// let mut hits = Bitmask::new();
    /// filter.contains_batch(&["apple", "banana"], &mut hits);
    /// assert!(hits.hits().eq([0]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], hits: &mut Bitmask) {
        hits.write(keys.len(), |words| self.keys(keys, words));
    }

    /// [`contains_batch`](Self::contains_batch) into words of the caller's: key `i` is bit `i % 64` of `words[i / 64]`, bits
    /// past the last key are zero.
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per 64 keys, rounded up; nothing is written then.
    ///
    /// ```
    /// # use blocked_bloom::{AtomicBloomFilter, KeyHash, Sizing};
    /// # let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// # let filter = AtomicBloomFilter::with_params(params, KeyHash::default())?;
    /// filter.insert("apple");
    /// let mut words = [0];
    /// filter.contains_batch_into(&["apple", "banana"], &mut words)?;
    /// assert_eq!(words, [0b01]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch_into<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        check_length(keys.len(), words)?;
        self.keys(keys, words);
        Ok(())
    }

    /// Asks about every hash; `hits` then has one bit per hash. Batches may have any length.
    ///
    /// The hashes must be of the filter's [`key_hash`](Self::key_hash), as for [`contains_hash`](Self::contains_hash). A key that
    /// is inserted meanwhile may be answered either way.
    ///
    /// Cost: as [`contains_hash`](Self::contains_hash), with the lines of a filter that outgrows the cache requested ahead.
    ///
    /// ```
    /// # use blocked_bloom::{AtomicBloomFilter, Bitmask, KeyHash, Sizing};
    /// # let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// let filter = AtomicBloomFilter::with_params(params, KeyHash::Caller { tag: 1 })?;
    /// filter.insert_hash(0x9c1c_34f1_0a4e_7ab3);
    /// let mut hits = Bitmask::new();
    /// filter.contains_hashes(&[0x9c1c_34f1_0a4e_7ab3, 0x1234_5678_9abc_def0], &mut hits);
    /// assert!(hits.hits().eq([0]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_hashes(&self, hashes: &[u64], hits: &mut Bitmask) {
        hits.write(hashes.len(), |words| self.hashes(hashes, words));
    }

    /// [`contains_hashes`](Self::contains_hashes) into words of the caller's, as
    /// [`contains_batch_into`](Self::contains_batch_into).
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per 64 hashes, rounded up; nothing is written then.
    ///
    /// ```
    /// # use blocked_bloom::{AtomicBloomFilter, KeyHash, Sizing};
    /// # let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// # let filter = AtomicBloomFilter::with_params(params, KeyHash::default())?;
    /// let mut words = [7; 2];
    /// filter.contains_hashes_into(&[1; 65], &mut words)?;
    /// assert_eq!(words, [0, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_hashes_into(
        &self,
        hashes: &[u64],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        check_length(hashes.len(), words)?;
        self.hashes(hashes, words);
        Ok(())
    }

    #[inline]
    fn set(&self, hash: u64) -> bool {
        let blocks = self.blocks.blocks();
        let index = probe::block_index(hash, blocks.len() as u32);
        set(&blocks[index as usize], probe::bits(hash, u32::from(self.meta.probes)))
    }

    #[inline]
    fn test(&self, hash: u64) -> bool {
        let blocks = self.blocks.blocks();
        let index = probe::block_index(hash, blocks.len() as u32);
        let mut copy = [0; BLOCK_BYTES];
        copy_words(&blocks[index as usize], &mut copy);
        probe::contains(&copy, hash, u32::from(self.meta.probes))
    }

    fn keys<K: AsRef<[u8]>>(&self, keys: &[K], words: &mut [u64]) {
        match self.meta.key_hash.hasher() {
            None => bitmask::fill_with_hits(words, keys.len()),
            Some(hasher) => self.ask(keys.iter().map(|key| hasher.hash(key)), words),
        }
    }

    fn hashes(&self, hashes: &[u64], words: &mut [u64]) {
        if self.unhashed.load(Relaxed) {
            bitmask::fill_with_hits(words, hashes.len());
        } else {
            self.ask(hashes.iter().copied(), words);
        }
    }

    fn ask(&self, hashes: impl Iterator<Item = u64>, words: &mut [u64]) {
        words.fill(0);
        let mut i = 0;
        self.ahead(hashes, |hash| {
            words[i / 64] |= u64::from(self.test(hash)) << (i % 64);
            i += 1;
        });
    }

    /// Visits every hash in order. If the filter outgrows the cache, its line was requested 64 hashes before.
    fn ahead(&self, hashes: impl Iterator<Item = u64>, mut visit: impl FnMut(u64)) {
        let blocks = self.blocks.blocks();
        let prefetch = self.kernel.prefetch(blocks);
        if prefetch == Prefetch::No {
            return hashes.for_each(visit);
        }
        let mut under_way = [0; AHEAD];
        let mut requested = 0;
        for hash in hashes {
            prefetch.request(blocks, &[hash]);
            let oldest = core::mem::replace(&mut under_way[requested % AHEAD], hash);
            if requested >= AHEAD {
                visit(oldest);
            }
            requested += 1;
        }
        for i in requested.saturating_sub(AHEAD)..requested {
            visit(under_way[i % AHEAD]);
        }
    }

    /// Additions so far, saturating (on 32-bit machines at the first 2^32 - 1 of one thread).
    ///
    /// Insertions under way may or may not be counted. Cost: reads the eight lines that threads count in.
    ///
    /// ```
    /// # use blocked_bloom::{AtomicBloomFilter, KeyHash, Sizing};
    /// # let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// # let filter = AtomicBloomFilter::with_params(params, KeyHash::default())?;
    /// filter.insert("apple");
    /// filter.insert("apple");
    /// assert_eq!(filter.keys_inserted(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keys_inserted(&self) -> u64 {
        self.meta.keys_inserted.saturating_add(self.additions.sum())
    }

    /// The hash and seed of the filter.
    ///
    /// ```
    /// # use blocked_bloom::{AtomicBloomFilter, KeyHash, Sizing};
    /// # let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// let filter = AtomicBloomFilter::with_params(params, KeyHash::Xxh3 { seed: 3 })?;
    /// assert_eq!(filter.key_hash(), KeyHash::Xxh3 { seed: 3 });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn key_hash(&self) -> KeyHash {
        self.meta.key_hash
    }

    /// Whether the filter answers "maybe" to everything.
    ///
    /// ```
    /// # use blocked_bloom::{AtomicBloomFilter, KeyHash, Sizing};
    /// # let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// let filter = AtomicBloomFilter::with_params(params, KeyHash::Caller { tag: 1 })?;
    /// assert!(!filter.is_pass_all());
    /// filter.insert("a key that only the caller could have hashed");
    /// assert!(filter.is_pass_all());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_pass_all(&self) -> bool {
        self.meta.pass_all || self.unhashed.load(Relaxed)
    }

    /// Blocks, probes and predicted rate, with the keys inserted so far as the expected items.
    ///
    /// ```
    /// # use blocked_bloom::{AtomicBloomFilter, KeyHash, Sizing};
    /// let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// let filter = AtomicBloomFilter::with_params(params, KeyHash::default())?;
    /// assert_eq!(filter.params().blocks(), params.blocks());
    /// assert_eq!(filter.params().expected_items(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn params(&self) -> Params {
        let (blocks, probes) = match self.is_pass_all() {
            true => (1, 1),
            false => (self.blocks.blocks().len() as u32, u32::from(self.meta.probes)),
        };
        Params::of_filter(self.keys_inserted(), blocks, probes, self.is_pass_all())
    }

    /// The same filter for one owner, with SIMD kernels, statistics and the stored format. Nothing is copied.
    ///
    /// Whoever can call this is the last to hold the filter, so every insertion is in it. An `Arc` gives it up with
    /// `Arc::into_inner`.
    ///
    /// ```
    /// # use blocked_bloom::{AtomicBloomFilter, KeyHash, Sizing};
    /// # let params = Sizing::BitsPerKey(10.0).params(1_000)?;
    /// let memtable = AtomicBloomFilter::with_params(params, KeyHash::default())?;
    /// memtable.insert("apple");
    /// let stored: Vec<u8> = memtable.into_filter().to_bytes();
    /// # assert_eq!(stored.len() as u64, params.stored_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn into_filter(self) -> BloomFilter {
        let unhashed = self.unhashed.load(Relaxed);
        let meta = Meta { keys_inserted: self.keys_inserted(), ..self.meta };
        let mut filter = BloomFilter::from_parts(self.blocks.into_inner(), meta, self.kernel);
        if unhashed {
            filter.become_pass_all();
        }
        filter
    }
}

/// Shares a filter among threads, to be added to. Nothing is copied. Of prefixes it knows nothing afterwards, as after
/// [`BloomFilter::insert`].
impl From<BloomFilter> for AtomicBloomFilter {
    fn from(mut filter: BloomFilter) -> Self {
        filter.forget_prefixes();
        let (blocks, meta, kernel) = filter.into_parts();
        AtomicBloomFilter {
            blocks: AtomicBuffer::new(blocks),
            meta,
            kernel,
            unhashed: AtomicBool::new(false),
            additions: Additions::default(),
        }
    }
}

/// [`AtomicBloomFilter::into_filter`].
impl From<AtomicBloomFilter> for BloomFilter {
    fn from(filter: AtomicBloomFilter) -> Self {
        filter.into_filter()
    }
}

/// The shape, without the bits.
impl core::fmt::Debug for AtomicBloomFilter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (keys_inserted, pass_all) = (self.keys_inserted(), self.is_pass_all());
        f.debug_struct("AtomicBloomFilter")
            .field("blocks", &self.blocks.blocks().len())
            .field("meta", &Meta { keys_inserted, pass_all, ..self.meta })
            .finish()
    }
}
