//! Errors of building and opening filters. Each carries the value and the limit.

use blocked_bloom::parts::{HeaderError, UnmixedHashes};
use blocked_bloom::{AllocError, KeyError};

/// Why a filter could not be built or opened. Rejected bytes must not be used to answer "absent".
///
/// ```
/// use blocked_bloom_ribbon::{RibbonError, RibbonOptions};
/// let error = RibbonOptions::new(0.75).builder().finish().unwrap_err();
/// assert_eq!(error, RibbonError::Rate { rate: 0.75 });
/// assert_eq!(error.to_string(), "false-positive rate 0.75: give 2^-32 (2.33e-10) to 0.5");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RibbonError {
    /// The false-positive rate is out of range.
    Rate {
        /// The value given.
        rate: f64,
    },
    /// The bits per key are below 0.5. RocksDB writes no filter in that case.
    BitsPerKey {
        /// The value given.
        bits_per_key: f64,
    },
    /// The number of keys is too large for one filter.
    TooManyKeys {
        /// Number of inserted keys.
        keys: u64,
        /// The maximum.
        limit: u64,
    },
    /// The caller-supplied hashes are not well mixed.
    UnmixedHashes(UnmixedHashes),
    /// A shard has too many hashes, or no seed solves it: the hashes are not well mixed.
    NoSeed {
        /// Index of the shard.
        shard: u32,
        /// Number of distinct hashes in it.
        hashes: u64,
    },
    /// An allocation failed.
    Alloc(AllocError),
    /// The builder takes caller-supplied hashes, but was given a key.
    Key(KeyError),
    /// The hashes in memory changed after they were inserted: memory is faulty or was overwritten.
    HashesChanged {
        /// Sum of the mixed hashes when they were inserted.
        expected: u64,
        /// Sum of the mixed hashes now.
        found: u64,
    },
    /// The finished filter answers "absent" for inserted keys.
    KeysMissing {
        /// Number of such keys.
        missing: u64,
        /// Number of inserted keys.
        keys: u64,
    },
    /// The bytes are not a filter, are damaged, or use another hash.
    Header(HeaderError),
    /// A shard does not begin where the previous one ends, or has an invalid shape.
    Shard {
        /// Offset of its directory entry in bytes.
        offset: u64,
        /// Field of the entry.
        field: &'static str,
        /// Value of the field.
        found: u64,
        /// Expected value, or the maximum.
        expected: u64,
    },
}

impl RibbonError {
    /// Returns the byte offset of the error, for errors of stored bytes.
    pub fn offset(&self) -> Option<u64> {
        match self {
            Self::Header(error) => Some(error.offset()),
            Self::Shard { offset, .. } => Some(*offset),
            _ => None,
        }
    }
}

blocked_bloom::impl_error!(
    RibbonError,
    UnmixedHashes(UnmixedHashes),
    Alloc(AllocError),
    Key(KeyError),
    Header(HeaderError);
    Self::Rate { rate } => ("false-positive rate {rate:?}: give 2^-32 (2.33e-10) to 0.5"),
    Self::BitsPerKey { bits_per_key } => (
        "{bits_per_key:?} bits per key: give 0.5 or more, or write no filter"
    ),
    Self::TooManyKeys { keys, limit } => (
        "{keys} keys: give at most {limit}, or split the keys among several filters"
    ),
    Self::NoSeed { shard, hashes } => (
        "no seed solves shard {shard} with {hashes} hashes: mix all 64 bits of the hashes"
    ),
    Self::HashesChanged { expected, found } => (
        "hashes changed in memory before they were used: sum {found:#018x}, expected \
         {expected:#018x}; build the filter again"
    ),
    Self::KeysMissing { missing, keys } => (
        "the finished filter lacks {missing} of {keys} keys: build it again"
    ),
    Self::Shard { offset, field, found, expected } => (
        "offset {offset}: {field} {found}, expected {expected}"
    ),
);
