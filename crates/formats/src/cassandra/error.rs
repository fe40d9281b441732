//! Errors of determining the layout of a file, and of serializing a key.

use alloc::string::String;
/// Why the layout of a `Filter.db` cannot be determined from its name or version, or a key cannot
/// be serialized. Invalid bytes are a [`ClassicalError`](crate::ClassicalError).
///
/// ```
/// use blocked_bloom_formats::cassandra::{CassandraError, Layout};
/// let error = Layout::from_version("zz").unwrap_err();
/// assert_eq!(error, CassandraError::Version { found: "zz".to_owned() });
/// assert!(error.to_string().starts_with("version \"zz\" is unknown"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CassandraError {
    /// The version is unknown.
    Version {
        /// The version.
        found: String,
    },
    /// The file name does not contain a version.
    FileName {
        /// The name, without its path.
        found: String,
    },
    /// A component of a composite key is too long for its 16-bit length.
    ComponentTooLong {
        /// Index of the component, from 0.
        index: usize,
        /// Length of the component in bytes.
        bytes: usize,
    },
}

blocked_bloom::impl_error!(CassandraError;
    Self::Version { found } => (
        "version {found:?} is unknown (known: \"ic\" to \"oa\", and \"da\" of bti): name the \
         layout"
    ),
    Self::FileName { found } => (
        "{found:?} is not the name of a filter: expected a name such as \"nb-1-big-Filter.db\" or \
         \"Keyspace-table-jb-1-Filter.db\""
    ),
    Self::ComponentTooLong { index, bytes } => (
        "component {index} of the key has {bytes} bytes: give at most {}", u16::MAX
    ),
);
