//! The options of lookups.

use blocked_bloom_inspect::{
    LookupOptions, PhysicalType, Prefix, VALUE_TYPES, type_name, type_of_name,
};

use crate::keys::KeyFormat;

/// What is looked up, beside the keys.
#[derive(clap::Args)]
pub(crate) struct LookupArgs {
    /// The lines are starts of keys: select those that some key may start with. RULE is the one
    /// that was given to build; for an SST file it is own, or the file's own rule as fixed:BYTES or
    /// capped:BYTES
    #[arg(long, value_name = "RULE", value_parser = parse_prefix)]
    pub(crate) prefix: Option<Prefix>,

    /// Column of a Parquet file, its path joined by dots. Lines are values of the column's physical
    /// type: decimal numbers (of a date or a timestamp the number that is stored), or the bytes of
    /// byte arrays, of fixed ones as many as the schema says; with --hex the plain-encoded bytes.
    /// Without --hex, zeros are looked up with both signs. Or column of an index of files, if it
    /// has several
    #[arg(long, value_name = "PATH")]
    pub(crate) column: Option<String>,

    /// Row group of a Parquet file, from 0; may be repeated: a value is selected if any of them may
    /// have it [default: all]
    #[arg(long = "row-group", value_name = "N")]
    pub(crate) row_groups: Vec<usize>,

    /// Physical type of the values of a Parquet filter by itself, which does not say it: int32,
    /// int64, int96 (with --hex), float, double, byte-array or fixed-len-byte-array. Values of
    /// another type than its column's are absent, whatever it holds. Of a filter of Spark: int32 or
    /// int64 for lines that are numbers, otherwise they are bytes
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_type)]
    pub(crate) value_type: Option<PhysicalType>,

    #[command(flatten)]
    pub(crate) key_format: KeyFormat,
}

impl LookupArgs {
    pub(crate) fn options(&self) -> LookupOptions {
        let mut options = LookupOptions::default();
        options.prefix = self.prefix.clone();
        options.column = self.column.clone();
        options.row_groups = self.row_groups.clone();
        options.value_type = self.value_type;
        options.encoded = self.key_format.is_hex();
        options
    }
}

fn parse_prefix(text: &str) -> Result<Prefix, String> {
    text.parse().map_err(|error| format!("{error}, or own"))
}

pub(crate) fn parse_type(text: &str) -> Result<PhysicalType, String> {
    let expected = || format!("expected one of {}", VALUE_TYPES.map(type_name).join(", "));
    type_of_name(text).ok_or_else(expected)
}
