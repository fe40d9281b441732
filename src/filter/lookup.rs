//! Lookups, written once for filters of any kind of memory.

use core::mem::MaybeUninit;

use super::parts::Blocks;
use super::{BloomFilter, Filter};
use crate::batch::{LengthError, check_words, look_up};
use crate::bitmask::{self, Bitmask};
use crate::hash::{HashKeys, Key, KeyHash, KeyHasher, hash_each};
use crate::kernel::{FAR, GROUP, Kernel, Prefetch, PrefetchPlan, prefetch_block};
use crate::prefix::PrefixExtractor;
use crate::probe::{self, Block};
use crate::stored::full_block;

impl<D: Blocks> BloomFilter<D> {
    /// Whether the key may be present: false means certainly absent.
    ///
    /// A filter of [`KeyHash::Caller`] cannot hash a key and answers true.
    ///
    /// Cost: one hash, one cache line.
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        match self.hasher() {
            Ok(hasher) => self.contains_hash(hasher.hash(key)),
            Err(_) => true,
        }
    }

    /// Whether the key with this hash may be present.
    ///
    /// The hash must be of the filter's [`hasher`](Self::hasher): for the hash of another seed, the
    /// filter answers "absent" although the key was inserted.
    /// [`from_bytes`](BloomFilter::from_bytes) checks that once, when a filter is opened.
    ///
    /// Cost: one cache line.
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let blocks = self.blocks();
        let line = &blocks[probe::block_index(hash, blocks.len() as u32) as usize];
        !self.answers || self.kernel.contains_one(line, u32::from(self.meta.probes), hash)
    }

    /// Prefetches the cache line that [`contains_hash`](Self::contains_hash) reads for this hash.
    /// Allocates nothing and keeps no borrow.
    ///
    /// The way to look up one key in many tables: hash it once, prefetch in all of them, then test
    /// them, the newest first, as the example of [`Filter`] does. The lines then come from memory
    /// at the same time (`benches/engine.rs`). In the cache nothing is gained.
    #[inline]
    pub fn prefetch_hash(&self, hash: u64) {
        prefetch_block::<2, 1, _>(self.blocks(), hash);
    }

    /// Looks up every hash; `hits` then has one bit per hash: 1 may be present, 0 is certainly
    /// absent. Batches may have any length.
    ///
    /// The hashes must be of the filter's [`hasher`](Self::hasher).
    ///
    /// Cost: about one cache line per hash; one indirect call per batch.
    #[inline]
    pub fn contains_hashes(&self, hashes: &[u64], hits: &mut Bitmask) {
        // First: if the owner panics, the mask must not have a new length and old answers.
        let (blocks, probes) = self.answering();
        self.kernel.look_up(blocks, probes, hashes, hits.reset(hashes.len()));
    }

    /// There is one word per 64 hashes.
    #[inline]
    pub(crate) fn look_up(&self, hashes: &[u64], words: &mut [u64]) {
        let (blocks, probes) = self.answering();
        self.kernel.look_up(blocks, probes, hashes, words);
    }

    /// The blocks and probes that answer: a pass-all filter's if what is looked up is not held.
    #[inline]
    fn answering(&self) -> (&[Block], u32) {
        match self.answers {
            true => (self.blocks(), u32::from(self.meta.probes)),
            false => (full_block(), 1),
        }
    }

    /// Looks up every key, as [`contains_hashes`](Self::contains_hashes) does hashes. A filter of
    /// the caller's hashes answers "maybe".
    ///
    /// Cost: the hash and about one cache line of every key, which is prefetched while later keys
    /// are hashed if the filter outgrows the cache.
    #[inline]
    pub fn contains_batch<K: Key>(&self, keys: &[K], hits: &mut Bitmask) {
        self.look_up_keys(keys, hits.reset(keys.len()));
    }

    /// Looks up integers, whose keys are their little-endian bytes, as
    /// [`contains_batch`](Self::contains_batch): the fastest way from keys to answers.
    #[inline]
    pub fn contains_u64s(&self, keys: &[u64], hits: &mut Bitmask) {
        self.look_up_u64s(keys, hits.reset(keys.len()));
    }

    #[inline]
    fn look_up_keys<K: Key>(&self, keys: &[K], words: &mut [u64]) {
        match (keys, &mut *words) {
            ([key], [word]) => self.look_up_one(key, word),
            (_, [word]) => self.look_up_few(keys, word, KeyHasher::bytes),
            _ => self.look_up_many(keys, words, KeyHasher::bytes),
        }
    }

    #[inline]
    fn look_up_u64s(&self, keys: &[u64], words: &mut [u64]) {
        match (keys, &mut *words) {
            ([key], [word]) => self.look_up_one(key.to_le_bytes(), word),
            (_, [word]) => self.look_up_few(keys, word, KeyHasher::integers),
            _ => self.look_up_many(keys, words, KeyHasher::integers),
        }
    }

    /// Looks up the key of a call of one. If the key panics when it is read, "maybe" is left.
    #[inline]
    fn look_up_one(&self, key: impl Key, word: &mut u64) {
        *word = 1;
        *word = self.contains(key).into();
    }

    /// Looks up to 64 keys.
    ///
    /// Not inlined: its prologue would crowd calls of one key out of the reorder window, so that
    /// they take 1.6 times as long from memory (Zen 4).
    #[inline(never)]
    fn look_up_few<K, H: HashKeys<K>>(
        &self,
        keys: &[K],
        word: &mut u64,
        hash: impl Fn(KeyHasher, Kernel) -> H,
    ) {
        // If a key or the owner of the blocks panics when it is read, this is left.
        *word = bitmask::used(keys.len(), 0);
        let Ok(hasher) = self.hasher() else { return };
        let (hash, (blocks, probes)) = (hash(hasher, self.kernel), self.answering());
        let mut memory = [MaybeUninit::uninit(); GROUP];
        let hashes = match self.kernel.prefetch_of_keys(blocks, keys.len()) {
            Prefetch::Off => hash.hash_keys(keys, &mut memory),
            // A loop for each: with the choice in the loop integers took 1.09 of the time.
            Prefetch::OneLine => hash_ahead::<1, _>(blocks, keys, &mut memory, &hash),
            Prefetch::TwoLines => hash_ahead::<2, _>(blocks, keys, &mut memory, &hash),
        };
        *word = self.kernel.test_group(blocks, probes, hashes);
    }

    /// There is one word per 64 keys.
    #[inline(never)]
    fn look_up_many<K, H: HashKeys<K>>(
        &self,
        keys: &[K],
        words: &mut [u64],
        hash: impl Fn(KeyHasher, Kernel) -> H,
    ) {
        // As above.
        bitmask::fill_with_hits(words, keys.len());
        let Ok(hasher) = self.hasher() else { return };
        let (hash, (blocks, probes)) = (hash(hasher, self.kernel), self.answering());
        let way = self.kernel.way(blocks);
        let groups = matches!(way, PrefetchPlan::Groups(..));
        look_up(
            keys,
            words,
            hash,
            groups.then_some(|hashes: &[u64]| way.prefetch(blocks, hashes)),
            |hashes, words| match words {
                [word] if groups => *word = self.kernel.test_group(blocks, probes, hashes),
                _ => self.kernel.look_up_by(way, blocks, probes, hashes, words),
            },
        );
    }

    /// Whether a key that starts with `start` may be present: if not, a scan finds nothing.
    ///
    /// Looks up the prefix that all those keys have by the rule. If they need not share one, if the
    /// filter's prefixes were cut by another rule, or if it holds none, the answer is true; also
    /// where the caller hashes, as with [`contains`](Self::contains): look up the hash of the prefix
    /// in [`prefixes`](Self::prefixes) then.
    ///
    /// Cost: one hash, one cache line.
    pub fn contains_prefix(&self, extractor: &PrefixExtractor, start: impl Key) -> bool {
        match extractor.scan_prefix(start.as_ref()) {
            Some(prefix) => self.prefixes(extractor).contains(prefix),
            None => true,
        }
    }

    /// [`contains_prefix`](Self::contains_prefix) for a batch; `hits` then has one bit per start.
    /// Batches may have any length.
    pub fn contains_prefix_batch<K: Key>(
        &self,
        extractor: &PrefixExtractor,
        starts: &[K],
        hits: &mut Bitmask,
    ) {
        let filter = self.prefixes(extractor);
        let words = hits.reset(starts.len());
        bitmask::fill_with_hits(words, starts.len());
        for (starts, word) in starts.chunks(64).zip(words) {
            let mut prefixes: [&[u8]; 64] = [&[]; 64];
            let mut unknown = 0;
            for (i, start) in starts.iter().enumerate() {
                let prefix = extractor.scan_prefix(start.as_ref());
                unknown |= u64::from(prefix.is_none()) << i;
                prefixes[i] = prefix.unwrap_or_default();
            }
            filter.look_up_keys(&prefixes[..starts.len()], core::slice::from_mut(word));
            *word |= unknown;
        }
    }

    /// The same filter, borrowed, for looking up prefixes instead of keys: every lookup of this
    /// view is then for prefixes, in batches and by hash too. If the filter holds none by this
    /// rule, each is answered "maybe".
    ///
    /// Give it whole prefixes, as [`PrefixExtractor::scan_prefix`] cuts them: anything else is a
    /// prefix that was not added, and mostly answered "absent".
    /// [`contains_prefix_batch`](Self::contains_prefix_batch) cuts them itself; this view is for
    /// those that hash a prefix once for many filters.
    pub fn prefixes(&self, extractor: &PrefixExtractor) -> BloomFilter<&[Block]> {
        let answers = self.meta.contents.extractor() == Some(extractor.id());
        BloomFilter { answers, ..self.view() }
    }
}

