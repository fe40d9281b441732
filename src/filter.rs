//! One filter, wherever its blocks are: looked up, stored, folded, merged; one that threads share.

use core::fmt;

use crate::buffer::BlockBuffer;
use crate::hash::{KeyError, KeyHash, KeyHasher};
use crate::kernel::Kernel;
use crate::prefix::FilterContents;

// In the order in which a reader needs them, which is that of rustdoc's page.
mod make;

mod insert;

mod lookup;

mod lookup_in_bytes;

mod format;

mod compact;

mod facts;

mod merge;

mod fold;

mod parts;

#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
mod atomic;
mod traits;

#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
pub use atomic::AtomicBloomFilter;
pub use format::FormatError;
pub use make::BuildError;
pub use merge::MergeError;
pub use parts::{Blocks, BlocksMut};
pub use traits::Filter;

/// A blocked Bloom filter, generic over where its blocks are.
///
/// | type | where the blocks are | made by |
/// |---|---|---|
/// | `BloomFilter` | in memory of its own; it can be added to, folded, merged | a [builder](crate::FilterOptions::builder), [`FilterOptions::empty_filter`](crate::FilterOptions::empty_filter), [`new`](Self::new) |
/// | `BloomFilter<Stored<B>>` | in stored bytes that `B` holds: a mapped file, an `Arc<[u8]>`, a `Vec<u8>` | [`from_bytes`](BloomFilter::from_bytes), [`open_or_pass_all`](BloomFilter::open_or_pass_all) |
/// | `BloomFilter<&[Block]>` | borrowed from another filter, `Copy` | [`view`](Self::view), [`from_blocks`](BloomFilter::from_blocks), [`pass_all`](BloomFilter::pass_all) |
///
/// All are looked up alike. Stored bytes may have any alignment; if the filter starts at a multiple
/// of 64 in memory, each block is one cache line, else it straddles two.
///
/// ```
/// use blocked_bloom::{BloomFilter, FilterOptions, Sizing};
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
/// let mut filter = options.empty_filter(1_000)?;
/// assert!(filter.insert("apple")?); // certainly new
/// assert!(filter.contains("apple"));
///
/// let opened = BloomFilter::from_bytes(filter.to_bytes(), options.key_hash())?;
/// assert!(opened.contains("apple") && opened == filter);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct BloomFilter<D = BlockBuffer> {
    /// 1 to 2^32 - 1 blocks.
    data: D,
    pub(crate) meta: Meta,
    kernel: Kernel,
    /// Whether it holds what is looked up: keys, or prefixes in a view by `prefixes`.
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

    /// The hasher of the keys, if keys can be added.
    pub(crate) fn hasher_to_insert(&self) -> Result<KeyHasher, KeyError> {
        let hasher = self.key_hash.hasher()?;
        self.contents.check_insert().map(|()| hasher)
    }
}

/// Same hash, contents, probes, keys inserted, bits, and answers: a filter is not its
/// [`prefixes`](BloomFilter::prefixes). Neither the kernel nor where the bytes are matters.
impl<D: Blocks, E: Blocks> PartialEq<BloomFilter<E>> for BloomFilter<D> {
    fn eq(&self, other: &BloomFilter<E>) -> bool {
        let facts = (self.meta, self.answers) == (other.meta, other.answers);
        facts && self.blocks() == other.blocks()
    }
}

impl<D: Blocks> Eq for BloomFilter<D> {}

/// The shape, without the bits.
impl<D: Blocks> fmt::Debug for BloomFilter<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BloomFilter")
            .field("blocks", &self.blocks().len())
            .field("meta", &self.meta)
            .field("kernel", &self.kernel)
            .finish()
    }
}
