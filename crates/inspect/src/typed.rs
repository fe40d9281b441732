//! Keys as values of a Parquet column. No other module knows the meaning of a key for a column.
//!
//! A key is read according to the column's logical type, and hashed as the bytes that a writer
//! stores for it. A key that the column cannot hold exactly is an error: the filter would answer
//! "absent" whatever the column holds.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};
use std::ops::RangeInclusive;

use blocked_bloom_formats::parquet::{Column, LogicalType, ParquetError, PhysicalType};
use blocked_bloom_split::hash_value;

use crate::decimal::{half, scaled, twos_complement};
use crate::message::{LookupOption, Message};
use crate::times::{date, int96, time, timestamp};

/// The physical types that can have filters.
pub const VALUE_TYPES: [PhysicalType; 7] = [
    PhysicalType::Int32,
    PhysicalType::Int64,
    PhysicalType::Int96,
    PhysicalType::Float,
    PhysicalType::Double,
    PhysicalType::ByteArray,
    PhysicalType::FixedLenByteArray,
];

/// Returns the name of a type in lower case with hyphens, such as `byte-array`.
///
/// ```
/// use blocked_bloom_inspect::{PhysicalType, type_name, type_of_name};
/// assert_eq!(type_name(PhysicalType::ByteArray), "byte-array");
/// assert_eq!(type_of_name("BYTE_ARRAY"), Some(PhysicalType::ByteArray));
/// ```
pub fn type_name(physical_type: PhysicalType) -> String {
    physical_type.to_string().to_ascii_lowercase().replace('_', "-")
}

/// Returns the type with this name, in any case, with hyphens or underscores, if it can have
/// filters.
pub fn type_of_name(name: &str) -> Option<PhysicalType> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    VALUE_TYPES.into_iter().find(|&physical_type| type_name(physical_type) == name)
}

/// The type of a column's values: physical, and logical if it is known.
///
/// ```
/// use blocked_bloom_inspect::{ColumnType, LogicalType, PhysicalType};
/// let mut price = ColumnType::from(PhysicalType::Int32);
/// assert_eq!(price.encode(b"5", false)?.bytes, [5, 0, 0, 0].as_slice());
/// price.logical_type = Some(LogicalType::Decimal { precision: 9, scale: 2 });
/// assert_eq!(price.encode(b"5", false)?.bytes, [0xf4, 1, 0, 0].as_slice()); // 500
/// let message = price.encode(b"5.001", false).unwrap_err().to_string();
/// assert!(message.ends_with("DECIMAL(9,2): it has more than 2 digits after the point"));
/// # Ok::<(), blocked_bloom_inspect::Message>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnType {
    /// The physical type, which determines the stored bytes.
    pub physical_type: PhysicalType,
    /// The logical type. `None` if it is not known.
    pub logical_type: Option<LogicalType>,
    /// Bytes per value of a column of fixed length.
    pub type_length: Option<u32>,
}

/// The type of a filter's values without its file: the logical type is not known.
impl From<PhysicalType> for ColumnType {
    fn from(physical_type: PhysicalType) -> Self {
        ColumnType { physical_type, logical_type: None, type_length: None }
    }
}

impl Display for ColumnType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.logical_type {
            Some(logical_type) => logical_type.fmt(f),
            None => self.physical_type.fmt(f),
        }
    }
}

/// The bytes of a value as Parquet stores it.
///
/// ```
/// use blocked_bloom_inspect::{ColumnType, PhysicalType};
/// let zero = ColumnType::from(PhysicalType::Double).encode(b"0", false)?;
/// assert_eq!(zero.bytes, 0.0_f64.to_le_bytes().as_slice());
/// assert_eq!(zero.others, [(-0.0_f64).to_le_bytes()]);
/// # Ok::<(), blocked_bloom_inspect::Message>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Encoded<'a> {
    /// The plain-encoded bytes.
    pub bytes: Cow<'a, [u8]>,
    /// Other bytes that a writer may have stored for the same value: zero with the other sign, a
    /// number rounded twice, a decimal with leading zeros.
    pub others: Vec<Vec<u8>>,
}

