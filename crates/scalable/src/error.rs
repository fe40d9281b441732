//! Why a growing filter cannot be made, added to or merged.

use core::fmt::{self, Display, Formatter};

use blocked_bloom::{AllocError, KeyError, KeyHash, ParamsError};

/// Why a growing filter cannot be made, added to or merged. Nothing was lost: what was in it still
/// is.
///
/// ```
/// use blocked_bloom_scalable::{ScalableError, ScalableOptions};
/// let error = ScalableOptions::new(0.01, 1_000).with_growth(1).build().unwrap_err();
/// assert!(matches!(error, ScalableError::GrowthOutOfRange { growth: 1 }));
/// assert_eq!(error.to_string(), "growth by a factor of 1: give 2 to 16");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ScalableError {
    /// The false-positive rate is not above 0 and under 1, or a link that keeps it cannot be sized.
    Params(ParamsError),
    /// No memory for the next link. The key was not added.
    Alloc(AllocError),
    /// A key was given to a filter of the caller's hashes, or the last link holds prefixes, which
    /// no filter of this crate does. It was not added.
    Key(KeyError),
    /// Not 2 to 16.
    GrowthOutOfRange {
        /// The value given.
        growth: u32,
    },
    /// Not 0.05 to 0.95.
    TighteningOutOfRange {
        /// The value given.
        tightening: f64,
    },
    /// Two filters of different hash or seed cannot be merged.
    HashMismatch {
        /// Identity of the receiving filter.
        left: KeyHash,
        /// Identity of the other.
        right: KeyHash,
    },
}

impl Display for ScalableError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Params(error) => error.fmt(f),
            Self::Alloc(error) => error.fmt(f),
            Self::Key(error) => error.fmt(f),
            Self::GrowthOutOfRange { growth } => {
                write!(f, "growth by a factor of {growth}: give 2 to 16")
            }
            Self::TighteningOutOfRange { tightening } => {
                write!(f, "a tightening ratio of {tightening}: give 0.05 to 0.95")
            }
            Self::HashMismatch { left, right } => {
                write!(f, "cannot merge a filter of {left} with one of {right}")
            }
        }
    }
}

blocked_bloom::impl_error!(ScalableError, Params(ParamsError), Alloc(AllocError), Key(KeyError));
