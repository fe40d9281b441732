//! Errors of reading and writing RocksDB filters and SST files. Each carries the value found, its
//! place and the expected value.

use blocked_bloom::AllocError;

use super::checksum::ChecksumKind;

/// Why a filter could not be read or written. Rejected bytes must not be used to answer "absent":
/// use [`FilterBlock::pass_all`](super::FilterBlock::pass_all) instead.
///
/// Offsets count from the start of the file, or from the start of a block that was passed alone.
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
    /// The block has five bytes or fewer: RocksDB wrote a filter without keys, or the block is
    /// truncated.
    NoKeys {
        /// Length of the block in bytes.
        found: u64,
    },
    /// A FastLocalBloom block has less than 64 bytes of bits. RocksDB would read past its end.
    NoLine {
        /// Bytes of bits, 0 to 63.
        found: u64,
    },
    /// The block is too long for RocksDB's 32-bit lengths.
    BlockTooLong {
        /// Length of the block in bytes.
        found: u64,
    },
    /// The bits per key are NaN or below 0.5, for which RocksDB writes no filter.
    BitsPerKey {
        /// The value given.
        bits_per_key: f64,
    },
    /// An allocation failed.
    Alloc(AllocError),
    /// The finished block answers "absent" for inserted keys.
    KeysMissing {
        /// Number of such keys.
        missing: u64,
        /// Number of inserted keys.
        keys: u64,
    },
    /// The file is shorter than the footer of an SST file.
    FileTooShort {
        /// Length of the file in bytes.
        found: u64,
    },
    /// The file is not a block-based SST file, or is truncated.
    Magic {
        /// Offset of the last eight bytes.
        offset: u64,
        /// Their value, little-endian.
        found: u64,
    },
    /// The `format_version` is not supported.
    FormatVersion {
        /// Offset of the version.
        offset: u64,
        /// The version; 0 for the footer of LevelDB and of RocksDB before 2.8.
        found: u32,
    },
    /// The kind of checksum is unknown.
    ChecksumKind {
        /// Offset of the kind.
        offset: u64,
        /// The kind.
        found: u8,
    },
    /// The footer of `format_version` 6 or later contains unknown bytes.
    Footer {
        /// Offset of the field.
        offset: u64,
        /// The field, little-endian.
        found: u64,
        /// Expected value.
        expected: u64,
    },
    /// The footer is damaged.
    FooterChecksum {
        /// Offset of the checksum.
        offset: u64,
        /// Checksum in the footer.
        found: u32,
        /// Checksum computed from its bytes.
        expected: u32,
        /// Kind of the checksum.
        kind: ChecksumKind,
    },
    /// The stored location of a block is impossible.
    Handle {
        /// Name of the block.
        block: &'static str,
        /// Stored offset.
        offset: u64,
        /// Stored length, without the trailer.
        size: u64,
        /// Minimum offset.
        first: u64,
        /// Maximum end of the block with its trailer of five bytes.
        end: u64,
    },
    /// A block is damaged.
    BlockChecksum {
        /// Name of the block.
        block: &'static str,
        /// Offset of the checksum.
        offset: u64,
        /// Checksum in the block's trailer.
        found: u32,
        /// Checksum computed from its bytes.
        expected: u32,
        /// Kind of the checksum.
        kind: ChecksumKind,
    },
    /// A block is compressed. RocksDB does not compress the blocks that are read here.
    Compressed {
        /// Name of the block.
        block: &'static str,
        /// Offset of the compression type.
        offset: u64,
        /// The type: 1 Snappy, 2 zlib, 3 bzip2, 4 LZ4, 5 LZ4HC, 6 Xpress, 7 ZSTD.
        found: u8,
    },
    /// Bytes of the file were not loaded: load them, and open the file again.
    NotLoaded {
        /// Offset of the bytes.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// A block with a valid checksum cannot be parsed.
    Malformed {
        /// Name of the block.
        block: &'static str,
        /// Offset in the file.
        offset: u64,
        /// Expected contents.
        expected: &'static str,
    },
}

blocked_bloom::impl_error!(RocksdbError, Alloc(AllocError);
    Self::NoKeys { found } => (
        "a filter block of {found} bytes, expected 6 or more: it is truncated, or was written \
         without keys"
    ),
    Self::NoLine { found } => ("{found} bytes of bits in a filter block, expected 64 or more"),
    Self::BlockTooLong { found } => (
        "a filter block of {found} bytes, expected at most {}", u32::MAX
    ),
    Self::BitsPerKey { bits_per_key } => (
        "{bits_per_key:?} bits per key: give 0.5 or more, or write no filter"
    ),
    Self::KeysMissing { missing, keys } => (
        "the finished block lacks {missing} of {keys} keys: build it again"
    ),
    Self::FileTooShort { found } => ("a file of {found} bytes, expected a footer of 53 at its end"),
    Self::Magic { offset, found } => (
        "offset {offset}: found {found:016x}, expected 88e241b785f4cff7: this is not a block-based \
         SST file, or it is truncated"
    ),
    Self::FormatVersion { offset, found } => (
        "offset {offset}: found format_version {found}, expected 2 to 7: compact the table with a \
         current RocksDB"
    ),
    Self::ChecksumKind { offset, found } => (
        "offset {offset}: found checksum kind {found}, expected 0 to 4"
    ),
    Self::Footer { offset, found, expected } => (
        "offset {offset}: found {found:#x} in the footer, expected {expected:#x}: a later release \
         wrote it, or it is damaged"
    ),
    Self::FooterChecksum { offset, found, expected, kind } => (
        "offset {offset}: found {found:08x}, expected {expected:08x} by {kind}: the footer is \
         damaged"
    ),
    Self::Handle { block, offset, size, first, end } => (
        "the {block} has {size} bytes and a trailer of 5 at offset {offset}, expected them within \
         {first} to {end}"
    ),
    Self::BlockChecksum { block, offset, found, expected, kind } => (
        "offset {offset}: found {found:08x}, expected {expected:08x} by {kind}: the {block} is \
         damaged"
    ),
    Self::Compressed { block, offset, found } => (
        "offset {offset}: found compression type {found}, expected 0: the {block} is compressed, \
         which no release of RocksDB does"
    ),
    Self::NotLoaded { offset, length } => (
        "{length} bytes at offset {offset} are not loaded: load them and open the file again"
    ),
    Self::Malformed { block, offset, expected } => (
        "offset {offset}: expected {expected} in the {block}"
    ),
);

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
