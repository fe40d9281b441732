//! `blocked-bloom merge`: the union of stored filters.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blocked_bloom::MergeError;
use indicatif::ProgressBar;

use crate::failure::Failure;
use crate::file_format::{Format, FormatArgs};
use crate::formats::native;
use crate::keys;
use crate::output::{Output, STDIO};
use crate::stored::{Reading, Stored};
use crate::terminal::{printable, progress_bar};
use crate::threads;

/// Write the union of filters, which holds the keys of all of them
///
/// Filters can be merged if they have the same seed, blocks and probes: give build the same --keys,
/// size and --seed, with --keys large enough for the union. An empty filter can be merged with any.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stored filters, two or more; one may be - for standard input
    #[arg(required = true, num_args = 2.., value_name = "FILTER")]
    filters: Vec<PathBuf>,

    /// File to write, or - for standard output; replaced whole if it exists
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Print neither the progress bar nor the line about the finished filter
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.filters.iter().filter(|path| *path == Path::new(STDIO)).count() > 1 {
        return Err(Failure::new("no more than one filter can come from standard input"));
    }
    let output = Output::new(&args.output)?;
    let lengths = args.filters.iter().filter_map(|path| fs::metadata(path).ok());
    let bytes = lengths.filter(Metadata::is_file).map(|file| file.len()).sum();
    let bar = progress_bar("merging", bytes, !args.quiet);
    let read = |path: &Path| {
        bar.set_message(printable(&keys::name(path)));
        read(path, &bar)
    };
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
            let name = keys::name(path);
            match error {
                MergeError::Alloc(error) => Failure::of(&name, error),
                error => Failure::of(&format!("{} and {name}", keys::name(shape)), error),
            }
        })?;
        if was_empty {
            shape = path;
        }
    }
    bar.finish_and_clear();
    output.save_filter(&union, args.quiet)?;
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path, bar: &ProgressBar) -> Result<Stored, Failure> {
    let reading = Reading { bar: Some(bar), keys: None };
    let stored = Stored::read(path, &FormatArgs::default(), &reading)?;
    match stored.format {
        Format::Native => Ok(stored),
        format => Err(Failure::of(
            &stored.name,
            format!("a filter of format {format}: only native filters can be merged"),
        )),
    }
}
