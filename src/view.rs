//! A borrowed filter: every query is written here once, and the owning types lend this view.
//!
//! This file owns the questions, and `view/statistics.rs` what the bits say of a filter. It refuses to change bits and names no instruction set.

mod statistics;

use crate::bitmask::{self, Bitmask};
use crate::error::{FormatError, LengthError};
use crate::hash::KeyHash;
use crate::kernel::{AHEAD, Ahead, Kernel, Place, Prefetch};
use crate::params::Params;
use crate::prefix::{Added, PrefixExtractor};
use crate::probe::{self, Block};

pub(crate) use statistics::{Fills, rate_at};

/// Everything about a filter except its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) key_hash: KeyHash,
    pub(crate) keys_inserted: u64,
    /// 1 to 30.
    pub(crate) probes: u8,
    pub(crate) pass_all: bool,
    pub(crate) added: Added,
}

/// Hashes of a batch of keys computed before a call of the kernel: a multiple of 64.
const AT_ONCE: usize = 192;

/// A filter borrowed from wherever its bytes are: a mapped file, a block cache, an owned [`BloomFilter`](crate::BloomFilter).
///
/// `Copy`, ten words. The bytes may have any alignment; if the filter starts at a multiple of 64 in memory, each block is one
/// cache line, else it straddles two. Every query of the crate is a method of this type.
///
/// ```
/// use blocked_bloom::{BloomFilterBuilder, BloomFilterRef, Sizing};
/// let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
/// builder.insert("apple");
/// let stored: Vec<u8> = builder.finish()?.to_bytes();
///
/// let filter = BloomFilterRef::from_bytes(&stored)?;
/// assert!(filter.contains("apple"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct BloomFilterRef<'a> {
    /// 1 to 2^32 - 1.
    blocks: &'a [Block],
    meta: Meta,
    kernel: Kernel,
    /// Whether what is asked about was added: keys, unless [`prefixes`](Self::prefixes) says otherwise.
    answers: bool,
}

/// One cache line.
#[repr(align(64))]
struct Aligned([Block; 1]);

/// The block of a pass-all filter.
static ONE_FULL_BLOCK: Aligned = Aligned([[0xff; 64]]);

impl BloomFilterRef<'static> {
    /// A filter that answers "maybe" to everything, without memory of its own: what stands in for a damaged filter.
    ///
    /// ```
    /// use blocked_bloom::{BloomFilterRef, KeyHash};
    /// let damaged = [0; 128];
    /// let filter = BloomFilterRef::from_bytes(&damaged).unwrap_or_else(|error| {
    ///     eprintln!("filter ignored: {error}");
    ///     BloomFilterRef::pass_all(KeyHash::default())
    /// });
    /// assert!(filter.contains("anything"));
    /// ```
    pub fn pass_all(key_hash: KeyHash) -> Self {
        let meta =
            Meta { key_hash, keys_inserted: 0, probes: 1, pass_all: true, added: Added::WholeKeys };
        BloomFilterRef::new(&ONE_FULL_BLOCK.0, meta, Kernel::default())
    }
}

impl<'a> BloomFilterRef<'a> {
    /// The callers have checked that there are 1 to 2^32 - 1 blocks and that `meta` is in range.
    pub(crate) fn new(blocks: &'a [Block], meta: Meta, kernel: Kernel) -> Self {
        BloomFilterRef { blocks, meta, kernel, answers: meta.added.whole_keys() }
    }

    /// The blocks and probes that answer: those of a pass-all filter if what is asked about was not added.
    #[inline]
    pub(crate) fn asked(&self) -> (&'a [Block], u32) {
        match self.answers {
            true => (self.blocks, u32::from(self.meta.probes)),
            false => (&ONE_FULL_BLOCK.0, 1),
        }
    }

    pub(crate) fn meta(&self) -> Meta {
        self.meta
    }

