//! `blocked-bloom planes`: a skip index over the lines of a text, as bit planes.

mod text;

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blocked_bloom::{Bitmask, FilterOptions, KeyHasher};
use blocked_bloom_inspect::numbers::{parse_keys, parse_rate, percent};
use blocked_bloom_inspect::{EVIDENCE_BYTES, Format, queries, recognise};
use blocked_bloom_planes::{PlanesError, PlanesLayout, PlanesOptions, Query, Shape, TextRows};
use clap::Subcommand;

use crate::failure::{Failure, inform, warn};
use crate::file_format::FormatArgs;
use crate::info::print_facts;
use crate::keys::{self, Key, KeyFormat, KeyReader};
use crate::numbers::counted;
use crate::output::{Output, STDIO, print};

pub(crate) use self::text::unindexed;
use self::text::{Digest, settled_time};

/// Skip indexes over the lines of a text: which parts of it may have some words
///
/// A row is a number of lines, its items are their words: runs of letters, digits, underscores and
/// bytes that are not ASCII, as they are written. The index says how many lines, and is of the
/// package blocked-bloom-planes. info describes it, too.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Build(BuildArgs),
    Query(QueryArgs),
    Info(InfoArgs),
}

/// Write an index of a text
///
/// The text is read twice, first to find the largest number of words in a row, unless --items says
/// it.
#[derive(clap::Args)]
struct BuildArgs {
    /// Text, or - for standard input, which needs --items
    text: PathBuf,

    /// File to write, or - for standard output; replaced whole if it exists [default: TEXT.planes]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Lines of a row
    #[arg(long, value_name = "N", default_value = "100")]
    lines: NonZeroU32,

    /// Distinct words of a row that the index is sized for
    #[arg(long, value_name = "N", value_parser = parse_keys)]
    items: Option<u64>,

    /// Highest rate of rows that are printed for a word they do not have, such as 1% or 0.001
    #[arg(long, value_name = "RATE", default_value = "0.1%", value_parser = parse_rate)]
    fpr: f64,

    /// The number that tells this index from others, 0 to 2^64 - 1, so that a part of one is not
    /// taken for that of another: indexes of the same text and tag are equal [default: a random
    /// one]
    #[arg(long, value_name = "N")]
    tag: Option<u64>,

    /// Print nothing about the finished index
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    format: KeyFormat,
}

/// Print the rows that may have all of some words
///
/// A word is divided as the text was: node-3 is in the rows that have node and 3. An index that
/// does not say how its text was divided, of an earlier release or another program, is queried for
/// the word as it is and for its parts.
///
/// Only the planes of these words are read of the index. A few of the rows that are printed do not
/// have the words; rows that are not printed certainly do not.
///
/// If the text has grown since it was indexed, the rows of its new lines are printed too, with a
/// warning that names these lines. If indexed lines have changed, that is an error. A text of the
/// same length and time is taken for unchanged, any other is read to compare its checksum.
///
/// Exit status: 0 if there is such a row, 1 if there is none, 2 after an error.
#[derive(clap::Args)]
struct QueryArgs {
    /// Index
    index: PathBuf,

    /// Words
    #[arg(required = true)]
    words: Vec<String>,

    /// Rows that may have any of the words, instead of all
    #[arg(long)]
    any: bool,

    /// The text, to notice that it has changed [default: the index without .planes, if there is
    /// such a file]
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,

    /// Print the lines of the rows, for sed -n: 201,300p
    #[arg(long)]
    sed: bool,

    /// Lines of a row, for an index that does not say it; implies --sed. An error if the index says
    /// another number
    #[arg(long, value_name = "N")]
    lines: Option<NonZeroU32>,

    /// Print only the number of rows
    #[arg(long)]
    count: bool,
}

/// Describe an index and verify its checksums
#[derive(clap::Args)]
struct InfoArgs {
    /// Index
    index: PathBuf,

