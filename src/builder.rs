//! Collecting keys whose number is not known yet.
//!
//! A builder is not a filter: it answers nothing, so an unfinished one cannot give a wrong answer.
//! Beside this file are the list of hashes and its limit (`list`), prefixes (`prefixes`), the proof
//! that what went in comes out (`verify`), and, with `rayon`, several threads (`collect`, `join`).

#[cfg(feature = "rayon")]
mod collect;
#[cfg(feature = "rayon")]
mod join;
mod list;
mod prefixes;
mod verify;

use alloc::vec::Vec;

use core::fmt;

use self::verify::mix;
use crate::buffer::AllocError;
use crate::filter::{BloomFilter, BuildError};
use crate::hash::{Key, KeyError};
use crate::kernel::Kernel;
use crate::options::FilterOptions;
use crate::params::Params;
use crate::prefix::FilterContents;
use crate::threads::Threads;
use crate::unmixed::check_mixed;

/// Most hashes in a chunk of the builder's list: 512 KiB, so that a chunk fits the cache.
const CHUNK: usize = 1 << 16;

/// Keys that are hashed at a time: 4 KiB of stack.
const HASHED_AT_ONCE: usize = 512;

/// Fewest hashes in a chunk.
const SMALLEST_CHUNK: usize = 64;

/// Collects keys while a table is written, and sizes the filter when their number is known.
///
/// [`FilterOptions::builder`] makes one. Memory: 8 bytes per key and a sixteenth more, then the
/// filter beside it; nothing if the sizing means "no filter". [`FilterOptions::with_memory_limit`]
/// bounds it. A key equal to the one added just before it is dropped, so that the versions of one
/// key in a sorted run count once.
///
/// ```
/// use blocked_bloom::{FilterOptions, Sizing};
/// let mut builder = FilterOptions::new(Sizing::BitsPerKey(10.0)).builder();
/// for key in ["apple", "apple", "banana"] {
///     builder.insert(key)?;
/// }
/// assert_eq!(builder.len(), 2);
/// let filter = builder.finish()?;
/// assert!(filter.contains("banana"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct BloomFilterBuilder {
    options: FilterOptions,
    /// Hash of the prefix that was added last.
    last_prefix: Option<u64>,
    /// Hashes that are not in `filling`.
    chunks: Vec<Vec<u64>>,
    /// Where the hashes go whenever a chunk is full, once their list has reached its limit.
    filling: Option<EagerFilter>,
    /// Most bytes of the list.
    memory_limit: u64,
    /// Keys that are not kept, since there will be no filter.
    keys_without_filter: u64,
    first: Option<u64>,
    last: Option<u64>,
    /// Sum of all hashes that were added, mixed: what the filter is verified against.
    sum: u64,
    /// What `finish` must report instead of a filter in which a key is missing.
    failed: Option<BuildError>,
}

/// A filter that is filled while keys still come.
#[derive(Clone)]
struct EagerFilter {
    filter: BloomFilter,
    /// Number of keys that the filter was sized for.
    sized_for: u64,
    /// Sum of the hashes that went in, mixed.
    sum: u64,
    /// How many of those the filter did not contain right after they went in.
    missing: u64,
}

/// Hashes that wait to be added together, in two thirds of the time that one by one takes.
struct Pending {
    hashes: [u64; HASHED_AT_ONCE],
    count: usize,
}

impl Pending {
    fn new() -> Self {
        Pending { hashes: [0; HASHED_AT_ONCE], count: 0 }
    }

    #[inline]
    fn push(&mut self, hash: u64, builder: &mut BloomFilterBuilder) {
        self.hashes[self.count % HASHED_AT_ONCE] = hash;
        self.count += 1;
        if self.count == HASHED_AT_ONCE {
            self.flush(builder);
        }
    }

    fn flush(&mut self, builder: &mut BloomFilterBuilder) {
        builder.add_all(&self.hashes[..self.count]);
        self.count = 0;
    }
}

/// A builder whose pending hashes are added at the end, also if a key panics.
struct PendingFlush<'b> {
    builder: &'b mut BloomFilterBuilder,
    pending: Pending,
}

impl Drop for PendingFlush<'_> {
    fn drop(&mut self) {
        self.pending.flush(self.builder);
    }
}

impl BloomFilterBuilder {
    pub(crate) fn new(options: FilterOptions) -> Self {
        BloomFilterBuilder {
            memory_limit: options.memory_limit(),
            options,
            last_prefix: None,
            chunks: Vec::new(),
            filling: None,
            keys_without_filter: 0,
            first: None,
            last: None,
            sum: 0,
            failed: None,
        }
    }

    /// What the builder was made of.
    pub fn options(&self) -> &FilterOptions {
        &self.options
    }

    /// Bytes that the builder holds: the list of hashes and, beyond the limit, the filter.
    pub fn memory_bytes(&self) -> u64 {
        let list = self.chunks.capacity() * size_of::<Vec<u64>>();
        let filter = self.filling.as_ref().map_or(0, |filling| filling.filter.memory_bytes());
        self.hash_bytes() + list as u64 + filter
    }