    /// Whether the key may be present: false means certainly absent.
    ///
    /// A filter of [`KeyHash::Caller`] cannot hash a key and answers true.
    ///
    /// Cost: one hash, one cache line.
    ///
    /// ```
    /// # let mut builder = blocked_bloom::BloomFilterBuilder::new(blocked_bloom::Sizing::BitsPerKey(10.0));
    /// # builder.insert("apple");
    /// # let filter = builder.finish()?;
    /// assert!(filter.view().contains("apple"));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        match self.meta.key_hash.hasher() {
            Some(hasher) => self.contains_hash(hasher.hash(key)),
            None => true,
        }
    }

    /// Whether the key with this hash may be present.
    ///
    /// The hash must be of the filter's [`key_hash`](Self::key_hash): asked with the hash of another seed, the filter answers
    /// "absent" for a key that is there. [`require_key_hash`](Self::require_key_hash) checks that once, when a filter is opened.
    ///
    /// Cost: one cache line.
    ///
    /// ```
    /// # let mut builder = blocked_bloom::BloomFilterBuilder::new(blocked_bloom::Sizing::BitsPerKey(10.0));
    /// # builder.insert("apple");
    /// # let filter = builder.finish()?;
    /// let hash = blocked_bloom::KeyHasher::default().hash("apple");
    /// assert!(filter.view().contains_hash(hash));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let index = probe::block_index(hash, self.blocks.len() as u32);
        let line = &self.blocks[index as usize];
        !self.answers || self.kernel.contains_one(line, u32::from(self.meta.probes), hash)
    }

    /// Asks about every key; `hits` then has one bit per key. Batches may have any length.
    ///
    /// A filter of [`KeyHash::Caller`] cannot hash keys and answers "maybe" to each.
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, BloomFilterBuilder, Sizing};
    /// # let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// # builder.insert("apple");
    /// # let filter = builder.finish()?;
    /// let mut hits = Bitmask::new();
    /// filter.view().contains_batch(&["apple", "banana"], &mut hits);
    /// assert_eq!(hits.get(0), Some(true));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], hits: &mut Bitmask) {
        hits.write(keys.len(), |words| self.keys(keys, words));
    }

    /// [`contains_batch`](Self::contains_batch) into words of the caller's: key `i` is bit `i % 64` of `words[i / 64]`, bits
    /// past the last key are zero.
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per 64 keys, rounded up; nothing is written then.
    ///
    /// ```
    /// # let filter = blocked_bloom::BloomFilter::pass_all(blocked_bloom::KeyHash::default())?;
    /// let mut words = [0];
    /// filter.view().contains_batch_into(&["apple", "banana"], &mut words)?;
    /// assert_eq!(words, [0b11]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch_into<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        check_length(keys.len(), words)?;
        self.keys(keys, words);
        Ok(())
    }

    /// Asks about every hash; `hits` then has one bit per hash. Batches may have any length.
    ///
    /// The hashes must be of the filter's [`key_hash`](Self::key_hash): asked with hashes of another seed, the filter answers
    /// "absent" for keys that are there. [`require_key_hash`](Self::require_key_hash) checks that once, when a filter is opened.
    ///
    /// Cost: about one cache line per hash; one indirect call per batch. Hash a batch once and ask many filters.
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, BloomFilterBuilder, KeyHasher, Sizing};
    /// # let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// # builder.insert("apple");
    /// # let filter = builder.finish()?;
    /// let hasher = KeyHasher::default();
    /// let mut hits = Bitmask::new();
    /// filter.view().contains_hashes(&[hasher.hash("apple"), hasher.hash("banana")], &mut hits);
    /// assert_eq!(hits.get(0), Some(true));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    pub fn contains_hashes(&self, hashes: &[u64], hits: &mut Bitmask) {
        self.hashes(hashes, hits.reset(hashes.len()));
    }

    /// [`contains_hashes`](Self::contains_hashes) into words of the caller's, as
    /// [`contains_batch_into`](Self::contains_batch_into).
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per 64 hashes, rounded up; nothing is written then.
    ///
    /// ```
    /// # let filter = blocked_bloom::BloomFilter::pass_all(blocked_bloom::KeyHash::default())?;
    /// let mut words = [0; 2];
    /// filter.view().contains_hashes_into(&[0; 65], &mut words)?;
    /// assert_eq!(words, [u64::MAX, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_hashes_into(
        &self,
        hashes: &[u64],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        check_length(hashes.len(), words)?;
        self.hashes(hashes, words);
        Ok(())
    }

    /// The callers have checked that there is one word per 64 hashes, here and in [`keys_by`](Self::keys_by).
    #[inline]
    pub(crate) fn hashes(&self, hashes: &[u64], words: &mut [u64]) {
        let (blocks, _) = self.asked();
        let prefetch = self.kernel.prefetch(blocks);
        self.ask(Ahead::start(prefetch, blocks, hashes), hashes, words);
    }

    #[inline]
    fn ask(&self, ahead: Ahead<'_>, hashes: &[u64], words: &mut [u64]) {
        let (blocks, probes) = self.asked();
        self.kernel.contains(blocks, ahead, probes, hashes, words);
    }

    fn keys<K: AsRef<[u8]>>(&self, keys: &[K], words: &mut [u64]) {
        match self.meta.key_hash.hasher() {
            None => bitmask::fill_with_hits(words, keys.len()),
            Some(hasher) => {
                self.keys_by(|keys, hashes| hasher.hash_into(keys, hashes), keys, words);
            }
        }
    }

    /// Asks about keys by a hash of the caller's: `hash_into` writes the hash of each key to the start of the hashes.
    #[inline]
    pub(crate) fn keys_by<K>(
        &self,
        hash_into: impl Fn(&[K], &mut [u64]),
        keys: &[K],
        words: &mut [u64],
    ) {
        let (blocks, _) = self.asked();
        let prefetch = self.kernel.prefetch(blocks);
        ask_many_keys(prefetch, blocks, keys, words, hash_into, |ahead, hashes, words| {
            self.ask(ahead, hashes, words);
        });
    }

    /// Whether a key that starts with `start` may be present: false means that a scan of them finds nothing.
    ///
    /// The question is about the prefix that all those keys have by the rule. If they need not share one, if the filter's prefixes
    /// were cut by another rule, or if it has none, the answer is true; also where the caller hashes, as with
    /// [`contains`](Self::contains).
    ///
    /// Cost: one hash, one cache line.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, PrefixExtractor, Sizing};
    /// let tenant = PrefixExtractor::fixed(4);
    /// let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0)).prefixes(tenant.clone());
    /// builder.insert("ab12/apple");
    /// let filter = builder.finish()?;
    /// assert!(filter.view().contains_prefix(&tenant, "ab12/a"));
    /// assert!(!filter.view().contains_prefix(&tenant, "cd34/"));
    /// // Another rule, and a scan over more than one prefix: the filter does not know.
    /// assert!(filter.view().contains_prefix(&PrefixExtractor::fixed(2), "cd34/"));
    /// assert!(filter.view().contains_prefix(&tenant, "cd"));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    pub fn contains_prefix(&self, extractor: &PrefixExtractor, start: impl AsRef<[u8]>) -> bool {
        match extractor.scan_prefix(start.as_ref()) {
            Some(prefix) => self.prefixes(extractor).contains(prefix),
            None => true,
        }
    }

    /// [`contains_prefix`](Self::contains_prefix) for a batch; `hits` then has one bit per start. Batches may have any length.
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, BloomFilterBuilder, PrefixExtractor, Sizing};
    /// let tenant = PrefixExtractor::fixed(4);
    /// let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0)).prefixes(tenant.clone());
    /// builder.insert("ab12/apple");
    /// let filter = builder.finish()?;
    /// let mut hits = Bitmask::new();
    /// filter.view().contains_prefix_batch(&tenant, &["ab12/a", "cd34/", "cd"], &mut hits);
    /// assert!(hits.hits().eq([0, 2]));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    pub fn contains_prefix_batch<K: AsRef<[u8]>>(
        &self,
        extractor: &PrefixExtractor,
        starts: &[K],
        hits: &mut Bitmask,
    ) {
        let asked = self.prefixes(extractor);
        hits.write(starts.len(), |words| {
            for (starts, word) in starts.chunks(64).zip(words) {
                let mut prefixes: [&[u8]; 64] = [&[]; 64];
                let mut unknown = 0;
                for (i, start) in starts.iter().enumerate() {
                    match extractor.scan_prefix(start.as_ref()) {
                        Some(prefix) => prefixes[i] = prefix,
                        None => unknown |= 1 << i,
                    }
                }
                asked.keys(&prefixes[..starts.len()], core::slice::from_mut(word));
                *word |= unknown;
            }
        });
    }

    /// The same filter, to be asked about prefixes instead of keys: every query of this type is then one about prefixes, in batches
    /// and by hash too. If the filter has none by this rule, each is answered "maybe".
    ///
    /// What is asked about must be whole prefixes, as [`PrefixExtractor::scan_prefix`] gives them: anything else is a prefix that was
    /// not added, and mostly answered "absent". [`contains_prefix_batch`](Self::contains_prefix_batch) cuts them itself; this view is for
    /// those that hash a prefix once for many filters.
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, BloomFilterBuilder, PrefixExtractor, Sizing};
    /// let tenant = PrefixExtractor::fixed(4);
    /// let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0)).only_prefixes(tenant.clone());
    /// builder.insert("ab12/apple");
    /// let filter = builder.finish()?;
    /// let mut hits = Bitmask::new();
    /// filter.view().prefixes(&tenant).contains_batch(&["ab12", "cd34"], &mut hits);
    /// assert!(hits.hits().eq([0]));
    /// // Keys were not added: maybe.
    /// assert!(filter.view().contains("cd34/banana"));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn prefixes(self, extractor: &PrefixExtractor) -> Self {
        let answers = self.meta.added.extractor() == Some(extractor.id());
        BloomFilterRef { answers, ..self }
    }

    /// What was added: keys, prefixes of keys, or both.
    ///
    /// ```
    /// # let filter = blocked_bloom::BloomFilter::pass_all(blocked_bloom::KeyHash::default())?;
    /// assert_eq!(filter.view().added(), blocked_bloom::Added::WholeKeys);
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    pub fn added(&self) -> Added {
        self.meta.added
    }

    /// The blocks, 1 to 2^32 - 1.
    ///
    /// ```
    /// # let filter = blocked_bloom::BloomFilter::pass_all(blocked_bloom::KeyHash::default())?;
    /// assert_eq!(filter.view().blocks(), [[0xff; 64]]);
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    pub fn blocks(&self) -> &'a [Block] {
        self.blocks
    }

    /// Blocks, probes and predicted rate, with the keys inserted as the expected items.
    ///
    /// ```
    /// # let filter = blocked_bloom::BloomFilterBuilder::new(blocked_bloom::Sizing::BitsPerKey(10.0)).finish()?;
    /// assert_eq!(filter.view().params().blocks(), 1);
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    pub fn params(&self) -> Params {
        let Meta { keys_inserted, probes, pass_all, .. } = self.meta;
        Params::of_filter(keys_inserted, self.blocks.len() as u32, u32::from(probes), pass_all)
    }

    /// The hash and seed the filter was built with.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilter, KeyHash};
    /// let filter = BloomFilter::pass_all(KeyHash::Xxh3 { seed: 3 })?;
    /// assert_eq!(filter.view().key_hash(), KeyHash::Xxh3 { seed: 3 });
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    pub fn key_hash(&self) -> KeyHash {
        self.meta.key_hash
    }

    /// The same filter if it was built with this hash and seed.
    ///
    /// Call it once where a filter is opened that will be asked about hashes: a hash of another seed would be answered "absent"
    /// for a key that is there.
    ///
    /// # Errors
    ///
    /// [`FormatError::HashMismatch`] naming both.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, BloomFilterRef, KeyHash, Sizing};
    /// let stored = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0)).finish()?.to_bytes();
    /// let filter = BloomFilterRef::from_bytes(&stored)?.require_key_hash(KeyHash::default())?;
    /// assert!(filter.require_key_hash(KeyHash::Xxh3 { seed: 1 }).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn require_key_hash(self, expected: KeyHash) -> Result<Self, FormatError> {
        match self.key_hash() {
            found if found == expected => Ok(self),
            found => Err(FormatError::HashMismatch { found, expected }),
        }
    }

    /// Additions so far, saturating. Not distinct keys: see [`estimated_keys`](Self::estimated_keys).
    ///
    /// ```
    /// # let filter = blocked_bloom::BloomFilterBuilder::new(blocked_bloom::Sizing::BitsPerKey(10.0)).finish()?;
    /// assert_eq!(filter.view().keys_inserted(), 0);
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    pub fn keys_inserted(&self) -> u64 {
        self.meta.keys_inserted
    }

    /// Whether the filter answers "maybe" to everything.
    ///
    /// ```
    /// # let filter = blocked_bloom::BloomFilter::pass_all(blocked_bloom::KeyHash::default())?;
    /// assert!(filter.view().is_pass_all());
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    pub fn is_pass_all(&self) -> bool {
        self.meta.pass_all
    }

    /// Whether every key is certainly absent: keys were added, and no bit is set. Cost: reads blocks up to the first bit.
    ///
    /// A filter of prefixes alone is never empty: it says "maybe" about every key.
    ///
    /// ```
    /// # let filter = blocked_bloom::BloomFilterBuilder::new(blocked_bloom::Sizing::BitsPerKey(10.0)).finish()?;
    /// assert!(filter.view().is_empty());
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.meta.added.whole_keys() && self.has_no_bit()
    }

    pub(crate) fn has_no_bit(&self) -> bool {
        self.blocks.iter().all(|block| block.iter().all(|&byte| byte == 0))
    }

    /// The kernel that answers batches.
    ///
    /// ```
    /// # let filter = blocked_bloom::BloomFilter::pass_all(blocked_bloom::KeyHash::default())?;
    /// assert_eq!(filter.view().kernel(), blocked_bloom::Kernel::default());
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The same filter, with batches answered by `kernel`.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilter, Kernel, KeyHash};
    /// # let filter = BloomFilter::pass_all(KeyHash::default())?;
    /// let scalar = Kernel::supported().last().unwrap();
    /// assert_eq!(filter.view().with_kernel(scalar).kernel().name(), "scalar");
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        BloomFilterRef { kernel, ..self }
    }
}

