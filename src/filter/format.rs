//! A filter's stored bytes, as `docs/format.md` defines them. Opening allocates nothing and never
//! panics.

use alloc::vec::Vec;

use super::parts::Blocks;
use super::{BloomFilter, Meta};
use crate::hash::KeyHash;
use crate::header::{HEADER_BYTES, Header, HeaderError, MAGIC};
use crate::kernel::Kernel;
use crate::params::stored_bytes;
use crate::prefix::FilterContents;
use crate::probe::MAX_PROBES;
use crate::stored::{Stored, stored, stored_unused};

pub(super) const VERSION: u16 = 1;
pub(super) const PROBE_SCHEME: u8 = 1;
const FLAG_PASS_ALL: u8 = 4;

/// Offset of the checksum of the blocks.
const BLOCK_CHECKSUM: usize = 48;

/// Checks the fields of a header, in the order of `docs/format.md`, and also returns the number of
/// blocks. `expected` is the hash; `None` accepts any.
fn decode(header: &Header, expected: Option<KeyHash>) -> Result<(Meta, u32), HeaderError> {
    let invalid = |offset, field, found: u64, expected| {
        Err(HeaderError::field(offset, field, found, expected))
    };
    let [scheme, probes, flags] = [10, 12, 13].map(|offset| header.u8_at(offset));
    if scheme != PROBE_SCHEME {
        return invalid(10, "unsupported probe scheme", scheme.into(), "supported: 1");
    }
    let key_hash = header.key_hash_at(11, 16, expected)?;
    if !(1..=MAX_PROBES).contains(&u32::from(probes)) {
        return invalid(12, "number of probes", probes.into(), "allowed: 1 to 30");
    }
    let extractor = header.u64_at(40);
    let pass_all = flags & FLAG_PASS_ALL != 0;
    let contents = FilterContents::from_flags(flags & !FLAG_PASS_ALL, extractor)
        .filter(|contents| !pass_all || *contents == FilterContents::WholeKeys);
    let Some(contents) = contents else {
        return invalid(13, "flags", flags.into(), "allowed: 1, 2, 3 and 5");
    };
    header.check_zero(14..16)?;
    header.check_zero(28..32)?;
    match contents.extractor() {
        None => header.check_zero(40..48)?,
        Some(0) => return invalid(40, "extractor", 0, "must not be 0 in a filter of prefixes"),
        Some(_) => {}
    }
    let (blocks, keys_inserted) = (header.u32_at(24), header.u64_at(32));
    let expected = "must be 1 in a pass-all filter";
    match (blocks, probes) {
        (0, _) => invalid(24, "number of blocks", 0, "allowed: 1 to 4294967295"),
        (_, 2..) if pass_all => invalid(12, "number of probes", probes.into(), expected),
        (2.., _) if pass_all => invalid(24, "number of blocks", blocks.into(), expected),
        _ => Ok((Meta { key_hash, keys_inserted, probes, pass_all, contents }, blocks)),
    }
}

impl<B: AsRef<[u8]>> BloomFilter<Stored<B>> {
    /// Opens a stored filter with this hash and verifies all of its bytes, which may have any
    /// alignment. Allocates nothing.
    ///
    /// Pass the hash that lookups use: [`FilterOptions::key_hash`](crate::FilterOptions::key_hash),
    /// or the `KeyHash` of your own hash function.
    ///
    /// Cost: reads everything once, at several GB/s. Lookups then read the bytes in place.
    ///
    /// # Errors
    ///
    /// [`FormatError`] with the unexpected value, its offset and the expected values. Every
    /// truncation, extension and flipped bit is an error, and so is another hash, seed or tag
    /// ([`HeaderError::HashMismatch`]). Never answer "absent" from such bytes: use
    /// [`open_or_pass_all`](Self::open_or_pass_all), or no filter.
    pub fn from_bytes(bytes: B, key_hash: KeyHash) -> Result<Self, FormatError> {
        Self::read(stored(bytes), |bytes| verify(bytes, Some(key_hash)))
    }

