//! Reading keys: how they are separated and written, how long they may be, and the position of a
//! bad one.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use blocked_bloom_inspect::numbers::parse_size;
use blocked_bloom_inspect::{Content, KeyEncoding, begins_as_filter};
use indicatif::ProgressBar;
use memchr::{memchr, memchr_iter};

use crate::failure::{Failure, warn};
use crate::numbers::counted;
use crate::output::STDIO;
use crate::terminal::progress_bar;

const BUFFER: usize = 1 << 18;

/// The byte order mark of UTF-8, which is not part of the first key.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An error if a file with these first bytes is not a list of keys, or of other `items`.
pub(crate) fn check_start(name: &str, head: &[u8], null: bool, items: &str) -> Result<(), Failure> {
    let content = if null { Content::from_magic(head) } else { Content::from_head(head) };
    let message = match content.map(|content| (content.description(), content.command())) {
        Some((what, Some(command))) => {
            let file = if name == STDIN { "FILE" } else { name };
            format!(
                "is {what}, not a list of {items}: give `{command} {file}` as standard input, or \
                 --raw if these bytes are {items}"
            )
        }
        Some((what, None)) => format!(
            "is {what}, not a list of {items}: write them to a text file first, or give --raw if \
             these bytes are {items}"
        ),
        None if begins_as_filter(head) => format!(
            "begins as a stored filter does, not as a list of {items}: give the filter first, or \
             --raw if these bytes are {items}"
        ),
        None => return Ok(()),
    };
    Err(Failure::for_file(name, message))
}

/// The problem with a line that has NUL bytes.
pub(crate) fn nul_in_line(items: &str) -> String {
    format!(
        "a NUL byte in a line: give --null if NUL bytes end the {items}, `iconv -f UTF-16LE -t \
         UTF-8` (or UTF-16BE) of the file if it is UTF-16 text, or --raw to keep it"
    )
}

/// Counts keys that end with NUL bytes, to detect files of lines and of UTF-16.
#[derive(Clone, Default)]
pub(crate) struct NullList {
    keys: u64,
    line_feeds: usize,
    bytes: usize,
    /// Line feeds after a NUL byte and before one, by the parity of the offset of the pair.
    pairs: [[u64; 2]; 2],
    is_terminated: bool,
}

impl NullList {
    /// Counts a key with the NUL byte that ends it.
    fn add(&mut self, key: &[u8]) {
        self.is_terminated = key.last() == Some(&0);
        self.keys += 1;
        self.line_feeds += memchr_iter(b'\n', key).count();
        self.pairs[0][(self.bytes + 1) % 2] += u64::from(key.starts_with(b"\n"));
        self.bytes += key.len();
        self.pairs[1][self.bytes % 2] += u64::from(key.ends_with(b"\n\0"));
    }

    /// The problem with a list that goes on with these bytes.
    pub(crate) fn problem_with(mut self, bytes: &[u8]) -> Option<String> {
        bytes.split_inclusive(|&byte| byte == 0).for_each(|key| self.add(key));
        let NullList { keys, line_feeds, pairs, is_terminated, .. } = self;
        if keys == 1 && line_feeds > 0 && !is_terminated {
            return Some(format!(
                "no NUL byte and {}: leave out --null, or give --raw if all of it is one key",
                counted(line_feeds as u64, "line feed")
            ));
        }
        // A line feed of UTF-16 begins at an even offset. Keys that end in a line feed and have an
        // even number of bytes are mistaken for it.
        pairs.iter().any(|&[even, odd]| even > 0 && odd == 0).then(|| {
            "looks like UTF-16 text: give `iconv -f UTF-16LE -t UTF-8` (or UTF-16BE) of it without \
             --null, or --raw if NUL bytes end the keys"
                .to_owned()
        })
    }
}

/// The problem with the only line of a file: carriage returns that may end keys.
pub(crate) fn single_line_problem(line: &[u8]) -> Option<String> {
    let returns = memchr_iter(b'\r', line.strip_suffix(b"\r").unwrap_or(line)).count();
    (returns > 0).then(|| {
        format!(
            "one line with {returns} carriage returns in it: if these end lines, give \
             `tr '\\r' '\\n'` of the file, or --raw if they are part of the line"
        )
    })
}

#[derive(clap::Args, Clone, Copy)]
pub(crate) struct KeyFormat {
    /// Keys end with a NUL byte instead of a line feed
    #[arg(long)]
    null: bool,

    /// Each key is given as hexadecimal digits, two per byte
    #[arg(long)]
    hex: bool,