/// Hashes up to 64 keys, and prefetches `LINES` lines of the block of each.
#[inline(always)]
fn hash_ahead<'h, const LINES: usize, K>(
    blocks: &[Block],
    keys: &[K],
    memory: &'h mut [MaybeUninit<u64>],
    hash: &impl HashKeys<K>,
) -> &'h [u64] {
    hash_each(keys, memory, |key| {
        let hash = hash.hash_one(key);
        prefetch_block::<LINES, { FAR }, _>(blocks, hash);
        hash
    })
}

/// The methods of the type, and those that write into words of the caller's.
impl<D: Blocks> Filter for BloomFilter<D> {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.contains_hash(hash)
    }

    #[inline]
    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        check_words(hashes.len(), words)?;
        self.look_up(hashes, words);
        Ok(())
    }

    #[inline]
    fn prefetch_hash(&self, hash: u64) {
        self.prefetch_hash(hash);
    }

    #[inline]
    fn key_hash(&self) -> KeyHash {
        self.key_hash()
    }

    #[inline]
    fn hash_key(&self, key: &[u8]) -> Option<u64> {
        Some(self.hasher().ok()?.hash(key))
    }

    #[inline]
    fn contains_batch_into<K: Key>(
        &self,
        keys: &[K],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        check_words(keys.len(), words)?;
        self.look_up_keys(keys, words);
        Ok(())
    }

    #[inline]
    fn contains_u64s_into(&self, keys: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        check_words(keys.len(), words)?;
        self.look_up_u64s(keys, words);
        Ok(())
    }
}
