//! RocksDB's filters: the filter block, the filters inside an SST file, and a writer of filter
//! blocks.
//!
//! RocksDB's FastLocalBloom (`format_version` 5 and later, RocksDB 6.6) uses the core's probe
//! scheme, so the core's kernels look up its blocks in place, at any alignment. The older
//! LegacyBloom is looked up with scalar code, and Ribbon (RocksDB 6.15 and later) with the kernels
//! of `blocked-bloom-ribbon`.
//!
//! | | |
//! |---|---|
//! | [`FilterBlock`] | a filter block, looked up in place by keys or hashes |
//! | [`SstFilter`] | the filter of an SST file, full or partitioned, located and verified |
//! | [`FilterBlockBuilder`] | collects keys and writes the block that RocksDB would write |
//! | [`RibbonBlockBuilder`] | the same for `NewRibbonFilterPolicy` |
//! | [`hash_key`], [`legacy_hash_key`] | the hashes of RocksDB's keys |
//!
//! ```
//! use blocked_bloom::Filter;
//! use blocked_bloom_formats::rocksdb::{FilterBlock, FilterBlockBuilder};
//! let mut builder = FilterBlockBuilder::new(10.0)?;
//! builder.insert("apple");
//! let block = builder.finish()?;
//!
//! let filter = FilterBlock::from_bytes(&block)?;
//! assert!(filter.contains("apple"));
//! # Ok::<(), blocked_bloom_formats::rocksdb::RocksdbError>(())
//! ```
//!
//! `docs/rocksdb.md` has the guide. Source of the format: RocksDB 7.8 to 10,
//! `table/block_based/filter_policy.cc`, `util/bloom_impl.h`, `table/format.cc`,
//! `table/block_based/partitioned_filter_block.cc`.

mod block;
mod builder;
mod checksum;
mod error;
mod hash;
mod legacy;
mod ribbon;
mod sst;

pub use block::{FilterBlock, FilterKind};
pub use builder::FilterBlockBuilder;
pub use checksum::ChecksumKind;
pub use error::RocksdbError;
pub use hash::{KEY_HASH, hash_key, legacy_hash_key};
pub use ribbon::RibbonBlockBuilder;
pub use sst::{FilterLayout, SST_MAGICS, SstFilter};
