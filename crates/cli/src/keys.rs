//! Reading keys: how they are separated and written, how long they may be, and the position of a
//! bad one.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use blocked_bloom_inspect::begins_as_filter;
use blocked_bloom_inspect::numbers::parse_size;
use indicatif::ProgressBar;

use crate::failure::{Failure, warn};
use crate::output::STDIO;
use crate::terminal::progress_bar;

const BUFFER: usize = 1 << 18;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The start of a file that gzip compressed.
const GZIP: &[u8] = b"\x1f\x8b\x08";

/// What is wrong with the first bytes of a file of keys or lines, if it is not what it looks like.
pub(crate) fn doubtful_start(bytes: &[u8], what: &str) -> Option<String> {
    if bytes.starts_with(BYTE_ORDER_MARK) {
        return Some(format!(
            "begins with a UTF-8 byte order mark, which is part of the first {what} (tail -c +4 \
             removes it)"
        ));
    }
    bytes.starts_with(GZIP).then(|| {
        format!("is compressed by gzip, and its bytes are taken as {what}s (zcat decompresses it)")
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

    /// Longest key, in bytes: a longer line is an error, before it is in memory. Suffixes K, M, G,
    /// KiB, MiB and GiB
    #[arg(long, value_name = "BYTES", default_value = "1MiB", value_parser = parse_size)]
    max_key_bytes: u64,
}

impl KeyFormat {
    pub(crate) fn is_hex(self) -> bool {
        self.hex
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

/// A key that is longer than the longest that is allowed. The rest of it was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyTooLong {
    /// Length of its text so far.
    pub(crate) found: u64,
    /// Bytes of the longest key.
    pub(crate) limit: u64,
    pub(crate) null: bool,
    pub(crate) hex: bool,
}

impl Display for KeyTooLong {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let KeyTooLong { found, limit, null, hex } = self;
        let (end, other) = match null {
            true => ("NUL", "leave out --null if line feeds end the keys, or give"),
            false => ("end of the line", "give --null if NUL bytes end the keys, or"),
        };
        let (unit, most) = match hex {
            true => ("hex digits", "two for each of the "),
            false => ("bytes", "the "),
        };
        write!(
            f,
            "{found} {unit} and no {end} yet, more than {most}{limit} bytes of --max-key-bytes: \
             {other} a larger --max-key-bytes"
        )
    }
}

impl Error for KeyTooLong {}

/// The name of a file, or of standard input for `-`.
pub(crate) fn name(path: &Path) -> String {
    match path == Path::new(STDIO) {
        true => "standard input".to_owned(),
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

/// A key: the text it was read from, without the terminator, and the bytes it stands for.
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
    /// twice what they hold.
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

pub(crate) struct KeyReader {
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
    /// What is wrong with the start of the first key, and whether it is that of a filter.
    doubtful_start: Option<String>,
    is_filter: bool,
    /// Warnings about keys that were read.
    doubts: Vec<String>,
}

impl KeyReader {
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
            doubtful_start: None,
            is_filter: false,
            doubts: Vec::new(),
        };
        reader.open_next()?;
        Ok(reader)
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
        (self.name, self.bar, self.keys, self.returns) = (name, bar, 0, 0);
        Ok(true)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Warns if keys look like lines of a Windows text file, whose carriage returns and byte order
    /// mark would be parts of keys, or if they begin as a stored filter does.
    pub(crate) fn warn_of_doubtful_keys(&mut self) {
        self.note_doubts();
        self.doubts.drain(..).for_each(warn);
    }

    /// Keeps what the warnings will say of the current file.
    fn note_doubts(&mut self) {
        let KeyReader { name, keys, returns, format, .. } = self;
        let start = self.doubtful_start.take();
        let is_filter = std::mem::take(&mut self.is_filter);
        let returns = std::mem::take(returns);
        if format.hex {
            return;
        }
        if is_filter {
            let doubt = "begins as a stored filter does: is it the file of keys?";
            self.doubts.push(format!("{name}: {doubt}"));
            return;
        }
        if let Some(doubt) = start {
            self.doubts.push(format!("{name}: {doubt}"));
        }
        if returns > 0 && !format.null {
            self.doubts.push(format!(
                "{name}: {returns} of {keys} keys end in a carriage return, which is part of the \
                 key (tr -d '\\r' removes it)"
            ));
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
        let (terminator, most) = (self.format.terminator(), self.format.max_text_bytes());
        key.clear();
        // The longest key and its terminator.
        let mut input = self.input.by_ref().take(most.saturating_add(1));
        let read = input.read_until(terminator, &mut key.text);
        if read.map_err(|error| Failure::io(&self.name, "read", &error))? == 0 {
            return if self.open_next()? { self.read(key) } else { Ok(false) };
        }
        self.keys += 1;
        if key.text.last() == Some(&terminator) {
            key.text.pop();
        } else if key.text.len() as u64 > most {
            let KeyFormat { null, hex, max_key_bytes: limit } = self.format;
            let error = KeyTooLong { found: key.text.len() as u64, limit, null, hex };
            return Err(self.bad_key(0, error));
        }
        if self.keys == 1 {
            self.doubtful_start = doubtful_start(&key.text, "key");
            self.is_filter = begins_as_filter(&key.text);
        }
        self.returns += u64::from(key.text.last() == Some(&b'\r'));
        if self.format.hex {
            let decoded = key.decoded.get_or_insert_default();
            decode_hex(&key.text, decoded).map_err(|problem| self.bad_key(0, problem))?;
        }
        Ok(true)
    }

    /// The error for a key that was read `before` keys ahead of the last one.
    pub(crate) fn bad_key(&self, before: usize, problem: impl Display) -> Failure {
        let unit = if self.format.null { "key" } else { "line" };
        Failure::for_file(&self.name, format!("{unit} {}: {problem}", self.keys - before as u64))
    }
}

fn decode_hex(text: &[u8], bytes: &mut Vec<u8>) -> Result<(), String> {
    bytes.clear();
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    if let Some(at) = text.iter().position(|&byte| digit(byte).is_none()) {
        if text.starts_with(BYTE_ORDER_MARK) {
            return Err("begins with a UTF-8 byte order mark (tail -c +4 removes it)".to_owned());
        }
        let found = text[at].escape_ascii();
        let column = at + 1;
        return Err(format!("found '{found}' at column {column}, expected a hex digit"));
    }
    let (pairs, odd) = text.as_chunks();
    if !odd.is_empty() {
        let digits = text.len();
        return Err(format!("found an odd number of hex digits ({digits}), expected two per byte"));
    }
    bytes.extend(pairs.iter().filter_map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{KeyBatch, KeyTooLong};

    #[test]
    fn a_key_that_is_too_long_says_what_to_do() {
        let error = KeyTooLong { found: 65, limit: 64, null: false, hex: false };
        assert_eq!(
            error.to_string(),
            "65 bytes and no end of the line yet, more than the 64 bytes of --max-key-bytes: \
             give --null if NUL bytes end the keys, or a larger --max-key-bytes"
        );
        let error = KeyTooLong { found: 129, limit: 64, null: true, hex: true };
        assert_eq!(
            error.to_string(),
            "129 hex digits and no NUL yet, more than two for each of the 64 bytes of \
             --max-key-bytes: \
             leave out --null if line feeds end the keys, or give a larger --max-key-bytes"
        );
    }

    #[test]
    fn the_longest_key_is_part_of_a_batch() {
        assert_eq!(KeyBatch::memory(1 << 20), 24 << 20);
        assert_eq!(KeyBatch::memory(u64::MAX), u64::MAX);
    }
}
