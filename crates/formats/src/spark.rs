//! Spark's sketch `BloomFilter`, as `writeTo` stores it: what `df.stat.bloomFilter` and the SQL
//! function `bloom_filter_agg` make.
//!
//! Version 1, of every Spark up to 4.0, and version 2, the default since 4.1. A key is a number
//! (`putLong`; every integral type is widened to 64 bits) or bytes (`putBinary`; `putString` adds
//! the UTF-8 bytes). A number is hashed as its eight little-endian bytes, whatever its type was.
//! Version 2 has a seed, so the hash of a key comes from the filter's [`Version`].
//!
//! `docs/foreign.md` describes the stored bytes and what validation cannot see.
//!
//! ```
//! use blocked_bloom::Bitmask;
//! use blocked_bloom_formats::spark::{SparkFilter, Version};
//!
//! // BloomFilter.create(1000, 0.03) of Spark 4.1
//! let mut filter = SparkFilter::new(Version::V2 { seed: 0 }, 1_000, 0.03)?;
//! (0..1_000).for_each(|id| _ = filter.insert_long(id));
//! let stored = filter.into_inner(); // what BloomFilter.readFrom takes
//!
//! let filter = SparkFilter::from_bytes(&stored)?;
//! assert!(filter.contains_long(999));
//! let mut hits = Bitmask::new();
//! filter.contains_longs(&[7, -1, 8], &mut hits);
//! assert!(hits.hits().eq([0, 2]));
//! # Ok::<(), blocked_bloom_formats::ClassicalError>(())
//! ```
//!
//! # Damage
//!
//! Spark stores **no checksum**. Damage of the header and truncation are a
//! [`ClassicalError`](crate::ClassicalError); a cleared bit of the words, or a changed seed, cannot
//! be detected and makes a key that is there "absent". Where such bytes travel, keep a checksum of
//! your own.

mod filter;
mod hash;
mod version;

pub use filter::{Shape, SparkFilter};
pub use hash::SparkHash;
pub use version::Version;
