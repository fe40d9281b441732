//! What a sharded filter is to be: a plain value that makes builders.

use blocked_bloom::{KeyError, KeyHash, KeyHasher};

use crate::builder::RibbonFilterBuilder;

/// What an engine decides once about its Ribbon filters. Every builder is made of one, and whoever opens the filters takes the hash from
/// it.
///
/// The rate is checked when a filter is made.
///
/// ```
/// use blocked_bloom_ribbon::{RibbonFilter, RibbonOptions};
/// let options = RibbonOptions::new(0.01);
/// let mut builder = options.builder();
/// builder.extend(["apple", "banana"])?;
/// let stored = builder.finish()?.as_bytes().to_vec();
///
/// let filter = RibbonFilter::from_bytes(stored)?.require_key_hash(options.key_hash())?;
/// assert!(filter.contains("apple"));
/// # Ok::<(), blocked_bloom_ribbon::RibbonError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RibbonOptions {
    rate: f64,
    key_hash: KeyHash,
}

impl RibbonOptions {
    /// Filters that let this fraction of absent keys pass, 2^-32 to 0.5, of keys hashed with XXH3-64 and seed 0.
    pub const fn new(false_positive_rate: f64) -> Self {
        RibbonOptions { rate: false_positive_rate, key_hash: KeyHash::Xxh3 { seed: 0 } }
    }

    /// Hashes keys with another seed, or leaves hashing to the caller. All 64 bits of a caller's hashes must be well mixed.
    #[must_use]
    pub const fn with_key_hash(self, key_hash: KeyHash) -> Self {
        RibbonOptions { key_hash, ..self }
    }

    /// A builder without keys. Nothing is allocated before the first.
    pub fn builder(&self) -> RibbonFilterBuilder {
        RibbonFilterBuilder::new(*self)
    }

    /// The rate that filters are made for.
    pub fn false_positive_rate(&self) -> f64 {
        self.rate
    }

    /// The hash and seed of the keys.
    pub fn key_hash(&self) -> KeyHash {
        self.key_hash
    }

    /// The hasher of the keys.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the caller hashes.
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.key_hash.hasher()
    }

    /// Bytes of a stored filter of so many keys, to within one in a thousand from 100,000 keys on: hashes fall into shards by chance, and
    /// what these are rounded up to differs.
    ///
    /// # Errors
    ///
    /// [`RibbonError::Rate`](crate::RibbonError::Rate) and [`TooManyKeys`](crate::RibbonError::TooManyKeys).
    ///
    /// ```
    /// # use blocked_bloom_ribbon::RibbonOptions;
    /// let bytes = RibbonOptions::new(0.01).estimated_bytes(1_000_000)?;
    /// assert!((890_000..900_000).contains(&bytes));
    /// # Ok::<(), blocked_bloom_ribbon::RibbonError>(())
    /// ```
    pub fn estimated_bytes(&self, keys: u64) -> Result<u64, crate::RibbonError> {
        crate::sizing::estimated_bytes(self.rate, keys)
    }
}

impl Default for RibbonOptions {
    /// One absent key in a hundred passes.
    fn default() -> Self {
        RibbonOptions::new(0.01)
    }
}
