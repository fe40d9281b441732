//! The 64-byte header of every stored container of this family of crates: filters, partition
//! indexes, chains of filters, and the containers of the other packages.
//!
//! ```text
//! offset  bytes
//! 0       8      magic: the kind of container. The first byte is not ASCII and the last is a
//!                line feed, so that a transfer in text mode changes it
//! 8       2      version of the container
//! 10      46     fields of the container
//! 56      8      XXH3-64, seed 0, of bytes 0 .. 56
//! ```
//!
//! All numbers are little-endian. `docs/format.md` is normative.

use crate::checksum::checksum;
use crate::error::{ShortNumber, ensure};
use crate::hash::KeyHash;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 64;

/// The first bytes of a stored [`BloomFilter`](crate::BloomFilter).
pub const MAGIC: [u8; 8] = *b"\x89BBLOOM\n";

/// Offset of the header's checksum, which covers all bytes before it.
const CHECKSUM: usize = 56;

const HASH_CALLER: u8 = 0;
const HASH_XXH3: u8 = 1;

/// A header being written, or one that was read. Fields are accessed by offset.
///
/// A field must lie in bytes 10 to 56. The methods that take an offset panic if the field is
/// outside the 64 bytes.
///
/// ```
/// use blocked_bloom::parts::{Header, HeaderError};
/// const MAGIC: [u8; 8] = *b"\x89BBTEST\n";
/// let mut header = Header::new(MAGIC, 1);
/// header.put(16, &7_u64.to_le_bytes());
/// let stored = header.seal();
///
/// let header = Header::read(&stored, MAGIC, 1)?;
/// assert_eq!(header.u64_at(16), 7);
/// let error = HeaderError::Version { found: 1, supported: 2 };
/// assert_eq!(Header::read(&stored, MAGIC, 2).unwrap_err(), error);
/// # Ok::<(), HeaderError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header([u8; HEADER_BYTES]);

impl Header {
    /// Creates a header whose fields are zero.
    pub fn new(magic: [u8; 8], version: u16) -> Self {
        let mut header = Header([0; HEADER_BYTES]);
        header.put(0, &magic);
        header.put(8, &version.to_le_bytes());
        header
    }

    /// Checks length, magic, version and checksum of the header of `bytes`, in this order.
    ///
    /// # Errors
    ///
    /// [`HeaderError`] for the first check that fails.
    #[inline]
    pub fn read(bytes: &[u8], magic: [u8; 8], version: u16) -> Result<Self, HeaderError> {
        let header = bytes.first_chunk();
        let header = Header(*header.ok_or(HeaderError::TooShort { found: bytes.len() as u64 })?);
        let found = header.bytes_at(0);
        ensure(found == magic, HeaderError::Magic { found, expected: magic })?;
        let found = u16::from_le_bytes(header.bytes_at(8));
        ensure(found == version, HeaderError::Version { found, supported: version })?;
        let (stored, computed) = (header.checksum(), checksum(&header.0[..CHECKSUM]));
        ensure(stored == computed, HeaderError::Checksum { stored, computed })?;
        Ok(header)
    }

    /// Writes a field.
    #[inline]
    pub fn put(&mut self, offset: usize, field: &[u8]) {
        self.0[offset..offset + field.len()].copy_from_slice(field);
    }

    /// Writes the hash of a filter: its id, one byte, at `id_offset`, and its seed or tag, eight
    /// bytes, at `seed_offset`.
    pub fn put_key_hash(&mut self, id_offset: usize, seed_offset: usize, key_hash: KeyHash) {
        let (id, seed) = match key_hash {
            KeyHash::Caller { tag } => (HASH_CALLER, tag),
            KeyHash::Xxh3 { seed } => (HASH_XXH3, seed),
        };
        self.put(id_offset, &[id]);
        self.put(seed_offset, &seed.to_le_bytes());
    }

