//! The options of lookups.

use blocked_bloom_inspect::{
    Format, KeyEncoding, LookupOptions, PhysicalType, Prefix, VALUE_TYPES, type_name, type_of_name,
};

use crate::failure::Failure;
use crate::keys::KeyFormat;

/// Options of a lookup besides the keys.
#[derive(clap::Args)]
pub(crate) struct LookupArgs {
    /// The lines are starts of keys: select those that some key may start with. RULE is the one
    /// that was given to build; for an SST file it is own, or the file's own rule as fixed:BYTES or
    /// capped:BYTES
    #[arg(long, value_name = "RULE", value_parser = parse_prefix)]
    pub(crate) prefix: Option<Prefix>,

    /// Column of a Parquet file, its path joined by dots, or of an index of files with several
    /// columns. Lines are values of the column's logical type: decimal numbers, dates and times as
    /// in ISO 8601 (2026-01-31, 12:00:00.25, or 2026-01-31T12:00:00Z, with a zone if and only if
    /// the column is in UTC) or the number that the column stores, UUIDs in hexadecimal digits, or
    /// text. A value that the column cannot hold exactly is an error. Zeros are looked up with both
    /// signs. With --hex, lines are plain-encoded bytes
    #[arg(long, value_name = "PATH")]
    pub(crate) column: Option<String>,

    /// Row group of a Parquet file, from 0; may be repeated: a value is selected if any of them may
    /// have it [default: all]
    #[arg(long = "row-group", value_name = "N")]
    pub(crate) row_groups: Vec<usize>,

    /// Type of the values, if they were not hashed as text. For this project's filters: int8,
    /// int16, int32 or int64 (the little-endian bytes of an integer; Python hashes integers as
    /// int64, or uint64 from 2^63), uint8 to uint64 (without a sign), any of these with -be
    /// (big-endian), uuid, hex (as --hex), or trimmed (text without blanks and quotes around it).
    /// For a Parquet filter alone, the physical type of its column: int32, int64, int96 (by --hex,
    /// or a time in UTC), float, double, byte-array, fixed-len-byte-array or uuid. For a Spark
    /// filter, int32 or int64. With another type than was hashed, values are absent whatever the
    /// filter holds
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_type)]
    pub(crate) value_type: Option<KeyType>,

    #[command(flatten)]
    pub(crate) key_format: KeyFormat,
}

impl LookupArgs {
    /// The options of lookups in filters of a format, and how keys are read for them.
    pub(crate) fn options(&self, format: Format) -> Result<(LookupOptions, KeyFormat), Failure> {
        let mut options = LookupOptions::default();
        options.prefix = self.prefix.clone();
        options.column = self.column.clone();
        options.row_groups = self.row_groups.clone();
        let (physical, key_format) = typed(self.value_type, self.key_format, format.name())?;
        options.value_type = physical;
        // The keys of a column of UUIDs are its bytes.
        options.encoded = match key_format.encoding() {
            KeyEncoding::Uuid => physical.is_some(),
            encoding => encoding == KeyEncoding::Hex,
        };
        Ok((options, key_format))
    }
}

/// Whether a format is one of this project's filters of keys, which hash the bytes of a value.
pub(crate) fn is_own(format: &str) -> bool {
    ["native", "compact", "growing", "partition-index", "ribbon", "removable", "range"]
        .contains(&format)
}

/// The type of a key: for filters that hash its bytes, for filters of a column, or for both.
#[derive(Clone, Copy)]
pub(crate) struct KeyType {
    encoding: Option<KeyEncoding>,
    physical: Option<PhysicalType>,
}

/// The type of the values of a column, and how keys are read, for a filter of this format.
pub(crate) fn typed(
    value_type: Option<KeyType>,
    keys: KeyFormat,
    format: &str,
) -> Result<(Option<PhysicalType>, KeyFormat), Failure> {
    let Some(KeyType { encoding, physical }) = value_type else { return Ok((None, keys)) };
    let fail = |message| Err(Failure::new(format!("--type: {message}")));
    match (is_own(format), encoding, physical) {
        (true, Some(_), _) if keys.is_hex() => {
            fail("not with --hex: leave one of them out".to_owned())
        }
        (true, Some(encoding), _) => Ok((None, keys.with_encoding(encoding))),
        (true, None, _) => fail(format!(
            "not for {format} (supported: {}): give the bytes of other values by --hex",
            key_types()
        )),
        (false, Some(KeyEncoding::Uuid), _) => {
            Ok((Some(PhysicalType::FixedLenByteArray), keys.with_encoding(KeyEncoding::Uuid)))
        }
        (false, _, Some(physical)) => Ok((Some(physical), keys)),
        (false, ..) => fail(format!("not for {format} (supported: {})", column_types())),
    }
}

/// An error if the bytes of keys are not in the order of the keys, as a range filter needs.
pub(crate) fn check_order(encoding: KeyEncoding) -> Result<(), Failure> {
    match encoding {
        KeyEncoding::Integer { bytes, is_unsigned, is_big_endian }
            if !is_unsigned || bytes > 1 && !is_big_endian =>
        {
            Err(Failure::new(format!(
                "--type: the bytes of this type are not in the order of its numbers, as ranges \
                 need: give uint{}-be",
                8 * bytes
            )))
        }
        _ => Ok(()),
    }
}

/// The names of types of keys.
fn key_types() -> String {
    KeyEncoding::names().replace("text, ", "")
}

fn column_types() -> String {
    VALUE_TYPES.map(type_name).join(", ")
}

fn parse_prefix(text: &str) -> Result<Prefix, String> {
    text.parse().map_err(|error| format!("{error}, or own"))
}

pub(crate) fn parse_type(text: &str) -> Result<KeyType, String> {
    match (text.parse().ok(), type_of_name(text)) {
        (None, None) => {
            Err(format!("expected one of {}; for a column one of {}", key_types(), column_types()))
        }
        (encoding, physical) => Ok(KeyType { encoding, physical }),
    }
}
