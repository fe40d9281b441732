//! Apache Cassandra's `Filter.db`: the Bloom filter of an SSTable's partition keys.
//!
//! The law is a classical Bloom filter: `k` bits per key anywhere in the file, so `k` cache lines per key instead of one. The SIMD
//! kernels of this crate do not apply to it; what a batch gains is that the lines of the keys that come next are requested while
//! one is tested. `docs/cassandra.md` describes the bytes, the three layouts and what validation cannot see.
//!
//! ```
//! use blocked_bloom::Bitmask;
//! use blocked_bloom::interop::cassandra::{CassandraFilter, Layout};
//!
//! # let bytes = include_bytes!("../../../tests/fixtures/cassandra/nb-1-big-Filter.db");
//! let layout = Layout::of_file_name("data/store/fruit-6d1e/nb-1-big-Filter.db")?;
//! let filter = CassandraFilter::from_bytes(bytes, layout)?;
//! assert!(filter.contains("apple"));
//!
//! let mut hits = Bitmask::new();
//! filter.contains_batch(&["apple", "granite", "cherry"], &mut hits);
//! assert!(hits.hits().eq([0, 2]));
//! # Ok::<(), blocked_bloom::interop::cassandra::CassandraError>(())
//! ```

mod batch;
mod builder;
mod diagnosis;
mod error;
mod filter;
mod hash;
mod key;
mod law;
mod layout;
mod shape;

pub use builder::CassandraFilterBuilder;
pub use diagnosis::{Diagnosis, diagnose};
pub use error::CassandraError;
pub use filter::CassandraFilter;
pub use hash::{Hash128, murmur3};
pub use key::composite_key;
pub use layout::Layout;
pub use shape::Shape;

/// Bytes before the bits: the hash count and the number of 64-bit words, both big-endian.
const HEADER_BYTES: usize = 8;

/// Bits per word: Cassandra counts memory in words of a Java `long`.
const WORD_BITS: u64 = 64;