    /// Opens a stored filter with any hash and verifies all of its bytes. For tools that describe
    /// filters, and for engines that look up by key after a change of the seed.
    ///
    /// Lookups by key use the hash of the filter. Compare [`key_hash`](Self::key_hash) before you
    /// look up a hash: for a hash of another seed, the filter answers "absent" although the key was
    /// inserted.
    ///
    /// # Errors
    ///
    /// The errors of [`from_bytes`](Self::from_bytes), except for another hash.
    pub fn from_bytes_any_hash(bytes: B) -> Result<Self, FormatError> {
        Self::read(stored(bytes), |bytes| verify(bytes, None))
    }

    /// Opens a stored filter with this hash and verifies its length and header, but not its blocks.
    /// For bytes that were just verified in another way, such as by the engine's block checksum. A
    /// damaged block is not detected, and a lookup may answer "absent" for a key that was inserted.
    ///
    /// Cost: reads at most 128 bytes.
    ///
    /// # Errors
    ///
    /// The errors of [`from_bytes`](Self::from_bytes), except for damaged blocks.
    pub fn from_bytes_trusted(bytes: B, key_hash: KeyHash) -> Result<Self, FormatError> {
        Self::read(stored(bytes), |bytes| Ok(open(bytes, Some(key_hash))?.1))
    }

    /// Opens a stored filter with any hash without verifying its blocks: combines
    /// [`from_bytes_any_hash`](Self::from_bytes_any_hash) and
    /// [`from_bytes_trusted`](Self::from_bytes_trusted).
    ///
    /// # Errors
    ///
    /// The errors of `from_bytes_trusted`, except for another hash.
    pub fn from_bytes_trusted_any_hash(bytes: B) -> Result<Self, FormatError> {
        Self::read(stored(bytes), |bytes| Ok(open(bytes, None)?.1))
    }

    /// Opens a stored filter like [`from_bytes`](Self::from_bytes), but never fails. For damaged
    /// bytes it returns a filter that answers "maybe" to everything, plus the error to log. The
    /// engine stays correct and reads more than necessary. The filter keeps the bytes in both
    /// cases.
    pub fn open_or_pass_all(bytes: B, key_hash: KeyHash) -> (Self, Option<FormatError>) {
        let data = stored(bytes);
        let (data, meta, error) = match verify(data.bytes().unwrap_or_default(), Some(key_hash)) {
            Ok(meta) => (data, meta, None),
            Err(error) => {
                (stored_unused(data.into_inner()), Meta::new(key_hash, 1, true), Some(error.into()))
            }
        };
        (BloomFilter::from_parts(data, meta, Kernel::default()), error)
    }

    /// Opens the bytes in `data`, which `check` verifies.
    pub(super) fn read(
        data: Stored<B>,
        check: impl FnOnce(&[u8]) -> Result<Meta, HeaderError>,
    ) -> Result<Self, FormatError> {
        let meta = check(data.bytes().unwrap_or_default())?;
        Ok(BloomFilter::from_parts(data, meta, Kernel::default()))
    }

    /// Returns the owner of the bytes.
    pub fn into_inner(self) -> B {
        self.data.into_inner()
    }
}

impl<D: Blocks> BloomFilter<D> {
    /// Returns the header of the stored form, which precedes the [`blocks`](Self::blocks). For
    /// containers of several filters. Cost: reads the blocks, for their checksum.
    pub fn stored_header(&self) -> [u8; HEADER_BYTES] {
        let (meta, blocks) = (&self.meta, self.blocks());
        let mut header = Header::new(MAGIC, VERSION);
        let pass_all = if meta.pass_all { FLAG_PASS_ALL } else { 0 };
        header.put(10, &[PROBE_SCHEME]);
        header.put(12, &[meta.probes, meta.contents.flags() | pass_all]);
        header.put_key_hash(11, 16, meta.key_hash);
        header.put(24, &(blocks.len() as u32).to_le_bytes());
        header.put(32, &meta.keys_inserted.to_le_bytes());
        header.put(40, &meta.contents.extractor().unwrap_or(0).to_le_bytes());
        header.put_body_checksum(BLOCK_CHECKSUM, blocks.as_flattened());
        header.seal()
    }

