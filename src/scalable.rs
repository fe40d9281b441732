//! A filter that grows: a chain of filters, each larger and stricter than the one before, for callers that cannot know how many
//! keys will come.
//!
//! A key goes into the newest link only if no link may have it, and whatever fails loses nothing. Beside this file are the queries
//! (`query`), the stored form (`bytes`) and the union (`merge`).

mod bytes;
mod merge;
mod query;

use alloc::vec::Vec;

use crate::bitmask::Bitmask;
use crate::error::{AllocError, ParamsError, ScalableError};
use crate::filter::{BloomFilter, BloomFilterRef};
use crate::hash::KeyHash;
use crate::kernel::Kernel;
use crate::params::{MAX_RECOMMENDED_BLOCKS, Params, Sizing};

pub use bytes::ScalableBloomFilterRef;

/// Hashes of a batch that are looked up before they are added: 8 KiB of stack.
const AT_ONCE: usize = 1_024;

/// What a growing filter is to be.
///
/// ```
/// use blocked_bloom::{KeyHash, ScalableOptions};
/// let options = ScalableOptions::new(0.01, 100).with_growth(4).with_key_hash(KeyHash::Xxh3 { seed: 7 });
/// let mut filter = options.build()?;
/// for key in 0..2_000_u32 {
///     filter.insert(key.to_le_bytes())?;
/// }
/// assert_eq!(filter.links().len(), 3); // for 100, 400 and 1600 keys
/// # Ok::<(), blocked_bloom::ScalableError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ScalableOptions {
    #[cfg_attr(feature = "serde", serde(default))]
    key_hash: KeyHash,
    /// Above 0, up to 1.
    rate: f64,
    /// 0.05 to 0.95.
    #[cfg_attr(feature = "serde", serde(default = "tightening"))]
    tightening: f64,
    /// 2 to 16.
    #[cfg_attr(feature = "serde", serde(default = "growth"))]
    growth: u32,
    /// Keys that the last link is for; without links, that the first will be for. At least 1.
    items: u64,
}

const fn tightening() -> f64 {
    0.85
}

const fn growth() -> u32 {
    2
}

impl ScalableOptions {
    /// Filters whose rate stays at or under `false_positive_rate`, above 0 and under 1, and whose first link is for `first_items` keys
    /// (0 counts as 1). Keys are hashed with XXH3-64 and seed 0.
    ///
    /// A guess too low costs links and memory, one too high the memory of the first link.
    pub fn new(false_positive_rate: f64, first_items: u64) -> Self {
        ScalableOptions {
            key_hash: KeyHash::default(),
            rate: false_positive_rate,
            tightening: tightening(),
            growth: growth(),
            items: first_items.max(1),
        }
    }

    /// Hashes keys with another seed, or leaves hashing to the caller.
    #[must_use]
    pub fn with_key_hash(self, key_hash: KeyHash) -> Self {
        ScalableOptions { key_hash, ..self }
    }

    /// Sets by how much each link is larger than the one before: 2 by default, up to 16.
    ///
    /// With 4 there are half as many links to look up in, and up to 3/4 instead of 1/2 of the memory is not in use yet.
    #[must_use]
    pub fn with_growth(self, growth: u32) -> Self {
        ScalableOptions { growth, ..self }
    }

    /// Sets how much of the rate that is left each link leaves for those after it: 0.85 by default, 0.05 to 0.95.
    ///
    /// A lower ratio makes the first links smaller and later ones larger: 0.5 needs less up to four links, 0.9
    /// from ten on.
    #[must_use]
    pub fn with_tightening(self, tightening: f64) -> Self {
        ScalableOptions { tightening, ..self }
    }

    /// An empty filter. Allocates nothing yet.
    ///
    /// # Errors
    ///
    /// [`ScalableError::Params`] if the rate is out of its range or out of reach of the first link, or the link would be too
    /// large; [`ScalableError::GrowthOutOfRange`]; [`ScalableError::TighteningOutOfRange`]. A target of 10^-5 is kept for over 40
    /// links, one of 10^-6 for 30; then adding fails.
    pub fn build(self) -> Result<ScalableBloomFilter, ScalableError> {
        if !(self.rate > 0.0 && self.rate < 1.0) {
            return Err(ParamsError::RateOutOfRange { rate: self.rate }.into());
        }
        if !(2..=16).contains(&self.growth) {
            return Err(ScalableError::GrowthOutOfRange { growth: self.growth });
        }
        if !(0.05..=0.95).contains(&self.tightening) {
            return Err(ScalableError::TighteningOutOfRange { tightening: self.tightening });
        }
        let shape = ScalableOptions { items: self.items.max(1), ..self };
        let filter = ScalableBloomFilter { shape, kernel: Kernel::default(), links: Vec::new() };
        filter.next_link()?;
        Ok(filter)
    }
}