    /// Reads the hash that [`put_key_hash`](Self::put_key_hash) wrote, which must be `expected`;
    /// `None` accepts every hash.
    ///
    /// # Errors
    ///
    /// [`HeaderError::Field`] for an unknown id, [`HeaderError::HashMismatch`] for another hash,
    /// seed or tag than expected.
    #[inline]
    pub fn key_hash_at(
        &self,
        id_offset: usize,
        seed_offset: usize,
        expected: Option<KeyHash>,
    ) -> Result<KeyHash, HeaderError> {
        let seed = self.u64_at(seed_offset);
        let key_hash = match self.u8_at(id_offset) {
            HASH_CALLER => KeyHash::Caller { tag: seed },
            HASH_XXH3 => KeyHash::Xxh3 { seed },
            id => Err(HeaderError::field(id_offset, "unsupported hash", id, "supported: 0 and 1"))?,
        };
        Header::check_key_hash(id_offset, key_hash, expected.unwrap_or(key_hash))?;
        Ok(key_hash)
    }

    /// Checks that a container, whose hash id is at `offset`, was built with the expected hash.
    ///
    /// # Errors
    ///
    /// [`HeaderError::HashMismatch`], which names both hashes.
    #[inline]
    pub fn check_key_hash(
        offset: usize,
        found: KeyHash,
        expected: KeyHash,
    ) -> Result<(), HeaderError> {
        let offset = offset as u64;
        ensure(found == expected, HeaderError::HashMismatch { offset, found, expected })
    }

    /// Writes the checksum and returns the bytes.
    pub fn seal(mut self) -> [u8; HEADER_BYTES] {
        let sum = checksum(&self.0[..CHECKSUM]);
        self.put(CHECKSUM, &sum.to_le_bytes());
        self.0
    }

    /// Returns the checksum of a header that was read. It distinguishes containers.
    #[inline]
    pub fn checksum(&self) -> u64 {
        self.u64_at(CHECKSUM)
    }

    #[inline]
    fn bytes_at<const N: usize>(&self, offset: usize) -> [u8; N] {
        core::array::from_fn(|i| self.0[offset + i])
    }

    /// Reads a field of one byte.
    #[inline]
    pub fn u8_at(&self, offset: usize) -> u8 {
        self.0[offset]
    }

    /// Reads a field of four bytes.
    #[inline]
    pub fn u32_at(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.bytes_at(offset))
    }

    /// Reads a field of eight bytes.
    #[inline]
    pub fn u64_at(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.bytes_at(offset))
    }

    /// Checks that reserved bytes are zero.
    ///
    /// # Errors
    ///
    /// [`HeaderError::Field`] with the offset of the first non-zero byte.
    pub fn check_zero(&self, mut offsets: core::ops::Range<usize>) -> Result<(), HeaderError> {
        match offsets.find(|&offset| self.0[offset] != 0) {
            None => Ok(()),
            Some(at) => Err(HeaderError::field(at, "reserved byte", self.0[at], "must be 0")),
        }
    }

    /// Checks a container's length in bytes, including the header.
    ///
    /// # Errors
    ///
    /// [`HeaderError::Length`] if the lengths differ.
    #[inline]
    pub fn check_length(found: u64, expected: u64) -> Result<(), HeaderError> {
        ensure(found == expected, HeaderError::Length { found, expected })
    }

    /// Checks the bytes after the header against their checksum, XXH3-64 with seed 0, which the
    /// header holds at `offset`.
    ///
    /// Cost: reads `body` once, at several GB/s.
    ///
    /// # Errors
    ///
    /// [`HeaderError::BodyChecksum`] if the checksums differ.
    pub fn check_body(&self, offset: usize, body: &[u8]) -> Result<(), HeaderError> {
        let (stored, computed) = (self.u64_at(offset), checksum(body));
        let offset = offset as u64;
        ensure(stored == computed, HeaderError::BodyChecksum { offset, stored, computed })
    }

    /// Writes the checksum of the bytes after the header to `offset`.
    pub fn put_body_checksum(&mut self, offset: usize, body: &[u8]) {
        self.put(offset, &checksum(body).to_le_bytes());
    }
}

