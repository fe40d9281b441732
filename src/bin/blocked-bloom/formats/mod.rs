//! The formats of filters that the tool reads and writes, and how a file's format is told.
//!
//! This file owns the order of the rules below. It refuses to guess: each rule is a mark that files of other formats do not have, since
//! a filter that is read in the wrong format answers "absent" for keys that are there.
//!
//! 1. The first bytes are the magic number of this crate's format: `native`.
//! 2. The first bytes are `PAR1` or `PARE`: `parquet`.
//! 3. The file's name ends in `Filter.db`, and its first bytes may be a count of probes: `cassandra`, of which no byte tells more.
//! 4. The first bytes are a whole header of a Parquet filter: `parquet-filter`.
//! 5. The last bytes are the magic number of an SST file: `rocksdb-sst`.
//! 6. The last bytes are `ff 00 k 00 00` with `k` from 1 to 30, after a multiple of 64 bytes: `rocksdb-block`. Other filter blocks
//!    of RocksDB have no mark. A file whose name ends in `.sst`, `.parquet` or `.db` is none: an SST file that is cut off behind its
//!    filter ends in the same bytes.

pub(crate) mod cassandra;
pub(crate) mod native;
pub(crate) mod parquet;
pub(crate) mod rocksdb;
pub(crate) mod value;

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::process::ExitCode;

use blocked_bloom::Bitmask;
use blocked_bloom::interop::cassandra::Layout;
use clap::ValueEnum;

use crate::build::Args;
use crate::facts::Facts;
use crate::failure::Failure;
use crate::keys::Key;
use crate::output::Output;
use crate::query::Question;
use crate::stored::Stored;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// This tool's own
    Native,
    /// A filter block of RocksDB, without the SST file around it
    RocksdbBlock,
    /// An SST file of RocksDB, with the filter in it
    RocksdbSst,
    /// A Bloom filter of Parquet: header and bitset, without the file around it
    ParquetFilter,
    /// A Parquet file, with the filters in it
    Parquet,
    /// A Cassandra Filter.db
    Cassandra,
}

/// The name that `--format` takes.
impl Display for Format {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.to_possible_value() {
            Some(value) => f.pad(value.get_name()),
            None => Ok(()),
        }
    }
}

/// How a filter is read or written.
#[derive(clap::Args, Clone, Copy, Default)]
pub(crate) struct FormatArgs {
    /// Format of the filter [default: native for build, else what its bytes or its name tell]
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Version of Cassandra's format, such as nb or da, if the name of Filter.db does not tell or
    /// tells wrongly; implies --format cassandra
    #[arg(long, value_name = "VERSION", value_parser = cassandra::parse_version)]
    pub(crate) cassandra_version: Option<Layout>,
}

impl FormatArgs {
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

/// What a file's format is told from.
pub(crate) struct Evidence<'a> {
    pub(crate) path: &'a Path,
    /// The first 64 bytes, or all if there are fewer.
    pub(crate) head: &'a [u8],
    /// The last bytes and the length. None for what can only be read from its start.
    pub(crate) end: Option<(&'a [u8], u64)>,
}

impl Evidence<'_> {
    pub(crate) fn format(&self) -> Option<Format> {
        if native::is_one(self.head) {
            return Some(Format::Native);
        }
        if parquet::is_file(self.head) {
            return Some(Format::Parquet);
        }
        if cassandra::is_name(self.path) && cassandra::is_head(self.head) {
            return Some(Format::Cassandra);
        }
        if parquet::is_filter(self.head) {
            return Some(Format::ParquetFilter);
        }
        let (tail, length) = self.end?;
        if rocksdb::is_sst(tail) {
            return Some(Format::RocksdbSst);
        }
        let may_be_block = self.whole_file().is_none() && rocksdb::is_block(tail, length);
        may_be_block.then_some(Format::RocksdbBlock)
    }

    /// The ending of the name, if it is that of files with more in them than a filter, or of Cassandra.
    fn whole_file(&self) -> Option<&'static str> {
        let ending = self.path.extension()?;
        ["sst", "parquet", "db"].into_iter().find(|whole| ending.eq_ignore_ascii_case(whole))
    }

    /// What was tried, and what to do.
    pub(crate) fn unknown(&self) -> Failure {
        let file = self.path.display().to_string();
        let container = match self.head {
            [0x89, b'B', b'B', b'P', b'A', b'R', b'T', b'\n', ..] => {
                Some("the index of a partitioned filter")
            }
            [0x89, b'B', b'B', b'G', b'R', b'O', b'W', b'\n', ..] => Some("a growing filter"),
            _ => None,
        };
        if let Some(container) = container {
            let message =
                format!("this is {container}, which only the library reads: see docs/format.md");
            return Failure::of(&file, message);
        }
        let (tried, advice) = match (self.end, self.whole_file()) {
            (Some((_, 0)), _) => ("it is empty", "give --format if it is one"),
            (Some(_), Some("parquet")) => (
                "its name ends in .parquet, but its first bytes are not PAR1: it is truncated, compressed or of another kind",
                "fetch it again; a bare filter needs --format parquet-filter",
            ),
            (Some(_), Some("sst")) => (
                "its name ends in .sst, but its last bytes are no magic number of RocksDB: it is truncated, compressed or of an \
                 unknown version",
                "fetch it again; a filter block by itself needs --format rocksdb-block",
            ),
            (Some(_), Some(_)) => (
                "its name ends in .db, but its first bytes are no count of probes and its last bytes no magic number of RocksDB: it is \
                 truncated, compressed or of an unknown version",
                "fetch it again, or give --format",
            ),
            (Some(_), None) => (
                "native and parquet begin with a magic number, parquet-filter with its header; rocksdb-sst ends with a magic number, \
                 rocksdb-block with ff 00 k 00 00 after a multiple of 64 bytes; cassandra is named as in nb-1-big-Filter.db",
                "is it the file of keys? The filter comes first. Else give --format: rocksdb-block for blocks of LegacyBloom and \
                 Ribbon, which nothing marks",
            ),
            (None, _) => (
                "native and parquet begin with a magic number, parquet-filter with its header; of a pipe or a device the end is not known",
                "give --format, such as rocksdb-sst",
            ),
        };
        Failure::of(&file, format!("this is no filter whose format shows: {tried} ({advice})"))
    }
}

