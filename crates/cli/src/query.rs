//! `blocked-bloom query`: which keys may be present, or are certainly absent.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::failure::Failure;
use crate::file_format::FormatArgs;
use crate::formats;
use crate::formats::lookup::LookupArgs;
use crate::keys::{Key, KeyReader};
use crate::output::{STDIO, print};
use crate::stored::Stored;

/// Keys that are looked up at a time.
const BATCH: usize = 4096;

/// Print the keys that may be present in a filter
///
/// Keys are printed as they were read, in the same order, with the same terminator. A few that may be
/// present are not: info prints the rate. What is certainly absent is absent.
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

    /// File of keys to look up, one per line, or - for standard input
    #[arg(default_value = STDIO)]
    keys: PathBuf,

    /// Select the keys that are certainly absent instead
    #[arg(long)]
    absent: bool,

    /// Print only the number of selected keys
    #[arg(long)]
    count: bool,

    #[command(flatten)]
    lookup: LookupArgs,

    #[command(flatten)]
    format: FormatArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let stored = Stored::read(&args.filter, &args.format)?;
    let mut lookup = formats::lookup(&stored, &args.lookup)?;
    let key_format = args.lookup.key_format;
    let mut reader = KeyReader::open(&args.keys, key_format, false)?;
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
        let hits = lookup(keys).map_err(|(at, problem)| reader.bad_key(len - 1 - at, &problem))?;
        let mut indices = (0..len).filter(|&i| hits[i] != args.absent);
        if args.count {
            selected += indices.count() as u64;
            continue;
        }
        let written = indices.try_for_each(|i| {
            selected += 1;
            out.write_all(keys[i].text())?;
            out.write_all(&[key_format.terminator()])
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
