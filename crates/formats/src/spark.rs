//! Spark's sketch `BloomFilter` as stored by `writeTo`: the result of `df.stat.bloomFilter` and of
//! the SQL function `bloom_filter_agg`.
//!
//! Version 1 is written by every Spark up to 4.0, and version 2 is the default since 4.1. A key is
//! a number (`putLong`; every integral type is widened to 64 bits) or bytes (`putBinary`;
//! `putString` inserts the UTF-8 bytes). A number of any type is hashed as eight little-endian
//! bytes. Version 2 has a seed, so the hash of a key depends on the filter's [`Version`].
//!
//! ```
//! use blocked_bloom::Bitmask;
//! use blocked_bloom_formats::spark::{SparkFilter, Version};
//!
//! // BloomFilter.create(1000, 0.03) of Spark 4.1
//! let mut filter = SparkFilter::new(Version::V2 { seed: 0 }, 1_000, 0.03)?;
//! (0..1_000).for_each(|id| _ = filter.insert_long(id));
//! let stored = filter.into_inner(); // the input of BloomFilter.readFrom
//!
//! let filter = SparkFilter::from_bytes(&stored)?;
//! assert!(filter.contains_long(999));
//! let mut hits = Bitmask::new();
//! filter.contains_longs(&[7, -1, 8], &mut hits);
//! assert!(hits.hits().eq([0, 2]));
//! # Ok::<(), blocked_bloom_formats::ClassicalError>(())
//! ```
//!
//! # Stored bytes
//!
//! The file contains an `i32` version, an `i32` number of hash functions `k`, in version 2 an `i32`
//! seed, an `i32` number of words, and then the words, all big-endian, with bit `i` as bit `i % 64`
//! of word `i / 64`, and `m = 64 * words`. Let `h1` be the hash with the seed (0 in version 1) and
//! `h2` the hash with the seed `h1`, both signed. Probe `i`, for `i` from 1 to `k`:
//!
//! | version | bit |
//! |---|---|
//! | 1 | `c = h1 + i h2` in 32 bits; `~c` if it is negative; `mod m` |
//! | 2 | `c = (2^31 - 1) h1 + i h2` in 64 bits; `~c` if it is negative; `mod m` |
//!
//! # Damage
//!
//! Spark stores **no checksum**. Damage to the header and truncation return a
//! [`ClassicalError`](crate::ClassicalError). A cleared bit of the words, or a changed seed, cannot
//! be detected and makes a present key absent. Protect such bytes with a checksum of your own.

mod filter;
mod hash;
mod version;

pub use filter::{Shape, SparkFilter};
pub use hash::SparkHash;
pub use version::Version;
