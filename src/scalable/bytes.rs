//! The stored form of a growing filter: the container of `docs/format.md` with the magic `89 42 42 47 52 4f 57 0a`.
//!
//! This file owns the container's header and the way from link to link. It refuses what it does not know, leaves the links to the
//! checks of ordinary filters, and panics on no input.

use alloc::vec::Vec;

use super::{ScalableBloomFilter, Shape};
use crate::error::{AllocError, ScalableFormatError};
use crate::filter::BloomFilter;
use crate::format::{self, Header};
use crate::hash::{KeyHash, checksum};
use crate::kernel::Kernel;
use crate::params::HEADER_BYTES;
use crate::probe::BLOCK_BYTES;
use crate::view::BloomFilterRef;

const MAGIC: [u8; 8] = *b"\x89BBGROW\n";
const VERSION: u16 = 1;
const HASH_CALLER: u8 = 0;
const HASH_XXH3: u8 = 1;

/// A growing filter borrowed from its stored bytes, for readers. Allocates a list of the links, ten words each, and copies
/// no block.
///
/// ```
/// use blocked_bloom::{ScalableBloomFilter, ScalableBloomFilterRef};
/// let mut filter = ScalableBloomFilter::new(0.01, 100)?;
/// filter.insert("apple")?;
/// let stored = filter.to_bytes();
///
/// let view = ScalableBloomFilterRef::from_bytes(&stored)?;
/// assert!(view.contains("apple") && !view.contains("banana"));
/// assert_eq!(view.to_filter()?, filter);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ScalableBloomFilterRef<'a> {
    shape: Shape,
    links: Vec<BloomFilterRef<'a>>,
}

impl<'a> ScalableBloomFilterRef<'a> {
    /// Opens a stored growing filter and verifies all of it. Cost: reads everything once.
    ///
    /// # Errors
    ///
    /// [`ScalableFormatError`] says what was found, where, and what was expected. Every truncation, extension and flipped bit is
    /// an error. Such bytes must not be used to answer "absent".
    ///
    /// ```
    /// use blocked_bloom::{ScalableBloomFilterRef, ScalableFormatError};
    /// let error = ScalableBloomFilterRef::from_bytes(&[0; 64]).unwrap_err();
    /// assert!(matches!(error, ScalableFormatError::Magic { .. }));
    /// ```
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, ScalableFormatError> {
        let found = bytes.len() as u64;
        let Some((header, body)) = bytes.split_first_chunk() else {
            return Err(ScalableFormatError::TooShort { found });
        };
        let Decoded { shape, count, links_checksum } = decode(header)?;
        let (mut links, mut sums) = (Vec::new(), Vec::new());
        let mut rest = body;
        for link in 0..count {
            let start = (bytes.len() - rest.len()) as u64;
            let (stored, after) = rest.split_at(length(rest).min(rest.len()));
            let fail = |error| ScalableFormatError::Link { link, start, error };
            let view = BloomFilterRef::from_bytes(stored).map_err(fail)?;
            let view = view.require_key_hash(shape.key_hash).map_err(fail)?;
            let bytes = size_of::<BloomFilterRef<'_>>() as u64;
            links.try_reserve(1).map_err(|_| AllocError { bytes })?;
            sums.try_reserve(8).map_err(|_| AllocError { bytes: 8 })?;
            links.push(view);
            sums.extend(format::header_checksum(stored).unwrap_or_default().to_le_bytes());
            rest = after;
        }
        if !rest.is_empty() {
            return Err(ScalableFormatError::Length { found, expected: found - rest.len() as u64 });
        }
        let computed = checksum(&sums);
        if links_checksum != computed {
            return Err(ScalableFormatError::LinksChecksum { stored: links_checksum, computed });
        }
        Ok(ScalableBloomFilterRef { shape, links })
    }

