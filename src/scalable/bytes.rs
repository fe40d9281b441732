//! The stored form of a growing filter: the container of `docs/format.md` with the magic `89 42 42 47 52 4f 57 0a`. Its links are
//! ordinary stored filters with the checks of such.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{ScalableBloomFilter, ScalableOptions};
use crate::error::{AllocError, FormatError};
use crate::filter::format;
use crate::filter::{BloomFilter, BloomFilterRef};
use crate::hash::checksum;
use crate::header::{HEADER_BYTES, Header, HeaderError};
use crate::kernel::Kernel;

const MAGIC: [u8; 8] = *b"\x89BBGROW\n";
const VERSION: u16 = 1;

/// Where the header has the checksum of the checksums that end the headers of the links.
const LINKS_CHECKSUM: usize = 40;

/// A growing filter borrowed from its stored bytes, for readers. Allocates a list of the links, ten words each, and copies
/// no block.
///
/// ```
/// use blocked_bloom::{ScalableBloomFilterRef, ScalableOptions};
/// let mut filter = ScalableOptions::new(0.01, 100).build()?;
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
    pub(super) shape: ScalableOptions,
    links: Vec<BloomFilterRef<'a>>,
}

impl<'a> ScalableBloomFilterRef<'a> {
    /// Opens a stored growing filter and verifies all of it. Cost: reads everything once.
    ///
    /// # Errors
    ///
    /// [`FormatError`] says what was found, where, and what was expected. Every truncation, extension and flipped bit is
    /// an error. Such bytes must not be used to answer "absent".
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let header = Header::read(bytes, MAGIC, VERSION)?;
        let shape = decode(&header)?;
        let (mut links, mut sums) = (Vec::new(), Vec::new());
        let mut rest = &bytes[HEADER_BYTES..];
        for link in 0..header.u32_at(12) {
            let start = (bytes.len() - rest.len()) as u64;
            let (stored, after) = rest.split_at(format::length(rest).min(rest.len()));
            let view = BloomFilterRef::from_bytes(stored)
                .and_then(|view| view.require_key_hash(shape.key_hash))
                .map_err(|error| FormatError::Link { link, start, error: Box::new(error) })?;
            let bytes = size_of::<BloomFilterRef<'_>>() as u64;
            links.try_reserve(1).map_err(|_| AllocError { bytes })?;
            sums.try_reserve(8).map_err(|_| AllocError { bytes: 8 })?;
            links.push(view);
            sums.extend(format::header_checksum(stored).unwrap_or_default().to_le_bytes());
            rest = after;
        }
        let found = bytes.len() as u64;
        Header::check_length(found, found - rest.len() as u64)?;
        header.check_body(LINKS_CHECKSUM, &sums)?;
        Ok(ScalableBloomFilterRef { shape, links })
    }

    /// Copies the links into a filter that can be added to.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory for the copies.
    pub fn to_filter(&self) -> Result<ScalableBloomFilter, AllocError> {
        let links = self.links.iter().map(BloomFilterRef::to_filter);
        let links = links.collect::<Result<Vec<BloomFilter>, AllocError>>()?;
        Ok(ScalableBloomFilter { shape: self.shape, kernel: Kernel::default(), links })
    }

    /// The links, the one that receives keys last.
    pub fn links(&self) -> &[BloomFilterRef<'a>] {
        &self.links
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
    /// [`FormatError`]; see [`ScalableBloomFilterRef::from_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        Ok(ScalableBloomFilterRef::from_bytes(bytes)?.to_filter()?)
    }

    /// The stored form, as `docs/format.md` describes it. Cost: two passes over the blocks.
    ///
    /// Allocates as `Vec` does; `write_to` needs no second copy of the blocks.
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

    fn link_headers(&self) -> Vec<[u8; HEADER_BYTES]> {
        self.links.iter().map(|link| format::header(&link.view())).collect()
    }

    fn header(&self, links: &[[u8; HEADER_BYTES]]) -> [u8; HEADER_BYTES] {
        let shape = &self.shape;
        let sums: Vec<u8> = links.iter().flat_map(|link| &link[56..]).copied().collect();
        let mut header = Header::new(MAGIC, VERSION);
        header.put_key_hash(10, 16, shape.key_hash);
        header.put(11, &[shape.growth as u8]);
        header.put(12, &(self.links.len() as u32).to_le_bytes());
        header.put(24, &shape.rate.to_bits().to_le_bytes());
        header.put(32, &shape.tightening.to_bits().to_le_bytes());
        header.put(LINKS_CHECKSUM, &checksum(&sums).to_le_bytes());
        header.put(48, &shape.items.to_le_bytes());
        header.seal()
    }
}

/// Checks the fields of a header by themselves, in the order of the document.
fn decode(header: &Header) -> Result<ScalableOptions, HeaderError> {
    let key_hash = header.key_hash_at(10, 16)?;
    let number = |offset: usize| f64::from_bits(header.u64_at(offset));
    let (rate, tightening) = (number(24), number(32));
    let (growth, items) = (u32::from(header.u8_at(11)), header.u64_at(48));
    if !(2..=16).contains(&growth) {
        return Err(HeaderError::field(11, "growth factor", growth, "allowed: 2 to 16"));
    }
    let wrong =
        |offset, field, found, expected| HeaderError::Number { offset, field, found, expected };
    if !(rate > 0.0 && rate <= 1.0) {
        return Err(wrong(24, "false-positive rate", rate, "allowed: above 0 and up to 1"));
    }
    if !(0.05..=0.95).contains(&tightening) {
        return Err(wrong(32, "tightening ratio", tightening, "allowed: 0.05 to 0.95"));
    }
    if items == 0 {
        return Err(HeaderError::field(48, "keys of the last link", 0_u8, "allowed: 1 or more"));
    }
    Ok(ScalableOptions { key_hash, rate, tightening, growth, items })
}
