//! `blocked-bloom build`: from a file of keys to a stored filter.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blocked_bloom::{BloomFilter, BloomFilterBuilder, KeyHash};

use crate::failure::{Failure, report};
use crate::keys::{Key, KeyFormat, KeyReader};
use crate::numbers::{SizingArgs, parse_keys};
use crate::output::{Output, STDIO};

/// Build a filter from a file of keys, one per line
///
/// A key is the bytes of its line without the line feed; the last line may lack it. An empty line
/// is a key of no bytes. The filter is sized for the keys that were read, equal neighbours counted
/// once, unless --keys gives their number.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// File of keys, or - for standard input
    keys: PathBuf,

    /// File to write, or - for standard output; replaced whole if it exists [default: KEYS.bloom]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    sizing: SizingArgs,

    /// Size for this many keys, whatever is read: filters of equal size can be merged, and no
    /// list of hashes is kept in memory. Suffixes K, M and G
    #[arg(long = "keys", value_name = "N", value_parser = parse_keys)]
    expected_items: Option<u64>,

    /// Bits set and tested per key, 1 to 30 [default: the best for the size]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=30))]
    probes: Option<u32>,

    /// Seed of the hash, 0 to 2^64 - 1; only filters of equal seed can be merged
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    format: KeyFormat,

    /// Print neither the progress bar nor the line about the finished filter
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let sizing = args.sizing.sizing();
    let output = output(args)?;
    // Ranges do not depend on the keys: refuse before reading them.
    let mut params = sizing.params(args.expected_items.unwrap_or(0)).map_err(Failure::new)?;
    if let Some(probes) = args.probes {
        params = params.with_probes(probes).map_err(Failure::new)?;
    }
    let key_hash = KeyHash::Xxh3 { seed: args.seed };
    let mut keys = KeyReader::open(&args.keys, args.format, !args.quiet)?;
    let mut key = Key::default();
    let filter = if args.expected_items.is_some() {
        let mut filter = BloomFilter::with_params(params, key_hash).map_err(Failure::new)?;
        while keys.read(&mut key)? {
            filter.insert(&key);
        }
        filter
    } else {
        let mut builder = BloomFilterBuilder::with_key_hash(sizing, key_hash);
        if let Some(probes) = args.probes {
            builder = builder.probes(probes);
        }
        while keys.read(&mut key)? {
            builder.insert(&key);
        }
        builder.finish().map_err(|error| Failure::of(keys.name(), error))?
    };
    keys.warn_of_carriage_returns();
    drop(keys);
    if let Some(expected) = args.expected_items
        && filter.view().keys_inserted() > expected
    {
        report(&format!(
            "{}: more than the {expected} keys of --keys were read: expect more false positives",
            args.keys.display()
        ));
    }
    output.save(&filter, args.quiet)?;
    Ok(ExitCode::SUCCESS)
}

fn output(args: &Args) -> Result<Output, Failure> {
    let path = match &args.output {
        Some(path) => path.clone(),
        None if args.keys == Path::new(STDIO) => {
            return Err(Failure::of(
                "standard input",
                "has no name to derive another from: give -o",
            ));
        }
        None => {
            let mut name = args.keys.clone().into_os_string();
            name.push(".bloom");
            name.into()
        }
    };
    let output = Output::new(&path)?;
    if let (Some(replaced), Ok(keys)) = (output.replaced(), fs::canonicalize(&args.keys))
        && replaced == keys
    {
        let message = "is the file of keys, which the filter would replace";
        return Err(Failure::of(&path.display().to_string(), message));
    }
    Ok(output)
}
