//! Errors of partitioned filters: building them, opening their index, loading a partition.

use core::fmt::{self, Display, Formatter};

use super::{AllocError, BuildError, FormatError, ParamsError};
use crate::hash::KeyHash;

/// Why a partitioned filter could not be built. What was written of it must not be used.
///
/// ```
/// use blocked_bloom::{BloomFilterBuilder, PartitionBuildError, PartitionedFilterBuilder, Sizing};
/// let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
/// let mut builder = PartitionedFilterBuilder::new(builder, 4096, |_| Ok::<(), std::io::Error>(()))?;
/// builder.insert("banana")?;
/// let error = builder.insert("apple").unwrap_err();
/// assert!(matches!(error, PartitionBuildError::Unsorted { position: 1 }));
/// # Ok::<(), PartitionBuildError<std::io::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PartitionBuildError<E> {
    /// A partition could not be sized or built.
    Build(BuildError),
    /// The builder that was given as a template had keys already.
    TemplateHasKeys {
        /// How many.
        keys: u64,
    },
    /// The builder that was given as a template has the caller's hash: partitions are found by keys.
    CallerHash {
        /// The tag of the caller's hash.
        tag: u64,
    },
    /// The builder that was given as a template is sized by the bytes of a whole filter, so no number of keys fills a partition.
    SizedByBytes {
        /// The bytes of the sizing.
        bytes: u64,
    },
    /// Not even a filter of one key fits a partition.
    TooFewBytes {
        /// Target size of a partition.
        bytes: u64,
        /// Size of a stored filter of one key.
        smallest: u64,
    },
    /// A key came after a greater one.
    Unsorted {
        /// Which, counted from 0.
        position: u64,
    },
    /// More than 2^32 - 1 partitions.
    TooManyPartitions,
    /// The sink refused a partition.
    Sink(E),
    /// The builder had failed before.
    AlreadyFailed,
}

impl<E: Display> Display for PartitionBuildError<E> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build(error) => error.fmt(f),
            Self::TemplateHasKeys { keys } => {
                write!(
                    f,
                    "the template of the partitions has {keys} keys: give a builder without any"
                )
            }
            Self::CallerHash { tag } => {
                let hash = KeyHash::Caller { tag: *tag };
                write!(f, "partitions cannot have {hash}: give a builder that hashes keys itself")
            }
            Self::SizedByBytes { bytes } => {
                write!(
                    f,
                    "partitions sized by at most {bytes} bytes never fill up: give bits per key or a false-positive rate"
                )
            }
            Self::TooFewBytes { bytes, smallest } => {
                write!(f, "partitions of {bytes} bytes: a filter of one key takes {smallest}")
            }
            Self::Unsorted { position } => {
                write!(
                    f,
                    "key {position} is less than the one before: add keys in ascending order of bytes"
                )
            }
            Self::TooManyPartitions => {
                write!(f, "more than {} partitions: make them larger", u32::MAX)
            }
            Self::Sink(error) => write!(f, "a partition could not be stored: {error}"),
            Self::AlreadyFailed => {
                write!(f, "the builder has failed before: build the filter again")
            }
        }
    }
}

impl<E: core::error::Error + 'static> core::error::Error for PartitionBuildError<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Build(error) => Some(error),
            Self::Sink(error) => Some(error),
            _ => None,
        }
    }
}

