//! Converts values to the bytes that Parquet hashes, and hashes them.
//!
//! Values are physical: pass a date, a decimal or a timestamp in its stored form.

use blocked_bloom_split::hash_value;

/// The physical type of a column. All types except `Boolean` can have filters.
///
/// ```
/// use blocked_bloom_formats::parquet::PhysicalType;
/// assert_eq!(PhysicalType::Int96.to_string(), "INT96");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PhysicalType {
    /// One bit; never has a filter.
    Boolean,
    /// 32 bits; also narrower and unsigned integers, dates, times and small decimals.
    Int32,
    /// 64 bits; also unsigned integers, timestamps, times and decimals.
    Int64,
    /// 12 bytes: an old timestamp.
    Int96,
    /// 32 bits.
    Float,
    /// 64 bits.
    Double,
    /// Any number of bytes; also strings.
    ByteArray,
    /// The fixed number of bytes in the column's schema; also decimals, UUIDs and 16-bit floats.
    FixedLenByteArray,
}

impl PhysicalType {
    pub(super) fn from_number(number: i32) -> Option<Self> {
        Some(match number {
            0 => Self::Boolean,
            1 => Self::Int32,
            2 => Self::Int64,
            3 => Self::Int96,
            4 => Self::Float,
            5 => Self::Double,
            6 => Self::ByteArray,
            7 => Self::FixedLenByteArray,
            _ => return None,
        })
    }
}

/// The name in `parquet.thrift`.
impl core::fmt::Display for PhysicalType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(match self {
            Self::Boolean => "BOOLEAN",
            Self::Int32 => "INT32",
            Self::Int64 => "INT64",
            Self::Int96 => "INT96",
            Self::Float => "FLOAT",
            Self::Double => "DOUBLE",
            Self::ByteArray => "BYTE_ARRAY",
            Self::FixedLenByteArray => "FIXED_LEN_BYTE_ARRAY",
        })
    }
}

/// A value in the physical type of its column.
///
/// The type matters: 5 as `Int32` and 5 as `Int64` have different bytes, and a filter that contains
/// one answers "absent" for the other. [`Column::hash_value`](super::Column::hash_value) checks it.
/// Widen narrow and unsigned integers: the `i8` -1 and the `u32` 4,294,967,295 are both
/// `Int32(-1)`. Floating-point numbers are compared by their bits. Look up 0.0 **and** -0.0 if a
/// query matches both, and never skip a row group for a NaN. Null is never in a filter.
///
/// ```
/// use blocked_bloom_formats::parquet::Value;
/// use blocked_bloom_split::hash_value;
/// assert_eq!(Value::Int32(-1).hash(), hash_value([0xff; 4]));
/// assert_ne!(Value::Double(0.0).hash(), Value::Double(-0.0).hash());
/// assert_eq!(Value::ByteArray(b"word").hash(), hash_value("word"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// 32 bits.
    Int32(i32),
    /// 64 bits.
    Int64(i64),
    /// 8 bytes of nanoseconds of the day, then 4 bytes of the Julian day, both little-endian.
    Int96([u8; 12]),
    /// 32 bits.
    Float(f32),
    /// 64 bits.
    Double(f64),
    /// The bytes, without their length.
    ByteArray(&'a [u8]),
    /// The bytes, of the column's length; decimals are big-endian two's complement.
    FixedLenByteArray(&'a [u8]),
}

impl Value<'_> {
    /// Returns the hash that filters contain.
    #[inline]
    pub fn hash(self) -> u64 {
        match self {
            Self::Int32(value) => hash_value(value.to_le_bytes()),
            Self::Int64(value) => hash_value(value.to_le_bytes()),
            Self::Int96(bytes) => hash_value(bytes),
            Self::Float(value) => hash_value(value.to_le_bytes()),
            Self::Double(value) => hash_value(value.to_le_bytes()),
            Self::ByteArray(bytes) | Self::FixedLenByteArray(bytes) => hash_value(bytes),
        }
    }

    /// Returns the type of the columns that store such values.
    pub fn physical_type(self) -> PhysicalType {
        match self {
            Self::Int32(_) => PhysicalType::Int32,
            Self::Int64(_) => PhysicalType::Int64,
            Self::Int96(_) => PhysicalType::Int96,
            Self::Float(_) => PhysicalType::Float,
            Self::Double(_) => PhysicalType::Double,
            Self::ByteArray(_) => PhysicalType::ByteArray,
            Self::FixedLenByteArray(_) => PhysicalType::FixedLenByteArray,
        }
    }
}
