//! Reading lines many at a time: pieces of files, each of whole lines.

use std::fmt::Display;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressDrawTarget};
use memchr::{memchr, memchr_iter, memrchr};

use super::Args;
use crate::failure::Failure;
use crate::keys::{self, BYTE_ORDER_MARK, NullList, check_start, nul_in_line, single_line_problem};
use crate::output::STDIO;
use crate::stored::stdin;
use crate::terminal::{printable, progress_bar, stream_progress};

/// Bytes that are read at a time: they stay in the second-level cache until their lines are hashed
/// and written. On Zen 4, 64 KiB to 1 MiB take the same time within 5 %, 32 KiB 1.1x the time.
const PIECE: usize = 256 << 10;

/// Bytes of a stream before its progress is shown.
const PROGRESS_FROM: u64 = 16 << 20;

/// The lines of several files, one file after another.
pub(super) struct Input<'a> {
    /// Those that were not opened yet, the next one last.
    files: Vec<&'a Path>,
    name: String,
    file: Option<File>,
    /// Bytes that were read: `given` of them in the piece that was returned, and `filled` with the
    /// start of the next line.
    buffer: Vec<u8>,
    given: usize,
    filled: usize,
    terminator: u8,
    max_line_bytes: usize,
    /// Whether all bytes are lines as they are.
    raw: bool,
    /// What `count` counts.
    unit: &'static str,
    /// Lines of the current file before the piece that was returned, as `count` was told.
    lines: u64,
    /// Whether nothing of the file was returned yet.
    is_start: bool,
    /// Whether the last call to `read` returned fewer bytes than it could have: the next call may
    /// have to wait.
    pub(super) is_drained: bool,
    bar: ProgressBar,
    /// Bytes that were read, and those of all files, or 0 if they are not known.
    bytes: u64,
    total_bytes: u64,
}

impl<'a> Input<'a> {
    /// Nothing is read yet, but files that are not there are errors.
    pub(super) fn new(args: &'a Args, progress: bool) -> Result<Self, Failure> {
        let files = &args.files;
        let lengths =
            files.iter().map(|path| length(path)).collect::<Result<Option<Vec<_>>, _>>()?;
        let first = files.first().map_or_else(String::new, |path| keys::name(path));
        let total_bytes = lengths.map(|lengths| lengths.iter().sum());
        let bar = match total_bytes {
            Some(bytes) => progress_bar(&first, bytes, progress),
            None if progress => stream_progress(&first),
            None => ProgressBar::hidden(),
        };
        Ok(Input {
            files: files.iter().rev().map(PathBuf::as_path).collect(),
            name: first,
            file: None,
            buffer: vec![0; PIECE],
            given: 0,
            filled: 0,
            terminator: args.terminator(),
            max_line_bytes: usize::try_from(args.max_line_bytes).unwrap_or(usize::MAX),
            raw: args.raw,
            unit: if args.csv { "record" } else { "line" },
            lines: 0,
            is_start: false,
            is_drained: false,
            bar,
            bytes: 0,
            total_bytes: total_bytes.unwrap_or(0),
        })
    }

    /// The next lines, each with its terminator, which the last one of a file gets if it has none;
    /// None at the end of all files.
    pub(super) fn next_piece(&mut self) -> Result<Option<&[u8]>, Failure> {
        // Moves the start of the line that the last piece ended in.
        self.buffer.copy_within(self.given..self.filled, 0);
        self.filled -= self.given;
        self.given = 0;
        loop {
            let Some(file) = &mut self.file else {
                match self.files.pop() {
                    Some(path) => self.open(path)?,
                    None => {
                        self.bar.finish_and_clear();
                        return Ok(None);
                    }
                }
                continue;
            };
            if self.filled == self.buffer.len() {
                self.make_room()?;
                continue;
            }
            let read = match file.read(&mut self.buffer[self.filled..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.map_err(|error| Failure::io(&self.name, "read", &error))?,
            };
            let start = self.filled;
            self.filled += read;
            self.is_drained = self.filled < self.buffer.len();
            self.show_progress(read as u64);
            if read == 0 {
                self.file = None;
                if self.filled == 0 {
                    continue;
                }
                self.buffer[self.filled] = self.terminator;
                self.filled += 1;
                self.given = self.filled;
            } else if let Some(at) = memrchr(self.terminator, &self.buffer[start..self.filled]) {
                self.given = start + at + 1;
            } else {
                continue;
            }
            let is_start = std::mem::take(&mut self.is_start) && !self.raw;
            let from = if is_start { self.check_start()? } else { 0 };
            if !self.raw
                && self.terminator != 0
                && let Some(at) = memchr(0, &self.buffer[..self.given])
            {
                let before = memchr_iter(self.terminator, &self.buffer[..at]).count();
                return Err(self.bad_line(before as u64, nul_in_line("lines")));
            }
            return Ok(Some(&self.buffer[from..self.given]));
        }
    }

    pub(super) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Where the first line of a file begins, after a byte order mark; an error if the file is not
    /// lines.
    fn check_start(&self) -> Result<usize, Failure> {
        let (piece, is_null) = (&self.buffer[..self.given], self.terminator == 0);
        check_start(&self.name, piece, is_null, "lines")?;
        let is_whole = self.file.is_none();
        let line = piece.strip_suffix(b"\n").unwrap_or(piece);
        let problem = if is_null {
            // The end of the file got the last NUL byte.
            NullList::default().problem_with(&self.buffer[..self.filled - usize::from(is_whole)])
        } else {
            single_line_problem(line).filter(|_| is_whole && memchr(b'\n', line).is_none())
        };
        if let Some(problem) = problem {
            return Err(Failure::for_file(&self.name, problem));
        }
        Ok(if piece.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 })
    }

