//! Every error of the crate: one enum per operation, one variant per cause, each carrying the value at fault.
//!
//! This file, with `error/shape.rs` for folding and merging and others of what they are named after, owns the wording: what was found,
//! what was expected, what to do. It refuses strings made elsewhere.

mod partition;
mod plan;
mod scalable;
mod set;
mod shape;

use core::fmt::{self, Display, Formatter};

use crate::hash::KeyHash;
use crate::probe::{MAX_BITS_PER_KEY, MAX_PROBES};

pub use partition::{PartitionBuildError, PartitionError, PartitionFailure, PartitionIndexError};
pub use plan::PlanError;
pub use scalable::{ScalableError, ScalableFormatError};
pub use set::{FilterSetError, MatrixError};
pub use shape::{FoldError, MergeAllError, MergeError};

/// Why a filter cannot be sized as asked.
///
/// ```
/// use blocked_bloom::{ParamsError, Sizing};
/// let error = Sizing::BitsPerKey(f64::NAN).params(1_000).unwrap_err();
/// assert!(matches!(error, ParamsError::BitsPerKeyOutOfRange { .. }));
/// assert_eq!(error.to_string(), "NaN bits per key: give 0 to 100 (0 means no filter)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParamsError {
    /// Not 0 to 100 bits per key.
    BitsPerKeyOutOfRange {
        /// What was asked for.
        bits_per_key: f64,
    },
    /// Not above 0 and up to 1.
    RateOutOfRange {
        /// What was asked for.
        rate: f64,
    },
    /// No filter of these keys has so low a rate.
    RateUnreachable {
        /// What was asked for.
        rate: f64,
        /// The lowest rate sizing can give.
        lowest: f64,
        /// Whether the limit is the number of blocks: then several smaller filters reach the rate.
        needs_partition: bool,
    },
    /// Not even one block fits.
    TooFewBytes {
        /// What was asked for.
        bytes: u64,
    },
    /// More than 2^32 - 1 blocks.
    TooManyBlocks {
        /// What would be needed.
        blocks: u64,
    },
    /// Not 1 to 30 probes.
    ProbesOutOfRange {
        /// What was asked for.
        probes: u32,
    },
}

impl Display for ParamsError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BitsPerKeyOutOfRange { bits_per_key } => {
                write!(
                    f,
                    "{bits_per_key} bits per key: give 0 to {MAX_BITS_PER_KEY} (0 means no filter)"
                )
            }
            Self::RateOutOfRange { rate } => {
                write!(f, "false-positive rate {rate}: give a number above 0 and up to 1")
            }
            Self::RateUnreachable { rate, lowest, needs_partition: false } => {
                write!(
                    f,
                    "false-positive rate {rate:e} is out of reach: at {MAX_BITS_PER_KEY} bits/key it is {lowest:.3e}"
                )
            }
            Self::RateUnreachable { rate, lowest, needs_partition: true } => {
                write!(
                    f,
                    "false-positive rate {rate:e} is out of reach: with all {} blocks it is {lowest:.3e}; partition the keys",
                    u32::MAX
                )
            }
            Self::TooFewBytes { bytes } => {
                write!(
                    f,
                    "{bytes} bytes hold no filter: the smallest takes 128 (header and one block)"
                )
            }
            Self::TooManyBlocks { blocks } => {
                write!(
                    f,
                    "{blocks} blocks needed, {} allowed: partition the keys over several filters",
                    u32::MAX
                )
            }
            Self::ProbesOutOfRange { probes } => {
                write!(f, "{probes} probes: give 1 to {MAX_PROBES}")
            }
        }
    }
}

impl core::error::Error for ParamsError {}

/// Memory for a filter's blocks or a builder's hashes could not be had.
///
/// ```
/// use blocked_bloom::{BloomFilter, KeyHash, Sizing};
/// # if cfg!(not(any(miri, target_family = "wasm"))) {
/// let params = Sizing::BitsPerKey(10.0).params(200_000_000_000)?;
/// if let Err(error) = BloomFilter::with_params(params, KeyHash::default()) {
///     assert_eq!(error.bytes, 250_000_000_000);
/// }
/// # }
/// # Ok::<(), blocked_bloom::ParamsError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllocError {
    /// Bytes asked for.
    pub bytes: u64,
}

impl Display for AllocError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "no memory for {} bytes", self.bytes)
    }
}

impl core::error::Error for AllocError {}

