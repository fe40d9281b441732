//! The stored bytes of a removable filter: `docs/format.md` in code. Reading borrows, allocates
//! nothing, and panics on no input.

use alloc::vec::Vec;

use blocked_bloom::parts::{HEADER_BYTES, Header, HeaderError, stored, stored_unused};
use blocked_bloom::{Block, Filter, FormatError, Kernel, KeyHash, Stored};

use crate::filter::{Lines, Meta, RemovableFilter};
use crate::tags::{LANES, count_tags};

/// The first bytes of a stored filter.
///
/// ```
/// use blocked_bloom_removable::{MAGIC, RemovableOptions};
/// let stored = RemovableOptions::new(10).empty_filter()?.to_bytes();
/// assert!(stored.starts_with(&MAGIC));
/// # Ok::<(), blocked_bloom_removable::RemovableError>(())
/// ```
pub const MAGIC: [u8; 8] = *b"\x89BBTAGS\n";
const VERSION: u16 = 1;
const TAG_SCHEME: u8 = 1;

/// Where the header has the checksum of the lines.
const LINE_CHECKSUM: usize = 48;

impl Meta {
    /// Of a filter that is opened, whose copies are advised to be on huge pages.
    fn for_stored(key_hash: KeyHash, keys_inserted: u64) -> Self {
        Meta { key_hash, keys_inserted, kernel: Kernel::default(), huge_pages: true }
    }
}

/// Checks the header and the length of a stored filter, not its lines.
fn open(bytes: &[u8]) -> Result<(Header, Meta), FormatError> {
    let header = Header::read(bytes, MAGIC, VERSION)?;
    let scheme = header.u8_at(10);
    if scheme != TAG_SCHEME {
        return Err(HeaderError::field(10, "unsupported tag scheme", scheme, "supported: 1").into());
    }
    let key_hash = header.key_hash_at(11, 16)?;
    header.check_zero(12..16)?;
    header.check_zero(28..32)?;
    header.check_zero(40..48)?;
    let count = header.u32_at(24);
    if count == 0 {
        let expected = "allowed: 1 to 4294967295";
        return Err(HeaderError::field(24, "number of lines", count, expected).into());
    }
    let keys = header.u64_at(32);
    if keys > u64::from(count) * LANES as u64 {
        return Err(HeaderError::field(32, "number of keys", keys, "at most 32 a line").into());
    }
    let expected = HEADER_BYTES as u64 + u64::from(count) * size_of::<Block>() as u64;
    Header::check_length(bytes.len() as u64, expected)?;
    Ok((header, Meta::for_stored(key_hash, keys)))
}

/// Checks all of a stored filter.
fn verify(bytes: &[u8]) -> Result<Meta, FormatError> {
    let (header, meta) = open(bytes)?;
    let lines = &bytes[HEADER_BYTES..];
    header.check_body(LINE_CHECKSUM, lines)?;
    if count_tags(lines.as_chunks().0) != meta.keys_inserted {
        let (keys, expected) = (meta.keys_inserted, "must be the number of tags in the lines");
        return Err(HeaderError::field(32, "number of keys", keys, expected).into());
    }
    Ok(meta)
}

