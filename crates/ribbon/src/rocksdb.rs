//! RocksDB's Ribbon filter blocks ("Standard128Ribbon"): looked up in place, and written byte for
//! byte.
//!
//! RocksDB writes them for `NewRibbonFilterPolicy`, from its 64-bit key hash. This module takes
//! hashes. The package `blocked-bloom-formats` adds that hash and SST files: its
//! `rocksdb::FilterBlock` reads Ribbon and Bloom blocks, and its `rocksdb::RibbonBlockBuilder`
//! writes blocks from keys.
//!
//! ```
//! use blocked_bloom::Filter;
//! use blocked_bloom_ribbon::rocksdb::{BuiltBlock, RibbonBlock, RibbonBlockOptions};
//! let hashes: Vec<u64> = (1..=2_000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
//! let BuiltBlock::Ribbon(block) = RibbonBlockOptions::new(10.0)?.build(&hashes)? else {
//!     panic!("RocksDB writes a Bloom filter if it is smaller or Ribbon has no solution");
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
pub use sizing::bloom_probes;
