//! Reading keys: how they are separated and written, and the position of a bad one.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::Path;

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

use crate::failure::{Failure, warn};
use crate::output::STDIO;

const BUFFER: usize = 1 << 18;

/// Bytes of a file below which a build is over before anybody could read a progress bar.
const PROGRESS_FROM: u64 = 16 << 20;

#[derive(clap::Args, Clone, Copy)]
pub(crate) struct KeyFormat {
    /// Keys end with a NUL byte instead of a line feed
    #[arg(long)]
    null: bool,

    /// Each key is given as hexadecimal digits, two per byte
    #[arg(long)]
    hex: bool,
}

impl KeyFormat {
    pub(crate) fn is_hex(self) -> bool {
        self.hex
    }

    pub(crate) fn terminator(self) -> u8 {
        if self.null { 0 } else { b'\n' }
    }
}

/// A key: the text it was read from, without the terminator, and the bytes it stands for.
#[derive(Default)]
pub(crate) struct Key {
    text: Vec<u8>,
    decoded: Option<Vec<u8>>,
}

impl Key {
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
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
    before: Option<Vec<u8>>,
}

impl KeyBatch {
    /// Keys and bytes, whichever comes first, after which a batch is full.
    const MAX_KEYS: usize = 1 << 18;
    const MAX_BYTES: usize = 8 << 20;

    /// Memory of a full batch, unless its last key is longer than a mebibyte.
    pub(crate) const MEMORY: u64 = (Self::MAX_KEYS * 8 + 2 * (Self::MAX_BYTES + (1 << 20))) as u64;

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
    format: KeyFormat,
    keys: u64,
    /// Keys that end in a carriage return.
    returns: u64,
}

impl KeyReader {
    /// Opens a file, or standard input for `-`, with a progress bar if that is wanted and the file is large.
    pub(crate) fn open(path: &Path, format: KeyFormat, progress: bool) -> Result<Self, Failure> {
        let (name, input): (_, Box<dyn Read>) = if path == Path::new(STDIO) {
            ("standard input".to_owned(), Box::new(io::stdin().lock()))
        } else {
            let name = path.display().to_string();
            let file = File::open(path).map_err(|error| Failure::io(&name, "open", &error))?;
            let bar = if progress { progress_bar(&file) } else { ProgressBar::hidden() };
            (name, Box::new(bar.wrap_read(file)))
        };
        Ok(KeyReader {
            name,
            input: BufReader::with_capacity(BUFFER, input),
            format,
            keys: 0,
            returns: 0,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Warns if keys look like lines of a Windows text file: looked up without the carriage return they are absent.
    pub(crate) fn warn_of_carriage_returns(&self) {
        if self.returns > 0 && !self.format.null && !self.format.hex {
            warn(format!(
                "{}: {} of {} keys end in a carriage return, which is part of the key (tr -d '\\r' removes it)",
                self.name, self.returns, self.keys
            ));
        }
    }

    /// Whether reading the next key may have to wait.
    pub(crate) fn is_drained(&self) -> bool {
        self.input.buffer().is_empty()
    }

    /// Replaces `batch` by the next keys, without those that equal the one before; false at the end.
    pub(crate) fn read_batch(
        &mut self,
        batch: &mut KeyBatch,
        key: &mut Key,
    ) -> Result<bool, Failure> {
        if let Some(last) = batch.last() {
            batch.before = Some(last.to_vec());
        }
        batch.bytes.clear();
        batch.ends.clear();
        while batch.ends.len() < KeyBatch::MAX_KEYS
            && batch.bytes.len() < KeyBatch::MAX_BYTES
            && self.read(key)?
        {
            if batch.last().or(batch.before.as_deref()) != Some(key.as_ref()) {
                batch.bytes.extend_from_slice(key.as_ref());
                batch.ends.push(batch.bytes.len());
            }
        }
        Ok(!batch.ends.is_empty())
    }

    /// Replaces `key` by the next one; false at the end.
    pub(crate) fn read(&mut self, key: &mut Key) -> Result<bool, Failure> {
        let terminator = self.format.terminator();
        key.text.clear();
        let read = self.input.read_until(terminator, &mut key.text);
        if read.map_err(|error| Failure::io(&self.name, "read", &error))? == 0 {
            return Ok(false);
        }
        if key.text.last() == Some(&terminator) {
            key.text.pop();
        }
        self.keys += 1;
        self.returns += u64::from(key.text.last() == Some(&b'\r'));
        if self.format.hex {
            let decoded = key.decoded.get_or_insert_default();
            decode_hex(&key.text, decoded).map_err(|problem| self.bad_key(0, &problem))?;
        }
        Ok(true)
    }

    /// The error for a key that was read so many keys `before` the last one.
    pub(crate) fn bad_key(&self, before: usize, problem: &str) -> Failure {
        let unit = if self.format.null { "key" } else { "line" };
        Failure::of(&self.name, format!("{unit} {}: {problem}", self.keys - before as u64))
    }
}

fn progress_bar(file: &File) -> ProgressBar {
    let bytes = match file.metadata() {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        _ => 0,
    };
    if bytes < PROGRESS_FROM || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = "{wide_bar} {binary_bytes} of {binary_total_bytes}, {eta} left";
    let style = ProgressStyle::with_template(template);
    ProgressBar::new(bytes)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_finish(ProgressFinish::AndClear)
}

fn decode_hex(text: &[u8], bytes: &mut Vec<u8>) -> Result<(), String> {
    bytes.clear();
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    if let Some(at) = text.iter().position(|&byte| digit(byte).is_none()) {
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
