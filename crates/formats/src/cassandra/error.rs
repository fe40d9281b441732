//! Why a `Filter.db` cannot be read, sized or written.

use alloc::string::String;
use core::fmt::{self, Display, Formatter};

use blocked_bloom::AllocError;

use super::limits::{LOWEST_CHANCE, MAX_HASH_COUNT, MAX_WORDS};

/// Why a `Filter.db` cannot be read, sized or written.
///
/// ```
/// use blocked_bloom_formats::cassandra::{CassandraError, CassandraFilterRef, Layout};
/// let error = CassandraFilterRef::from_bytes(&[0, 0, 0, 5, 0, 0, 0, 2], Layout::Since4).unwrap_err();
/// assert_eq!(error, CassandraError::Length { found: 8, expected: 24 });
/// assert_eq!(error.to_string(), "8 bytes in all, expected 24: the filter is truncated");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CassandraError {
    /// Neither empty nor as long as a header.
    TooShort {
        /// Bytes in all.
        found: u64,
    },
    /// Not 1 to 21 probes per key.
    HashCount {
        /// The number stored or given.
        found: i32,
    },
    /// Not 1 to 2^31 - 1 words.
    WordCount {
        /// The number stored or given.
        found: i32,
    },
    /// The length is not that of the header and its words.
    Length {
        /// Bytes in all.
        found: u64,
        /// Bytes by the header.
        expected: u64,
    },
    /// A version whose layout is not known.
    Version {
        /// The version.
        found: String,
    },
    /// A file name without a version where one should be.
    FileName {
        /// The name, without its path.
        found: String,
    },
    /// Not above 0 and up to 1.
    ChanceOutOfRange {
        /// The false-positive chance given.
        fp_chance: f64,
    },
    /// Lower than the lowest chance that Cassandra has a size for.
    ChanceUnreachable {
        /// The false-positive chance given.
        fp_chance: f64,
    },
    /// More than 2^31 - 1 words.
    TooManyWords {
        /// Words needed, saturating.
        words: u64,
    },
    /// A component of a composite key is longer than its 16-bit length can say.
    ComponentTooLong {
        /// Which component, from 0.
        index: usize,
        /// Its bytes.
        bytes: usize,
    },
    /// No memory for the words of a new filter.
    Alloc(AllocError),
}

impl Display for CassandraError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort { found } => {
                write!(
                    f,
                    "{found} bytes in all, expected 0, or 16 and more: the filter is truncated"
                )
            }
            Self::HashCount { found } => {
                write!(f, "{found} probes per key, expected 1 to {MAX_HASH_COUNT}")
            }
            Self::WordCount { found } => write!(f, "{found} words, expected 1 to {MAX_WORDS}"),
            Self::Length { found, expected } => {
                let what = if found < expected { "truncated" } else { "followed by other bytes" };
                write!(f, "{found} bytes in all, expected {expected}: the filter is {what}")
            }
            Self::Version { found } => write!(
                f,
                "version {found:?} is not known: \"ic\" to \"oa\" and \"da\" of bti are; else name the layout"
            ),
            Self::FileName { found } => write!(
                f,
                "{found:?} names no filter: expected as in \"nb-1-big-Filter.db\" or \"Keyspace-table-jb-1-Filter.db\""
            ),
            Self::ChanceOutOfRange { fp_chance } => {
                write!(f, "false-positive chance {fp_chance}: give a number above 0 and up to 1")
            }
            Self::ChanceUnreachable { fp_chance } => {
                write!(
                    f,
                    "false-positive chance {fp_chance:e}: Cassandra's lowest is {LOWEST_CHANCE:e}"
                )
            }
            Self::TooManyWords { words } => {
                write!(f, "{words} words needed, {MAX_WORDS} allowed: partition the keys")
            }
            Self::ComponentTooLong { index, bytes } => {
                write!(
                    f,
                    "component {index} of the key has {bytes} bytes, at most {} allowed",
                    u16::MAX
                )
            }
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for CassandraError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Alloc(error) => Some(error),
            _ => None,
        }
    }
}

impl From<AllocError> for CassandraError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use core::error::Error;

    use super::{AllocError, CassandraError};

    #[test]
    fn a_lack_of_memory_is_the_source() {
        let error = CassandraError::from(AllocError::new(640));
        assert_eq!(error.to_string(), "no memory for 640 bytes");
        assert_eq!(error.source().unwrap().to_string(), "no memory for 640 bytes");
    }
}
