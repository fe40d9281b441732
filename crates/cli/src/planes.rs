//! `blocked-bloom planes`: a skip index over the lines of a text, as bit planes.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blocked_bloom::{Bitmask, FilterOptions, KeyHash, KeyHasher};
use blocked_bloom_planes::{Planes, PlanesError, PlanesLayout, PlanesOptions, Query, Shape};
use clap::Subcommand;
use serde_json::json;

use crate::facts::{Facts, sizes};
use crate::failure::{Failure, inform};
use crate::keys::{self, Key, KeyFormat, KeyReader};
use crate::mapping::Bytes;
use crate::numbers::{parse_keys, parse_rate, percent};
use crate::output::{Output, STDIO, print};

/// Bytes of the records that begin and end planes.
const RECORD: u64 = 64;

/// Skip indexes over the lines of a text: which parts of it may have some words
///
/// A row is a number of lines, its items are their words: runs of letters, digits, underscores and bytes that are not ASCII, as they are
/// written. The index is of the package blocked-bloom-planes.
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
/// The text is read twice, first for the words of the row that has most of them, unless --items says how many that are.
#[derive(clap::Args)]
struct BuildArgs {
    /// Text, or - for standard input, which needs --items
    text: PathBuf,

    /// File to write, or - for standard output; replaced whole if it exists [default: TEXT.planes]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Lines that are a row
    #[arg(long, value_name = "N", default_value = "100", value_parser = parse_keys)]
    lines: u64,

    /// Different words of a row, of which the size is for
    #[arg(long, value_name = "N", value_parser = parse_keys)]
    items: Option<u64>,

    /// How often a row may have a word that it does not have, such as 1% or 0.001
    #[arg(long, value_name = "RATE", default_value = "0.1%", value_parser = parse_rate)]
    fpr: f64,

    /// Print nothing about the finished index
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    format: KeyFormat,
}

/// Print the rows that may have all of some words
///
/// Of the index no more is read than the planes of these words. A few rows that are printed do not have them; what is not printed does
/// not.
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

    /// Print the lines of rows of so many lines, for sed -n: 201,300p
    #[arg(long, value_name = "N", value_parser = parse_keys)]
    lines: Option<u64>,

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

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    line.split(move |byte| !is_word(byte)).filter(|word| !word.is_empty())
}

