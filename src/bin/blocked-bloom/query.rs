//! `blocked-bloom query`: which keys may be present, or are certainly absent.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use blocked_bloom::PrefixExtractor;
use blocked_bloom::interop::parquet::PhysicalType;

use crate::failure::Failure;
use crate::formats::value::parse_type;
use crate::formats::{self, Format, FormatArgs};
use crate::keys::{Key, KeyFormat, KeyReader};
use crate::output::{STDIO, print};
use crate::stored::Stored;

const BATCH: usize = 4096;

/// Print the keys that may be present in a filter
///
/// Keys are printed as they were read, in their order, ended as those read. A few that may be
/// present are not: info tells the rate. What is certainly absent is absent.
///
/// The filter may be one of RocksDB, Parquet or Cassandra, alone or in its file, which is read into memory whole. Cassandra's
/// keys are partition keys as the table stores them: text as it is; int, uuid and composite ones by --hex of their serialized bytes,
/// an int as 4 bytes big-endian (42 is 0000002a), since their text is absent whatever the table holds.
///
/// Exit status: 0 if a key was selected, 1 if none was, 2 after an error.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stored filter, or file that holds filters
    filter: PathBuf,

    /// File of keys to ask about, one per line, or - for standard input
    #[arg(default_value = STDIO)]
    keys: PathBuf,

    /// Select the keys that are certainly absent instead
    #[arg(long)]
    absent: bool,

    /// Print only the number of selected keys
    #[arg(long)]
    count: bool,

    #[command(flatten)]
    question: Question,

    #[command(flatten)]
    format: FormatArgs,
}

/// What is asked of a filter, beside the keys.
#[derive(clap::Args)]
pub(crate) struct Question {
    /// The lines are what keys start with: select those that some key may start with. RULE is what build
    /// had, or for an SST file own, or the same in these words: fixed:BYTES or capped:BYTES
    #[arg(long, value_name = "RULE", value_parser = Prefix::parse)]
    pub(crate) prefix: Option<Prefix>,

    /// Column of a Parquet file, its path joined by dots. Lines are values of the column's physical type: decimal numbers (of
    /// a date or a timestamp the number that is stored), or the bytes of byte arrays, of fixed ones as many as the schema says; with --hex the plain-encoded bytes. Without
    /// --hex zeros of both signs are asked about
    #[arg(long, value_name = "PATH")]
    pub(crate) column: Option<String>,

    /// Row group of a Parquet file, from 0; may be repeated: a value is selected if any of them may have it [default: all]
    #[arg(long = "row-group", value_name = "N")]
    pub(crate) row_groups: Vec<usize>,

    /// Physical type of the values of a Parquet filter by itself, which does not say it: int32, int64, int96 (with --hex), float,
    /// double, byte-array or fixed-len-byte-array. Values of another type than its column's are absent, whatever it holds
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_type)]
    pub(crate) value_type: Option<PhysicalType>,

    #[command(flatten)]
    pub(crate) key_format: KeyFormat,
}

impl Question {
    /// Refuses what cannot be asked of a format.
    pub(crate) fn check(&self, format: Format) -> Result<(), Failure> {
        use Format::{Native, Parquet, ParquetFilter, RocksdbSst};
        formats::refuse(
            format,
            &[
                ("--prefix", self.prefix.is_some(), &[Native, RocksdbSst]),
                ("--column", self.column.is_some(), &[Parquet]),
                ("--row-group", !self.row_groups.is_empty(), &[Parquet]),
                ("--type", self.value_type.is_some(), &[Parquet, ParquetFilter]),
            ],
        )
    }
}

/// How the prefixes were made that are asked about.
#[derive(Clone)]
pub(crate) enum Prefix {
    /// By the extractor that the file names.
    Own,
    Rule(PrefixExtractor),
}

impl Prefix {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "own" => Ok(Prefix::Own),
            rule => rule.parse().map(Prefix::Rule).map_err(|error| format!("{error}, or own")),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let stored = Stored::read(&args.filter, &args.format)?;
    let mut ask = formats::ask(&stored, &args.question)?;
    let mut reader = KeyReader::open(&args.keys, args.question.key_format, false)?;
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut batch: Vec<Key> = Vec::new();
    batch.resize_with(BATCH, Key::default);
    let mut selected = 0_u64;
    loop {
        let len = fill(&mut reader, &mut batch)?;
        if len == 0 {
            break;
        }
        let keys = &batch[..len];
        let hits = ask(keys).map_err(|(at, problem)| reader.bad_key(len - 1 - at, &problem))?;
        let mut indices = (0..len).filter(|&i| hits[i] != args.absent);
        if args.count {
            selected += indices.count() as u64;
            continue;
        }
        let written = indices.try_for_each(|i| {
            selected += 1;
            out.write_all(keys[i].text())?;
            out.write_all(&[args.question.key_format.terminator()])
        });
        // Whoever types the keys, or makes them one by one, should see the answers.
        let written = match written {
            Ok(()) if reader.is_drained() => out.flush(),
            written => written,
        };
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
            Err(error) => return Err(Failure::io("standard output", "write", &error)),
        }
    }
    reader.warn_of_carriage_returns();
    drop(out);
    if args.count {
        print(&format!("{selected}\n"))?;
    }
    Ok(ExitCode::from(u8::from(selected == 0)))
}

/// Reads keys until the batch is full or the next one would have to be waited for.
fn fill(reader: &mut KeyReader, batch: &mut [Key]) -> Result<usize, Failure> {
    for (len, key) in batch.iter_mut().enumerate() {
        if (len > 0 && reader.is_drained()) || !reader.read(key)? {
            return Ok(len);
        }
    }
    Ok(batch.len())
}
