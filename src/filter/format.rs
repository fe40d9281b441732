//! A filter's stored bytes: `docs/format.md` in code. Reading allocates nothing and never panics.

use alloc::vec::Vec;
use core::fmt::{self, Display, Formatter};

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

/// Where the header has the checksum of the blocks.
const BLOCK_CHECKSUM: usize = 48;

/// Checks the fields of a header, in the order of the document. `expected` is the hash, `None` for
/// any. Returns the number of blocks too.
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
        Some(0) => return invalid(40, "extractor", 0, "must not be 0, since prefixes were added"),
        Some(_) => {}
    }
    let (blocks, keys_inserted) = (header.u32_at(24), header.u64_at(32));
    let of_pass_all = "must be 1 in a pass-all filter";
    match (blocks, probes) {
        (0, _) => invalid(24, "number of blocks", 0, "allowed: 1 to 4294967295"),
        (_, 2..) if pass_all => invalid(12, "number of probes", probes.into(), of_pass_all),
        (2.., _) if pass_all => invalid(24, "number of blocks", blocks.into(), of_pass_all),
        _ => Ok((Meta { key_hash, keys_inserted, probes, pass_all, contents }, blocks)),
    }
}

impl<B: AsRef<[u8]>> BloomFilter<Stored<B>> {
    /// Opens a stored filter of this hash and verifies all of it, at any alignment. Allocates
    /// nothing.
    ///
    /// Pass the hash that lookups use: [`FilterOptions::key_hash`](crate::FilterOptions::key_hash),
    /// or the `KeyHash` of your own hash function.
    ///
    /// Cost: reads everything once, at several GB/s. Lookups then read the bytes in place.
    ///
    /// # Errors
    ///
    /// [`FormatError`] says what was found, where, and what was expected. Every truncation,
    /// extension and flipped bit is an error, and so is another hash, seed or tag
    /// ([`HeaderError::HashMismatch`]). Such bytes must not be used to answer "absent": go on
    /// with [`open_or_pass_all`](Self::open_or_pass_all), or without a filter.
    pub fn from_bytes(bytes: B, key_hash: KeyHash) -> Result<Self, FormatError> {
        Self::read(stored(bytes), |bytes| verify(bytes, Some(key_hash)))
    }

    /// Opens a stored filter of any hash and verifies all of it, as
    /// [`from_bytes`](Self::from_bytes) does: for tools that describe filters, and for engines that
    /// look up by key after a change of the seed.
    ///
    /// Lookups by key use the hash of the filter. Before you look up a hash, compare
    /// [`key_hash`](Self::key_hash): a hash of another seed would be answered "absent" for a key
    /// that was inserted.
    ///
    /// # Errors
    ///
    /// [`FormatError`], as `from_bytes` but for another hash.
    pub fn from_bytes_any_hash(bytes: B) -> Result<Self, FormatError> {
        Self::read(stored(bytes), |bytes| verify(bytes, None))
    }

    /// Opens a stored filter of this hash and verifies its length and header, not its blocks: for
    /// bytes whose integrity something else has just checked, such as the engine's own block
    /// checksum. A damaged block then goes unnoticed, and may answer "absent" for a key that was
    /// inserted.
    ///
    /// Cost: reads at most 128 bytes, whatever the size.
    ///
    /// # Errors
    ///
    /// [`FormatError`], as [`from_bytes`](Self::from_bytes) but for the blocks.
    pub fn from_bytes_trusted(bytes: B, key_hash: KeyHash) -> Result<Self, FormatError> {
        Self::read(stored(bytes), |bytes| Ok(open(bytes, Some(key_hash))?.1))
    }

    /// Opens a stored filter of any hash without verifying its blocks: combines
    /// [`from_bytes_any_hash`](Self::from_bytes_any_hash) and
    /// [`from_bytes_trusted`](Self::from_bytes_trusted).
    ///
    /// # Errors
    ///
    /// [`FormatError`], as `from_bytes_trusted` but for another hash.
    pub fn from_bytes_trusted_any_hash(bytes: B) -> Result<Self, FormatError> {
        Self::read(stored(bytes), |bytes| Ok(open(bytes, None)?.1))
    }

