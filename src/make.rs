//! What options make: builders, and empty filters for a known number of keys. Above both, since a
//! builder has its options.

use crate::builder::{BloomFilterBuilder, empty};
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
use crate::filter::AtomicBloomFilter;
use crate::filter::{BloomFilter, BuildError};
use crate::hash::KeyError;
use crate::options::FilterOptions;
use crate::threads::Threads;

impl FilterOptions {
    /// A builder without keys. Nothing is allocated before the first.
    pub fn builder(&self) -> BloomFilterBuilder {
        BloomFilterBuilder::new(self.clone())
    }

    /// An empty filter for this many keys, to be added to: where their number is known before they
    /// come.
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
        if self.extractor().is_some() {
            return Err(KeyError::NoPrefix { contents: self.contents() }.into());
        }
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
