//! Errors of reading, sizing and merging classical filters, and the range checks of a header's
//! numbers.

use alloc::format;
use alloc::string::String;

use blocked_bloom::AllocError;

/// Why a classical filter could not be read, sized or merged. Offsets count from its first byte.
///
/// ```
/// # #[cfg(feature = "guava")] {
/// use blocked_bloom_formats::{ClassicalError, guava::GuavaFilter};
/// let error = GuavaFilter::from_bytes([1, 5, 0, 0, 0, 2, 0, 0]).unwrap_err();
/// assert_eq!(error, ClassicalError::Length { found: 8, expected: 22 });
/// assert_eq!(error.to_string(), "8 bytes in all, expected 22: the filter is truncated");
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClassicalError {
    /// The bytes end within the header.
    Truncated {
        /// Offset of the end.
        offset: u64,
    },
    /// A number in the header, or an argument, is out of range.
    OutOfRange {
        /// Offset in the header. `None` for an argument.
        offset: Option<u64>,
        /// `strategy`, `version`, `probes`, `words`, `items` or `bits`.
        field: &'static str,
        /// The number.
        found: i64,
        /// The minimum.
        least: i64,
        /// The maximum.
        most: i64,
    },
    /// The length does not match the header.
    Length {
        /// Actual length in bytes.
        found: u64,
        /// Length according to the header.
        expected: u64,
    },
    /// The false-positive rate is not above 0 and below 1.
    RateOutOfRange {
        /// The false-positive rate given.
        rate: f64,
    },
    /// The rate is below the lowest for which Cassandra has a size.
    RateTooLow {
        /// The false-positive rate given.
        rate: f64,
        /// The lowest.
        least: f64,
    },
    /// The other filter has another strategy, version, seed or layout, or another number of probes
    /// or words.
    Mismatch {
        /// The field that differs.
        field: &'static str,
        /// The other filter's value.
        found: i64,
        /// This filter's value.
        expected: i64,
    },
    /// Allocating the words of a new filter failed.
    Alloc(AllocError),
}

blocked_bloom::impl_error!(ClassicalError, Alloc(AllocError);
    Self::Truncated { offset } => ("byte {offset}: the bytes end within the header: truncated"),
    Self::OutOfRange { offset, field, found, least, most } => (
        "{}{field} {found}, expected {least} to {most}",
        offset.map_or_else(String::new, |offset| format!("byte {offset}: "))
    ),
    Self::Length { found, expected } => (
        "{found} bytes in all, expected {expected}: the filter is {}",
        if found < expected { "truncated" } else { "followed by other bytes" }
    ),
    Self::RateOutOfRange { rate } => (
        "false-positive rate {rate:?}: give a number above 0 and below 1"
    ),
    Self::RateTooLow { rate, least } => ("false-positive rate {rate:e}: give at least {least:e}"),
    Self::Mismatch { field, found, expected } => (
        "{field} {found} of the filter to merge, expected {expected}"
    ),
);

/// Checks that a rate is above 0 and below 1.
#[cfg(any(feature = "cassandra", feature = "guava", feature = "spark"))]
pub(crate) fn check_rate(rate: f64) -> Result<(), ClassicalError> {
    match rate > 0.0 && rate < 1.0 {
        true => Ok(()),
        false => Err(ClassicalError::RateOutOfRange { rate }),
    }
}

/// The bytes of a stored filter, to read the numbers of its header.
#[cfg(any(feature = "cassandra", feature = "guava", feature = "spark"))]
#[derive(Clone, Copy)]
pub(crate) struct Fields<'b>(pub(crate) &'b [u8]);

#[cfg(any(feature = "cassandra", feature = "guava", feature = "spark"))]
impl Fields<'_> {
    #[cfg(feature = "cassandra")]
    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    fn bytes<const N: usize>(self, at: usize) -> Result<[u8; N], ClassicalError> {
        let bytes = self.0.get(at..).and_then(<[u8]>::first_chunk);
        bytes.copied().ok_or(ClassicalError::Truncated { offset: self.0.len() as u64 })
    }

    /// Returns the byte at an offset.
    #[cfg(feature = "guava")]
    pub(crate) fn byte(self, at: usize) -> Result<u8, ClassicalError> {
        let [byte] = self.bytes(at)?;
        Ok(byte)
    }

    /// Returns the signed big-endian number of four bytes at an offset.
    pub(crate) fn number(self, at: usize) -> Result<Number, ClassicalError> {
        Ok(Number::stored(at as u64, i32::from_be_bytes(self.bytes(at)?)))
    }
}

/// A number of a header, or an argument.
#[derive(Clone, Copy)]
pub(crate) struct Number {
    offset: Option<u64>,
    value: i64,
}

impl Number {
    /// Creates a number that the header contains at this offset.
    #[cfg(any(feature = "cassandra", feature = "guava", feature = "spark"))]
    pub(crate) fn stored(offset: u64, value: impl Into<i64>) -> Self {
        Number { offset: Some(offset), value: value.into() }
    }

    /// Creates a number from an argument. Values above [`i64::MAX`] become that value.
    pub(crate) fn given(value: impl TryInto<i64>) -> Self {
        Number { offset: None, value: value.try_into().unwrap_or(i64::MAX) }
    }

    /// Returns the number without a check.
    #[cfg(feature = "spark")]
    pub(crate) fn value(self) -> i64 {
        self.value
    }

    /// Returns the number if it is from `least` to `most`.
    pub(crate) fn check_range(
        self,
        field: &'static str,
        least: i64,
        most: i64,
    ) -> Result<i64, ClassicalError> {
        let Number { offset, value: found } = self;
        match (least..=most).contains(&found) {
            true => Ok(found),
            false => Err(ClassicalError::OutOfRange { offset, field, found, least, most }),
        }
    }
}