    /// Take the bytes of every line as a key, even if the file is compressed, is UTF-16 or has NUL
    /// bytes, which are errors otherwise, and even a byte order mark, which is otherwise skipped
    #[arg(long)]
    raw: bool,

    /// Longest key, in bytes: a longer line is an error, before it is in memory. Suffixes K, M, G,
    /// KiB, MiB and GiB
    #[arg(long, value_name = "BYTES", default_value = "1MiB", value_parser = parse_size)]
    max_key_bytes: u64,

    /// How a line says which bytes the key has, unless by --hex.
    #[arg(skip)]
    encoding: KeyEncoding,
}

impl KeyFormat {
    pub(crate) fn is_hex(self) -> bool {
        self.hex
    }

    /// The same for keys that are written so.
    pub(crate) fn with_encoding(self, encoding: KeyEncoding) -> Self {
        KeyFormat { encoding, ..self }
    }

    pub(crate) fn encoding(self) -> KeyEncoding {
        if self.hex { KeyEncoding::Hex } else { self.encoding }
    }

    pub(crate) fn terminator(self) -> u8 {
        if self.null { 0 } else { b'\n' }
    }

    pub(crate) fn max_key_bytes(self) -> u64 {
        self.max_key_bytes
    }

    /// Bytes of the text of the longest key.
    fn max_text_bytes(self) -> u64 {
        self.max_key_bytes.saturating_mul(if self.hex { 2 } else { 1 })
    }
}

const STDIN: &str = "standard input";

/// The name of a file, or of standard input for `-`.
pub(crate) fn name(path: &Path) -> String {
    match path == Path::new(STDIO) {
        true => STDIN.to_owned(),
        false => path.display().to_string(),
    }
}

/// The name of one file, or of the first of several.
pub(crate) fn name_of_all(paths: &[PathBuf]) -> String {
    let first = paths.first().map_or_else(String::new, |path| name(path));
    match paths.len() {
        0 | 1 => first,
        files => format!("{first} and {} more", files - 1),
    }
}

/// Checks that filter and keys do not both come from standard input.
pub(crate) fn check_streams(command: &str, filter: &Path, keys: &Path) -> Result<(), Failure> {
    match [filter, keys] == [Path::new(STDIO); 2] {
        true => Err(Failure::new(format!(
            "filter and keys cannot both come from standard input: give the keys as a file, as in \
             blocked-bloom {command} - KEYS"
        ))),
        false => Ok(()),
    }
}

/// A key: its text as read, without the terminator, and the bytes that the text means.
#[derive(Default)]
pub(crate) struct Key {
    text: Vec<u8>,
    decoded: Option<Vec<u8>>,
}

impl Key {
    /// Bytes of memory that a key keeps for the next one: a batch of keys does not keep what its
    /// longest ones took.
    const KEPT: usize = 4096;

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    fn clear(&mut self) {
        for bytes in [Some(&mut self.text), self.decoded.as_mut()].into_iter().flatten() {
            bytes.clear();
            bytes.shrink_to(Self::KEPT);
        }
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        self.decoded.as_ref().unwrap_or(&self.text)
    }
}

/// Many keys, one after another in memory.
#[derive(Default)]
pub(crate) struct KeyBatch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The key before the first: equal neighbours count once.
    previous: Option<Vec<u8>>,
}

impl KeyBatch {
    /// Keys and bytes, whichever comes first, after which a batch is full.
    const MAX_KEYS: usize = 1 << 18;
    const MAX_BYTES: usize = 8 << 20;

    /// Memory of a full batch, and of the keys before and after it. Vectors that grow take up to
    /// twice the memory of their elements.
    pub(crate) fn memory(max_key_bytes: u64) -> u64 {
        let (ends, bytes) = (8 * Self::MAX_KEYS as u64, Self::MAX_BYTES as u64);
        max_key_bytes.saturating_mul(6).saturating_add(ends + 2 * bytes)
    }

    fn last(&self) -> Option<&[u8]> {
        let &end = self.ends.last()?;
        let start = self.ends.iter().rev().nth(1).map_or(0, |&end| end);
        Some(&self.bytes[start..end])
    }

    pub(crate) fn keys(&self) -> Vec<&[u8]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end]).collect()
    }
}

type Observer<'o> = Box<dyn FnMut(&[u8]) + 'o>;

