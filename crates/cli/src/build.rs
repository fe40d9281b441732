//! `blocked-bloom build`: from a file of keys to a stored filter.

mod advice;
mod native;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blocked_bloom::{BloomFilter, FilterOptions, KeyHash, PrefixExtractor, Sizing};
use blocked_bloom_formats::cassandra::Layout;
use blocked_bloom_inspect::numbers::{parse_bytes, parse_keys, percent};
use blocked_bloom_inspect::{Format, is_cassandra_name, layout_of_version, prefix_rule};
use indicatif::BinaryBytes;

use crate::builder::{BuildFormat, BuildOptions, Fit, MakeBuilder};
use crate::builders::{CASSANDRA, NATIVE, check_options, format_parser, look_up};
use crate::failure::{Failure, inform, warn};
use crate::keys::{self, Key, KeyFormat, KeyReader};
use crate::lookup::{KeyType, check_order, parse_type, typed};
use crate::numbers::{DEFAULT_BITS_PER_KEY, SizingArgs, counted};
use crate::output::{Output, STDIO};
use crate::threads;

/// Build a filter from files of keys, one per line
///
/// A key is the bytes of its line without the line feed, which the last line need not have. An
/// empty line is a key of no bytes. The filter is sized for the keys that were read, equal
/// neighbours counted once, unless --keys gives their number. Until then each takes 8 bytes of
/// memory; a file with more keys than fit --max-memory is read twice, first to count them.
///
/// --format ribbon builds a static filter, which takes 28% less memory at 1% (by --fpr, 1% unless
/// given).
///
/// --format range builds a filter that answers query --range. The keys must be sorted by their
/// bytes, as by LC_ALL=C sort. Numbers need --type uint64-be, and their own order.
///
/// --format removable builds a filter that programs can add keys to and remove keys from, 18.3 bits
/// per key; with --keys, for at least that many. The others are filters that other systems load:
/// rocksdb-block and rocksdb-ribbon (by --bits-per-key; bytes for an SST file, without their
/// checksum), parquet-filter (by --fpr, 1% unless given; header and bitset of a column in a row
/// group) and cassandra (by --fpr, the table's bloom_filter_fp_chance, 1% unless given; -o names
/// the file as Cassandra does, such as nb-1-big-Filter.db; keys are the serialized bytes of
/// partition keys, as for query), guava (by --fpr, 3% unless given; keys are the bytes that its
/// funnel makes), spark (by --fpr, 3% unless given; version 2 unless --spark-version 1) and
/// redisbloom (by --fpr, 1% unless given; a file of replies for BF.LOADCHUNK). Options that a
/// format does not have are errors.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Files of keys, one after another, or - for standard input; of several the filter has no
    /// default name
    #[arg(value_name = "KEYS", required = true)]
    keys: Vec<PathBuf>,

    /// File to write, or - for standard output; replaced whole if it exists [default: KEYS.bloom,
    /// KEYS.compact, KEYS.ribbon, KEYS.range, KEYS.tags for removable, KEYS.filter for
    /// rocksdb-block and rocksdb-ribbon, KEYS.sbbf for parquet-filter, KEYS.guava, KEYS.spark,
    /// KEYS.scandump]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    sizing: SizingArgs,

    /// Size for this many keys, however many are read: filters of equal size can be merged, and
    /// no list of hashes is kept in memory. Suffixes K, M and G
    #[arg(long = "keys", value_name = "N", value_parser = parse_keys)]
    expected_keys: Option<u64>,

    /// Build it for --keys even if the file of keys is too short to hold that many: for filters
    /// that will be merged with those of other files. A parquet-filter for more values than were
    /// read is folded to half its size, as often as --fpr allows, unless this is given
    #[arg(long, requires = "expected_keys")]
    oversized: bool,

    /// Bits set and tested per key, 1 to 30 [default: the best for the size]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=30))]
    probes: Option<u32>,

    /// Seed of the hash, 0 to 2^64 - 1; only filters of equal seed can be merged [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Add the prefixes of keys, too, for queries with the same --prefix: fixed:BYTES,
    /// capped:BYTES, or delimiter:HEX:COUNT (delimiter:2f:1 is up to the first "/")
    #[arg(long, value_name = "RULE", value_parser = prefix_rule, conflicts_with = "expected_keys")]
    prefix: Option<PrefixExtractor>,

    /// Add the prefixes alone
    #[arg(long, requires = "prefix")]
    only_prefixes: bool,

    /// Threads that hash keys and fill large filters; the filter does not depend on their number
    /// [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,

    /// Look every inserted key up in the filter before it is written; reads the keys of a range
    /// filter a second time
    #[arg(long)]
    verify: bool,

    /// Most memory for the list of keys, besides the buffers for reading; suffixes K, M, G, KiB,
    /// MiB and GiB
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = parse_bytes)]
    max_memory: u64,

    #[command(flatten)]
    key_format: KeyFormat,

    /// Format of the filter [default: native]
    #[arg(long, value_parser = format_parser())]
    format: Option<&'static BuildFormat>,

    /// Version of Cassandra's format, such as nb or da, if the name of Filter.db has none or a
    /// wrong one; implies --format cassandra
    #[arg(long, value_name = "VERSION", value_parser = layout_of_version)]
    cassandra_version: Option<Layout>,

    /// Low bits of keys that a range filter ignores, 0 to 127: typical ranges should have 1 to 64
    /// units [default: 0]
    #[arg(long, value_name = "BITS")]
    unit: Option<u32>,

    /// Version of a filter of Spark's: 1 for Spark up to 4.0, or 2 [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=2))]
    spark_version: Option<u32>,

    /// Type of the values, if their text is not to be hashed: for this project's filters int8 to
    /// int64 (little-endian bytes; Python hashes all integers as int64), int8-be to int64-be, or
    /// uuid; for a parquet-filter int32, int64, int96 (with --hex), float, double, byte-array,
    /// fixed-len-byte-array or uuid; for spark int32, int64 or byte-array. Queries need the same
    /// type [default: byte-array]
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_type)]
    value_type: Option<KeyType>,

    /// Print neither the progress bar nor the line about the finished filter
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(args: &Args, verbose: bool) -> Result<ExitCode, Failure> {
    let format = args.format()?;
    args.check(format)?;
    let output = output(args, format)?;
    match format.builder {
        None => native(format, args, &output, verbose)?,
        Some(make) => foreign(format, make, args, &output)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn native(
    format: &BuildFormat,
    args: &Args,
    output: &Output,
    verbose: bool,
) -> Result<(), Failure> {
    let options = args.options();
    // A value out of its range is an error before the keys are read.
    let params = options.params(args.expected_keys.unwrap_or(0)).map_err(Failure::new)?;
    args.check_expected_keys(Some(params.stored_bytes()))?;
    let input = native::Input {
        paths: &args.keys,
        key_format: typed(args.value_type, args.key_format, format.name)?.1,
        progress: !args.quiet,
        warn: true,
    };
    let pool = threads::pool(args.threads.map(usize::from))?;
    let (filter, list) =
        pool.install(|| native::build(&options, &input, args.expected_keys, args.verify))?;
    let params = filter.params();
    let keys = params.expected_items();
    if !params.is_pass_all() {
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
    args.warn_of_no_keys(keys);
    if params.is_pass_all() {
        let name = keys::name_of_all(&args.keys);
        warn(format!("{name}: no filter by this size: every answer will be \"maybe\""));
    }
    save(format, &filter, args, output)?;
    if verbose {
        let most = args.key_format.max_key_bytes();
        let working = pool.install(|| native::working_memory(most));
        let (list, working) = (BinaryBytes(list), BinaryBytes(working));
        inform(format!(
            "memory beside the filter: {list} for the list of keys, up to {working} for reading \
             and inserting"
        ));
    }
    Ok(())
}

/// Writes a native filter, in one of its two forms.
fn save(
    format: &BuildFormat,
    filter: &BloomFilter,
    args: &Args,
    output: &Output,
) -> Result<(), Failure> {
    let params = filter.params();
    if format.name == NATIVE.name {
        output.save(&|writer| filter.write_to(writer).map(drop))?;
        output.report(params, args.quiet);
        return Ok(());
    }
    let bytes = filter.to_compact_bytes().map_err(Failure::new)?;
    output.save(&|writer| writer.write_all(&bytes))?;
    let keys = counted(params.expected_items(), "key");
    let (blocks, probes) = (counted(params.blocks(), "block"), counted(params.probes(), "probe"));
    let (stored, rate) = (bytes.len(), percent(params.false_positive_rate()));
    let summary = format!(
        "{}, {keys}, {blocks}, {stored} bytes stored, {probes}, {rate} false positives",
        format.name
    );
    output.report(summary, args.quiet);
    Ok(())
}

/// Builds a filter of another format.
fn foreign(
    format: &BuildFormat,
    make: MakeBuilder,
    args: &Args,
    output: &Output,
) -> Result<(), Failure> {
    args.check_expected_keys(None)?;
    let (value_type, key_format) = typed(args.value_type, args.key_format, format.name)?;
    let is_range = format.name == Format::RANGE.name();
    if is_range {
        check_order(key_format.encoding())?;
    }
    let path = args.output.as_deref().unwrap_or(Path::new("")).display().to_string();
    let mut builder = make(&BuildOptions {
        bits_per_key: args.sizing.bits_per_key,
        false_positive_rate: args.sizing.fpr,
        expected_keys: args.expected_keys,
        oversized: args.oversized,
        value_type,
        seed: args.seed.unwrap_or(0),
        threads: args.threads.map(usize::from),
        is_hex: args.key_format.is_hex(),
        verify: args.verify,
        cassandra_version: args.cassandra_version,
        unit: args.unit.unwrap_or(0),
        spark_version: args.spark_version,
        output: &path,
    })?;
    let mut keys = KeyReader::open_all(&args.keys, key_format, !args.quiet)?;
    // The keys of a range filter are not kept, so that --verify reads them again.
    let reads_again = args.verify && is_range;
    if let Some(path) = args.keys.iter().find(|path| reads_again && !path.is_file()) {
        let message = "--verify reads the keys of a range filter twice: give a file by its name";
        return Err(Failure::for_file(&keys::name(path), message));
    }
    let (mut key, mut count) = (Key::default(), 0);
    let most = args.max_memory / builder.bytes_per_key();
    while keys.read(&mut key)? {
        if count == most {
            let limit = args.max_memory;
            let message = format!(
                "the list of more than {count} keys does not fit --max-memory {limit}: give more \
                 memory"
            );
            return Err(Failure::for_file(keys.name(), message));
        }
        count += 1;
        builder.add(&key).map_err(|problem| keys.bad_last_key(&problem))?;
    }
    keys.warn_of_doubtful_keys();
    let built = builder.finish(keys.name())?;
    let answers = [built.answers.len() as u64, built.answers.count_misses() as u64];
    let [looked_up, missing] = match reads_again {
        true => look_up(&built.bytes, KeyReader::open_all(&args.keys, key_format, !args.quiet)?)?,
        false => answers,
    };
    if reads_again && looked_up != count {
        let message = format!(
            "{looked_up} keys were read the second time, {count} the first: do not change the file \
             meanwhile"
        );
        return Err(Failure::for_file(keys.name(), message));
    }
    let verified =
        verified(looked_up, missing).map_err(|error| Failure::for_file(keys.name(), error))?;
    if let Some(fit) = &built.fit {
        args.warn_of_size(fit);
    }
    args.warn_of_no_keys(count);
    output.save(&|writer| writer.write_all(&built.bytes))?;
    let (bytes, summary) = (built.bytes.len(), built.summary);
    let summary = format!("{}, {summary}, {bytes} bytes stored{verified}", format.name);
    output.report(summary, args.quiet);
    Ok(())
}

/// The summary of the lookups of keys that are in a filter; an error if some were "absent".
fn verified(keys: u64, missing: u64) -> Result<String, String> {
    match (missing, keys) {
        (0, 0) => Ok(String::new()),
        (0, _) => Ok(format!(", {} looked up again", counted(keys, "key"))),
        _ => Err(format!(
            "the filter answers \"absent\" for {missing} keys that are in it: the memory may be bad"
        )),
    }
}

/// With more keys expected than this, a file that cannot hold as many is refused: a filter of 40 MB
/// at ten bits each.
const LARGE_EXPECTATION: u64 = 1 << 25;

impl Args {
    fn format(&self) -> Result<&'static BuildFormat, Failure> {
        match (self.format, self.cassandra_version) {
            (None, Some(_)) => Ok(&CASSANDRA),
            (Some(format), Some(_)) if format.name != CASSANDRA.name => {
                let name = format.name;
                let message =
                    format!("--cassandra-version is for --format cassandra, not for {name}");
                Err(Failure::new(message))
            }
            (format, _) => Ok(format.unwrap_or(&NATIVE)),
        }
    }

    /// Checks that filters of the format have every option that was given.
    fn check(&self, format: &BuildFormat) -> Result<(), Failure> {
        if let Some(path) = &self.output
            && is_cassandra_name(&path.to_string_lossy())
            && format.name != CASSANDRA.name
        {
            let message = format!(
                "Cassandra reads its own filters under such a name, not {}: give --format \
                 cassandra, or another name",
                format.name
            );
            return Err(Failure::for_file(&path.display().to_string(), message));
        }
        let sizing = &self.sizing;
        check_options(
            format,
            &[
                ("--bits-per-key", sizing.bits_per_key.is_some()),
                ("--fpr", sizing.fpr.is_some()),
                ("--max-bytes", sizing.max_bytes.is_some()),
                ("--keys", self.expected_keys.is_some()),
                ("--probes", self.probes.is_some()),
                ("--seed", self.seed.is_some()),
                ("--prefix", self.prefix.is_some()),
                ("--type", self.value_type.is_some()),
                ("--unit", self.unit.is_some()),
                ("--spark-version", self.spark_version.is_some()),
                ("--threads", self.threads.is_some()),
            ],
        )
    }

    fn warn_of_size(&self, fit: &Fit) {
        if let Some(warning) = advice::warning(fit, self.expected_keys, self.sizing.max_bytes) {
            warn(format!("{}: {warning}", keys::name_of_all(&self.keys)));
        }
    }

    fn warn_of_no_keys(&self, keys: u64) {
        if keys == 0 {
            let name = keys::name_of_all(&self.keys);
            warn(format!("{name}: no keys: a filter of none answers \"absent\" for every key"));
        }
    }

    /// Refuses a large filter for more keys than the file can hold at a byte each, before memory is
    /// allocated for it.
    fn check_expected_keys(&self, filter_bytes: Option<u64>) -> Result<(), Failure> {
        let Some(expected) = self.expected_keys.filter(|&keys| keys > LARGE_EXPECTATION) else {
            return Ok(());
        };
        let length = |path: &PathBuf| {
            let file = fs::metadata(path).ok().filter(|file| file.is_file())?;
            Some(file.len())
        };
        let bytes = self.keys.iter().map(length).sum::<Option<u64>>();
        let Some(bytes) = bytes.filter(|&bytes| bytes < expected) else {
            return Ok(());
        };
        if self.oversized {
            return Ok(());
        }
        let size = filter_bytes.map_or(String::new(), |bytes| format!(" of {bytes} bytes"));
        let message = format!(
            "a file of {bytes} bytes holds at most as many keys, not the {expected} of --keys: \
             give fewer, or --oversized to build a filter{size} that \
             others will be merged with"
        );
        Err(Failure::for_file(&keys::name_of_all(&self.keys), message))
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

fn output(args: &Args, format: &BuildFormat) -> Result<Output, Failure> {
    let path = match (&args.output, format.extension, &args.keys[..]) {
        (Some(path), ..) => path.clone(),
        (None, _, [path]) if path == Path::new(STDIO) => {
            return Err(Failure::for_file(
                "standard input",
                "has no name to derive another from: give -o",
            ));
        }
        (None, Some(extension), [path]) => {
            let mut name = path.clone().into_os_string();
            name.push(extension);
            name.into()
        }
        (None, Some(_), paths) => {
            let name = keys::name_of_all(paths);
            return Err(Failure::for_file(&name, "several files of keys: give -o"));
        }
        (None, None, _) => {
            let advice =
                "give -o, such as nb-1-big-Filter.db: its name tells Cassandra how to read it";
            return Err(Failure::for_file(format.name, advice));
        }
    };
    let output = Output::new(&path)?;
    for path in &args.keys {
        output.keep(path, "the file of keys, which the filter")?;
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::verified;

    #[test]
    fn a_missing_key_is_an_error() {
        assert_eq!(verified(0, 0), Ok(String::new()));
        assert_eq!(verified(70, 0), Ok(", 70 keys looked up again".to_owned()));
        assert!(verified(70, 2).unwrap_err().contains("\"absent\" for 2 keys"));
    }
}