    /// Keeps the last bytes of the last piece, a record that is not whole, for the next piece. An
    /// error if the file has no more.
    pub(super) fn keep(&mut self, bytes: usize) -> Result<(), Failure> {
        self.given -= bytes;
        match self.file {
            Some(_) => Ok(()),
            None => Err(self.bad_line(
                0,
                "a quoted field does not end: close its quote, or give --raw without --csv",
            )),
        }
    }

    /// Takes the number of lines of the last piece, so that an error can name a line.
    pub(super) fn count(&mut self, lines: u64) {
        self.lines += lines;
    }

    /// A handle of the progress bar, to print something while it is hidden.
    pub(super) fn bar(&self) -> ProgressBar {
        self.bar.clone()
    }

    fn open(&mut self, path: &Path) -> Result<(), Failure> {
        self.name = keys::name(path);
        let file = if path == Path::new(STDIO) { stdin() } else { File::open(path) };
        self.file = Some(file.map_err(|error| Failure::io(&self.name, "open", &error))?);
        self.lines = 0;
        self.is_start = true;
        self.bar.set_message(printable(&self.name));
        Ok(())
    }

    /// The error for a line of the last piece: how many lines of the piece come before it, and how
    /// many of its bytes were found.
    pub(super) fn line_too_long(&self, before: u64, found: usize) -> Failure {
        let limit = self.max_line_bytes;
        let (end, other) = match self.terminator {
            _ if self.unit == "record" => ("end of the record", "close its quote, or give"),
            0 => ("NUL", "leave out --null if line feeds end the lines, or give"),
            _ => ("end of the line", "give --null if NUL bytes end the lines, or"),
        };
        let message = format!(
            "{found} bytes and no {end} yet, more than the {limit} bytes of \
             --max-line-bytes: {other} a larger --max-line-bytes"
        );
        self.bad_line(before, message)
    }

    /// The error for a line of the last piece: how many lines of the piece come before it.
    pub(super) fn bad_line(&self, before: u64, problem: impl Display) -> Failure {
        Failure::for_file(
            &self.name,
            format!("{} {}: {problem}", self.unit, self.lines + before + 1),
        )
    }

    /// Makes the buffer larger for a line that does not fit it: up to what holds the longest line
    /// and its terminator.
    fn make_room(&mut self) -> Result<(), Failure> {
        if self.filled > self.max_line_bytes {
            return Err(self.line_too_long(0, self.filled));
        }
        let most = self.max_line_bytes.saturating_add(1).max(PIECE);
        let more = most.min(2 * self.filled) - self.filled;
        let reserved = self.buffer.try_reserve_exact(more);
        reserved.map_err(|error| Failure::for_file(&self.name, format!("a long line: {error}")))?;
        self.buffer.resize(self.filled + more, 0);
        Ok(())
    }

    fn show_progress(&mut self, read: u64) {
        let before = self.bytes;
        self.bytes += read;
        self.bar.inc(read);
        if self.bar.length().is_none() && before < PROGRESS_FROM && self.bytes >= PROGRESS_FROM {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

/// The length of a regular file, also of one that is standard input; None of others.
fn length(path: &Path) -> Result<Option<u64>, Failure> {
    let is_stdin = path == Path::new(STDIO);
    let found = metadata(path);
    let found = found.map_err(|error| Failure::io(&keys::name(path), "open", &error));
    match found {
        Ok(file) if file.is_file() => Ok(Some(file.len())),
        Ok(_) => Ok(None),
        // Closed.
        Err(_) if is_stdin => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn metadata(path: &Path) -> io::Result<Metadata> {
    match path == Path::new(STDIO) {
        true => stdin()?.metadata(),
        false => fs::metadata(path),
    }
}
