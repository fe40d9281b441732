//! Classical Bloom filters: `k` bits per key anywhere in one array, as Cassandra, Guava, Spark and
//! RedisBloom store them. Systems differ in the [`Scheme`], which says where a key's bits are, and
//! in the header before the bits; lookups, batches, insertion, merging and statistics are written
//! once.
//!
//! SIMD kernels do not apply: each probe is a cache line of its own. In a batch, the lines of the
//! keys that come next are prefetched while one is tested.

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
