//! Classical Bloom filters: `k` bits per key anywhere in one array, as in Cassandra, Guava, Spark
//! and RedisBloom. Systems differ in the [`Scheme`], which computes the positions of a key's bits,
//! and in the header before the bits. Lookups, batches, insertion, merging and statistics are
//! shared.
//!
//! SIMD kernels do not apply, since each probe reads another cache line. A batch prefetches the
//! lines of later keys while it tests a key.

mod batch;
mod bit_array;
mod error;
mod filter;
mod modulus;
mod scheme;

pub use error::ClassicalError;
#[cfg(any(feature = "cassandra", feature = "guava", feature = "spark"))]
pub(crate) use error::{Fields, Number, check_rate};
pub use filter::ClassicalFilter;
pub use scheme::ClassicalShape;
#[cfg(any(feature = "cassandra", feature = "guava", feature = "spark"))]
pub(crate) use scheme::Words;
pub(crate) use scheme::{Scheme, Walk};

#[cfg(all(test, feature = "guava"))]
#[path = "../tests/unit/classical.rs"]
mod tests;