/// Returns what messages call the items. Only the lines of a text are observed.
fn items(observe: &Option<Observer<'_>>) -> &'static str {
    if observe.is_some() { "lines" } else { "keys" }
}

pub(crate) struct KeyReader<'o> {
    name: String,
    input: BufReader<Box<dyn Read>>,
    /// Files that were not opened yet, the next one last.
    unopened: Vec<PathBuf>,
    format: KeyFormat,
    progress: bool,
    bar: ProgressBar,
    keys: u64,
    /// Keys that end in a carriage return.
    returns: u64,
    /// Keys that are not UTF-8.
    others: u64,
    /// The keys with --null.
    list: NullList,
    /// The problem with the first line if it is the only one.
    alone: Option<String>,
    /// Warnings about keys that were read.
    doubts: Vec<String>,
    /// Takes the bytes of every key as they were read, with the terminator.
    observe: Option<Observer<'o>>,
}

impl<'o> KeyReader<'o> {
    /// Opens a file, or standard input for `-`, with a progress bar if that is wanted and the file
    /// is large.
    pub(crate) fn open(path: &Path, format: KeyFormat, progress: bool) -> Result<Self, Failure> {
        Self::open_all(&[path.to_owned()], format, progress)
    }

    /// Opens files that are read one after another, as if they were one. The others are opened when
    /// they are read.
    pub(crate) fn open_all(
        paths: &[PathBuf],
        format: KeyFormat,
        progress: bool,
    ) -> Result<Self, Failure> {
        let mut reader = KeyReader {
            name: String::new(),
            input: BufReader::new(Box::new(io::empty()) as Box<dyn Read>),
            unopened: paths.iter().rev().cloned().collect(),
            format,
            progress,
            bar: ProgressBar::hidden(),
            keys: 0,
            returns: 0,
            others: 0,
            list: NullList::default(),
            alone: None,
            doubts: Vec::new(),
            observe: None,
        };
        reader.open_next()?;
        Ok(reader)
    }

    /// The same for the lines of a text, with a function that takes all bytes as they are read.
    pub(crate) fn with_observer(self, observe: impl FnMut(&[u8]) + 'o) -> Self {
        KeyReader { observe: Some(Box::new(observe)), ..self }
    }