impl<B: AsRef<[u8]>> RemovableFilter<Stored<B>> {
    /// Opens a stored filter and verifies all of it, whatever the alignment of the bytes. Allocates
    /// nothing.
    ///
    /// Cost: reads everything twice, at several GB/s. Afterwards nothing is decoded: lookups read
    /// the bytes in place.
    ///
    /// # Errors
    ///
    /// [`FormatError`] says what was found, where, and what was expected. Every truncation,
    /// extension and flipped bit is an error. Such bytes must not be used to answer "absent": go on
    /// with [`open_or_pass_all`](Self::open_or_pass_all), or make the filter again from the keys.
    ///
    /// ```
    /// use blocked_bloom::Filter;
    /// use blocked_bloom_removable::{RemovableFilter, RemovableOptions};
    /// let mut filter = RemovableOptions::new(50).empty_filter()?;
    /// filter.insert("apple")?;
    /// let stored = filter.to_bytes();
    /// let opened = RemovableFilter::from_bytes(&stored)?;
    /// assert!(opened.contains("apple") && !opened.contains("banana"));
    ///
    /// let error = RemovableFilter::from_bytes(&stored[..100]).unwrap_err();
    /// assert_eq!(error.to_string(), "offset 100: 100 bytes in all, expected 256: truncated");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes(bytes: B) -> Result<Self, FormatError> {
        // What is verified is what was measured, even if the owner lends other bytes the second
        // time.
        let data = stored(bytes);
        let meta = verify(data.bytes().unwrap_or_default())?;
        Ok(RemovableFilter { data, meta })
    }

    /// Opens a stored filter and verifies its length and header, not its lines: for bytes whose
    /// integrity something else has just checked. A damaged line then goes unnoticed, and may
    /// answer "absent" for a key that is there.
    ///
    /// Cost: reads 64 bytes, whatever the size.
    ///
    /// # Errors
    ///
    /// [`FormatError`], as [`from_bytes`](Self::from_bytes) but for the lines.
    pub fn from_bytes_trusted(bytes: B) -> Result<Self, FormatError> {
        let data = stored(bytes);
        let (_, meta) = open(data.bytes().unwrap_or_default())?;
        Ok(RemovableFilter { data, meta })
    }

    /// [`from_bytes`](Self::from_bytes) for a filter of this hash, or one that answers "maybe" to
    /// everything and the reason, for the log. The bytes are kept either way.
    ///
    /// ```
    /// use blocked_bloom::Filter;
    /// use blocked_bloom_removable::{RemovableFilter, RemovableOptions};
    /// let options = RemovableOptions::new(50);
    /// let mut stored = options.empty_filter()?.to_bytes();
    /// stored[70] ^= 1;
    /// let (filter, error) = RemovableFilter::open_or_pass_all(stored, options.key_hash());
    /// assert!(error.is_some() && filter.contains("apple"));
    /// # Ok::<(), blocked_bloom_removable::RemovableError>(())
    /// ```
    pub fn open_or_pass_all(bytes: B, key_hash: KeyHash) -> (Self, Option<FormatError>) {
        let data = stored(bytes);
        let opened = verify(data.bytes().unwrap_or_default());
        let (data, meta, error) = match opened.and_then(|meta| meta.require(key_hash)) {
            Ok(meta) => (data, meta, None),
            Err(error) => {
                (stored_unused(data.into_inner()), Meta::for_stored(key_hash, 0), Some(error))
            }
        };
        (RemovableFilter { data, meta }, error)
    }

    /// Gives the bytes back.
    pub fn into_inner(self) -> B {
        self.data.into_inner()
    }
}

impl<D: Lines> RemovableFilter<D> {
    /// The header of a filter that passes all says 0 lines, and is rejected wherever it is opened.
    fn stored_header(&self) -> [u8; HEADER_BYTES] {
        let lines = self.lines();
        let mut header = Header::new(MAGIC, VERSION);
        header.put(10, &[TAG_SCHEME]);
        header.put_key_hash(11, 16, self.key_hash());
        header.put(24, &(lines.len() as u32).to_le_bytes());
        header.put(32, &self.keys_inserted().to_le_bytes());
        header.put_body_checksum(LINE_CHECKSUM, lines.as_flattened());
        header.seal()
    }

    /// The stored form, as `docs/format.md` describes it. That of a filter that [passes
    /// all](Self::is_pass_all) is refused wherever it is opened.
    ///
    /// Allocates as `Vec` does; `write_to` needs no second copy of the lines.
    pub fn to_bytes(&self) -> Vec<u8> {
        [&self.stored_header(), self.lines().as_flattened()].concat()
    }

    /// Writes the [stored form](Self::to_bytes): the header, then all lines in one `write_all`.
    /// Returns the number of bytes.
    ///
    /// # Errors
    ///
    /// The writer's errors.
    #[cfg(feature = "std")]
    pub fn write_to(&self, mut writer: impl std::io::Write) -> std::io::Result<u64> {
        let lines = self.lines().as_flattened();
        writer.write_all(&self.stored_header())?;
        writer.write_all(lines)?;
        Ok((HEADER_BYTES + lines.len()) as u64)
    }
}
