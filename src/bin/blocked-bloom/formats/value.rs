//! Lines as values of Parquet's physical types.
//!
//! This file owns how a value is written. It refuses what is no value of the type, since its bytes would be "absent" whatever the
//! column holds, and NaN, of which there are many.

use blocked_bloom::interop::parquet::{PhysicalType, Value};

use crate::keys::Key;

/// The types that have filters.
const TYPES: [PhysicalType; 7] = [
    PhysicalType::Int32,
    PhysicalType::Int64,
    PhysicalType::Int96,
    PhysicalType::Float,
    PhysicalType::Double,
    PhysicalType::ByteArray,
    PhysicalType::FixedLenByteArray,
];

/// The name of a type on the command line.
pub(crate) fn name(physical_type: PhysicalType) -> String {
    physical_type.to_string().to_lowercase().replace('_', "-")
}

pub(crate) fn parse_type(text: &str) -> Result<PhysicalType, String> {
    let given = text.to_lowercase().replace('_', "-");
    let found = TYPES.into_iter().find(|&physical_type| name(physical_type) == given);
    found.ok_or_else(|| format!("give one of {}", TYPES.map(name).join(", ")))
}

/// The value that a key stands for. `hex`: its bytes are plain-encoded; else it is text for numbers, and bytes for byte arrays.
pub(crate) fn parse(
    physical_type: PhysicalType,
    key: &Key,
    hex: bool,
) -> Result<Value<'_>, String> {
    let bytes = key.as_ref();
    if !hex {
        return parse_text(physical_type, bytes);
    }
    let value = match physical_type {
        PhysicalType::Int32 => whole(bytes).map(|bytes| Value::Int32(i32::from_le_bytes(bytes))),
        PhysicalType::Int64 => whole(bytes).map(|bytes| Value::Int64(i64::from_le_bytes(bytes))),
        PhysicalType::Int96 => whole(bytes).map(Value::Int96),
        PhysicalType::Float => whole(bytes).map(|bytes| Value::Float(f32::from_le_bytes(bytes))),
        PhysicalType::Double => whole(bytes).map(|bytes| Value::Double(f64::from_le_bytes(bytes))),
        PhysicalType::FixedLenByteArray => Some(Value::FixedLenByteArray(bytes)),
        _ => Some(Value::ByteArray(bytes)),
    };
    value.ok_or_else(|| format!("found {} bytes, which are no {physical_type}", bytes.len()))
}

fn whole<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

fn parse_text(physical_type: PhysicalType, bytes: &[u8]) -> Result<Value<'_>, String> {
    let text = str::from_utf8(bytes).unwrap_or_default();
    // Unsigned columns store the bits of their values as signed ones.
    let (value, expected) = match physical_type {
        PhysicalType::Int32 => (
            text.parse().or_else(|_| text.parse().map(u32::cast_signed)).ok().map(Value::Int32),
            "a whole number of 32 bits",
        ),
        PhysicalType::Int64 => (
            text.parse().or_else(|_| text.parse().map(u64::cast_signed)).ok().map(Value::Int64),
            "a whole number of 64 bits",
        ),
        PhysicalType::Int96 => (None, "INT96 by --hex, 12 bytes"),
        PhysicalType::Float => (
            text.parse::<f32>()
                .ok()
                .filter(|value| is_one(text, value.is_finite(), value.is_nan()))
                .map(Value::Float),
            "a number within the range of FLOAT (NaN, which has many encodings, by --hex)",
        ),
        PhysicalType::Double => (
            text.parse::<f64>()
                .ok()
                .filter(|value| is_one(text, value.is_finite(), value.is_nan()))
                .map(Value::Double),
            "a number within the range of DOUBLE (NaN, which has many encodings, by --hex)",
        ),
        PhysicalType::FixedLenByteArray => (Some(Value::FixedLenByteArray(bytes)), ""),
        _ => (Some(Value::ByteArray(bytes)), ""),
    };
    value.ok_or_else(|| format!("found '{}', expected {expected}", bytes.escape_ascii()))
}

/// Whether a number is what the text says: not a NaN, and infinite only if the text has no digits.
fn is_one(text: &str, is_finite: bool, is_nan: bool) -> bool {
    is_finite || (!is_nan && !text.contains(|c: char| c.is_ascii_digit()))
}

/// Zero of the other sign, which equals this value but has other bytes.
pub(crate) fn other_zero(value: Value<'_>) -> Option<Value<'static>> {
    match value {
        Value::Float(zero) if zero == 0.0 => Some(Value::Float(-zero)),
        Value::Double(zero) if zero == 0.0 => Some(Value::Double(-zero)),
        _ => None,
    }
}
