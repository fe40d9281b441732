//! A borrowed filter: every query is written here once, and the owning types lend this view.

use crate::bitmask::{self, Bitmask, check_length};
use crate::error::{FormatError, KeyError, LengthError, ParamsError};
use crate::hash::{KeyHash, KeyHasher};
use crate::kernel::{Kernel, prefetch_block};
use crate::params::Params;
use crate::prefix::{FilterContents, PrefixExtractor};
use crate::probe::{self, Block, MAX_PROBES};
use crate::query::BatchQuery;

/// Everything about a filter except its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) key_hash: KeyHash,
    pub(crate) keys_inserted: u64,
    /// 1 to 30.
    pub(crate) probes: u8,
    pub(crate) pass_all: bool,
    pub(crate) contents: FilterContents,
}

/// A filter borrowed from wherever its bytes are: a mapped file, a block cache, an owned [`BloomFilter`](crate::BloomFilter).
///
/// `Copy`, ten words. The bytes may have any alignment; if the filter starts at a multiple of 64 in memory, each block is one
/// cache line, else it straddles two. Batches are looked up by the methods of [`BatchQuery`].
///
/// ```
/// use blocked_bloom::{BloomFilterRef, FilterOptions, Sizing};
/// let mut builder = FilterOptions::new(Sizing::BitsPerKey(10.0)).builder();
/// builder.insert("apple")?;
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
    /// Whether the filter holds what is looked up: keys, unless [`prefixes`](Self::prefixes) says otherwise.
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
        let contents = FilterContents::WholeKeys;
        let meta = Meta { key_hash, keys_inserted: 0, probes: 1, pass_all: true, contents };
        BloomFilterRef::new(&ONE_FULL_BLOCK.0, meta, Kernel::default())
    }
}

impl<'a> BloomFilterRef<'a> {
    /// The callers have checked that there are 1 to 2^32 - 1 blocks and that `meta` is in range.
    #[inline]
    pub(crate) fn new(blocks: &'a [Block], meta: Meta, kernel: Kernel) -> Self {
        BloomFilterRef { blocks, meta, kernel, answers: meta.contents.whole_keys() }
    }

    /// A filter of these blocks and probes, of hashes of `key_hash`, whose keys were not counted: for containers of other systems
    /// with the same probe scheme.
    ///
    /// # Errors
    ///
    /// [`ParamsError::BlocksOutOfRange`] unless there are 1 to 2^32 - 1 blocks, [`ParamsError::ProbesOutOfRange`] unless 1 to 30.
    pub fn from_blocks(
        blocks: &'a [Block],
        probes: u32,
        key_hash: KeyHash,
    ) -> Result<Self, ParamsError> {
        if blocks.is_empty() || u32::try_from(blocks.len()).is_err() {
            return Err(ParamsError::BlocksOutOfRange { blocks: blocks.len() as u64 });
        }
        if !(1..=MAX_PROBES).contains(&probes) {
            return Err(ParamsError::ProbesOutOfRange { probes });
        }
        let contents = FilterContents::WholeKeys;
        let meta =
            Meta { key_hash, keys_inserted: 0, probes: probes as u8, pass_all: false, contents };
        Ok(BloomFilterRef::new(blocks, meta, Kernel::default()))
    }

    /// The blocks and probes that answer: those of a pass-all filter if the filter does not hold what is looked up.
    #[inline]
    pub(crate) fn effective(&self) -> (&'a [Block], u32) {
        match self.answers {
            true => (self.blocks, u32::from(self.meta.probes)),
            false => (&ONE_FULL_BLOCK.0, 1),
        }
    }

    #[inline]
    pub(crate) fn meta(&self) -> Meta {
        self.meta
    }

