//! The header that precedes a filter's bitset, `BloomFilterHeader` of `parquet.thrift`, and the
//! rules of the bitset's length.
//!
//! Parquet has one algorithm, one hash and one compression; any other is an error.

use super::error::{MAX_BITSET_BYTES, ParquetError};
use super::split_block::SPLIT_BLOCK_BYTES;
use super::thrift::{I32, Reader, STRUCT};

/// What a header says.
pub(super) struct Header {
    /// Bytes of the header.
    pub(super) length: usize,
    /// Bytes of the bitset: a positive multiple of 32.
    pub(super) bitset: u32,
}

/// Reads the header that `bytes` begin with; they begin at byte `start` of what the user gave.
pub(super) fn read(bytes: &[u8], start: u64) -> Result<Header, ParquetError> {
    const UNIONS: [&str; 3] = ["algorithm", "hash", "compression"];
    let mut reader = Reader::new(bytes, start);
    let mut bitset = None;
    let mut known = [false; 3];
    reader.structure(|reader, field| match field.id {
        1 => {
            field.expect(I32, "numBytes")?;
            bitset = Some(reader.i32()?);
            Ok(())
        }
        2..=4 => {
            let i = usize::from(field.id.unsigned_abs()) - 2;
            field.expect(STRUCT, UNIONS[i])?;
            known[i] = only_arm_one(reader, UNIONS[i])?;
            Ok(())
        }
        _ => reader.skip(field.kind),
    })?;
    let missing = |field| ParquetError::MissingField { offset: reader.offset(), field };
    let bitset = bitset.ok_or(missing("numBytes"))?;
    if let Some(i) = known.iter().position(|known| !known) {
        return Err(missing(UNIONS[i]));
    }
    Ok(Header { length: reader.position(), bitset: bitset_length(bitset.into())? })
}

/// Reads a union whose only known arm is 1. Returns false if it has no arm.
fn only_arm_one(reader: &mut Reader<'_>, name: &'static str) -> Result<bool, ParquetError> {
    let mut found = false;
    reader.structure(|reader, arm| {
        if arm.id != 1 {
            return Err(ParquetError::Unsupported {
                offset: arm.offset,
                field: name,
                found: arm.id,
            });
        }
        arm.expect(STRUCT, name)?;
        found = true;
        reader.skip(STRUCT)
    })?;
    Ok(found)
}

/// The rules for a bitset's length in bytes.
pub(super) fn bitset_length(found: i64) -> Result<u32, ParquetError> {
    match u32::try_from(found) {
        Ok(length @ 1..=MAX_BITSET_BYTES)
            if (length as usize).is_multiple_of(SPLIT_BLOCK_BYTES) =>
        {
            Ok(length)
        }
        _ => Err(ParquetError::BitsetLength { found }),
    }
}

/// The longest header that is written: three unions of four bytes, the end, and one number of up to
/// five bytes.
const MAX_LENGTH: usize = 19;

/// The header of a bitset of this many bytes, byte for byte as other writers write it.
pub(super) struct Written {
    bytes: [u8; MAX_LENGTH],
    length: usize,
}

impl Written {
    pub(super) fn new(bitset: u32) -> Self {
        let mut header = Written { bytes: [0; MAX_LENGTH], length: 0 };
        header.push(0x10 | I32);
        let mut zigzag = u64::from(bitset) << 1;
        while zigzag >= 0x80 {
            header.push(zigzag as u8 | 0x80);
            zigzag >>= 7;
        }
        header.push(zigzag as u8);
        for _ in 0..3 {
            // The next field, a union; its first arm, a structure; the ends of both.
            for byte in [0x10 | STRUCT, 0x10 | STRUCT, 0, 0] {
                header.push(byte);
            }
        }
        header.push(0);
        header
    }

    fn push(&mut self, byte: u8) {
        self.bytes[self.length] = byte;
        self.length += 1;
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
