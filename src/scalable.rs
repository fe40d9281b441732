//! A filter that grows: a chain of filters, each larger and stricter than the one before, for callers that cannot know how many
//! keys will come.
//!
//! This file owns adding and growing; beside it are the questions (`ask`), the stored form (`bytes`) and the union (`unite`).
//! It refuses to guess: a key goes into the newest link only if no link may have it, and whatever fails loses nothing.

mod ask;
mod bytes;
mod unite;

use alloc::vec::Vec;

use crate::bitmask::Bitmask;
use crate::error::{AllocError, ParamsError, ScalableError};
use crate::filter::BloomFilter;
use crate::hash::KeyHash;
use crate::kernel::Kernel;
use crate::params::{MAX_RECOMMENDED_BLOCKS, Params, Sizing};
use crate::view::BloomFilterRef;

pub use bytes::ScalableBloomFilterRef;

/// Hashes of a batch that are asked before they are added: 8 KiB of stack.
const AT_ONCE: usize = 1_024;

const GROWTH: u32 = 2;
const TIGHTENING: f64 = 0.85;

/// What a growing filter is, except for its links.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shape {
    key_hash: KeyHash,
    /// Above 0, up to 1.
    rate: f64,
    /// 0.05 to 0.95.
    tightening: f64,
    /// 2 to 16.
    growth: u32,
    /// Keys that the last link is for; without links, that the first will be for. At least 1.
    items: u64,
}

/// A Bloom filter for a number of keys that nobody knows: it grows, and keeps its false-positive rate.
///
/// A chain of blocked filters ("links"), after Almeida, Baquero, Preguiça and Hutchison, "Scalable Bloom Filters",
/// Information Processing Letters 101 (2007). When the last link has the keys it was sized for, the next is made for
/// [twice](Self::with_growth) as many, and for a rate that leaves room for all that will follow: 15 % of what the links so
/// far leave of the target, so that their rates, and with them the chance that any of them is wrong, never sum to more than
/// it.
///
/// A key is added only if no link may have it, so repeated keys cost no memory; and the keys that are counted are distinct.
///
/// Price: a filter of the same rate that was sized for the number of keys needs one cache line for a question instead of one
/// for each link, and less memory: the chain takes 1.4 to 1.8 times as much when its last link is full, 3.3 to 4.1 times
/// when that has just been added. `docs/growing.md` has the figures.
///
/// ```
/// use blocked_bloom::ScalableBloomFilter;
/// let mut seen = ScalableBloomFilter::new(0.01, 1_000)?;
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
#[derive(Clone)]
pub struct ScalableBloomFilter {
    shape: Shape,
    kernel: Kernel,
    /// Keys go into the last one.
    links: Vec<BloomFilter>,
}

impl ScalableBloomFilter {
    /// An empty filter whose rate will stay at or under `false_positive_rate`, above 0 and under 1, and whose first link is for
    /// `first_items` keys (at least 1). Keys are hashed with XXH3-64 and seed 0.
    ///
    /// Allocates nothing yet. A guess too low costs links and memory, one too high the memory of the first link.
    ///
    /// # Errors
    ///
    /// [`ScalableError::Params`] if the rate is out of its range or out of reach of the first link, or the link would be too
    /// large. A target of 10^-5 is kept for over 40 links, one of 10^-6 for 30; then adding fails.
    ///
    /// ```
    /// use blocked_bloom::{ScalableBloomFilter, ScalableError};
    /// let filter = ScalableBloomFilter::new(0.001, 10_000)?;
    /// assert_eq!((filter.false_positive_rate(), filter.memory_bytes()), (0.001, 0));
    /// assert!(matches!(ScalableBloomFilter::new(0.0, 10_000), Err(ScalableError::Params(_))));
    /// # Ok::<(), ScalableError>(())
    /// ```
    pub fn new(false_positive_rate: f64, first_items: u64) -> Result<Self, ScalableError> {
        ScalableBloomFilter::with_key_hash(false_positive_rate, first_items, KeyHash::default())
    }

