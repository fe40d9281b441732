//! The stored form of a growing filter: the container of `docs/format.md` with the magic `89 42 42
//! 47 52 4f 57 0a`. Its links are ordinary stored filters with the same checks.

use alloc::vec::Vec;
use core::error::Error;
use core::fmt::{self, Display, Formatter};

use blocked_bloom::parts::{self, HEADER_BYTES, Header, HeaderError};
use blocked_bloom::{AllocError, Block, BloomFilter, FormatError, KeyHash, Stored};

use crate::filter::ScalableBloomFilter;
use crate::options::ScalableOptions;

/// The first bytes of a stored filter.
pub const MAGIC: [u8; 8] = *b"\x89BBGROW\n";
const VERSION: u16 = 1;

/// Offset of the hash in the header.
const HASH: usize = 10;

/// Offset of the checksum over the header checksums of all links.
const LINKS_CHECKSUM: usize = 40;

/// Offsets in the header of a link: probes, blocks, number of keys, and its own checksum, the last
/// field.
const LINK_PROBES: usize = 12;
const LINK_BLOCKS: usize = 24;
const LINK_KEYS: usize = 32;
const LINK_CHECKSUM: usize = 56;

/// The bytes of one link of a stored filter: a part of the bytes in `B`.
///
/// If the length of the owner's bytes changes after opening, the slice is empty and the link
/// answers "maybe".
///
/// ```
/// use std::sync::Arc;
/// use blocked_bloom::{Filter, Stored};
/// use blocked_bloom_scalable::{LinkBytes, ScalableBloomFilter, ScalableOptions};
/// struct Seen {
///     filter: ScalableBloomFilter<Stored<LinkBytes<Arc<[u8]>>>>,
/// }
/// let mut filter = ScalableOptions::new(0.01, 100).build()?;
/// filter.insert("apple")?;
/// let shared: Arc<[u8]> = filter.to_bytes().into();
/// let seen = Seen { filter: ScalableBloomFilter::from_bytes(shared, filter.key_hash())? };
/// assert!(seen.filter.contains("apple"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LinkBytes<B> {
    /// The bytes of the whole filter.
    stored: Stored<B>,
    start: usize,
    end: usize,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for LinkBytes<B> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self.stored.bytes().and_then(|bytes| bytes.get(self.start..self.end)) {
            Some(link) => link,
            None => empty_slice(),
        }
    }
}

/// Cold, so that the compiler branches. A conditional move would make the address of the block wait
/// for this check.
#[cold]
fn empty_slice() -> &'static [u8] {
    &[]
}

type Link<B> = BloomFilter<Stored<LinkBytes<B>>>;

