//! `blocked-bloom query`: which keys may be present, or are certainly absent.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use blocked_bloom::{Bitmask, BloomFilterRef, KeyHash, PrefixExtractor};

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

    /// The lines are what keys start with: select those that some key may start with. The filter must have been
    /// built with the same --prefix
    #[arg(long, value_name = "RULE")]
    prefix: Option<PrefixExtractor>,

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
    warn_of_what_was_not_added(args, filter);
    let mut reader = KeyReader::open(&args.keys, args.format, false)?;
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut batch: Vec<Key> = Vec::new();
    batch.resize_with(BATCH, Key::default);
    let (mut hits, mut indices) = (Bitmask::new(), Vec::new());
    let mut selected = 0_u64;
    loop {
        let len = fill(&mut reader, &mut batch)?;
        if len == 0 {
            break;
        }
        let keys = &batch[..len];
        indices.clear();
        match &args.prefix {
            Some(rule) => {
                let is_hit = |key: &Key| filter.contains_prefix(rule, key);
                indices.extend((0..len).filter(|&i| is_hit(&keys[i]) != args.absent));
            }
            None => {
                filter.contains_batch(keys, &mut hits);
                match args.absent {
                    true => indices.extend(hits.misses()),
                    false => indices.extend(hits.hits()),
                }
            }
        }
        selected += indices.len() as u64;
        if args.count {
            continue;
        }
        let written = write(keys, &indices, args.format, &mut out);
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

/// Every answer would be "maybe".
fn warn_of_what_was_not_added(args: &Args, filter: BloomFilterRef<'_>) {
    let added = filter.added();
    if filter.is_pass_all() {
        return;
    }
    let asked = match &args.prefix {
        None if added.whole_keys() => return,
        None => "keys".to_owned(),
        Some(rule) if added.extractor() == Some(rule.id()) => return,
        Some(rule) => format!("prefixes by {rule} (extractor {:016x})", rule.id()),
    };
    let name = args.filter.display();
    report(&format!(
        "{name}: the filter has {added}; asked about {asked} it answers \"maybe\" to all"
    ));
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
    indices: &[usize],
    format: KeyFormat,
    out: &mut impl Write,
) -> io::Result<()> {
    for &index in indices {
        out.write_all(keys[index].text())?;
        out.write_all(&[format.terminator()])?;
    }
    Ok(())
}
