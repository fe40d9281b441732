//! `blocked-bloom query`: which keys may be present, or are certainly absent.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use blocked_bloom::{Bitmask, KeyHash};

use crate::failure::{Failure, report};
use crate::keys::{Key, KeyFormat, KeyReader};
use crate::output::{STDIO, print};
use crate::stored;

const BATCH: usize = 4096;

/// Print the keys that may be present in a filter
///
/// Keys are printed as they were read, in their order, ended as those read. A few that may be
/// present are not: info tells the rate. What is certainly absent is absent.
///
/// Exit status: 0 if a key was selected, 1 if none was, 2 after an error.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stored filter
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
    format: KeyFormat,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let filter = stored::open(&args.filter)?;
    let filter = filter.view();
    if let hash @ KeyHash::Caller { .. } = filter.key_hash() {
        let name = args.filter.display();
        report(&format!("{name}: a filter of {hash} answers \"maybe\" for every key"));
    }
    let mut reader = KeyReader::open(&args.keys, args.format, false)?;
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut batch: Vec<Key> = Vec::new();
    batch.resize_with(BATCH, Key::default);
    let mut hits = Bitmask::new();
    let mut selected = 0_u64;
    loop {
        let len = fill(&mut reader, &mut batch)?;
        if len == 0 {
            break;
        }
        let keys = &batch[..len];
        filter.contains_batch(keys, &mut hits);
        if args.count {
            let count = if args.absent { hits.count_misses() } else { hits.count_hits() };
            selected += count as u64;
            continue;
        }
        let written = if args.absent {
            write(keys, hits.misses(), args.format, &mut out, &mut selected)
        } else {
            write(keys, hits.hits(), args.format, &mut out, &mut selected)
        };
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

fn write(
    keys: &[Key],
    indices: impl Iterator<Item = usize>,
    format: KeyFormat,
    out: &mut impl Write,
    selected: &mut u64,
) -> io::Result<()> {
    for index in indices {
        *selected += 1;
        out.write_all(keys[index].text())?;
        out.write_all(&[format.terminator()])?;
    }
    Ok(())
}
