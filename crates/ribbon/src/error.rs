//! Why a filter cannot be built or opened: one variant per cause, each with the value at fault and
//! the limit.

use core::fmt::{self, Display, Formatter};

use blocked_bloom::parts::{HeaderError, UnmixedHashes};
use blocked_bloom::{AllocError, KeyError};

/// Why a filter cannot be built, or bytes are no filter. Bytes that fail must not be used to answer
/// "absent".
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
    /// Not a rate that a filter can have.
    Rate {
        /// The value given.
        rate: f64,
    },
    /// Not 0.5 or more bits per key. Below that RocksDB writes no filter.
    BitsPerKey {
        /// The value given.
        bits_per_key: f64,
    },
    /// More keys than a filter can hold.
    TooManyKeys {
        /// How many were added.
        keys: u64,
        /// The most.
        limit: u64,
    },
    /// The hashes that the caller supplied are not well mixed.
    UnmixedHashes(UnmixedHashes),
    /// A shard has more hashes than fit it, or cannot be solved under any seed: they are not well
    /// mixed.
    NoSeed {
        /// The shard.
        shard: u32,
        /// Different hashes in it.
        hashes: u64,
    },
    /// Memory ran out.
    Alloc(AllocError),
    /// Keys were given to a builder that takes hashes.
    Key(KeyError),
    /// The hashes in memory are no longer those that were added: memory is failing, or was
    /// overwritten.
    HashesChanged {
        /// Sum of the mixed hashes as they were added.
        expected: u64,
        /// The same of those in memory.
        found: u64,
    },
    /// The finished filter says that keys are absent which were added to it.
    KeysMissing {
        /// How many.
        missing: u64,
        /// Of this many.
        keys: u64,
    },
    /// The bytes are not a filter, the header or what follows it is damaged, or the hash is not
    /// the expected one.
    Header(HeaderError),
    /// A shard does not begin where the one before ends, or has a shape that no shard can have.
    Shard {
        /// Offset of its entry of the directory, in bytes.
        offset: u64,
        /// What the entry says.
        field: &'static str,
        /// Its value.
        found: u64,
        /// What it should be, or the most.
        expected: u64,
    },
}

impl Display for RibbonError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Rate { rate } => {
                write!(f, "false-positive rate {rate:?}: give 2^-32 (2.33e-10) to 0.5")
            }
            Self::BitsPerKey { bits_per_key } => {
                write!(f, "{bits_per_key:?} bits per key: give 0.5 or more, or write no filter")
            }
            Self::TooManyKeys { keys, limit } => {
                write!(f, "{keys} keys, at most {limit} fit: partition them over several filters")
            }
            Self::UnmixedHashes(ref error) => error.fmt(f),
            Self::NoSeed { shard, hashes } => write!(
                f,
                "no seed solves shard {shard} of {hashes} hashes: the hashes are not well mixed"
            ),
            Self::Alloc(ref error) => error.fmt(f),
            Self::Key(ref error) => error.fmt(f),
            Self::HashesChanged { expected, found } => write!(
                f,
                "hashes changed in memory before they were used: their sum is {found:#018x}, \
                 expected {expected:#018x}; build the filter again"
            ),
            Self::KeysMissing { missing, keys } => write!(
                f,
                "the finished filter misses {missing} of {keys} keys: do not use it, build it again"
            ),
            Self::Header(ref error) => error.fmt(f),
            Self::Shard { offset, field, found, expected } => {
                write!(f, "offset {offset}: {field} {found}, expected {expected}")
            }
        }
    }
}

impl RibbonError {
    /// Where in the bytes the fault is, for those that are about bytes.
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
    Header(HeaderError)
);
