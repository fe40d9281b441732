//! A reader of Thrift's compact protocol, limited to the needs of Parquet's metadata.
//!
//! This crate has its own reader because it must be bounded: it does not allocate, and nests at
//! most 32 structures. Callers interpret the fields that they know and skip the others.
//!
//! ```
//! use blocked_bloom_split::thrift::{I32, Reader, ThriftError};
//! // Field 1, a number; then the end.
//! let (mut reader, mut number) = (Reader::new(&[0x15, 84, 0], 0), 0);
//! reader.structure(|reader, field| match field.id {
//!     1 => {
//!         field.expect(I32, "number")?;
//!         number = reader.i32()?;
//!         Ok(())
//!     }
//!     _ => reader.skip(field.kind),
//! })?;
//! assert_eq!(number, 42);
//! # Ok::<(), ThriftError>(())
//! ```
//!
//! Source: `doc/specs/thrift-compact-protocol.md` of Apache Thrift.

/// The type of a boolean that is true, which has no further bytes.
pub const TRUE: u8 = 1;
/// The type of a single byte.
pub const I8: u8 = 3;
/// The type of a 32-bit number.
pub const I32: u8 = 5;
/// The type of a 64-bit number.
pub const I64: u8 = 6;
/// The type of bytes and text.
pub const BINARY: u8 = 8;
/// The type of a list.
pub const LIST: u8 = 9;
/// The type of a structure or a union.
pub const STRUCT: u8 = 12;

const STOP: u8 = 0;
const FALSE: u8 = 2;
const I16: u8 = 4;
const DOUBLE: u8 = 7;
const SET: u8 = 10;
const MAP: u8 = 11;
const UUID: u8 = 13;

/// Why bytes are not the expected Thrift. Offsets count from the start of the input.
///
/// ```
/// use blocked_bloom_split::thrift::{Reader, ThriftError};
/// let error = Reader::new(&[0x80], 7).i32().unwrap_err();
/// assert_eq!(error, ThriftError::Truncated { offset: 8 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThriftError {
    /// The bytes end too early.
    Truncated {
        /// Offset of the end.
        offset: u64,
    },
    /// The bytes are not compact Thrift.
    Malformed {
        /// Offset of the fault.
        offset: u64,
        /// Description of the fault.
        problem: &'static str,
    },
    /// A field has the wrong type.
    FieldType {
        /// Offset of the field.
        offset: u64,
        /// Name of the field.
        field: &'static str,
        /// Its type in compact Thrift.
        found: u8,
        /// The expected type.
        expected: u8,
    },
    /// A required field is missing.
    MissingField {
        /// Offset of the end of its structure.
        offset: u64,
        /// Name of the field.
        field: &'static str,
    },
}

blocked_bloom::impl_error!(ThriftError;
    Self::Truncated { offset } => ("truncated: the bytes end at {offset}, within the metadata"),
    Self::Malformed { offset, problem } => ("damaged metadata at byte {offset}: {problem}"),
    Self::FieldType { offset, field, found, expected } => (
        "field {field} at byte {offset} has Thrift type {found}, expected {expected}"
    ),
    Self::MissingField { offset, field } => ("field {field} is missing before byte {offset}"),
);

/// Maximum nesting of unknown structures. Parquet's own structures are nested seven deep.
const MAX_DEPTH: u32 = 32;

/// The head of a field of a structure.
///
/// ```
/// use blocked_bloom_split::thrift::{BINARY, Field, I32, ThriftError};
/// let field = Field { id: 1, kind: I32, offset: 7 };
/// assert_eq!(field.expect(I32, "rows"), Ok(()));
/// assert!(matches!(field.expect(BINARY, "rows"), Err(ThriftError::FieldType { offset: 7, .. })));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Number of the field in the structure.
    pub id: i16,
    /// Type of the field.
    pub kind: u8,
    /// Offset of the head.
    pub offset: u64,
}

impl Field {
    /// Checks the type of this field; `field` is its name.
    ///
    /// # Errors
    ///
    /// [`ThriftError::FieldType`].
    pub fn expect(self, expected: u8, field: &'static str) -> Result<(), ThriftError> {
        match self.kind {
            found if found == expected => Ok(()),
            found => Err(ThriftError::FieldType { offset: self.offset, field, found, expected }),
        }
    }
}

/// A cursor over bytes. The first [`position`](Self::position) bytes have been read.
///
/// Every method returns [`ThriftError::Truncated`] if the bytes end too early, and
/// [`ThriftError::Malformed`] if they are not valid Thrift.
///
/// ```
/// use blocked_bloom_split::thrift::{BINARY, Reader, ThriftError};
/// // A list of two strings.
/// let mut reader = Reader::new(b"\x28\x02no\x05maybe", 0);
/// assert_eq!(reader.list()?, (BINARY, 2));
/// assert_eq!([reader.binary()?, reader.binary()?], [&b"no"[..], b"maybe"]);
/// assert_eq!(reader.left(), 0);
/// # Ok::<(), ThriftError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    /// Offset of `bytes` in the input.
    start: u64,
}