    /// As [`new`](Self::new), with another seed, or for hashes of the caller's.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    ///
    /// ```
    /// use blocked_bloom::{KeyHash, ScalableBloomFilter};
    /// let mut filter = ScalableBloomFilter::with_key_hash(0.01, 1_000, KeyHash::Caller { tag: 7 })?;
    /// assert!(filter.insert_hash(0x9c1c_34f1_0a4e_7ab3)?);
    /// assert!(filter.insert("not a hash").is_err());
    /// # Ok::<(), blocked_bloom::ScalableError>(())
    /// ```
    pub fn with_key_hash(
        false_positive_rate: f64,
        first_items: u64,
        key_hash: KeyHash,
    ) -> Result<Self, ScalableError> {
        if !(false_positive_rate > 0.0 && false_positive_rate < 1.0) {
            return Err(ParamsError::RateOutOfRange { rate: false_positive_rate }.into());
        }
        let shape = Shape {
            key_hash,
            rate: false_positive_rate,
            tightening: TIGHTENING,
            growth: GROWTH,
            items: first_items.max(1),
        };
        let filter = ScalableBloomFilter { shape, kernel: Kernel::default(), links: Vec::new() };
        filter.next_link()?;
        Ok(filter)
    }

    /// Sets by how much each link is larger than the one before: 2 by default, up to 16.
    ///
    /// With 4 there are half as many links to ask, and up to 3/4 instead of 1/2 of the memory is not in use yet.
    ///
    /// # Errors
    ///
    /// [`ScalableError::GrowthOutOfRange`]; [`ScalableError::NotEmpty`] once a key was added.
    ///
    /// ```
    /// # use blocked_bloom::ScalableBloomFilter;
    /// let mut filter = ScalableBloomFilter::new(0.01, 100)?.with_growth(4)?;
    /// for key in 0..2_000_u32 {
    ///     filter.insert(key.to_le_bytes())?;
    /// }
    /// assert_eq!(filter.links().len(), 3); // for 100, 400 and 1600 keys
    /// # Ok::<(), blocked_bloom::ScalableError>(())
    /// ```
    pub fn with_growth(mut self, growth: u32) -> Result<Self, ScalableError> {
        self.check_empty()?;
        if !(2..=16).contains(&growth) {
            return Err(ScalableError::GrowthOutOfRange { growth });
        }
        self.shape.growth = growth;
        Ok(self)
    }

    /// Sets how much of the rate that is left each link leaves for those after it: 0.85 by default, 0.05 to 0.95.
    ///
    /// A lower ratio makes the first links smaller and later ones larger: 0.5 needs less up to four links, 0.9
    /// from ten on.
    ///
    /// # Errors
    ///
    /// [`ScalableError::TighteningOutOfRange`]; [`ScalableError::NotEmpty`] once a key was added; [`ScalableError::Params`] if
    /// the first link cannot keep its share of the rate.
    ///
    /// ```
    /// # use blocked_bloom::ScalableBloomFilter;
    /// let filter = ScalableBloomFilter::new(0.01, 100)?.with_tightening(0.5)?;
    /// assert!(filter.with_tightening(1.0).is_err());
    /// # Ok::<(), blocked_bloom::ScalableError>(())
    /// ```
    pub fn with_tightening(mut self, tightening: f64) -> Result<Self, ScalableError> {
        self.check_empty()?;
        if !(0.05..=0.95).contains(&tightening) {
            return Err(ScalableError::TighteningOutOfRange { tightening });
        }
        self.shape.tightening = tightening;
        self.next_link()?;
        Ok(self)
    }

