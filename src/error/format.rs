//! Why bytes cannot be opened.

use alloc::boxed::Box;
use core::fmt::{self, Display, Formatter};

use super::{AllocError, error};
use crate::hash::KeyHash;
use crate::header::HeaderError;
use crate::prefix::FilterContents;

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
    /// An intact filter, but not the partition that the index means: another one, or one of another table.
    OtherPartition {
        /// Checksum in the header of the filter.
        found: u64,
        /// Checksum in the index.
        expected: u64,
    },
    /// A filter that the compact form cannot hold.
    NotCompact {
        /// Its hash and seed; the form is for XXH3-64 with seed 0.
        key_hash: KeyHash,
        /// What it holds; the form is for whole keys.
        contents: FilterContents,
        /// Its keys; the form counts to 2^32 - 1.
        keys_inserted: u64,
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
    pub fn offset(&self) -> u64 {
        match self {
            Self::Header(error) => error.offset(),
            Self::HashMismatch { .. } => 11,
            Self::OtherPartition { .. } => 56,
            Self::Link { start, error, .. } => start + error.offset(),
            Self::Alloc(_) | Self::NotCompact { .. } => 0,
        }
    }
}

impl Display for FormatError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(error) => error.fmt(f),
            Self::Alloc(error) => error.fmt(f),
            Self::Link { link, start, error } => {
                write!(f, "link {link}, which begins at {start}: {error}")
            }
            Self::HashMismatch { found, expected } => {
                write!(f, "offset 11: a filter of {found}, expected {expected}")
            }
            Self::NotCompact { key_hash, contents, keys_inserted } => write!(
                f,
                "a filter of {keys_inserted} {contents}, hashed by {key_hash}: the compact form is for up to {} whole keys hashed by {}",
                u32::MAX,
                KeyHash::default()
            ),
            Self::OtherPartition { found, expected } => write!(
                f,
                "offset 56: a filter with header checksum {found:016x}, expected {expected:016x}: it belongs to another partition or table"
            ),
        }
    }
}

error!(FormatError, Header(HeaderError), Alloc(AllocError); Link);
