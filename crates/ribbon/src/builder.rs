//! Builds a sharded filter: sorts the hashes by shard and solves the shards one by one.

use alloc::vec::Vec;

use blocked_bloom::parts::{HEADER_BYTES, check_mixed};
use blocked_bloom::{AllocError, Bitmask, Filter, Kernel, KeyError};

use crate::error::RibbonError;
use crate::filter::{RibbonBytes, RibbonFilter};
use crate::format::Meta;
use crate::kernel;
use crate::options::RibbonOptions;
use crate::scheme::{Entry, WIDTH, Word, shard};
use crate::sizing::{self, MAX_SLOTS};
use crate::solve::Rows;
use crate::threads::Threads;

/// Hashes sorted into buckets at a time: 8 MiB.
const PIECE: usize = 1 << 20;

/// Keys hashed, or looked up, at a time.
const CHUNK_KEYS: usize = 4_096;

/// Maximum number of buckets: sorting writes to one cache line of each at a time.
const MAX_BUCKETS: u32 = 256;

/// How often a shard that no seed solves gets 1/16 more slots before its hashes are rejected. One
/// seed in twenty fails.
const GROWTHS: u32 = 4;

/// Collects the keys of a [`RibbonFilter`] and builds it.
///
/// Memory: 8 bytes per key, and up to 16 while the list grows. Building also needs 8 MiB per thread
/// and twice the size of the filter. A key whose hash equals the previous one is ignored. Other
/// repeated keys use as much memory as distinct keys.
///
/// ```
/// use blocked_bloom::Filter;
/// use blocked_bloom_ribbon::RibbonOptions;
/// let mut builder = RibbonOptions::new(0.01).builder();
/// builder.extend((0..100_000_u32).map(u32::to_le_bytes))?;
/// let filter = builder.finish()?;
/// assert!(filter.contains(7_u32.to_le_bytes()));
/// assert!(filter.bits_per_key() < 7.3); // 10 in a blocked Bloom filter
/// # Ok::<(), blocked_bloom_ribbon::RibbonError>(())
/// ```
#[derive(Clone)]
pub struct RibbonFilterBuilder {
    options: RibbonOptions,
    hashes: Vec<u64>,
    /// Sum of all inserted hashes, each mixed. Verification compares with it.
    sum: u64,
    failed: Option<AllocError>,
}

impl RibbonOptions {
    /// Creates a builder without keys. Allocates nothing.
    pub fn builder(&self) -> RibbonFilterBuilder {
        RibbonFilterBuilder { options: *self, hashes: Vec::new(), sum: 0, failed: None }
    }
}

impl RibbonFilterBuilder {
    /// Returns the options of the builder.
    pub fn options(&self) -> &RibbonOptions {
        &self.options
    }