    /// Opens a stored filter as [`from_bytes`](Self::from_bytes) does, and never fails: for bytes
    /// that cannot be used it returns a filter that answers "maybe" to everything, plus the error
    /// to log. The engine stays correct and reads more than necessary. The filter keeps the bytes
    /// either way.
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

    /// Opens the bytes that `data` lends now, even if their owner lends others later.
    pub(super) fn read(
        data: Stored<B>,
        check: impl FnOnce(&[u8]) -> Result<Meta, HeaderError>,
    ) -> Result<Self, FormatError> {
        let meta = check(data.bytes().unwrap_or_default())?;
        Ok(BloomFilter::from_parts(data, meta, Kernel::default()))
    }

    /// Gives the bytes back.
    pub fn into_inner(self) -> B {
        self.data.into_inner()
    }
}

impl<D: Blocks> BloomFilter<D> {
    /// The header of the stored form, behind which come the [`blocks`](Self::blocks): for
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

    /// The stored form, as `docs/format.md` describes it. Cost: two passes over the blocks.
    ///
    /// Allocates as `Vec` does; `write_to` needs no second copy of the blocks.
    pub fn to_bytes(&self) -> Vec<u8> {
        let view = self.view();
        let blocks = view.blocks().as_flattened();
        let mut bytes = Vec::with_capacity(HEADER_BYTES + blocks.len());
        bytes.extend_from_slice(&view.stored_header());
        bytes.extend_from_slice(blocks);
        bytes
    }

    /// Writes the stored form: the header, then the blocks at once. Returns the number of bytes.
    ///
    /// # Errors
    ///
    /// The writer's errors.
    #[cfg(feature = "std")]
    pub fn write_to(&self, mut writer: impl std::io::Write) -> std::io::Result<u64> {
        let view = self.view();
        let blocks = view.blocks().as_flattened();
        writer.write_all(&view.stored_header())?;
        writer.write_all(blocks)?;
        Ok((HEADER_BYTES + blocks.len()) as u64)
    }
}

/// Checks all of a stored filter. `expected` is its hash, `None` for any.
fn verify(bytes: &[u8], expected: Option<KeyHash>) -> Result<Meta, HeaderError> {
    let (header, meta) = open(bytes, expected)?;
    header.check_body(BLOCK_CHECKSUM, &bytes[HEADER_BYTES..])?;
    Ok(meta)
}

/// Checks the header and the length of a stored filter, not its blocks.
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

/// Why bytes are not a filter. They must not answer "absent": use a pass-all filter, or none.
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
    /// The header, the length or a checksum is wrong, or the hash is not the expected one.
    Header(HeaderError),
    /// A filter that the compact form cannot hold.
    NotCompact {
        /// Its hash and seed; the form is for XXH3-64 with seed 0.
        key_hash: KeyHash,
        /// What it holds; the form is for whole keys.
        contents: FilterContents,
        /// Its keys; the form counts to 2^32 - 1.
        keys_inserted: u64,
    },
}

impl FormatError {
    /// The offset, in bytes, of the field at fault; for a wrong length, the place where the bytes
    /// end or should have ended, whichever comes first.
    pub fn offset(&self) -> u64 {
        match self {
            Self::Header(error) => error.offset(),
            Self::NotCompact { .. } => 0,
        }
    }
}

impl Display for FormatError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(error) => error.fmt(f),
            Self::NotCompact { key_hash, contents, keys_inserted } => write!(
                f,
                "a filter of {keys_inserted} {contents}, hashed by {key_hash}: the compact form is \
                 for up to {} whole keys hashed by {}",
                u32::MAX,
                KeyHash::default()
            ),
        }
    }
}

impl_error!(FormatError, Header(HeaderError));
