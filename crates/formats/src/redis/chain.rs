//! A chain of links: lookups one by one and in batches, and insertion as RedisBloom does it.

use alloc::vec;
use alloc::vec::Vec;

use blocked_bloom::Bitmask;

use super::error::{RedisError, check_range};
use super::hash::RedisHash;
use super::link::{FORCE_64, Link, NO_ROUND, NO_SCALING};

/// The prefetch distance of insertion, in keys.
const DISTANCE: usize = 16;

/// Keys of a batch that go from link to link together.
const CHUNK_KEYS: usize = 1024;

/// A filter of RedisBloom: a chain of links, in memory of its own.
///
/// It answers and grows as `BF.EXISTS` and `BF.ADD` do, and its dump is RedisBloom's, byte for
/// byte, after the same keys in the same order (the order decides which key is the first of the
/// next link).
///
/// ```
/// use blocked_bloom_formats::redis::RedisFilter;
/// // What BF.ADD makes of a key that is not there: BF.RESERVE key 0.01 100.
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
    /// An empty filter, as of `BF.RESERVE key error_rate capacity EXPANSION expansion`, or
    /// `NONSCALING` without expansion. Each link beyond the first is for `expansion` times as many
    /// keys as the one before. RedisBloom's own choice is 0.01, 100, 2.
    ///
    /// The first link is made for half the error rate, since the rates of all links add up: 1 / 2 +
    /// 1 / 4 + ... of it. Without expansion it is made for the whole rate.
    ///
    /// # Errors
    ///
    /// [`RedisError::OutOfRange`] for a capacity or an expansion of 0, [`RedisError::Rate`] unless
    /// the rate is above 0 and below 1, [`RedisError::Alloc`] if there is not enough memory.
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

    /// The hashes of a key, of the width that this filter has.
    #[inline]
    pub fn hash_key(&self, key: impl AsRef<[u8]>) -> RedisHash {
        RedisHash::hash(key.as_ref(), self.options & FORCE_64 != 0)
    }

    /// `BF.EXISTS`: whether the key may be present; false means certainly absent.
    ///
    /// Cost: two hashes, and per link a cache line per probe up to the first zero bit.
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.contains_hash(self.hash_key(key))
    }

    /// Whether the key with this hash, of the filter's width, may be present.
    #[inline]
    pub fn contains_hash(&self, hash: RedisHash) -> bool {
        // Most keys are in the newest link, which is the largest.
        self.links.iter().rev().any(|link| link.contains_hash(hash))
    }

    /// `BF.MEXISTS`: looks up every key; `hits` then has one bit per key. Batches may have any
    /// length. If a key panics when it is read, the mask is empty.
    ///
    /// Cost: the hashes of each key, and in links that outgrow the cache the cache lines of its
    /// probes, which are prefetched while other keys are tested (`benches/classical.rs`).
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], hits: &mut Bitmask) {
        let hashes = keys.iter().map(|key| self.hash_key(key));
        hits.write(keys.len(), |words| self.look_up(hashes, words));
    }

    /// Looks up hashes of the filter's width; `hits` then has one bit per hash.
    pub fn contains_hashes(&self, hashes: &[RedisHash], hits: &mut Bitmask) {
        hits.write(hashes.len(), |words| self.look_up(hashes.iter().copied(), words));
    }

    fn look_up(&self, mut hashes: impl ExactSizeIterator<Item = RedisHash>, words: &mut [u64]) {
        if let [link] = &self.links[..] {
            return link.look_up(hashes, words);
        }
        words.fill(0);
        // Keys that no link so far may have, and their indices.
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

    /// `BF.ADD`: adds a key. Returns true if it was certainly not there before; otherwise nothing
    /// changes.
    ///
    /// Cost: a lookup, and a cache line per probe. When the newest link holds as many keys as it
    /// was made for, another one is made.
    ///
    /// # Errors
    ///
    /// [`RedisError::Full`] if another link is needed and the filter was reserved not to scale;
    /// [`RedisError::OutOfRange`], [`RedisError::Rate`] or [`RedisError::Alloc`] if the link cannot
    /// be made. Nothing is changed then.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool, RedisError> {
        self.insert_hash(self.hash_key(key))
    }

    /// Adds the key with this hash, of the filter's width.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
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

    /// `BF.MADD`: adds keys in their order, and returns how many were certainly not there before.
    ///
    /// Cost: cache lines of later keys in the newest link are prefetched while keys are added.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert). The keys before the one that failed are in the filter.
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

    /// The links, oldest first; at least one.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// `BF.CARD`: keys that were added, not counting those that were, or seemed to be, there.
    pub fn size(&self) -> u64 {
        self.links.iter().map(Link::size).fold(0, u64::saturating_add)
    }

    /// Keys that the links were made for.
    pub fn capacity(&self) -> u64 {
        self.links.iter().map(Link::entries).fold(0, u64::saturating_add)
    }

    /// How many times as many keys the next link is made for; none if the filter does not scale.
    pub fn expansion(&self) -> Option<u32> {
        (self.options & NO_SCALING == 0).then_some(self.growth)
    }

    /// Bits of a key's hash: 64, or 32 in filters of early versions.
    pub fn hash_bits(&self) -> u32 {
        if self.options & FORCE_64 != 0 { 64 } else { 32 }
    }

    /// False-positive rate that the filter really has, from the bits of all links: one minus the
    /// product of the fractions of absent keys that each link rules out.
    ///
    /// Cost: reads every byte.
    pub fn estimated_false_positive_rate(&self) -> f64 {
        let absent = |link: &Link| 1.0 - link.estimated_false_positive_rate();
        1.0 - self.links.iter().map(absent).product::<f64>()
    }
}

/// What the headers say, without the bits.
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
