//! What tells one stored filter from every other.

use core::fmt::{self, Display, Formatter};

/// Which stored filter something is: that of a table or partition, and of no other.
///
/// Whatever holds a place for a filter (a slot of a resident set, an entry of a manifest) keeps it,
/// and refuses filters that have another: they would answer "absent" for keys that are there.
/// [`TableFilter::identity`](crate::TableFilter::identity) gives it.
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
    /// The checksum that ends the header of the stored form, its bytes 56 to 63. It covers the
    /// checksum of what follows. [`PartitionLocation`](crate::PartitionLocation) has that of a
    /// partition.
    HeaderChecksum(u64),
    /// The bytes of a filter whose kind has no header: a filter block of RocksDB. Others of as many
    /// bytes are not told apart, so that the engine answers for whose they are.
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
