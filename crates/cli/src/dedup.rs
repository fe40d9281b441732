//! `blocked-bloom dedup`: lines that were certainly not there before.

mod fields;
mod input;
mod losses;
mod seen;

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blocked_bloom_inspect::numbers::{parse_bytes, parse_keys, parse_rate, parse_size, percent};
use indicatif::ProgressBar;
use memchr::memchr_iter;

use self::fields::{Records, field, quote_problem};
use self::input::Input;
use self::seen::{Excess, Seen};
use crate::failure::{Failure, inform, warn};
use crate::file_format::FormatArgs;
use crate::keys;
use crate::output::{Output, STDIO, print};
use crate::stored::{Reading, Stored};

/// Lines that are looked up at a time.
const BATCH: usize = 2048;

/// Bytes of lines that are written at a time.
const WRITTEN: usize = 256 << 10;

/// Print each line that was not there before
///
/// Prints the first of equal lines, in the order of the input, and drops the others. A line is
/// never printed twice. A few new lines are dropped too, because the filter mistakes them for
/// earlier ones; --fpr limits their rate, and their number is estimated at the end, on standard
/// error.
///
/// The tool keeps a filter of the lines' hashes, not the lines. --memory or --keys fixes its size.
/// Without either, the filter grows: each part is twice as large as the one before. If a filter of
/// fixed size receives more lines than planned, the tool warns and continues with a rising rate, up
/// to 50%; a higher rate is an error unless --overfull is given.
///
/// A line is its bytes without the line feed, which the last line of a file need not have; it is
/// printed with one. A carriage return is part of the line. NUL bytes are part of it only
/// with --raw.
///
/// Exit status: 0, or 2 after an error; then --state is as it was before.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Files of lines, one after another, or - for standard input
    #[arg(value_name = "FILE", default_value = STDIO)]
    files: Vec<PathBuf>,

    /// Bytes of memory for the filter, besides a few megabytes for reading and writing. It is for
    /// as many lines as this suffices for at --fpr. Suffixes K, M, G, KiB, MiB and GiB
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, conflicts_with = "keys")]
    memory: Option<u64>,

    /// Distinct lines that the filter is for, at --fpr. Suffixes K, M and G
    #[arg(long, value_name = "N", value_parser = parse_keys)]
    keys: Option<u64>,

    /// Highest false-positive rate: the chance that a line which was not there before is dropped.
    /// 0.001 and 0.1% are the same [default: 0.1%]
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    fpr: Option<f64>,

    /// Go on when more than half of the new lines are dropped, which is an error otherwise
    #[arg(long)]
    overfull: bool,

    /// File of the filter, to go on with another day: read if it exists, and replaced whole when
    /// all lines are printed. info and query read it, too
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// Print the other lines instead: those that were there before
    #[arg(long)]
    duplicates: bool,

    /// Print only the number of lines
    #[arg(long)]
    count: bool,

    /// Compare only this field of the lines, the first being 1. It is empty in lines that do not
    /// have it, so only the first of these is printed. It is an error when it is empty in most of
    /// the lines so far: if the first 10,000 have it, up to 10,000 others are dropped before that
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    field: Option<u32>,

    /// The input is CSV: quotes may enclose fields with delimiters and line feeds in them, and a
    /// record may have several lines
    #[arg(long, requires = "field", conflicts_with = "null")]
    csv: bool,

    /// Byte that ends a field, such as , or \t [default: \t, or , with --csv]
    #[arg(long, value_name = "BYTE", value_parser = parse_delimiter, requires = "field")]
    delimiter: Option<u8>,

    /// Lines end with a NUL byte instead of a line feed
    #[arg(long)]
    null: bool,

    /// Take the bytes of the input as they are, even if it is compressed, is UTF-16, has NUL bytes,
    /// or has quotes around fields without --csv: all of these are errors otherwise. A byte order
    /// mark is then part of the first line
    #[arg(long)]
    raw: bool,

    /// Longest line, in bytes: a longer one is an error, before it is in memory. Suffixes K, M, G,
    /// KiB, MiB and GiB
    #[arg(long, value_name = "BYTES", default_value = "16MiB", value_parser = parse_size)]
    max_line_bytes: u64,

    /// Print neither the progress bar nor the number of dropped lines
    #[arg(short, long)]
    quiet: bool,
}

fn parse_delimiter(text: &str) -> Result<u8, String> {
    match (text, text.as_bytes()) {
        ("\\t", _) => Ok(b'\t'),
        (_, &[byte]) => Ok(byte),
        _ => Err("give one byte, or \\t for a tab".to_owned()),
    }
}

/// A delimiter as the command line of a shell takes it.
fn shown(delimiter: u8) -> String {
    match delimiter {
        b'\t' => "\\t".to_owned(),
        byte => format!("'{}'", byte.escape_ascii()),
    }
}

