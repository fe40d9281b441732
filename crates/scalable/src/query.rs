//! Lookups in a chain: a key may be present if any link may contain it.

use blocked_bloom::parts::{check_words, fill_with_hits};
use blocked_bloom::{Block, BloomFilter, Filter, KeyHash, LengthError};

use crate::filter::ScalableBloomFilter;

/// Hashes of a batch looked up together: up to 10 KiB of stack.
pub(crate) const CHUNK_HASHES: usize = 1_024;

/// Batches up to this length use smaller buffers. Clearing the buffers for [`CHUNK_HASHES`] takes
/// 0.2 us, as much time as looking up one key in ten links.
pub(crate) const SHORT_BATCH: usize = 64;

/// Maximum length of batches whose blocks are prefetched in all links at once: see [`prefetch`].
const MAX_PREFETCHED: usize = 16;

/// A lookup reads one cache line per link, the newest link first, until a link may contain the key.
/// `docs/growing.md` has the figures.
impl<D: AsRef<[Block]>> Filter for ScalableBloomFilter<D> {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.links.iter().rev().any(|link| link.contains_hash(hash))
    }

    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        check_words(hashes.len(), words)?;
        look_up(&self.links, hashes, words);
        Ok(())
    }

    #[inline]
    fn prefetch_hash(&self, hash: u64) {
        self.links.iter().rev().for_each(|link| prefetch_in(link, hash));
    }

    /// Returns the hash and seed chosen when the filter was created.
    #[inline]
    fn key_hash(&self) -> KeyHash {
        self.shape.key_hash
    }

    #[inline]
    fn hash_key(&self, key: &[u8]) -> Option<u64> {
        Some(self.hasher().ok()?.hash(key))
    }
}

/// Looks up all hashes; `words` has one word per 64. If the owner of the blocks panics, the answer
/// for the remaining hashes is "maybe".
pub(crate) fn look_up<D: AsRef<[Block]>>(
    links: &[BloomFilter<D>],
    hashes: &[u64],
    words: &mut [u64],
) {
    if let ([hash], [word]) = (hashes, &mut *words) {
        *word = 1;
        // For one hash, clearing buffers would take more time than the lookups.
        if links.len() > 1 {
            prefetch(links, hashes);
        }
        *word = links.iter().rev().any(|link| link.contains_hash(*hash)).into();
        return;
    }
    fill_with_hits(words, hashes.len());
    if hashes.len() <= SHORT_BATCH {
        if links.len() > 1 && hashes.len() <= MAX_PREFETCHED {
            prefetch(links, hashes);
        }
        return look_up_some::<SHORT_BATCH, D>(links, hashes, words);
    }
    for (hashes, words) in hashes.chunks(CHUNK_HASHES).zip(words.chunks_mut(CHUNK_HASHES / 64)) {
        look_up_some::<CHUNK_HASHES, D>(links, hashes, words);
    }
}

/// Prefetches in the links that exceed the cache, so that their blocks are loaded in parallel
/// instead of one after the other. A call for one key in ten links of 23 MB takes 0.6 to 0.7 times
/// as much time as without. A call for 64 present keys would take up to twice as much (Zen 5).
fn prefetch<D: AsRef<[Block]>>(links: &[BloomFilter<D>], hashes: &[u64]) {
    let fits =
        |link: &BloomFilter<D>| link.memory_bytes() <= link.kernel().prefetch_threshold() as u64;
    for link in links.iter().rev().filter(|&link| !fits(link)) {
        hashes.iter().for_each(|&hash| prefetch_in(link, hash));
    }
}

/// Prefetches in one link. Unit tests record the link and the hash.
#[inline]
fn prefetch_in<D: AsRef<[Block]>>(link: &BloomFilter<D>, hash: u64) {
    #[cfg(test)]
    tests::PREFETCHED.with_borrow_mut(|all| all.push((link.blocks().len(), hash)));
    link.prefetch_hash(hash);
}

/// Looks up `N` hashes or fewer (at most [`CHUNK_HASHES`]) in one link after the other. The newest
/// link, which contains about half of all keys, is first. Once half of the hashes are answered
/// "maybe", the others are gathered, and only these are looked up in the remaining links.
///
/// Gathering after every link would cost absent keys up to twice the time. Looking up every hash in
/// every link would cost present keys ten times the time. The answers are written last.
fn look_up_some<const N: usize, D: AsRef<[Block]>>(
    links: &[BloomFilter<D>],
    hashes: &[u64],
    words: &mut [u64],
) {
    let (mut answers, mut hits) = ([0; CHUNK_HASHES / 64], [0; CHUNK_HASHES / 64]);
    let (hits, mut left) = (&mut hits[..words.len()], None::<Unanswered<N>>);
    let mut count = hashes.len();
    for link in links.iter().rev() {
        let looked_up = left.as_ref().map_or(hashes, |left| &left.hashes[..count]);
        let answers = &mut answers[..count.div_ceil(64)];
        link.contains_hashes_into(looked_up, answers).expect("a word per 64 hashes");
        match &left {
            None => hits.iter_mut().zip(&*answers).for_each(|(word, answer)| *word |= answer),
            Some(left) => {
                for (i, &place) in left.places[..count].iter().enumerate() {
                    let hit = answers[i / 64] >> (i % 64) & 1;
                    hits[usize::from(place) / 64] |= hit << (place % 64);
                }
            }
        }
        let answered: u32 = hits.iter().map(|word| word.count_ones()).sum();
        let unanswered = hashes.len() - answered as usize;
        if unanswered == 0 {
            break;
        }
        if unanswered <= count / 2 {
            count = left.get_or_insert_with(Unanswered::new).gather(hashes, hits);
        }
    }
    words.copy_from_slice(hits);
}

/// Hashes that no link has answered with "maybe" yet, and their indices in the batch.
pub(crate) struct Unanswered<const N: usize> {
    pub(crate) hashes: [u64; N],
    pub(crate) places: [u16; N],
}

impl<const N: usize> Unanswered<N> {
    pub(crate) fn new() -> Self {
        Unanswered { hashes: [0; N], places: [0; N] }
    }

    /// Collects the hashes whose bit is zero, and returns their number.
    pub(crate) fn gather(&mut self, hashes: &[u64], words: &[u64]) -> usize {
        let mut count = 0;
        for (i, &hash) in hashes.iter().enumerate() {
            // Written unconditionally, so that there is no branch to mispredict.
            (self.hashes[count], self.places[count]) = (hash, i as u16);
            count += usize::from(words[i / 64] >> (i % 64) & 1 == 0);
        }
        count
    }
}

#[cfg(test)]
#[path = "../tests/unit/query.rs"]
mod tests;
