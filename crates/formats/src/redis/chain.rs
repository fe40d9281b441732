//! A chain of links: single and batch lookups, and insertion like RedisBloom's.

use alloc::vec;
use alloc::vec::Vec;

use blocked_bloom::Bitmask;

use super::error::{RedisError, check_range};
use super::hash::RedisHash;
use super::link::{FORCE_64, Link, NO_ROUND, NO_SCALING};

/// The prefetch distance of insertion, in keys.
const DISTANCE: usize = 16;

/// Keys of a batch that are looked up together, link by link.
const CHUNK_KEYS: usize = 1024;

/// A filter of RedisBloom: a chain of links in its own memory.
///
/// It answers and grows like `BF.EXISTS` and `BF.ADD`. After the same keys in the same order, its
/// dump equals RedisBloom's byte for byte (the order determines the first key of each link).
///
/// ```
/// use blocked_bloom_formats::redis::RedisFilter;
/// // The filter that BF.ADD creates for a missing Redis key: BF.RESERVE key 0.01 100.
/// let mut filter = RedisFilter::new(100, 0.01, Some(2))?;
/// assert!(filter.insert("apple")?);
/// assert!(!filter.insert("apple")?);
/// assert!(filter.contains("apple") && !filter.contains("banana"));
/// # Ok::<(), blocked_bloom_formats::redis::RedisError>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct RedisFilter {
    pub(super) options: u32,
    pub(super) growth: u32,
    /// Oldest first, at least one.
    pub(super) links: Vec<Link>,
}

impl RedisFilter {
    /// Creates an empty filter, like `BF.RESERVE key error_rate capacity EXPANSION expansion`, or
    /// like `NONSCALING` without an expansion. Each later link is sized for `expansion` times as
    /// many keys as the one before. RedisBloom's defaults are 0.01, 100 and 2.
    ///
    /// The first link uses half of the error rate, since the rates of all links add up: 1 / 2 + 1 /
    /// 4 + ... of it. Without an expansion it uses the whole rate.
    ///
    /// # Errors
    ///
    /// [`RedisError::OutOfRange`] for a capacity or an expansion of 0, [`RedisError::Rate`] unless
    /// the rate is above 0 and below 1, and [`RedisError::Alloc`].
    pub fn new(capacity: u64, error_rate: f64, expansion: Option<u32>) -> Result<Self, RedisError> {
        let (scaling, tightened) = match expansion {
            Some(_) => (0, error_rate * 0.5),
            None => (NO_SCALING, error_rate),
        };
        let growth = expansion.unwrap_or(2);
        check_range(None, "expansion", growth.into(), 1, u32::MAX.into())?;
        if !(error_rate > 0.0 && error_rate < 1.0) {
            return Err(RedisError::Rate { offset: None, field: "error", found: error_rate });
        }
        let options = FORCE_64 | NO_ROUND | scaling;
        let links = vec![Link::reserve(capacity, tightened, options)?];
        Ok(RedisFilter { options, growth, links })
    }

    /// Hashes a key with the width of this filter.
    #[inline]
    pub fn hash_key(&self, key: impl AsRef<[u8]>) -> RedisHash {
        RedisHash::hash(key.as_ref(), self.options & FORCE_64 != 0)
    }