impl Args {
    fn is_sized(&self) -> bool {
        self.memory.is_some() || self.keys.is_some() || self.fpr.is_some()
    }

    fn terminator(&self) -> u8 {
        if self.null { 0 } else { b'\n' }
    }

    fn delimiter(&self) -> u8 {
        self.delimiter.unwrap_or(if self.csv { b',' } else { b'\t' })
    }

    /// The compared part of a line; None if the field is empty, or the line does not have it.
    fn key<'a>(&self, line: &'a [u8]) -> Result<Option<&'a [u8]>, String> {
        let Some(number) = self.field else { return Ok(Some(line)) };
        let delimiter = self.delimiter();
        match quote_problem(line, number, delimiter).filter(|_| !self.raw) {
            Some(problem) => Err(problem),
            None => Ok(field(line, number, delimiter).filter(|field| !field.is_empty())),
        }
    }

    /// The delimiters by which a line has the field, for a message.
    fn delimiters_in(&self, line: &[u8]) -> String {
        let fields = self.field.unwrap_or(1) as usize;
        let delimiters = b"\t,;|: ".iter().copied();
        let found = delimiters
            .filter(|&delimiter| {
                memchr_iter(delimiter, line).take(fields - 1).count() + 1 == fields
            })
            .map(shown);
        found.collect::<Vec<_>>().join(" or ")
    }

    /// The filter, and where it will be written; for an input of this many bytes, or 0 if that is
    /// not known.
    fn state(&self, input_bytes: u64) -> Result<(Seen, Option<Output>), Failure> {
        let Some(path) = &self.state else { return Ok((Seen::new(self, input_bytes)?, None)) };
        let fail = |message| Err(Failure::for_file(&path.display().to_string(), message));
        if path == Path::new(STDIO) {
            return fail("--state is a file, which is read and written");
        }
        let output = Output::new(path)?;
        match fs::metadata(path) {
            Ok(file) if !file.is_file() => fail("is not a regular file, which --state must be"),
            Ok(_) => {
                let hidden = ProgressBar::hidden();
                let reading = Reading { bar: self.quiet.then_some(&hidden), keys: None };
                let stored = Stored::read(path, &FormatArgs::default(), &reading)?;
                Ok((Seen::open(&stored, self)?, Some(output)))
            }
            Err(_) => Ok((Seen::new(self, input_bytes)?, Some(output))),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let stdout = stdout().map_err(|error| Failure::io("standard output", "open", &error))?;
    check_files(args, &stdout)?;
    let progress = !args.quiet && (args.count || !stdout.is_terminal());
    let mut input = Input::new(args, progress)?;
    let (seen, state) = args.state(input.total_bytes())?;
    let mut work = Work {
        args,
        seen,
        output: BufWriter::with_capacity(WRITTEN, stdout),
        excess: Excess::None,
        bar: input.bar(),
        lines: 0,
        new: 0,
        returns: 0,
        lacking: 0,
    };
    match work.take_all(&mut input) {
        Ok(()) => {}
        Err(Stopped::Failure(failure)) => return Err(failure),
        Err(Stopped::TooLong(line, found)) => return Err(input.line_too_long(line, found)),
        Err(Stopped::BadLine(line, problem)) => return Err(input.bad_line(line, problem)),
        // The reader has seen enough. With --state that is an error: lines that it did not read
        // must not count as seen another day.
        Err(Stopped::Writer(error)) if error.kind() == ErrorKind::BrokenPipe && state.is_none() => {
            return Ok(ExitCode::SUCCESS);
        }
        Err(Stopped::Writer(error)) => return Err(Failure::io("standard output", "write", &error)),
    }
    if args.count && !print(&format!("{}\n", work.selected()))? {
        return match state {
            None => Ok(ExitCode::SUCCESS),
            Some(_) => Err(Failure::for_file(
                "standard output",
                "its reader is gone: --state is as it was",
            )),
        };
    }
    if let Some(state) = state {
        work.seen.save(&state, args.quiet)?;
    }
    work.warn_of_returns();
    work.warn_of_lacking();
    if !args.quiet {
        inform(work.summary());
    }
    Ok(ExitCode::SUCCESS)
}

/// Standard output without a buffer of the library's, which looks for the last line feed.
fn stdout() -> io::Result<File> {
    #[cfg(windows)]
    let owned = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned();
    #[cfg(not(windows))]
    let owned = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned();
    owned.map(File::from)
}

/// Checks that no file is both read and written: an input that is the state would be replaced, one
/// that is the output would grow for ever.
fn check_files(args: &Args, stdout: &File) -> Result<(), Failure> {
    let state = args.state.as_deref().and_then(|state| fs::canonicalize(state).ok());
    let is_output = |path: &Path| is_same_file(path, stdout).unwrap_or(false);
    for path in args.files.iter().chain(&args.state) {
        if is_output(path) {
            return Err(Failure::for_file(&keys::name(path), "is also the standard output"));
        }
    }
    for path in &args.files {
        if state.is_some() && fs::canonicalize(path).ok() == state {
            return Err(Failure::for_file(
                &keys::name(path),
                "is also the --state, which would replace it",
            ));
        }
    }
    Ok(())
}

/// Whether an open file is the regular file with this name.
fn is_same_file(path: &Path, file: &File) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let (left, right) = (input::metadata(path)?, file.metadata()?);
        Ok(left.is_file() && (left.dev(), left.ino()) == (right.dev(), right.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = (path, file);
        Ok(false)
    }
}

/// Why not all lines were read.
enum Stopped {
    Writer(io::Error),
    /// A line of the last piece, whose position in it is given, is too long, with its length.
    TooLong(u64, usize),
    /// The problem with a line of the last piece, or with all lines up to it.
    BadLine(u64, String),
    Failure(Failure),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Stopped::Failure(failure)
    }
}

