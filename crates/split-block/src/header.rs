//! The header before a filter's bitset, `BloomFilterHeader` of `parquet.thrift`, and the rules of
//! the bitset's length.
//!
//! Parquet defines one algorithm, one hash and one compression. Any other is an error.

use alloc::vec::Vec;

use crate::error::{MAX_STORED_BYTES, SplitBlockError};
use crate::split_block::SPLIT_BLOCK_BYTES;
use crate::thrift::{I32, Reader, STRUCT, ThriftError};

/// The lengths of a filter's header and of the bitset that follows it.
///
/// For callers that read a file in pieces. [`SplitBlockFilter::from_bytes`] reads both at once.
///
/// ```
/// use blocked_bloom_split::{Header, SplitBlockError, SplitBlockFilter};
/// let stored = SplitBlockFilter::with_blocks(4)?.to_bytes();
/// let header = Header::read(&stored[..20], 0)?;
/// assert_eq!((header.header_bytes, header.bitset_bytes), (16, 128));
/// # Ok::<(), SplitBlockError>(())
/// ```
///
/// [`SplitBlockFilter::from_bytes`]: crate::SplitBlockFilter::from_bytes
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// Size of the header in bytes.
    pub header_bytes: usize,
    /// Size of the bitset in bytes: a positive multiple of 32.
    pub bitset_bytes: u32,
}

impl Header {
    /// Reads the header at the start of `bytes`. Offsets in errors are increased by `start`.
    ///
    /// # Errors
    ///
    /// [`SplitBlockError::Thrift`], `Unsupported` and `BitsetLength`.
    pub fn read(bytes: &[u8], start: u64) -> Result<Self, SplitBlockError> {
        let (header_bytes, bitset_bytes) = read(bytes, start)?;
        Ok(Header { header_bytes, bitset_bytes: bitset_length(bitset_bytes.into())? })
    }

    /// Returns the total size of header and bitset in bytes.
    pub fn total_bytes(self) -> u64 {
        self.header_bytes as u64 + u64::from(self.bitset_bytes)
    }
}

/// Returns the size of the header, and the bitset's length as stored in it.
pub(crate) fn read(bytes: &[u8], start: u64) -> Result<(usize, i32), SplitBlockError> {
    const UNIONS: [&str; 3] = ["algorithm", "hash", "compression"];
    let mut reader = Reader::new(bytes, start);
    let mut bitset = None;
    let mut known = [false; 3];
    reader.structure::<SplitBlockError>(|reader, field| match field.id {
        1 => {
            field.expect(I32, "numBytes")?;
            bitset = Some(reader.i32()?);
            Ok(())
        }
        2..=4 => {
            let i = usize::from(field.id.unsigned_abs()) - 2;
            field.expect(STRUCT, UNIONS[i])?;
            known[i] = read_union(reader, UNIONS[i])?;
            Ok(())
        }
        _ => Ok(reader.skip(field.kind)?),
    })?;
    let offset = reader.offset();
    let missing = |field| ThriftError::MissingField { offset, field };
    let bitset = bitset.ok_or(missing("numBytes"))?;
    if let Some(i) = known.iter().position(|known| !known) {
        return Err(missing(UNIONS[i]).into());
    }
    Ok((reader.position(), bitset))
}

/// Reads a union whose only known variant is 1. Returns false if it has no variant.
fn read_union(reader: &mut Reader<'_>, name: &'static str) -> Result<bool, SplitBlockError> {
    let mut found = false;
    reader.structure(|reader, arm| {
        if arm.id != 1 {
            return Err(SplitBlockError::Unsupported {
                offset: arm.offset,
                field: name,
                found: arm.id,
            });
        }
        arm.expect(STRUCT, name)?;
        found = true;
        Ok(reader.skip(STRUCT)?)
    })?;
    Ok(found)
}

/// Checks the length of a bitset in bytes.
pub(crate) fn bitset_length(found: i64) -> Result<u32, SplitBlockError> {
    match u32::try_from(found) {
        Ok(length @ 1..=MAX_STORED_BYTES)
            if (length as usize).is_multiple_of(SPLIT_BLOCK_BYTES) =>
        {
            Ok(length)
        }
        _ => Err(SplitBlockError::BitsetLength { found }),
    }
}

/// Returns the header of a bitset of this many bytes, byte for byte as other writers write it.
pub(crate) fn encode(bitset: u32) -> Vec<u8> {
    let mut header = Vec::from([0x10 | I32]);
    let mut zigzag = u64::from(bitset) << 1;
    while zigzag >= 0x80 {
        header.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    header.push(zigzag as u8);
    for _ in 0..3 {
        // The next field (a union), its first variant (a structure), and the ends of both.
        header.extend([0x10 | STRUCT, 0x10 | STRUCT, 0, 0]);
    }
    header.push(0);
    header
}
