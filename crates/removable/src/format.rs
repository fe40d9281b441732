//! The stored bytes of a removable filter: `docs/format.md` in code. Reading borrows, allocates nothing, and panics on no input.

use alloc::vec::Vec;

use blocked_bloom::header::{HEADER_BYTES, Header, HeaderError};
use blocked_bloom::{Block, FormatError, Kernel};

use crate::filter::RemovableFilter;
use crate::tags::LANES;
use crate::view::{RemovableFilterRef, count_tags};

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

fn header(view: &RemovableFilterRef<'_>) -> [u8; HEADER_BYTES] {
    let mut header = Header::new(MAGIC, VERSION);
    header.put(10, &[TAG_SCHEME]);
    header.put_key_hash(11, 16, view.key_hash());
    header.put(24, &(view.lines().len() as u32).to_le_bytes());
    header.put(32, &view.len().to_le_bytes());
    header.put_body_checksum(LINE_CHECKSUM, view.lines().as_flattened());
    header.seal()
}

/// The filter in `bytes` and its header. The lines are not verified.
fn open(bytes: &[u8]) -> Result<(RemovableFilterRef<'_>, Header), FormatError> {
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
    let len = header.u64_at(32);
    if len > u64::from(count) * LANES as u64 {
        return Err(HeaderError::field(32, "number of keys", len, "at most 32 a line").into());
    }
    let expected = HEADER_BYTES as u64 + u64::from(count) * size_of::<Block>() as u64;
    Header::check_length(bytes.len() as u64, expected)?;
    let (lines, _) = bytes[HEADER_BYTES..].as_chunks();
    Ok((RemovableFilterRef::new(lines, len, key_hash, Kernel::default()), header))
}

impl<'a> RemovableFilterRef<'a> {
    /// Opens a stored filter and verifies all of it. Borrows the bytes, whatever their alignment; allocates nothing.
    ///
    /// Cost: reads everything twice, at several GB/s. Afterwards nothing is decoded: queries read the bytes in place.
    ///
    /// # Errors
    ///
    /// [`FormatError`] says what was found, where, and what was expected. Every truncation, extension and flipped bit is an error. Such
    /// bytes must not be used to answer "absent": answer "maybe", or make the filter again from the keys.
    ///
    /// ```
    /// use blocked_bloom_removable::{RemovableFilterRef, RemovableOptions};
    /// let stored = RemovableOptions::new(50).empty_filter()?.to_bytes();
    /// assert!(RemovableFilterRef::from_bytes(&stored).is_ok());
    /// let error = RemovableFilterRef::from_bytes(&stored[..100]).unwrap_err();
    /// assert_eq!(error.to_string(), "offset 100: 100 bytes in all, expected 256: truncated");
    /// # Ok::<(), blocked_bloom_removable::RemovableError>(())
    /// ```
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let (view, header) = open(bytes)?;
        header.check_body(LINE_CHECKSUM, view.lines().as_flattened())?;
        if count_tags(view.lines()) != view.len() {
            let expected = "must be the number of tags in the lines";
            return Err(HeaderError::field(32, "number of keys", view.len(), expected).into());
        }
        Ok(view)
    }

    /// Opens a stored filter and verifies its length and header, not its lines: for bytes whose integrity something else has just
    /// checked. A damaged line then goes unnoticed, and may answer "absent" for a key that is there.
    ///
    /// Cost: reads 64 bytes, whatever the size.
    ///
    /// # Errors
    ///
    /// [`FormatError`], as [`from_bytes`](Self::from_bytes) but for the lines.
    pub fn from_bytes_trusted(bytes: &'a [u8]) -> Result<Self, FormatError> {
        open(bytes).map(|(view, _)| view)
    }

    /// The stored form, as `docs/format.md` describes it.
    ///
    /// Allocates as `Vec` does; `write_to` needs no second copy of the lines.
    pub fn to_bytes(&self) -> Vec<u8> {
        [&header(self), self.lines().as_flattened()].concat()
    }

    /// Writes the stored form: the header, then all lines in one `write_all`. Returns the number of bytes.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    #[cfg(feature = "std")]
    pub fn write_to(&self, mut writer: impl std::io::Write) -> std::io::Result<u64> {
        let lines = self.lines().as_flattened();
        writer.write_all(&header(self))?;
        writer.write_all(lines)?;
        Ok((HEADER_BYTES + lines.len()) as u64)
    }
}

impl RemovableFilter {
    /// [`RemovableFilterRef::to_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        self.view().to_bytes()
    }

    /// [`RemovableFilterRef::write_to`].
    ///
    /// # Errors
    ///
    /// Those of the writer.
    #[cfg(feature = "std")]
    pub fn write_to(&self, writer: impl std::io::Write) -> std::io::Result<u64> {
        self.view().write_to(writer)
    }
}
