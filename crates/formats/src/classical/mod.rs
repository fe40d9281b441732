//! Classical Bloom filters: `k` bits per key anywhere in one array, as Cassandra, Guava, Spark and RedisBloom store them. What differs is
//! where a key's bits are, a [`Scheme`]; queries, batches, insertion and statistics are written once.
//!
//! SIMD kernels do not apply: each probe is a cache line of its own. What a batch gains is that the lines of the keys that come next are
//! prefetched while one is tested.

mod batch;
mod bit_array;
#[cfg(any(feature = "guava", feature = "spark"))]
mod error;
mod modulus;

#[cfg(any(feature = "guava", feature = "spark"))]
pub(crate) use bit_array::merge;
pub(crate) use bit_array::{BitArray, Scheme, Walk, insert, zeroed};
// RedisBloom's chains add key by key, and have no size for a rate and a number of keys.
#[cfg(any(feature = "cassandra", feature = "guava", feature = "spark"))]
pub(crate) use bit_array::insert_all;
#[cfg(any(feature = "guava", feature = "spark"))]
pub use error::ClassicalError;
#[cfg(any(feature = "guava", feature = "spark"))]
pub(crate) use error::Number;
pub(crate) use modulus::Modulus;

/// The false-positive rate of a classical filter with this many distinct keys, 0 to 1: `(1 - e^(-k n / m))^k` for `k` probes, `n` keys and
/// `m` bits (Bloom 1970, with the usual approximation).
#[cfg(any(feature = "cassandra", feature = "guava", feature = "spark"))]
pub(crate) fn false_positive_rate(probes: u32, bits: u64, keys: u64) -> f64 {
    let set = f64::from(probes) * keys as f64;
    let fill = -libm::expm1(-set / bits as f64);
    libm::pow(fill, probes.into())
}

#[cfg(all(test, feature = "guava"))]
#[path = "../../tests/unit/classical.rs"]
mod tests;
