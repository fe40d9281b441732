//! Why bytes cannot be opened.

use alloc::boxed::Box;
use core::fmt::{self, Display, Formatter};

use super::{AllocError, error};
use crate::hash::KeyHash;
use crate::header::HeaderError;

/// Why bytes are not a filter, an index of partitions or a growing filter. None of these bytes may be used to answer "absent": use a
/// pass-all filter, or none.
///
/// ```
/// use blocked_bloom::header::HeaderError;
/// use blocked_bloom::{BloomFilter, BloomFilterRef, FormatError, KeyHash};
/// let mut bytes = BloomFilter::pass_all(KeyHash::default())?.to_bytes();
/// bytes[0] ^= 1;
/// let error = BloomFilterRef::from_bytes(&bytes).unwrap_err();
/// assert!(matches!(error, FormatError::Header(HeaderError::Magic { .. })));
/// assert_eq!(error.offset(), 0);
/// # Ok::<(), blocked_bloom::AllocError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FormatError {
    /// The header, the length or a checksum is wrong.
    Header(HeaderError),
    /// An intact filter, but built with another hash or seed than required.
    HashMismatch {
        /// Identity of the filter.
        found: KeyHash,
        /// Identity that is required.
        expected: KeyHash,
    },
    /// A pass-all filter with more than one block or probe.
    PassAllShape {
        /// Blocks in the header.
        blocks: u32,
        /// Probes in the header.
        probes: u8,
    },
    /// The block of a pass-all filter is not all ones.
    PassAllBlock {
        /// Where the first other byte is.
        offset: u64,
        /// The byte.
        found: u8,
    },
    /// In an index: a partition of a length that no filter has, or that ends before it begins.
    PartitionEnd {
        /// Which partition.
        partition: u32,
        /// Where it ends.
        end: u64,
    },
    /// In an index: a separator outside the separators, or a first one that is not empty.
    SeparatorEnd {
        /// Of which partition.
        partition: u32,
        /// Where it ends.
        end: u64,
    },
    /// In an index: a separator that is not greater than the one before.
    SeparatorOrder {
        /// Of which partition.
        partition: u32,
    },
    /// An intact filter, but not the partition that the index means: another one, or one of another table.
    OtherPartition {
        /// Checksum in the header of the filter.
        found: u64,
        /// Checksum in the index.
        expected: u64,
    },
    /// In a growing filter: a link is damaged or cut off.
    Link {
        /// Which, from 0.
        link: u32,
        /// Where it begins.
        start: u64,
        /// What is wrong with it; its offset counts from there.
        error: Box<FormatError>,
    },
    /// No memory for the list of links of a growing filter.
    Alloc(AllocError),
}

impl FormatError {
    /// The offset, in bytes, of the field at fault; for a wrong length, the place where the bytes end or should have ended,
    /// whichever comes first.
    ///
    /// ```
    /// let error = blocked_bloom::BloomFilterRef::from_bytes(&[]).unwrap_err();
    /// assert_eq!(error.to_string(), "offset 0: the bytes end, expected a header of 64 bytes");
    /// ```
    pub fn offset(&self) -> u64 {
        let entry = |partition: u32| 64 + 24 * u64::from(partition);
        match self {
            Self::Header(error) => error.offset(),
            Self::HashMismatch { .. } => 11,
            Self::PassAllShape { .. } => 12,
            Self::PassAllBlock { offset, .. } => *offset,
            Self::PartitionEnd { partition, .. } => entry(*partition) + 8,
            Self::SeparatorEnd { partition, .. } | Self::SeparatorOrder { partition } => {
                entry(*partition) + 16
            }
            Self::OtherPartition { .. } => 56,
            Self::Link { start, error, .. } => start + error.offset(),
            Self::Alloc(_) => 0,
        }
    }
}

impl Display for FormatError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(error) => return error.fmt(f),
            Self::Alloc(error) => return error.fmt(f),
            Self::Link { link, start, error } => {
                return write!(f, "link {link}, which begins at {start}: {error}");
            }
            _ => write!(f, "offset {}: ", self.offset())?,
        }
        match self {
            Self::HashMismatch { found, expected } => {
                write!(f, "a filter of {found}, expected {expected}")
            }
            Self::PassAllShape { blocks, probes } => {
                write!(
                    f,
                    "a pass-all filter of {blocks} blocks and {probes} probes, expected 1 and 1"
                )
            }
            Self::PassAllBlock { found, .. } => {
                write!(f, "{found:#04x} in the block of a pass-all filter, expected 0xff")
            }
            Self::PartitionEnd { partition, end } => write!(
                f,
                "partition {partition} ends at byte {end}, expected a header of 64 bytes and 1 to {} blocks of 64 after its beginning",
                u32::MAX
            ),
            Self::SeparatorEnd { partition: 0, end } => {
                write!(f, "a first separator of {end} bytes, expected 0")
            }
            Self::SeparatorEnd { partition, end } => write!(
                f,
                "separator {partition} ends at byte {end} of the separators, expected an end after its beginning and inside them"
            ),
            Self::SeparatorOrder { partition } => {
                write!(f, "separator {partition} is not greater than the one before")
            }
            Self::OtherPartition { found, expected } => write!(
                f,
                "a filter with header checksum {found:016x}, expected {expected:016x}: it belongs to another partition or table"
            ),
            Self::Header(_) | Self::Link { .. } | Self::Alloc(_) => Ok(()),
        }
    }
}

error!(FormatError, Header(HeaderError), Alloc(AllocError); Link);
