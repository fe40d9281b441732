//! Errors of building and opening filters. Each carries the value and the limit.

use blocked_bloom::AllocError;
use blocked_bloom::parts::HeaderError;

/// Why a filter could not be built or opened. Rejected bytes must not be used to answer "absent".
///
/// ```
/// use blocked_bloom_range::{RangeError, RangeOptions};
/// let mut builder = RangeOptions::new(16.0).builder();
/// builder.insert(7_u64)?;
/// assert_eq!(builder.insert(5_u64), Err(RangeError::Unsorted { position: 1 }));
/// # Ok::<(), RangeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RangeError {
    /// The bits per key are out of range.
    BitsPerKey {
        /// The value given.
        bits_per_key: f64,
    },
    /// The unit has too many bits.
    Unit {
        /// The value given.
        bits: u32,
    },
    /// A key is less than the key before it.
    Unsorted {
        /// Position of the key: the number of keys inserted before it.
        position: u64,
    },
    /// The keys lie in too many units for one filter.
    TooManyKeys {
        /// Number of units that contain a key.
        units: u64,
        /// The maximum.
        limit: u64,
    },
    /// An allocation failed.
    Alloc(AllocError),
    /// The bytes are not a filter, or are damaged.
    Header(HeaderError),
}

blocked_bloom::impl_error!(RangeError, Alloc(AllocError), Header(HeaderError);
    Self::BitsPerKey { bits_per_key } => ("{bits_per_key:?} bits per key: give 4 to 32"),
    Self::Unit { bits } => ("a unit of {bits} bits: give at most 127"),
    Self::Unsorted { position } => (
        "key {position} is less than the key before it: sort the keys in byte order"
    ),
    Self::TooManyKeys { units, limit } => (
        "keys in {units} units: give at most {limit}, or split them among several filters"
    ),
);