impl<'a> Reader<'a> {
    /// Creates a reader of these bytes. Offsets in errors are increased by `start`.
    pub fn new(bytes: &'a [u8], start: u64) -> Self {
        Reader { bytes, position: 0, start }
    }

    /// Returns the number of bytes read.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the number of bytes left.
    pub fn left(&self) -> u64 {
        (self.bytes.len() - self.position) as u64
    }

    /// Returns the offset of the next byte in the input.
    pub fn offset(&self) -> u64 {
        self.start.saturating_add(self.position as u64)
    }

    /// Calls `read` with the head of every field of a structure. `read` must read the value or
    /// [`skip`](Self::skip) it.
    ///
    /// # Errors
    ///
    /// See the [type](Self); and the errors of `read`.
    pub fn structure<E: From<ThriftError>>(
        &mut self,
        mut read: impl FnMut(&mut Self, Field) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut previous = 0;
        while let Some(field) = self.field(previous)? {
            previous = field.id;
            read(self, field)?;
        }
        Ok(())
    }

    /// Reads the head of the field after the one with the id `previous`. Returns `None` at the end
    /// of the structure.
    fn field(&mut self, previous: i16) -> Result<Option<Field>, ThriftError> {
        let offset = self.offset();
        let head = self.byte()?;
        let kind = head & 15;
        if kind == STOP {
            return Ok(None);
        }
        let id = match i16::from(head >> 4) {
            // The id follows as a zigzag number.
            0 => i16::try_from(self.zigzag()?).ok(),
            step => previous.checked_add(step),
        };
        let problem = "a field number does not fit 16 bits";
        let id = id.ok_or(ThriftError::Malformed { offset, problem })?;
        Ok(Some(Field { id, kind, offset }))
    }

    /// Reads a number of up to 32 bits.
    ///
    /// # Errors
    ///
    /// See the [type](Self).
    pub fn i32(&mut self) -> Result<i32, ThriftError> {
        let offset = self.offset();
        let problem = "a number does not fit 32 bits";
        i32::try_from(self.zigzag()?).map_err(|_| ThriftError::Malformed { offset, problem })
    }

    /// Reads a number.
    ///
    /// # Errors
    ///
    /// See the [type](Self).
    pub fn i64(&mut self) -> Result<i64, ThriftError> {
        self.zigzag()
    }

    /// Reads bytes with their length.
    ///
    /// # Errors
    ///
    /// See the [type](Self).
    pub fn binary(&mut self) -> Result<&'a [u8], ThriftError> {
        let length = self.varint()?;
        self.take(length)
    }

    /// Reads the type and the number of a list's elements, which follow. The number is not checked.
    /// Each element takes at least one byte.
    ///
    /// # Errors
    ///
    /// See the [type](Self).
    pub fn list(&mut self) -> Result<(u8, u64), ThriftError> {
        let head = self.byte()?;
        let length = match head >> 4 {
            15 => self.varint()?,
            length => u64::from(length),
        };
        Ok((head & 15, length))
    }

    /// Skips the value of a field of this type.
    ///
    /// # Errors
    ///
    /// See the [type](Self).
    pub fn skip(&mut self, kind: u8) -> Result<(), ThriftError> {
        match kind {
            // The type contains the value.
            TRUE | FALSE => Ok(()),
            _ => self.skip_element(kind, MAX_DEPTH),
        }
    }

    /// Skips an element of a list, set or map, or a field that is not a bool, nested up to `depth`.
    fn skip_element(&mut self, kind: u8, depth: u32) -> Result<(), ThriftError> {
        let offset = self.offset();
        let error = |problem| ThriftError::Malformed { offset, problem };
        let depth = depth.checked_sub(1).ok_or(error("nested too deeply"))?;
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
            _ => Err(error("unknown type")),
        }
    }

    fn zigzag(&mut self) -> Result<i64, ThriftError> {
        let number = self.varint()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads a number with seven bits per byte, the lowest first. The last byte is below 128.
    /// Leading zeros are accepted, up to ten bytes in all.
    fn varint(&mut self) -> Result<u64, ThriftError> {
        let (offset, mut number) = (self.offset(), 0);
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(ThriftError::Malformed { offset, problem: "a number does not fit 64 bits" })
    }

    /// A single byte.
    ///
    /// # Errors
    ///
    /// As of the [type](Self).
    pub fn byte(&mut self) -> Result<u8, ThriftError> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], ThriftError> {
        let left = &self.bytes[self.position..];
        let taken = usize::try_from(length).ok().and_then(|length| left.get(..length));
        let offset = self.start.saturating_add(self.bytes.len() as u64);
        let taken = taken.ok_or(ThriftError::Truncated { offset })?;
        self.position += taken.len();
        Ok(taken)
    }
}