    /// Inserts a key, unless its hash equals the previous one.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] for caller-supplied hashes; nothing is inserted. If an allocation
    /// fails, [`finish`](Self::finish) returns the error.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<(), KeyError> {
        let hasher = self.options.hasher()?;
        self.insert_hash(hasher.hash(key));
        Ok(())
    }

    /// Inserts a key by its hash, unless the hash equals the previous one.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) {
        if self.hashes.last() == Some(&hash) || self.failed.is_some() {
            return;
        }
        if self.hashes.try_reserve(1).is_err() {
            self.failed = Some(AllocError::new(16 * self.hashes.len() as u64));
            return;
        }
        self.sum = self.sum.wrapping_add(mix(hash));
        self.hashes.push(hash);
    }

    /// Inserts keys by their hashes, like [`insert_hash`](Self::insert_hash).
    pub fn insert_hashes(&mut self, hashes: &[u64]) {
        hashes.iter().for_each(|&hash| self.insert_hash(hash));
    }

    /// Inserts all keys, like [`insert`](Self::insert). Hashes about 4,000 at a time; kernels hash
    /// short keys.
    ///
    /// # Errors
    ///
    /// The errors of `insert`; nothing is inserted.
    pub fn insert_batch<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<(), KeyError> {
        let hasher = self.options.hasher()?;
        let mut hashes = Vec::new();
        for keys in keys.chunks(CHUNK_KEYS) {
            hasher.hash_batch(keys, &mut hashes);
            self.insert_hashes(&hashes);
        }
        Ok(())
    }

    /// Inserts all keys, like [`insert`](Self::insert).
    ///
    /// # Errors
    ///
    /// The errors of `insert`; nothing is inserted.
    pub fn extend<K: AsRef<[u8]>>(
        &mut self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<(), KeyError> {
        keys.into_iter().try_for_each(|key| self.insert(key))
    }

    /// Inserts all keys, hashed with the threads of the current rayon pool. The filter does not
    /// depend on the number of threads.
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert); nothing is inserted.
    #[cfg(feature = "rayon")]
    pub fn par_extend<K: AsRef<[u8]> + Sync>(&mut self, keys: &[K]) -> Result<(), KeyError> {
        use rayon::prelude::*;

        let hasher = self.options.hasher()?;
        let mut hashes = Vec::new();
        for keys in keys.chunks(PIECE) {
            keys.par_iter()
                .map(|key| {
                    #[cfg(test)]
                    crate::watch::arrive("hash");
                    hasher.hash(key)
                })
                .collect_into_vec(&mut hashes);
            self.insert_hashes(&hashes);
        }
        Ok(())
    }

    /// Returns the number of inserted keys. Adjacent equal keys count once.
    pub fn len(&self) -> u64 {
        self.hashes.len() as u64
    }

    /// Returns whether no key was inserted.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Returns the memory used by the list of hashes, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        8 * self.hashes.capacity() as u64
    }

    /// Builds the filter in the calling thread. Its bytes do not depend on the order of the keys.
    /// Without keys, every key is absent.
    ///
    /// Cost: about 16 to 34 ns per key.
    ///
    /// # Errors
    ///
    /// [`RibbonError::Rate`], [`TooManyKeys`](RibbonError::TooManyKeys),
    /// [`Alloc`](RibbonError::Alloc). For caller-supplied hashes that are not well mixed,
    /// [`UnmixedHashes`](RibbonError::UnmixedHashes) or [`NoSeed`](RibbonError::NoSeed). A returned
    /// filter contains every key.
    pub fn finish(self) -> Result<RibbonFilter, RibbonError> {
        self.finish_by(Threads::One, false)
    }

    /// Builds the filter like [`finish`](Self::finish), then checks that the hashes in memory did
    /// not change since they were inserted, and looks up every key.
    ///
    /// # Errors
    ///
    /// The errors of `finish`, and [`RibbonError::HashesChanged`] or [`RibbonError::KeysMissing`]
    /// if the filter must not be used.
    pub fn finish_verified(self) -> Result<RibbonFilter, RibbonError> {
        self.finish_by(Threads::One, true)
    }

    /// Builds the filter like [`finish_verified`](Self::finish_verified), or returns a filter that
    /// answers "maybe" to every key, and the error. For compactions that must not fail because of a
    /// filter. A pass-all filter has no bytes ([`as_bytes`](RibbonFilter::as_bytes) is empty), so
    /// store no filter for the table.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if allocating 64 bytes fails.
    ///
    /// ```
    /// use blocked_bloom::Filter;
    /// use blocked_bloom_ribbon::{RibbonError, RibbonOptions};
    /// let mut builder = RibbonOptions::new(0.75).builder();
    /// builder.insert("apple")?;
    /// let (filter, error) = builder.finish_verified_or_pass_all()?;
    /// assert_eq!(error, Some(RibbonError::Rate { rate: 0.75 }));
    /// assert!(filter.contains("banana") && filter.as_bytes().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish_verified_or_pass_all(
        self,
    ) -> Result<(RibbonFilter, Option<RibbonError>), AllocError> {
        let meta = Meta::pass_all(self.options.key_hash(), self.len());
        match self.finish_verified() {
            Ok(filter) => Ok((filter, None)),
            Err(error) => {
                let bytes = RibbonBytes::zeroed(0, false)?;
                Ok((RibbonFilter::from_verified(bytes, meta), Some(error)))
            }
        }
    }

    /// Builds the filter like [`finish`](Self::finish), with the threads of the current rayon pool.
    /// The bytes do not depend on the number of threads.
    ///
    /// # Errors
    ///
    /// The errors of `finish`.
    #[cfg(feature = "rayon")]
    pub fn par_finish(self) -> Result<RibbonFilter, RibbonError> {
        self.finish_by(Threads::Pool, false)
    }

    pub(crate) fn finish_by(
        mut self,
        threads: Threads,
        verify: bool,
    ) -> Result<RibbonFilter, RibbonError> {
        if let Some(error) = self.failed {
            return Err(error.into());
        }
        let (columns, portion) = sizing::columns(self.options.false_positive_rate())?;
        let shards = sizing::shards(self.len())?;
        check_mixed(self.options.key_hash(), &[&self.hashes])?;
        let plan = Plan::new(shards, columns, portion);
        let solved = plan.solve(&mut self.hashes, threads)?;
        let filter = self.assemble(plan, solved)?;
        if verify {
            self.verify(&filter)?;
        }
        Ok(filter)
    }

    /// Concatenates the shards.
    fn assemble(&self, plan: Plan, solved: Vec<Solved>) -> Result<RibbonFilter, RibbonError> {
        let words = solved.iter().map(|solved| solved.words.len() as u64).sum();
        let meta = Meta {
            key_hash: self.options.key_hash(),
            keys: self.len(),
            columns: plan.columns,
            shards: plan.shards,
            words: sizing::words(words, self.len())?,
        };
        let bytes = meta.stored_bytes();
        let len = usize::try_from(bytes).map_err(|_| AllocError::new(bytes))?;
        let mut stored = RibbonBytes::zeroed(len, self.options.huge_pages)?;
        let (header, body) = stored.as_mut().split_at_mut(HEADER_BYTES);
        let (all, _) = body.as_chunks_mut();
        let (mut directory, mut rest): (&mut [Word], &mut [Word]) =
            all.split_at_mut(plan.shards as usize);
        let mut offset = 0;
        for Solved { entries, words } in solved {
            let (these, later) = directory.split_at_mut(entries.len());
            for (word, entry) in these.iter_mut().zip(entries) {
                *word = Entry { offset: offset + entry.offset, ..entry }.to_word();
            }
            directory = later;
            let (these, later) = rest.split_at_mut(words.len());
            these.copy_from_slice(&words);
            rest = later;
            offset += words.len() as u32;
        }
        header.copy_from_slice(&meta.header(body));
        Ok(RibbonFilter::from_verified(stored, meta))
    }

    fn verify(&self, filter: &RibbonFilter) -> Result<(), RibbonError> {
        let found = self.hashes.iter().fold(0, |sum: u64, &hash| sum.wrapping_add(mix(hash)));
        if found != self.sum {
            return Err(RibbonError::HashesChanged { expected: self.sum, found });
        }
        let mut hits = Bitmask::new();
        let mut missing = 0;
        for hashes in self.hashes.chunks(CHUNK_KEYS) {
            filter.contains_hashes(hashes, &mut hits);
            missing += hits.count_misses() as u64;
        }
        match missing {
            0 => Ok(()),
            missing => Err(RibbonError::KeysMissing { missing, keys: self.len() }),
        }
    }
}