    /// Copies the links into a filter that can be added to.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory for the copies.
    ///
    /// ```
    /// # use blocked_bloom::{ScalableBloomFilter, ScalableBloomFilterRef};
    /// # let stored = ScalableBloomFilter::new(0.01, 100)?.to_bytes();
    /// let mut filter = ScalableBloomFilterRef::from_bytes(&stored)?.to_filter()?;
    /// filter.insert("apple")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_filter(&self) -> Result<ScalableBloomFilter, AllocError> {
        let links = self.links.iter().map(BloomFilterRef::to_filter);
        let links = links.collect::<Result<Vec<BloomFilter>, AllocError>>()?;
        Ok(ScalableBloomFilter { shape: self.shape, kernel: Kernel::default(), links })
    }

    /// The links, the one that receives keys last.
    ///
    /// ```
    /// # use blocked_bloom::{ScalableBloomFilter, ScalableBloomFilterRef};
    /// # let stored = ScalableBloomFilter::new(0.01, 100)?.to_bytes();
    /// assert!(ScalableBloomFilterRef::from_bytes(&stored)?.links().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn links(&self) -> &[BloomFilterRef<'a>] {
        &self.links
    }

    /// The hash and seed the filter was made with. Compare it before asking about hashes.
    ///
    /// ```
    /// # use blocked_bloom::{KeyHash, ScalableBloomFilter, ScalableBloomFilterRef};
    /// # let stored = ScalableBloomFilter::new(0.01, 100)?.to_bytes();
    /// assert_eq!(ScalableBloomFilterRef::from_bytes(&stored)?.key_hash(), KeyHash::default());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn key_hash(&self) -> KeyHash {
        self.shape.key_hash
    }

    pub(super) fn views(&self) -> impl Iterator<Item = BloomFilterRef<'a>> + Clone {
        self.links.iter().rev().copied()
    }
}

impl ScalableBloomFilter {
    /// Opens a stored growing filter, verifies all of it and copies it, to be added to.
    /// [`ScalableBloomFilterRef::from_bytes`] copies nothing.
    ///
    /// # Errors
    ///
    /// [`ScalableFormatError`]; see [`ScalableBloomFilterRef::from_bytes`].
    ///
    /// ```
    /// # use blocked_bloom::ScalableBloomFilter;
    /// let filter = ScalableBloomFilter::new(0.01, 100)?;
    /// assert_eq!(ScalableBloomFilter::from_bytes(&filter.to_bytes())?, filter);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ScalableFormatError> {
        Ok(ScalableBloomFilterRef::from_bytes(bytes)?.to_filter()?)
    }

    /// The stored form, as `docs/format.md` describes it. Cost: two passes over the blocks.
    ///
    /// Allocates as `Vec` does; `write_to` needs no second copy of the blocks.
    ///
    /// ```
    /// # use blocked_bloom::ScalableBloomFilter;
    /// let mut filter = ScalableBloomFilter::new(0.01, 1)?;
    /// assert_eq!(filter.to_bytes().len(), 64);
    /// filter.insert("apple")?;
    /// assert_eq!(filter.to_bytes().len(), 64 + 128);
    /// # Ok::<(), blocked_bloom::ScalableError>(())
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        let headers = self.link_headers();
        let mut bytes = Vec::from(self.header(&headers));
        for (link, header) in self.links.iter().zip(&headers) {
            bytes.extend_from_slice(header);
            bytes.extend_from_slice(link.view().blocks().as_flattened());
        }
        bytes
    }

    /// Writes the stored form. Returns the number of bytes.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    ///
    /// ```
    /// # use blocked_bloom::ScalableBloomFilter;
    /// let mut file = Vec::new();
    /// assert_eq!(ScalableBloomFilter::new(0.01, 1)?.write_to(&mut file)?, 64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn write_to(&self, mut writer: impl std::io::Write) -> std::io::Result<u64> {
        let headers = self.link_headers();
        writer.write_all(&self.header(&headers))?;
        let mut bytes = HEADER_BYTES;
        for (link, header) in self.links.iter().zip(&headers) {
            let blocks = link.view().blocks().as_flattened();
            writer.write_all(header)?;
            writer.write_all(blocks)?;
            bytes += HEADER_BYTES + blocks.len();
        }
        Ok(bytes as u64)
    }

    fn link_headers(&self) -> Vec<Header> {
        self.links.iter().map(|link| format::header(&link.view())).collect()
    }

    fn header(&self, links: &[Header]) -> Header {
        let shape = &self.shape;
        let (hash, seed) = match shape.key_hash {
            KeyHash::Caller { tag } => (HASH_CALLER, tag),
            KeyHash::Xxh3 { seed } => (HASH_XXH3, seed),
        };
        let mut header = [0; HEADER_BYTES];
        let mut put = |offset: usize, bytes: &[u8]| {
            header[offset..offset + bytes.len()].copy_from_slice(bytes);
        };
        put(0, &MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(10, &[hash, shape.growth as u8]);
        put(12, &(self.links.len() as u32).to_le_bytes());
        put(16, &seed.to_le_bytes());
        put(24, &shape.rate.to_bits().to_le_bytes());
        put(32, &shape.tightening.to_bits().to_le_bytes());
        let sums: Vec<u8> = links.iter().flat_map(|link| &link[56..]).copied().collect();
        put(40, &checksum(&sums).to_le_bytes());
        put(48, &shape.items.to_le_bytes());
        let sum = checksum(&header[..56]);
        header[56..].copy_from_slice(&sum.to_le_bytes());
        header
    }
}