/// A Bloom filter for a number of keys that nobody knows: it grows, and keeps its false-positive rate.
///
/// A chain of blocked filters ("links"), after Almeida, Baquero, Preguiça and Hutchison, "Scalable Bloom Filters",
/// Information Processing Letters 101 (2007). When the last link has the keys it was sized for, the next is made for
/// [twice](ScalableOptions::with_growth) as many, and for a rate that leaves enough of the target for all that will follow: 15 % of what the links so
/// far leave of the target, so that their rates, and with them the chance that any of them is wrong, never sum to more than
/// it.
///
/// A key is added only if no link may have it, so repeated keys cost no memory; and the keys that are counted are distinct.
///
/// Price: a filter of the same rate that was sized for the number of keys needs one cache line for a lookup instead of one
/// for each link, and less memory: the chain takes 1.4 to 1.8 times as much when its last link is full, 3.3 to 4.1 times
/// when that has just been added. `docs/growing.md` has the figures.
///
/// ```
/// use blocked_bloom::ScalableOptions;
/// let mut seen = ScalableOptions::new(0.01, 1_000).build()?;
/// let mut fetched = 0;
/// for page in 0..100_000_u32 {
///     let url = format!("https://example.com/{}", page % 50_000);
///     if seen.insert(&url)? {
///         fetched += 1; // certainly new
///     }
/// }
/// assert!((49_500..=50_000).contains(&fetched));
/// assert_eq!(seen.keys_inserted(), fetched);
/// # Ok::<(), blocked_bloom::ScalableError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ScalableBloomFilter {
    shape: ScalableOptions,
    kernel: Kernel,
    /// Keys go into the last one.
    links: Vec<BloomFilter>,
}

