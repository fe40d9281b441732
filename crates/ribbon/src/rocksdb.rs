//! The Ribbon filter blocks of RocksDB, "Standard128Ribbon": looked up where they lie, and written
//! byte for byte.
//!
//! RocksDB writes them for `NewRibbonFilterPolicy`. They are of RocksDB's 64-bit key hash, which
//! the package `blocked-bloom-formats` has together with SST files: its `rocksdb::FilterBlock`
//! reads Ribbon and Bloom blocks alike and its `rocksdb::RibbonBlockBuilder` writes them from keys.
//! Here are both for hashes.
//!
//! ```
//! use blocked_bloom::Filter;
//! use blocked_bloom_ribbon::rocksdb::{BuiltBlock, RibbonBlock, RibbonBlockOptions};
//! let hashes: Vec<u64> = (1..=2_000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
//! let BuiltBlock::Ribbon(block) = RibbonBlockOptions::new(10.0)?.build(&hashes)? else {
//!     panic!("where it is smaller, or cannot be built, RocksDB writes a Bloom filter");
//! };
//! let filter = RibbonBlock::from_bytes(&block).unwrap();
//! assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
//! assert!(8 * block.len() < 8 * hashes.len());
//! # Ok::<(), blocked_bloom_ribbon::RibbonError>(())
//! ```

mod block;
mod build;
mod sizing;

pub use block::{KEY_HASH, RibbonBlock};
pub use build::{BloomReason, BuiltBlock, RibbonBlockOptions};
