//! What options make: builders, and empty filters for a known number of keys. Above both, since a
//! builder has its options.

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
    /// Keys are hashed with XXH3-64 and seed 0. [`FilterOptions`] has all other settings, and
    /// builds filters for an unknown number of keys.
    ///
    /// # Errors
    ///
    /// [`BuildError::Params`] if the rate is out of range, [`BuildError::Alloc`] if there is no
    /// memory.
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
    /// A builder without keys. Nothing is allocated before the first.
    pub fn builder(&self) -> BloomFilterBuilder {
        BloomFilterBuilder::new(self.clone())
    }

    /// An empty filter to add this many keys to: where their number is known before.
    ///
    /// The filter is of whole keys, since prefixes are added by a [builder](Self::builder). Options
    /// that add them are an error; `FilterOptions::new(options.sizing())` with the same
    /// [`with_key_hash`](Self::with_key_hash) gives a filter that takes the same hashes of keys.
    ///
    /// # Errors
    ///
    /// [`BuildError::Params`] if the sizing is out of range, [`BuildError::Alloc`] if there is no
    /// memory, [`BuildError::Key`] if the options add prefixes.
    pub fn empty_filter(&self, keys: u64) -> Result<BloomFilter, BuildError> {
        self.contents().check_insert()?;
        Ok(empty(self, self.params(keys)?, Threads::One)?)
    }

    /// [`empty_filter`](Self::empty_filter) for threads that add to it and look up in it at the
    /// same time, as those of a memtable do.
    ///
    /// # Errors
    ///
    /// As `empty_filter`.
    #[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
    pub fn atomic_filter(&self, keys: u64) -> Result<AtomicBloomFilter, BuildError> {
        Ok(self.empty_filter(keys)?.into())
    }
}
