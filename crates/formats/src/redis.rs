//! RedisBloom's filters (`BF.ADD`, `BF.EXISTS`), in the form that `BF.SCANDUMP` returns and
//! `BF.LOADCHUNK` accepts: chains of classical Bloom filters.
//!
//! When a filter is full, it gets another link with half the error rate and, by default, twice the
//! size. A key may be present if any link may contain it. Keys are bytes. The hash has 64 bits, or
//! 32 bits in filters of early versions; the dump contains the width.
//!
//! `docs/foreign.md` describes the dump and the limits of validation.
//!
//! ```
//! use blocked_bloom::Bitmask;
//! use blocked_bloom_formats::redis::RedisFilter;
//!
//! // BF.RESERVE fruit 0.01 100, then BF.MADD: 150 keys need more than one link.
//! let mut filter = RedisFilter::new(100, 0.01, Some(2))?;
//! for i in 0..150 {
//!     filter.insert(format!("fruit:{i}"))?;
//! }
//! assert_eq!(filter.links().len(), 2);
//!
//! // The replies of BF.SCANDUMP in order, which BF.LOADCHUNK accepts.
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
//! A dump has **no checksum**. Damage to the header, and missing, repeated or reordered replies,
//! return a [`RedisError`]. A cleared bit cannot be detected and makes a present key absent.
//! Protect dumps with a checksum of your own.

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