/// Mixes a hash before it is summed, so that two corrupted hashes do not cancel out.
#[inline]
fn mix(hash: u64) -> u64 {
    let product = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ (product >> 32)
}

/// How hashes are assigned to shards.
#[derive(Clone, Copy)]
struct Plan {
    shards: u32,
    columns: u32,
    /// Fraction of the slots with one column less.
    portion: f64,
    /// A bucket has `2^bucket_bits` shards.
    bucket_bits: u32,
}

/// The solved shards of a bucket. Offsets count from its first word.
struct Solved {
    entries: Vec<Entry>,
    words: Vec<Word>,
}

/// Memory of a thread, reused for every bucket.
#[derive(Default)]
struct Scratch {
    /// The remainders of the bucket's hashes, sorted by shard.
    rests: Vec<u64>,
    rows: Rows,
}

impl Plan {
    fn new(shards: u32, columns: u32, portion: f64) -> Self {
        let bucket_bits = shards.div_ceil(MAX_BUCKETS).next_power_of_two().trailing_zeros();
        Plan { shards, columns, portion, bucket_bits }
    }

    fn buckets(&self) -> usize {
        (self.shards as usize).div_ceil(1 << self.bucket_bits)
    }

    fn solve(&self, hashes: &mut [u64], threads: Threads) -> Result<Vec<Solved>, RibbonError> {
        if self.shards == 0 {
            return Ok(Vec::new());
        }
        match threads {
            Threads::One => {
                let mut copy = Vec::new();
                let pieces: Vec<Piece<'_>> = hashes
                    .chunks_mut(PIECE)
                    .map(|piece| self.sort(piece, &mut copy))
                    .collect::<Result<_, _>>()?;
                drop(copy);
                let mut scratch = Scratch::default();
                (0..self.buckets())
                    .map(|bucket| self.bucket(bucket, &pieces, &mut scratch))
                    .collect()
            }
            #[cfg(feature = "rayon")]
            Threads::Pool => {
                use rayon::prelude::*;

                let pieces: Vec<Piece<'_>> = hashes
                    .par_chunks_mut(PIECE)
                    .map_init(Vec::new, |copy, piece| {
                        #[cfg(test)]
                        crate::watch::arrive("order");
                        self.sort(piece, copy)
                    })
                    .collect::<Result<_, _>>()?;
                (0..self.buckets())
                    .into_par_iter()
                    .map_init(Scratch::default, |scratch, bucket| {
                        #[cfg(test)]
                        crate::watch::arrive("solve");
                        self.bucket(bucket, &pieces, scratch)
                    })
                    .collect()
            }
        }
    }

    fn bucket_of(&self, hash: u64) -> usize {
        (shard(hash, self.shards).0 >> self.bucket_bits) as usize
    }

