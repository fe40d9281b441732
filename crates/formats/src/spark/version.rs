//! The versions of Spark's filters.

/// The version of a filter. It determines hashes and positions, and hashes keys.
///
/// ```
/// use blocked_bloom_formats::spark::{SparkFilter, Version};
/// let filter = SparkFilter::new(Version::V1, 100, 0.03)?;
/// let hash = filter.shape().scheme().hash_long(7);
/// assert!(!filter.contains_hash(hash));
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Version {
    /// Every Spark up to 4.0. Positions are computed in 32 bits, so they crowd in parts of filters
    /// above 2^31 bits, and of somewhat smaller ones.
    V1,
    /// The default since 4.1: positions in 64 bits, and a seed.
    V2 {
        /// The seed of the hash, by default 0.
        seed: i32,
    },
}

impl Version {
    /// Returns the seed of the hash; 0 in version 1.
    pub fn seed(self) -> i32 {
        match self {
            Version::V1 => 0,
            Version::V2 { seed } => seed,
        }
    }

    /// Returns the number in the header: 1 or 2.
    pub fn number(self) -> u32 {
        match self {
            Version::V1 => 1,
            Version::V2 { .. } => 2,
        }
    }
}
