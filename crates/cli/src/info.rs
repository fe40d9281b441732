//! `blocked-bloom info`: everything that is known of a stored filter.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::failure::Failure;
use crate::file_format::FormatArgs;
use crate::formats;
use crate::output::print;
use crate::stored::Stored;

/// Describe a filter: geometry, keys, false-positive rates, checksums
///
/// Filters of RocksDB, Parquet and Cassandra are described, too, alone or in their files, which are read into memory whole. If the
/// blocks of a native filter or some filters of a Parquet file are damaged, the rest is described, and the exit status is 2. Other
/// damage is an error without a description.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stored filter, or file that holds filters
    filter: PathBuf,

    #[command(flatten)]
    format: FormatArgs,

    /// Print one JSON object instead; what is not known is null
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let stored = Stored::read(&args.filter, &args.format)?;
    let (facts, failure) = formats::describe(&stored)?;
    print(&if args.json { format!("{:#}\n", facts.json) } else { facts.table() })?;
    Ok(match failure {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            failure.report();
            ExitCode::from(2)
        }
    })
}
