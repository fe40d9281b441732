//! Building a filter from an unknown number of keys.
//!
//! A builder is not a filter and has no lookups, so an unfinished one cannot return a wrong answer.
//! The submodules: `list` has the list of hashes and its limit, `prefixes` inserts prefixes,
//! `verify` checks the finished filter, and `collect` uses several threads (feature `rayon`).

#[cfg(feature = "rayon")]
mod collect;
mod list;
mod prefixes;
mod verify;

use alloc::vec::Vec;
use core::borrow::BorrowMut;
use core::fmt;

use self::verify::{Found, mix};
use crate::buffer::{AllocError, BlockBuffer};
use crate::filter::{BloomFilter, BuildError};
use crate::hash::{Key, KeyError};
use crate::kernel::Kernel;
use crate::options::FilterOptions;
use crate::params::Params;
use crate::prefix::FilterContents;
use crate::threads::Threads;
use crate::unmixed::check_mixed;

/// Largest number of hashes in a chunk of the list: 512 KiB, so that a chunk fits the cache.
const CHUNK: usize = 1 << 16;

/// Number of keys that are hashed at a time: 4 KiB of stack.
const HASHED_AT_ONCE: usize = 512;

/// Smallest number of hashes in a chunk.
const SMALLEST_CHUNK: usize = 64;

/// Collects keys while a table is written, and sizes the filter after the last key arrives.
///
/// [`FilterOptions::builder`] creates a builder. It uses 8.5 bytes of memory per key, and while it
/// finishes also the memory of the filter; none if the sizing means "no filter".
/// [`FilterOptions::with_memory_limit`] sets a limit. A key that equals its predecessor is dropped,
/// so the versions of a key in a sorted run count once.
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
    /// Hash of the last prefix.
    last_prefix: Option<u64>,
    /// Hashes that are not in `filling`.
    chunks: Vec<Vec<u64>>,
    /// The filter that receives full chunks after the list has reached the memory limit.
    filling: Option<EagerFilter>,
    /// Largest size of the list in bytes.
    memory_limit: u64,
    /// Number of keys whose hashes are not kept, because there will be no filter.
    keys_without_filter: u64,
    first: Option<u64>,
    last: Option<u64>,
    /// Sum of all mixed hashes, with which the filter is verified.
    sum: u64,
    /// Error that `finish` must return.
    failed: Option<BuildError>,
}

/// A filter that is filled while keys are still inserted into the builder.
#[derive(Clone)]
struct EagerFilter {
    filter: BloomFilter,
    /// Number of keys that the filter was sized for.
    sized_for: u64,
    /// The lookups of all hashes right after their insertion.
    found: Found,
    /// Every `stride`-th hash, at most 8,192, to check whether caller-supplied hashes are mixed.
    sample: Vec<u64>,
    stride: usize,
}

/// Hashes buffered so that they can be appended to a builder in batches, which takes 0.67x the time
/// of appending one by one. They are also appended if a key panics.
struct Pending<B: BorrowMut<BloomFilterBuilder>> {
    builder: B,
    hashes: [u64; HASHED_AT_ONCE],
    count: usize,
}

impl<B: BorrowMut<BloomFilterBuilder>> Pending<B> {
    fn new(builder: B) -> Self {
        Pending { builder, hashes: [0; HASHED_AT_ONCE], count: 0 }
    }

    #[inline]
    fn push(&mut self, hash: u64) {
        self.hashes[self.count % HASHED_AT_ONCE] = hash;
        self.count += 1;
        if self.count == HASHED_AT_ONCE {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.builder.borrow_mut().add_all(&self.hashes[..self.count]);
        self.count = 0;
    }
}

impl<B: BorrowMut<BloomFilterBuilder>> Drop for Pending<B> {
    fn drop(&mut self) {
        self.flush();
    }
}

impl BloomFilterBuilder {
    pub(crate) fn new(options: FilterOptions) -> Self {
        BloomFilterBuilder {
            memory_limit: options.memory_limit.unwrap_or(u64::MAX),
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

    /// Returns the options of the builder.
    pub fn options(&self) -> &FilterOptions {
        &self.options
    }

    /// Returns the memory of the builder in bytes: the list of hashes and, after the limit is
    /// reached, the filter and a sample of hashes of at most 128 KiB.
    pub fn memory_bytes(&self) -> u64 {
        let list = self.chunks.capacity() * size_of::<Vec<u64>>();
        let filter = |e: &EagerFilter| e.filter.memory_bytes() + 8 * e.sample.capacity() as u64;
        let filter = self.filling.as_ref().map_or(0, filter);
        self.hash_bytes() + list as u64 + filter
    }

    fn hash_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| 8 * chunk.capacity() as u64).sum()
    }

