//! The identity of a stored filter.

use core::fmt::{self, Display, Formatter};

/// Identifies one stored filter of a table or partition.
/// [`TableFilter::identity`](crate::TableFilter::identity) returns it.
///
/// A slot of a resident set stores the identity of its filter and rejects other filters, which
/// would answer "absent" for keys that the table contains. With the feature `serde`, an engine can
/// store the identity in its manifest.
///
/// ```
/// use blocked_bloom::{FilterOptions, Sizing};
/// use blocked_bloom_lsm::{FilterIdentity, TableFilter};
/// let filter = FilterOptions::new(Sizing::BitsPerKey(10.0)).empty_filter(100)?;
/// let stored = filter.to_bytes();
/// let checksum = u64::from_le_bytes(stored[56..64].try_into()?);
/// let filter = TableFilter::from(filter);
/// assert_eq!(filter.identity(), FilterIdentity::HeaderChecksum(checksum));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum FilterIdentity {
    /// The checksum at the end of the stored header (bytes 56 to 63). It also covers the checksum
    /// of the data. [`PartitionLocation`](crate::PartitionLocation) contains the checksum of a
    /// partition.
    HeaderChecksum(u64),
    /// The number of bytes of a filter without a header: a filter block of RocksDB. It does not
    /// tell apart filters of the same length, so the engine must make sure that it reads the right
    /// one.
    Length(u64),
}

impl Display for FilterIdentity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::HeaderChecksum(checksum) => {
                write!(f, "a filter with header checksum {checksum:016x}")
            }
            Self::Length(bytes) => write!(f, "a filter of {bytes} bytes without a header"),
        }
    }
}