    /// Print one JSON object instead
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, verbose: bool) -> Result<ExitCode, Failure> {
    match &args.command {
        Command::Build(args) => build(args),
        Command::Query(args) => query(args, verbose),
        Command::Info(args) => info(args),
    }
}

/// Replaces `items` by the hashes of the words of the next row; false at the end.
fn read_row(
    reader: &mut KeyReader,
    key: &mut Key,
    text: TextRows,
    hasher: KeyHasher,
    items: &mut HashSet<u64>,
) -> Result<bool, Failure> {
    items.clear();
    for line in 0..text.lines().get() {
        if !reader.read(key)? {
            return Ok(line > 0);
        }
        items.extend(text.words(key.as_ref()).map(|word| hasher.hash(word)));
    }
    Ok(true)
}

fn build(args: &BuildArgs) -> Result<ExitCode, Failure> {
    let path = args.output.clone().unwrap_or_else(|| {
        let mut path = args.text.clone().into_os_string();
        path.push(".planes");
        path.into()
    });
    let is_stdin = args.text == Path::new(STDIO);
    if is_stdin && (args.items.is_none() || args.output.is_none()) {
        let advice = "a text from standard input needs --items, and -o for the index";
        return Err(Failure::new(advice));
    }
    let output = Output::new(&path)?;
    output.keep(&args.text, "the text, which the index")?;
    let name = keys::name(&args.text);
    let filters = FilterOptions::default();
    let hasher = filters.hasher().map_err(|error| Failure::for_file(&name, error))?;
    let text = TextRows::new(args.lines);
    let (mut key, mut row) = (Key::default(), HashSet::new());
    let items = match args.items {
        Some(items) => items,
        None => {
            let reader = KeyReader::open(&args.text, args.format, !args.quiet)?;
            let (mut reader, mut most) = (reader.with_observer(|_| ()), 1);
            while read_row(&mut reader, &mut key, text, hasher, &mut row)? {
                most = most.max(row.len() as u64);
            }
            most
        }
    };
    let shape =
        Shape::for_rate(items, args.fpr).map_err(|error| Failure::for_file(&name, error))?;
    // The keys of a `RandomState` are random.
    let tag = args.tag.unwrap_or_else(|| RandomState::new().hash_one(items));
    let options = PlanesOptions::for_filters(&filters, shape).with_tag(tag).with_text(text);
    // Why writing failed, if it was not the writer; and the rows and bytes that were written.
    let (failure, written) = (RefCell::new(None), Cell::new((0, 0)));
    let write = |writer: &mut dyn Write| -> io::Result<()> {
        match write_rows(args, &options, hasher, writer) {
            Ok(rows_and_bytes) => {
                written.set(rows_and_bytes);
                Ok(())
            }
            Err(Stopped::Writer(error)) => Err(error),
            Err(Stopped::Failure(other)) => {
                *failure.borrow_mut() = Some(other);
                Err(io::Error::other("the text could not be read"))
            }
        }
    };
    let saved = output.save(&write);
    if let Some(failure) = failure.into_inner() {
        return Err(failure);
    }
    saved?;
    let (rows, bytes) = written.get();
    if rows == 0 {
        warn(format!("{name}: no lines: no word is in an index of none"));
    }
    let rate = percent(shape.false_positive_rate(items));
    let [rows, lines, items] =
        [(rows, "row"), (u64::from(args.lines.get()), "line"), (items, "item")]
            .map(|(n, noun)| counted(n, noun));
    let summary = format!(
        "{rows} of {lines}, {bytes} bytes stored, {shape} for {items} a row, {rate} false positives"
    );
    output.report(summary, args.quiet);
    Ok(ExitCode::SUCCESS)
}

enum Stopped {
    Writer(io::Error),
    Failure(Failure),
}

