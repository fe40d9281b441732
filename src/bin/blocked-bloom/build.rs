//! `blocked-bloom build`: from a file of keys to a stored filter.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blocked_bloom::interop::parquet::PhysicalType;
use blocked_bloom::{
    Bitmask, BloomFilter, BloomFilterBuilder, BuildError, KeyHash, Params, ParamsError,
    PrefixExtractor,
};
use indicatif::BinaryBytes;
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

use crate::failure::{Failure, report};
use crate::formats::value::parse_type;
use crate::formats::{self, Format, FormatArgs};
use crate::keys::{Key, KeyBatch, KeyFormat, KeyReader};
use crate::numbers::{SizingArgs, parse_bytes, parse_keys};
use crate::output::{Output, STDIO};

/// Build a filter from a file of keys, one per line
///
/// A key is the bytes of its line without the line feed; the last line may lack it. An empty line
/// is a key of no bytes. The filter is sized for the keys that were read, equal neighbours counted
/// once, unless --keys gives their number. Until then each takes 8 bytes of memory; a file with more
/// keys than --max-memory has room for is read twice, first to count them.
///
/// --format builds filters that other systems load: rocksdb-block (by --bits-per-key; bytes for an SST file, without their
/// checksum), parquet-filter (by --fpr, 1% unless given; header and bitset of a column in a row group) and cassandra (by --fpr, the table's bloom_filter_fp_chance, 1% unless given; -o names the file as Cassandra does,
/// such as nb-1-big-Filter.db; keys are the serialized bytes
/// of partition keys, as for query). Options that a format has no room for are refused.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// File of keys, or - for standard input
    keys: PathBuf,

    /// File to write, or - for standard output; replaced whole if it exists [default: KEYS.bloom,
    /// KEYS.filter for rocksdb-block, KEYS.sbbf for parquet-filter]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) sizing: SizingArgs,

    /// Size for this many keys, whatever is read: filters of equal size can be merged, and no
    /// list of hashes is kept in memory. Suffixes K, M and G
    #[arg(long = "keys", value_name = "N", value_parser = parse_keys)]
    pub(crate) expected_items: Option<u64>,

    /// Bits set and tested per key, 1 to 30 [default: the best for the size]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=30))]
    probes: Option<u32>,

    /// Seed of the hash, 0 to 2^64 - 1; only filters of equal seed can be merged [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Add the prefixes of keys, too, for queries with the same --prefix: fixed:BYTES, capped:BYTES, or
    /// delimiter:HEX:COUNT (delimiter:2f:1 is up to the first "/")
    #[arg(long, value_name = "RULE", conflicts_with = "expected_items")]
    prefix: Option<PrefixExtractor>,

    /// Add the prefixes alone
    #[arg(long, requires = "prefix")]
    only_prefixes: bool,

    /// Threads that hash keys and fill large filters; the filter does not depend on it [default: all
    /// cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,

    /// Ask the filter about every key that was inserted before it is written
    #[arg(long)]
    pub(crate) verify: bool,

    /// Most memory for the list of keys, beside the buffers for reading; suffixes K, M, G, KiB, MiB and GiB
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = parse_bytes)]
    max_memory: u64,

    #[command(flatten)]
    pub(crate) key_format: KeyFormat,

    #[command(flatten)]
    pub(crate) format: FormatArgs,

    /// Type of the values of a parquet-filter: int32, int64, int96 (with --hex), float, double, byte-array or
    /// fixed-len-byte-array; a value of another type than its column's is never found [default: byte-array]
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_type)]
    pub(crate) value_type: Option<PhysicalType>,

    /// Print neither the progress bar nor the line about the finished filter
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// What reading and inserting take beside the list of hashes and the filter: a batch of keys with references to them, their hashes,
/// and what each thread reorders.
fn working_memory() -> u64 {
    KeyBatch::MEMORY + (16 << 20) + (rayon::current_num_threads() as u64) * (4 << 20)
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let format = args.format.format()?.unwrap_or(Format::Native);
    args.check(format)?;
    let output = output(args, format)?;
    match format {
        Format::Native => native(args, &output),
        _ => formats::build(format, args, &output),
    }
}

