//! Errors of filters that grow: making them, adding to them, reading them.

use core::fmt::{self, Display, Formatter};

use super::{AllocError, FormatError, ParamsError};
use crate::hash::KeyHash;

/// Why a growing filter cannot be made, added to or united. Nothing was lost: what was in it still is.
///
/// ```
/// use blocked_bloom::{ScalableBloomFilter, ScalableError};
/// let error = ScalableBloomFilter::new(0.01, 1_000)?.with_growth(1).unwrap_err();
/// assert!(matches!(error, ScalableError::GrowthOutOfRange { growth: 1 }));
/// assert_eq!(error.to_string(), "growth by a factor of 1: give 2 to 16");
/// # Ok::<(), ScalableError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ScalableError {
    /// The false-positive rate is not above 0 and under 1, or a link that keeps it cannot be sized.
    Params(ParamsError),
    /// No memory for the next link. The key was not added.
    Alloc(AllocError),
    /// Not 2 to 16.
    GrowthOutOfRange {
        /// What was asked for.
        growth: u32,
    },
    /// Not 0.05 to 0.95.
    TighteningOutOfRange {
        /// What was asked for.
        tightening: f64,
    },
    /// Growth and tightening have to be chosen before the first key is added.
    NotEmpty {
        /// Links that there are already.
        links: usize,
    },
    /// A key was added to a filter whose hash is the caller's. It was not added.
    KeyWithoutHash {
        /// The tag of the caller's hash.
        tag: u64,
    },
    /// Two filters of different hash or seed cannot be united.
    HashMismatch {
        /// Identity of the receiving filter.
        left: KeyHash,
        /// Identity of the other.
        right: KeyHash,
    },
}

impl Display for ScalableError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Params(error) => error.fmt(f),
            Self::Alloc(error) => error.fmt(f),
            Self::GrowthOutOfRange { growth } => {
                write!(f, "growth by a factor of {growth}: give 2 to 16")
            }
            Self::TighteningOutOfRange { tightening } => {
                write!(f, "a tightening ratio of {tightening}: give 0.05 to 0.95")
            }
            Self::NotEmpty { links } => {
                let s = if links == 1 { "" } else { "s" };
                write!(
                    f,
                    "the filter has {links} link{s} already: choose before the first key is added"
                )
            }
            Self::KeyWithoutHash { tag } => {
                write!(f, "a key was added to a filter of {}: add hashes", KeyHash::Caller { tag })
            }
            Self::HashMismatch { left, right } => {
                write!(f, "cannot unite a filter of {left} with one of {right}")
            }
        }
    }
}

impl core::error::Error for ScalableError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Params(error) => Some(error),
            Self::Alloc(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ParamsError> for ScalableError {
    fn from(error: ParamsError) -> Self {
        Self::Params(error)
    }
}

impl From<AllocError> for ScalableError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

/// Why bytes are not a growing filter. None of these bytes may be used to answer "absent".
///
/// ```
/// use blocked_bloom::{ScalableBloomFilter, ScalableBloomFilterRef, ScalableFormatError};
/// let bytes = ScalableBloomFilter::new(0.01, 1_000)?.to_bytes();
/// let error = ScalableBloomFilterRef::from_bytes(&bytes[..60]).unwrap_err();
/// assert!(matches!(error, ScalableFormatError::TooShort { found: 60 }));
/// assert_eq!(error.to_string(), "offset 60: found the end of the bytes, expected a header of 64 bytes");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ScalableFormatError {
    /// Shorter than the header.
    TooShort {
        /// Length in bytes.
        found: u64,
    },
    /// Not a growing filter of this crate, or its first bytes are damaged.
    Magic {
        /// The first eight bytes.
        found: [u8; 8],
    },
    /// Written by a later release, or damaged.
    Version {
        /// Version in the header.
        found: u16,
    },
    /// The header is damaged.
    HeaderChecksum {
        /// Checksum in the header.
        stored: u64,
        /// Checksum of the header's bytes.
        computed: u64,
    },
    /// Unknown hash.
    Hash {
        /// Hash in the header.
        found: u8,
    },
    /// The links are not those that the header was written for.
    LinksChecksum {
        /// Checksum in the header.
        stored: u64,
        /// Checksum of the links' header checksums.
        computed: u64,
    },
    /// The false-positive rate is not above 0 and up to 1.
    Rate {
        /// Rate in the header.
        found: f64,
    },
    /// The tightening ratio is not 0.05 to 0.95.
    Tightening {
        /// Ratio in the header.
        found: f64,
    },
    /// The growth factor is not 2 to 16.
    Growth {
        /// Factor in the header.
        found: u32,
    },
    /// The last link is for no keys.
    Items,
    /// A link is damaged or cut off.
    Link {
        /// Which, from 0.
        link: u32,
        /// Where it begins.
        start: u64,
        /// What is wrong with it; its offset counts from there.
        error: FormatError,
    },
    /// Bytes behind the last link.
    Length {
        /// Length in bytes.
        found: u64,
        /// Length of the header and all links.
        expected: u64,
    },
    /// No memory for the links.
    Alloc(AllocError),
}

