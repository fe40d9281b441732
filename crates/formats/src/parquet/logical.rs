//! The logical type of a column: what its stored values mean.

use core::fmt::{self, Display, Formatter};

use blocked_bloom_split::thrift::{Field, I8, I32, Reader, STRUCT, TRUE, ThriftError};

/// The unit in which times and timestamps are counted.
///
/// ```
/// use blocked_bloom_formats::parquet::TimeUnit;
/// assert_eq!(TimeUnit::Micros.digits(), 6);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
}

impl TimeUnit {
    /// Digits after the decimal point of a second.
    pub fn digits(self) -> u32 {
        match self {
            Self::Millis => 3,
            Self::Micros => 6,
            Self::Nanos => 9,
        }
    }
}

/// What the values of a column mean, by the file's schema.
///
/// ```
/// use blocked_bloom_formats::parquet::LogicalType;
/// let price = LogicalType::Decimal { precision: 9, scale: 2 };
/// assert_eq!(price.to_string(), "DECIMAL(9,2)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogicalType {
    /// Text in UTF-8.
    String,
    /// The name of one of a fixed set of values, in UTF-8.
    Enum,
    /// JSON, in UTF-8.
    Json,
    /// BSON.
    Bson,
    /// 16 bytes, big-endian.
    Uuid,
    /// Half-precision floating point, little-endian.
    Float16,
    /// An unscaled integer, divided by `10^scale`.
    Decimal {
        /// Most digits. A type with more than 255 is [`Unknown`](Self::Unknown).
        precision: u8,
        /// Digits after the decimal point.
        scale: u8,
    },
    /// Days since 1970-01-01.
    Date,
    /// Time since midnight.
    Time(TimeUnit),
    /// Time since 1970-01-01 00:00.
    Timestamp {
        /// The unit.
        unit: TimeUnit,
        /// An instant, counted in UTC. Otherwise a date and a time of day in no time zone.
        is_utc: bool,
    },
    /// An integer of this many bits.
    Integer {
        /// 8, 16, 32 or 64.
        bits: u8,
        /// Whether it has a sign.
        is_signed: bool,
    },
    /// Months, days and milliseconds.
    Interval,
    /// A type that this release does not know.
    Unknown,
}

impl Display for LogicalType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::String => f.write_str("STRING"),
            Self::Enum => f.write_str("ENUM"),
            Self::Json => f.write_str("JSON"),
            Self::Bson => f.write_str("BSON"),
            Self::Uuid => f.write_str("UUID"),
            Self::Float16 => f.write_str("FLOAT16"),
            Self::Decimal { precision, scale } => write!(f, "DECIMAL({precision},{scale})"),
            Self::Date => f.write_str("DATE"),
            Self::Time(unit) => write!(f, "TIME({unit:?})"),
            Self::Timestamp { unit, is_utc: true } => write!(f, "TIMESTAMP({unit:?}, UTC)"),
            Self::Timestamp { unit, .. } => write!(f, "TIMESTAMP({unit:?})"),
            Self::Integer { bits, is_signed } => {
                write!(f, "{}INT{bits}", if *is_signed { "" } else { "U" })
            }
            Self::Interval => f.write_str("INTERVAL"),
            Self::Unknown => f.write_str("an unknown logical type"),
        }
    }
}

impl LogicalType {
    /// The type that an old `ConvertedType` stands for. Lists and maps have no values.
    pub(super) fn from_converted(number: i32, precision: i32, scale: i32) -> Option<Self> {
        use TimeUnit::{Micros, Millis};
        let integer = |log, is_signed| Self::Integer { bits: 8_u8 << log, is_signed };
        Some(match number {
            0 => Self::String,
            1..=3 => return None,
            4 => Self::Enum,
            5 => decimal(precision, scale),
            6 => Self::Date,
            7 => Self::Time(Millis),
            8 => Self::Time(Micros),
            9 => Self::Timestamp { unit: Millis, is_utc: true },
            10 => Self::Timestamp { unit: Micros, is_utc: true },
            11..=14 => integer(number - 11, false),
            15..=18 => integer(number - 15, true),
            19 => Self::Json,
            20 => Self::Bson,
            21 => Self::Interval,
            _ => Self::Unknown,
        })
    }

