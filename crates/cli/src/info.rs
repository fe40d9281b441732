//! `blocked-bloom info`: everything that is known of a stored filter.

use std::io::stdout;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::facts;
use crate::failure::Failure;
use crate::file_format::FormatArgs;
use crate::output::print;
use crate::stored::{Reading, Stored};
use crate::terminal::{RED, styled};
use crate::wording;

/// Describe a filter: geometry, keys, false-positive rates, checksums
///
/// Filters of RocksDB, Parquet, Cassandra, Guava, Spark and RedisBloom are described, too, alone or
/// in their files, and bit planes and indexes of files. If the blocks of a native filter or some
/// filters of a Parquet file are damaged, the rest is described, and the exit status is 2. Other
/// damage is an error without a description.
///
/// With --partitions the index of a partitioned filter is described with its partitions, all of
/// which are verified.
///
/// Files of 16 MiB and more are mapped, not read into memory: if another program truncates the file
/// meanwhile, the system ends the tool (SIGBUS).
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stored filter, or file that holds filters, or - for standard input
    filter: PathBuf,

    #[command(flatten)]
    format: FormatArgs,

    /// Print one JSON object instead; unknown values are null
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    print_facts(&args.filter, &args.format, args.json)
}

/// Describes a filter on standard output.
pub(crate) fn print_facts(
    filter: &Path,
    format: &FormatArgs,
    json: bool,
) -> Result<ExitCode, Failure> {
    let stored = Stored::read(filter, format, &Reading::default())?;
    let facts = stored.open()?.describe();
    let text = match json {
        true => format!("{:#}\n", facts::json(facts.json())),
        false => facts::table(&facts, |damage| styled(damage, RED, &stdout())),
    };
    print(&text)?;
    let failure = facts.damage.map(|damage| wording::error(&stored.name, &damage));
    failure.map_or(Ok(ExitCode::SUCCESS), Err)
}
