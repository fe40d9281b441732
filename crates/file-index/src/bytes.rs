//! How numbers and texts are written, and read again with nothing trusted.

use alloc::vec::Vec;
use core::ops::Range;

use blocked_bloom::parts::{HEADER_BYTES, Header, HeaderError};

use crate::error::FileIndexError;

/// The first bytes of a stored index.
pub const MAGIC: [u8; 8] = *b"\x89BBFIDX\n";
const VERSION: u16 = 1;

/// The location of the manifest: the record that ends an index. In the first record it is zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trailer {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) checksum: u64,
}

impl Trailer {
    pub(crate) fn write(&self) -> [u8; HEADER_BYTES] {
        let mut header = Header::new(MAGIC, VERSION);
        header.put(16, &self.offset.to_le_bytes());
        header.put(24, &self.length.to_le_bytes());
        header.put(32, &self.checksum.to_le_bytes());
        header.seal()
    }

    /// From the last bytes of an index of this length.
    pub(crate) fn read(tail: &[u8], stored_bytes: u64) -> Result<Self, FileIndexError> {
        let header = Header::read(
            tail.last_chunk::<HEADER_BYTES>().map_or(tail, |last| last),
            MAGIC,
            VERSION,
        )?;
        header.check_zero(10..16)?;
        header.check_zero(40..56)?;
        let [offset, length, checksum] = [16, 24, 32].map(|at| header.u64_at(at));
        let field = |at, name, found: u64, expected| HeaderError::field(at, name, found, expected);
        if offset < HEADER_BYTES as u64 {
            return Err(field(16, "offset of the manifest", offset, "at least 64").into());
        }
        if length > u32::MAX.into() {
            return Err(field(24, "bytes of the manifest", length, "at most 2^32 - 1").into());
        }
        let end = offset.saturating_add(length).saturating_add(HEADER_BYTES as u64);
        Header::check_length(stored_bytes, end)?;
        Ok(Trailer { offset, length, checksum })
    }
}

/// Seven bits a byte, the lowest first; all but the last byte have the highest bit set.
pub(crate) fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

pub(crate) fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put_number(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

/// Where a text is in a manifest, which has less than 2^32 bytes. It is UTF-8 there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    start: u32,
    end: u32,
}

impl Text {
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(crate) fn get<'m>(&self, manifest: &'m [u8]) -> &'m str {
        let bytes = &manifest[self.start as usize..self.end as usize];
        // It was checked when it was read.
        core::str::from_utf8(bytes).unwrap_or_default()
    }

    pub(crate) fn bytes<'m>(&self, manifest: &'m [u8]) -> &'m [u8] {
        &manifest[self.start as usize..self.end as usize]
    }
}

/// Reads a manifest from its beginning.
pub(crate) struct Reader<'m> {
    bytes: &'m [u8],
    position: usize,
}

impl<'m> Reader<'m> {
    pub(crate) fn new(bytes: &'m [u8]) -> Self {
        Reader { bytes, position: 0 }
    }

    pub(crate) fn offset(&self) -> usize {
        self.position
    }

    pub(crate) fn error(&self, problem: &'static str) -> FileIndexError {
        FileIndexError::Manifest { offset: self.position as u64, problem }
    }

    pub(crate) fn take(&mut self, length: u64) -> Result<&'m [u8], FileIndexError> {
        let end = usize::try_from(length).ok().and_then(|length| self.position.checked_add(length));
        let taken = end.and_then(|end| self.bytes.get(self.position..end));
        let taken = taken.ok_or(self.error("it ends here"))?;
        self.position += taken.len();
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], FileIndexError> {
        let error = self.error("it ends here");
        self.take(N as u64)?.first_chunk().copied().ok_or(error)
    }

    pub(crate) fn number(&mut self) -> Result<u64, FileIndexError> {
        let start = self.position;
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            // A number has one form: no bits past 64, and no trailing zeros.
            if bits << shift >> shift != bits || (byte == 0 && shift > 0) {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        self.position = start;
        Err(self.error("a number that is not one"))
    }

    /// A number up to `most`.
    pub(crate) fn number_to(
        &mut self,
        most: u64,
        problem: &'static str,
    ) -> Result<u64, FileIndexError> {
        let error = self.error(problem);
        self.number().and_then(|number| if number <= most { Ok(number) } else { Err(error) })
    }

    pub(crate) fn text(&mut self) -> Result<Text, FileIndexError> {
        let length = self.number()?;
        let (start, error) = (self.position as u32, self.error("a text that is not UTF-8"));
        let bytes = self.take(length)?;
        core::str::from_utf8(bytes).map_err(|_| error)?;
        Ok(Text { start, end: self.position as u32 })
    }

    pub(crate) fn end(&self) -> Result<(), FileIndexError> {
        match self.position == self.bytes.len() {
            true => Ok(()),
            false => Err(self.error("more bytes than it says")),
        }
    }
}

/// As places in bytes that are in memory.
pub(crate) fn to_usize_range(range: &Range<u64>) -> Range<usize> {
    range.start as usize..range.end as usize
}