    /// Opens the next file; false if there is none.
    fn open_next(&mut self) -> Result<bool, Failure> {
        self.bar.finish_and_clear();
        let Some(path) = self.unopened.pop() else { return Ok(false) };
        self.note_doubts();
        let name = name(&path);
        let (bar, input): (_, Box<dyn Read>) = if path == Path::new(STDIO) {
            (ProgressBar::hidden(), Box::new(io::stdin().lock()))
        } else {
            let file = File::open(&path).map_err(|error| Failure::io(&name, "open", &error))?;
            let bytes = file.metadata().ok().filter(|file| file.is_file());
            let bar = progress_bar(&name, bytes.map_or(0, |file| file.len()), self.progress);
            (bar.clone(), Box::new(bar.wrap_read(file)))
        };
        self.input = BufReader::with_capacity(BUFFER, input);
        (self.name, self.bar, self.list) = (name, bar, NullList::default());
        (self.keys, self.returns, self.others) = (0, 0, 0);
        Ok(true)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Warns if keys look like lines of a Windows text file, whose carriage returns would be parts
    /// of keys.
    pub(crate) fn warn_of_doubtful_keys(&mut self) {
        self.note_doubts();
        self.doubts.drain(..).for_each(warn);
    }

    /// Keeps the warning about the current file.
    fn note_doubts(&mut self) {
        let KeyReader { name, keys, returns, others, format, observe, .. } = self;
        let (returns, others) = (std::mem::take(returns), std::mem::take(others));
        let items = items(observe);
        if others > 0 {
            self.doubts.push(format!(
                "{name}: {others} of {keys} {items} are not UTF-8, and are hashed as they are \
                 (iconv -f WINDOWS-1252 -t UTF-8 converts them if they are of that encoding)"
            ));
        }
        // Those after a number or a UUID, or between words, are not part of the key.
        let are_parts = !format.null && format.encoding() == KeyEncoding::Text;
        if returns > 0 && are_parts && observe.is_none() {
            self.doubts.push(format!(
                "{name}: {returns} of {keys} keys end in a carriage return, which is part of the \
                 key (tr -d '\\r' removes it)"
            ));
        }
    }

    /// An error if a file of keys that end with NUL bytes is one of lines, or of UTF-16, or if
    /// carriage returns end its lines.
    fn check_end(&self) -> Result<(), Failure> {
        let problem = match self.format.null {
            true => self.list.clone().problem_with(&[]),
            false => self.alone.clone().filter(|_| self.keys == 1),
        };
        match problem.filter(|_| !self.format.raw) {
            Some(problem) => Err(Failure::for_file(&self.name, problem)),
            None => Ok(()),
        }
    }

    /// Whether reading the next key may have to wait.
    pub(crate) fn is_drained(&self) -> bool {
        self.input.buffer().is_empty()
    }

    /// Replaces `batch` by the next keys, without those that equal the one before; false at the
    /// end.
    pub(crate) fn read_batch(
        &mut self,
        batch: &mut KeyBatch,
        key: &mut Key,
    ) -> Result<bool, Failure> {
        if let Some(last) = batch.last() {
            batch.previous = Some(last.to_vec());
        }
        batch.bytes.clear();
        batch.ends.clear();
        while batch.ends.len() < KeyBatch::MAX_KEYS
            && batch.bytes.len() < KeyBatch::MAX_BYTES
            && self.read(key)?
        {
            if batch.last().or(batch.previous.as_deref()) != Some(key.as_ref()) {
                batch.bytes.extend_from_slice(key.as_ref());
                batch.ends.push(batch.bytes.len());
            }
        }
        Ok(!batch.ends.is_empty())
    }

    /// Replaces `key` by the next one; false at the end.
    pub(crate) fn read(&mut self, key: &mut Key) -> Result<bool, Failure> {
        let KeyFormat { null, raw, .. } = self.format;
        let (terminator, most) = (self.format.terminator(), self.format.max_text_bytes());
        key.clear();
        // The longest key and its terminator.
        let mut input = self.input.by_ref().take(most.saturating_add(1));
        let read = input.read_until(terminator, &mut key.text);
        if read.map_err(|error| Failure::io(&self.name, "read", &error))? == 0 {
            self.check_end()?;
            return if self.open_next()? { self.read(key) } else { Ok(false) };
        }
        if let Some(observe) = &mut self.observe {
            observe(&key.text);
        }
        self.keys += 1;
        if null {
            self.list.add(&key.text);
        }
        if self.keys == 1 && !raw {
            if key.text.starts_with(BYTE_ORDER_MARK) {
                key.text.drain(..BYTE_ORDER_MARK.len());
                if key.text.is_empty() {
                    self.keys = 0;
                    return self.read(key);
                }
            }
            check_start(&self.name, &key.text, null, items(&self.observe))?;
            if null && let Some(problem) = self.list.clone().problem_with(self.input.buffer()) {
                return Err(Failure::for_file(&self.name, problem));
            }
        }
        let is_terminated = key.text.last() == Some(&terminator);
        if is_terminated {
            key.text.pop();
        } else if key.text.len() as u64 > most {
            return Err(self.too_long(key.text.len()));
        }
        if !null && !raw && memchr(0, &key.text).is_some() {
            return Err(self.bad_last_key(nul_in_line(items(&self.observe))));
        } else if self.keys == 1 {
            self.alone = single_line_problem(&key.text);
        }
        if !is_terminated {
            self.check_end()?;
        }
        self.returns += u64::from(key.text.last() == Some(&b'\r'));
        let encoding = self.format.encoding();
        if encoding == KeyEncoding::Text {
            self.others += u64::from(!raw && str::from_utf8(&key.text).is_err());
        } else {
            let decoded = key.decoded.get_or_insert_default();
            let encoded = encoding.encode(&key.text, decoded);
            encoded.map_err(|problem| self.bad_last_key(problem))?;
        }
        Ok(true)
    }

    /// The error for a key that is longer than the limit. The rest of it was not read.
    fn too_long(&self, found: usize) -> Failure {
        let KeyFormat { null, hex, max_key_bytes: limit, .. } = self.format;
        let (end, other) = match null {
            true => ("NUL", "leave out --null if line feeds end the keys, or give"),
            false => ("end of the line", "give --null if NUL bytes end the keys, or"),
        };
        let (unit, most) = match hex {
            true => ("hex digits", "two for each of the "),
            false => ("bytes", "the "),
        };
        self.bad_last_key(format_args!(
            "{found} {unit} and no {end} yet, more than {most}{limit} bytes of --max-key-bytes: \
             {other} a larger --max-key-bytes"
        ))
    }

    /// The error for the last key that was read.
    pub(crate) fn bad_last_key(&self, problem: impl Display) -> Failure {
        self.bad_key(self.keys, problem)
    }

    /// The error for the key of this number, from 1, in the current file.
    pub(crate) fn bad_key(&self, number: u64, problem: impl Display) -> Failure {
        let unit = if self.format.null { "key" } else { "line" };
        Failure::for_file(&self.name, format!("{unit} {number}: {problem}"))
    }
}

#[cfg(test)]
#[path = "../tests/unit/keys.rs"]
mod tests;
