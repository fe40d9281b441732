//! Queries of a chain: a key may be there if any link says so.

use blocked_bloom::{Bitmask, Block, BloomFilter, Filter, KeyHash, LengthError};

use crate::filter::ScalableBloomFilter;

/// Hashes of a batch that are looked up together: up to 10 KiB of stack.
pub(crate) const AT_ONCE: usize = 1_024;

/// Batches up to this length have smaller buffers: clearing those for [`AT_ONCE`] takes 0.2 us, as long as one key in ten links.
pub(crate) const FEW: usize = 64;

/// Longest batch whose lines are prefetched in all links at once: see [`prefetch`].
const MOST_PREFETCHED: usize = 16;

impl<D: AsRef<[Block]>> ScalableBloomFilter<D> {
    /// Whether the key may have been added; false means certainly not. A filter of the caller's hashes answers "maybe".
    ///
    /// Cost: a cache line for each link, the newest first, until one may have the key.
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.hasher().map_or(true, |hasher| self.contains_hash(hasher.hash(key)))
    }

    /// Whether the key with this hash may have been added. The hash must be of the filter's [`hasher`](Self::hasher).
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.links.iter().rev().any(|link| link.contains_hash(hash))
    }

    /// Prefetches the cache lines that [`contains_hash`](Self::contains_hash) may read for this hash, one for each link.
    #[inline]
    pub fn prefetch_hash(&self, hash: u64) {
        self.links.iter().rev().for_each(|link| prefetch_in(link, hash));
    }

    /// Looks up every hash; `hits` then has one bit per hash: 1 may have been added, 0 was certainly not. Batches may have any length.
    ///
    /// Cost: about a cache line for each link and absent key. `docs/growing.md` has the figures.
    pub fn contains_hashes(&self, hashes: &[u64], hits: &mut Bitmask) {
        hits.write(hashes.len(), |words| look_up(&self.links, hashes, words));
    }

    /// [`contains_hashes`](Self::contains_hashes) into words of the caller's: hash `i` is bit `i % 64` of `words[i / 64]`, bits past the
    /// last hash are zero.
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per 64 hashes, rounded up; nothing is written then.
    pub fn contains_hashes_into(
        &self,
        hashes: &[u64],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        LengthError::check(hashes.len(), words)?;
        look_up(&self.links, hashes, words);
        Ok(())
    }

    /// Looks up every key, as [`contains_hashes`](Self::contains_hashes) does hashes. A filter of the caller's hashes answers "maybe" to
    /// each.
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], hits: &mut Bitmask) {
        hits.write(keys.len(), |words| _ = Filter::contains_batch_into(self, keys, words));
    }

    /// [`contains_batch`](Self::contains_batch) into words of the caller's.
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per 64 keys, rounded up; nothing is written then.
    pub fn contains_batch_into<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        Filter::contains_batch_into(self, keys, words)
    }

    /// Looks up integers, whose keys are their little-endian bytes, as [`contains_batch`](Self::contains_batch).
    pub fn contains_u64s(&self, keys: &[u64], hits: &mut Bitmask) {
        hits.write(keys.len(), |words| _ = Filter::contains_u64s_into(self, keys, words));
    }

    /// [`contains_u64s`](Self::contains_u64s) into words of the caller's.
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per 64 keys, rounded up; nothing is written then.
    pub fn contains_u64s_into(&self, keys: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        Filter::contains_u64s_into(self, keys, words)
    }
}

impl<D: AsRef<[Block]>> Filter for ScalableBloomFilter<D> {
    fn contains_hash(&self, hash: u64) -> bool {
        self.contains_hash(hash)
    }

    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        self.contains_hashes_into(hashes, words)
    }

    fn prefetch_hash(&self, hash: u64) {
        self.prefetch_hash(hash);
    }

    fn key_hash(&self) -> KeyHash {
        self.key_hash()
    }

    #[inline]
    fn hash_key(&self, key: &[u8]) -> Option<u64> {
        Some(self.hasher().ok()?.hash(key))
    }
}

