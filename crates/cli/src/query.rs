//! `blocked-bloom query`: which keys may be present, or are certainly absent.

use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blocked_bloom::Bitmask;
use blocked_bloom::parts::HEADER_BYTES;
use blocked_bloom_inspect::{Format, FoundFile, KeyEncoding, Warning, encoding_hint};
use blocked_bloom_planes::PlanesLayout;

use crate::failure::{Failure, warn};
use crate::file_format::FormatArgs;
use crate::keys::{Key, KeyFormat, KeyReader, check_streams};
use crate::lookup::{LookupArgs, check_order, is_own};
use crate::output::{STDIO, print};
use crate::planes::unindexed;
use crate::stored::{Reading, Stored};
use crate::wording;

/// Keys that are looked up at a time, and their bytes, whichever comes first.
const BATCH: usize = 4096;
const BATCH_BYTES: usize = 8 << 20;

/// Print the keys that may be present in a filter
///
/// Keys are printed as they were read, in the same order, with the same terminator. A few of them
/// are absent: info prints the rate. Keys that are not printed are certainly absent.
///
/// With bit planes, the lines are printed whose words some row may have; planes query says which
/// rows. With an index of files, the values that some row group may have of the files as they were
/// when they were indexed: strings as they are, integers as decimal numbers, others by --hex of the
/// bytes that were hashed. --files prints in which files and row groups.
///
/// The filter may be one of RocksDB, Parquet, Cassandra, Guava, Spark or RedisBloom, alone or in
/// its file. Cassandra's keys are partition keys as the table stores them: text as it is; int, uuid
/// and composite ones by --hex of their serialized bytes, an int as 4 bytes big-endian (42 is
/// 0000002a), since their text is absent whatever the table holds.
///
/// Of a partitioned filter, give the index, and the file of its partitions by --partitions.
///
/// Files of 16 MiB and more are mapped, not read into memory: if another program truncates the file
/// meanwhile, the system ends the tool (SIGBUS), and if one overwrites it, answers may be wrong.
/// Replace filters as build does, by renaming.
///
/// Exit status: 0 if a key was selected, 1 if none was, 2 after an error.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stored filter, or file that holds filters, or - for standard input
    filter: PathBuf,

    /// File of keys to look up, one per line, or - for standard input if the filter is a file
    #[arg(default_value = STDIO)]
    keys: PathBuf,

    /// Select the keys that are certainly absent instead
    #[arg(long)]
    absent: bool,

    /// Print only the number of selected keys
    #[arg(long)]
    count: bool,

    /// Of an index of files, print a line for each file that may have a selected key: the key, the
    /// file, its row groups from 0, separated by tabs, as in "4bf9\ta.parquet\t0,3". Row groups of
    /// which nothing is known are a line of their own, as in "4bf9\ta.parquet\tunknown 1,2"
    #[arg(long, conflicts_with_all = ["absent", "count"])]
    files: bool,

    /// For a range filter, print whether a key in this range may be present: maybe or absent.
    /// LOW..=HIGH includes HIGH; without LOW or HIGH, the range has no such bound. Text is compared
    /// byte by byte, and numbers need --type, such as uint64-be. The exit status is 1 for absent
    #[arg(long, value_name = "LOW..HIGH")]
    #[arg(conflicts_with_all = ["keys", "absent", "count", "files"])]
    range: Option<String>,

    #[command(flatten)]
    lookup: LookupArgs,

    #[command(flatten)]
    format: FormatArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    check_streams("query", &args.filter, &args.keys)?;
    let reading = Reading { keys: Some(&args.keys), bar: None };
    let stored = Stored::read(&args.filter, &args.format, &reading)?;
    if stored.format == Format::PARTITION_INDEX && stored.partitions.is_none() {
        let message = "this is the index of a partitioned filter: give the file of its partitions \
                       by --partitions";
        return Err(Failure::for_file(&stored.name, message));
    }
    let (options, key_format) = args.lookup.options(stored.format)?;
    let fail = |error| wording::error(&stored.name, &error);
    let checked = stored.format.check(&options);
    checked.map_err(|message| Failure::new(wording::text(&message)))?;
    if args.files && stored.format != Format::FILE_INDEX {
        let formats = [Format::FILE_INDEX.name()];
        return Err(wording::unsupported_option("--files", &formats, stored.format.name()));
    }
    let opened = stored.open()?;
    if let Some(range) = &args.range {
        let [lower, upper] = bounds(range, key_format)?;
        let [low, high] = [&lower, &upper].map(|bound| bound.as_ref().map(Vec::as_slice));
        let is_found = opened.contains_range(low, high).map_err(fail)?;
        print(if is_found { "maybe\n" } else { "absent\n" })?;
        return Ok(exit(is_found.into()));
    }
    let lookup = opened.lookup(&options).map_err(fail)?;
    let show = |warning: &Warning| warn(wording::warning(&stored.name, warning));
    lookup.warnings().iter().for_each(show);
    if stored.format == Format::PLANES {
        let name = &stored.name;
        check_text(&args.filter, &stored)?;
        warn(format!(
            "{name}: lines are selected whose words any row may have, which is most lines for \
             common words: planes query says which rows"
        ));
    }
    // The options that the warnings so far are about.
    let mut shown = Vec::new();
    let mut hits = Bitmask::new();
    // Whether keys may have been hashed as other bytes.
    let mut may_be_typed = is_own(stored.format.name()) && options.prefix.is_none();
    let given = key_format.encoding();
    let mut typed = None;
    // On a terminal the keys that are printed show how far the work is.
    let progress = args.count || !io::stdout().is_terminal();
    let mut reader = KeyReader::open(&args.keys, key_format, progress)?;
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut batch: Vec<Key> = Vec::new();
    batch.resize_with(BATCH, Key::default);
    let (mut selected, mut before, mut found) = (0_u64, 0_u64, 0);
    loop {
        let (mut len, mut failure) = fill(&mut reader, &mut batch);
        // Keys before a bad one are answered.
        if let Err(bad) = lookup.contains_batch(&batch[..len], &mut hits) {
            let number = before + bad.index as u64 + 1;
            failure = Some(reader.bad_key(number, wording::text(&bad.problem)));
            len = bad.index;
            let again = lookup.contains_batch(&batch[..len], &mut hits);
            again.map_err(|bad| Failure::new(wording::text(&bad.problem)))?;
        }
        if len == 0 && failure.is_none() {
            break;
        }
        let keys = &batch[..len];
        before += len as u64;
        for doubt in lookup.doubts(keys, &hits) {
            let option = doubt.message().option();
            if !shown.contains(&option) {
                show(&doubt);
                shown.push(option);
            }
        }
        found += hits.count_hits();
        if std::mem::take(&mut may_be_typed) {
            // Of the first batch alone.
            let texts: Vec<&[u8]> = keys.iter().map(Key::text).collect();
            let hint = encoding_hint(&lookup, &texts, given).ok().flatten();
            typed = hint.map(|hint| (hint, len, found));
        }
        let mut indices = (0..len).filter(|&i| hits.get(i) == Some(!args.absent));
        if args.count {
            selected += indices.count() as u64;
            match failure {
                Some(failure) => return Err(failure),
                None => continue,
            }
        }
        let written = indices.try_for_each(|i| {
            selected += 1;
            if args.files {
                let found = opened.files_with(keys[i].as_ref(), &options);
                let found = found.map_err(|error| io::Error::other(error.to_string()))?;
                return print_files(&mut out, keys[i].text(), key_format.terminator(), &found);
            }
            out.write_all(keys[i].text())?;
            out.write_all(&[key_format.terminator()])
        });
        // A person or a program that writes key by key should see the answers.
        let written = match written {
            Ok(()) if failure.is_some() || reader.is_drained() => out.flush(),
            written => written,
        };
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(exit(selected)),
            Err(error) => return Err(Failure::io("standard output", "write", &error)),
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
    }
    reader.warn_of_doubtful_keys();
    // Later keys that are found as given may be more than chance.
    if let Some(((typed, name), of, few)) = typed.filter(|_| 2 * found as u64 <= before) {
        let few = if few == 0 { "no key is".to_owned() } else { format!("{few} are") };
        let given = if given == KeyEncoding::Text { "text" } else { "given" };
        warn(format!(
            "{}: {few} found as {given}, and {typed} of the first {of} as {name}: give --type \
             {name} if the filter was built from such values",
            stored.name
        ));
    }
    drop(out);
    if args.count {
        print(&format!("{selected}\n"))?;
    }
    Ok(exit(selected))
}

