//! Keys as values of Parquet's physical types.
//!
//! A text that is no value of the type is an error, since its bytes would be "absent" whatever the
//! column holds; and so is NaN, which has many encodings.

use blocked_bloom_formats::parquet::{PhysicalType, Value};

use crate::message::{LookupOption, Message};

/// The types that have filters.
pub const VALUE_TYPES: [PhysicalType; 7] = [
    PhysicalType::Int32,
    PhysicalType::Int64,
    PhysicalType::Int96,
    PhysicalType::Float,
    PhysicalType::Double,
    PhysicalType::ByteArray,
    PhysicalType::FixedLenByteArray,
];

/// The name of a type in lower case with hyphens, such as `byte-array`.
///
/// ```
/// use blocked_bloom_inspect::{PhysicalType, type_name, type_of_name};
/// assert_eq!(type_name(PhysicalType::ByteArray), "byte-array");
/// assert_eq!(type_of_name("BYTE_ARRAY"), Some(PhysicalType::ByteArray));
/// ```
pub fn type_name(physical_type: PhysicalType) -> String {
    physical_type.to_string().to_ascii_lowercase().replace('_', "-")
}

/// The type of this name, in any case, with hyphens or underscores; only of those that have
/// filters.
pub fn type_of_name(name: &str) -> Option<PhysicalType> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    VALUE_TYPES.into_iter().find(|&physical_type| type_name(physical_type) == name)
}

/// The value that a key stands for: its plain-encoded bytes if `encoded`, else its text.
pub(crate) fn value_of(
    physical_type: PhysicalType,
    key: &[u8],
    encoded: bool,
) -> Result<Value<'_>, Message> {
    match encoded {
        true => value_of_bytes(physical_type, key),
        false => value_of_text(physical_type, key),
    }
}

/// The value whose plain-encoded bytes these are.
///
/// # Errors
///
/// A [`Message`] if values of the type have another length.
///
/// ```
/// use blocked_bloom_formats::parquet::Value;
/// use blocked_bloom_inspect::{PhysicalType, value_of_bytes};
/// assert_eq!(value_of_bytes(PhysicalType::Int32, &[42, 0, 0, 0])?, Value::Int32(42));
/// # Ok::<(), blocked_bloom_inspect::Message>(())
/// ```
pub fn value_of_bytes(physical_type: PhysicalType, bytes: &[u8]) -> Result<Value<'_>, Message> {
    Ok(match physical_type {
        PhysicalType::Int32 => Value::Int32(i32::from_le_bytes(whole(physical_type, bytes)?)),
        PhysicalType::Int64 => Value::Int64(i64::from_le_bytes(whole(physical_type, bytes)?)),
        PhysicalType::Int96 => Value::Int96(whole(physical_type, bytes)?),
        PhysicalType::Float => Value::Float(f32::from_le_bytes(whole(physical_type, bytes)?)),
        PhysicalType::Double => Value::Double(f64::from_le_bytes(whole(physical_type, bytes)?)),
        PhysicalType::FixedLenByteArray => Value::FixedLenByteArray(bytes),
        _ => Value::ByteArray(bytes),
    })
}

/// The bytes of a value of fixed length.
fn whole<const N: usize>(physical_type: PhysicalType, bytes: &[u8]) -> Result<[u8; N], Message> {
    let found = bytes.len();
    bytes.try_into().map_err(|_| {
        Message::new(format_args!("found {found} bytes, expected the {N} of {physical_type}"))
    })
}

/// The value that a text stands for: a decimal number, or the bytes of a byte array as they are.
///
/// Numbers of unsigned columns are stored as the bits of signed ones.
///
/// # Errors
///
/// A [`Message`] for what is no number of the type, and for NaN.
///
/// ```
/// use blocked_bloom_formats::parquet::Value;
/// use blocked_bloom_inspect::{PhysicalType, value_of_text};
/// assert_eq!(value_of_text(PhysicalType::Int32, b"4294967295")?, Value::Int32(-1));
/// assert!(value_of_text(PhysicalType::Int32, b"1.5").is_err());
/// # Ok::<(), blocked_bloom_inspect::Message>(())
/// ```
pub fn value_of_text(physical_type: PhysicalType, bytes: &[u8]) -> Result<Value<'_>, Message> {
    let text = str::from_utf8(bytes).unwrap_or_default();
    let value = match physical_type {
        PhysicalType::Int32 => {
            text.parse().or_else(|_| text.parse().map(u32::cast_signed)).ok().map(Value::Int32)
        }
        PhysicalType::Int64 => {
            text.parse().or_else(|_| text.parse().map(u64::cast_signed)).ok().map(Value::Int64)
        }
        PhysicalType::Int96 => None,
        PhysicalType::Float => text
            .parse::<f32>()
            .ok()
            .filter(|value| is_one(text, value.is_finite(), value.is_nan()))
            .map(Value::Float),
        PhysicalType::Double => text
            .parse::<f64>()
            .ok()
            .filter(|value| is_one(text, value.is_finite(), value.is_nan()))
            .map(Value::Double),
        PhysicalType::FixedLenByteArray => Some(Value::FixedLenByteArray(bytes)),
        _ => Some(Value::ByteArray(bytes)),
    };
    value.ok_or_else(|| parse_error(physical_type, bytes))
}

fn parse_error(physical_type: PhysicalType, text: &[u8]) -> Message {
    let found = format!("found '{}', expected ", text.escape_ascii());
    let (what, end) = match physical_type {
        PhysicalType::Int32 => return Message::new(found + "a whole number of 32 bits"),
        PhysicalType::Int64 => return Message::new(found + "a whole number of 64 bits"),
        PhysicalType::Int96 => ("INT96 by ".to_owned(), ", 12 bytes"),
        of => {
            (format!("a number within the range of {of} (NaN, which has many encodings, by "), ")")
        }
    };
    Message::naming(found + &what, LookupOption::Encoded, end)
}

/// Whether a number is what the text says: not a NaN, and infinite only if the text has no digits.
fn is_one(text: &str, is_finite: bool, is_nan: bool) -> bool {
    is_finite || (!is_nan && !text.contains(|c: char| c.is_ascii_digit()))
}

/// Zero of the other sign, which equals this value but has other bytes. `None` for what is no zero
/// with a sign.
pub(crate) fn opposite_zero(value: Value<'_>) -> Option<Value<'static>> {
    match value {
        Value::Float(zero) if zero == 0.0 => Some(Value::Float(-zero)),
        Value::Double(zero) if zero == 0.0 => Some(Value::Double(-zero)),
        _ => None,
    }
}
