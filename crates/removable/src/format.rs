//! The stored form of a removable filter, as `docs/format.md` defines it. Reading borrows the
//! bytes, does not allocate, and does not panic on any input.

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

/// Offset of the lines' checksum in the header.
const LINE_CHECKSUM: usize = 48;

impl Meta {
    /// Returns the fields of an opened filter. Copies of it are advised to use huge pages.
    fn for_stored(key_hash: KeyHash, keys_inserted: u64) -> Self {
        Meta { key_hash, keys_inserted, kernel: Kernel::default(), huge_pages: true }
    }
}

/// Checks the header and the length of a stored filter, but not its lines.
fn open(bytes: &[u8], expected: Option<KeyHash>) -> Result<(Header, Meta), FormatError> {
    let header = Header::read(bytes, MAGIC, VERSION)?;
    let scheme = header.u8_at(10);
    if scheme != TAG_SCHEME {
        return Err(HeaderError::field(10, "unsupported tag scheme", scheme, "supported: 1").into());
    }
    let key_hash = header.key_hash_at(11, 16, expected)?;
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

/// Checks a stored filter completely. `expected` is the required hash; `None` accepts any hash.
fn verify(bytes: &[u8], expected: Option<KeyHash>) -> Result<Meta, FormatError> {
    let (header, meta) = open(bytes, expected)?;
    let lines = &bytes[HEADER_BYTES..];
    header.check_body(LINE_CHECKSUM, lines)?;
    if count_tags(lines.as_chunks().0) != meta.keys_inserted {
        let (keys, expected) = (meta.keys_inserted, "must be the number of tags in the lines");
        return Err(HeaderError::field(32, "number of keys", keys, expected).into());
    }
    Ok(meta)
}

impl<B: AsRef<[u8]>> RemovableFilter<Stored<B>> {
    /// Opens a stored filter that uses this hash, and verifies it completely. The bytes may have
    /// any alignment. Does not allocate.
    ///
    /// Cost: reads all bytes twice, at several GB/s. Nothing is decoded: lookups read the bytes in
    /// place.
    ///
    /// # Errors
    ///
    /// [`FormatError`] names the value found, its offset and the expected value. Every truncation,
    /// extension and flipped bit is an error, and so is another hash, seed or tag
    /// ([`HeaderError::HashMismatch`]). Rejected bytes must not be used to answer "absent": use
    /// [`open_or_pass_all`](Self::open_or_pass_all), or rebuild the filter from the keys.
    ///
    /// ```
    /// use blocked_bloom::Filter;
    /// use blocked_bloom_removable::{RemovableFilter, RemovableOptions};
    /// let options = RemovableOptions::new(50);
    /// let mut filter = options.empty_filter()?;
    /// filter.insert("apple")?;
    /// let stored = filter.to_bytes();
    /// let opened = RemovableFilter::from_bytes(&stored, options.key_hash())?;
    /// assert!(opened.contains("apple") && !opened.contains("banana"));
    ///
    /// let error = RemovableFilter::from_bytes(&stored[..100], options.key_hash()).unwrap_err();
    /// assert_eq!(error.to_string(), "offset 100: 100 bytes in all, expected 256: truncated");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes(bytes: B, key_hash: KeyHash) -> Result<Self, FormatError> {
        Self::read(bytes, |bytes| verify(bytes, Some(key_hash)))
    }

    /// Opens a stored filter with any hash and verifies it completely, for tools that describe
    /// filters. Compare [`key_hash`](Filter::key_hash) before you look up a hash.
    ///
    /// # Errors
    ///
    /// The errors of [`from_bytes`](Self::from_bytes), except for another hash.
    pub fn from_bytes_any_hash(bytes: B) -> Result<Self, FormatError> {
        Self::read(bytes, |bytes| verify(bytes, None))
    }

    /// Opens a stored filter that uses this hash, and verifies its header and length, but not its
    /// lines. Use it for bytes that were verified by other means: a damaged line goes unnoticed,
    /// and may answer "absent" for an inserted key.
    ///
    /// Cost: reads 64 bytes for any size.
    ///
    /// # Errors
    ///
    /// The errors of [`from_bytes`](Self::from_bytes), except for damaged lines.
    pub fn from_bytes_trusted(bytes: B, key_hash: KeyHash) -> Result<Self, FormatError> {
        Self::read(bytes, |bytes| Ok(open(bytes, Some(key_hash))?.1))
    }

    /// Opens a stored filter of any hash without verifying its lines: combines
    /// [`from_bytes_any_hash`](Self::from_bytes_any_hash) and
    /// [`from_bytes_trusted`](Self::from_bytes_trusted).
    ///
    /// # Errors
    ///
    /// The errors of `from_bytes_trusted`, except for another hash.
    pub fn from_bytes_trusted_any_hash(bytes: B) -> Result<Self, FormatError> {
        Self::read(bytes, |bytes| Ok(open(bytes, None)?.1))
    }

    /// Opens a stored filter like [`from_bytes`](Self::from_bytes), and never fails: for unusable
    /// bytes it returns a filter that answers "maybe" to every key, plus the error to log. Either
    /// filter keeps the bytes.
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
        let (data, meta, error) = match verify(data.bytes().unwrap_or_default(), Some(key_hash)) {
            Ok(meta) => (data, meta, None),
            Err(error) => {
                (stored_unused(data.into_inner()), Meta::for_stored(key_hash, 0), Some(error))
            }
        };
        (RemovableFilter { data, meta }, error)
    }

    /// Checks the slice that the owner lends first, and keeps the owner.
    fn read(
        bytes: B,
        check: impl FnOnce(&[u8]) -> Result<Meta, FormatError>,
    ) -> Result<Self, FormatError> {
        let data = stored(bytes);
        let meta = check(data.bytes().unwrap_or_default())?;
        Ok(RemovableFilter { data, meta })
    }

    /// Returns the owner of the bytes.
    pub fn into_inner(self) -> B {
        self.data.into_inner()
    }
}

impl<D: Lines> RemovableFilter<D> {
    /// The header of a pass-all filter contains 0 lines, so opening it fails.
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

    /// Returns the stored form that `docs/format.md` describes. The stored form of a
    /// [pass-all](Self::is_pass_all) filter cannot be opened.
    ///
    /// Allocates like `Vec`. `write_to` does not copy the lines.
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