/// Answers for keys by `ask`, which answers for hashes, and `hash`, which writes the hashes of keys.
///
/// Keys are hashed into a small buffer, in which the next to be tested are followed by those whose lines are under way: while keys
/// are hashed, memory works.
pub(crate) fn ask_many_keys<K, B: Place>(
    prefetch: Prefetch,
    blocks: &[B],
    keys: &[K],
    words: &mut [u64],
    hash: impl Fn(&[K], &mut [u64]),
    ask: impl Fn(Ahead<'_, B>, &[u64], &mut [u64]),
) {
    if keys.len() <= 64 {
        let hashes = &mut [0; 64][..keys.len()];
        hash(keys, hashes);
        return ask(Ahead::start(prefetch, blocks, hashes), hashes, words);
    }
    let mut buffer = [0; AHEAD + AT_ONCE];
    let (first, mut keys) = keys.split_at(AHEAD.min(keys.len()));
    hash(first, &mut buffer);
    prefetch.request(blocks, &buffer[..first.len()]);
    let mut hashed = first.len();
    for words in words.chunks_mut(AT_ONCE / 64) {
        let (next, rest) = keys.split_at((buffer.len() - hashed).min(keys.len()));
        hash(next, &mut buffer[hashed..]);
        hashed += next.len();
        keys = rest;
        let tested = AT_ONCE.min(hashed);
        let later = &buffer[AHEAD.min(hashed)..hashed];
        ask(Ahead { prefetch, later, blocks }, &buffer[..tested], words);
        buffer.copy_within(tested..hashed, 0);
        hashed -= tested;
    }
}

pub(crate) fn check_length(keys: usize, words: &[u64]) -> Result<(), LengthError> {
    let expected = keys.div_ceil(64);
    if words.len() == expected { Ok(()) } else { Err(LengthError { words: words.len(), expected }) }
}

/// Same hash, probes, keys inserted and bits; the kernel does not matter.
impl PartialEq for BloomFilterRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.meta == other.meta && self.blocks == other.blocks
    }
}

impl Eq for BloomFilterRef<'_> {}

/// The shape, without the bits.
impl core::fmt::Debug for BloomFilterRef<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BloomFilterRef")
            .field("blocks", &self.blocks.len())
            .field("meta", &self.meta)
            .field("kernel", &self.kernel)
            .finish()
    }
}
