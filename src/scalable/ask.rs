//! Questions to a chain: a key may be there if any link says so.
//!
//! This file owns the questions of the owned and of the borrowed chain, written once over their links' views. It refuses to order
//! the links; whoever lends them does.

use super::{AT_ONCE, ScalableBloomFilter, ScalableBloomFilterRef};
use crate::bitmask::{self, Bitmask};
use crate::hash::KeyHash;
use crate::view::BloomFilterRef;

fn hash<'a>(mut views: impl Iterator<Item = BloomFilterRef<'a>>, hash: u64) -> bool {
    views.any(|link| link.contains_hash(hash))
}

fn key<'a>(
    views: impl Iterator<Item = BloomFilterRef<'a>>,
    key_hash: KeyHash,
    key: impl AsRef<[u8]>,
) -> bool {
    key_hash.hasher().is_none_or(|hasher| self::hash(views, hasher.hash(key)))
}

/// One link after the other is asked about a thousand hashes, and the answers are joined; once half of the hashes are answered
/// "maybe", the rest of them are moved together, and later links are asked about these only.
///
/// `docs/growing.md` has the figures: moving them after every link costs absent keys up to twice the time, asking every link
/// about everything costs present keys ten times as much.
pub(super) fn hashes<'a>(
    views: impl Iterator<Item = BloomFilterRef<'a>> + Clone,
    hashes: &[u64],
    words: &mut [u64],
) {
    words.fill(0);
    let (mut answers, mut left) = ([0; AT_ONCE / 64], Left::new());
    for (hashes, words) in hashes.chunks(AT_ONCE).zip(words.chunks_mut(AT_ONCE / 64)) {
        let mut asked = hashes.len();
        for link in views.clone() {
            let is_moved = asked < hashes.len();
            let questions = if is_moved { &left.hashes[..asked] } else { hashes };
            let answers = &mut answers[..asked.div_ceil(64)];
            // The lengths agree by construction; if they did not, "maybe" would be the answer.
            if link.contains_hashes_into(questions, answers).is_err() {
                bitmask::fill_with_hits(answers, asked);
            }
            if is_moved {
                for (i, &place) in left.places[..asked].iter().enumerate() {
                    let hit = answers[i / 64] >> (i % 64) & 1;
                    words[usize::from(place) / 64] |= hit << (place % 64);
                }
            } else {
                words.iter_mut().zip(&*answers).for_each(|(word, answer)| *word |= answer);
            }
            let hits: u32 = words.iter().map(|word| word.count_ones()).sum();
            let unanswered = hashes.len() - hits as usize;
            if unanswered == 0 {
                break;
            }
            if unanswered <= asked / 2 {
                asked = left.gather(hashes, words);
            }
        }
    }
}

/// Hashes that no link has answered "maybe" yet, and where they stand in their batch.
struct Left {
    hashes: [u64; AT_ONCE],
    places: [u16; AT_ONCE],
}

impl Left {
    fn new() -> Self {
        Left { hashes: [0; AT_ONCE], places: [0; AT_ONCE] }
    }

    /// Takes the hashes whose bit is zero; returns how many.
    fn gather(&mut self, hashes: &[u64], words: &[u64]) -> usize {
        let mut count = 0;
        for (i, &hash) in hashes.iter().enumerate() {
            // Written whether or not it stays: no branch to guess.
            (self.hashes[count], self.places[count]) = (hash, i as u16);
            count += usize::from(words[i / 64] >> (i % 64) & 1 == 0);
        }
        count
    }
}

fn keys<'a, K: AsRef<[u8]>>(
    views: impl Iterator<Item = BloomFilterRef<'a>> + Clone,
    key_hash: KeyHash,
    keys: &[K],
    words: &mut [u64],
) {
    let Some(hasher) = key_hash.hasher() else {
        return bitmask::fill_with_hits(words, keys.len());
    };
    let mut buffer = [0; AT_ONCE];
    for (keys, words) in keys.chunks(AT_ONCE).zip(words.chunks_mut(AT_ONCE / 64)) {
        hasher.hash_into(keys, &mut buffer);
        hashes(views.clone(), &buffer[..keys.len()], words);
    }
}

