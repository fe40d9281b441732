//! The stored bytes of a filter: `docs/format.md` in code. Reading borrows, allocates nothing, and panics on no input.

use alloc::vec::Vec;

use super::owned::BloomFilter;
use super::view::{BloomFilterRef, Meta};
use crate::error::FormatError;
use crate::hash::KeyHash;
use crate::header::{HEADER_BYTES, Header, HeaderError};
use crate::kernel::Kernel;
use crate::params::stored_bytes;
use crate::prefix::FilterContents;
use crate::probe::{Block, MAX_PROBES};

pub(super) const MAGIC: [u8; 8] = *b"\x89BBLOOM\n";
pub(super) const VERSION: u16 = 1;
pub(super) const PROBE_SCHEME: u8 = 1;
pub(super) const FLAG_WHOLE_KEYS: u8 = 1;
pub(super) const FLAG_PREFIXES: u8 = 2;
const FLAG_PASS_ALL: u8 = 4;

/// Where the header has the checksum of the blocks.
const BLOCK_CHECKSUM: usize = 48;

/// The flags of what a filter holds.
pub(crate) fn flags_of(contents: FilterContents) -> u8 {
    let keys = if contents.whole_keys() { FLAG_WHOLE_KEYS } else { 0 };
    keys | if contents.extractor().is_some() { FLAG_PREFIXES } else { 0 }
}

/// What a filter of these flags holds, none if there are unknown ones.
pub(crate) fn contents_of(flags: u8, extractor: u64) -> Option<FilterContents> {
    match flags {
        FLAG_WHOLE_KEYS => Some(FilterContents::WholeKeys),
        FLAG_PREFIXES => Some(FilterContents::Prefixes { extractor }),
        flags if flags == FLAG_WHOLE_KEYS | FLAG_PREFIXES => {
            Some(FilterContents::WholeKeysAndPrefixes { extractor })
        }
        _ => None,
    }
}

/// The header of a filter with these blocks.
pub(crate) fn header(view: &BloomFilterRef<'_>) -> [u8; HEADER_BYTES] {
    let meta = view.meta();
    let mut header = Header::new(MAGIC, VERSION);
    let pass_all = if meta.pass_all { FLAG_PASS_ALL } else { 0 };
    header.put(10, &[PROBE_SCHEME]);
    header.put(12, &[meta.probes, flags_of(meta.contents) | pass_all]);
    header.put_key_hash(11, 16, meta.key_hash);
    header.put(24, &(view.blocks().len() as u32).to_le_bytes());
    header.put(32, &meta.keys_inserted.to_le_bytes());
    header.put(40, &meta.contents.extractor().unwrap_or(0).to_le_bytes());
    header.put_body_checksum(BLOCK_CHECKSUM, view.blocks().as_flattened());
    header.seal()
}

/// Checks the fields of a header by themselves, in the order of the document; gives the number of blocks.
fn decode(header: &Header) -> Result<(Meta, u32), FormatError> {
    let [scheme, probes, flags] = [10, 12, 13].map(|offset| header.u8_at(offset));
    if scheme != PROBE_SCHEME {
        return Err(
            HeaderError::field(10, "unsupported probe scheme", scheme, "supported: 1").into()
        );
    }
    let key_hash = header.key_hash_at(11, 16)?;
    if !(1..=MAX_PROBES).contains(&u32::from(probes)) {
        return Err(HeaderError::field(12, "number of probes", probes, "allowed: 1 to 30").into());
    }
    let extractor = header.u64_at(40);
    let pass_all = flags & FLAG_PASS_ALL != 0;
    let contents = contents_of(flags & !FLAG_PASS_ALL, extractor)
        .filter(|contents| !pass_all || *contents == FilterContents::WholeKeys);
    let Some(contents) = contents else {
        return Err(HeaderError::field(13, "flags", flags, "allowed: 1, 2, 3 and 5").into());
    };
    header.check_zero(14..16)?;
    header.check_zero(28..32)?;
    match contents.extractor() {
        None => header.check_zero(40..48)?,
        Some(0) => {
            let expected = "must not be 0, since prefixes were added";
            return Err(HeaderError::field(40, "extractor", 0_u8, expected).into());
        }
        Some(_) => {}
    }
    let blocks = header.u32_at(24);
    let of_pass_all = "must be 1 in a pass-all filter";
    match (blocks, probes) {
        (0, _) => {
            let allowed = "allowed: 1 to 4294967295";
            return Err(HeaderError::field(24, "number of blocks", 0_u8, allowed).into());
        }
        (_, 2..) if pass_all => {
            return Err(HeaderError::field(12, "number of probes", probes, of_pass_all).into());
        }
        (2.., _) if pass_all => {
            return Err(HeaderError::field(24, "number of blocks", blocks, of_pass_all).into());
        }
        _ => {}
    }
    let keys_inserted = header.u64_at(32);
    Ok((Meta { key_hash, keys_inserted, probes, pass_all, contents }, blocks))
}

