//! The text of an index: its state when it was indexed, and later changes.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use blocked_bloom_planes::{PlanesLayout, TextState};
use memchr::memchr_iter;
use xxhash_rust::xxh3::Xxh3;

use crate::failure::Failure;
use crate::keys;

/// Bytes that are read of a text, with their lines.
pub(super) struct Digest {
    hasher: Xxh3,
    bytes: u64,
    terminators: u64,
    last: Option<u8>,
    terminator: u8,
}

impl Digest {
    pub(super) fn new(terminator: u8) -> Self {
        Digest { hasher: Xxh3::new(), bytes: 0, terminators: 0, last: None, terminator }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        self.terminators += memchr_iter(self.terminator, bytes).count() as u64;
        self.last = bytes.last().copied().or(self.last);
    }

    fn ends_in_line(&self) -> bool {
        self.last.is_some_and(|last| last != self.terminator)
    }

    /// The state of a text of these bytes.
    pub(super) fn state(&self, modified: u64) -> TextState {
        let lines = self.terminators + u64::from(self.ends_in_line());
        let state = TextState::new(self.bytes, lines, self.hasher.digest());
        state.with_modified(modified).with_terminator(self.terminator)
    }
}

/// The time of a file's last modification; 0 if it is not known, or so late that a later change
/// could have the same time, since file systems count in steps of up to two seconds.
pub(super) fn settled_time(text: &Path) -> u64 {
    let modified = std::fs::metadata(text).and_then(|file| file.modified());
    let is_settled = |time: &SystemTime| {
        SystemTime::now().duration_since(*time).is_ok_and(|age| age > Duration::from_secs(2))
    };
    modified.ok().filter(is_settled).map_or(0, nanoseconds)
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(0)
}

/// Lines of a text that came after it was indexed, from 0.
pub(crate) struct Unindexed {
    pub(crate) text: String,
    pub(crate) first_line: u64,
    pub(crate) last_line: u64,
}

impl Unindexed {
    /// The lines that are not in the index, for a message.
    pub(crate) fn describe(&self) -> String {
        let Unindexed { text, first_line, last_line } = self;
        let (first, last) = (first_line + 1, last_line + 1);
        format!("{text}: has grown since it was indexed: lines {first} to {last} are not indexed")
    }
}

/// The lines that came since the text was indexed, or a warning if these cannot be known. An error
/// if indexed lines have changed.
pub(crate) fn unindexed(
    index: &Path,
    layout: &PlanesLayout,
    given: Option<&Path>,
    load: impl FnOnce(u64, u64) -> Result<Vec<u8>, Failure>,
) -> Result<(Option<Unindexed>, Option<String>), Failure> {
    const UNCHANGED: (Option<Unindexed>, Option<String>) = (None, None);
    let Some(path) = given.map(Path::to_owned).or_else(|| text_of(index)) else {
        let name = keys::name(index);
        let warning = layout.options().text().map(|_| {
            format!(
                "{name}: the text is not found by the name of the index, and may have changed: \
                 give it by --text"
            )
        });
        return Ok((None, warning));
    };
    let name = keys::name(&path);
    let fail = |error: std::io::Error| Failure::io(&name, "read", &error);
    let file = File::open(&path).map_err(|error| Failure::io(&name, "open", &error))?;
    let metadata = file.metadata().map_err(fail)?;
    let modified = metadata.modified().map_or(0, nanoseconds);
    let Some(at) = layout.locate_text_state() else {
        let indexed = std::fs::metadata(index).and_then(|index| index.modified());
        let is_older = indexed.is_ok_and(|indexed| nanoseconds(indexed) < modified);
        let warning = is_older.then(|| {
            format!(
                "{name}: has changed since it was indexed, and the index does not say where: run \
                 planes build again"
            )
        });
        return Ok((None, warning));
    };
    let state = layout.text_state(&load(at.start, at.end - at.start)?);
    let state = state.map_err(|error| Failure::for_file(&keys::name(index), error))?;
    // Time 0 is unknown, or was set by a tool.
    if metadata.len() == state.bytes && modified == state.modified && modified != 0 {
        return Ok(UNCHANGED);
    }
    let mut text = BufReader::with_capacity(1 << 18, file);
    let indexed = digest(text.by_ref().take(state.bytes), state.terminator).map_err(fail)?;
    if indexed.bytes < state.bytes || indexed.hasher.digest() != state.checksum {
        let message = "lines that were indexed have changed since: run planes build again";
        return Err(Failure::for_file(&name, message));
    }
    let rest = digest(text, state.terminator).map_err(fail)?;
    if rest.bytes == 0 {
        return Ok(UNCHANGED);
    }
    // A line without an end was indexed as it was, and may go on.
    let first_line = indexed.terminators;
    let lines = rest.terminators + u64::from(rest.ends_in_line());
    let new = Unindexed { text: name, first_line, last_line: first_line + lines - 1 };
    Ok((Some(new), None))
}

/// The text by the name of its index, if there is such a file.
fn text_of(index: &Path) -> Option<PathBuf> {
    let is_named = index.extension().is_some_and(|extension| extension == "planes");
    Some(index.with_extension("")).filter(|text| is_named && text.is_file())
}

fn digest(mut text: impl BufRead, terminator: u8) -> std::io::Result<Digest> {
    let mut digest = Digest::new(terminator);
    loop {
        let bytes = text.fill_buf()?;
        if bytes.is_empty() {
            return Ok(digest);
        }
        digest.update(bytes);
        let length = bytes.len();
        text.consume(length);
    }
}