    /// Inserts a key, unless it equals its predecessor, and its prefix if the options
    /// [add prefixes](FilterOptions::with_prefixes).
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the options are for caller-supplied hashes; nothing is inserted
    /// then. [`finish`](Self::finish) reports failed allocations.
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> Result<(), KeyError> {
        let hasher = self.options.key_hash().hasher()?;
        match self.options.extractor() {
            None => self.add(hasher.hash(key)),
            Some(_) => self.add_with_prefix(prefixes::hashes(&self.options, hasher, key.as_ref())),
        }
        Ok(())
    }

    /// Inserts the key with this hash, unless it equals its predecessor.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoPrefix`] if the options add prefixes; nothing is inserted then. Pass the hash
    /// of the prefix too, with [`insert_hash_with_prefix`](Self::insert_hash_with_prefix).
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> Result<(), KeyError> {
        self.options.contents().check_insert().map(|()| self.add(hash))
    }

    /// Inserts every key with these hashes like [`insert_hash`](Self::insert_hash), with the same
    /// errors.
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), KeyError> {
        self.options.contents().check_insert()?;
        hashes.chunks(HASHED_AT_ONCE).for_each(|hashes| self.add_all(hashes));
        Ok(())
    }

    /// Inserts every key, like [`insert`](Self::insert). For a slice,
    /// [`insert_batch`](Self::insert_batch) is faster.
    ///
    /// If the iterator or a key panics, the preceding keys have been inserted.
    ///
    /// # Errors
    ///
    /// The errors of `insert`. Nothing is inserted then.
    pub fn extend<K: Key>(&mut self, keys: impl IntoIterator<Item = K>) -> Result<(), KeyError> {
        let hasher = self.options.hasher()?;
        if self.options.extractor().is_some() {
            return keys.into_iter().try_for_each(|key| self.insert(key));
        }
        // Keys are hashed one by one: collecting them in order to hash them together took up to
        // twice the time.
        let mut pending = Pending::new(self);
        keys.into_iter().for_each(|key| pending.push(hasher.hash(key)));
        Ok(())
    }

    /// Inserts every key of a slice, like [`insert`](Self::insert). If the options add no prefixes,
    /// keys are hashed in groups, which is faster than [`extend`](Self::extend).
    ///
    /// # Errors
    ///
    /// The errors of `insert`. Nothing is inserted then.
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

    /// Adds a hash, unless it equals its predecessor.
    #[inline]
    fn add(&mut self, hash: u64) {
        if self.last != Some(hash) {
            self.keep(hash);
            self.last = Some(hash);
        }
    }