    /// Sorts hashes by bucket.
    fn sort<'h>(
        &self,
        hashes: &'h mut [u64],
        copy: &mut Vec<u64>,
    ) -> Result<Piece<'h>, AllocError> {
        Threads::One.refill(copy, hashes.len())?;
        copy.copy_from_slice(hashes);
        let starts = starts(self.buckets(), copy.iter().map(|&hash| self.bucket_of(hash)));
        let mut next = starts.clone();
        for &hash in copy.iter() {
            let next = &mut next[self.bucket_of(hash)];
            hashes[*next] = hash;
            *next += 1;
        }
        Ok(Piece { hashes, starts })
    }

    /// Solves the shards of a bucket.
    fn bucket(
        &self,
        bucket: usize,
        pieces: &[Piece<'_>],
        scratch: &mut Scratch,
    ) -> Result<Solved, RibbonError> {
        let first = (bucket as u32) << self.bucket_bits;
        let shards = (self.shards - first).min(1 << self.bucket_bits) as usize;
        // Another counting sort, by shard.
        let hashes = || pieces.iter().flat_map(|piece| piece.bucket(bucket));
        let index = |&hash: &u64| (shard(hash, self.shards).0 - first) as usize;
        let starts = starts(shards, hashes().map(index));
        Threads::One.refill(&mut scratch.rests, starts[shards])?;
        let mut next = starts.clone();
        for &hash in hashes() {
            let (shard, rest) = shard(hash, self.shards);
            let next = &mut next[(shard - first) as usize];
            scratch.rests[*next] = rest;
            *next += 1;
        }
        let mut solved = Solved { entries: Vec::with_capacity(shards), words: Vec::new() };
        for (i, ends) in starts.windows(2).enumerate() {
            let rests = &mut scratch.rests[ends[0]..ends[1]];
            let (slots, seed) = seed_of(&mut scratch.rows, rests, first + i as u32)?;
            let starts = slots - (WIDTH - 1);
            let short = sizing::short_blocks(starts, self.portion);
            let offset = solved.words.len();
            let entry =
                Entry { offset: offset as u32, starts: starts as u16, short: short as u8, seed };
            let words = entry.words(self.columns) as usize;
            let error = AllocError::new(8 * (offset + words) as u64);
            solved.words.try_reserve(words).map_err(|_| error)?;
            solved.words.resize(offset + words, [0; 8]);
            let out = &mut solved.words[offset..];
            kernel::substitute_64(Kernel::default(), &scratch.rows, out, self.columns, short);
            solved.entries.push(entry);
        }
        Ok(solved)
    }
}

/// Returns where each of `count` groups starts in a counting sort, and the end of the last.
fn starts(count: usize, groups: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut starts = alloc::vec![0; count + 1];
    groups.for_each(|group| starts[group + 1] += 1);
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    starts
}

/// A piece of the hashes, sorted by bucket.
struct Piece<'h> {
    hashes: &'h [u64],
    /// The start of each bucket, and the end of the last.
    starts: Vec<usize>,
}

impl Piece<'_> {
    fn bucket(&self, bucket: usize) -> &[u64] {
        &self.hashes[self.starts[bucket]..self.starts[bucket + 1]]
    }
}

/// Returns the number of slots and the seed that solve the shard, and leaves its rows in `rows`.
fn seed_of(rows: &mut Rows, rests: &mut [u64], shard: u32) -> Result<(u32, u8), RibbonError> {
    let rests = deduplicate(rests);
    let mut slots = sizing::slots(rests.len());
    let growths = if slots > MAX_SLOTS { 0 } else { GROWTHS + 1 };
    for _ in 0..growths {
        for seed in 0..=u8::MAX {
            if rows.add_all(rests, seed, slots)? {
                return Ok((slots, seed));
            }
        }
        slots = (slots + (slots / 16).next_multiple_of(WIDTH)).min(MAX_SLOTS);
    }
    Err(RibbonError::NoSeed { shard, hashes: rests.len() as u64 })
}

/// Removes duplicates if there are more hashes than a shard holds, since one key may have been
/// inserted many times.
fn deduplicate(rests: &mut [u64]) -> &[u64] {
    if sizing::slots(rests.len()) <= MAX_SLOTS {
        return rests;
    }
    rests.sort_unstable();
    let mut kept = 1;
    for i in 1..rests.len() {
        if rests[i] != rests[kept - 1] {
            rests[kept] = rests[i];
            kept += 1;
        }
    }
    &rests[..kept]
}

#[cfg(test)]
#[path = "../tests/unit/builder.rs"]
mod tests;

/// Shows the options and the number of keys, without the hashes.
impl core::fmt::Debug for RibbonFilterBuilder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RibbonFilterBuilder")
            .field("options", &self.options)
            .field("len", &self.len())
            .field("failed", &self.failed)
            .finish()
    }
}
