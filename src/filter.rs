//! The filter, generic over the storage of its blocks, and the filter that threads share.

use core::fmt;

use crate::buffer::BlockBuffer;
use crate::hash::{KeyError, KeyHash, KeyHasher};
use crate::kernel::Kernel;
use crate::prefix::FilterContents;

// rustdoc's page shows the methods in the order of these modules.
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
pub use atomic::{AtomicBloomFilter, BloomFilterWriter};
pub use format::FormatError;
pub use make::BuildError;
pub use merge::MergeError;
pub use parts::{Blocks, BlocksMut};
pub use traits::Filter;

/// A blocked Bloom filter, generic over the storage of its blocks.
///
/// | type | storage of the blocks | created with |
/// |---|---|---|
/// | `BloomFilter` | its own memory; it accepts insertions and can be folded and merged | a [builder](crate::FilterOptions::builder), [`FilterOptions::empty_filter`](crate::FilterOptions::empty_filter), [`new`](Self::new) |
/// | `BloomFilter<Stored<B>>` | stored bytes in `B`: a mapped file, an `Arc<[u8]>`, a `Vec<u8>` | [`from_bytes`](BloomFilter::from_bytes), [`open_or_pass_all`](BloomFilter::open_or_pass_all) |
/// | `BloomFilter<&[Block]>` | borrowed from another filter; `Copy` | [`view`](Self::view), [`from_blocks`](BloomFilter::from_blocks), [`pass_all`](BloomFilter::pass_all) |
///
/// All of them have the same lookups. Stored bytes may have any alignment. If the filter starts at
/// a multiple of 64 in memory, each block is one cache line; otherwise it straddles two.
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
    /// Whether the filter can answer lookups: it holds whole keys, or it is a view for prefixes
    /// that it holds.
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
    /// Describes an empty filter of whole keys.
    fn new(key_hash: KeyHash, probes: u8, pass_all: bool) -> Self {
        let contents = FilterContents::WholeKeys;
        Meta { key_hash, keys_inserted: 0, probes, pass_all, contents }
    }

    /// Returns the hasher of the keys if keys can be inserted.
    pub(crate) fn hasher_to_insert(&self) -> Result<KeyHasher, KeyError> {
        self.key_hash.hasher().and_then(|hasher| self.contents.check_insert().map(|()| hasher))
    }
}

/// Compares hash, contents, probes, keys inserted and bits, but not the kernel or the storage. A
/// filter and its [`prefixes`](BloomFilter::prefixes) are different.
impl<D: Blocks, E: Blocks> PartialEq<BloomFilter<E>> for BloomFilter<D> {
    fn eq(&self, other: &BloomFilter<E>) -> bool {
        let facts = (self.meta, self.answers) == (other.meta, other.answers);
        facts && self.blocks() == other.blocks()
    }
}

impl<D: Blocks> Eq for BloomFilter<D> {}

/// Prints the shape, without the bits.
impl<D: Blocks> fmt::Debug for BloomFilter<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BloomFilter")
            .field("blocks", &self.blocks().len())
            .field("meta", &self.meta)
            .field("kernel", &self.kernel)
            .finish()
    }
}
