//! The union of two chains: one chain with the links of both. Links are not merged bit by bit: they
//! have different sizes, and two of the same size would be overfull.

use blocked_bloom::{AllocError, BloomFilter};

use crate::error::ScalableError;
use crate::filter::ScalableBloomFilter;

impl ScalableBloomFilter {
    /// Inserts all keys of `other` by taking over its links. No bit changes and no block is copied.
    ///
    /// The target becomes the sum of both targets, at most 1, since any link of either filter may
    /// return a false positive. Memory adds up too. Keys in both filters are stored and counted
    /// twice. New keys are inserted into this filter's last link; spare capacity of `other`'s last
    /// link is lost. Growth and tightening stay those of this filter. If the keys are available,
    /// inserting them again uses less memory.
    ///
    /// # Errors
    ///
    /// [`ScalableError::HashMismatch`], or [`ScalableError::Alloc`] if the list of links cannot
    /// grow. This filter is then unchanged and `other` is dropped; clone it to keep it.
    pub fn union_with(&mut self, other: ScalableBloomFilter) -> Result<(), ScalableError> {
        let (left, right) = (self.shape.key_hash, other.shape.key_hash);
        if left != right {
            return Err(ScalableError::HashMismatch { left, right });
        }
        let bytes = (other.links.len() as u64).saturating_mul(size_of::<BloomFilter>() as u64);
        self.links.try_reserve(other.links.len()).map_err(|_| AllocError::new(bytes))?;
        if self.links.is_empty() {
            // The last link of `other` becomes the last link and receives new keys.
            self.shape.items = other.shape.items;
        }
        let kernel = self.kernel;
        self.links.splice(0..0, other.links.into_iter().map(|link| link.with_kernel(kernel)));
        self.shape.rate = (self.shape.rate + other.shape.rate).min(1.0);
        Ok(())
    }
}