fn native(args: &Args, output: &Output) -> Result<ExitCode, Failure> {
    // Ranges do not depend on the keys: refuse before reading them.
    args.params(args.expected_items.unwrap_or(0)).map_err(Failure::new)?;
    let threads = usize::from(args.threads.unwrap_or(0));
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().map_err(Failure::new)?;
    let (filter, list) = pool.install(|| match args.expected_items {
        Some(keys) => Ok((with_known_count(args, keys)?, 0)),
        None => with_unknown_count(args),
    })?;
    let working = pool.install(working_memory);
    warn_of_more_than_expected(args, filter.view().keys_inserted());
    output.save_filter(&filter, args.quiet)?;
    if !args.quiet {
        let (list, working) = (BinaryBytes(list), BinaryBytes(working));
        report(&format!(
            "memory beside the filter: {list} for the list of keys, up to {working} for reading and inserting"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Says so if more keys were read than the filter was sized for.
pub(crate) fn warn_of_more_than_expected(args: &Args, keys: u64) {
    if let Some(expected) = args.expected_items
        && keys > expected
    {
        report(&format!(
            "{}: more than the {expected} keys of --keys were read: expect more false positives",
            args.keys.display()
        ));
    }
}

impl Args {
    /// Refuses what a format has no room for.
    fn check(&self, format: Format) -> Result<(), Failure> {
        use Format::{Cassandra, Native, ParquetFilter, RocksdbBlock};
        let part = match format {
            Format::RocksdbSst => Some(RocksdbBlock),
            Format::Parquet => Some(ParquetFilter),
            _ => None,
        };
        if let Some(part) = part {
            return Err(Failure::new(format!(
                "{format} is only read: --format {part} builds the filter for such a file"
            )));
        }
        if let Some(path) = &self.output
            && formats::cassandra::is_name(path)
            && format != Cassandra
        {
            let message = format!(
                "Cassandra reads its own filters under such a name, not {format}: give --format cassandra, or another name"
            );
            return Err(Failure::of(&path.display().to_string(), message));
        }
        let sizing = &self.sizing;
        formats::refuse(
            format,
            &[
                ("--bits-per-key", sizing.bits_per_key.is_some(), &[Native, RocksdbBlock]),
                ("--fpr", sizing.fpr.is_some(), &[Native, ParquetFilter, Cassandra]),
                ("--max-bytes", sizing.max_bytes.is_some(), &[Native]),
                ("--keys", self.expected_items.is_some(), &[Native, ParquetFilter, Cassandra]),
                ("--probes", self.probes.is_some(), &[Native]),
                ("--seed", self.seed.is_some(), &[Native]),
                ("--prefix", self.prefix.is_some(), &[Native]),
                ("--type", self.value_type.is_some(), &[ParquetFilter]),
                ("--threads", self.threads.is_some(), &[Native]),
            ],
        )
    }

    fn key_hash(&self) -> KeyHash {
        KeyHash::Xxh3 { seed: self.seed.unwrap_or(0) }
    }

    fn builder(&self) -> BloomFilterBuilder {
        let mut builder = BloomFilterBuilder::with_key_hash(self.sizing.sizing(), self.key_hash())
            .memory_limit(self.max_memory);
        if let Some(probes) = self.probes {
            builder = builder.probes(probes);
        }
        match self.prefix.clone() {
            None => builder,
            Some(rule) if self.only_prefixes => builder.only_prefixes(rule),
            Some(rule) => builder.prefixes(rule),
        }
    }

    fn params(&self, keys: u64) -> Result<Params, ParamsError> {
        let params = self.sizing.sizing().params(keys)?;
        match self.probes {
            Some(probes) => params.with_probes(probes),
            None => Ok(params),
        }
    }
}

/// Calls `take` with all keys, some at a time; returns the name of where they come from.
fn read(
    args: &Args,
    mut take: impl FnMut(&[&[u8]]) -> Result<(), BuildError>,
) -> Result<String, Failure> {
    let mut keys = KeyReader::open(&args.keys, args.key_format, !args.quiet)?;
    let (mut batch, mut key) = (KeyBatch::default(), Key::default());
    while keys.read_batch(&mut batch, &mut key)? {
        take(&batch.keys()).map_err(|error| Failure::of(keys.name(), error))?;
    }
    keys.warn_of_carriage_returns();
    Ok(keys.name().to_owned())
}

/// The hash of every key, for formats that are built when all keys are read; the name of where they come from, too. `None` stands
/// for a hash that is kept elsewhere.
pub(crate) fn hashes<H>(
    args: &Args,
    mut hash: impl FnMut(&Key) -> Result<Option<H>, String>,
) -> Result<(String, Vec<H>), Failure> {
    let mut keys = KeyReader::open(&args.keys, args.key_format, !args.quiet)?;
    let (mut key, mut count, mut hashes) = (Key::default(), 0, Vec::new());
    let most = args.max_memory / size_of::<H>() as u64;
    while keys.read(&mut key)? {
        if count == most || hashes.try_reserve(1).is_err() {
            let limit = args.max_memory;
            let message = format!(
                "the list of more than {count} keys does not fit --max-memory {limit}: give more memory"
            );
            return Err(Failure::of(keys.name(), message));
        }
        count += 1;
        hashes.extend(hash(&key).map_err(|problem| keys.bad_key(0, &problem))?);
    }
    keys.warn_of_carriage_returns();
    Ok((keys.name().to_owned(), hashes))
}

/// Collects hashes until all keys are read; returns the bytes that they took, too.
fn with_unknown_count(args: &Args) -> Result<(BloomFilter, u64), Failure> {
    let (name, list, finished) = collect(args, args.builder())?;
    match finished {
        Ok(filter) => Ok((filter, list)),
        Err(BuildError::MemoryLimit { keys, .. }) if args.keys.is_file() => {
            report(&format!(
                "{name}: the list of {keys} keys does not fit --max-memory {}: reading them again",
                args.max_memory
            ));
            let filter = match args.prefix {
                None => with_known_count(args, keys)?,
                Some(_) => {
                    let (name, _, finished) = collect(args, args.builder().expected_items(keys))?;
                    finished.map_err(|error| Failure::of(&name, error))?
                }
            };
            let again = filter.view().keys_inserted();
            if again < keys {
                let message = format!(
                    "{again} keys were read the second time, {keys} the first: do not change it meanwhile"
                );
                return Err(Failure::of(&name, message));
            }
            Ok((filter, args.max_memory))
        }
        Err(BuildError::MemoryLimit { keys, .. }) => {
            let limit = args.max_memory;
            let keys_option = match args.prefix {
                None => format!("--keys {keys}, "),
                Some(_) => String::new(),
            };
            let message = format!(
                "the list of {keys} keys does not fit --max-memory {limit}: give {keys_option}more memory, or a file by its name"
            );
            Err(Failure::of(&name, message))
        }
        Err(error) => Err(Failure::of(&name, error)),
    }
}

/// Adds all keys to the builder; returns the name of where they come from and the bytes of the builder's list, too.
fn collect(
    args: &Args,
    mut builder: BloomFilterBuilder,
) -> Result<(String, u64, Result<BloomFilter, BuildError>), Failure> {
    let name = read(args, |keys| {
        builder.par_extend(keys.par_iter());
        Ok(())
    })?;
    let list = builder.memory_bytes();
    let finished = if args.verify { builder.finish_verified() } else { builder.finish() };
    Ok((name, list, finished))
}

/// Inserts keys as they are read.
fn with_known_count(args: &Args, keys: u64) -> Result<BloomFilter, Failure> {
    let params = args.params(keys).map_err(Failure::new)?;
    let mut filter = BloomFilter::with_params(params, args.key_hash()).map_err(Failure::new)?;
    let mut hits = Bitmask::new();
    read(args, |keys| {
        filter.par_insert_batch(keys)?;
        if args.verify {
            filter.contains_batch(keys, &mut hits);
            if hits.count_misses() > 0 {
                let (missing, keys) = (hits.count_misses() as u64, keys.len() as u64);
                return Err(BuildError::KeysMissing { missing, keys });
            }
        }
        Ok(())
    })?;
    Ok(filter)
}

fn output(args: &Args, format: Format) -> Result<Output, Failure> {
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
            name.push(match format {
                Format::RocksdbBlock => ".filter",
                Format::ParquetFilter => ".sbbf",
                Format::Cassandra => {
                    let advice = "give -o, such as nb-1-big-Filter.db: its name tells Cassandra how to read it";
                    return Err(Failure::new(format!("{format}: {advice}")));
                }
                _ => ".bloom",
            });
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
