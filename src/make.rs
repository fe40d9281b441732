//! Constructors on options: builders, and empty filters for a known number of keys. This module is
//! above `options` and `builder`, since a builder contains its options.

use crate::builder::{BloomFilterBuilder, empty};
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
use crate::filter::AtomicBloomFilter;
use crate::filter::{BloomFilter, BuildError};
use crate::options::FilterOptions;
use crate::params::Sizing;
use crate::threads::Threads;

impl BloomFilter {
    /// Creates an empty filter for this many keys. After `keys` insertions, it returns true for a
    /// fraction `rate` of absent keys.
    ///
    /// Keys are hashed with XXH3-64 and seed 0. [`FilterOptions`] has all other settings and builds
    /// filters for an unknown number of keys.
    ///
    /// # Errors
    ///
    /// [`BuildError::Params`] if the rate is out of range, [`BuildError::Alloc`] if the allocation
    /// fails.
    ///
    /// ```
    /// use blocked_bloom::{BloomFilter, BuildError};
    /// let mut filter = BloomFilter::new(1_000, 0.01)?;
    /// filter.insert("apple")?;
    /// assert!(filter.contains("apple"));
    /// assert!(matches!(BloomFilter::new(1_000, -0.1), Err(BuildError::Params(_))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(keys: u64, rate: f64) -> Result<Self, BuildError> {
        FilterOptions::new(Sizing::FalsePositiveRate(rate)).empty_filter(keys)
    }
}

impl FilterOptions {
    /// Creates an empty builder. It allocates when the first key is inserted.
    pub fn builder(&self) -> BloomFilterBuilder {
        BloomFilterBuilder::new(self.clone())
    }

    /// Creates an empty filter for this many keys. Use a [builder](Self::builder) if the number of
    /// keys is not known in advance.
    ///
    /// The filter holds whole keys: only a builder adds prefixes, so options with prefixes are an
    /// error. `FilterOptions::new(options.sizing())` with the same
    /// [`with_key_hash`](Self::with_key_hash) creates a filter for the same hashes of keys.
    ///
    /// # Errors
    ///
    /// [`BuildError::Params`] if the sizing is out of range, [`BuildError::Alloc`] if the
    /// allocation fails, [`BuildError::Key`] if the options add prefixes.
    pub fn empty_filter(&self, keys: u64) -> Result<BloomFilter, BuildError> {
        self.contents().check_insert()?;
        Ok(empty(self, self.params(keys)?, Threads::One)?)
    }

    /// Creates an [empty filter](Self::empty_filter) that threads insert into and query at the same
    /// time, for a memtable.
    ///
    /// # Errors
    ///
    /// The errors of `empty_filter`.
    #[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
    pub fn atomic_filter(&self, keys: u64) -> Result<AtomicBloomFilter, BuildError> {
        Ok(self.empty_filter(keys)?.into())
    }
}
