//! `blocked-bloom merge`: the union of stored filters.

use std::fs::{self, Metadata};
use std::mem;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blocked_bloom::MergeError;
use blocked_bloom_inspect::Format;
use blocked_bloom_inspect::numbers::percent;
use indicatif::ProgressBar;

use crate::failure::{Failure, warn};
use crate::file_format::FormatArgs;
use crate::keys;
use crate::numbers::counted;
use crate::output::{Output, STDIO};
use crate::stored::{Reading, Stored};
use crate::terminal::{printable, progress_bar};

/// Write the union of filters, which holds the keys of all of them
///
/// Filters can be merged if they have the same seed, blocks and probes: give build the same --keys,
/// size and --seed, with --keys large enough for the union. A filter that passes all can be merged
/// with any of its seed: the union passes all, too, and a warning says so.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stored filters, two or more; one may be - for standard input
    #[arg(required = true, num_args = 2.., value_name = "FILTER")]
    filters: Vec<PathBuf>,

    /// File to write, or - for standard output; replaced whole if it exists
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Write the union even if it replaces one of the filters
    #[arg(long)]
    overwrite: bool,

    /// Print neither the progress bar nor the line about the finished filter
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.filters.iter().filter(|path| *path == Path::new(STDIO)).count() > 1 {
        return Err(Failure::new("no more than one filter can come from standard input"));
    }
    let output = Output::new(&args.output)?;
    if !args.overwrite {
        let what = "one of the filters, which the union";
        args.filters.iter().try_for_each(|path| output.keep(path, what))?;
    }
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
    let filter = stored.open_native()?;
    let mut union = filter.to_filter().map_err(|error| Failure::for_file(&stored.name, error))?;
    let mut pass_all = filter.is_pass_all().then_some(first);
    for path in others {
        let stored = read(path)?;
        let filter = stored.open_native()?;
        let mut merged = union.union_with(&filter);
        if merged == Err(MergeError::PassAll) {
            pass_all = Some(path);
            // A pass-all filter takes the keys of any filter of its hash, and counts them.
            let all = filter.to_filter().map_err(|error| Failure::for_file(&stored.name, error))?;
            let others = mem::replace(&mut union, all);
            merged = union.union_with(&others);
        }
        let both = || format!("{} and {}", keys::name(first), stored.name);
        merged.map_err(|error| Failure::for_file(&both(), error))?;
    }
    bar.finish_and_clear();
    if let Some(path) = pass_all {
        let name = keys::name(path);
        warn(format!(
            "{name}: the filter passes all, and so does the union: the answer is \"maybe\" for \
             every key"
        ));
    }
    output.save(&|writer| union.write_to(writer).map(drop))?;
    // Keys that several filters hold were counted for each: the bits know better than the formula.
    let params = union.params();
    let keys = counted(params.expected_items(), "key");
    let (blocks, probes) = (counted(params.blocks(), "block"), counted(params.probes(), "probe"));
    let distinct = match union.estimated_keys() {
        Some(distinct) => format!("about {distinct} distinct"),
        None => "saturated".to_owned(),
    };
    let (bytes, rate) = (params.stored_bytes(), percent(union.estimated_false_positive_rate()));
    let summary = match params.is_pass_all() {
        true => params.to_string(),
        false => format!(
            "{keys}, {distinct} by the bits, {blocks}, {bytes} bytes stored, {probes}, {rate} \
             false positives by the bits"
        ),
    };
    output.report(summary, args.quiet);
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path, bar: &ProgressBar) -> Result<Stored, Failure> {
    let reading = Reading { bar: Some(bar), keys: None };
    let stored = Stored::read(path, &FormatArgs::default(), &reading)?;
    if stored.format == Format::NATIVE {
        return Ok(stored);
    }
    let problem =
        format!("a filter of format {}: only native filters can be merged", stored.format);
    Err(Failure::for_file(&stored.name, problem))
}
