//! Merging: the union of two filters. Everything is checked before a bit changes. Filters of
//! different sizes are not brought to a common size: folding does that.

use core::fmt::{self, Display, Formatter};

use super::BloomFilter;
use super::parts::Blocks;
use crate::error::plural;
use crate::hash::KeyHash;
use crate::prefix::FilterContents;
use crate::probe::Block;

impl BloomFilter {
    /// Adds everything that is in `other`, by OR-ing its bits.
    ///
    /// Both must have the same hash, seed, blocks and probes, and hold the same: keys, or prefixes
    /// by the same rule. Give both the same [`Params`](crate::Params) when they are made; filters
    /// that a builder sizes for the keys it got rarely have equal shapes. The keys inserted are
    /// those of both; keys that are in both count twice. A pass-all filter takes any other of its
    /// hash, whatever its shape: it stays pass-all, and counts the keys.
    ///
    /// Cost: reads both filters.
    ///
    /// # Errors
    ///
    /// [`MergeError`] naming both sides, also for a pass-all filter that is added to another kind:
    /// the union would be a [pass-all filter](BloomFilter::pass_all). Nothing is changed then.
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

/// Whether `other` can be merged into `this`.
fn check(this: &BloomFilter<&[Block]>, other: &BloomFilter<&[Block]>) -> Result<(), MergeError> {
    if this.key_hash() != other.key_hash() {
        return Err(MergeError::HashMismatch { left: this.key_hash(), right: other.key_hash() });
    }
    if this.is_pass_all() {
        return Ok(());
    }
    if other.is_pass_all() {
        return Err(MergeError::PassAll);
    }
    if this.contents() != other.contents() {
        return Err(MergeError::ContentsMismatch {
            left: this.contents(),
            right: other.contents(),
        });
    }
    let [left, right] = [this, other].map(|filter| filter.blocks().len() as u32);
    if left != right {
        return Err(MergeError::BlocksMismatch { left, right });
    }
    let [left, right] = [this, other].map(|filter| u32::from(filter.meta.probes));
    if left != right {
        return Err(MergeError::ProbesMismatch { left, right });
    }
    Ok(())
}

/// Why filters cannot be merged. "Left" is the filter that would have received the other.
///
/// ```
/// use blocked_bloom::{FilterOptions, MergeError, Sizing};
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
/// let (mut union, large) = (options.empty_filter(1_000)?, options.empty_filter(2_000)?);
/// let error = union.union_with(&large).unwrap_err();
/// assert!(matches!(error, MergeError::BlocksMismatch { left: 20, right: 40, .. }));
/// assert_eq!(
///     error.to_string(),
///     "cannot merge a filter of 20 blocks with one of 40: size both for the same keys"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeError {
    /// Different hash or seed.
    HashMismatch {
        /// Identity of the receiving filter.
        left: KeyHash,
        /// Identity of the other.
        right: KeyHash,
    },
    /// Different number of blocks. Where one is a multiple of the other and the probes are the
    /// same, fold the larger ([`folded`](crate::BloomFilter::folded)).
    BlocksMismatch {
        /// Blocks of the receiving filter.
        left: u32,
        /// Blocks of the other.
        right: u32,
    },
    /// Different number of probes.
    ProbesMismatch {
        /// Probes of the receiving filter.
        left: u32,
        /// Probes of the other.
        right: u32,
    },
    /// One holds keys, the other prefixes, or prefixes by another rule.
    ContentsMismatch {
        /// What the receiving filter holds.
        left: FilterContents,
        /// What the other holds.
        right: FilterContents,
    },
    /// The other answers "maybe" to everything, and so would the union.
    PassAll,
}

impl Display for MergeError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::HashMismatch { left, right } => {
                write!(f, "cannot merge a filter of {left} with one of {right}")
            }
            Self::ContentsMismatch { left, right } => {
                write!(f, "cannot merge a filter of {left} with one of {right}: build both alike")
            }
            Self::BlocksMismatch { left, right } => write!(
                f,
                "cannot merge a filter of {left} block{} with one of {right}: size both for the \
                 same keys",
                plural((*left).into())
            ),
            Self::ProbesMismatch { left, right } => write!(
                f,
                "cannot merge a filter of {left} probe{} with one of {right}: size both for the \
                 same keys",
                plural((*left).into())
            ),
            Self::PassAll => f.write_str(
                "a pass-all filter would make the union one: leave it out, or go on with a \
                 pass-all filter",
            ),
        }
    }
}

impl_error!(MergeError);