impl<B: AsRef<[u8]> + Clone> ScalableBloomFilter<Stored<LinkBytes<B>>> {
    /// Opens a stored growing filter that uses this hash, and verifies it completely. Every link
    /// keeps a clone of `bytes`, so pass a type that is cheap to clone: `&[u8]`, `Arc<[u8]>` or
    /// `bytes::Bytes`, rather than a `Vec<u8>`. If the length of the owner's bytes changes later,
    /// every answer is "maybe".
    ///
    /// Cost: reads all bytes once. Allocates a list of links and copies no block.
    ///
    /// # Errors
    ///
    /// [`ScalableFormatError`] names the value found, its offset and the expected value. Every
    /// truncation, extension and flipped bit is an error, and so is another hash, seed or tag
    /// ([`HeaderError::HashMismatch`]). Rejected bytes must not be used to answer "absent".
    ///
    /// ```
    /// use blocked_bloom::Filter;
    /// use blocked_bloom_scalable::{ScalableBloomFilter, ScalableOptions};
    /// let mut filter = ScalableOptions::new(0.01, 100).build()?;
    /// filter.insert("apple")?;
    /// let stored = filter.to_bytes();
    ///
    /// let opened = ScalableBloomFilter::from_bytes(&stored, filter.key_hash())?;
    /// assert!(opened.contains("apple") && !opened.contains("banana"));
    /// assert_eq!(opened.to_filter()?, filter);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes(bytes: B, key_hash: KeyHash) -> Result<Self, ScalableFormatError> {
        Self::open(bytes, Some(key_hash), BloomFilter::from_bytes)
    }

    /// Opens a stored growing filter with any hash and verifies it completely, for tools that
    /// describe filters and callers that look up by key. Compare
    /// [`key_hash`](blocked_bloom::Filter::key_hash) before you look up a hash.
    ///
    /// # Errors
    ///
    /// The errors of [`from_bytes`](Self::from_bytes), except for another hash.
    pub fn from_bytes_any_hash(bytes: B) -> Result<Self, ScalableFormatError> {
        Self::open(bytes, None, BloomFilter::from_bytes)
    }

    /// Opens a stored growing filter that uses this hash without verifying its blocks, for bytes
    /// that were verified by other means. Verifies lengths and headers, including those of the
    /// links. Damaged blocks may make inserted keys absent. Cost: reads 64 bytes for the filter and
    /// for each link. Allocates a list of links.
    ///
    /// # Errors
    ///
    /// The errors of [`from_bytes`](Self::from_bytes), except for the checksums of blocks.
    ///
    /// ```
    /// use blocked_bloom::Filter;
    /// use blocked_bloom_scalable::{ScalableBloomFilter, ScalableOptions};
    /// let mut filter = ScalableOptions::new(0.01, 100).build()?;
    /// filter.insert("apple")?;
    /// let stored = filter.to_bytes();
    /// let opened = ScalableBloomFilter::from_bytes_trusted(&stored, filter.key_hash())?;
    /// assert!(opened.contains("apple"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes_trusted(bytes: B, key_hash: KeyHash) -> Result<Self, ScalableFormatError> {
        Self::open(bytes, Some(key_hash), BloomFilter::from_bytes_trusted)
    }

    /// Opens a stored growing filter of any hash without verifying its blocks: combines
    /// [`from_bytes_any_hash`](Self::from_bytes_any_hash) and
    /// [`from_bytes_trusted`](Self::from_bytes_trusted).
    ///
    /// # Errors
    ///
    /// The errors of `from_bytes_trusted`, except for another hash.
    pub fn from_bytes_trusted_any_hash(bytes: B) -> Result<Self, ScalableFormatError> {
        Self::open(bytes, None, BloomFilter::from_bytes_trusted)
    }

    /// Opens a stored filter. `expected` is the required hash; `None` accepts any hash. Each link
    /// must have the hash of the first header.
    fn open(
        bytes: B,
        expected: Option<KeyHash>,
        open_link: fn(LinkBytes<B>, KeyHash) -> Result<Link<B>, FormatError>,
    ) -> Result<Self, ScalableFormatError> {
        // The slice that was measured is the one that is opened; the owner may lend others later.
        let stored = parts::stored(bytes);
        let bytes = stored.bytes().unwrap_or_default();
        let header = Header::read(bytes, MAGIC, VERSION)?;
        let shape = decode(&header, expected)?;
        let (mut links, mut sums) = (Vec::new(), Vec::new());
        let mut rest = &bytes[HEADER_BYTES..];
        for link in 0..header.u32_at(12) {
            let start = bytes.len() - rest.len();
            let (link_bytes, after) = rest.split_at(link_length(rest));
            let end = start + link_bytes.len();
            let filter =
                open_link(LinkBytes { stored: stored.clone(), start, end }, shape.key_hash)
                    .map_err(|error| ScalableFormatError::Link {
                        link,
                        start: start as u64,
                        error,
                    })?;
            let bytes = size_of_val(&filter) as u64;
            links.try_reserve(1).map_err(|_| AllocError::new(bytes))?;
            sums.try_reserve(8).map_err(|_| AllocError::new(8))?;
            links.push(filter);
            sums.extend_from_slice(&link_bytes[LINK_CHECKSUM..HEADER_BYTES]);
            rest = after;
        }
        let found = bytes.len() as u64;
        Header::check_length(found, found - rest.len() as u64)?;
        header.check_body(LINKS_CHECKSUM, &sums)?;
        Ok(ScalableBloomFilter::from_links(shape, links))
    }
}

