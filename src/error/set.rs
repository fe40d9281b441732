//! Errors of asking many filters at once.

use core::fmt::{self, Display, Formatter};

use super::AllocError;
use crate::hash::KeyHash;

/// Why filters cannot be asked together.
///
/// ```
/// use blocked_bloom::{BloomFilterRef, FilterSet, FilterSetError, KeyHash};
/// let filters = [0, 0, 7].map(|seed| BloomFilterRef::pass_all(KeyHash::Xxh3 { seed }));
/// let error = FilterSet::new(KeyHash::default(), filters).unwrap_err();
/// assert!(matches!(error, FilterSetError::HashMismatch { index: 2, .. }));
/// assert_eq!(
///     error.to_string(),
///     "filter 2: found XXH3-64 with seed 7, expected XXH3-64 with seed 0: put a pass-all filter in its place"
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterSetError {
    /// A filter was built with another hash or seed than the set will be asked with.
    HashMismatch {
        /// Which filter, from 0.
        index: usize,
        /// Identity of the filter.
        found: KeyHash,
        /// Identity of the set.
        expected: KeyHash,
    },
    /// More than [`FilterSet::MAX_FILTERS`](crate::FilterSet::MAX_FILTERS).
    TooManyFilters {
        /// The limit.
        limit: usize,
    },
    /// No memory for the list of filters.
    Alloc(AllocError),
}

impl Display for FilterSetError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::HashMismatch { index, found, expected } => write!(
                f,
                "filter {index}: found {found}, expected {expected}: put a pass-all filter in its place"
            ),
            Self::TooManyFilters { limit } => {
                write!(f, "more than {limit} filters: make several sets")
            }
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for FilterSetError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Alloc(error) => Some(error),
            _ => None,
        }
    }
}

impl From<AllocError> for FilterSetError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

/// Why a matrix of filters and keys cannot be used as asked. The matrix is as it was.
///
/// ```
/// use blocked_bloom::{BitMatrix, FilterSet, KeyHash, MatrixError};
/// let set = FilterSet::new(KeyHash::default(), [] as [blocked_bloom::BloomFilterRef; 0])?;
/// let mut matrix = BitMatrix::new();
/// matrix.clear(2, 128)?;
/// let error = set.retain_hashes(&[1, 2, 3], &mut matrix).unwrap_err();
/// assert!(matches!(error, MatrixError::Shape { filters: 2, keys: 128, .. }));
/// assert_eq!(
///     error.to_string(),
///     "a matrix of 2 filters and 128 keys, expected 0 and 3: clear it for this set and batch"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatrixError {
    /// The matrix is not of the set's filters and the batch's keys.
    Shape {
        /// Filters of the matrix.
        filters: usize,
        /// Keys of the matrix.
        keys: usize,
        /// Filters of the set.
        expected_filters: usize,
        /// Keys of the batch.
        expected_keys: usize,
    },
    /// No such filter in the matrix.
    Filter {
        /// What was given.
        filter: usize,
        /// Filters of the matrix.
        filters: usize,
    },
    /// A range that ends before it starts, or past the last key.
    Keys {
        /// Where the range starts.
        start: usize,
        /// Where it ends.
        end: usize,
        /// Keys of the matrix.
        keys: usize,
    },
    /// No memory for so many filters and keys.
    Alloc(AllocError),
}

impl Display for MatrixError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape { filters, keys, expected_filters, expected_keys } => write!(
                f,
                "a matrix of {filters} filters and {keys} keys, expected {expected_filters} and {expected_keys}: \
                 clear it for this set and batch"
            ),
            Self::Filter { filter, filters } => {
                write!(f, "filter {filter} in a matrix of {filters}: count from 0")
            }
            Self::Keys { start, end, keys } => {
                write!(
                    f,
                    "keys {start} .. {end} in a matrix of {keys}: give a range within 0 .. {keys}"
                )
            }
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for MatrixError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Alloc(error) => Some(error),
            _ => None,
        }
    }
}

impl From<AllocError> for MatrixError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}
