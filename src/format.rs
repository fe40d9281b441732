//! The stored bytes: `docs/format.md` in code.
//!
//! This file owns the header, its checks and the checksums. It refuses what it does not know, borrows instead of copying,
//! allocates nothing when reading and panics on no input.

use alloc::vec::Vec;

use crate::error::FormatError;
use crate::filter::BloomFilter;
use crate::hash::{KeyHash, checksum};
use crate::kernel::Kernel;
use crate::params::{HEADER_BYTES, stored_bytes};
use crate::prefix::Added;
use crate::probe::{Block, MAX_PROBES};
use crate::view::{BloomFilterRef, Meta};

/// First byte not ASCII, last a line feed: a transfer in text mode shows.
pub(crate) const MAGIC: [u8; 8] = *b"\x89BBLOOM\n";
const VERSION: u16 = 1;
const LAW: u8 = 1;
const HASH_CALLER: u8 = 0;
const HASH_XXH3: u8 = 1;
const FLAG_WHOLE_KEYS: u8 = 1;
const FLAG_PREFIXES: u8 = 2;
const FLAG_PASS_ALL: u8 = 4;

pub(crate) type Header = [u8; HEADER_BYTES];

/// The header of a filter with these blocks.
pub(crate) fn header(view: &BloomFilterRef<'_>) -> Header {
    let meta = view.meta();
    let (hash, seed) = match meta.key_hash {
        KeyHash::Caller { tag } => (HASH_CALLER, tag),
        KeyHash::Xxh3 { seed } => (HASH_XXH3, seed),
    };
    let mut header = [0; HEADER_BYTES];
    let mut put = |offset: usize, bytes: &[u8]| {
        header[offset..offset + bytes.len()].copy_from_slice(bytes);
    };
    put(0, &MAGIC);
    put(8, &VERSION.to_le_bytes());
    put(10, &[LAW, hash, meta.probes]);
    let added = match meta.added {
        Added::WholeKeys => FLAG_WHOLE_KEYS,
        Added::Prefixes { .. } => FLAG_PREFIXES,
        Added::WholeKeysAndPrefixes { .. } => FLAG_WHOLE_KEYS | FLAG_PREFIXES,
    };
    put(13, &[added | if meta.pass_all { FLAG_PASS_ALL } else { 0 }]);
    put(16, &seed.to_le_bytes());
    put(24, &(view.blocks().len() as u32).to_le_bytes());
    put(32, &meta.keys_inserted.to_le_bytes());
    put(40, &meta.added.extractor().unwrap_or(0).to_le_bytes());
    put(48, &checksum(view.blocks().as_flattened()).to_le_bytes());
    let sum = checksum(&header[..56]);
    header[56..].copy_from_slice(&sum.to_le_bytes());
    header
}

fn u32_at(header: &Header, offset: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&header[offset..offset + 4]);
    u32::from_le_bytes(bytes)
}

fn u64_at(header: &Header, offset: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&header[offset..offset + 8]);
    u64::from_le_bytes(bytes)
}

/// What a header says of its filter.
struct Decoded {
    meta: Meta,
    blocks: u32,
    block_checksum: u64,
}

/// Checks a header by itself: steps 2 to 5 of the document.
fn decode(header: &Header) -> Result<Decoded, FormatError> {
    if header[..8] != MAGIC {
        let mut found = [0; 8];
        found.copy_from_slice(&header[..8]);
        return Err(FormatError::Magic { found });
    }
    let version = u16::from_le_bytes([header[8], header[9]]);
    if version != VERSION {
        return Err(FormatError::Version { found: version });
    }
    let (stored, computed) = (u64_at(header, 56), checksum(&header[..56]));
    if stored != computed {
        return Err(FormatError::HeaderChecksum { stored, computed });
    }
    let [law, hash, probes, flags] = [header[10], header[11], header[12], header[13]];
    if law != LAW {
        return Err(FormatError::Law { found: law });
    }
    let seed = u64_at(header, 16);
    let key_hash = match hash {
        HASH_CALLER => KeyHash::Caller { tag: seed },
        HASH_XXH3 => KeyHash::Xxh3 { seed },
        _ => return Err(FormatError::Hash { found: hash }),
    };
    if !(1..=MAX_PROBES).contains(&u32::from(probes)) {
        return Err(FormatError::Probes { found: probes });
    }
    let extractor = u64_at(header, 40);
    let pass_all = flags & FLAG_PASS_ALL != 0;
    let (added, unused) = match flags & !FLAG_PASS_ALL {
        FLAG_WHOLE_KEYS => (Added::WholeKeys, 40..48),
        FLAG_PREFIXES if !pass_all => (Added::Prefixes { extractor }, 0..0),
        flags if flags == FLAG_WHOLE_KEYS | FLAG_PREFIXES && !pass_all => {
            (Added::WholeKeysAndPrefixes { extractor }, 0..0)
        }
        _ => return Err(FormatError::Flags { found: flags }),
    };
    for offset in (14..16).chain(28..32).chain(unused) {
        if header[offset] != 0 {
            return Err(FormatError::NotZero { offset: offset as u64, found: header[offset] });
        }
    }
    if added.extractor() == Some(0) {
        return Err(FormatError::NoExtractor);
    }
    let blocks = u32_at(header, 24);
    match blocks {
        0 => return Err(FormatError::BlockCount),
        1 if probes == 1 => {}
        _ if pass_all => return Err(FormatError::PassAllShape { blocks, probes }),
        _ => {}
    }
    let meta = Meta { key_hash, keys_inserted: u64_at(header, 32), probes, pass_all, added };
    Ok(Decoded { meta, blocks, block_checksum: u64_at(header, 48) })
}