    /// Returns whether the key may be present (`BF.EXISTS`); false means certainly absent.
    ///
    /// Cost: two hashes, and in each link one cache line per probe up to the first zero bit.
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.contains_hash(self.hash_key(key))
    }

    /// Returns whether the key with this hash, of the filter's width, may be present.
    #[inline]
    pub fn contains_hash(&self, hash: RedisHash) -> bool {
        // Most keys are in the newest link, which is the largest.
        self.links.iter().rev().any(|link| link.contains_hash(hash))
    }

    /// Looks up all keys (`BF.MEXISTS`), and sets one bit of `hits` per key. Batches may have any
    /// length. If a key's `as_ref` panics, the mask is empty.
    ///
    /// Cost: the hashes of each key. In links that exceed the cache, also the cache lines of its
    /// probes, which are prefetched while other keys are tested (`benches/classical.rs`).
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], hits: &mut Bitmask) {
        let hashes = keys.iter().map(|key| self.hash_key(key));
        hits.write(keys.len(), |words| self.look_up(hashes, words));
    }

    /// Looks up hashes of the filter's width, and sets one bit of `hits` per hash.
    pub fn contains_hashes(&self, hashes: &[RedisHash], hits: &mut Bitmask) {
        hits.write(hashes.len(), |words| self.look_up(hashes.iter().copied(), words));
    }

    fn look_up(&self, mut hashes: impl ExactSizeIterator<Item = RedisHash>, words: &mut [u64]) {
        if let [link] = &self.links[..] {
            return link.look_up(hashes, words);
        }
        words.fill(0);
        // Keys that no link so far may contain, and their indices.
        let mut left: Vec<(u32, RedisHash)> = Vec::new();
        let mut answers = [0; CHUNK_KEYS / 64];
        for words in words.chunks_mut(CHUNK_KEYS / 64) {
            left.clear();
            left.extend((0..).zip(hashes.by_ref().take(64 * words.len())));
            for link in self.links.iter().rev() {
                let answers = &mut answers[..left.len().div_ceil(64)];
                link.look_up(left.iter().map(|&(_, hash)| hash), answers);
                let mut i = 0;
                left.retain(|&(place, _)| {
                    let hit = answers[i / 64] >> (i % 64) & 1;
                    words[place as usize / 64] |= hit << (place % 64);
                    i += 1;
                    hit == 0
                });
            }
        }
    }

    /// Inserts a key (`BF.ADD`). Returns true if it was certainly absent before; otherwise nothing
    /// changes.
    ///
    /// Cost: a lookup, and one cache line per probe. If the newest link is full, another one is
    /// created.
    ///
    /// # Errors
    ///
    /// [`RedisError::Full`] if another link is needed but the filter was reserved with
    /// `NONSCALING`; [`RedisError::OutOfRange`], [`RedisError::Rate`] or [`RedisError::Alloc`] if
    /// the link cannot be created. Nothing changes in these cases.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool, RedisError> {
        self.insert_hash(self.hash_key(key))
    }

    /// Inserts a key by its hash, of the filter's width.
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert).
    pub fn insert_hash(&mut self, hash: RedisHash) -> Result<bool, RedisError> {
        if self.contains_hash(hash) {
            return Ok(false);
        }
        if self.newest().is_full() {
            self.newest().check_entries()?;
            self.links.push(self.next_link()?);
        }
        if let Some(link) = self.links.last_mut() {
            link.insert_hash(hash);
        }
        Ok(true)
    }

    /// Inserts keys in order (`BF.MADD`), and returns how many were certainly absent before.
    ///
    /// Cost: cache lines of later keys in the newest link are prefetched.
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert). The keys before the failing one are inserted.
    pub fn insert_hashes(&mut self, hashes: &[RedisHash]) -> Result<u64, RedisError> {
        let mut added = 0;
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&later) = hashes.get(i + DISTANCE) {
                self.newest().prefetch_hash(later);
            }
            added += u64::from(self.insert_hash(hash)?);
        }
        Ok(added)
    }

    fn newest(&self) -> &Link {
        &self.links[self.links.len() - 1]
    }

    fn next_link(&self) -> Result<Link, RedisError> {
        let newest = self.newest();
        if self.options & NO_SCALING != 0 {
            return Err(RedisError::Full { capacity: newest.entries() });
        }
        let entries = newest.entries().saturating_mul(self.growth.into());
        Link::reserve(entries, newest.error_rate() * 0.5, self.options)
    }

    /// Returns the links, oldest first; at least one.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Returns the number of inserted keys (`BF.CARD`), without keys that were, or seemed, present.
    pub fn size(&self) -> u64 {
        self.links.iter().map(Link::size).fold(0, u64::saturating_add)
    }

    /// Returns the number of keys that the links are sized for.
    pub fn capacity(&self) -> u64 {
        self.links.iter().map(Link::entries).fold(0, u64::saturating_add)
    }

    /// Returns the growth factor of the next link; `None` if the filter does not scale.
    pub fn expansion(&self) -> Option<u32> {
        (self.options & NO_SCALING == 0).then_some(self.growth)
    }

    /// Returns the width of a key's hash: 64 bits, or 32 in filters of early versions.
    pub fn hash_bits(&self) -> u32 {
        if self.options & FORCE_64 != 0 { 64 } else { 32 }
    }

    /// Returns the actual false-positive rate, computed from the bits of all links: one minus the
    /// product of the fractions of absent keys that each link rules out.
    ///
    /// Cost: reads every byte.
    pub fn estimated_false_positive_rate(&self) -> f64 {
        let absent = |link: &Link| 1.0 - link.estimated_false_positive_rate();
        1.0 - self.links.iter().map(absent).product::<f64>()
    }
}

/// Shows the contents of the headers, without the bits.
impl core::fmt::Debug for RedisFilter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RedisFilter")
            .field("expansion", &self.expansion())
            .field("hash_bits", &self.hash_bits())
            .field("links", &self.links)
            .finish()
    }
}

#[cfg(test)]
#[path = "../../tests/unit/chain.rs"]
mod tests;