impl Encoded<'_> {
    /// Returns the hash of [`bytes`](Self::bytes), as filters hold it.
    pub fn hash(&self) -> u64 {
        hash_value(&self.bytes)
    }
}

impl ColumnType {
    /// Returns `None` if the column's metadata is encrypted.
    pub(crate) fn from_column(column: &Column<'_>) -> Option<Self> {
        let physical_type = column.physical_type()?;
        // Without a logical type, integers are signed.
        let integer = |bits| Some(LogicalType::Integer { bits, is_signed: true });
        let logical_type = column.logical_type().or(match physical_type {
            PhysicalType::Int32 => integer(32),
            PhysicalType::Int64 => integer(64),
            _ => None,
        });
        Some(ColumnType { physical_type, logical_type, type_length: column.type_length() })
    }

    /// Returns the bytes per value, if values are plain integers.
    pub fn integer_bytes(&self) -> Option<usize> {
        match (self.logical_type, self.physical_type) {
            (None | Some(LogicalType::Integer { .. }), PhysicalType::Int32) => Some(4),
            (None | Some(LogicalType::Integer { .. }), PhysicalType::Int64) => Some(8),
            _ => None,
        }
    }

    /// Returns whether values are text, or bytes without a meaning.
    pub fn is_bytes(&self) -> bool {
        use LogicalType::{Bson, Enum, Json, String};
        let is_stored_so = [PhysicalType::ByteArray, PhysicalType::FixedLenByteArray];
        is_stored_so.contains(&self.physical_type)
            && matches!(self.logical_type, None | Some(Bson | Enum | Json | String))
    }

    /// Returns whether values have no text form, so that keys must be plain-encoded bytes.
    pub fn is_opaque(&self) -> bool {
        matches!(self.logical_type, Some(LogicalType::Interval | LogicalType::Unknown))
    }

    /// Returns the integers that a column of [integers](Self::integer_bytes) can hold. Without a
    /// logical type, they may be signed or unsigned.
    ///
    /// ```
    /// use blocked_bloom_inspect::{ColumnType, PhysicalType};
    /// let column = ColumnType::from(PhysicalType::Int32);
    /// assert_eq!(column.integers(), -(1 << 31)..=(1 << 32) - 1);
    /// ```
    pub fn integers(&self) -> RangeInclusive<i128> {
        let width = if self.physical_type == PhysicalType::Int32 { 32 } else { 64 };
        match self.logical_type {
            None => -1 << (width - 1)..=(1 << width) - 1,
            Some(LogicalType::Integer { bits, is_signed: false }) => 0..=(1 << bits) - 1,
            Some(LogicalType::Integer { bits, .. }) => -1 << (bits - 1)..=(1 << (bits - 1)) - 1,
            Some(_) => -1 << (width - 1)..=(1 << (width - 1)) - 1,
        }
    }

