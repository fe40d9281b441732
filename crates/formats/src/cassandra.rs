//! Apache Cassandra's `Filter.db`: the Bloom filter of an SSTable's partition keys.
//!
//! It is a classical Bloom filter: `k` bits per key anywhere in the file, so a lookup reads `k`
//! cache lines instead of one. SIMD kernels do not apply. A batch prefetches the cache lines of
//! later keys while it tests a key. `docs/foreign.md` compares the three layouts.
//!
//! | | |
//! |---|---|
//! | [`CassandraFilter`] | a `Filter.db`, looked up by keys or hashes; an owned one accepts keys, and is sized as in Cassandra ([`Shape`]) |
//! | [`Layout`], [`diagnose`] | the layout of a file, from its name or from known keys |
//! | [`hash_key`], [`composite_key`] | the hash of a partition key, and the bytes of a key of several columns |
//!
//! ```
//! use blocked_bloom::Bitmask;
//! use blocked_bloom_formats::cassandra::{CassandraFilter, Layout};
//!
//! # let bytes = include_bytes!(concat!(
//! #     env!("CARGO_MANIFEST_DIR"),
//! #     "/tests/fixtures/cassandra/nb-1-big-Filter.db"
//! # ));
//! let layout = Layout::from_file_name("data/store/fruit-6d1e/nb-1-big-Filter.db")?;
//! let filter = CassandraFilter::from_bytes(bytes, layout)?;
//! assert!(filter.contains("apple"));
//!
//! let mut hits = Bitmask::new();
//! filter.contains_batch(&["apple", "granite", "cherry"], &mut hits);
//! assert!(hits.hits().eq([0, 2]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Stored bytes
//!
//! | offset | bytes | field |
//! |---:|---:|---|
//! | 0 | 4 | probes per key, big-endian: 1 to 21 (Cassandra computes the positions of at most 21) |
//! | 4 | 4 | words, big-endian: 1 to 2^31 - 1 |
//! | 8 | 8 per word | bits: position `p` is bit `p mod 8` of byte `p div 8`; in the older layouts, of byte `(p div 8) xor 7` |
//!
//! Let `base` and `step` be the two halves of the hash, in the layout's order, as signed 64-bit
//! numbers, and `bits` 64 times the number of words. Probe `i`, for `i` from 0 to one less than the
//! number of probes, is at position `|(base + i step) rem bits|`: the sum wraps in 64 bits, and the
//! remainder has the sign of the dividend.

mod diagnosis;
mod error;
mod filter;
mod hash;
mod key;
mod layout;
mod sizing;

pub use diagnosis::{Diagnosis, diagnose};
pub use error::CassandraError;
pub use filter::CassandraFilter;
pub use hash::{Hash128, hash_key};
pub use key::composite_key;
pub use layout::Layout;
pub use sizing::Shape;