    fn hash_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| 8 * chunk.capacity() as u64).sum()
    }

    /// Adds a key, unless it equals the one added just before it, and its prefix, if the options
    /// [add prefixes](FilterOptions::with_prefixes).
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the options are for the caller's hashes; nothing is added then.
    /// That memory ran out is an error of [`finish`](Self::finish).
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> Result<(), KeyError> {
        let hasher = self.options.key_hash().hasher()?;
        match self.options.extractor() {
            None => self.add(hasher.hash(key)),
            Some(_) => self.add_with_prefix(prefixes::hashes(&self.options, hasher, key.as_ref())),
        }
        Ok(())
    }

    /// Adds the key with this hash, unless it equals the one added just before it.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoPrefix`] if the options add prefixes; nothing is added. Then give the hash of
    /// the prefix too: [`insert_hash_with_prefix`](Self::insert_hash_with_prefix).
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> Result<(), KeyError> {
        self.options.contents().check_insert()?;
        self.add(hash);
        Ok(())
    }

    /// Adds every key with these hashes, as [`insert_hash`](Self::insert_hash); with its errors.
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), KeyError> {
        self.options.contents().check_insert()?;
        hashes.chunks(HASHED_AT_ONCE).for_each(|hashes| self.add_all(hashes));
        Ok(())
    }

    /// Adds every key, as [`insert`](Self::insert). Keys of a slice are added faster by
    /// [`insert_batch`](Self::insert_batch).
    ///
    /// If the iterator or a key panics, the keys before it were added.
    ///
    /// # Errors
    ///
    /// As `insert`; nothing is added then.
    pub fn extend<K: Key>(&mut self, keys: impl IntoIterator<Item = K>) -> Result<(), KeyError> {
        let hasher = self.options.hasher()?;
        if self.options.extractor().is_some() {
            return keys.into_iter().try_for_each(|key| self.insert(key));
        }
        // Hashed one by one as they come: collecting references to keys, to hash them together,
        // took up to twice the time.
        let mut adding = PendingFlush { builder: self, pending: Pending::new() };
        keys.into_iter().for_each(|key| {
            let hash = hasher.hash(key);
            adding.pending.push(hash, adding.builder);
        });
        Ok(())
    }

    /// Adds every key of a slice, as [`insert`](Self::insert). Where the builder adds no prefixes,
    /// keys are hashed some at a time: the fastest way if their number is unknown.
    ///
    /// # Errors
    ///
    /// As `insert`; nothing is added then.
    pub fn insert_batch<K: Key>(&mut self, keys: &[K]) -> Result<(), KeyError> {
        let hasher = self.options.hasher()?;
        if self.options.extractor().is_some() {
            return keys.iter().try_for_each(|key| self.insert(key));
        }
        let mut hashes = [0; HASHED_AT_ONCE];
        for keys in keys.chunks(HASHED_AT_ONCE) {
            hasher.hash_by(Kernel::default(), keys, &mut hashes);
            self.add_all(&hashes[..keys.len()]);
        }
        Ok(())
    }

    #[inline]
    fn add(&mut self, hash: u64) {
        if self.last == Some(hash) {
            return;
        }
        self.keep(hash);
        self.last = Some(hash);
    }

    /// Adds every hash, as [`add`](Self::add).
    fn add_all(&mut self, hashes: &[u64]) {
        let (Some(&first), Some(&last)) = (hashes.first(), hashes.last()) else { return };
        // Without an early exit, so that the compiler vectorises it.
        let repeats = hashes.windows(2).fold(false, |any, pair| any | (pair[0] == pair[1]));
        if repeats || self.last == Some(first) {
            return hashes.iter().for_each(|&hash| self.add(hash));
        }
        self.first.get_or_insert(first);
        self.last = Some(last);
        self.sum = self.sum.wrapping_add(verify::sum_of(hashes));
        self.copy(hashes);
    }

    #[inline]
    fn keep(&mut self, hash: u64) {
        self.sum = self.sum.wrapping_add(mix(hash));
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < chunk.capacity() => chunk.push(hash),
            _ => self.grow_and_insert(hash),
        }
    }

    /// There will be no filter: gives up the list and goes on counting.
    fn fail(&mut self, error: BuildError) {
        self.keys_without_filter = self.len();
        self.chunks = Vec::new();
        self.filling = None;
        self.failed.get_or_insert(error);
    }

    /// Keys and prefixes added so far, adjacent equal ones once: what the filter is sized for.
    pub fn len(&self) -> u64 {
        let filled = self.filling.as_ref().map_or(0, |filling| filling.filter.keys_inserted());
        let kept = self.chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
        self.keys_without_filter + filled + kept
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shape that [`finish`](Self::finish) would give the filter now, for an engine that
    /// estimates a table's size.
    ///
    /// # Errors
    ///
    /// As `finish` would.
    pub fn params(&self) -> Result<Params, BuildError> {
        match (&self.filling, self.failed()) {
            (_, Some(error)) => Err(error),
            (Some(filling), None) => {
                let params = filling.filter.params();
                let (blocks, probes) = (params.blocks(), params.probes());
                Ok(Params::from_fields(self.len(), blocks, probes, params.is_pass_all()))
            }
            (None, None) => Ok(self.options.params(self.len())?),
        }
    }

    /// What `finish` will report; a limit that was reached, with the keys so far.
    fn failed(&self) -> Option<BuildError> {
        match self.failed? {
            BuildError::MemoryLimit { limit_bytes, .. } => {
                Some(BuildError::MemoryLimit { limit_bytes, keys: self.len() })
            }
            error => Some(error),
        }
    }

    /// Sizes the filter for the keys that were added, and inserts them, in the calling thread.
    /// Without keys the filter is empty: everything is certainly absent.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the sizing is out of range, memory ran out or reached its limit, or hashes
    /// that the caller supplied are not well mixed.
    pub fn finish(self) -> Result<BloomFilter, BuildError> {
        self.finish_by(Threads::One)
    }

    fn finish_by(mut self, threads: Threads) -> Result<BloomFilter, BuildError> {
        let filter = self.fill(threads)?;
        Ok(self.with_contents(filter))
    }

    /// Records in a finished filter what it holds. Until then it is a filter of whole keys, for
    /// which the hash of a prefix is one more hash.
    fn with_contents(&self, filter: BloomFilter) -> BloomFilter {
        let keys = filter.keys_inserted();
        filter.with_facts(keys, self.options.contents())
    }

    /// An error if the filter that was made for too few keys passes most absent ones.
    fn check_rate(&self) -> Result<(), BuildError> {
        let Some(EagerFilter { filter, sized_for, .. }) = &self.filling else { return Ok(()) };
        let (params, keys) = (filter.params(), self.len());
        let [rate, wanted] = [keys, *sized_for].map(|keys| params.false_positive_rate_at(keys));
        match rate > 0.5 && rate > 1.25 * wanted {
            true => Err(BuildError::MemoryLimit { limit_bytes: self.memory_limit, keys }),
            false => Ok(()),
        }
    }

    /// The filter of all hashes. Those that did not go into it before are still in the list
    /// afterwards, in some order.
    fn fill(&mut self, threads: Threads) -> Result<BloomFilter, BuildError> {
        if let Some(error) = self.failed() {
            return Err(error);
        }
        self.flush(threads)?;
        self.check_rate()?;
        if let Some(filling) = &mut self.filling {
            let pass_all = BloomFilter::pass_all(self.options.key_hash()).to_filter()?;
            return Ok(core::mem::replace(&mut filling.filter, pass_all));
        }
        let mut filter = empty(&self.options, self.params()?, threads)?;
        if filter.is_pass_all() {
            filter.count(self.len());
            return Ok(filter);
        }
        check_mixed(self.options.key_hash(), &self.chunks)?;
        insert(&mut filter, &mut self.chunks, threads)?;
        Ok(filter)
    }
}