impl<D: AsRef<[Block]>> ScalableBloomFilter<D> {
    /// Assembles a filter from its [`stored_headers`](Self::stored_headers) and links, for callers
    /// that read each link directly into its final memory. The caller must ensure that the blocks
    /// of each link are undamaged and belong to its header.
    ///
    /// # Errors
    ///
    /// The errors of [`from_bytes`](ScalableBloomFilter::from_bytes) for the first header. Also an
    /// error: a wrong number of links, a link with another hash, headers of other links, and a link
    /// whose number of blocks, probes or keys differs from its header.
    ///
    /// ```
    /// use blocked_bloom::parts::BlockBuffer;
    /// use blocked_bloom::{BloomFilter, Filter};
    /// use blocked_bloom_scalable::{ScalableBloomFilter, ScalableOptions};
    /// let mut filter = ScalableOptions::new(0.01, 100).build()?;
    /// filter.insert("apple")?;
    /// let (headers, stored) = (filter.stored_headers(), filter.to_bytes());
    ///
    /// // The blocks of the only link, which follow two headers.
    /// let mut blocks = BlockBuffer::zeroed(stored.len() as u32 / 64 - 2, true)?;
    /// blocks.as_flattened_mut().copy_from_slice(&stored[128..]);
    /// let link = &filter.links()[0];
    /// let read = BloomFilter::from_blocks(blocks, link.params().probes(), link.key_hash())?
    ///     .with_facts(1, link.contents());
    /// let read = ScalableBloomFilter::from_stored_headers(&headers, vec![read])?;
    /// assert!(read == filter && read.contains("apple"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_stored_headers(
        headers: &[[u8; HEADER_BYTES]],
        links: Vec<BloomFilter<D>>,
    ) -> Result<Self, ScalableFormatError> {
        let (first, link_headers) = headers.split_first().unwrap_or((&[0; HEADER_BYTES], &[]));
        let header = Header::read(first, MAGIC, VERSION)?;
        let shape = decode(&header, None)?;
        let (count, allowed) = (header.u32_at(12), "must be the number of links passed");
        if [links.len(), link_headers.len()] != [count as usize; 2] {
            return Err(HeaderError::field(12, "number of links", count, allowed).into());
        }
        let sums = link_headers.iter().flat_map(|link| &link[LINK_CHECKSUM..]);
        header.check_body(LINKS_CHECKSUM, &sums.copied().collect::<Vec<u8>>())?;
        for link in &links {
            Header::check_key_hash(HASH, link.key_hash(), shape.key_hash)?;
        }
        for (link, header) in links.iter().zip(link_headers) {
            let (probes, blocks) = (link.params().probes(), link.blocks().len() as u32);
            let agrees = u32::from(header[LINK_PROBES]) == probes
                && header[LINK_BLOCKS..][..4] == blocks.to_le_bytes()
                && header[LINK_KEYS..][..8] == link.keys_inserted().to_le_bytes();
            if !agrees {
                let expected = "must agree with the header of the link";
                return Err(HeaderError::field(LINK_BLOCKS, "blocks", blocks, expected).into());
            }
        }
        Ok(ScalableBloomFilter::from_links(shape, links))
    }
}

impl<D: AsRef<[Block]>> ScalableBloomFilter<D> {
    /// Returns the stored form that `docs/format.md` describes. Cost: two passes over the blocks.
    ///
    /// Allocates like `Vec`. `write_to` does not copy the blocks.
    pub fn to_bytes(&self) -> Vec<u8> {
        let headers = self.stored_headers();
        let mut bytes = Vec::from(headers[0]);
        for (link, header) in self.links.iter().zip(&headers[1..]) {
            bytes.extend_from_slice(header);
            bytes.extend_from_slice(link.blocks().as_flattened());
        }
        bytes
    }

    /// Writes the stored form and returns the number of bytes.
    ///
    /// # Errors
    ///
    /// The writer's errors.
    #[cfg(feature = "std")]
    pub fn write_to(&self, mut writer: impl std::io::Write) -> std::io::Result<u64> {
        let headers = self.stored_headers();
        writer.write_all(&headers[0])?;
        for (link, header) in self.links.iter().zip(&headers[1..]) {
            writer.write_all(header)?;
            writer.write_all(link.blocks().as_flattened())?;
        }
        Ok((headers.len() * HEADER_BYTES) as u64 + self.memory_bytes())
    }

