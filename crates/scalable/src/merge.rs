//! The union of two chains: one chain with the links of both. Links are not OR-ed together: they
//! have different sizes, and two of the same size would be overfull.

use blocked_bloom::{AllocError, BloomFilter};

use crate::error::ScalableError;
use crate::filter::ScalableBloomFilter;

impl ScalableBloomFilter {
    /// Adds everything that is in `other`, by taking over its links. No bit changes, no memory is
    /// copied.
    ///
    /// The target becomes the sum of both targets, at most 1, since every link of both may be
    /// wrong; the memory adds up too. Keys that are in both are counted, and stored, twice. Further
    /// keys go into this filter's last link; what capacity `other` had left in its last one is
    /// given up, and growth and tightening stay this filter's. Where the keys are still at hand,
    /// adding them again is tighter.
    ///
    /// # Errors
    ///
    /// [`ScalableError::HashMismatch`], or [`ScalableError::Alloc`] if the list of links cannot
    /// grow. This filter is then unchanged, `other` is gone: clone it to keep it.
    pub fn union_with(&mut self, other: ScalableBloomFilter) -> Result<(), ScalableError> {
        let (left, right) = (self.shape.key_hash, other.shape.key_hash);
        if left != right {
            return Err(ScalableError::HashMismatch { left, right });
        }
        let bytes = (other.links.len() as u64).saturating_mul(size_of::<BloomFilter>() as u64);
        self.links.try_reserve(other.links.len()).map_err(|_| AllocError::new(bytes))?;
        if self.links.is_empty() {
            // Further keys go into the last link, whichever filter it came from.
            self.shape.items = other.shape.items;
        }
        let kernel = self.kernel;
        self.links.splice(0..0, other.links.into_iter().map(|link| link.with_kernel(kernel)));
        self.shape.rate = (self.shape.rate + other.shape.rate).min(1.0);
        Ok(())
    }
}