/// Why a builder could not finish.
///
/// ```
/// use blocked_bloom::{BloomFilterBuilder, BuildError, KeyHash, Sizing};
/// let sizing = Sizing::BitsPerKey(10.0);
/// let mut builder = BloomFilterBuilder::with_key_hash(sizing, KeyHash::Caller { tag: 7 });
/// builder.insert("only hashes are accepted here");
/// assert_eq!(builder.finish().unwrap_err(), BuildError::KeyWithoutHash { tag: 7 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// The keys cannot be sized as asked.
    Params(ParamsError),
    /// Memory ran out.
    Alloc(AllocError),
    /// A key was added to a filter whose hash is the caller's.
    KeyWithoutHash {
        /// The tag of the caller's hash.
        tag: u64,
    },
    /// A hash was added to a builder that adds prefixes, which cannot be cut from it.
    HashWithoutPrefix {
        /// The hash.
        hash: u64,
    },
    /// Keys were added before the builder was told to add prefixes.
    PrefixesAfterKeys,
    /// The list of hashes reached the builder's limit, and no number of expected items was given.
    MemoryLimit {
        /// The limit that was given.
        limit_bytes: u64,
        /// Keys that were added in all, adjacent equal ones counted once: what to size a filter for.
        keys: u64,
    },
    /// The hashes in memory are no longer those that were added: memory is failing, or was overwritten.
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
        /// Of so many.
        keys: u64,
    },
}

impl Display for BuildError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Params(error) => error.fmt(f),
            Self::Alloc(error) => error.fmt(f),
            Self::KeyWithoutHash { tag } => {
                write!(
                    f,
                    "a key was added to a filter of {}: add hashes",
                    KeyHash::Caller { tag: *tag }
                )
            }
            Self::HashWithoutPrefix { hash } => {
                write!(f, "the hash {hash:#018x} was added without the prefix of its key: add keys")
            }
            Self::PrefixesAfterKeys => {
                write!(
                    f,
                    "keys were added before the builder was given its prefixes: give them first"
                )
            }
            Self::MemoryLimit { limit_bytes, keys } => {
                write!(
                    f,
                    "the hashes of {keys} keys do not fit the limit of {limit_bytes} bytes: give a number of \
                     expected items, or size a filter for {keys} keys and add them again"
                )
            }
            Self::HashesChanged { expected, found } => {
                write!(
                    f,
                    "hashes changed in memory before they were inserted: their sum is {found:#018x}, expected \
                     {expected:#018x}; build the filter again"
                )
            }
            Self::KeysMissing { missing, keys } => {
                write!(
                    f,
                    "the finished filter lacks {missing} of {keys} keys: do not use it, build it again"
                )
            }
        }
    }
}

impl core::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Params(error) => Some(error),
            Self::Alloc(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ParamsError> for BuildError {
    fn from(error: ParamsError) -> Self {
        Self::Params(error)
    }
}

impl From<AllocError> for BuildError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

/// A slice of words for the results of a batch has the wrong length.
///
/// ```
/// use blocked_bloom::{BloomFilter, KeyHash};
/// let filter = BloomFilter::pass_all(KeyHash::default())?;
/// let error = filter.view().contains_hashes_into(&[1, 2, 3], &mut [0; 2]).unwrap_err();
/// assert_eq!((error.words, error.expected), (2, 1));
/// # Ok::<(), blocked_bloom::AllocError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LengthError {
    /// Words given.
    pub words: usize,
    /// Words needed: one per 64 keys, rounded up; for a set of filters, so many per filter.
    pub expected: usize,
}

impl Display for LengthError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} words for the results, {} needed: one per 64 keys", self.words, self.expected)
    }
}

impl core::error::Error for LengthError {}