impl ScalableBloomFilter {
    /// The same filter, with batches answered by `kernel`.
    #[must_use]
    pub fn with_kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = kernel;
        self.links = self.links.into_iter().map(|link| link.with_kernel(kernel)).collect();
        self
    }

    /// Adds a key. Returns true if it was certainly not there before, as `HashSet` does; false if it may have been: then
    /// nothing changes.
    ///
    /// Cost: a cache line for each link. When a link is full, the next is allocated and cleared, at most
    /// [`growth`](ScalableOptions::with_growth) times as large.
    ///
    /// # Errors
    ///
    /// [`ScalableError::Alloc`] if there is no memory for the next link, [`ScalableError::Params`] if none can keep what is
    /// left of the rate, [`ScalableError::Key`] if the filter is of the caller's hashes. The key was not added
    /// then, and all others still are.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool, ScalableError> {
        let hasher = self.hasher()?;
        self.insert_hash(hasher.hash(key))
    }

    /// Adds the key with this hash, as [`insert`](Self::insert).
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn insert_hash(&mut self, hash: u64) -> Result<bool, ScalableError> {
        self.insert_unless(0, hash)
    }

    /// Adds the hash, unless a link from number `first` on may have it; those before it do not.
    fn insert_unless(&mut self, first: usize, hash: u64) -> Result<bool, ScalableError> {
        let links = self.links.get(first..).unwrap_or_default();
        if links.iter().rev().any(|link| link.contains_hash(hash)) {
            return Ok(false);
        }
        if self.capacity_left() == 0 {
            self.grow()?;
        }
        let last = self.links.last_mut();
        Ok(last.is_some_and(|link| {
            link.insert_all(&[hash]);
            true
        }))
    }

    /// Adds every key. `seen` then has one bit per key, 1 if it may have been there before, or earlier in the batch: the
    /// misses are the keys that are certainly new.
    ///
    /// Cost: keys are looked up in the links by the batch kernel, some thousand at a time.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert). Keys before the one that failed were added, `seen` is empty; adding them all again
    /// does no harm, but tells no more which were new.
    pub fn insert_batch<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        seen: &mut Bitmask,
    ) -> Result<(), ScalableError> {
        let mut answers = core::mem::take(seen);
        let words = answers.reset(keys.len());
        let hasher = self.hasher()?;
        let mut hashes = [0; AT_ONCE];
        for (keys, words) in keys.chunks(AT_ONCE).zip(words.chunks_mut(AT_ONCE / 64)) {
            hasher.hash_by(self.kernel, keys, &mut hashes);
            self.add(&hashes[..keys.len()], words)?;
        }
        *seen = answers;
        Ok(())
    }

    /// Adds every hash, as [`insert_batch`](Self::insert_batch).
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert); see [`insert_batch`](Self::insert_batch).
    pub fn insert_hashes(
        &mut self,
        hashes: &[u64],
        seen: &mut Bitmask,
    ) -> Result<(), ScalableError> {
        let mut answers = core::mem::take(seen);
        let words = answers.reset(hashes.len());
        for (hashes, words) in hashes.chunks(AT_ONCE).zip(words.chunks_mut(AT_ONCE / 64)) {
            self.add(hashes, words)?;
        }
        *seen = answers;
        Ok(())
    }

    /// Adds at most [`AT_ONCE`] hashes.
    fn add(&mut self, hashes: &[u64], words: &mut [u64]) -> Result<(), ScalableError> {
        query::hashes(self.views(), hashes, words);
        // The answers are of before the batch; a key may have come in it, and is then in the link that was last or a later one.
        let first = self.links.len().saturating_sub(1);
        for (i, &hash) in hashes.iter().enumerate() {
            if words[i / 64] >> (i % 64) & 1 == 0 && !self.insert_unless(first, hash)? {
                words[i / 64] |= 1 << (i % 64);
            }
        }
        Ok(())
    }

    /// Keys that the last link can still take.
    fn capacity_left(&self) -> u64 {
        let used = self.links.last().map_or(self.shape.items, |link| link.view().keys_inserted());
        self.shape.items.saturating_sub(used)
    }

    fn grow(&mut self) -> Result<(), ScalableError> {
        let (items, params) = self.next_link()?;
        let bytes = size_of::<BloomFilter>() as u64;
        self.links.try_reserve(1).map_err(|_| AllocError { bytes })?;
        let link = BloomFilter::new(params, self.shape.key_hash)?;
        self.links.push(link.with_kernel(self.kernel));
        self.shape.items = items;
        Ok(())
    }

    /// The keys that the next link is for, and its shape.
    fn next_link(&self) -> Result<(u64, Params), ParamsError> {
        let ScalableOptions { rate, tightening, growth, items, .. } = self.shape;
        let left =
            rate - self.links.iter().map(|link| link.params().false_positive_rate()).sum::<f64>();
        let sizing = Sizing::FalsePositiveRate((1.0 - tightening) * left);
        if !self.links.is_empty() {
            let larger = items.saturating_mul(u64::from(growth));
            if let Ok(params) = sizing.params(larger)
                && params.blocks() <= MAX_RECOMMENDED_BLOCKS
            {
                return Ok((larger, params));
            }
        }
        Ok((items, sizing.params(items)?))
    }

    /// The rate that is never exceeded, however many distinct keys are added: that of the [options](ScalableOptions), or after
    /// unions the sum.
    pub fn false_positive_rate(&self) -> f64 {
        self.shape.rate
    }

    /// The rate at the moment, from the bits: the chance that one link at least says "maybe" to an absent key. Cost: reads
    /// every block.
    pub fn estimated_false_positive_rate(&self) -> f64 {
        let links = self.links.iter();
        1.0 - links.map(|link| 1.0 - link.estimated_false_positive_rate()).product::<f64>()
    }

    /// Keys that were certainly new when they were added: the distinct keys, less the false positives among them. After a
    /// union, the sum.
    pub fn keys_inserted(&self) -> u64 {
        self.views().fold(0, |sum, link| sum.saturating_add(link.keys_inserted()))
    }

    /// The links, the one that receives keys last.
    pub fn links(&self) -> &[BloomFilter] {
        &self.links
    }

    /// Bytes of the blocks of all links.
    pub fn memory_bytes(&self) -> u64 {
        self.views().map(|link| link.blocks().as_flattened().len() as u64).sum()
    }

    /// Newest first: it has about half of all keys.
    fn views(&self) -> impl Iterator<Item = BloomFilterRef<'_>> + Clone {
        self.links.iter().rev().map(BloomFilter::view)
    }
}

/// Same hash, target, growth and links; the kernel does not matter.
impl PartialEq for ScalableBloomFilter {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape && self.links == other.links
    }
}