impl<E> From<BuildError> for PartitionBuildError<E> {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

impl<E> From<AllocError> for PartitionBuildError<E> {
    fn from(error: AllocError) -> Self {
        Self::Build(error.into())
    }
}

impl<E> From<ParamsError> for PartitionBuildError<E> {
    fn from(error: ParamsError) -> Self {
        Self::Build(error.into())
    }
}

/// Why bytes are not the index of a partitioned filter. Without its index no partition may answer "absent".
///
/// ```
/// use blocked_bloom::{PartitionIndex, PartitionIndexError};
/// let error = PartitionIndex::from_bytes([0; 100]).unwrap_err();
/// assert!(matches!(error, PartitionIndexError::Magic { .. }));
/// assert_eq!(error.offset(), 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartitionIndexError {
    /// Shorter than a header.
    TooShort {
        /// Length in bytes.
        found: u64,
    },
    /// Not an index of this crate, or its first bytes are damaged.
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
    /// Unknown flags, or none.
    Flags {
        /// Flags in the header.
        found: u8,
    },
    /// No partitions.
    PartitionCount,
    /// Prefixes without an extractor, or an extractor without prefixes.
    Extractor {
        /// Extractor in the header.
        found: u64,
    },
    /// Truncated, or followed by other bytes.
    Length {
        /// Length in bytes.
        found: u64,
        /// Length that the header asks for; 2^64 - 1 if it asks for more than that.
        expected: u64,
    },
    /// Entries or separators are damaged.
    BodyChecksum {
        /// Checksum in the header.
        stored: u64,
        /// Checksum of the bytes behind the header.
        computed: u64,
    },
    /// A partition of a length that no filter has, or that ends before it begins.
    PartitionEnd {
        /// Which partition.
        partition: u32,
        /// Where it ends.
        end: u64,
    },
    /// A separator outside the separators, or a first one that is not empty.
    SeparatorEnd {
        /// Of which partition.
        partition: u32,
        /// Where it ends.
        end: u64,
    },
    /// A separator that is not greater than the one before.
    SeparatorOrder {
        /// Of which partition.
        partition: u32,
    },
}

impl PartitionIndexError {
    /// The offset, in bytes, of the field at fault; for a wrong length, the place where the bytes end or should have ended,
    /// whichever comes first.
    ///
    /// ```
    /// let error = blocked_bloom::PartitionIndex::from_bytes([]).unwrap_err();
    /// assert_eq!(error.to_string(), "offset 0: found the end of the bytes, expected a header of 64 bytes");
    /// ```
    pub fn offset(&self) -> u64 {
        let entry = |partition: u32| 64 + 24 * u64::from(partition);
        match *self {
            Self::Magic { .. } => 0,
            Self::Version { .. } => 8,
            Self::Hash { .. } => 10,
            Self::Flags { .. } => 11,
            Self::PartitionCount => 12,
            Self::Extractor { .. } => 40,
            Self::BodyChecksum { .. } => 48,
            Self::HeaderChecksum { .. } => 56,
            Self::TooShort { found } => found,
            Self::Length { found, expected } => found.min(expected),
            Self::PartitionEnd { partition, .. } => entry(partition) + 8,
            Self::SeparatorEnd { partition, .. } | Self::SeparatorOrder { partition } => {
                entry(partition) + 16
            }
        }
    }
}

impl Display for PartitionIndexError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "offset {}: found ", self.offset())?;
        match *self {
            Self::TooShort { .. } => {
                write!(f, "the end of the bytes, expected a header of 64 bytes")
            }
            Self::Magic { found } => {
                write!(
                    f,
                    "{found:02x?}, expected [89, 42, 42, 50, 41, 52, 54, 0a]: this is no index of partitions"
                )
            }
            Self::Version { found } => {
                write!(f, "version {found}, expected 1: a later release wrote it, or it is damaged")
            }
            Self::HeaderChecksum { stored, computed } => write!(
                f,
                "header checksum {stored:016x}, expected {computed:016x}: the header is damaged"
            ),
            Self::Hash { found } => write!(f, "hash {found}, expected 1"),
            Self::Flags { found } => write!(f, "flags {found:#04x}, expected 0x01 to 0x03"),
            Self::PartitionCount => write!(f, "0 partitions, expected 1 to {}", u32::MAX),
            Self::Extractor { found: 0 } => {
                write!(f, "no extractor, expected one since prefixes were added")
            }
            Self::Extractor { found } => {
                write!(f, "extractor {found:016x}, expected 0 since no prefixes were added")
            }
            Self::Length { found, expected } => {
                let what = if found < expected { "truncated" } else { "followed by other bytes" };
                write!(f, "{found} bytes in all, expected {expected}: the index is {what}")
            }
            Self::BodyChecksum { stored, computed } => write!(
                f,
                "body checksum {stored:016x}, expected {computed:016x}: an entry or a separator is damaged"
            ),
            Self::PartitionEnd { partition, end } => write!(
                f,
                "partition {partition} ending at byte {end}, expected 64 bytes and 1 to {} blocks of 64 behind its beginning",
                u32::MAX
            ),
            Self::SeparatorEnd { partition: 0, end } => {
                write!(f, "a first separator of {end} bytes, expected 0")
            }
            Self::SeparatorEnd { partition, end } => write!(
                f,
                "separator {partition} ending at byte {end} of the separators, expected a place behind its beginning"
            ),
            Self::SeparatorOrder { partition } => {
                write!(f, "separator {partition}, expected a greater one than that before")
            }
        }
    }
}