    /// Adds every hash, like [`add`](Self::add).
    fn add_all(&mut self, hashes: &[u64]) {
        let (Some(&first), Some(&last)) = (hashes.first(), hashes.last()) else { return };
        // No early exit, so that the compiler vectorises the loop.
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

    /// Frees the list, since there will be no filter. Later keys are only counted.
    fn fail(&mut self, error: BuildError) {
        self.keys_without_filter = self.len();
        self.chunks = Vec::new();
        self.filling = None;
        self.failed.get_or_insert(error);
    }

    /// Returns the number of keys and prefixes inserted so far, counting adjacent equal ones once.
    /// The filter is sized for it.
    pub fn len(&self) -> u64 {
        let filled = self.filling.as_ref().map_or(0, |filling| filling.filter.keys_inserted());
        let kept = self.chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
        self.keys_without_filter + filled + kept
    }

    /// Whether nothing was inserted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the shape of the filter that [`finish`](Self::finish) would return now, for engines
    /// that estimate the size of a table.
    ///
    /// # Errors
    ///
    /// The error of the sizing or of a list over its memory limit. Only `finish` detects that the
    /// filter passes most absent keys, that caller-supplied hashes are not well mixed, or that an
    /// allocation fails.
    pub fn params(&self) -> Result<Params, BuildError> {
        let expected_items = self.len();
        match (&self.filling, self.failed()) {
            (_, Some(error)) => Err(error),
            (Some(filling), None) => Ok(Params { expected_items, ..filling.filter.params() }),
            (None, None) => Ok(self.options.params(expected_items)?),
        }
    }

    /// Returns the error that `finish` will return, with the current number of keys.
    fn failed(&self) -> Option<BuildError> {
        match self.failed? {
            BuildError::MemoryLimit { limit_bytes, .. } => {
                Some(BuildError::MemoryLimit { limit_bytes, keys: self.len() })
            }
            error => Some(error),
        }
    }

    /// Creates a filter for the number of keys, and inserts them in the calling thread. Without
    /// keys, the filter is empty and answers "absent" to every lookup.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the sizing is out of range, an allocation failed, the memory limit was
    /// reached, or caller-supplied hashes are not well mixed.
    pub fn finish(self) -> Result<BloomFilter, BuildError> {
        self.finish_with(Threads::One, false)
    }

    fn finish_with(
        mut self,
        threads: Threads,
        is_verified: bool,
    ) -> Result<BloomFilter, BuildError> {
        let filter = self.fill(threads)?;
        if is_verified {
            self.verify(&filter, threads)?;
        }
        // Until here it was a filter of whole keys, to which hashes of prefixes can be added.
        let keys = filter.keys_inserted();
        Ok(filter.with_facts(keys, self.options.contents()))
    }

    /// Returns the filter of all hashes. The list keeps the hashes that were not inserted before,
    /// in any order.
    fn fill(&mut self, threads: Threads) -> Result<BloomFilter, BuildError> {
        self.failed().map_or(Ok(()), Err)?;
        self.flush(threads)?;
        let (keys, key_hash) = (self.len(), self.options.key_hash());
        if let Some(EagerFilter { filter, sized_for, sample, .. }) = &mut self.filling {
            check_mixed(key_hash, &[sample])?;
            // The filter may be for too few keys. The number of keys counts some more than once, so
            // the filter's bits decide.
            let rate = |keys| filter.params().false_positive_rate_at(keys);
            let is_high = rate(keys) > f64::max(0.5, 1.25 * rate(*sized_for));
            if is_high && filter.estimated_false_positive_rate() > 0.5 {
                return Err(BuildError::MemoryLimit { limit_bytes: self.memory_limit, keys });
            }
            let pass_all = BloomFilter::pass_all(key_hash).to_filter()?;
            return Ok(core::mem::replace(filter, pass_all));
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

/// Creates an empty filter with these options that also accepts hashes of prefixes.
#[cfg_attr(not(feature = "rayon"), expect(unused_variables, reason = "there is only one thread"))]
pub(crate) fn empty(
    options: &FilterOptions,
    params: Params,
    threads: Threads,
) -> Result<BloomFilter, AllocError> {
    let zeroed = BlockBuffer::zeroed;
    #[cfg(feature = "rayon")]
    let zeroed =
        if threads.share(params.expected_items()) { BlockBuffer::par_zeroed } else { zeroed };
    let blocks = zeroed(params.blocks(), options.huge_pages())?;
    Ok(BloomFilter::empty(blocks, params, options.key_hash()))
}

/// Inserts every hash of the chunks and may change their order.
#[cfg_attr(not(feature = "rayon"), expect(unused_variables, reason = "there is only one thread"))]
fn insert(
    filter: &mut BloomFilter,
    chunks: &mut [Vec<u64>],
    threads: Threads,
) -> Result<(), AllocError> {
    #[cfg(feature = "rayon")]
    if threads == Threads::Pool {
        let hashes = chunks.iter().map(Vec::len).sum();
        return crate::parallel::insert_chunks(filter, chunks, hashes);
    }
    chunks.iter().for_each(|chunk| filter.insert_all(chunk, &mut []));
    Ok(())
}

impl BloomFilter {
    /// Builds a filter of these hashes and sizes it for their number. The result is that of a
    /// builder with the same hashes: a hash that equals its predecessor counts once.
    ///
    /// # Errors
    ///
    /// [`BuildError::Params`] if the sizing is out of range, [`BuildError::Alloc`] if the
    /// allocation fails, [`BuildError::Key`] if the options add prefixes, which hashes do not have,
    /// and [`BuildError::UnmixedHashes`] if caller-supplied hashes are not well mixed.
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

/// Prints the options and the number of keys, without the hashes.
impl fmt::Debug for BloomFilterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BloomFilterBuilder")
            .field("options", &self.options)
            .field("len", &self.len())
            .field("failed", &self.failed)
            .finish()
    }
}