    /// The same filter, with batches answered by `kernel`.
    ///
    /// ```
    /// # use blocked_bloom::{Kernel, ScalableBloomFilter};
    /// let scalar = Kernel::supported().last().unwrap();
    /// let filter = ScalableBloomFilter::new(0.01, 100)?.with_kernel(scalar);
    /// # Ok::<(), blocked_bloom::ScalableError>(())
    /// ```
    #[must_use]
    pub fn with_kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = kernel;
        self.links = self.links.into_iter().map(|link| link.with_kernel(kernel)).collect();
        self
    }

    fn check_empty(&self) -> Result<(), ScalableError> {
        match self.links.len() {
            0 => Ok(()),
            links => Err(ScalableError::NotEmpty { links }),
        }
    }

    /// Adds a key. Returns true if it was certainly not there before, as `HashSet` does; false if it may have been: then
    /// nothing changes.
    ///
    /// Cost: a cache line for each link. When a link is full, the next is allocated and cleared, at most
    /// [`growth`](Self::with_growth) times as large.
    ///
    /// # Errors
    ///
    /// [`ScalableError::Alloc`] if there is no memory for the next link, [`ScalableError::Params`] if none can keep what is
    /// left of the rate, [`ScalableError::KeyWithoutHash`] if the filter is of the caller's hashes. The key was not added
    /// then, and all others still are.
    ///
    /// ```
    /// # use blocked_bloom::ScalableBloomFilter;
    /// let mut filter = ScalableBloomFilter::new(0.01, 100)?;
    /// assert!(filter.insert("apple")?);
    /// assert!(!filter.insert("apple")?);
    /// # Ok::<(), blocked_bloom::ScalableError>(())
    /// ```
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool, ScalableError> {
        match self.shape.key_hash {
            KeyHash::Caller { tag } => Err(ScalableError::KeyWithoutHash { tag }),
            key_hash => self.insert_hash(key_hash.hasher().unwrap_or_default().hash(key)),
        }
    }

    /// Adds the key with this hash, as [`insert`](Self::insert).
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    ///
    /// ```
    /// # use blocked_bloom::{KeyHasher, ScalableBloomFilter};
    /// let mut filter = ScalableBloomFilter::new(0.01, 100)?;
    /// filter.insert_hash(KeyHasher::default().hash("apple"))?;
    /// assert!(filter.contains("apple"));
    /// # Ok::<(), blocked_bloom::ScalableError>(())
    /// ```
    pub fn insert_hash(&mut self, hash: u64) -> Result<bool, ScalableError> {
        self.insert_unless(0, hash)
    }

    /// Adds the hash, unless a link from number `first` on may have it; those before it do not.
    fn insert_unless(&mut self, first: usize, hash: u64) -> Result<bool, ScalableError> {
        let links = self.links.get(first..).unwrap_or_default();
        if links.iter().rev().any(|link| link.contains_hash(hash)) {
            return Ok(false);
        }
        if self.room() == 0 {
            self.grow()?;
        }
        let last = self.links.last_mut();
        Ok(last.is_some_and(|link| {
            link.insert_hash(hash);
            true
        }))
    }

    /// Adds every key. `seen` then has one bit per key, 1 if it may have been there before, or earlier in the batch: the
    /// misses are the keys that are certainly new.
    ///
    /// Cost: the links are asked by the batch kernel, some thousand keys at a time.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert). Keys before the one that failed were added, `seen` is empty; adding them all again
    /// does no harm, but tells no more which were new.
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, ScalableBloomFilter};
    /// let mut filter = ScalableBloomFilter::new(0.01, 100)?;
    /// let mut seen = Bitmask::new();
    /// filter.insert_batch(&["apple", "banana", "apple"], &mut seen)?;
    /// assert!(seen.misses().eq([0, 1]));
    /// # Ok::<(), blocked_bloom::ScalableError>(())
    /// ```
    pub fn insert_batch<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        seen: &mut Bitmask,
    ) -> Result<(), ScalableError> {
        let mut answers = core::mem::take(seen);
        let words = answers.reset(keys.len());
        match self.shape.key_hash {
            KeyHash::Caller { tag } if !keys.is_empty() => {
                return Err(ScalableError::KeyWithoutHash { tag });
            }
            key_hash => {
                let hasher = key_hash.hasher().unwrap_or_default();
                let mut hashes = [0; AT_ONCE];
                for (keys, words) in keys.chunks(AT_ONCE).zip(words.chunks_mut(AT_ONCE / 64)) {
                    hasher.hash_into(keys, &mut hashes);
                    self.add(&hashes[..keys.len()], words)?;
                }
            }
        }
        *seen = answers;
        Ok(())
    }

    /// Adds every hash, as [`insert_batch`](Self::insert_batch).
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert); see [`insert_batch`](Self::insert_batch).
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, ScalableBloomFilter};
    /// let mut filter = ScalableBloomFilter::new(0.01, 100)?;
    /// let mut seen = Bitmask::new();
    /// filter.insert_hashes(&[0x9c1c_34f1_0a4e_7ab3; 2], &mut seen)?;
    /// assert!(seen.misses().eq([0]));
    /// # Ok::<(), blocked_bloom::ScalableError>(())
    /// ```
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
        ask::hashes(self.views(), hashes, words);
        // The answers are of before the batch; a key may have come in it, and is then in the link that was last or a later one.
        let first = self.links.len().saturating_sub(1);
        for (i, &hash) in hashes.iter().enumerate() {
            if words[i / 64] >> (i % 64) & 1 == 0 && !self.insert_unless(first, hash)? {
                words[i / 64] |= 1 << (i % 64);
            }
        }
        Ok(())
    }

    /// Keys that the last link has room for.
    fn room(&self) -> u64 {
        let used = self.links.last().map_or(self.shape.items, |link| link.view().keys_inserted());
        self.shape.items.saturating_sub(used)
    }

    fn grow(&mut self) -> Result<(), ScalableError> {
        let (items, params) = self.next_link()?;
        let bytes = size_of::<BloomFilter>() as u64;
        self.links.try_reserve(1).map_err(|_| AllocError { bytes })?;
        let link = BloomFilter::with_params(params, self.shape.key_hash)?;
        self.links.push(link.with_kernel(self.kernel));
        self.shape.items = items;
        Ok(())
    }

    /// The keys that the next link is for, and its shape.
    fn next_link(&self) -> Result<(u64, Params), ParamsError> {
        let Shape { rate, tightening, growth, items, .. } = self.shape;
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

    /// The rate that is never exceeded, however many distinct keys are added: what [`new`](Self::new) was given, or after
    /// unions the sum.
    ///
    /// ```
    /// # use blocked_bloom::ScalableBloomFilter;
    /// assert_eq!(ScalableBloomFilter::new(0.01, 100)?.false_positive_rate(), 0.01);
    /// # Ok::<(), blocked_bloom::ScalableError>(())
    /// ```
    pub fn false_positive_rate(&self) -> f64 {
        self.shape.rate
    }

    /// The rate at the moment, from the bits: the chance that one link at least says "maybe" to an absent key. Cost: reads
    /// every block.
    ///
    /// ```
    /// # use blocked_bloom::ScalableBloomFilter;
    /// let mut filter = ScalableBloomFilter::new(0.01, 100)?;
    /// for key in 0..5_000_u32 {
    ///     filter.insert(key.to_le_bytes())?;
    /// }
    /// assert!((0.001..0.01).contains(&filter.estimated_false_positive_rate()));
    /// # Ok::<(), blocked_bloom::ScalableError>(())
    /// ```
    pub fn estimated_false_positive_rate(&self) -> f64 {
        let links = self.links.iter();
        1.0 - links.map(|link| 1.0 - link.estimated_false_positive_rate()).product::<f64>()
    }

    /// Keys that were certainly new when they were added: the distinct keys, less the false positives among them. After a
    /// union, the sum.
    ///
    /// ```
    /// # use blocked_bloom::ScalableBloomFilter;
    /// let mut filter = ScalableBloomFilter::new(0.01, 100)?;
    /// filter.insert("apple")?;
    /// filter.insert("apple")?;
    /// assert_eq!(filter.keys_inserted(), 1);
    /// # Ok::<(), blocked_bloom::ScalableError>(())
    /// ```
    pub fn keys_inserted(&self) -> u64 {
        self.views().fold(0, |sum, link| sum.saturating_add(link.keys_inserted()))
    }

    /// The links, the one that receives keys last.
    ///
    /// ```
    /// # use blocked_bloom::ScalableBloomFilter;
    /// let mut filter = ScalableBloomFilter::new(0.01, 100)?;
    /// filter.insert("apple")?;
    /// assert_eq!(filter.links().len(), 1);
    /// assert!(filter.links()[0].params().bits_per_key() > 10.0);
    /// # Ok::<(), blocked_bloom::ScalableError>(())
    /// ```
    pub fn links(&self) -> &[BloomFilter] {
        &self.links
    }

    /// Bytes of the blocks of all links.
    ///
    /// ```
    /// # use blocked_bloom::ScalableBloomFilter;
    /// let mut filter = ScalableBloomFilter::new(0.01, 1)?;
    /// filter.insert("apple")?;
    /// assert_eq!(filter.memory_bytes(), 64);
    /// # Ok::<(), blocked_bloom::ScalableError>(())
    /// ```
    pub fn memory_bytes(&self) -> u64 {
        self.views().map(|link| link.blocks().as_flattened().len() as u64).sum()
    }

    /// The hash and seed the filter was made with.
    ///
    /// ```
    /// # use blocked_bloom::{KeyHash, ScalableBloomFilter};
    /// assert_eq!(ScalableBloomFilter::new(0.01, 1)?.key_hash(), KeyHash::default());
    /// # Ok::<(), blocked_bloom::ScalableError>(())
    /// ```
    pub fn key_hash(&self) -> KeyHash {
        self.shape.key_hash
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

/// The shape, without the bits.
impl core::fmt::Debug for ScalableBloomFilter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ScalableBloomFilter")
            .field("shape", &self.shape)
            .field("kernel", &self.kernel)
            .field("links", &self.links)
            .finish()
    }
}