/// The checksum that ends a filter's header, which tells one filter from another; none if the bytes are too short.
pub(crate) fn header_checksum(bytes: &[u8]) -> Option<u64> {
    bytes.get(56..)?.first_chunk().map(|sum| u64::from_le_bytes(*sum))
}

/// The bytes of the stored filter at the start of `rest`, as its header gives them: right if the header is.
pub(crate) fn length(rest: &[u8]) -> usize {
    let blocks = rest.get(24..).and_then(|rest| rest.first_chunk());
    let blocks = blocks.map_or(0, |&bytes| u32::from_le_bytes(bytes));
    usize::try_from(stored_bytes(blocks)).unwrap_or(usize::MAX)
}

/// The whole blocks behind the header, none if the bytes are too short.
pub(crate) fn blocks(bytes: &[u8]) -> &[Block] {
    bytes.get(HEADER_BYTES..).unwrap_or_default().as_chunks().0
}

impl<'a> BloomFilterRef<'a> {
    /// Opens a stored filter and verifies all of it. Borrows the bytes, whatever their alignment; allocates nothing.
    ///
    /// Cost: reads everything once, at several GB/s. Afterwards nothing is decoded: queries read the bytes in place.
    ///
    /// # Errors
    ///
    /// [`FormatError`] says what was found, where, and what was expected. Every truncation, extension and flipped bit is an error.
    /// Such bytes must not be used to answer "absent": go on with a [pass-all filter](BloomFilter::pass_all), or without one.
    ///
    /// ```
    /// use blocked_bloom::header::HeaderError;
    /// use blocked_bloom::{BloomFilterRef, FilterOptions, FormatError, Sizing};
    /// let stored = FilterOptions::new(Sizing::BitsPerKey(10.0)).builder().finish()?.to_bytes();
    /// assert!(BloomFilterRef::from_bytes(&stored).is_ok());
    /// let error = BloomFilterRef::from_bytes(&stored[..100]).unwrap_err();
    /// assert!(matches!(error, FormatError::Header(HeaderError::Length { found: 100, expected: 128, .. })));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let (view, header) = open(bytes)?;
        header.check_body(BLOCK_CHECKSUM, view.blocks().as_flattened())?;
        Ok(view)
    }

    /// Opens a stored filter and verifies its length and header, not its blocks: for bytes whose integrity something else has
    /// just checked, such as the engine's own block checksum. A damaged block then goes unnoticed, and may answer "absent" for
    /// a key that is there.
    ///
    /// Cost: reads at most 128 bytes, whatever the size.
    ///
    /// # Errors
    ///
    /// [`FormatError`], as [`from_bytes`](Self::from_bytes) but for the blocks.
    pub fn from_bytes_trusted(bytes: &'a [u8]) -> Result<Self, FormatError> {
        open(bytes).map(|(view, _)| view)
    }

    /// [`from_bytes`](Self::from_bytes) for a filter of this hash, or one that answers "maybe" to everything and the reason, for the
    /// log: an engine that goes on stays correct, and reads more than it had to.
    ///
    /// ```
    /// use blocked_bloom::{BloomFilterRef, FilterOptions, Sizing};
    /// let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
    /// let stored = options.builder().finish()?.to_bytes();
    /// let (filter, error) = BloomFilterRef::open_or_pass_all(&stored, options.key_hash());
    /// assert!(error.is_none() && !filter.contains("apple"));
    /// let (filter, error) = BloomFilterRef::open_or_pass_all(&stored[..100], options.key_hash());
    /// assert!(error.is_some() && filter.contains("apple"));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    pub fn open_or_pass_all(bytes: &'a [u8], key_hash: KeyHash) -> (Self, Option<FormatError>) {
        match Self::from_bytes(bytes).and_then(|filter| filter.require_key_hash(key_hash)) {
            Ok(filter) => (filter, None),
            Err(error) => (BloomFilterRef::pass_all(key_hash), Some(error)),
        }
    }

    /// [`open_or_pass_all`](Self::open_or_pass_all) without reading the blocks, as [`from_bytes_trusted`](Self::from_bytes_trusted): for
    /// bytes whose integrity something else has just checked.
    pub fn open_trusted_or_pass_all(
        bytes: &'a [u8],
        key_hash: KeyHash,
    ) -> (Self, Option<FormatError>) {
        match Self::from_bytes_trusted(bytes).and_then(|filter| filter.require_key_hash(key_hash)) {
            Ok(filter) => (filter, None),
            Err(error) => (BloomFilterRef::pass_all(key_hash), Some(error)),
        }
    }

    /// The stored form, as `docs/format.md` describes it. Cost: two passes over the blocks.
    ///
    /// Allocates as `Vec` does; `write_to` needs no second copy of the blocks.
    pub fn to_bytes(&self) -> Vec<u8> {
        let blocks = self.blocks().as_flattened();
        let mut bytes = Vec::with_capacity(HEADER_BYTES + blocks.len());
        bytes.extend_from_slice(&header(self));
        bytes.extend_from_slice(blocks);
        bytes
    }

    /// Writes the stored form: the header, then all blocks in one `write_all`. Returns the number of bytes.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    #[cfg(feature = "std")]
    pub fn write_to(&self, mut writer: impl std::io::Write) -> std::io::Result<u64> {
        let blocks = self.blocks().as_flattened();
        writer.write_all(&header(self))?;
        writer.write_all(blocks)?;
        Ok((HEADER_BYTES + blocks.len()) as u64)
    }
}

/// The filter in `bytes` and its header. The blocks are not verified.
#[inline]
fn open(bytes: &[u8]) -> Result<(BloomFilterRef<'_>, Header), FormatError> {
    let header = Header::read(bytes, MAGIC, VERSION)?;
    let (meta, count) = decode(&header)?;
    Header::check_length(bytes.len() as u64, stored_bytes(count))?;
    let blocks = blocks(bytes);
    if meta.pass_all
        && let Some(at) = blocks[0].iter().position(|&byte| byte != 0xff)
    {
        let (found, expected) = (blocks[0][at], "must be 255 in a pass-all filter");
        return Err(
            HeaderError::field(HEADER_BYTES + at, "byte of the block", found, expected).into()
        );
    }
    Ok((BloomFilterRef::new(blocks, meta, Kernel::default()), header))
}

impl BloomFilter {
    /// [`BloomFilterRef::to_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        self.view().to_bytes()
    }

    /// [`BloomFilterRef::write_to`].
    ///
    /// # Errors
    ///
    /// Those of the writer.
    #[cfg(feature = "std")]
    pub fn write_to(&self, writer: impl std::io::Write) -> std::io::Result<u64> {
        self.view().write_to(writer)
    }
}