/// Writes the index, and returns its rows and bytes.
fn write_rows(
    args: &BuildArgs,
    options: &PlanesOptions,
    hasher: KeyHasher,
    writer: &mut dyn Write,
) -> Result<(u64, u64), Stopped> {
    let other = |error: PlanesError| Stopped::Failure(Failure::new(error));
    let (text, mut key, mut row) = (TextRows::new(args.lines), Key::default(), HashSet::new());
    let mut builder = options.builder().map_err(other)?;
    let modified = settled_time(&args.text);
    let mut digest = Digest::new(args.format.terminator());
    let reader = KeyReader::open(&args.text, args.format, !args.quiet);
    let (reader, mut bytes) = (reader.map_err(Stopped::Failure)?, 0);
    let mut reader = reader.with_observer(|line| digest.update(line));
    let mut write = |piece: Vec<u8>| {
        bytes += piece.len() as u64;
        writer.write_all(&piece).map_err(Stopped::Writer)
    };
    while read_row(&mut reader, &mut key, text, hasher, &mut row).map_err(Stopped::Failure)? {
        if let Some(group) = builder.append(row.iter().copied()).map_err(other)? {
            write(group)?;
        }
    }
    let rows = builder.rows();
    reader.warn_of_doubtful_keys();
    drop(reader);
    let state = digest.state(modified);
    write(builder.finish_with_text_state(&state).map_err(other)?)?;
    Ok((rows, bytes))
}

/// An index, read in parts.
struct Index {
    name: String,
    file: File,
    length: u64,
    bytes_read: u64,
}

impl Index {
    fn open(path: &Path) -> Result<Self, Failure> {
        let name = keys::name(path);
        let file = File::open(path).map_err(|error| Failure::io(&name, "open", &error))?;
        let metadata = file.metadata().map_err(|error| Failure::io(&name, "read", &error))?;
        Ok(Index { name, file, length: metadata.len(), bytes_read: 0 })
    }

    fn read(&mut self, offset: u64, length: u64) -> Result<Vec<u8>, Failure> {
        self.bytes_read += length;
        let mut bytes = Vec::new();
        let found = self.file.seek(SeekFrom::Start(offset));
        let read = found.and_then(|_| (&self.file).take(length).read_to_end(&mut bytes));
        read.map_err(|error| Failure::io(&self.name, "read", &error))?;
        Ok(bytes)
    }

    /// Where everything is in the index; the error says what other file this is.
    fn layout(&mut self, path: &Path) -> Result<PlanesLayout, Failure> {
        let head = self.read(0, EVIDENCE_BYTES)?;
        let tail = self.read(self.length.saturating_sub(EVIDENCE_BYTES), EVIDENCE_BYTES)?;
        let message = match recognise(&path.to_string_lossy(), &head, &tail, Some(self.length)) {
            Ok(format) if format == Format::PLANES => None,
            Ok(format) => Some(format!(
                "a filter of format {format}, not planes: look keys up in it by blocked-bloom query"
            )),
            _ => Some("not planes: give an index that planes build wrote".to_owned()),
        };
        if let Some(message) = message {
            return Err(Failure::for_file(&self.name, message));
        }
        PlanesLayout::from_tail_any_hash(&tail, self.length)
            .map_err(|error| Failure::for_file(&self.name, error))
    }

    /// The number of lines of a row, if it is wanted: the one in the index, or else the one given.
    fn lines(&self, layout: &PlanesLayout, args: &QueryArgs) -> Result<Option<u64>, Failure> {
        let stored = layout.options().text().map(|text| text.lines());
        let lines = match (stored, args.lines) {
            (Some(stored), Some(given)) if stored != given => {
                let message = format!("its rows are of {stored} lines, not {given}");
                return Err(Failure::for_file(&self.name, message));
            }
            (None, None) if args.sed => {
                let message = "the index does not say how many lines a row has: give --lines";
                return Err(Failure::for_file(&self.name, message));
            }
            (stored, given) => stored.or(given),
        };
        let is_wanted = args.sed || args.lines.is_some();
        Ok(lines.filter(|_| is_wanted).map(|lines| lines.get().into()))
    }
}