/// The bounds of a range as an option gives it.
fn bounds(range: &str, format: KeyFormat) -> Result<[Bound<Vec<u8>>; 2], Failure> {
    let Some((lower, upper)) = range.split_once("..") else {
        let message = format!("--range {range}: give LOW..HIGH, or LOW..=HIGH to include HIGH");
        return Err(Failure::new(message));
    };
    let key = |text: &str| {
        let mut key = Vec::new();
        match format.encoding().encode(text.as_bytes(), &mut key) {
            Ok(()) => Ok(key),
            Err(error) => Err(Failure::new(format!("--range {range}: {}", wording::text(&error)))),
        }
    };
    check_order(format.encoding())?;
    let numbers = [lower, upper.trim_start_matches('=')]
        .map(|text| text.bytes().all(|byte| byte.is_ascii_digit()).then_some(text.len()));
    if let (KeyEncoding::Text, [Some(low), Some(high)]) = (format.encoding(), numbers)
        && low != high
    {
        let message = format!(
            "--range {range}: as text, 10 is below 9: give --type uint64-be for numbers, or bounds \
             with equally many digits"
        );
        return Err(Failure::new(message));
    }
    let lower = if lower.is_empty() { Unbounded } else { Included(key(lower)?) };
    let upper = match upper.strip_prefix('=') {
        Some(upper) => Included(key(upper)?),
        None if upper.is_empty() => Unbounded,
        None => Excluded(key(upper)?),
    };
    if let (Included(low), Included(high) | Excluded(high)) = (&lower, &upper)
        && low > high
    {
        let message = format!("--range {range}: the lower bound is above the upper one");
        return Err(Failure::new(message));
    }
    Ok([lower, upper])
}