impl ScalableFormatError {
    /// The offset, in bytes, of the field at fault; for a wrong length, the place where the bytes end or should have ended.
    ///
    /// ```
    /// let error = blocked_bloom::ScalableBloomFilterRef::from_bytes(&[0; 64]).unwrap_err();
    /// assert_eq!(error.offset(), 0);
    /// ```
    pub fn offset(&self) -> u64 {
        match *self {
            Self::Magic { .. } | Self::Alloc(_) => 0,
            Self::Version { .. } => 8,
            Self::Hash { .. } => 10,
            Self::Rate { .. } => 24,
            Self::Tightening { .. } => 32,
            Self::Growth { .. } => 11,
            Self::Items => 48,
            Self::HeaderChecksum { .. } => 56,
            Self::LinksChecksum { .. } => 40,
            Self::TooShort { found } => found,
            Self::Link { start, error, .. } => start + error.offset(),
            Self::Length { expected, .. } => expected,
        }
    }
}

impl Display for ScalableFormatError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Alloc(error) => return error.fmt(f),
            Self::Link { link, start, error } => {
                return write!(f, "link {link}, which begins at {start}: {error}");
            }
            _ => write!(f, "offset {}: found ", self.offset())?,
        }
        match *self {
            Self::TooShort { .. } => {
                write!(f, "the end of the bytes, expected a header of 64 bytes")
            }
            Self::Magic { found } => write!(
                f,
                "{found:02x?}, expected [89, 42, 42, 47, 52, 4f, 57, 0a]: this is no growing filter"
            ),
            Self::Version { found } => {
                write!(f, "version {found}, expected 1: a later release wrote it, or it is damaged")
            }
            Self::HeaderChecksum { stored, computed } => write!(
                f,
                "header checksum {stored:016x}, expected {computed:016x}: the header is damaged"
            ),
            Self::Hash { found } => write!(f, "hash {found}, expected 0 or 1"),
            Self::LinksChecksum { stored, computed } => write!(
                f,
                "checksum {stored:016x} of the links, expected {computed:016x}: a link belongs to another filter"
            ),
            Self::Rate { found } => {
                write!(f, "a false-positive rate of {found}, expected above 0 and up to 1")
            }
            Self::Tightening { found } => {
                write!(f, "a tightening ratio of {found}, expected 0.05 to 0.95")
            }
            Self::Growth { found } => write!(f, "growth by a factor of {found}, expected 2 to 16"),
            Self::Items => write!(f, "a link for 0 keys, expected 1 or more"),
            Self::Length { found, expected } => write!(
                f,
                "{found} bytes in all, expected {expected}: the last link is followed by other bytes"
            ),
            Self::Link { .. } | Self::Alloc(_) => Ok(()),
        }
    }
}

impl core::error::Error for ScalableFormatError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Link { error, .. } => Some(error),
            Self::Alloc(error) => Some(error),
            _ => None,
        }
    }
}

impl From<AllocError> for ScalableFormatError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}
