//! The options that say how a filter is read.

use std::path::PathBuf;

use blocked_bloom_formats::cassandra::Layout;
use blocked_bloom_inspect::{Format, layout_of_version};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::failure::Failure;
use crate::wording::marks;

/// Every format, with its help.
fn format_parser() -> impl TypedValueParser<Value = Format> {
    let value = |format: Format| PossibleValue::new(format.name()).help(format.summary());
    PossibleValuesParser::new(Format::ALL.map(value)).try_map(|name| name.parse::<Format>())
}

fn long_help() -> String {
    format!("Format of the filter [default: recognised by its bytes or its name]:\n{}", marks())
}

/// How a filter is read.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct FormatArgs {
    /// Format of the filter [default: recognised by its bytes or its name]
    #[arg(long, value_parser = format_parser(), long_help = long_help())]
    format: Option<Format>,

    /// Version of Cassandra's format, such as nb or da, if the name of Filter.db has none or a
    /// wrong one; implies --format cassandra
    #[arg(long, value_name = "VERSION", value_parser = layout_of_version)]
    pub(crate) cassandra_version: Option<Layout>,

    /// File of the partitions, for the index of a partitioned filter: one after another, from the
    /// first byte to the last. If a partition is damaged or belongs to another table, all of its
    /// keys may be present, with a warning
    #[arg(long, value_name = "FILE")]
    pub(crate) partitions: Option<PathBuf>,
}

impl FormatArgs {
    pub(crate) fn from_format(format: Format) -> Self {
        FormatArgs { format: Some(format), ..FormatArgs::default() }
    }

    pub(crate) fn format(&self) -> Result<Option<Format>, Failure> {
        match (self.format, self.cassandra_version) {
            (None, Some(_)) => Ok(Some(Format::CASSANDRA)),
            (Some(format), Some(_)) if format != Format::CASSANDRA => Err(Failure::new(format!(
                "--cassandra-version is for --format cassandra, not for {format}"
            ))),
            (format, _) => Ok(format),
        }
    }
}