    /// Returns the stored bytes of the value that a key stands for. Keys are plain-encoded bytes if
    /// `is_encoded`, otherwise text: decimal numbers, dates and times as in ISO 8601, UUIDs in
    /// hexadecimal digits, and strings unchanged. A whole number for a column of dates or times is
    /// the stored number; for dates, `2026` and `20260131` need a sign, because they may be dates.
    ///
    /// # Errors
    ///
    /// A [`Message`] if the column cannot hold this value exactly, and for NaN, which has many
    /// encodings. Floating-point numbers are rounded in the same way as by writers.
    pub fn encode<'a>(&self, key: &'a [u8], is_encoded: bool) -> Result<Encoded<'a>, Message> {
        let encoded = match is_encoded {
            true => Encoded { bytes: Cow::Borrowed(key), others: Vec::new() },
            false => self.read(key)?,
        };
        let fixed = match (self.logical_type, self.physical_type) {
            (_, PhysicalType::Boolean) => Some(1),
            (_, PhysicalType::Int32 | PhysicalType::Float) => Some(4),
            (_, PhysicalType::Int64 | PhysicalType::Double) => Some(8),
            (_, PhysicalType::Int96) => Some(12),
            (Some(LogicalType::Uuid), PhysicalType::FixedLenByteArray) => Some(16),
            (_, PhysicalType::FixedLenByteArray) => self.type_length,
            _ => None,
        };
        let found = encoded.bytes.len() as u64;
        match fixed {
            Some(expected) if found != u64::from(expected) => match self.physical_type {
                PhysicalType::FixedLenByteArray => {
                    Err(Message::new(ParquetError::ValueLength { found, expected }))
                }
                of => Err(Message::new(format_args!(
                    "found {found} bytes, expected the {expected} of {of}"
                ))),
            },
            _ => Ok(encoded),
        }
    }

    /// Parses the text of a value.
    fn read<'a>(&self, key: &'a [u8]) -> Result<Encoded<'a>, Message> {
        use {LogicalType as L, PhysicalType as P};
        // Bytes that are not UTF-8 cannot be a number.
        let text = str::from_utf8(key).unwrap_or_default();
        let found = || format!("found '{}', expected ", key.escape_ascii());
        let refused = |reason: String| Message::new(format_args!("{}{self}: {reason}", found()));
        let by_bytes = |expected: &str, after: &str| {
            Message::naming(found() + expected, LookupOption::Encoded, after)
        };
        // A whole number for a date or a time is the stored number, unless it may be a year or a
        // date without hyphens.
        let is_date = |text: &str| match (text.len(), text.is_ascii()) {
            (4, true) => date(&format!("{text}-01-01")).is_ok(),
            (8, true) => date(&format!("{}-{}-{}", &text[..4], &text[4..6], &text[6..])).is_ok(),
            _ => false,
        };
        let moment = |count: Result<i128, String>| {
            if !matches!(self.logical_type, Some(L::Time(_))) && is_date(text) {
                return Err(refused(format!(
                    "it may be a year or a date: give a date such as 2026-01-31, or +{text} if \
                     this is the stored number"
                )));
            }
            let count = text.parse().or(count).map_err(refused)?;
            self.integer(count).ok_or_else(|| refused("out of range".to_owned()))
        };
        match (self.logical_type, self.physical_type) {
            (Some(L::Interval | L::Unknown), _) => {
                Err(by_bytes(&format!("a value of {self} by "), ", as it is stored"))
            }
            (Some(L::Decimal { precision, scale }), _) => {
                let (is_negative, digits) =
                    scaled(text, scale.into(), precision.into()).map_err(refused)?;
                Ok(self.decimal(is_negative, &digits))
            }
            (Some(L::Date), P::Int32) => moment(date(text)),
            (Some(L::Time(unit)), P::Int32 | P::Int64) => moment(time(text, unit)),
            (Some(L::Timestamp { unit, is_utc }), P::Int64) => {
                moment(timestamp(text, unit, is_utc))
            }
            (_, P::Int96) => match int96(text) {
                Ok(bytes) => Ok(bytes.into()),
                Err(reason) => {
                    Err(by_bytes("INT96 by ", &format!(", 12 bytes, or a time: {reason}")))
                }
            },
            (_, P::Int32 | P::Int64) => {
                let value = scaled(text, 0, 38).ok().and_then(|(is_negative, digits)| {
                    let value = digits.iter().fold(0, |all, &digit| 10 * all + i128::from(digit));
                    self.integer(if is_negative { -value } else { value })
                });
                value.ok_or_else(|| match self.logical_type {
                    Some(_) => {
                        let (low, high) = self.integers().into_inner();
                        Message::new(format!("{}a whole number from {low} to {high}", found()))
                    }
                    None if self.physical_type == P::Int32 => {
                        Message::new(found() + "a whole number of 32 bits")
                    }
                    None => Message::new(found() + "a whole number of 64 bits"),
                })
            }
            (Some(L::Float16), _) | (_, P::Float | P::Double) => {
                self.float(text).ok_or_else(|| {
                    let expected = format!(
                        "a number within the range of {self} (NaN, which has many encodings, by "
                    );
                    by_bytes(&expected, ")")
                })
            }
            (Some(L::Uuid), _) => match uuid(text) {
                Some(bytes) => Ok(bytes.into()),
                None => Err(by_bytes("32 hexadecimal digits of a UUID, or its 16 bytes by ", "")),
            },
            (Some(L::String | L::Enum | L::Json), _) if str::from_utf8(key).is_err() => {
                Err(refused("it is not UTF-8".to_owned()))
            }
            (_, P::Boolean) => match text {
                "true" => Ok(vec![1].into()),
                "false" => Ok(vec![0].into()),
                _ => Err(Message::new(found() + "true or false")),
            },
            _ => Ok(Encoded { bytes: Cow::Borrowed(key), others: Vec::new() }),
        }
    }

    /// Encodes an integer; `None` if the column cannot hold it.
    fn integer(&self, value: i128) -> Option<Encoded<'static>> {
        let bytes = match self.physical_type {
            PhysicalType::Int32 => (value as i32).to_le_bytes().to_vec(),
            _ => (value as i64).to_le_bytes().to_vec(),
        };
        self.integers().contains(&value).then(|| bytes.into())
    }

    /// Encodes a decimal. Writers should use the fewest bytes for a column of variable length, and
    /// may use more.
    fn decimal(&self, is_negative: bool, digits: &[u8]) -> Encoded<'static> {
        let bytes = twos_complement(is_negative, digits);
        let extended = |length: usize| {
            let mut all =
                vec![if is_negative { 0xff } else { 0 }; length.saturating_sub(bytes.len())];
            all.extend(&bytes);
            all
        };
        let reversed = |length| extended(length).into_iter().rev().collect::<Vec<u8>>().into();
        match self.physical_type {
            PhysicalType::Int32 => reversed(4),
            PhysicalType::Int64 => reversed(8),
            PhysicalType::FixedLenByteArray => {
                extended(self.type_length.unwrap_or_default() as usize).into()
            }
            _ => {
                let others = (bytes.len() + 1..=16).map(extended).collect();
                Encoded { others, ..bytes.into() }
            }
        }
    }

    /// Encodes a floating-point number. It is rounded once, or first to a wider type, as by writers
    /// that hold values of that type. Zeros get both signs.
    fn float(&self, text: &str) -> Option<Encoded<'static>> {
        let wide: f64 = text.parse().ok()?;
        let single: f32 = text.parse().ok()?;
        let is_one = |value: f64| {
            // Text without digits means infinity; with digits, the number is out of range.
            value.is_finite() || (!value.is_nan() && !text.contains(|c: char| c.is_ascii_digit()))
        };
        let mut all: Vec<Vec<u8>> = Vec::new();
        match (self.logical_type, self.physical_type) {
            (Some(LogicalType::Float16), _) => {
                for value in [wide, wide as f32 as f64, f64::from(single)] {
                    all.push(half(value)?.to_le_bytes().to_vec());
                }
            }
            (_, PhysicalType::Float) => {
                for value in [single, wide as f32] {
                    all.push(is_one(value.into()).then(|| value.to_le_bytes().to_vec())?);
                }
            }
            _ => all.push(wide.to_le_bytes().to_vec()),
        }
        if !is_one(wide) {
            return None;
        }
        let mut zero = all[0].clone();
        zero.last_mut().into_iter().for_each(|sign| *sign ^= 0x80);
        if zero.iter().chain(&all[0]).all(|byte| byte & 0x7f == 0) {
            all.push(zero);
        }
        let mut others = all.split_off(1);
        others.retain(|other| *other != all[0]);
        Some(Encoded { others, ..all.swap_remove(0).into() })
    }
}

impl From<Vec<u8>> for Encoded<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Encoded { bytes: Cow::Owned(bytes), others: Vec::new() }
    }
}

/// Parses a UUID in hexadecimal digits, with or without hyphens, braces and `urn:uuid:`.
pub(crate) fn uuid(text: &str) -> Option<Vec<u8>> {
    let text = text.strip_prefix("urn:uuid:").unwrap_or(text);
    let text = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(text);
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    let digits: Vec<u32> =
        text.chars().filter(|&c| c != '-').map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let is_whole = [&[32][..], &[8, 4, 4, 4, 12]].contains(&&groups[..]);
    is_whole.then(|| digits.chunks(2).map(|pair| (16 * pair[0] + pair[1]) as u8).collect())
}
