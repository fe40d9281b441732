//! Errors of building growing filters, inserting into them and merging them.

use blocked_bloom::{AllocError, KeyError, KeyHash, ParamsError};

/// Why a growing filter could not be built, inserted into or merged. Its keys are all still
/// present.
///
/// ```
/// use blocked_bloom_scalable::{ScalableError, ScalableOptions};
/// let error = ScalableOptions::new(0.01, 1_000).with_growth(1).build().unwrap_err();
/// assert!(matches!(error, ScalableError::GrowthOutOfRange { growth: 1 }));
/// assert_eq!(error.to_string(), "growth factor 1: give 2 to 16");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ScalableError {
    /// The false-positive rate is not between 0 and 1, or no next link can keep it.
    Params(ParamsError),
    /// Allocating the next link failed. The key was not inserted.
    Alloc(AllocError),
    /// The filter takes caller-supplied hashes, but was given a key. Or the first link contains
    /// prefixes, which growing filters do not support. Nothing was inserted.
    Key(KeyError),
    /// The growth factor is outside 2 to 16.
    GrowthOutOfRange {
        /// The value given.
        growth: u32,
    },
    /// The tightening ratio is outside 0.05 to 0.95.
    TighteningOutOfRange {
        /// The value given.
        tightening: f64,
    },
    /// Filters with different hashes or seeds cannot be merged.
    HashMismatch {
        /// Hash of the receiving filter.
        left: KeyHash,
        /// Hash of the other filter.
        right: KeyHash,
    },
}

blocked_bloom::impl_error!(ScalableError, Params(ParamsError), Alloc(AllocError), Key(KeyError);
    Self::GrowthOutOfRange { growth } => ("growth factor {growth}: give 2 to 16"),
    Self::TighteningOutOfRange { tightening } => (
        "tightening ratio {tightening:?}: give 0.05 to 0.95"
    ),
    Self::HashMismatch { left, right } => (
        "cannot merge filters with different hashes: {left} and {right}"
    ),
);
