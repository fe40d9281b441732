//! RedisBloom's filters (`BF.ADD`, `BF.EXISTS`), as `BF.SCANDUMP` emits and `BF.LOADCHUNK` takes
//! them: chains of classical Bloom filters.
//!
//! A filter that holds as many keys as it was made for gets another link, twice as large unless it
//! was reserved otherwise and with half the error rate; a key may be present if any link has it.
//! Keys are their bytes. The hash has 64 bits, or 32 in filters of early versions: the dump says
//! which.
//!
//! `docs/foreign.md` describes the dump and what validation cannot see.
//!
//! ```
//! use blocked_bloom::Bitmask;
//! use blocked_bloom_formats::redis::RedisFilter;
//!
//! // BF.RESERVE fruit 0.01 100, then BF.MADD: 150 keys are more than one link holds.
//! let mut filter = RedisFilter::new(100, 0.01, Some(2))?;
//! for i in 0..150 {
//!     filter.insert(format!("fruit:{i}"))?;
//! }
//! assert_eq!(filter.links().len(), 2);
//!
//! // What BF.SCANDUMP replies with, one after the other, and BF.LOADCHUNK takes.
//! let dump: Vec<(i64, Vec<u8>)> = filter.dump().map(|(i, data)| (i, data.into_owned())).collect();
//! let filter = RedisFilter::load(dump)?;
//! let mut hits = Bitmask::new();
//! filter.contains_batch(&["fruit:7", "stone:7", "fruit:149"], &mut hits);
//! assert!(hits.hits().eq([0, 2]));
//! # Ok::<(), blocked_bloom_formats::redis::RedisError>(())
//! ```
//!
//! # Damage
//!
//! A dump has **no checksum**. Damage of the header, and replies that are missing, repeated or out
//! of order, are a [`RedisError`]; a cleared bit cannot be detected and makes a key that is there
//! "absent". Where dumps travel, keep a checksum of your own.

mod chain;
mod dump;
mod error;
mod hash;
mod link;
mod log;

pub use chain::RedisFilter;
pub use error::RedisError;
pub use hash::RedisHash;
pub use link::{Link, LinkScheme};