/// Whether each key may be present, or which key is none and why.
pub(crate) type Ask<'a> = Box<dyn FnMut(&[Key]) -> Result<Vec<bool>, (usize, String)> + 'a>;

pub(crate) fn ask<'a>(stored: &'a Stored, question: &'a Question) -> Result<Ask<'a>, Failure> {
    question.check(stored.format)?;
    match stored.format {
        Format::Native => native::ask(stored, question),
        Format::RocksdbBlock => rocksdb::ask_block(stored),
        Format::RocksdbSst => rocksdb::ask_sst(stored, question),
        Format::ParquetFilter => parquet::ask_filter(stored, question),
        Format::Parquet => parquet::ask_file(stored, question),
        Format::Cassandra => cassandra::ask(stored, question),
    }
}

/// Answers of a filter that takes batches.
fn in_batches<'a>(mut contains_batch: impl FnMut(&[Key], &mut Bitmask) + 'a) -> Ask<'a> {
    let mut hits = Bitmask::new();
    Box::new(move |keys| {
        contains_batch(keys, &mut hits);
        Ok(bools(&hits))
    })
}

/// Answers of a filter that is asked key by key.
fn one_by_one<'a>(contains: impl Fn(&[u8]) -> bool + 'a) -> Ask<'a> {
    Box::new(move |keys| Ok(keys.iter().map(|key| contains(key.as_ref())).collect()))
}

fn bools(hits: &Bitmask) -> Vec<bool> {
    (0..hits.len()).map(|i| hits.get(i) == Some(true)).collect()
}

/// What is to be said of a filter, and what is wrong with it if it can be described all the same.
pub(crate) fn describe(stored: &Stored) -> Result<(Facts, Option<Failure>), Failure> {
    let sound = |facts| Ok((facts, None));
    match stored.format {
        Format::Native => native::describe(stored),
        Format::RocksdbBlock => sound(rocksdb::describe_block(stored)?),
        Format::RocksdbSst => sound(rocksdb::describe_sst(stored)?),
        Format::ParquetFilter => sound(parquet::describe_filter(stored)?),
        Format::Parquet => parquet::describe_file(stored),
        Format::Cassandra => sound(cassandra::describe(stored)?),
    }
}

/// Builds a filter of another format than this crate's.
pub(crate) fn build(format: Format, args: &Args, output: &Output) -> Result<ExitCode, Failure> {
    let built = match format {
        Format::RocksdbBlock => rocksdb::build(args)?,
        Format::ParquetFilter => parquet::build(args)?,
        Format::Cassandra => cassandra::build(args)?,
        Format::Native | Format::RocksdbSst | Format::Parquet => {
            return Err(Failure::new(format!("{format} is not built here")));
        }
    };
    let summary = format!("{format}, {}", built.summary);
    let summary = (!args.quiet).then_some(summary.as_str());
    output.save(&|writer| writer.write_all(&built.bytes), summary)?;
    Ok(ExitCode::SUCCESS)
}

/// A filter to be written.
pub(crate) struct Built {
    bytes: Vec<u8>,
    /// Keys and geometry.
    summary: String,
}

impl Built {
    /// `missing` of the keys are "absent" in the filter.
    fn verified(self, name: &str, missing: usize) -> Result<Self, Failure> {
        match missing {
            0 => Ok(self),
            _ => Err(Failure::of(
                name,
                format!(
                    "the filter says \"absent\" of {missing} keys that are in it: the memory may be bad"
                ),
            )),
        }
    }
}

/// Refuses options, given or not, that are for other formats.
pub(crate) fn refuse(format: Format, options: &[(&str, bool, &[Format])]) -> Result<(), Failure> {
    for &(name, is_given, formats) in options {
        if is_given && !formats.contains(&format) {
            let formats: Vec<String> = formats.iter().map(Format::to_string).collect();
            let formats = formats.join(" and ");
            return Err(Failure::new(format!("{name} is for {formats}, not for {format}")));
        }
    }
    Ok(())
}
