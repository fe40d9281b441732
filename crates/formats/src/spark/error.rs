//! Why Spark's bytes cannot be read, or a filter cannot be sized or merged.

use core::fmt::{self, Display, Formatter};

use blocked_bloom::AllocError;

/// Why a filter of Spark's cannot be read, sized or merged. Offsets count from its first byte.
///
/// ```
/// use blocked_bloom_formats::spark::{SparkError, SparkFilterRef};
/// let error = SparkFilterRef::from_bytes(&[0, 0, 0, 3]).unwrap_err();
/// assert_eq!(error.to_string(), "byte 0: version 3, expected 1 to 2");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SparkError {
    /// The bytes end within the header.
    Truncated {
        /// Where they end.
        offset: u64,
    },
    /// A number, of the header or given, is out of its range.
    OutOfRange {
        /// Where the header has it; 0 for what it does not have.
        offset: u64,
        /// `version`, `hash functions`, `words`, `items` or `bits`.
        field: &'static str,
        /// The number.
        found: i64,
        /// The least that is allowed.
        least: i64,
        /// The most that is allowed.
        most: i64,
    },
    /// The length is not that of the header and its words.
    Length {
        /// Bytes in all.
        found: u64,
        /// Bytes by the header.
        expected: u64,
    },
    /// Not above 0 and below 1.
    RateOutOfRange {
        /// The false-positive rate given.
        rate: f64,
    },
    /// The other filter has another version or seed, or other numbers of hash functions or words.
    Mismatch {
        /// Which of these.
        field: &'static str,
        /// The other's.
        found: i64,
        /// The filter's.
        expected: i64,
    },
    /// No memory for the words of a new filter.
    Alloc(AllocError),
}

impl Display for SparkError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { offset } => {
                write!(f, "byte {offset}: the filter ends within its header")
            }
            Self::OutOfRange { offset, field, found, least, most } => {
                write!(f, "byte {offset}: {field} {found}, expected {least} to {most}")
            }
            Self::Length { found, expected } => {
                let what = if found < expected { "truncated" } else { "followed by other bytes" };
                write!(f, "{found} bytes in all, expected {expected}: the filter is {what}")
            }
            Self::RateOutOfRange { rate } => {
                write!(f, "false-positive rate {rate}: give a number above 0 and below 1")
            }
            Self::Mismatch { field, found, expected } => {
                write!(f, "{field} {found} of the filter to be added, expected {expected}")
            }
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for SparkError {}

impl From<AllocError> for SparkError {
    fn from(error: AllocError) -> Self {
        SparkError::Alloc(error)
    }
}