    /// Returns the headers of the stored form, to send it in pieces: the header of the filter, then
    /// one per [link](Self::links). In the stored form, each link's header is followed by its
    /// blocks. Cost: reads all blocks to compute their checksums.
    pub fn stored_headers(&self) -> Vec<[u8; HEADER_BYTES]> {
        let mut headers = Vec::with_capacity(1 + self.links.len());
        headers.push([0; HEADER_BYTES]);
        headers.extend(self.links.iter().map(BloomFilter::stored_header));
        headers[0] = self.stored_header(&headers[1..]);
        headers
    }

    /// Returns the first of the [`stored_headers`](Self::stored_headers), for callers that have the
    /// headers of the links. Reads no block.
    pub fn stored_header(&self, link_headers: &[[u8; HEADER_BYTES]]) -> [u8; HEADER_BYTES] {
        let ScalableOptions { key_hash, rate, tightening, growth, items } = self.shape;
        let mut header = Header::new(MAGIC, VERSION);
        header.put_key_hash(HASH, 16, key_hash);
        header.put(11, &[growth as u8]);
        header.put(12, &(link_headers.len() as u32).to_le_bytes());
        header.put(24, &rate.to_bits().to_le_bytes());
        header.put(32, &tightening.to_bits().to_le_bytes());
        header.put(48, &items.to_le_bytes());
        let sums = link_headers.iter().flat_map(|link| &link[LINK_CHECKSUM..]);
        header.put_body_checksum(LINKS_CHECKSUM, &sums.copied().collect::<Vec<u8>>());
        header.seal()
    }
}

/// Returns the length of the stored filter at the start of `rest`, as its unverified header says,
/// but at most all of `rest`.
fn link_length(rest: &[u8]) -> usize {
    let blocks = rest.get(LINK_BLOCKS..).and_then(|rest| rest.first_chunk());
    let blocks = blocks.map_or(0, |&bytes| u32::from_le_bytes(bytes));
    let bytes = HEADER_BYTES as u64 + size_of::<Block>() as u64 * u64::from(blocks);
    usize::try_from(bytes).map_or(rest.len(), |bytes| bytes.min(rest.len()))
}

/// Checks the fields of a header, in the order of the document. `expected` is the required hash;
/// `None` accepts any hash.
fn decode(header: &Header, expected: Option<KeyHash>) -> Result<ScalableOptions, HeaderError> {
    let key_hash = header.key_hash_at(HASH, 16, expected)?;
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

/// Why bytes are not a valid growing filter. They must not be used to answer "absent".
///
/// ```
/// use blocked_bloom::Filter;
/// use blocked_bloom_scalable::{ScalableBloomFilter, ScalableFormatError, ScalableOptions};
/// let mut filter = ScalableOptions::new(0.01, 100).build()?;
/// filter.insert("apple")?;
/// let mut stored = filter.to_bytes();
/// stored[300] ^= 1;
/// let error = ScalableBloomFilter::from_bytes(&stored, filter.key_hash()).unwrap_err();
/// assert!(matches!(error, ScalableFormatError::Link { link: 0, start: 64, .. }));
/// # Ok::<(), blocked_bloom_scalable::ScalableError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ScalableFormatError {
    /// The header, the length or a checksum is wrong, or the hash is another one.
    Header(HeaderError),
    /// A link is damaged or cut off.
    Link {
        /// Index of the link, from 0.
        link: u32,
        /// Offset of the link.
        start: u64,
        /// Error of the link; its offset is relative to `start`.
        error: FormatError,
    },
    /// Allocating the list of links failed.
    Alloc(AllocError),
}

impl ScalableFormatError {
    /// Returns the byte offset of the invalid field. For a wrong length, returns the actual or the
    /// expected end, whichever comes first.
    pub fn offset(&self) -> u64 {
        match self {
            Self::Header(error) => error.offset(),
            Self::Link { start, error, .. } => start + error.offset(),
            Self::Alloc(_) => 0,
        }
    }
}

impl Display for ScalableFormatError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(error) => error.fmt(f),
            Self::Link { link, start, error } => {
                write!(f, "link {link} at offset {start}: {error}")
            }
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl Error for ScalableFormatError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Header(error) => Some(error),
            Self::Link { error, .. } => Some(error),
            Self::Alloc(error) => Some(error),
        }
    }
}

impl From<HeaderError> for ScalableFormatError {
    fn from(error: HeaderError) -> Self {
        Self::Header(error)
    }
}

impl From<AllocError> for ScalableFormatError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}
