//! Why bytes are not a RocksDB filter or SST file, and why none can be written: what was found
//! where, what was expected, what to do.

use core::fmt::{self, Display, Formatter};

use blocked_bloom::AllocError;

use super::checksum::ChecksumKind;

/// Why a filter cannot be read or written. Bytes that fail must not be used to answer "absent": go
/// on with [`FilterBlock::pass_all`](super::FilterBlock::pass_all).
///
/// Offsets are bytes from the start of the file, or of the block where a block alone was given.
///
/// ```
/// use blocked_bloom_formats::rocksdb::{FilterBlock, RocksdbError};
/// let error = FilterBlock::from_bytes(&[]).unwrap_err();
/// assert_eq!(error, RocksdbError::NoKeys { found: 0 });
/// assert!(error.to_string().starts_with("a filter block of 0 bytes"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RocksdbError {
    /// A block of five bytes or fewer: RocksDB writes that for a filter without keys, and a
    /// truncation leaves the same.
    NoKeys {
        /// Length of the block in bytes.
        found: u64,
    },
    /// A FastLocalBloom block without a whole line of 64 bytes. RocksDB would read past its end.
    NoLine {
        /// Bytes of bits, 0 to 63.
        found: u64,
    },
    /// A block longer than the 32-bit lengths of RocksDB.
    BlockTooLong {
        /// Length of the block in bytes.
        found: u64,
    },
    /// Fewer than 0.5 bits per key, for which RocksDB writes no filter, or NaN.
    BitsPerKey {
        /// What was given.
        bits_per_key: f64,
    },
    /// Memory ran out.
    Alloc(AllocError),
    /// The finished block says that keys are absent which were added to it.
    KeysMissing {
        /// How many.
        missing: u64,
        /// Of this many.
        keys: u64,
    },
    /// Shorter than the footer of an SST file.
    FileTooShort {
        /// Length of the file in bytes.
        found: u64,
    },
    /// Not a block-based SST file: it is truncated, or another kind of file.
    Magic {
        /// Offset of the last eight bytes.
        offset: u64,
        /// Their value, little-endian.
        found: u64,
    },
    /// A `format_version` that is not read here.
    FormatVersion {
        /// Offset of the version.
        offset: u64,
        /// The version; 0 for the footer of LevelDB and of RocksDB before 2.8.
        found: u32,
    },
    /// An unknown kind of checksum.
    ChecksumKind {
        /// Offset of the kind.
        offset: u64,
        /// The kind.
        found: u8,
    },
    /// The footer of `format_version` 6 or later has bytes that are not known here.
    Footer {
        /// Offset of the field.
        offset: u64,
        /// The field, little-endian.
        found: u64,
        /// What belongs there.
        expected: u64,
    },
    /// The footer is damaged.
    FooterChecksum {
        /// Offset of the checksum.
        offset: u64,
        /// Checksum in the footer.
        found: u32,
        /// Checksum of its bytes.
        expected: u32,
        /// How it is computed.
        kind: ChecksumKind,
    },
    /// A block is said to be where it cannot be.
    Handle {
        /// Which block.
        block: &'static str,
        /// Where it is said to begin.
        offset: u64,
        /// How long it is said to be, without its trailer.
        size: u64,
        /// The first byte it may have.
        first: u64,
        /// Where it and its trailer of five bytes must have ended.
        end: u64,
    },
    /// A block is damaged.
    BlockChecksum {
        /// Which block.
        block: &'static str,
        /// Offset of the checksum.
        offset: u64,
        /// Checksum in the block's trailer.
        found: u32,
        /// Checksum of its bytes.
        expected: u32,
        /// How it is computed.
        kind: ChecksumKind,
    },
    /// A block is compressed, which RocksDB does not do to those that are read here.
    Compressed {
        /// Which block.
        block: &'static str,
        /// Offset of the compression type.
        offset: u64,
        /// The type: 1 Snappy, 2 zlib, 3 bzip2, 4 LZ4, 5 LZ4HC, 6 Xpress, 7 ZSTD.
        found: u8,
    },
    /// Bytes of the file are needed that were not loaded: load them, and open the file again.
    NotLoaded {
        /// Where they begin.
        offset: u64,
        /// How many they are.
        length: u64,
    },
    /// The contents of a block, whose checksum fits, cannot be parsed.
    Malformed {
        /// Which block.
        block: &'static str,
        /// Offset of what cannot be parsed.
        offset: u64,
        /// What was expected there.
        expected: &'static str,
    },
}

impl Display for RocksdbError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKeys { found } => write!(
                f,
                "a filter block of {found} bytes, expected 6 or more: it is truncated, or was \
                 written without keys"
            ),
            Self::NoLine { found } => {
                write!(f, "{found} bytes of bits in a filter block, expected 64 or more")
            }
            Self::BlockTooLong { found } => {
                write!(f, "a filter block of {found} bytes, expected at most {}", u32::MAX)
            }
            Self::BitsPerKey { bits_per_key } => {
                write!(f, "{bits_per_key:?} bits per key: give 0.5 or more, or write no filter")
            }
            Self::Alloc(error) => error.fmt(f),
            Self::KeysMissing { missing, keys } => write!(
                f,
                "the finished block misses {missing} of {keys} keys: do not use it, build it again"
            ),
            Self::FileTooShort { found } => {
                write!(f, "a file of {found} bytes, expected a footer of 53 at its end")
            }
            Self::Magic { offset, found } => write!(
                f,
                "offset {offset}: found {found:016x}, expected 88e241b785f4cff7: this is no \
                 block-based SST file, or it is truncated"
            ),
            Self::FormatVersion { offset, found } => write!(
                f,
                "offset {offset}: found format_version {found}, expected 2 to 7: compact the \
                 table with a current RocksDB"
            ),
            Self::ChecksumKind { offset, found } => {
                write!(f, "offset {offset}: found checksum kind {found}, expected 0 to 4")
            }
            Self::Footer { offset, found, expected } => write!(
                f,
                "offset {offset}: found {found:#x} in the footer, expected {expected:#x}: a later \
                 release wrote it, or it is damaged"
            ),
            Self::FooterChecksum { offset, found, expected, kind } => write!(
                f,
                "offset {offset}: found {found:08x}, expected {expected:08x} by {kind}: the \
                 footer is damaged"
            ),
            Self::Handle { block, offset, size, first, end } => write!(
                f,
                "the {block} is said to be {size} bytes and a trailer of 5 at offset {offset}, \
                 expected them within {first} to {end}"
            ),
            Self::BlockChecksum { block, offset, found, expected, kind } => write!(
                f,
                "offset {offset}: found {found:08x}, expected {expected:08x} by {kind}: the \
                 {block} is damaged"
            ),
            Self::Compressed { block, offset, found } => write!(
                f,
                "offset {offset}: found compression type {found}, expected 0: the {block} is \
                 compressed, which no release of RocksDB does"
            ),
            Self::NotLoaded { offset, length } => {
                write!(f, "{length} bytes from offset {offset} are needed and were not loaded")
            }
            Self::Malformed { block, offset, expected } => {
                write!(f, "offset {offset}: expected {expected} in the {block}")
            }
        }
    }
}

blocked_bloom::impl_error!(RocksdbError, Alloc(AllocError));

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use core::error::Error;

    use super::{AllocError, RocksdbError};

    #[test]
    fn a_lack_of_memory_is_the_source() {
        let error = RocksdbError::from(AllocError::new(640));
        assert_eq!(error.to_string(), "no memory for 640 bytes");
        assert_eq!(error.source().unwrap().to_string(), "no memory for 640 bytes");
    }
}