/// An empty filter of these options, to which hashes of prefixes can be added too.
pub(crate) fn empty(
    options: &FilterOptions,
    params: Params,
    threads: Threads,
) -> Result<BloomFilter, AllocError> {
    let keys = params.expected_items();
    let blocks = threads.zeroed(params.blocks(), options.huge_pages(), keys)?;
    Ok(BloomFilter::empty(blocks, params, options.key_hash()))
}

/// Inserts every hash of the chunks, whose order may change.
fn insert(
    filter: &mut BloomFilter,
    chunks: &mut [Vec<u64>],
    threads: Threads,
) -> Result<(), AllocError> {
    match threads {
        Threads::One => chunks.iter().for_each(|chunk| filter.insert_all(chunk, &mut [])),
        #[cfg(feature = "rayon")]
        Threads::Pool => crate::parallel::insert_chunks(filter, chunks)?,
    }
    Ok(())
}

impl BloomFilter {
    /// The filter of these hashes, sized for their number: what a builder that was given each of
    /// them finishes, in one call. A hash equal to the one before it counts once.
    ///
    /// # Errors
    ///
    /// [`BuildError::Params`] if the sizing is out of range, [`BuildError::Alloc`] if there is no
    /// memory, [`BuildError::Key`] if the options add prefixes, which cannot be cut from hashes,
    /// [`BuildError::UnmixedHashes`] if the hashes are the caller's and not well mixed.
    pub fn from_hashes(options: &FilterOptions, hashes: &[u64]) -> Result<Self, BuildError> {
        let repeated = hashes.windows(2).filter(|pair| pair[0] == pair[1]).count();
        let keys = (hashes.len() - repeated) as u64;
        let mut filter = options.empty_filter(keys)?;
        if !filter.is_pass_all() {
            check_mixed(options.key_hash(), &[hashes])?;
            filter.insert_all(hashes, &mut []);
        }
        Ok(filter.with_facts(keys, FilterContents::WholeKeys))
    }
}

/// The options and the number of keys, without the hashes.
impl fmt::Debug for BloomFilterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BloomFilterBuilder")
            .field("options", &self.options)
            .field("len", &self.len())
            .field("failed", &self.failed)
            .finish()
    }
}
