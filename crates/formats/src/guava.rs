//! Guava's `BloomFilter`, as `writeTo` stores it: a classical Bloom filter of Java programs.
//!
//! The stored filter does not say what a key is: a `Funnel` of the program makes bytes of it, which
//! are hashed by MurmurHash3 (128 bits, seed 0). [`GuavaFilter`] takes those bytes:
//!
//! | funnel | bytes of a key |
//! |---|---|
//! | `stringFunnel(UTF_8)`, `byteArrayFunnel` | as they are |
//! | `longFunnel`, `integerFunnel` | `to_le_bytes` of `i64`, `i32` |
//! | `unencodedCharsFunnel` | each UTF-16 unit by `to_le_bytes` |
//! | one of the program's | what it puts, one after the other: numbers little-endian |
//!
//! `docs/foreign.md` describes the stored bytes and what validation cannot see.
//!
//! ```
//! use blocked_bloom::Bitmask;
//! use blocked_bloom_formats::guava::GuavaFilter;
//!
//! // BloomFilter.create(Funnels.stringFunnel(UTF_8), 1000, 0.03)
//! let mut filter = GuavaFilter::new(1_000, 0.03)?;
//! filter.extend(["apple", "cherry"]);
//! let stored = filter.into_inner(); // what BloomFilter.readFrom takes
//!
//! let filter = GuavaFilter::from_bytes(&stored)?;
//! let mut hits = Bitmask::new();
//! filter.contains_batch(&["apple", "banana", "cherry"], &mut hits);
//! assert!(hits.hits().eq([0, 2]));
//! # Ok::<(), blocked_bloom_formats::ClassicalError>(())
//! ```
//!
//! # Damage
//!
//! Guava stores **no checksum**. Damage of the header and truncation are a
//! [`ClassicalError`](crate::ClassicalError); a cleared bit of the words cannot be detected and
//! makes a key that is there "absent". Where such bytes travel, keep a checksum of your own.

mod filter;
mod hash;

pub use filter::{GuavaFilter, Shape, Strategy};
pub use hash::{GuavaHash, hash_key};