    /// Reads the union `LogicalType`.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, ThriftError> {
        let mut found = Self::Unknown;
        reader.structure::<ThriftError>(|reader, field| {
            field.expect(STRUCT, "logicalType")?;
            let parameters = Parameters::read(reader)?;
            found = parameters.logical_type(field.id);
            Ok(())
        })?;
        Ok(found)
    }
}

fn decimal(precision: i32, scale: i32) -> LogicalType {
    match (u8::try_from(precision), u8::try_from(scale)) {
        (Ok(precision @ 1..), Ok(scale)) if scale <= precision => {
            LogicalType::Decimal { precision, scale }
        }
        _ => LogicalType::Unknown,
    }
}

/// The fields of a member of the union: numbers by their id, and the unit of a time.
#[derive(Default)]
struct Parameters {
    numbers: [i32; 2],
    flags: [bool; 2],
    unit: Option<TimeUnit>,
}

impl Parameters {
    fn read(reader: &mut Reader<'_>) -> Result<Self, ThriftError> {
        let mut found = Parameters::default();
        reader.structure::<ThriftError>(|reader, field| {
            let Field { id: id @ 1..=2, kind, .. } = field else { return reader.skip(field.kind) };
            let at = id as usize - 1;
            match kind {
                I32 => found.numbers[at] = reader.i32()?,
                I8 => found.numbers[at] = reader.byte()?.into(),
                STRUCT => reader.structure::<ThriftError>(|reader, unit| {
                    found.unit = match unit.id {
                        1 => Some(TimeUnit::Millis),
                        2 => Some(TimeUnit::Micros),
                        3 => Some(TimeUnit::Nanos),
                        _ => None,
                    };
                    reader.skip(unit.kind)
                })?,
                _ => {
                    found.flags[at] = kind == TRUE;
                    reader.skip(kind)?;
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn logical_type(&self, id: i16) -> LogicalType {
        let Parameters { numbers, flags, unit } = *self;
        match (id, unit) {
            (1, _) => LogicalType::String,
            (4, _) => LogicalType::Enum,
            (5, _) => decimal(numbers[1], numbers[0]),
            (6, _) => LogicalType::Date,
            (7, Some(unit)) => LogicalType::Time(unit),
            (8, Some(unit)) => LogicalType::Timestamp { unit, is_utc: flags[0] },
            (10, _) if [8, 16, 32, 64].contains(&numbers[0]) => {
                LogicalType::Integer { bits: numbers[0] as u8, is_signed: flags[1] }
            }
            (12, _) => LogicalType::Json,
            (13, _) => LogicalType::Bson,
            (14, _) => LogicalType::Uuid,
            (15, _) => LogicalType::Float16,
            _ => LogicalType::Unknown,
        }
    }
}

/// The fields of a `SchemaElement` that describe values. Groups of columns have no type.
#[derive(Default)]
pub(super) struct SchemaElement {
    pub(super) physical_type: Option<i32>,
    pub(super) type_length: Option<i32>,
    converted: Option<i32>,
    scale: Option<i32>,
    precision: Option<i32>,
    logical_type: Option<LogicalType>,
}

impl SchemaElement {
    /// The logical type, or the one that older writers call the converted type.
    pub(super) fn logical_type(&self) -> Option<LogicalType> {
        let converted = || {
            let (precision, scale) = (self.precision.unwrap_or(0), self.scale.unwrap_or(0));
            LogicalType::from_converted(self.converted?, precision, scale)
        };
        self.logical_type.or_else(converted)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, ThriftError> {
        let mut element = SchemaElement::default();
        reader.structure::<ThriftError>(|reader, field| {
            let (number, name) = match field.id {
                1 => (&mut element.physical_type, "type"),
                2 => (&mut element.type_length, "type_length"),
                6 => (&mut element.converted, "converted_type"),
                7 => (&mut element.scale, "scale"),
                8 => (&mut element.precision, "precision"),
                10 => {
                    field.expect(STRUCT, "logicalType")?;
                    element.logical_type = Some(LogicalType::read(reader)?);
                    return Ok(());
                }
                _ => return reader.skip(field.kind),
            };
            field.expect(I32, name)?;
            *number = Some(reader.i32()?);
            Ok(())
        })?;
        Ok(element)
    }
}