/// The checksum that ends a header, which tells one filter from another; none if the bytes are too short.
pub(crate) fn header_checksum(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|header| u64_at(header, 56))
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
    /// use blocked_bloom::{BloomFilterBuilder, BloomFilterRef, FormatError, Sizing};
    /// let stored = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0)).finish()?.to_bytes();
    /// assert!(BloomFilterRef::from_bytes(&stored).is_ok());
    /// let error = BloomFilterRef::from_bytes(&stored[..100]).unwrap_err();
    /// assert!(matches!(error, FormatError::Length { found: 100, expected: 128, .. }));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let (view, stored) = open(bytes)?;
        let computed = checksum(view.blocks().as_flattened());
        if stored != computed {
            return Err(FormatError::BlockChecksum { stored, computed });
        }
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
    ///
    /// ```
    /// use blocked_bloom::{BloomFilterBuilder, BloomFilterRef, Sizing};
    /// let stored = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0)).finish()?.to_bytes();
    /// assert!(BloomFilterRef::from_bytes_trusted(&stored).is_ok());
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    pub fn from_bytes_trusted(bytes: &'a [u8]) -> Result<Self, FormatError> {
        open(bytes).map(|(view, _)| view)
    }

    /// [`from_bytes`](Self::from_bytes) for a filter of this hash, or one that answers "maybe" to everything and the reason, for the
    /// log: an engine that goes on stays correct, and reads more than it had to.
    ///
    /// ```
    /// use blocked_bloom::{BloomFilterBuilder, BloomFilterRef, KeyHash, Sizing};
    /// let stored = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0)).finish()?.to_bytes();
    /// let (filter, error) = BloomFilterRef::open_or_pass_all(&stored, KeyHash::default());
    /// assert!(error.is_none() && !filter.contains("apple"));
    /// let (filter, error) = BloomFilterRef::open_or_pass_all(&stored[..100], KeyHash::default());
    /// assert!(error.is_some() && filter.contains("apple"));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    pub fn open_or_pass_all(bytes: &'a [u8], key_hash: KeyHash) -> (Self, Option<FormatError>) {
        match Self::from_bytes(bytes).and_then(|filter| filter.require_key_hash(key_hash)) {
            Ok(filter) => (filter, None),
            Err(error) => (BloomFilterRef::pass_all(key_hash), Some(error)),
        }
    }

    /// The stored form, as `docs/format.md` describes it. Cost: two passes over the blocks.
    ///
    /// Allocates as `Vec` does; `write_to` needs no second copy of the blocks.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilter, BloomFilterRef, KeyHash};
    /// # let filter = BloomFilter::pass_all(KeyHash::default())?;
    /// let stored = filter.view().to_bytes();
    /// assert_eq!(BloomFilterRef::from_bytes(&stored)?, filter.view());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilter, KeyHash};
    /// # let filter = BloomFilter::pass_all(KeyHash::default())?;
    /// let mut file = Vec::new();
    /// let bytes = filter.view().write_to(&mut file)?;
    /// assert_eq!((bytes, file), (128, filter.to_bytes()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn write_to(&self, mut writer: impl std::io::Write) -> std::io::Result<u64> {
        let blocks = self.blocks().as_flattened();
        writer.write_all(&header(self))?;
        writer.write_all(blocks)?;
        Ok((HEADER_BYTES + blocks.len()) as u64)
    }
}

/// The filter in `bytes`, with the checksum that its header gives for the blocks.
fn open(bytes: &[u8]) -> Result<(BloomFilterRef<'_>, u64), FormatError> {
    let found = bytes.len() as u64;
    let Some(header) = bytes.first_chunk() else {
        return Err(FormatError::TooShort { found });
    };
    let decoded = decode(header)?;
    let expected = stored_bytes(decoded.blocks);
    if found != expected {
        return Err(FormatError::Length { found, expected });
    }
    let blocks = blocks(bytes);
    if decoded.meta.pass_all
        && let Some(at) = blocks[0].iter().position(|&byte| byte != 0xff)
    {
        let offset = (HEADER_BYTES + at) as u64;
        return Err(FormatError::PassAllBlock { offset, found: blocks[0][at] });
    }
    let view = BloomFilterRef::new(blocks, decoded.meta, Kernel::default());
    Ok((view, decoded.block_checksum))
}

impl BloomFilter {
    /// [`BloomFilterRef::to_bytes`].
    ///
    /// ```
    /// # let filter = blocked_bloom::BloomFilter::pass_all(blocked_bloom::KeyHash::default())?;
    /// assert_eq!(filter.to_bytes().len(), 128);
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        self.view().to_bytes()
    }

    /// [`BloomFilterRef::write_to`].
    ///
    /// # Errors
    ///
    /// Those of the writer.
    ///
    /// ```
    /// # let filter = blocked_bloom::BloomFilter::pass_all(blocked_bloom::KeyHash::default())?;
    /// assert_eq!(filter.write_to(std::io::sink())?, 128);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn write_to(&self, writer: impl std::io::Write) -> std::io::Result<u64> {
        self.view().write_to(writer)
    }
}