    /// Whether the key may be present: false means certainly absent.
    ///
    /// A filter of [`KeyHash::Caller`] cannot hash a key and answers true.
    ///
    /// Cost: one hash, one cache line.
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        match self.hasher() {
            Ok(hasher) => self.contains_hash(hasher.hash(key)),
            Err(_) => true,
        }
    }

    /// Whether the key with this hash may be present.
    ///
    /// The hash must be of the filter's [`hasher`](Self::hasher): with the hash of another seed, the filter answers "absent" for
    /// a key that is there. [`require_key_hash`](Self::require_key_hash) checks that once, when a filter is opened.
    ///
    /// Cost: one cache line.
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let index = probe::block_index(hash, self.blocks.len() as u32);
        let line = &self.blocks[index as usize];
        !self.answers || self.kernel.contains_one(line, u32::from(self.meta.probes), hash)
    }

    /// Prefetches the cache line that [`contains_hash`](Self::contains_hash) reads for this hash. Allocates nothing and keeps no borrow.
    ///
    /// The way to look up one key in many tables: hash it once, prefetch in all of them, then test them, the newest first. The lines
    /// come from memory at the same time instead of one after the other (`cargo bench --bench engine`). A filter that is in the cache
    /// gains nothing. Where all filters can be borrowed together, a [`FilterSet`](crate::FilterSet) is faster still.
    ///
    /// ```
    /// use blocked_bloom::{FilterOptions, Sizing};
    /// let options = FilterOptions::new(Sizing::BitsPerKey(16.0));
    /// let mut tables = Vec::new();
    /// for keys in [["apple", "banana"], ["cherry", "damson"]] {
    ///     let mut builder = options.builder();
    ///     builder.extend(keys)?;
    ///     tables.push(builder.finish()?);
    /// }
    /// let hash = options.hasher()?.hash("cherry");
    /// tables.iter().for_each(|table| table.prefetch_hash(hash));
    /// let may_have_it = tables.iter().rev().position(|table| table.contains_hash(hash));
    /// assert_eq!(may_have_it, Some(0)); // the newest
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn prefetch_hash(&self, hash: u64) {
        prefetch_block(self.blocks, hash);
    }

    /// Whether a key that starts with `start` may be present: false means that a scan of them finds nothing.
    ///
    /// Looks up the prefix that all those keys have by the rule. If they need not share one, if the filter's prefixes were cut by
    /// another rule, or if it holds none, the answer is true; also where the caller hashes, as with [`contains`](Self::contains).
    ///
    /// Cost: one hash, one cache line.
    pub fn contains_prefix(&self, extractor: &PrefixExtractor, start: impl AsRef<[u8]>) -> bool {
        match extractor.scan_prefix(start.as_ref()) {
            Some(prefix) => self.prefixes(extractor).contains(prefix),
            None => true,
        }
    }

    /// [`contains_prefix`](Self::contains_prefix) for a batch; `hits` then has one bit per start. Batches may have any length.
    pub fn contains_prefix_batch<K: AsRef<[u8]>>(
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
                match extractor.scan_prefix(start.as_ref()) {
                    Some(prefix) => prefixes[i] = prefix,
                    None => unknown |= 1 << i,
                }
            }
            // There is one word.
            _ = filter.contains_batch_into(&prefixes[..starts.len()], core::slice::from_mut(word));
            *word |= unknown;
        }
    }

    /// The same filter, for looking up prefixes instead of keys: every query of this view is then for prefixes, in batches and by hash
    /// too. If the filter holds none by this rule, each is answered "maybe".
    ///
    /// Give it whole prefixes, as [`PrefixExtractor::scan_prefix`] cuts them: anything else is a prefix that was not added, and mostly
    /// answered "absent". [`contains_prefix_batch`](Self::contains_prefix_batch) cuts them itself; this view is for those that hash a
    /// prefix once for many filters.
    #[must_use]
    pub fn prefixes(self, extractor: &PrefixExtractor) -> Self {
        let answers = self.meta.contents.extractor() == Some(extractor.id());
        BloomFilterRef { answers, ..self }
    }

    /// What the filter holds: keys, prefixes of keys, or both.
    pub fn contents(&self) -> FilterContents {
        self.meta.contents
    }

    /// The blocks, 1 to 2^32 - 1.
    pub fn blocks(&self) -> &'a [Block] {
        self.blocks
    }

    /// Blocks, probes and predicted rate, with the keys inserted as the expected items.
    pub fn params(&self) -> Params {
        let Meta { keys_inserted, probes, pass_all, .. } = self.meta;
        Params::of_filter(keys_inserted, self.blocks.len() as u32, u32::from(probes), pass_all)
    }

    /// The hash and seed the filter was built with.
    pub fn key_hash(&self) -> KeyHash {
        self.meta.key_hash
    }

    /// The hasher of the filter's keys.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the caller hashes.
    #[inline]
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.meta.key_hash.hasher()
    }

    /// The same filter if it was built with this hash and seed.
    ///
    /// Call it once where a filter is opened that will be looked up by hash: a hash of another seed would be answered "absent" for
    /// a key that is there.
    ///
    /// # Errors
    ///
    /// [`FormatError::HashMismatch`] naming both.
    pub fn require_key_hash(self, expected: KeyHash) -> Result<Self, FormatError> {
        match self.key_hash() {
            found if found == expected => Ok(self),
            found => Err(FormatError::HashMismatch { found, expected }),
        }
    }

    /// Additions so far, keys and prefixes, saturating. Not distinct keys: see [`estimated_keys`](Self::estimated_keys).
    pub fn keys_inserted(&self) -> u64 {
        self.meta.keys_inserted
    }

    /// Whether the filter answers "maybe" to everything.
    pub fn is_pass_all(&self) -> bool {
        self.meta.pass_all
    }

    /// Whether every key is certainly absent: the filter holds keys, and no bit is set. Cost: reads blocks up to the first bit.
    ///
    /// A filter of prefixes alone is never empty: it says "maybe" about every key.
    pub fn is_empty(&self) -> bool {
        self.meta.contents.whole_keys() && self.has_no_bit()
    }

    pub(crate) fn has_no_bit(&self) -> bool {
        self.blocks.iter().all(|block| block.iter().all(|&byte| byte == 0))
    }

    /// The kernel that answers batches.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The same filter, with batches answered by `kernel`.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        BloomFilterRef { kernel, ..self }
    }
}

impl BatchQuery for BloomFilterRef<'_> {
    /// Cost: about one cache line per hash; one indirect call per batch.
    #[inline]
    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        check_length(hashes.len(), words)?;
        let (blocks, probes) = self.effective();
        self.kernel.look_up(blocks, probes, hashes, words);
        Ok(())
    }

    #[inline]
    fn hash_keys<K: AsRef<[u8]>>(&self, keys: &[K], hashes: &mut [u64]) -> Result<(), KeyError> {
        self.hasher()?.hash_by(self.kernel, keys, hashes);
        Ok(())
    }

    #[inline]
    fn hash_u64s(&self, keys: &[u64], hashes: &mut [u64]) -> Result<(), KeyError> {
        self.hasher()?.hash_integers(self.kernel, keys, hashes);
        Ok(())
    }
}

/// A view of a view, so that lists of either serve where filters are taken.
impl<'a> From<&BloomFilterRef<'a>> for BloomFilterRef<'a> {
    fn from(filter: &BloomFilterRef<'a>) -> Self {
        *filter
    }
}

/// Same hash, contents, probes, keys inserted and bits; the kernel does not matter.
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