/// An error if the text of an index has lines that are not in it: their words are not absent.
fn check_text(index: &Path, stored: &Stored) -> Result<(), Failure> {
    let bytes = &stored.bytes[..];
    let tail = &bytes[bytes.len() - HEADER_BYTES..];
    let layout = PlanesLayout::from_tail_any_hash(tail, bytes.len() as u64);
    let layout = layout.map_err(|error| Failure::for_file(&stored.name, error))?;
    let load = |at: u64, length: u64| Ok(bytes[at as usize..(at + length) as usize].to_vec());
    let (new, warning) = unindexed(index, &layout, None, load)?;
    warning.into_iter().for_each(warn);
    match new {
        None => Ok(()),
        Some(new) => {
            let advice = "run planes build again, or planes query for the rows that may have words";
            Err(Failure::new(format!("{}: {advice}", new.describe())))
        }
    }
}

fn exit(selected: u64) -> ExitCode {
    ExitCode::from(u8::from(selected == 0))
}

/// Prints where a key may be.
fn print_files(
    out: &mut impl Write,
    key: &[u8],
    terminator: u8,
    found: &[FoundFile],
) -> io::Result<()> {
    for file in found {
        for (what, groups) in [("", &file.row_groups), ("unknown ", &file.unknown)] {
            if !groups.is_empty() {
                let groups: Vec<String> = groups.iter().map(usize::to_string).collect();
                out.write_all(key)?;
                write!(out, "\t{}\t{what}{}", file.name, groups.join(","))?;
                out.write_all(&[terminator])?;
            }
        }
    }
    Ok(())
}

/// Reads keys until the batch is full or the next one would have to be waited for, or up to a bad
/// one, and returns their number.
fn fill(reader: &mut KeyReader<'_>, batch: &mut [Key]) -> (usize, Option<Failure>) {
    let mut bytes = 0;
    for (len, key) in batch.iter_mut().enumerate() {
        if len > 0 && (reader.is_drained() || bytes >= BATCH_BYTES) {
            return (len, None);
        }
        match reader.read(key) {
            Ok(true) => bytes += key.text().len(),
            Ok(false) => return (len, None),
            Err(failure) => return (len, Some(failure)),
        }
    }
    (batch.len(), None)
}
