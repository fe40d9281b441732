//! Why filters of partitions and of links cannot be built.

use core::fmt::{self, Display, Formatter};

use super::{AllocError, BuildError, KeyError, ParamsError, error};
use crate::hash::KeyHash;

/// Why a partitioned filter could not be built. What was stored of it must not be used.
///
/// ```
/// use blocked_bloom::{FilterOptions, PartitionBuildError, PartitionedFilterBuilder, Sizing};
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
/// let mut builder = PartitionedFilterBuilder::new(options, 4096)?;
/// builder.insert("banana")?;
/// let error = builder.insert("apple").unwrap_err();
/// assert!(matches!(error, PartitionBuildError::Unsorted { position: 1 }));
/// # Ok::<(), PartitionBuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PartitionBuildError {
    /// A partition could not be sized or built.
    Build(BuildError),
    /// The options are for the caller's hashes: partitions are found by keys.
    Key(KeyError),
    /// The options size a whole filter by its bytes, so no number of keys fills a partition.
    SizedByBytes {
        /// The bytes of the sizing.
        bytes: u64,
    },
    /// Not even a filter of one key fits a partition.
    TooFewBytes {
        /// Target size of a partition.
        bytes: u64,
        /// Size of a stored filter of one key.
        smallest: u64,
    },
    /// A key came after a greater one. It was not added; the builder can go on.
    Unsorted {
        /// Which, counted from 0.
        position: u64,
    },
    /// More than 2^32 - 1 partitions.
    TooManyPartitions,
    /// The builder could not finish a partition before, whose keys are lost.
    AlreadyFailed,
}

impl Display for PartitionBuildError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build(error) => error.fmt(f),
            Self::Key(error) => write!(f, "partitions are found by keys: {error}"),
            Self::SizedByBytes { bytes } => write!(
                f,
                "partitions sized by at most {bytes} bytes never fill up: give bits per key or a false-positive rate"
            ),
            Self::TooFewBytes { bytes, smallest } => {
                write!(f, "partitions of {bytes} bytes: a filter of one key takes {smallest}")
            }
            Self::Unsorted { position } => write!(
                f,
                "key {position} is less than the one before: add keys in ascending order of bytes"
            ),
            Self::TooManyPartitions => {
                write!(f, "more than {} partitions: make them larger", u32::MAX)
            }
            Self::AlreadyFailed => {
                write!(f, "the builder has failed before: build the filter again")
            }
        }
    }
}

error!(PartitionBuildError, Build(BuildError), Key(KeyError));

impl From<AllocError> for PartitionBuildError {
    fn from(error: AllocError) -> Self {
        Self::Build(error.into())
    }
}

/// Why a growing filter cannot be made, added to or merged. Nothing was lost: what was in it still is.
///
/// ```
/// use blocked_bloom::{ScalableError, ScalableOptions};
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
    /// A key was given to a filter of the caller's hashes. It was not added.
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

error!(ScalableError, Params(ParamsError), Alloc(AllocError), Key(KeyError));
