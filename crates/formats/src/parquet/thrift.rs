//! A reader of Thrift's compact protocol: just enough for Parquet's metadata.
//!
//! It is our own since it is bounded: it allocates nothing and does not recurse deeper than
//! [`MAX_DEPTH`]. Its callers know what fields mean; fields that they do not know are skipped.
//!
//! Source: `doc/specs/thrift-compact-protocol.md` of Apache Thrift.

use super::error::ParquetError;
use crate::varint::{self, VarintError};

/// Types of fields and elements, by their numbers.
pub(super) const I32: u8 = 5;
pub(super) const I64: u8 = 6;
pub(super) const BINARY: u8 = 8;
pub(super) const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I8: u8 = 3;
const I16: u8 = 4;
const DOUBLE: u8 = 7;
const SET: u8 = 10;
const MAP: u8 = 11;
const UUID: u8 = 13;

/// How deep unknown structures may be nested: Parquet's own are nested seven deep.
const MAX_DEPTH: u32 = 32;

/// The head of a field of a structure.
#[derive(Clone, Copy)]
pub(super) struct Field {
    pub(super) id: i16,
    pub(super) kind: u8,
    /// Where the head begins.
    pub(super) offset: u64,
}

impl Field {
    /// Checks the type that Parquet gives the field.
    pub(super) fn expect(self, expected: u8, field: &'static str) -> Result<(), ParquetError> {
        match self.kind {
            found if found == expected => Ok(()),
            found => Err(ParquetError::FieldType { offset: self.offset, field, found, expected }),
        }
    }
}

/// Bytes of which the first `position` are read.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    /// Where `bytes` begin in what the user gave.
    start: u64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], start: u64) -> Self {
        Reader { bytes, position: 0, start }
    }

    /// Bytes read.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Bytes not read yet.
    pub(super) fn left(&self) -> u64 {
        (self.bytes.len() - self.position) as u64
    }

    /// Where the next byte is, in what the user gave.
    pub(super) fn offset(&self) -> u64 {
        self.start + self.position as u64
    }

    /// Calls `read` with the head of every field of a structure, which must read or
    /// [`skip`](Self::skip) its value.
    pub(super) fn structure(
        &mut self,
        mut read: impl FnMut(&mut Self, Field) -> Result<(), ParquetError>,
    ) -> Result<(), ParquetError> {
        let mut previous = 0;
        while let Some(field) = self.field(previous)? {
            previous = field.id;
            read(self, field)?;
        }
        Ok(())
    }

    /// The next field's head, after the field with the id `previous`; `None` at the end of the
    /// structure.
    fn field(&mut self, previous: i16) -> Result<Option<Field>, ParquetError> {
        let offset = self.offset();
        let head = self.byte()?;
        let kind = head & 15;
        if kind == STOP {
            return Ok(None);
        }
        let id = match i16::from(head >> 4) {
            // The id itself follows, as a zigzag number.
            0 => i16::try_from(self.zigzag()?).ok(),
            step => previous.checked_add(step),
        };
        let problem = "a field's number does not fit 16 bits";
        let id = id.ok_or(ParquetError::Thrift { offset, problem })?;
        Ok(Some(Field { id, kind, offset }))
    }

    pub(super) fn i32(&mut self) -> Result<i32, ParquetError> {
        let offset = self.offset();
        let problem = "a number does not fit 32 bits";
        i32::try_from(self.zigzag()?).map_err(|_| ParquetError::Thrift { offset, problem })
    }

    pub(super) fn i64(&mut self) -> Result<i64, ParquetError> {
        self.zigzag()
    }

    pub(super) fn binary(&mut self) -> Result<&'a [u8], ParquetError> {
        let length = self.varint()?;
        self.take(length)
    }

    /// The type and the number of a list's elements, which follow. The number is unchecked; each
    /// element takes at least one byte.
    pub(super) fn list(&mut self) -> Result<(u8, u64), ParquetError> {
        let head = self.byte()?;
        let length = match head >> 4 {
            15 => self.varint()?,
            length => u64::from(length),
        };
        Ok((head & 15, length))
    }

    /// Passes over the value of a field of this type.
    pub(super) fn skip(&mut self, kind: u8) -> Result<(), ParquetError> {
        match kind {
            // The value is the type.
            TRUE | FALSE => Ok(()),
            _ => self.skip_element(kind, MAX_DEPTH),
        }
    }

    /// Passes over an element of a list, set or map, or a field that is not a bool, nested up to
    /// `depth`.
    fn skip_element(&mut self, kind: u8, depth: u32) -> Result<(), ParquetError> {
        let offset = self.offset();
        let error = |problem| ParquetError::Thrift { offset, problem };
        let depth = depth.checked_sub(1).ok_or(error("nested too deep"))?;
        match kind {
            TRUE | FALSE | I8 => self.take(1).map(|_| ()),
            I16 | I32 | I64 => self.varint().map(|_| ()),
            DOUBLE => self.take(8).map(|_| ()),
            UUID => self.take(16).map(|_| ()),
            BINARY => self.binary().map(|_| ()),
            LIST | SET => {
                let (kind, length) = self.list()?;
                (0..length).try_for_each(|_| self.skip_element(kind, depth))
            }
            MAP => {
                let length = self.varint()?;
                let kinds = if length > 0 { self.byte()? } else { 0 };
                (0..length).try_for_each(|_| {
                    self.skip_element(kinds >> 4, depth)?;
                    self.skip_element(kinds & 15, depth)
                })
            }
            STRUCT => self.structure(|reader, field| match field.kind {
                TRUE | FALSE => Ok(()),
                kind => reader.skip_element(kind, depth),
            }),
            _ => Err(error("no such type")),
        }
    }

    fn zigzag(&mut self) -> Result<i64, ParquetError> {
        let number = self.varint()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn varint(&mut self) -> Result<u64, ParquetError> {
        let end = self.start + self.bytes.len() as u64;
        let (number, length) =
            varint::read(&self.bytes[self.position..]).map_err(|error| match error {
                VarintError::Truncated => ParquetError::Truncated { offset: end },
                VarintError::TooLarge => {
                    let problem = "a number does not fit 64 bits";
                    ParquetError::Thrift { offset: self.offset(), problem }
                }
            })?;
        self.position += length;
        Ok(number)
    }

    fn byte(&mut self) -> Result<u8, ParquetError> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], ParquetError> {
        let left = &self.bytes[self.position..];
        let taken = usize::try_from(length).ok().and_then(|length| left.get(..length));
        let offset = self.start + self.bytes.len() as u64;
        let taken = taken.ok_or(ParquetError::Truncated { offset })?;
        self.position += taken.len();
        Ok(taken)
    }
}
