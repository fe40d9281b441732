//! Why a dump of RedisBloom cannot be loaded, or a filter cannot be made or added to.

use core::fmt::{self, Display, Formatter};

use blocked_bloom::AllocError;

/// Why a dump of RedisBloom cannot be loaded, or a filter cannot be made or added to.
///
/// ```
/// use blocked_bloom_formats::redis::{RedisError, RedisFilter};
/// let mut filter = RedisFilter::new(1, 0.01, None)?;
/// filter.insert("apple")?;
/// assert_eq!(filter.insert("banana"), Err(RedisError::Full { capacity: 1 }));
/// assert!(!filter.contains("banana"));
/// # Ok::<(), RedisError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RedisError {
    /// The header's length is not that of its links, or the bytes of a file end within a reply.
    Truncated {
        /// Where the bytes end.
        offset: u64,
        /// Where they should, at least.
        expected: u64,
    },
    /// The header is longer than its links, or a file has something after its last reply.
    Trailing {
        /// Where the bytes end.
        offset: u64,
        /// Where they should.
        expected: u64,
    },
    /// A number, of the header or given, is out of its range, or contradicts another.
    OutOfRange {
        /// Where the header has it, from the header's first byte. None for an argument, or for the
        /// capacity of a loaded link that is checked when the chain grows.
        offset: Option<u64>,
        /// Its name, as in RedisBloom.
        field: &'static str,
        /// The number.
        found: u64,
        /// The least that is allowed.
        least: u64,
        /// The most that is allowed.
        most: u64,
    },
    /// An error rate, or bits per entry, that no filter has.
    Rate {
        /// Where the header has it, from the header's first byte. None for an argument.
        offset: Option<u64>,
        /// `error` or `bpe`.
        field: &'static str,
        /// The number.
        found: f64,
    },
    /// A reply does not begin where the one before ended.
    Order {
        /// The iterator of the reply: one more than where it ends.
        iterator: i64,
        /// The one that the reply should have, by its length and those before.
        expected: i64,
    },
    /// A reply goes beyond the end of a link.
    AcrossLinks {
        /// The iterator of the reply.
        iterator: i64,
        /// Bytes of the reply.
        found: u64,
        /// Bytes that the link has left.
        most: u64,
    },
    /// The replies are fewer bytes than the header says.
    Missing {
        /// Bytes, without the header.
        found: u64,
        /// Bytes by the header.
        expected: u64,
    },
    /// The filter was reserved not to scale, and holds as many keys as it was made for. Nothing was
    /// added.
    Full {
        /// Keys that it was made for.
        capacity: u64,
    },
    /// No memory for the bits.
    Alloc(AllocError),
}

/// Where the header has a number; nothing for one that was given.
struct Place(Option<u64>);

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some(offset) => write!(f, "byte {offset} of the header: "),
        }
    }
}

/// Checks that a number is from `least` to `most`.
pub(super) fn check_range(
    offset: Option<u64>,
    field: &'static str,
    found: u64,
    least: u64,
    most: u64,
) -> Result<(), RedisError> {
    match (least..=most).contains(&found) {
        true => Ok(()),
        false => Err(RedisError::OutOfRange { offset, field, found, least, most }),
    }
}

impl Display for RedisError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { offset, expected } => {
                write!(f, "the bytes end at {offset}, expected {expected} or more: truncated")
            }
            Self::Trailing { offset, expected } => {
                write!(f, "the bytes end at {offset}, expected {expected}: other bytes follow")
            }
            Self::OutOfRange { offset, field, found, least, most } if least == most => {
                write!(f, "{}{field} {found}, expected {least}", Place(*offset))
            }
            Self::OutOfRange { offset, field, found, least, most } => {
                write!(f, "{}{field} {found}, expected {least} to {most}", Place(*offset))
            }
            Self::Rate { offset, field, found } => write!(
                f,
                "{}{field} {found}, expected a number above 0 and below {}",
                Place(*offset),
                if *field == "error" { "1" } else { "1552" }
            ),
            Self::Order { iterator, expected } => {
                write!(
                    f,
                    "a reply of iterator {iterator}, expected {expected}: missing or out of order"
                )
            }
            Self::AcrossLinks { iterator, found, most } => {
                write!(
                    f,
                    "the reply of iterator {iterator} has {found} bytes, its link needs {most} more"
                )
            }
            Self::Missing { found, expected } => {
                write!(f, "{found} bytes of bits, expected {expected}: replies are missing")
            }
            Self::Full { capacity } => {
                write!(f, "{capacity} keys, as many as reserved, and the filter does not scale")
            }
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for RedisError {}

impl From<AllocError> for RedisError {
    fn from(error: AllocError) -> Self {
        RedisError::Alloc(error)
    }
}