impl ScalableBloomFilter {
    /// Whether the key may have been added; false means certainly not. A filter of the caller's hashes answers "maybe".
    ///
    /// Cost: a cache line for each link, the newest first, until one may have the key.
    ///
    /// ```
    /// # use blocked_bloom::ScalableBloomFilter;
    /// let mut filter = ScalableBloomFilter::new(0.01, 100)?;
    /// filter.insert("apple")?;
    /// assert!(filter.contains("apple") && !filter.contains("banana"));
    /// # Ok::<(), blocked_bloom::ScalableError>(())
    /// ```
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self::key(self.views(), self.key_hash(), key)
    }

    /// Whether the key with this hash may have been added.
    ///
    /// ```
    /// # use blocked_bloom::ScalableBloomFilter;
    /// assert!(!ScalableBloomFilter::new(0.01, 100)?.contains_hash(0x9c1c_34f1_0a4e_7ab3));
    /// # Ok::<(), blocked_bloom::ScalableError>(())
    /// ```
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self::hash(self.views(), hash)
    }

    /// Asks about every key; `hits` then has one bit per key. A filter of the caller's hashes answers "maybe".
    ///
    /// Cost: every key is hashed once, and every link is asked about all of them by its kernel.
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, ScalableBloomFilter};
    /// let mut filter = ScalableBloomFilter::new(0.01, 100)?;
    /// filter.insert("apple")?;
    /// let mut hits = Bitmask::new();
    /// filter.contains_batch(&["apple", "banana"], &mut hits);
    /// assert!(hits.hits().eq([0]));
    /// # Ok::<(), blocked_bloom::ScalableError>(())
    /// ```
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], hits: &mut Bitmask) {
        hits.write(keys.len(), |words| self::keys(self.views(), self.key_hash(), keys, words));
    }

    /// Asks about every hash; `hits` then has one bit per hash.
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, KeyHasher, ScalableBloomFilter};
    /// let mut filter = ScalableBloomFilter::new(0.01, 100)?;
    /// filter.insert("apple")?;
    /// let mut hits = Bitmask::new();
    /// filter.contains_hashes(&[KeyHasher::default().hash("apple")], &mut hits);
    /// assert_eq!(hits.count_hits(), 1);
    /// # Ok::<(), blocked_bloom::ScalableError>(())
    /// ```
    pub fn contains_hashes(&self, hashes: &[u64], hits: &mut Bitmask) {
        self::hashes(self.views(), hashes, hits.reset(hashes.len()));
    }
}

impl ScalableBloomFilterRef<'_> {
    /// [`ScalableBloomFilter::contains`].
    ///
    /// ```
    /// # use blocked_bloom::{ScalableBloomFilter, ScalableBloomFilterRef};
    /// let stored = ScalableBloomFilter::new(0.01, 100)?.to_bytes();
    /// assert!(!ScalableBloomFilterRef::from_bytes(&stored)?.contains("apple"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self::key(self.views(), self.key_hash(), key)
    }

    /// [`ScalableBloomFilter::contains_hash`].
    ///
    /// ```
    /// # use blocked_bloom::{ScalableBloomFilter, ScalableBloomFilterRef};
    /// let stored = ScalableBloomFilter::new(0.01, 100)?.to_bytes();
    /// assert!(!ScalableBloomFilterRef::from_bytes(&stored)?.contains_hash(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self::hash(self.views(), hash)
    }

    /// [`ScalableBloomFilter::contains_batch`].
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, ScalableBloomFilter, ScalableBloomFilterRef};
    /// let stored = ScalableBloomFilter::new(0.01, 100)?.to_bytes();
    /// let mut hits = Bitmask::new();
    /// ScalableBloomFilterRef::from_bytes(&stored)?.contains_batch(&["apple"], &mut hits);
    /// assert_eq!(hits.count_misses(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], hits: &mut Bitmask) {
        hits.write(keys.len(), |words| self::keys(self.views(), self.key_hash(), keys, words));
    }

    /// [`ScalableBloomFilter::contains_hashes`].
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, ScalableBloomFilter, ScalableBloomFilterRef};
    /// let stored = ScalableBloomFilter::new(0.01, 100)?.to_bytes();
    /// let mut hits = Bitmask::new();
    /// ScalableBloomFilterRef::from_bytes(&stored)?.contains_hashes(&[1, 2], &mut hits);
    /// assert_eq!(hits.count_misses(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_hashes(&self, hashes: &[u64], hits: &mut Bitmask) {
        self::hashes(self.views(), hashes, hits.reset(hashes.len()));
    }
}
