//! One filter, wherever its blocks are: looked up, stored, folded and merged; and one that threads share.

use core::fmt;

use crate::buffer::BlockBuffer;
use crate::hash::{KeyError, KeyHash, KeyHasher};
use crate::kernel::Kernel;
use crate::params::Params;
use crate::prefix::FilterContents;
use crate::probe::Block;

// Declared first, so that rustdoc begins with the constructors.
mod owned;

#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
mod atomic;
mod compact;
mod fold;
mod format;
mod in_place;
mod lookup;
mod merge;
mod statistics;
mod traits;

#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
pub use atomic::AtomicBloomFilter;
pub use fold::FoldError;
pub use format::FormatError;
pub use merge::MergeError;
pub use owned::BuildError;
pub use traits::Filter;

/// A blocked Bloom filter, generic over where its blocks are.
///
/// | type | where the blocks are | made by |
/// |---|---|---|
/// | `BloomFilter` | in memory of its own; it can be added to, folded, merged | a [builder](crate::FilterOptions::builder), [`FilterOptions::empty_filter`](crate::FilterOptions::empty_filter), [`new`](Self::new) |
/// | `BloomFilter<Stored<B>>` | in stored bytes that `B` holds: a mapped file, an `Arc<[u8]>`, a `Vec<u8>` | [`from_bytes`](BloomFilter::from_bytes), [`open_or_pass_all`](BloomFilter::open_or_pass_all) |
/// | `BloomFilter<&[Block]>` | borrowed from another filter, `Copy` | [`view`](Self::view), [`from_blocks`](BloomFilter::from_blocks), [`pass_all`](BloomFilter::pass_all) |
///
/// All are looked up alike. Stored bytes may have any alignment; if the filter starts at a multiple of 64 in memory, each block is one cache
/// line, else it straddles two.
///
/// ```
/// use blocked_bloom::{BloomFilter, FilterOptions, Sizing};
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
/// let mut filter = options.empty_filter(1_000)?;
/// assert!(filter.insert("apple")?); // certainly new
/// assert!(filter.contains("apple"));
///
/// let opened = BloomFilter::from_bytes(filter.to_bytes())?;
/// assert!(opened.contains("apple") && opened == filter);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct BloomFilter<D = BlockBuffer> {
    /// 1 to 2^32 - 1 blocks.
    data: D,
    pub(crate) meta: Meta,
    kernel: Kernel,
    /// Whether the filter holds what is looked up: keys, unless [`prefixes`](Self::prefixes) says otherwise.
    answers: bool,
}

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

impl Meta {
    /// Of whole keys, none of which was counted.
    fn new(key_hash: KeyHash, probes: u8, pass_all: bool) -> Self {
        let contents = FilterContents::WholeKeys;
        Meta { key_hash, keys_inserted: 0, probes, pass_all, contents }
    }

    /// Whether hashes can be added: those of keys whose prefixes are not known cannot, to a filter that holds prefixes.
    #[inline]
    pub(crate) fn check_insert(&self) -> Result<(), KeyError> {
        match self.contents {
            FilterContents::WholeKeys => Ok(()),
            contents => Err(KeyError::NoPrefix { contents }),
        }
    }

    /// The hasher of the keys, if keys can be added.
    pub(crate) fn hasher_to_insert(&self) -> Result<KeyHasher, KeyError> {
        let hasher = self.key_hash.hasher()?;
        self.check_insert().map(|()| hasher)
    }
}

impl<D> BloomFilter<D> {
    /// The callers have checked that there are 1 to 2^32 - 1 blocks and that `meta` is in range.
    #[inline]
    fn of(data: D, meta: Meta, kernel: Kernel) -> Self {
        BloomFilter { data, meta, kernel, answers: meta.contents.whole_keys() }
    }
}

impl<D: AsRef<[Block]>> BloomFilter<D> {
    /// The same filter, borrowed. Free.
    #[inline]
    pub fn view(&self) -> BloomFilter<&[Block]> {
        BloomFilter {
            data: self.blocks(),
            meta: self.meta,
            kernel: self.kernel,
            answers: self.answers,
        }
    }

    /// The blocks, 1 to 2^32 - 1. Cost: none.
    #[inline]
    pub fn blocks(&self) -> &[Block] {
        self.data.as_ref()
    }

    /// Blocks, probes and predicted rate, with the keys inserted as the expected items.
    pub fn params(&self) -> Params {
        let Meta { keys_inserted, probes, pass_all, .. } = self.meta;
        Params::of_filter(keys_inserted, self.blocks().len() as u32, u32::from(probes), pass_all)
    }

    /// Bytes of the blocks.
    pub fn memory_bytes(&self) -> u64 {
        size_of_val(self.blocks()) as u64
    }

    /// Whether everything that is looked up is certainly absent: the filter holds it, and no bit is set. Cost: reads blocks up to the first bit.
    ///
    /// A filter of prefixes alone is never empty: it says "maybe" about every key.
    pub fn is_empty(&self) -> bool {
        self.answers && self.blocks().as_flattened().iter().all(|&byte| byte == 0)
    }
}

impl<D> BloomFilter<D> {
    /// The hash and seed the filter was built with.
    #[inline]
    pub fn key_hash(&self) -> KeyHash {
        self.meta.key_hash
    }

    /// Additions so far, keys and prefixes, saturating. Not distinct keys: see [`estimated_keys`](Self::estimated_keys).
    pub fn keys_inserted(&self) -> u64 {
        self.meta.keys_inserted
    }

    /// What the filter holds: keys, prefixes of keys, or both.
    pub fn contents(&self) -> FilterContents {
        self.meta.contents
    }

    /// Whether the filter answers "maybe" to everything.
    pub fn is_pass_all(&self) -> bool {
        self.meta.pass_all
    }

    /// The kernel that answers batches.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The same filter, with batches answered by `kernel`.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        BloomFilter { kernel, ..self }
    }
}

/// Same hash, contents, probes, keys inserted, bits, and answers: a filter is not its [`prefixes`](BloomFilter::prefixes). Neither the
/// kernel nor where the bytes are matters.
impl<D: AsRef<[Block]>, E: AsRef<[Block]>> PartialEq<BloomFilter<E>> for BloomFilter<D> {
    fn eq(&self, other: &BloomFilter<E>) -> bool {
        let facts = (self.meta, self.answers) == (other.meta, other.answers);
        facts && self.blocks() == other.blocks()
    }
}

impl<D: AsRef<[Block]>> Eq for BloomFilter<D> {}

/// The shape, without the bits.
impl<D: AsRef<[Block]>> fmt::Debug for BloomFilter<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BloomFilter")
            .field("blocks", &self.blocks().len())
            .field("meta", &self.meta)
            .field("kernel", &self.kernel)
            .finish()
    }
}
