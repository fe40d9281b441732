//! Errors of loading dumps of RedisBloom, and of creating filters and inserting into them.

use alloc::format;
use alloc::string::{String, ToString};

use blocked_bloom::AllocError;

/// Why a dump of RedisBloom could not be loaded, or a filter not created or inserted into.
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
    /// The header is too short for its links, or a file ends within a reply.
    Truncated {
        /// Offset of the end.
        offset: u64,
        /// Minimum offset of the end.
        expected: u64,
    },
    /// The header is too long for its links, or other bytes follow a file's last reply.
    Trailing {
        /// Offset of the end.
        offset: u64,
        /// Expected offset of the end.
        expected: u64,
    },
    /// A number in the header, or an argument, is out of range or contradicts another.
    OutOfRange {
        /// Offset in the header. `None` for an argument, and for the capacity of a loaded link that
        /// is checked when the chain grows.
        offset: Option<u64>,
        /// RedisBloom's name of the number.
        field: &'static str,
        /// The number.
        found: u64,
        /// The minimum.
        least: u64,
        /// The maximum.
        most: u64,
    },
    /// The error rate or the bits per entry are invalid.
    Rate {
        /// Offset in the header. `None` for an argument.
        offset: Option<u64>,
        /// `error` or `bpe`.
        field: &'static str,
        /// The number.
        found: f64,
    },
    /// A reply does not begin where the previous one ended.
    Order {
        /// The iterator of the reply: the offset of its end plus one.
        iterator: i64,
        /// The expected iterator, from the lengths of this reply and the previous ones.
        expected: i64,
    },
    /// A reply extends past the end of a link.
    SpansLinks {
        /// The iterator of the reply.
        iterator: i64,
        /// Length of the reply in bytes.
        found: u64,
        /// Number of bytes missing in the link.
        most: u64,
    },
    /// The replies have fewer bytes than the header requires.
    Missing {
        /// Number of bytes, without the header.
        found: u64,
        /// Number of bytes according to the header.
        expected: u64,
    },
    /// The filter is full and was reserved with `NONSCALING`. Nothing was inserted.
    Full {
        /// Number of keys that the filter is sized for.
        capacity: u64,
    },
    /// Allocating the bits failed.
    Alloc(AllocError),
}

/// Returns the offset of a number in the header as text; nothing for an argument.
fn place(offset: Option<u64>) -> String {
    offset.map_or_else(String::new, |offset| format!("byte {offset} of the header: "))
}

/// Returns a range as text; the number alone if there is only one.
fn range(least: u64, most: u64) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
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

blocked_bloom::impl_error!(RedisError, Alloc(AllocError);
    Self::Truncated { offset, expected } => (
        "the bytes end at {offset}, expected {expected} or more: truncated"
    ),
    Self::Trailing { offset, expected } => (
        "the bytes end at {offset}, expected {expected}: other bytes follow"
    ),
    Self::OutOfRange { offset, field, found, least, most } => (
        "{}{field} {found}, expected {}", place(*offset), range(*least, *most)
    ),
    Self::Rate { offset, field, found } => (
        "{}{field} {found:?}, expected a number above 0 and below {}",
        place(*offset), if *field == "error" { "1" } else { "1552" }
    ),
    Self::Order { iterator, expected } => (
        "a reply of iterator {iterator}, expected {expected}: missing or out of order"
    ),
    Self::SpansLinks { iterator, found, most } => (
        "the reply of iterator {iterator} has {found} bytes, but its link needs only {most}"
    ),
    Self::Missing { found, expected } => (
        "{found} bytes of bits, expected {expected}: replies are missing"
    ),
    Self::Full { capacity } => (
        "the filter is full with {capacity} keys and does not scale: reserve a larger one"
    ),
);
