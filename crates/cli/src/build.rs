//! `blocked-bloom build`: from a file of keys to a stored filter.

mod advice;
mod native;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blocked_bloom::{FilterOptions, KeyHash, PrefixExtractor, Sizing};
use blocked_bloom_formats::parquet::PhysicalType;
use clap::ValueEnum;
use indicatif::BinaryBytes;

use crate::detect::is_cassandra_name;
use crate::failure::{Failure, inform, warn};
use crate::file_format::{Format, FormatArgs, check_options};
use crate::formats;
use crate::formats::builder::{BuildOptions, Fit};
use crate::formats::lookup::parse_rule;
use crate::formats::value::parse_type;
use crate::keys::{self, Key, KeyFormat, KeyReader};
use crate::numbers::{DEFAULT_BITS_PER_KEY, SizingArgs, parse_bytes, parse_keys};
use crate::output::{Output, STDIO};
use crate::threads;

/// Build a filter from a file of keys, one per line
///
/// A key is the bytes of its line without the line feed, which the last line need not have. An empty line
/// is a key of no bytes. The filter is sized for the keys that were read, equal neighbours counted
/// once, unless --keys gives their number. Until then each takes 8 bytes of memory; a file with more
/// keys than fit --max-memory is read twice, first to count them.
///
/// --kind ribbon builds a static filter, which takes a quarter less memory (by --fpr, 1% unless given).
///
/// --format removable builds a filter that programs can add keys to and remove keys from, 18.3 bits per key; with --keys for
/// as many if that are more. The others are filters that other systems load: rocksdb-block (by --bits-per-key; bytes for an SST file, without their
/// checksum), parquet-filter (by --fpr, 1% unless given; header and bitset of a column in a row group) and cassandra (by --fpr,
/// the table's bloom_filter_fp_chance, 1% unless given; -o names the file as Cassandra does, such as nb-1-big-Filter.db; keys are
/// the serialized bytes of partition keys, as for query), guava (by --fpr, 3% unless given; keys are the bytes that its funnel makes),
/// spark (by --fpr, 3% unless given; version 2 unless --spark-version 1) and redisbloom (by --fpr, 1% unless given; a file of replies
/// for BF.LOADCHUNK). Options that a format does not have are errors.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// File of keys, or - for standard input
    keys: PathBuf,

    /// File to write, or - for standard output; replaced whole if it exists [default: KEYS.bloom,
    /// KEYS.ribbon for ribbon, KEYS.tags for removable, KEYS.filter for rocksdb-block, KEYS.sbbf for parquet-filter, KEYS.guava, KEYS.spark, KEYS.scandump]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    sizing: SizingArgs,

    /// Size for this many keys, whatever is read: filters of equal size can be merged, and no
    /// list of hashes is kept in memory. Suffixes K, M and G
    #[arg(long = "keys", value_name = "N", value_parser = parse_keys)]
    expected_keys: Option<u64>,

    /// Bits set and tested per key, 1 to 30 [default: the best for the size]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=30))]
    probes: Option<u32>,

    /// Seed of the hash, 0 to 2^64 - 1; only filters of equal seed can be merged [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Add the prefixes of keys, too, for queries with the same --prefix: fixed:BYTES, capped:BYTES, or
    /// delimiter:HEX:COUNT (delimiter:2f:1 is up to the first "/")
    #[arg(long, value_name = "RULE", value_parser = parse_rule, conflicts_with = "expected_keys")]
    prefix: Option<PrefixExtractor>,

    /// Add the prefixes alone
    #[arg(long, requires = "prefix")]
    only_prefixes: bool,

    /// Threads that hash keys and fill large filters; the filter does not depend on their number [default: all
    /// cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,

    /// Look every inserted key up in the filter before it is written
    #[arg(long)]
    verify: bool,

    /// Most memory for the list of keys, beside the buffers for reading; suffixes K, M, G, KiB, MiB and GiB
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = parse_bytes)]
    max_memory: u64,

    #[command(flatten)]
    key_format: KeyFormat,

    #[command(flatten)]
    format: FormatArgs,

    /// Kind of filter [default: bloom]
    #[arg(long, value_enum)]
    kind: Option<Kind>,

    /// Version of a filter of Spark's: 1 for Spark up to 4.0, or 2 [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=2))]
    spark_version: Option<u32>,

    /// Type of the values of a parquet-filter: int32, int64, int96 (with --hex), float, double, byte-array or
    /// fixed-len-byte-array; a value of another type than its column's is never found; of a filter of Spark's int32, int64 or byte-array [default:
    /// byte-array]
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_type)]
    value_type: Option<PhysicalType>,

    /// Print neither the progress bar nor the line about the finished filter
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(args: &Args, verbose: bool) -> Result<ExitCode, Failure> {
    let format = args.format()?;
    args.check(format)?;
    let output = output(args, format)?;
    match format {
        Format::Native => native(args, &output, verbose)?,
        _ => foreign(format, args, &output)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn native(args: &Args, output: &Output, verbose: bool) -> Result<(), Failure> {
    let options = args.options();
    // Ranges do not depend on the keys: an error before they are read.
    options.params(args.expected_keys.unwrap_or(0)).map_err(Failure::new)?;
    let input = native::Input {
        path: &args.keys,
        key_format: args.key_format,
        progress: !args.quiet,
        warn: true,
    };
    let pool = threads::pool(args.threads.map(usize::from))?;
    let (filter, list) =
        pool.install(|| native::build(&options, &input, args.expected_keys, args.verify))?;
    let params = filter.params();
    if !params.is_pass_all() {
        let keys = params.expected_items();
        let needed = match args.sizing.max_bytes {
            Some(_) => Sizing::BitsPerKey(DEFAULT_BITS_PER_KEY).params(keys),
            None => options.params(keys),
        };
        args.warn_of_size(&Fit {
            keys,
            bytes: params.stored_bytes(),
            needed: needed.ok().map(|params| params.stored_bytes()),
            false_positive_rate: params.false_positive_rate(),
        });
    }
    output.save_filter(&filter, args.quiet)?;
    if verbose {
        let most = args.key_format.max_key_bytes();
        let working = pool.install(|| native::working_memory(most));
        let (list, working) = (BinaryBytes(list), BinaryBytes(working));
        inform(format!(
            "memory beside the filter: {list} for the list of keys, up to {working} for reading and inserting"
        ));
    }
    Ok(())
}

/// Builds a filter of another system.
fn foreign(format: Format, args: &Args, output: &Output) -> Result<(), Failure> {
    let path = args.output.as_deref().unwrap_or(Path::new("")).display().to_string();
    let mut builder = formats::builder(
        format,
        &BuildOptions {
            bits_per_key: args.sizing.bits_per_key,
            false_positive_rate: args.sizing.fpr,
            expected_keys: args.expected_keys,
            value_type: args.value_type,
            seed: args.seed.unwrap_or(0),
            threads: args.threads.map(usize::from),
            ribbon: args.kind == Some(Kind::RocksdbRibbon),
            is_hex: args.key_format.is_hex(),
            verify: args.verify,
            cassandra_version: args.format.cassandra_version,
            spark_version: args.spark_version,
            output: &path,
        },
    )?;
    let mut keys = KeyReader::open(&args.keys, args.key_format, !args.quiet)?;
    let (mut key, mut count) = (Key::default(), 0);
    let most = args.max_memory / builder.bytes_per_key();
    while keys.read(&mut key)? {
        if count == most {
            let limit = args.max_memory;
            let message = format!(
                "the list of more than {count} keys does not fit --max-memory {limit}: give more memory"
            );
            return Err(Failure::of(keys.name(), message));
        }
        count += 1;
        builder.add(&key).map_err(|problem| keys.bad_key(0, &problem))?;
    }
    keys.warn_of_doubtful_keys();
    let built = builder.finish(keys.name())?;
    if built.missing > 0 {
        let message = format!(
            "the filter answers \"absent\" for {} keys that are in it: the memory may be bad",
            built.missing
        );
        return Err(Failure::of(keys.name(), message));
    }
    if let Some(fit) = &built.fit {
        args.warn_of_size(fit);
    }
    let summary = (!args.quiet).then(|| format!("{format}, {}", built.summary));
    output.save(&|writer| writer.write_all(&built.bytes), summary.as_deref())
}

/// The kinds of filters that can be built of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// A Bloom filter
    Bloom,
    /// This tool's own static filter, a quarter smaller: --format ribbon
    Ribbon,
    /// RocksDB's Ribbon filter block, with its fall-back to Bloom for few keys: --format rocksdb-block
    RocksdbRibbon,
}

impl Args {
    /// The format that was given, or that of the kind.
    fn format(&self) -> Result<Format, Failure> {
        let of_kind = match self.kind {
            None => None,
            Some(Kind::Bloom) => Some(Format::Native),
            Some(Kind::Ribbon) => Some(Format::Ribbon),
            Some(Kind::RocksdbRibbon) => Some(Format::RocksdbBlock),
        };
        let is_bloom = self.kind == Some(Kind::Bloom);
        match (self.format.format()?, of_kind) {
            (Some(given), Some(format))
                if given != format && (!is_bloom || given == Format::Ribbon) =>
            {
                Err(Failure::new(format!(
                    "filters of this --kind are of format {format}, not {given}"
                )))
            }
            (given, format) => Ok(given.or(format).unwrap_or(Format::Native)),
        }
    }

    /// Checks that filters of the format can be built, and have every option that was given.
    fn check(&self, format: Format) -> Result<(), Failure> {
        use Format::{
            Cassandra, Guava, Native, ParquetFilter, Redisbloom, Removable, Ribbon, RocksdbBlock,
            Spark,
        };
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
        if format == Format::Growing {
            return Err(Failure::new("growing filters are what dedup --state writes, not build"));
        }
        if let Some(path) = &self.output
            && is_cassandra_name(path)
            && format != Cassandra
        {
            let message = format!(
                "Cassandra reads its own filters under such a name, not {format}: give --format cassandra, or another name"
            );
            return Err(Failure::of(&path.display().to_string(), message));
        }
        let sizing = &self.sizing;
        let by_rate = [Native, Ribbon, ParquetFilter, Cassandra, Guava, Spark, Redisbloom];
        let with_keys = [Native, Removable, ParquetFilter, Cassandra, Guava, Spark, Redisbloom];
        check_options(
            format,
            &[
                ("--bits-per-key", sizing.bits_per_key.is_some(), &[Native, RocksdbBlock]),
                ("--fpr", sizing.fpr.is_some(), &by_rate),
                ("--max-bytes", sizing.max_bytes.is_some(), &[Native]),
                ("--keys", self.expected_keys.is_some(), &with_keys),
                ("--probes", self.probes.is_some(), &[Native]),
                ("--seed", self.seed.is_some(), &[Native, Ribbon]),
                ("--prefix", self.prefix.is_some(), &[Native]),
                ("--type", self.value_type.is_some(), &[ParquetFilter, Spark]),
                ("--spark-version", self.spark_version.is_some(), &[Spark]),
                ("--threads", self.threads.is_some(), &[Native, Ribbon]),
            ],
        )
    }

    fn warn_of_size(&self, fit: &Fit) {
        if let Some(warning) = advice::warning(fit, self.expected_keys, self.sizing.max_bytes) {
            warn(format!("{}: {warning}", keys::name(&self.keys)));
        }
    }

    fn options(&self) -> FilterOptions {
        let mut options = FilterOptions::new(self.sizing.sizing())
            .with_key_hash(KeyHash::Xxh3 { seed: self.seed.unwrap_or(0) })
            .with_memory_limit(self.max_memory);
        if let Some(probes) = self.probes {
            options = options.with_probes(probes);
        }
        match self.prefix.clone() {
            None => options,
            Some(rule) if self.only_prefixes => options.with_only_prefixes(rule),
            Some(rule) => options.with_prefixes(rule),
        }
    }
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
                Format::Removable => ".tags",
                Format::Ribbon => ".ribbon",
                Format::RocksdbBlock => ".filter",
                Format::ParquetFilter => ".sbbf",
                Format::Guava => ".guava",
                Format::Spark => ".spark",
                Format::Redisbloom => ".scandump",
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
