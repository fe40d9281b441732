//! The versions of Spark's filters.

/// The version of a filter: how keys are hashed and where their bits are. It computes the hashes of
/// keys.
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
    /// Every Spark up to 4.0. Positions are computed in 32 bits: beyond 2^31 bits, and in filters a
    /// good deal smaller, they crowd in parts of the filter.
    V1,
    /// The default since 4.1: positions in 64 bits, and a seed.
    V2 {
        /// The seed of the hash, 0 unless the program gives one.
        seed: i32,
    },
}

impl Version {
    /// The seed of the hash: 0 in version 1.
    pub fn seed(self) -> i32 {
        match self {
            Version::V1 => 0,
            Version::V2 { seed } => seed,
        }
    }

    /// The number that the header has: 1 or 2.
    pub fn number(self) -> u32 {
        match self {
            Version::V1 => 1,
            Version::V2 { .. } => 2,
        }
    }
}