fn query(args: &QueryArgs, verbose: bool) -> Result<ExitCode, Failure> {
    let mut index = Index::open(&args.index)?;
    let layout = index.layout(&args.index)?;
    let name = index.name.clone();
    let fail = |error: PlanesError| Failure::for_file(&name, error);
    let (options, lines) = (layout.options(), index.lines(&layout, args)?);
    let load = |offset, length| index.read(offset, length);
    let (unindexed, warning) = unindexed(&args.index, &layout, args.text.as_deref(), load)?;
    let new_rows = unindexed.as_ref().zip(options.text()).map(|(unindexed, text)| {
        let lines = u64::from(text.lines().get());
        unindexed.first_line / lines..unindexed.last_line / lines + 1
    });
    let indexed = new_rows.as_ref().map_or(u64::MAX, |rows| rows.start);
    let hasher = options.hasher().map_err(|error| Failure::for_file(&name, error))?;
    if let (Some(text), words) = (options.text(), &args.words)
        && let Some(word) = words.iter().find(|word| text.words(word.as_bytes()).next().is_none())
    {
        return Err(Failure::new(format!(
            "no word in '{word}': words are letters, digits, underscores and non-ASCII characters"
        )));
    }
    // For each word its queries: a row that may have it satisfies at least one.
    let words: Vec<Vec<Query>> =
        args.words.iter().map(|word| queries(options, hasher, word.as_bytes())).collect();
    let (mut hits, mut count, mut text) = (Bitmask::new(), 0, String::new());
    for group in 0..layout.groups() {
        let mut at = layout.locate(&Query::default(), group).map_err(fail)?;
        for query in words.iter().flatten() {
            at.planes.extend(layout.locate(query, group).map_err(fail)?.planes);
        }
        at.planes.sort_unstable_by_key(|plane| plane.plane);
        at.planes.dedup();
        let loaded = at.planes.iter().map(|at| index.read(at.offset, at.length));
        let loaded = loaded.collect::<Result<Vec<_>, _>>()?;
        let opened = layout.open(&at, &loaded).map_err(fail)?;
        let rows = layout.rows_of(group);
        let len = (rows.end - rows.start) as usize;
        let mut selected = vec![if args.any { 0 } else { u64::MAX }; len.div_ceil(64)];
        for queries in &words {
            let mut found = vec![0; selected.len()];
            for query in queries {
                opened.query(query, &mut hits).map_err(fail)?;
                found.iter_mut().zip(hits.words()).for_each(|(found, hits)| *found |= hits);
            }
            let both = selected.iter_mut().zip(found);
            both.for_each(|(selected, found)| match args.any {
                true => *selected |= found,
                false => *selected &= found,
            });
        }
        hits.write(len, |words| words.copy_from_slice(&selected));
        let found = hits.hits().map(|hit| rows.start + hit as u64);
        for row in found.filter(|&row| row < indexed) {
            count += 1;
            text += &match lines {
                _ if args.count => continue,
                Some(lines) => {
                    let first = row.saturating_mul(lines);
                    format!("{},{}p\n", first.saturating_add(1), first.saturating_add(lines))
                }
                None => format!("{row}\n"),
            };
        }
    }
    warning.into_iter().for_each(warn);
    if let Some((unindexed, rows)) = unindexed.zip(new_rows) {
        warn(format!(
            "{}, and are printed: run planes build again to search them, too",
            unindexed.describe()
        ));
        count += rows.end - rows.start;
        match lines {
            Some(lines) => text += &format!("{},$p\n", rows.start * lines + 1),
            None => rows.for_each(|row| text += &format!("{row}\n")),
        }
    }
    if args.count {
        text = format!("{count}\n");
    }
    if verbose {
        let Index { bytes_read, length, .. } = index;
        inform(format!("{name}: read {bytes_read} of {length} bytes"));
    }
    print(&text)?;
    Ok(ExitCode::from(u8::from(count == 0)))
}

fn info(args: &InfoArgs) -> Result<ExitCode, Failure> {
    print_facts(&args.index, &FormatArgs::from_format(Format::PLANES), args.json)
}