/// Why bytes are not a filter. None of these bytes may be used to answer "absent": use a pass-all filter, or none.
///
/// ```
/// use blocked_bloom::{BloomFilter, BloomFilterRef, FormatError, KeyHash};
/// let mut bytes = BloomFilter::pass_all(KeyHash::default())?.to_bytes();
/// bytes[0] ^= 1;
/// let error = BloomFilterRef::from_bytes(&bytes).unwrap_err();
/// assert!(matches!(error, FormatError::Magic { .. }));
/// assert_eq!(error.offset(), 0);
/// # Ok::<(), blocked_bloom::AllocError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// Shorter than a header.
    TooShort {
        /// Length in bytes.
        found: u64,
    },
    /// Not a filter of this crate, or its first bytes are damaged.
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
    /// Unknown law.
    Law {
        /// Law in the header.
        found: u8,
    },
    /// Unknown hash.
    Hash {
        /// Hash in the header.
        found: u8,
    },
    /// Not 1 to 30 probes.
    Probes {
        /// Probes in the header.
        found: u8,
    },
    /// Unknown flags, or neither keys nor prefixes were added.
    Flags {
        /// Flags in the header.
        found: u8,
    },
    /// A byte that must be zero is not.
    NotZero {
        /// Where.
        offset: u64,
        /// The byte.
        found: u8,
    },
    /// Prefixes were added, and no rule is named that cut them.
    NoExtractor,
    /// No blocks.
    BlockCount,
    /// A pass-all filter with more than one block or probe.
    PassAllShape {
        /// Blocks in the header.
        blocks: u32,
        /// Probes in the header.
        probes: u8,
    },
    /// Truncated, or followed by other bytes.
    Length {
        /// Length in bytes.
        found: u64,
        /// Length that the block count asks for.
        expected: u64,
    },
    /// A block is damaged.
    BlockChecksum {
        /// Checksum in the header.
        stored: u64,
        /// Checksum of the blocks.
        computed: u64,
    },
    /// An intact filter, but built with another hash or seed than it will be asked with.
    HashMismatch {
        /// Identity of the filter.
        found: KeyHash,
        /// Identity that was asked for.
        expected: KeyHash,
    },
    /// The block of a pass-all filter is not all ones.
    PassAllBlock {
        /// Where the first other byte is.
        offset: u64,
        /// The byte.
        found: u8,
    },
}

impl FormatError {
    /// The offset, in bytes, of the field at fault; for a wrong length, the place where the bytes end or should have ended,
    /// whichever comes first.
    ///
    /// ```
    /// let error = blocked_bloom::BloomFilterRef::from_bytes(&[]).unwrap_err();
    /// assert_eq!(error.to_string(), "offset 0: found the end of the bytes, expected a header of 64 bytes");
    /// ```
    pub fn offset(&self) -> u64 {
        match *self {
            Self::Magic { .. } => 0,
            Self::Version { .. } => 8,
            Self::Law { .. } => 10,
            Self::Hash { .. } | Self::HashMismatch { .. } => 11,
            Self::Probes { .. } | Self::PassAllShape { .. } => 12,
            Self::Flags { .. } => 13,
            Self::BlockCount => 24,
            Self::NoExtractor => 40,
            Self::BlockChecksum { .. } => 48,
            Self::HeaderChecksum { .. } => 56,
            Self::NotZero { offset, .. } | Self::PassAllBlock { offset, .. } => offset,
            Self::TooShort { found } => found,
            Self::Length { found, expected } => found.min(expected),
        }
    }
}

impl Display for FormatError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "offset {}: found ", self.offset())?;
        match *self {
            Self::TooShort { .. } => {
                write!(f, "the end of the bytes, expected a header of 64 bytes")
            }
            Self::Magic { found } => {
                write!(
                    f,
                    "{found:02x?}, expected [89, 42, 42, 4c, 4f, 4f, 4d, 0a]: this is no filter"
                )
            }
            Self::Version { found } => {
                write!(f, "version {found}, expected 1: a later release wrote it, or it is damaged")
            }
            Self::HeaderChecksum { stored, computed } => write!(
                f,
                "header checksum {stored:016x}, expected {computed:016x}: the header is damaged"
            ),
            Self::Law { found } => write!(f, "law {found}, expected 1"),
            Self::Hash { found } => write!(f, "hash {found}, expected 0 or 1"),
            Self::Probes { found } => write!(f, "{found} probes, expected 1 to {MAX_PROBES}"),
            Self::Flags { found } => {
                write!(f, "flags {found:#04x}, expected 0x01, 0x02, 0x03 or 0x05")
            }
            Self::NotZero { found, .. } => write!(f, "{found:#04x}, expected 0x00"),
            Self::NoExtractor => {
                write!(f, "0, expected the hash of the prefix extractor's name")
            }
            Self::BlockCount => write!(f, "0 blocks, expected 1 to {}", u32::MAX),
            Self::PassAllShape { blocks, probes } => {
                write!(
                    f,
                    "a pass-all filter of {blocks} blocks and {probes} probes, expected 1 and 1"
                )
            }
            Self::Length { found, expected } => {
                let what = if found < expected { "truncated" } else { "followed by other bytes" };
                write!(f, "{found} bytes in all, expected {expected}: the filter is {what}")
            }
            Self::BlockChecksum { stored, computed } => write!(
                f,
                "block checksum {stored:016x}, expected {computed:016x}: a block is damaged"
            ),
            Self::HashMismatch { found, expected } => write!(f, "{found}, expected {expected}"),
            Self::PassAllBlock { found, .. } => {
                write!(f, "{found:#04x} in the block of a pass-all filter, expected 0xff")
            }
        }
    }
}

impl core::error::Error for FormatError {}

#[cfg(test)]
mod tests;
