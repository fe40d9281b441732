//! Guava's `BloomFilter` as stored by `writeTo`: a classical Bloom filter of Java programs.
//!
//! The stored filter does not contain the type of its keys. A `Funnel` of the program converts a
//! key to bytes, which are hashed with MurmurHash3 (128 bits, seed 0). [`GuavaFilter`] takes these
//! bytes:
//!
//! | funnel | bytes of a key |
//! |---|---|
//! | `stringFunnel(UTF_8)`, `byteArrayFunnel` | unchanged |
//! | `longFunnel`, `integerFunnel` | `to_le_bytes` of `i64`, `i32` |
//! | `unencodedCharsFunnel` | `to_le_bytes` of each UTF-16 unit |
//! | a custom funnel | the values it puts, concatenated; numbers are little-endian |
//!
//! ```
//! use blocked_bloom::Bitmask;
//! use blocked_bloom_formats::guava::GuavaFilter;
//!
//! // BloomFilter.create(Funnels.stringFunnel(UTF_8), 1000, 0.03)
//! let mut filter = GuavaFilter::new(1_000, 0.03)?;
//! filter.extend(["apple", "cherry"]);
//! let stored = filter.into_inner(); // the input of BloomFilter.readFrom
//!
//! let filter = GuavaFilter::from_bytes(&stored)?;
//! let mut hits = Bitmask::new();
//! filter.contains_batch(&["apple", "banana", "cherry"], &mut hits);
//! assert!(hits.hits().eq([0, 2]));
//! # Ok::<(), blocked_bloom_formats::ClassicalError>(())
//! ```
//!
//! # Stored bytes
//!
//! The file contains an `i8` strategy, a `u8` number of hash functions `k`, an `i32` number of
//! words, and then the words, all big-endian. Bit `i` is bit `i % 64` of word `i / 64`, and `m = 64
//! * words`. Let `h1` and `h2` be the halves of the hash (seed 0). Probe `i`, for `i` from 0 to `k
//! - 1`:
//!
//! | strategy | bit |
//! |---|---|
//! | 1, `MURMUR128_MITZ_64` | `((h1 + i h2) mod 2^64 with its sign bit cleared) mod m` |
//! | 0, `MURMUR128_MITZ_32` | `c = a + (i + 1) b` in 32 bits, where `a` and `b` are the lower and upper half of `h1`; `~c` if it is negative; `mod m` |
//!
//! # Damage
//!
//! Guava stores **no checksum**. Damage to the header and truncation return a
//! [`ClassicalError`](crate::ClassicalError). A cleared bit of the words cannot be detected and
//! makes a present key absent. Protect such bytes with a checksum of your own.

mod filter;
mod hash;

pub use filter::{GuavaFilter, Shape, Strategy};
pub use hash::{GuavaHash, hash_key};