struct Work<'a> {
    args: &'a Args,
    seen: Seen,
    output: BufWriter<File>,
    /// The worst that was warned of.
    excess: Excess,
    bar: ProgressBar,
    lines: u64,
    /// Of these, that were certainly not there before.
    new: u64,
    /// Lines that end in a carriage return.
    returns: u64,
    /// Lines that do not have the field.
    lacking: u64,
}

impl Work<'_> {
    fn take_all(&mut self, input: &mut Input<'_>) -> Result<(), Stopped> {
        let mut records = match (self.args.csv, self.args.field) {
            (true, Some(number)) => {
                Some(Records::new(number, self.args.delimiter(), self.args.raw))
            }
            _ => None,
        };
        while let Some(piece) = input.next_piece()? {
            let (length, before) = (piece.len(), self.lines);
            let taken = match &mut records {
                Some(records) => self.take_records(piece, records)?,
                None => self.take(piece).map(|()| length)?,
            };
            input.count(self.lines - before);
            if taken < length {
                input.keep(length - taken)?;
            }
            if input.is_drained {
                // A person or a program that writes line by line should see the answers.
                self.output.flush().map_err(Stopped::Writer)?;
            }
        }
        self.output.flush().map_err(Stopped::Writer)
    }

    /// Looks up lines, each of which ends with the terminator, and writes those that are selected.
    /// Ends before a line that is too long, and before most lines do not have the field.
    fn take(&mut self, piece: &[u8]) -> Result<(), Stopped> {
        let mut keys = [[].as_slice(); BATCH];
        let mut starts = [0; BATCH + 1];
        let (mut len, mut lines, mut lacking) = (0, 0, None);
        for end in memchr_iter(self.args.terminator(), piece) {
            let line = &piece[starts[len]..end];
            let at = lines + len as u64;
            self.check_line(at, line)?;
            let key = self.args.key(line).map_err(|problem| Stopped::BadLine(at, problem))?;
            if key.is_none() {
                lacking = Some((at, line));
            }
            keys[len] = self.key_or_empty(key);
            len += 1;
            starts[len] = end + 1;
            if len == BATCH {
                self.check_fields(len, lacking.take())?;
                self.take_batch(piece, &keys, &starts)?;
                (lines, len, starts[0]) = (lines + BATCH as u64, 0, end + 1);
            }
        }
        self.check_fields(len, lacking)?;
        self.take_batch(piece, &keys[..len], &starts[..=len])
    }

    /// The same for CSV; returns the bytes of all whole records.
    fn take_records(&mut self, piece: &[u8], records: &mut Records) -> Result<usize, Stopped> {
        let (mut starts, mut lines) = (vec![0], 0);
        let (mut fields, mut ends, mut lacking) = (Vec::new(), vec![0], None);
        loop {
            let start = starts[starts.len() - 1];
            let len = starts.len() - 1;
            let at = lines + len as u64;
            let record = records.next(&piece[start..]);
            let record = record.map_err(|problem| Stopped::BadLine(at, problem))?;
            if let Some(record) = &record {
                let line = &piece[start..start + record.length - 1];
                self.check_line(at, line)?;
                if record.field.is_none() {
                    lacking = Some((at, line));
                }
                fields.extend_from_slice(self.key_or_empty(record.field));
                ends.push(fields.len());
                starts.push(start + record.length);
            }
            let len = starts.len() - 1;
            if len == BATCH || record.is_none() {
                self.check_fields(len, lacking.take())?;
                let keys: Vec<&[u8]> = ends.windows(2).map(|at| &fields[at[0]..at[1]]).collect();
                self.take_batch(piece, &keys, &starts)?;
                let end = starts[len];
                if record.is_none() {
                    return Ok(end);
                }
                (starts, lines) = (vec![end], lines + len as u64);
                (fields, ends) = (Vec::new(), vec![0]);
            }
        }
    }

    fn check_line(&mut self, at: u64, line: &[u8]) -> Result<(), Stopped> {
        let most = usize::try_from(self.args.max_line_bytes).unwrap_or(usize::MAX);
        self.returns += u64::from(line.last() == Some(&b'\r'));
        if line.len() > most { Err(Stopped::TooLong(at, line.len())) } else { Ok(()) }
    }

    fn key_or_empty<'k>(&mut self, key: Option<&'k [u8]>) -> &'k [u8] {
        self.lacking += u64::from(key.is_none());
        key.unwrap_or_default()
    }

    /// An error if most lines, with so many that are still to be looked up, do not have the field:
    /// all but the first of these would be dropped. `last` is one of them, and its position in the
    /// piece.
    fn check_fields(&self, len: usize, last: Option<(u64, &[u8])>) -> Result<(), Stopped> {
        let (lacking, lines) = (self.lacking, self.lines + len as u64);
        let Some((at, line)) = last.filter(|_| lacking > 1 && lacking > lines / 2) else {
            return Ok(());
        };
        let (field, delimiter) = (self.args.field.unwrap_or(1), shown(self.args.delimiter()));
        let advice = match &self.args.delimiters_in(line)[..] {
            "" => "are it and --field right?".to_owned(),
            others => format!("this line has it with --delimiter {others}"),
        };
        let problem = format!(
            "{lacking} of the first {lines} lines have no field {field} with --delimiter \
             {delimiter}: {advice}"
        );
        Err(Stopped::BadLine(at, problem))
    }

    /// Takes lines whose bytes are between these `starts` in the piece.
    fn take_batch(
        &mut self,
        piece: &[u8],
        keys: &[&[u8]],
        starts: &[usize],
    ) -> Result<(), Stopped> {
        self.seen.insert(keys)?;
        self.check_excess()?;
        let new = self.seen.new_lines();
        self.lines += keys.len() as u64;
        self.new += new.count_hits() as u64;
        if self.args.count {
            return Ok(());
        }
        let unwanted = if self.args.duplicates { u64::MAX } else { 0 };
        for (i, &word) in new.words().iter().enumerate() {
            let starts = &starts[64 * i..];
            let used = u64::MAX >> (64 - (starts.len() - 1).min(64));
            let mut wanted = (word ^ unwanted) & used;
            // Lines that follow each other are written at once.
            while wanted != 0 {
                let from = wanted.trailing_zeros();
                let to = from + (wanted >> from).trailing_ones();
                let lines = &piece[starts[from as usize]..starts[to as usize]];
                self.output.write_all(lines).map_err(Stopped::Writer)?;
                wanted &= u64::MAX.checked_shl(to).unwrap_or(0);
            }
        }
        Ok(())
    }

    /// Warns if the filter is worse than before; an error if it drops more than half of all new
    /// lines.
    fn check_excess(&mut self) -> Result<(), Failure> {
        let excess = self.seen.excess();
        if excess <= self.excess {
            return Ok(());
        }
        self.excess = excess;
        let message = self.seen.describe_excess();
        let advice = "give more --memory or --keys, or neither for a filter that grows";
        if excess == Excess::Overfull && !self.args.overfull {
            return Err(Failure::new(format!("{message}: {advice}, or --overfull to go on")));
        }
        self.bar.suspend(|| warn(format!("{message}: {advice}")));
        Ok(())
    }

    /// Lines that are printed.
    fn selected(&self) -> u64 {
        if self.args.duplicates { self.lines - self.new } else { self.new }
    }

    fn warn_of_returns(&self) {
        let Work { lines, returns, .. } = self;
        if *returns > 0 && returns < lines {
            warn(format!(
                "{returns} of {lines} lines end in a carriage return, which is part of the line, \
                 and the others do not (tr -d '\\r' removes it)"
            ));
        }
    }

    fn warn_of_lacking(&self) {
        let Work { lines, lacking, args, .. } = self;
        if *lacking > 1 {
            let field = args.field.unwrap_or(1);
            warn(format!(
                "{lacking} of {lines} lines have no field {field}: of those only the first is new"
            ));
        }
    }

    fn summary(&self) -> String {
        let Work { lines, new, seen, .. } = self;
        let dropped = lines - new;
        let (wrong, rate) = seen.probably_wrong();
        let wrong = wrong.min(dropped as f64);
        let wrong = if wrong < 10.0 { format!("{wrong:.2}") } else { format!("{wrong:.0}") };
        format!(
            "{lines} lines, {new} not there before, {dropped} dropped, of which probably {wrong} \
             were not there before either (false positives: {} now)",
            percent(rate)
        )
    }
}
