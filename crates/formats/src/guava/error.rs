//! Why Guava's bytes cannot be read, or a filter cannot be sized or merged.

use core::fmt::{self, Display, Formatter};

use blocked_bloom::AllocError;

/// Why a filter of Guava's cannot be read, sized or merged. Offsets count from its first byte.
///
/// ```
/// use blocked_bloom_formats::guava::{GuavaError, GuavaFilterRef};
/// let error = GuavaFilterRef::from_bytes(&[1, 5, 0, 0, 0, 2, 0, 0]).unwrap_err();
/// assert_eq!(error, GuavaError::Length { found: 8, expected: 22 });
/// assert_eq!(error.to_string(), "8 bytes in all, expected 22: the filter is truncated");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum GuavaError {
    /// The bytes end within the header.
    Truncated {
        /// Where they end.
        offset: u64,
    },
    /// A number, of the header or given, is out of its range.
    OutOfRange {
        /// Where the header has it.
        offset: u64,
        /// `strategy`, `hash functions` or `words`.
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
    /// The other filter has another strategy, or other numbers of hash functions or words.
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

impl Display for GuavaError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { offset } => {
                write!(f, "byte {offset}: the filter ends within its header of 6 bytes")
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

impl core::error::Error for GuavaError {}

impl From<AllocError> for GuavaError {
    fn from(error: AllocError) -> Self {
        GuavaError::Alloc(error)
    }
}