/// Replaces `items` by the hashes of the words of the next row; false at the end.
fn read_row(
    reader: &mut KeyReader,
    key: &mut Key,
    lines: u64,
    hasher: KeyHasher,
    items: &mut HashSet<u64>,
) -> Result<bool, Failure> {
    items.clear();
    for line in 0..lines {
        if !reader.read(key)? {
            return Ok(line > 0);
        }
        items.extend(words(key.as_ref()).map(|word| hasher.hash(word)));
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
    let name = keys::name(&args.text);
    let filters = FilterOptions::default();
    let hasher = filters.hasher().map_err(|error| Failure::of(&name, error))?;
    let (mut key, mut row) = (Key::default(), HashSet::new());
    let items = match args.items {
        Some(items) => items,
        None => {
            let mut reader = KeyReader::open(&args.text, args.format, !args.quiet)?;
            let mut most = 1;
            while read_row(&mut reader, &mut key, args.lines, hasher, &mut row)? {
                most = most.max(row.len() as u64);
            }
            most
        }
    };
    let shape = Shape::for_rate(items, args.fpr).map_err(|error| Failure::of(&name, error))?;
    let options = PlanesOptions::for_filters(&filters, shape);
    // Why writing ended, if it was not for the writer.
    let failure = RefCell::new(None);
    let write = |writer: &mut dyn Write| -> io::Result<()> {
        let written = write_rows(args, &options, hasher, writer);
        written.map_err(|error| match error {
            Stopped::Writer(error) => error,
            Stopped::Other(other) => {
                *failure.borrow_mut() = Some(other);
                io::Error::other("the text could not be read")
            }
        })
    };
    let summary = format!(
        "{shape} for {items} items a row, {} false positives",
        percent(shape.false_positive_rate(items))
    );
    let saved = output.save(&write, (!args.quiet).then_some(&*summary));
    match failure.into_inner() {
        Some(failure) => Err(failure),
        None => saved.map(|()| ExitCode::SUCCESS),
    }
}

enum Stopped {
    Writer(io::Error),
    Other(Failure),
}

fn write_rows(
    args: &BuildArgs,
    options: &PlanesOptions,
    hasher: KeyHasher,
    writer: &mut dyn Write,
) -> Result<(), Stopped> {
    let other = |error: PlanesError| Stopped::Other(Failure::new(error));
    let (mut key, mut row) = (Key::default(), HashSet::new());
    let mut builder = options.builder().map_err(other)?;
    let reader = KeyReader::open(&args.text, args.format, !args.quiet);
    let mut reader = reader.map_err(Stopped::Other)?;
    while read_row(&mut reader, &mut key, args.lines, hasher, &mut row).map_err(Stopped::Other)? {
        if let Some(group) = builder.append(row.iter().copied()).map_err(other)? {
            writer.write_all(&group).map_err(Stopped::Writer)?;
        }
    }
    let rest = builder.finish().map_err(other)?;
    writer.write_all(&rest).map_err(Stopped::Writer)
}

fn query(args: &QueryArgs, verbose: bool) -> Result<ExitCode, Failure> {
    let name = keys::name(&args.index);
    let fail = |error: PlanesError| Failure::of(&name, error);
    let mut file = File::open(&args.index).map_err(|error| Failure::io(&name, "open", &error))?;
    let mut bytes_read = 0;
    let mut read = |offset: u64, length: u64| -> Result<Vec<u8>, Failure> {
        bytes_read += length;
        let mut bytes = Vec::new();
        let result = file.seek(SeekFrom::Start(offset));
        let result = result.and_then(|_| (&file).take(length).read_to_end(&mut bytes));
        result.map_err(|error| Failure::io(&name, "read", &error))?;
        Ok(bytes)
    };
    let length =
        std::fs::metadata(&args.index).map_err(|error| Failure::io(&name, "read", &error))?;
    let length = length.len();
    let tail = read(length.saturating_sub(RECORD), RECORD)?;
    let layout = PlanesLayout::from_tail(&tail, length).map_err(fail)?;
    let hasher = layout.options().hasher().map_err(|error| Failure::of(&name, error))?;
    let hashes = args.words.iter().map(|word| hasher.hash(word));
    let query = if args.any { Query::any(hashes) } else { Query::all(hashes) };
    let (mut hits, mut count, mut text) = (Bitmask::new(), 0, String::new());
    for group in 0..layout.groups() {
        let at = layout.locate(&query, group).map_err(fail)?;
        let loaded = at.planes.iter().map(|at| read(at.offset, at.length));
        let loaded = loaded.collect::<Result<Vec<_>, _>>()?;
        let opened = layout.open(&at, &loaded).map_err(fail)?;
        opened.query(&query, &mut hits).map_err(fail)?;
        count += hits.count_hits();
        for row in hits.hits().map(|hit| layout.rows_of(group).start + hit as u64) {
            text += &match args.lines {
                _ if args.count => continue,
                Some(lines) => {
                    let first = row.saturating_mul(lines);
                    format!("{},{}p\n", first.saturating_add(1), first.saturating_add(lines))
                }
                None => format!("{row}\n"),
            };
        }
    }
    if args.count {
        text = format!("{count}\n");
    }
    if verbose {
        inform(format!("{name}: read {bytes_read} of {length} bytes"));
    }
    print(&text)?;
    Ok(ExitCode::from(u8::from(count == 0)))
}

fn info(args: &InfoArgs) -> Result<ExitCode, Failure> {
    let name = keys::name(&args.index);
    let file = File::open(&args.index).map_err(|error| Failure::io(&name, "open", &error))?;
    let bytes = Bytes::map(&file).map_err(|error| Failure::io(&name, "read", &error))?;
    let planes = Planes::from_bytes(&bytes[..]).map_err(|error| Failure::of(&name, error))?;
    let (layout, shape) = (planes.layout(), planes.shape());
    let options = layout.options();
    let seed = match options.key_hash() {
        KeyHash::Xxh3 { seed } => Some(seed),
        _ => None,
    };
    let facts = Facts {
        json: json!({
            "rows": layout.rows(),
            "groups": layout.groups(),
            "rows_in_a_group": options.group_rows(),
            "blocks": shape.blocks(),
            "block_bits": shape.block_bits(),
            "probes": shape.probes(),
            "planes": shape.planes(),
            "liveness": options.has_liveness(),
            "seed": seed,
            "tag": options.tag(),
            "stored_bytes": bytes.len(),
        }),
        rows: vec![
            ("rows", layout.rows().to_string()),
            ("shape", shape.to_string()),
            ("groups", format!("{} of up to {} rows", layout.groups(), options.group_rows())),
            ("liveness plane", if options.has_liveness() { "yes" } else { "no" }.to_owned()),
            ("hash", options.key_hash().to_string()),
            ("tag", options.tag().to_string()),
            ("stored", sizes(bytes.len() as u64)),
            ("checksums", "all right".to_owned()),
        ],
        list: None,
    };
    let text = match args.json {
        true => format!("{:#}\n", facts.json),
        false => facts.table(str::to_owned),
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
