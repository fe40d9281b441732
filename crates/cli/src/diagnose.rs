//! `blocked-bloom diagnose`: the layout of a Cassandra filter whose name is wrong.

use std::path::PathBuf;
use std::process::ExitCode;

use blocked_bloom_formats::cassandra::{Layout, diagnose};
use blocked_bloom_inspect::{Format, version_of};

use crate::failure::{Failure, inform};
use crate::file_format::FormatArgs;
use crate::keys::{Key, KeyFormat, KeyReader, check_streams};
use crate::output::print;
use crate::stored::{Reading, Stored};

/// Find the layout of a Cassandra Filter.db from keys that are known to be in its table
///
/// Nothing in such a file says how it is to be read, only the version in its name. Read in a wrong
/// layout it answers "absent" for nearly every key that it holds. Each key is looked up once in
/// each layout; a handful of keys decides. Prints how many of them each layout finds, with the
/// --cassandra-version that query and info take for it. Keys are partition keys as for query.
///
/// Exit status: 0 if one layout finds every key, 1 if none does or several do, 2 after an error.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Cassandra's Filter.db, or - for standard input
    filter: PathBuf,

    /// File of keys that are in the table, one per line, or - for standard input if the filter is a
    /// file
    #[arg(default_value = crate::output::STDIO)]
    keys: PathBuf,

    #[command(flatten)]
    key_format: KeyFormat,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    check_streams("diagnose", &args.filter, &args.keys)?;
    let format = FormatArgs::from_format(Format::CASSANDRA);
    let stored = Stored::read(&args.filter, &format, &Reading::default())?;
    let mut reader = KeyReader::open(&args.keys, args.key_format, false)?;
    let mut keys = Vec::new();
    let mut key = Key::default();
    while reader.read(&mut key)? {
        keys.push(key.as_ref().to_vec());
    }
    reader.warn_of_doubtful_keys();
    let diagnosis = diagnose(&stored.bytes, &keys).map_err(|error| stored.damaged(error))?;
    for layout in Layout::ALL {
        let (found, keys, version) =
            (diagnosis.found(layout), diagnosis.keys(), version_of(layout));
        print(&format!("{found} of {keys} keys  --cassandra-version {version}  {layout}\n"))?;
    }
    if diagnosis.layout().is_some() {
        return Ok(ExitCode::SUCCESS);
    }
    inform(match diagnosis.keys() {
        0 => "no keys were given",
        _ if Layout::ALL.iter().any(|&layout| diagnosis.found(layout) == diagnosis.keys()) => {
            "several layouts find every key: give more keys"
        }
        _ => "no layout finds every key: some are not of this table, or the file is damaged",
    });
    Ok(ExitCode::FAILURE)
}