impl core::error::Error for PartitionIndexError {}

/// Why a partition could not be asked. Its keys are answered "maybe".
///
/// ```
/// use blocked_bloom::{BloomFilterBuilder, PartitionIndex, PartitionedFilterBuilder, PartitionError, Sizing};
/// let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
/// let mut builder = PartitionedFilterBuilder::new(builder, 4096, |_| Ok::<(), std::fmt::Error>(()))?;
/// builder.insert("apple")?;
/// let index = PartitionIndex::from_bytes(builder.finish()?)?;
/// let (maybe, failure) = index.contains("banana", |_| Err::<&[u8], _>("the disk is gone"));
/// assert!(maybe);
/// assert_eq!(failure.unwrap().error, PartitionError::Load("the disk is gone"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartitionError<E> {
    /// The loader failed.
    Load(E),
    /// What was loaded is no filter, or is damaged.
    Format(FormatError),
    /// What was loaded is a filter, but not the one that the index means: another partition, or one of another table.
    OtherFilter {
        /// Checksum in the header of the filter.
        found: u64,
        /// Checksum in the index.
        expected: u64,
    },
    /// The owner of the index's bytes lends others than when the index was opened.
    IndexChanged,
    /// No memory to group the keys of a batch.
    Alloc(AllocError),
}

impl<E: Display> Display for PartitionError<E> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => write!(f, "the partition could not be loaded: {error}"),
            Self::Format(error) => error.fmt(f),
            Self::OtherFilter { found, expected } => write!(
                f,
                "a filter with header checksum {found:016x}, expected {expected:016x}: it belongs to another partition or table"
            ),
            Self::IndexChanged => write!(f, "the bytes of the index changed after it was opened"),
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl<E: core::error::Error + 'static> core::error::Error for PartitionError<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Load(error) => Some(error),
            Self::Format(error) => Some(error),
            Self::Alloc(error) => Some(error),
            Self::OtherFilter { .. } | Self::IndexChanged => None,
        }
    }
}

impl<E> From<FormatError> for PartitionError<E> {
    fn from(error: FormatError) -> Self {
        Self::Format(error)
    }
}

/// A partition that could not be asked, and why.
///
/// ```
/// # use blocked_bloom::{BloomFilterBuilder, PartitionIndex, PartitionedFilterBuilder, Sizing};
/// # let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
/// # let builder = PartitionedFilterBuilder::new(builder, 4096, |_| Ok::<(), std::fmt::Error>(()))?;
/// # let index = PartitionIndex::from_bytes(builder.finish()?)?;
/// let (_, failure) = index.contains("apple", |_| Ok::<_, std::io::Error>(b"not a filter"));
/// assert_eq!(
///     failure.unwrap().to_string(),
///     "partition 0: offset 12: found the end of the bytes, expected a header of 64 bytes"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionFailure<E> {
    /// Which partition.
    pub partition: usize,
    /// Why.
    pub error: PartitionError<E>,
}

impl<E> PartitionFailure<E> {
    pub(crate) fn new(partition: usize, error: PartitionError<E>) -> Self {
        PartitionFailure { partition, error }
    }
}

impl<E: Display> Display for PartitionFailure<E> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "partition {}: {}", self.partition, self.error)
    }
}

impl<E: core::error::Error + 'static> core::error::Error for PartitionFailure<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}
