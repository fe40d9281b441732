//! Why the layout of a file is not known, or a key has no serialized form.

use alloc::string::String;
use core::fmt::{self, Display, Formatter};

/// Why the layout of a `Filter.db` is not known from its name or version, or a key has no
/// serialized form. What is wrong with the bytes is a [`ClassicalError`](crate::ClassicalError).
///
/// ```
/// use blocked_bloom_formats::cassandra::{CassandraError, Layout};
/// let error = Layout::from_version("zz").unwrap_err();
/// assert_eq!(error, CassandraError::Version { found: "zz".to_owned() });
/// assert!(error.to_string().starts_with("version \"zz\" is not known"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CassandraError {
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
    /// A component of a composite key is longer than its 16-bit length can say.
    ComponentTooLong {
        /// Which component, from 0.
        index: usize,
        /// Its bytes.
        bytes: usize,
    },
}

impl Display for CassandraError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { found } => write!(
                f,
                "version {found:?} is not known: \"ic\" to \"oa\" and \"da\" of bti are; else \
                 name the layout"
            ),
            Self::FileName { found } => write!(
                f,
                "{found:?} names no filter: expected as in \"nb-1-big-Filter.db\" or \
                 \"Keyspace-table-jb-1-Filter.db\""
            ),
            Self::ComponentTooLong { index, bytes } => {
                write!(
                    f,
                    "component {index} of the key has {bytes} bytes, at most {} allowed",
                    u16::MAX
                )
            }
        }
    }
}

impl core::error::Error for CassandraError {}
