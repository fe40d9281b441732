//! The formats of filters that the tool writes, and the options that name one.

use std::fmt::{self, Display, Formatter};

use blocked_bloom_formats::cassandra::{CassandraError, Layout};
use blocked_bloom_inspect::Format;
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::failure::Failure;
use crate::wording::not_of_format;

/// How a file is recognised, for the help, and for `-v` where one was not: the rules of `blocked_bloom_inspect::recognise`.
pub(crate) const RECOGNISED: &str = "  \
  native, growing, ribbon, removable, planes and parquet begin with a magic number, parquet-filter with its header
  rocksdb-sst ends with a magic number
  rocksdb-block ends with ff 00 k 00 00 after a multiple of 64 bytes; LegacyBloom and Ribbon have no mark
  cassandra is named as in nb-1-big-Filter.db, and begins with a number of probes
  guava and spark have as many bytes as their first numbers say, redisbloom begins with a header of as many links
  compact is what --format says: it is part of a container that knows its form";

/// A format that is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum BuildFormat {
    /// This tool's own Bloom filter
    #[default]
    Native,
    /// The same without a header, for containers that have a checksum of their own; by seed 0, of whole keys
    Compact,
    /// This tool's own static filter, 28% smaller at 1%, and slower
    Ribbon,
    /// A filter that keys can be removed from, of blocked-bloom-removable
    Removable,
    /// RocksDB's Bloom filter block, for an SST file, without the checksum behind it
    RocksdbBlock,
    /// RocksDB's Ribbon filter block, with its fall-back to Bloom for few keys
    RocksdbRibbon,
    /// A Bloom filter of Parquet: header and bitset of a column in a row group
    ParquetFilter,
    /// A Cassandra Filter.db
    Cassandra,
    /// What Guava's BloomFilter reads
    Guava,
    /// What Spark's BloomFilter reads
    Spark,
    /// A file of replies for RedisBloom's BF.LOADCHUNK
    Redisbloom,
}

/// The name that `build --format` takes.
impl Display for BuildFormat {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.to_possible_value() {
            Some(value) => f.pad(value.get_name()),
            None => Ok(()),
        }
    }
}

/// The formats that are read by themselves, each with its help.
fn formats() -> impl TypedValueParser<Value = Format> {
    let help = |format| {
        Some(match format {
            Format::Native => "This tool's own",
            Format::Compact => {
                "This tool's own without a header, for containers that have a checksum of their own: blocks and eight bytes"
            }
            Format::Growing => {
                "A filter that grows, a chain of filters: what dedup writes that was given no size"
            }
            Format::Ribbon => "This tool's own static filter, smaller and slower",
            Format::Removable => {
                "A filter that keys can be removed from, of blocked-bloom-removable"
            }
            Format::Planes => "Bit planes, a skip index of blocked-bloom-planes",
            Format::RocksdbBlock => "A filter block of RocksDB, without the SST file around it",
            Format::RocksdbSst => "An SST file of RocksDB, with the filter in it",
            Format::ParquetFilter => {
                "A Bloom filter of Parquet: header and bitset, without the file around it"
            }
            Format::Parquet => "A Parquet file, with the filters in it",
            Format::Cassandra => "A Cassandra Filter.db",
            Format::Guava => "What writeTo of Guava's BloomFilter wrote",
            Format::Spark => "What writeTo of Spark's BloomFilter wrote",
            Format::Redisbloom => "A file of the replies of RedisBloom's BF.SCANDUMP",
            _ => return None,
        })
    };
    let value = |format: Format| Some(PossibleValue::new(format.name()).help(help(format)?));
    let values = Format::ALL.into_iter().filter_map(value);
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Format>())
}

fn long_help() -> String {
    format!("Format of the filter [default: recognised by its bytes or its name]:\n{RECOGNISED}")
}

/// How a filter is read.
#[derive(clap::Args, Clone, Copy, Default)]
pub(crate) struct FormatArgs {
    /// Format of the filter [default: recognised by its bytes or its name]
    #[arg(long, value_parser = formats(), long_help = long_help())]
    format: Option<Format>,

    /// Version of Cassandra's format, such as nb or da, if the name of Filter.db has none or a wrong one; implies --format cassandra
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    pub(crate) cassandra_version: Option<Layout>,
}

impl FormatArgs {
    pub(crate) fn of(format: Format) -> Self {
        FormatArgs { format: Some(format), cassandra_version: None }
    }

    pub(crate) fn format(&self) -> Result<Option<Format>, Failure> {
        match (self.format, self.cassandra_version) {
            (None, Some(_)) => Ok(Some(Format::Cassandra)),
            (Some(format), Some(_)) if format != Format::Cassandra => Err(Failure::new(format!(
                "--cassandra-version is for --format cassandra, not for {format}"
            ))),
            (format, _) => Ok(format),
        }
    }
}

pub(crate) fn parse_version(version: &str) -> Result<Layout, String> {
    Layout::of_version(version).map_err(|error| describe_version_error(&error))
}

/// The library's message about an unknown version is for those who can name a layout otherwise.
pub(crate) fn describe_version_error(error: &CassandraError) -> String {
    match error {
        CassandraError::Version { found } => {
            format!("version {found:?} is not known: give one from ic to oa, or da")
        }
        error => error.to_string(),
    }
}

/// Checks that each option that was given is one of the format: name, whether it was given, formats that have it.
pub(crate) fn check_options<F: Copy + PartialEq + Display>(
    format: F,
    options: &[(&str, bool, &[F])],
) -> Result<(), Failure> {
    for &(name, is_given, formats) in options {
        if is_given && !formats.contains(&format) {
            return Err(Failure::new(not_of_format(name, formats, &format)));
        }
    }
    Ok(())
}