    /// Returns the stored form, which `docs/format.md` defines. `write_to` avoids the copy of the
    /// blocks.
    ///
    /// Cost: two passes over the blocks. Aborts, as `Vec` does, if the allocation fails.
    pub fn to_bytes(&self) -> Vec<u8> {
        let view = self.view();
        [&view.stored_header()[..], view.blocks().as_flattened()].concat()
    }

    /// Writes the stored form, with one call for the header and one for the blocks. Returns the
    /// number of bytes.
    ///
    /// # Errors
    ///
    /// The errors of the writer.
    #[cfg(feature = "std")]
    pub fn write_to(&self, mut writer: impl std::io::Write) -> std::io::Result<u64> {
        let view = self.view();
        let blocks = view.blocks().as_flattened();
        writer.write_all(&view.stored_header())?;
        writer.write_all(blocks)?;
        Ok((HEADER_BYTES + blocks.len()) as u64)
    }
}

/// Checks all bytes of a stored filter. `expected` is its hash; `None` accepts any.
fn verify(bytes: &[u8], expected: Option<KeyHash>) -> Result<Meta, HeaderError> {
    let (header, meta) = open(bytes, expected)?;
    header.check_body(BLOCK_CHECKSUM, &bytes[HEADER_BYTES..])?;
    Ok(meta)
}

/// Checks the header and the length of a stored filter, but not its blocks.
#[inline]
fn open(bytes: &[u8], expected: Option<KeyHash>) -> Result<(Header, Meta), HeaderError> {
    let header = Header::read(bytes, MAGIC, VERSION)?;
    let (meta, count) = decode(&header, expected)?;
    Header::check_length(bytes.len() as u64, stored_bytes(count))?;
    if meta.pass_all
        && let Some(at) = bytes[HEADER_BYTES..].iter().position(|&byte| byte != 0xff)
    {
        let at = HEADER_BYTES + at;
        let expected = "must be 255 in a pass-all filter";
        return Err(HeaderError::field(at, "byte of the block", bytes[at], expected));
    }
    Ok((header, meta))
}

/// Error of opening bytes that are not a filter, or of storing a filter. Never answer "absent" from
/// such bytes: use a pass-all filter, or none.
///
/// ```
/// use blocked_bloom::parts::HeaderError;
/// use blocked_bloom::{BloomFilter, FormatError, KeyHash};
/// let mut bytes = BloomFilter::pass_all(KeyHash::default()).to_bytes();
/// bytes[0] ^= 1;
/// let error = BloomFilter::from_bytes(&bytes, KeyHash::default()).unwrap_err();
/// assert!(matches!(error, FormatError::Header(HeaderError::Magic { .. })));
/// assert_eq!(error.offset(), 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum FormatError {
    /// The header, the length or a checksum is wrong, or the hash is another one than expected.
    Header(HeaderError),
    /// The compact form cannot hold the filter.
    NotCompact {
        /// Hash and seed; the form requires XXH3-64 with seed 0.
        key_hash: KeyHash,
        /// Contents; the form requires whole keys.
        contents: FilterContents,
        /// Number of keys inserted; the form allows up to 2^32 - 1.
        keys_inserted: u64,
    },
}

impl FormatError {
    /// Returns the offset of the wrong field in bytes. For a wrong length, this is the actual or
    /// the expected end of the bytes, whichever is smaller.
    pub fn offset(&self) -> u64 {
        match self {
            Self::Header(error) => error.offset(),
            Self::NotCompact { .. } => 0,
        }
    }
}

impl_error!(FormatError, Header(HeaderError);
    Self::NotCompact { key_hash, contents, keys_inserted } => (
        "a filter of {keys_inserted} {contents} hashed with {key_hash}: the compact form holds up \
         to {} whole keys hashed with {}; use to_bytes",
        u32::MAX, KeyHash::default()
    ),
);
