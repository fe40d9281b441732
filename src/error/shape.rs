//! Errors of operations that filters of some shapes cannot have: folding and merging.

use core::fmt::{self, Display, Formatter};

use super::AllocError;
use crate::hash::KeyHash;
use crate::prefix::Added;

/// Why a filter cannot be folded.
///
/// ```
/// use blocked_bloom::{BloomFilter, FoldError, KeyHash, Sizing};
/// let params = Sizing::MaxBytes(64 + 40 * 64).params(2_000)?;
/// let mut filter = BloomFilter::with_params(params, KeyHash::default())?;
/// let error = filter.fold(7).unwrap_err();
/// assert!(matches!(error, FoldError::NotADivisor { below: Some(5), above: Some(8), .. }));
/// assert_eq!(error.to_string(), "7 does not divide 40 blocks: fold by 5 or 8");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FoldError {
    /// The number of blocks is no multiple of what it should be divided by.
    NotADivisor {
        /// What the blocks should be divided by.
        divisor: u32,
        /// Blocks of the filter.
        blocks: u32,
        /// The nearest smaller number that divides them; none under 1.
        below: Option<u32>,
        /// The nearest larger number that divides them; none over their number.
        above: Option<u32>,
    },
    /// No memory for the folded copy.
    Alloc(AllocError),
}

impl Display for FoldError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotADivisor { divisor, blocks, below, above } => {
                let s = if *blocks == 1 { "" } else { "s" };
                write!(f, "{divisor} does not divide {blocks} block{s}: fold by ")?;
                match (below, above) {
                    (Some(below), Some(above)) => write!(f, "{below} or {above}"),
                    (Some(only), None) | (None, Some(only)) => only.fmt(f),
                    (None, None) => 1.fmt(f),
                }
            }
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for FoldError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Alloc(error) => Some(error),
            Self::NotADivisor { .. } => None,
        }
    }
}

impl From<AllocError> for FoldError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

/// Why two filters cannot be united or intersected. "Left" is the filter that would have received the other.
///
/// ```
/// use blocked_bloom::{BloomFilter, KeyHash, MergeError, Sizing};
/// let params = Sizing::BitsPerKey(10.0).params(1_000)?;
/// let mut left = BloomFilter::with_params(params, KeyHash::Xxh3 { seed: 1 })?;
/// let right = BloomFilter::with_params(params, KeyHash::Xxh3 { seed: 2 })?;
/// assert!(matches!(left.union_with(&right), Err(MergeError::HashMismatch { .. })));
/// assert!(matches!(left.intersect_with(&right), Err(MergeError::HashMismatch { .. })));
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
    /// Different number of blocks. Where one is a multiple of the other and the probes are the same,
    /// [`fold`](crate::BloomFilter::fold) the larger.
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
    /// Not the same was added: keys or prefixes, or prefixes by different rules.
    AddedMismatch {
        /// What the receiving filter has.
        left: Added,
        /// What the other has.
        right: Added,
    },
    /// No memory to take the shape of the other, or for the list of many.
    Alloc(AllocError),
}

impl Display for MergeError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::HashMismatch { left, right } => {
                write!(f, "cannot merge a filter of {left} with one of {right}")
            }
            Self::AddedMismatch { left, right } => {
                write!(f, "cannot merge a filter of {left} with one of {right}: build both alike")
            }
            Self::BlocksMismatch { left, right } => {
                let s = if *left == 1 { "" } else { "s" };
                write!(
                    f,
                    "cannot merge a filter of {left} block{s} with one of {right}: size both for the same keys"
                )
            }
            Self::ProbesMismatch { left, right } => {
                let s = if *left == 1 { "" } else { "s" };
                write!(
                    f,
                    "cannot merge a filter of {left} probe{s} with one of {right}: size both for the same keys"
                )
            }
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for MergeError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Alloc(error) => Some(error),
            _ => None,
        }
    }
}

impl From<AllocError> for MergeError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

/// Why many filters cannot be united or intersected at once: what disagrees, and between which two of them.
///
/// ```
/// use blocked_bloom::{BloomFilter, KeyHash, MergeError, Sizing};
/// let sized_for = |keys| -> Result<BloomFilter, Box<dyn std::error::Error>> {
///     Ok(BloomFilter::with_params(Sizing::BitsPerKey(10.0).params(keys)?, KeyHash::default())?)
/// };
/// let (mut union, mut large) = (sized_for(1_000)?, sized_for(2_000)?);
/// union.insert("apple");
/// large.insert("banana");
/// let error = union.union_all([&union.clone(), &large]).unwrap_err();
/// assert_eq!((error.left, error.right), (None, 1));
/// assert!(matches!(error.error, MergeError::BlocksMismatch { left: 20, right: 40, .. }));
/// assert_eq!(
///     error.to_string(),
///     "input 1: cannot merge a filter of 20 blocks with one of 40: size both for the same keys"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergeAllError {
    /// Which input, from 0, is the left side of the error; none if that is the receiving filter.
    pub left: Option<usize>,
    /// Which input, from 0, is the right side, or was the one memory did not suffice for.
    pub right: usize,
    /// What disagrees.
    pub error: MergeError,
}

impl Display for MergeAllError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.left {
            None => write!(f, "input {}: {}", self.right, self.error),
            Some(left) => write!(f, "inputs {left} and {}: {}", self.right, self.error),
        }
    }
}

impl core::error::Error for MergeAllError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}
