//! `blocked-bloom merge`: the union of stored filters.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blocked_bloom::MergeError;

use crate::failure::Failure;
use crate::file_format::{Format, FormatArgs};
use crate::formats::native;
use crate::output::Output;
use crate::stored::Stored;
use crate::threads;

/// Write the union of filters, which holds the keys of all of them
///
/// Filters can be merged if they have the same seed, blocks and probes: give build the same --keys,
/// size and --seed, with --keys large enough for the union. An empty filter can be merged with any.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stored filters, two or more
    #[arg(required = true, num_args = 2.., value_name = "FILTER")]
    filters: Vec<PathBuf>,

    /// File to write, or - for standard output; replaced whole if it exists
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Do not print the line about the finished filter
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let output = Output::new(&args.output)?;
    let [first, others @ ..] = args.filters.as_slice() else {
        return Err(Failure::new("give two filters or more"));
    };
    let stored = read(first)?;
    let union = native::open(&stored)?.to_filter();
    let mut union = union.map_err(|error| Failure::of(&stored.name, error))?;
    let pool = threads::pool(None)?;
    // The file whose shape the union has: not that of an empty filter.
    let mut shape = first;
    for path in others {
        let stored = read(path)?;
        let filter = native::open(&stored)?;
        let was_empty = union.view().is_empty();
        pool.install(|| union.par_union_with(filter)).map_err(|error| {
            let name = path.display();
            match error {
                MergeError::Alloc(error) => Failure::of(&name.to_string(), error),
                error => Failure::of(&format!("{} and {name}", shape.display()), error),
            }
        })?;
        if was_empty {
            shape = path;
        }
    }
    output.save_filter(&union, args.quiet)?;
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Stored, Failure> {
    let stored = Stored::read(path, &FormatArgs::default())?;
    match stored.format {
        Format::Native => Ok(stored),
        format => Err(Failure::of(
            &stored.name,
            format!("a filter of format {format}: only native filters can be merged"),
        )),
    }
}
