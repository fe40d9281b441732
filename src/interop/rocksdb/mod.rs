//! RocksDB's filters: the filter block, the filters inside an SST file, and a writer of filter blocks.
//!
//! RocksDB's FastLocalBloom (`format_version` 5 and later, RocksDB 6.6) has the law of this crate's own filters, so its blocks are
//! asked by the same kernels where they lie, at any alignment. What was written before, by LegacyBloom, is answered in scalar
//! code. Ribbon filters are recognised and answered "maybe".
//!
//! | | |
//! |---|---|
//! | [`FilterBlock`] | a borrowed filter block, asked about keys or hashes |
//! | [`SstFilter`] | the filter of an SST file, full or partitioned, found and verified |
//! | [`FilterBlockBuilder`] | collects keys and writes the block that RocksDB would write |
//! | [`key_hash`], [`legacy_hash`] | the hashes of RocksDB's keys |
//!
//! ```
//! use blocked_bloom::interop::rocksdb::{FilterBlock, FilterBlockBuilder};
//! let mut builder = FilterBlockBuilder::new(10.0)?;
//! builder.insert("apple");
//! let block = builder.finish()?;
//!
//! let filter = FilterBlock::from_bytes(&block)?;
//! assert!(filter.contains("apple"));
//! # Ok::<(), blocked_bloom::interop::rocksdb::RocksdbError>(())
//! ```
//!
//! `docs/rocksdb.md` has the guide. Source of the format: RocksDB 7.8 to 10, `table/block_based/filter_policy.cc`,
//! `util/bloom_impl.h`, `table/format.cc`, `table/block_based/partitioned_filter_block.cc`.

mod block;
mod builder;
mod error;
mod hash;
mod legacy;
mod sst;

pub use block::{FilterBlock, FilterKind};
pub use builder::FilterBlockBuilder;
pub use error::RocksdbError;
pub use hash::{key_hash, legacy_hash};
pub use sst::{ChecksumKind, FilterLayout, SstFilter};

use crate::hash::KeyHash;

/// The identity of [`key_hash`] in a [`BloomFilter`](crate::BloomFilter) of this crate, so that an engine can keep one hash for
/// both formats.
///
/// ```
/// use blocked_bloom::interop::rocksdb::{KEY_HASH, key_hash};
/// use blocked_bloom::{BloomFilter, Sizing};
/// let params = Sizing::BitsPerKey(10.0).params(1_000)?;
/// let mut filter = BloomFilter::with_params(params, KEY_HASH)?;
/// filter.insert_hash(key_hash(b"apple"));
/// assert!(filter.contains_hash(key_hash(b"apple")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub const KEY_HASH: KeyHash = KeyHash::Caller { tag: u64::from_be_bytes(*b"XXPH3_64") };

/// Bytes that end every filter block: how to read it.
const TRAILER_BYTES: usize = 5;