/// The bytes of the stored filter at the start of `rest`, as its header gives them: right if the header is.
fn length(rest: &[u8]) -> usize {
    let blocks = rest.get(24..).and_then(|rest| rest.first_chunk());
    let blocks = blocks.map_or(0, |&bytes| u32::from_le_bytes(bytes)) as usize;
    blocks.saturating_mul(BLOCK_BYTES).saturating_add(HEADER_BYTES)
}

struct Decoded {
    shape: Shape,
    /// Links.
    count: u32,
    links_checksum: u64,
}

/// What a header says.
fn decode(header: &Header) -> Result<Decoded, ScalableFormatError> {
    let u32_at =
        |offset: usize| u32::from_le_bytes(core::array::from_fn(|byte| header[offset + byte]));
    let u64_at =
        |offset: usize| u64::from_le_bytes(core::array::from_fn(|byte| header[offset + byte]));
    if header[..8] != MAGIC {
        return Err(ScalableFormatError::Magic { found: core::array::from_fn(|i| header[i]) });
    }
    let found = u16::from_le_bytes([header[8], header[9]]);
    if found != VERSION {
        return Err(ScalableFormatError::Version { found });
    }
    let (stored, computed) = (u64_at(56), checksum(&header[..56]));
    if stored != computed {
        return Err(ScalableFormatError::HeaderChecksum { stored, computed });
    }
    let key_hash = match header[10] {
        HASH_CALLER => KeyHash::Caller { tag: u64_at(16) },
        HASH_XXH3 => KeyHash::Xxh3 { seed: u64_at(16) },
        found => return Err(ScalableFormatError::Hash { found }),
    };
    let (rate, tightening) = (f64::from_bits(u64_at(24)), f64::from_bits(u64_at(32)));
    let (growth, items) = (u32::from(header[11]), u64_at(48));
    if !(2..=16).contains(&growth) {
        return Err(ScalableFormatError::Growth { found: growth });
    }
    if !(rate > 0.0 && rate <= 1.0) {
        return Err(ScalableFormatError::Rate { found: rate });
    }
    if !(0.05..=0.95).contains(&tightening) {
        return Err(ScalableFormatError::Tightening { found: tightening });
    }
    if items == 0 {
        return Err(ScalableFormatError::Items);
    }
    let shape = Shape { key_hash, rate, tightening, growth, items };
    Ok(Decoded { shape, count: u32_at(12), links_checksum: u64_at(40) })
}