/// Error in the header of a stored container, or in its length or checksum.
///
/// ```
/// use blocked_bloom::parts::HeaderError;
/// let error = HeaderError::field(10, "unsupported probe scheme", 9_u8, "supported: 1");
/// assert_eq!(error.to_string(), "offset 10: unsupported probe scheme 9 (supported: 1)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum HeaderError {
    /// The bytes are shorter than a header.
    TooShort {
        /// Length in bytes.
        found: u64,
    },
    /// The bytes are a different container, or the first of them are damaged.
    Magic {
        /// First eight bytes.
        found: [u8; 8],
        /// Magic of the expected container.
        expected: [u8; 8],
    },
    /// A later release wrote the bytes, or they are damaged.
    Version {
        /// Version in the header.
        found: u16,
        /// Latest version that this release reads.
        supported: u16,
    },
    /// The header is damaged.
    Checksum {
        /// Checksum in the header.
        stored: u64,
        /// Checksum of the header's bytes.
        computed: u64,
    },
    /// An integer field has an unsupported value.
    Field {
        /// Offset of the field.
        offset: u64,
        /// Name of the field, or a description of the error.
        field: &'static str,
        /// Value of the field.
        found: u64,
        /// Supported values.
        expected: &'static str,
    },
    /// A floating-point field has an unsupported value.
    Number {
        /// Offset of the field.
        offset: u64,
        /// Name of the field, or a description of the error.
        field: &'static str,
        /// Value of the field.
        found: f64,
        /// Supported values.
        expected: &'static str,
    },
    /// Intact, but built with another hash, seed or tag than expected: hashes of keys that were
    /// inserted would be answered "absent".
    HashMismatch {
        /// Offset of the hash id.
        offset: u64,
        /// Hash of the container.
        found: KeyHash,
        /// Hash that the caller expects.
        expected: KeyHash,
    },
    /// The bytes are truncated, or other bytes follow.
    Length {
        /// Length in bytes.
        found: u64,
        /// Length according to the header, at most 2^64 - 1.
        expected: u64,
    },
    /// The bytes after the header are damaged.
    BodyChecksum {
        /// Offset of the checksum in the header.
        offset: u64,
        /// Checksum in the header.
        stored: u64,
        /// Checksum of the bytes after the header.
        computed: u64,
    },
}

impl HeaderError {
    /// Creates a [`HeaderError::Field`].
    pub fn field(
        offset: usize,
        field: &'static str,
        found: impl Into<u64>,
        expected: &'static str,
    ) -> Self {
        HeaderError::Field { offset: offset as u64, field, found: found.into(), expected }
    }

    /// Returns the offset of the wrong field in bytes. For a wrong length, this is the actual or
    /// the expected end of the bytes, whichever is smaller.
    pub fn offset(&self) -> u64 {
        match *self {
            Self::Magic { .. } => 0,
            Self::Version { .. } => 8,
            Self::Checksum { .. } => CHECKSUM as u64,
            Self::TooShort { found } => found,
            Self::Length { found, expected } => found.min(expected),
            Self::Field { offset, .. }
            | Self::Number { offset, .. }
            | Self::HashMismatch { offset, .. }
            | Self::BodyChecksum { offset, .. } => offset,
        }
    }
}

impl_error!(HeaderError;
    Self::TooShort { found } => (
        "offset {found}: the bytes end, expected a header of {HEADER_BYTES} bytes"
    ),
    Self::Magic { found, expected } => (
        "offset 0: magic {found:02x?}, expected {expected:02x?}: another kind of file, or damaged"
    ),
    Self::Version { found, supported } => (
        "offset 8: unsupported version {found} (supported: {supported}): a later release wrote it, \
         or it is damaged"
    ),
    Self::Checksum { stored, computed } => (
        "offset {CHECKSUM}: header checksum {stored:016x}, expected {computed:016x}: the header is \
         damaged"
    ),
    Self::Field { offset, field, found, expected } => (
        "offset {offset}: {field} {found} ({expected})"
    ),
    Self::Number { offset, field, found, expected } => (
        "offset {offset}: {field} {} ({expected})", ShortNumber(*found)
    ),
    Self::HashMismatch { offset, found, expected } => (
        "offset {offset}: built with {found}, expected {expected}: pass the hash that built it"
    ),
    Self::Length { found, expected } => (
        "offset {}: {found} bytes in all, expected {expected}: {}", found.min(expected),
        if found < expected { "truncated" } else { "followed by other bytes" }
    ),
    Self::BodyChecksum { offset, stored, computed } => (
        "offset {offset}: checksum {stored:016x}, expected {computed:016x}: the bytes after the \
         header are damaged"
    ),
);