/// Looks up every hash; there is one word per 64.
pub(crate) fn look_up<D: AsRef<[Block]>>(
    links: &[BloomFilter<D>],
    hashes: &[u64],
    words: &mut [u64],
) {
    if let ([hash], [word]) = (hashes, &mut *words) {
        // Of one hash, buffers would take longer than its lookups.
        if links.len() > 1 {
            prefetch(links, hashes);
        }
        *word = links.iter().rev().any(|link| link.contains_hash(*hash)).into();
        return;
    }
    if hashes.len() <= FEW {
        if links.len() > 1 && hashes.len() <= MOST_PREFETCHED {
            prefetch(links, hashes);
        }
        return look_up_some::<FEW, D>(links, hashes, words);
    }
    for (hashes, words) in hashes.chunks(AT_ONCE).zip(words.chunks_mut(AT_ONCE / 64)) {
        look_up_some::<AT_ONCE, D>(links, hashes, words);
    }
}

/// Prefetches what is looked up in the links that are too large for the cache, whose lines then come from memory at the same time instead of
/// one after the other: a call for one key in ten links of 23 MB takes 0.6 to 0.7 of the time, one for 64 keys that are there would
/// take up to twice as long (Zen 5).
fn prefetch<D: AsRef<[Block]>>(links: &[BloomFilter<D>], hashes: &[u64]) {
    let fits =
        |link: &BloomFilter<D>| link.memory_bytes() <= link.kernel().prefetch_threshold() as u64;
    for link in links.iter().rev().filter(|&link| !fits(link)) {
        hashes.iter().for_each(|&hash| prefetch_in(link, hash));
    }
}

/// Prefetches in one link. Unit tests write down which, and of which hash.
#[inline]
fn prefetch_in<D: AsRef<[Block]>>(link: &BloomFilter<D>, hash: u64) {
    #[cfg(test)]
    tests::PREFETCHED.with_borrow_mut(|all| all.push((link.blocks().len(), hash)));
    link.prefetch_hash(hash);
}

/// Up to `N` hashes, at most [`AT_ONCE`], are looked up in one link after the other, the newest first, which has about half of all keys, and
/// the answers are joined; once half of the hashes are answered "maybe", the rest of them are moved together, and only these are looked
/// up in later links.
///
/// Moving them after every link costs absent keys up to twice the time, looking up everything
/// in every link costs present keys ten times as much.
fn look_up_some<const N: usize, D: AsRef<[Block]>>(
    links: &[BloomFilter<D>],
    hashes: &[u64],
    words: &mut [u64],
) {
    words.fill(0);
    let (mut answers, mut left) = ([0; AT_ONCE / 64], None::<Left<N>>);
    let mut count = hashes.len();
    for link in links.iter().rev() {
        let looked_up = left.as_ref().map_or(hashes, |left| &left.hashes[..count]);
        let answers = &mut answers[..count.div_ceil(64)];
        link.contains_hashes_into(looked_up, answers).expect("a word per 64 hashes");
        match &left {
            None => words.iter_mut().zip(&*answers).for_each(|(word, answer)| *word |= answer),
            Some(left) => {
                for (i, &place) in left.places[..count].iter().enumerate() {
                    let hit = answers[i / 64] >> (i % 64) & 1;
                    words[usize::from(place) / 64] |= hit << (place % 64);
                }
            }
        }
        let hits: u32 = words.iter().map(|word| word.count_ones()).sum();
        let unanswered = hashes.len() - hits as usize;
        if unanswered == 0 {
            break;
        }
        if unanswered <= count / 2 {
            count = left.get_or_insert_with(Left::new).gather(hashes, words);
        }
    }
}

/// Hashes that no link has answered "maybe" yet, and where they stand in their batch.
pub(crate) struct Left<const N: usize> {
    pub(crate) hashes: [u64; N],
    pub(crate) places: [u16; N],
}

impl<const N: usize> Left<N> {
    pub(crate) fn new() -> Self {
        Left { hashes: [0; N], places: [0; N] }
    }

    /// Takes the hashes whose bit is zero; returns how many.
    pub(crate) fn gather(&mut self, hashes: &[u64], words: &[u64]) -> usize {
        let mut count = 0;
        for (i, &hash) in hashes.iter().enumerate() {
            // Written whether or not it stays: no branch to guess.
            (self.hashes[count], self.places[count]) = (hash, i as u16);
            count += usize::from(words[i / 64] >> (i % 64) & 1 == 0);
        }
        count
    }
}

#[cfg(test)]
#[path = "../tests/unit/query.rs"]
mod tests;
