//! Merging two filters by the union of their bits. All checks precede any change of a bit. Filters
//! of different sizes must first be folded to the same size.

use super::BloomFilter;
use super::parts::Blocks;
use crate::error::ensure;
use crate::hash::KeyHash;
use crate::params::Params;
use crate::prefix::FilterContents;
use crate::probe::Block;

impl BloomFilter {
    /// Inserts all keys of `other`, by combining the bits of both filters with OR.
    ///
    /// Both filters must have the same hash, seed, blocks and probes, and the same contents: keys,
    /// or prefixes by the same rule. Create both with the same [`Params`]; filters that a builder
    /// sizes for its keys rarely have the same shape. The numbers of keys inserted are added, so
    /// keys that are in both count twice. A pass-all filter accepts any other filter of its hash;
    /// it stays pass-all and counts the keys.
    ///
    /// Cost: reads both filters.
    ///
    /// # Errors
    ///
    /// [`MergeError`] with the difference. It is also an error to merge a pass-all filter into
    /// another filter, since the result would be a [pass-all filter](BloomFilter::pass_all).
    /// Nothing is changed then.
    pub fn union_with<D: Blocks>(&mut self, other: &BloomFilter<D>) -> Result<(), MergeError> {
        let other = other.view();
        check(&self.view(), &other)?;
        self.count(other.keys_inserted());
        if !self.meta.pass_all {
            let (mine, theirs) = (self.data.as_flattened_mut(), other.data.as_flattened());
            mine.iter_mut().zip(theirs).for_each(|(mine, &theirs)| *mine |= theirs);
        }
        Ok(())
    }
}

/// Checks that `other` can be merged into `this`.
fn check(this: &BloomFilter<&[Block]>, other: &BloomFilter<&[Block]>) -> Result<(), MergeError> {
    let (left, right) = (this.key_hash(), other.key_hash());
    ensure(left == right, MergeError::HashMismatch { left, right })?;
    if this.is_pass_all() {
        return Ok(());
    }
    ensure(!other.is_pass_all(), MergeError::PassAll)?;
    let (left, right) = (this.contents(), other.contents());
    ensure(left == right, MergeError::ContentsMismatch { left, right })?;
    let (left, right) = (this.params(), other.params());
    let is_same = (left.blocks(), left.probes()) == (right.blocks(), right.probes());
    ensure(is_same, MergeError::ShapeMismatch { left, right })
}

/// Error of merging filters. "Left" is the filter that receives the keys of the other.
///
/// ```
/// use blocked_bloom::{FilterOptions, MergeError, Sizing};
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
/// let (mut union, large) = (options.empty_filter(1_000)?, options.empty_filter(2_000)?);
/// let error = union.union_with(&large).unwrap_err();
/// assert!(matches!(error, MergeError::ShapeMismatch { left, .. } if left.blocks() == 20));
/// assert_eq!(
///     error.to_string(),
///     "cannot merge filters of different shapes (20 and 40 blocks, 6 and 6 probes): create both \
///      with the same Params"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeError {
    /// The hashes or seeds differ.
    HashMismatch {
        /// Hash of the receiving filter.
        left: KeyHash,
        /// Hash of the other.
        right: KeyHash,
    },
    /// The blocks or probes differ. If only the blocks differ and one number is a multiple of the
    /// other, fold the larger filter ([`folded`](crate::BloomFilter::folded)).
    ShapeMismatch {
        /// Shape of the receiving filter.
        left: Params,
        /// Shape of the other.
        right: Params,
    },
    /// One filter holds keys and the other prefixes, or prefixes by another rule.
    ContentsMismatch {
        /// Contents of the receiving filter.
        left: FilterContents,
        /// Contents of the other.
        right: FilterContents,
    },
    /// The other filter answers "maybe" to everything, and so would the result.
    PassAll,
}

impl_error!(MergeError;
    Self::HashMismatch { left, right } => ("cannot merge a filter of {left} with one of {right}"),
    Self::ContentsMismatch { left, right } => (
        "cannot merge a filter of {left} with one of {right}: build both with the same contents"
    ),
    Self::ShapeMismatch { left, right } => (
        "cannot merge filters of different shapes ({} and {} blocks, {} and {} probes): create \
         both with the same Params",
        left.blocks(), right.blocks(), left.probes(), right.probes()
    ),
    Self::PassAll => (
        "merging a pass-all filter would make the result pass-all: leave it out, or use a pass-all \
         filter instead"
    ),
);
