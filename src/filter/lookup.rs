//! Lookups, for any storage of the blocks.

use core::mem::MaybeUninit;
use core::ops::Bound;

use super::parts::Blocks;
use super::{BloomFilter, Filter};
use crate::batch::{LengthError, check_words, look_up};
use crate::bitmask::{self, Bitmask};
use crate::hash::{HashBytes, HashIntegers, HashKeys, KernelHash, Key, KeyHash, hash_each};
use crate::kernel::{FAR, GROUP, Prefetch, PrefetchPlan, prefetch_block};
use crate::prefix::PrefixExtractor;
use crate::probe::{self, Block};
use crate::stored::full_block;

impl<D: Blocks> BloomFilter<D> {
    /// Whether the key may be present: false means certainly absent.
    ///
    /// A filter of [`KeyHash::Caller`] cannot hash a key and returns true.
    ///
    /// Cost: one hash, one cache line.
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        // Not `map_or` or `let .. else`: with them, rustc inlines this function before LLVM does,
        // and LLVM no longer knows that `self` does not change. A loop over keys then reads the
        // fields of `self` for each key and takes 1.1x the time (AVX-512).
        match self.hasher() {
            Ok(hasher) => self.contains_hash(hasher.hash(key)),
            Err(_) => true,
        }
    }

    /// Whether the key with this hash may be present.
    ///
    /// The hash must come from the filter's [`hasher`](Self::hasher): for a hash of another seed,
    /// the filter answers "absent" although the key was inserted.
    /// [`from_bytes`](BloomFilter::from_bytes) checks the seed when the filter is opened.
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
    /// To look up one key in many tables, hash it once, prefetch in all filters, and then test
    /// them, the newest first, as in the example of [`Filter`]. The cache misses then overlap. If
    /// the filters are in the cache, prefetching does not help.
    #[inline]
    pub fn prefetch_hash(&self, hash: u64) {
        prefetch_block::<2, 1, _>(self.blocks(), hash);
    }

    /// Looks up every hash. `hits` has one bit per hash afterwards: 1 means that the key may be
    /// present, 0 that it is certainly absent. Batches may have any length.
    ///
    /// The hashes must come from the filter's [`hasher`](Self::hasher).
    ///
    /// Cost: about one cache line per hash, and one indirect call per batch.
    #[inline]
    pub fn contains_hashes(&self, hashes: &[u64], hits: &mut Bitmask) {
        // Before `reset`: if the owner of the blocks panics, the mask must keep its old length.
        self.look_up(hashes, hits.reset(hashes.len()));
    }

    /// Looks up hashes, with one word per 64 hashes.
    #[inline]
    pub(crate) fn look_up(&self, hashes: &[u64], words: &mut [u64]) {
        let (blocks, probes) = self.answering();
        self.kernel.look_up(blocks, probes, hashes, words);
    }

    /// Returns the blocks and probes to test. They are those of a pass-all filter if the filter
    /// cannot answer.
    #[inline]
    fn answering(&self) -> (&[Block], u32) {
        if self.answers { (self.blocks(), u32::from(self.meta.probes)) } else { (full_block(), 1) }
    }

    /// Looks up every key, like [`contains_hashes`](Self::contains_hashes). A filter of
    /// caller-supplied hashes answers "maybe".
    ///
    /// Cost: the hash and about one cache line per key. In calls with more than two keys, the line
    /// is prefetched while later keys are hashed if the filter is larger than the cache.
    #[inline]
    pub fn contains_batch<K: Key>(&self, keys: &[K], hits: &mut Bitmask) {
        self.look_up_keys::<K, HashBytes>(keys, hits.reset(keys.len()));
    }

    /// Looks up every integer, like [`contains_batch`](Self::contains_batch). The key of an integer
    /// is its little-endian bytes.
    ///
    /// To look up the same integers in several filters, hash them once with
    /// [`hash_u64s`](crate::KeyHasher::hash_u64s).
    #[inline]
    pub fn contains_u64s(&self, keys: &[u64], hits: &mut Bitmask) {
        self.look_up_keys::<u64, HashIntegers>(keys, hits.reset(keys.len()));
    }

    /// Looks up keys, with one word per 64 keys.
    #[inline]
    fn look_up_keys<K, H: HashKeys<K> + KernelHash>(&self, keys: &[K], words: &mut [u64]) {
        match (keys, &mut *words) {
            ([key], [word]) => {
                // Remains if the hasher is missing or reading the key panics.
                *word = 1;
                let Ok(hasher) = self.hasher() else { return };
                *word = self.contains_hash(H::new(hasher, self.kernel).hash_one(key)).into();
            }
            ([_, _], [word]) => self.look_up_two_or_three::<K, H>(keys, word),
            ([_, _, _], [word]) => {
                // These answers remain if the owner of the blocks panics.
                *word = 0b111;
                match self.kernel.prefetch_of_keys(self.blocks(), 3) {
                    Prefetch::Off => self.look_up_two_or_three::<K, H>(keys, word),
                    _ => self.look_up_few::<K, H>(keys, word),
                }
            }
            (_, [word]) => self.look_up_few::<K, H>(keys, word),
            _ => self.look_up_many::<K, H>(keys, words),
        }
    }

    /// Hashes two or three keys, and then calls the test of one key for each. Does not prefetch:
    /// from memory, the CPU overlaps the cache misses of several calls with two keys, and
    /// prefetching made those take 1.2x the time. Calls with three strings from memory took 0.85x
    /// with prefetching, so they use [`look_up_few`](Self::look_up_few) (Emerald Rapids).
    ///
    /// Not inlined, since it saves more registers than a call with one key. `look_up_few` saves
    /// even more: with it, strings took up to 1.25x the time.
    #[inline(never)]
    fn look_up_two_or_three<K, H: HashKeys<K> + KernelHash>(&self, keys: &[K], word: &mut u64) {
        // These answers remain if reading a key or the blocks panics.
        *word = bitmask::used(keys.len(), 0);
        let Ok(hasher) = self.hasher() else { return };
        let hash = H::new(hasher, self.kernel);
        let has = |hash| u64::from(self.contains_hash(hash));
        let mut memory = [MaybeUninit::uninit(); 3];
        // Hashing and testing in turn took 1.15x the time for three strings.
        // A loop over the hashes took 1.1x the time.
        *word = match *hash_each(keys, &mut memory, |key| hash.hash_one(key)) {
            [a, b] => has(a) | has(b) << 1,
            [a, b, c] => has(a) | has(b) << 1 | has(c) << 2,
            _ => return,
        }
    }

    /// Looks up three to 64 keys.
    ///
    /// Not inlined: with its prologue, the reorder window holds fewer calls with one key, and each
    /// takes 1.6x the time from memory (Zen 4).
    #[inline(never)]
    fn look_up_few<K, H: HashKeys<K> + KernelHash>(&self, keys: &[K], word: &mut u64) {
        // These answers remain if reading a key or the blocks panics.
        *word = bitmask::used(keys.len(), 0);
        let Ok(hasher) = self.hasher() else { return };
        let (hash, (blocks, probes)) = (H::new(hasher, self.kernel), self.answering());
        let mut memory = [MaybeUninit::uninit(); GROUP];
        let hashes = match self.kernel.prefetch_of_keys(blocks, keys.len()) {
            Prefetch::Off => hash.hash_keys(keys, &mut memory),
            // One loop for each kind: with the choice in the loop, integers took 1.09x the time.
            Prefetch::OneLine => hash_ahead::<1, _>(blocks, keys, &mut memory, &hash),
            Prefetch::TwoLines => hash_ahead::<2, _>(blocks, keys, &mut memory, &hash),
        };
        *word = self.kernel.test_group(blocks, probes, hashes);
    }

    /// Looks up more than 64 keys, with one word per 64 keys.
    #[inline(never)]
    fn look_up_many<K, H: HashKeys<K> + KernelHash>(&self, keys: &[K], words: &mut [u64]) {
        // These answers remain if reading a key or the blocks panics.
        bitmask::fill_with_hits(words, keys.len());
        let Ok(hasher) = self.hasher() else { return };
        let (hash, (blocks, probes)) = (H::new(hasher, self.kernel), self.answering());
        let plan = self.kernel.prefetch_plan(blocks);
        let groups = matches!(plan, PrefetchPlan::Groups(..));
        look_up(
            keys,
            words,
            hash,
            groups.then_some(|hashes: &[u64]| plan.prefetch(blocks, hashes)),
            |hashes, words| match words {
                [word] if groups => *word = self.kernel.test_group(blocks, probes, hashes),
                _ => self.kernel.look_up_by(plan, blocks, probes, hashes, words),
            },
        );
    }

    /// Whether a key that starts with `start` may be present. If not, a scan finds nothing.
    ///
    /// Looks up the prefix that the rule assigns to all those keys. Returns true if they may have
    /// different prefixes, or if the filter holds no prefixes by this rule. Also returns true if
    /// the caller supplies the hashes; look up the hash of the prefix in
    /// [`prefixes`](Self::prefixes) then.
    ///
    /// Cost: one hash, one cache line.
    #[inline]
    pub fn contains_prefix(&self, extractor: &PrefixExtractor, start: impl Key) -> bool {
        let prefix = extractor.scan_prefix(start.as_ref());
        prefix.is_none_or(|prefix| self.prefixes(extractor).contains(prefix))
    }

    /// Whether a key between two bounds may be present. If not, a scan of the range finds nothing.
    ///
    /// Looks up the prefixes that [`PrefixExtractor::range_prefixes`] returns in one batch. Returns
    /// true if they are unknown, if the filter holds no prefixes by this rule, or if the caller
    /// supplies the hashes. Returns false for an empty or reversed range.
    ///
    /// Cost: that of `range_prefixes`, then one hash and one cache line per prefix, at most 256.
    ///
    /// ```
    /// use std::ops::Bound::{Excluded, Included};
    /// use blocked_bloom::{FilterOptions, PrefixExtractor, Sizing};
    /// let rule = PrefixExtractor::fixed(4);
    /// let options = FilterOptions::new(Sizing::BitsPerKey(16.0)).with_prefixes(rule.clone());
    /// let mut builder = options.builder();
    /// builder.extend(["id07/apple", "id33/plum"])?;
    /// let filter = builder.finish()?;
    ///
    /// let range = |lower: &'static str, upper: &'static str| {
    ///     let (lower, upper) = (Included(lower.as_bytes()), Excluded(upper.as_bytes()));
    ///     filter.contains_range(&rule, lower, upper)
    /// };
    /// assert!(range("id06/x", "id07/b"));
    /// assert!(!range("id34", "id37"));
    /// assert!(range("id34", "id41"), "four bytes do not suffice for these keys: \"maybe\"");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_range(
        &self,
        extractor: &PrefixExtractor,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> bool {
        extractor.range_prefixes(lower, upper).is_none_or(|prefixes| {
            let mut hits = Bitmask::new();
            self.prefixes(extractor).contains_batch(&prefixes, &mut hits);
            hits.count_hits() > 0
        })
    }

    /// Looks up every start like [`contains_prefix`](Self::contains_prefix). `hits` has one bit per
    /// start afterwards. Batches may have any length.
    pub fn contains_prefix_batch<K: Key>(
        &self,
        extractor: &PrefixExtractor,
        starts: &[K],
        hits: &mut Bitmask,
    ) {
        let filter = self.prefixes(extractor);
        let words = hits.reset(starts.len());
        bitmask::fill_with_hits(words, starts.len());
        for (starts, word) in starts.chunks(64).zip(words.chunks_mut(1)) {
            let mut prefixes: [&[u8]; 64] = [&[]; 64];
            let mut unknown = 0;
            for (i, start) in starts.iter().enumerate() {
                let prefix = extractor.scan_prefix(start.as_ref());
                unknown |= u64::from(prefix.is_none()) << i;
                prefixes[i] = prefix.unwrap_or_default();
            }
            filter.look_up_keys::<_, HashBytes>(&prefixes[..starts.len()], word);
            word[0] |= unknown;
        }
    }

    /// Borrows the filter for lookups of prefixes: all lookups of the returned view are for
    /// prefixes instead of keys. If the filter holds no prefixes by this rule, every answer is
    /// "maybe".
    ///
    /// Pass prefixes exactly as [`PrefixExtractor::scan_prefix`] returns them. Other bytes were not
    /// inserted as a prefix and are usually "absent".
    /// [`contains_prefix_batch`](Self::contains_prefix_batch) extracts the prefixes itself; use the
    /// view to hash a prefix once for many filters.
    #[inline]
    pub fn prefixes(&self, extractor: &PrefixExtractor) -> BloomFilter<&[Block]> {
        let answers = self.meta.contents.extractor() == Some(extractor.id());
        BloomFilter { answers, ..self.view() }
    }
}

/// Hashes up to 64 keys and prefetches `LINES` cache lines of each key's block.
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

/// The inherent lookups, and lookups that write to words of the caller.
impl<D: Blocks> Filter for BloomFilter<D> {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.contains_hash(hash)
    }

    #[inline]
    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        check_words(hashes.len(), words).map(|()| self.look_up(hashes, words))
    }

    #[inline]
    fn prefetch_hash(&self, hash: u64) {
        self.prefetch_hash(hash);
    }

    #[inline]
    fn block_and_probes(&self, hash: u64) -> Option<(&Block, u32)> {
        let blocks = self.blocks();
        let block = &blocks[probe::block_index(hash, blocks.len() as u32) as usize];
        self.answers.then_some((block, u32::from(self.meta.probes)))
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
        check_words(keys.len(), words).map(|()| self.look_up_keys::<K, HashBytes>(keys, words))
    }

    #[inline]
    fn contains_u64s_into(&self, keys: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        check_words(keys.len(), words).map(|()| self.look_up_keys::<u64, HashIntegers>(keys, words))
    }
}
