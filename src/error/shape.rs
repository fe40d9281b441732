//! Errors of operations that filters of some shapes cannot have: folding.

use core::fmt::{self, Display, Formatter};

use super::AllocError;

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
