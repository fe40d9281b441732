//! Lines of text as rows: lines per row, and how lines are divided into items.

use core::num::NonZeroU32;

use blocked_bloom::parts::{HEADER_BYTES, Header, HeaderError};

use crate::error::PlanesError;

/// Lines of text as rows: the number of lines in a row, with words as items.
///
/// The setting is stored with the planes, so that a query is divided like the text. An item that
/// was never hashed is absent from every row, such as `node-3` if the words are `node` and `3`.
///
/// ```
/// use core::num::NonZeroU32;
/// use blocked_bloom_planes::{Planes, PlanesOptions, Query, Shape, TextRows};
/// let text = TextRows::new(NonZeroU32::new(1).unwrap());
/// let options = PlanesOptions::new(Shape::for_rate(4, 0.001)?).with_text(text);
/// let hasher = options.hasher()?;
/// let log = ["GET /api/v1 node-3", "GET /api/v2 node-4"];
/// let hashes = |line: &str| text.words(line.as_bytes()).map(|word| hasher.hash(word)).collect();
/// let rows = log.map(|line| -> Vec<u64> { hashes(line) });
/// let stored = Planes::from_hashes(&options, rows)?;
///
/// let opened = Planes::from_bytes(stored.as_bytes(), options.key_hash())?;
/// let text = opened.layout().options().text().expect("a text");
/// let mut hits = blocked_bloom::Bitmask::new();
/// opened.query(&Query::all(text.words(b"/api/v2").map(|word| hasher.hash(word))), &mut hits);
/// assert!(text.lines().get() == 1 && hits.hits().eq([1]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextRows {
    lines: NonZeroU32,
}

impl TextRows {
    /// Creates rows of this many lines, divided into words.
    pub fn new(lines: NonZeroU32) -> Self {
        TextRows { lines }
    }

    /// Returns the number of lines in a row. The last row may have fewer.
    pub fn lines(&self) -> NonZeroU32 {
        self.lines
    }

    /// Divides a line, or a search text, into words: maximal runs of ASCII letters, digits,
    /// underscores and non-ASCII bytes. Case is preserved.
    ///
    /// ```
    /// let text = blocked_bloom_planes::TextRows::new(core::num::NonZeroU32::MIN);
    /// let words: Vec<&[u8]> = text.words(b"err-code=17, node_3!").collect();
    /// assert_eq!(words, [&b"err"[..], b"code", b"17", b"node_3"]);
    /// ```
    pub fn words<'t>(&self, text: &'t [u8]) -> impl Iterator<Item = &'t [u8]> + use<'t> {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
        text.split(move |byte| !is_word(byte)).filter(|word| !word.is_empty())
    }
}

const MAGIC: [u8; 8] = *b"\x89BBTEXT\n";
const VERSION: u16 = 1;

/// The state of a text when it was indexed: a text of another length or checksum has changed since.
///
/// [`PlanesBuilder::finish_with_text_state`](crate::PlanesBuilder::finish_with_text_state) stores
/// it, and [`PlanesLayout::text_state`](crate::PlanesLayout::text_state) reads it.
///
/// ```
/// use blocked_bloom::KeyHasher;
/// use blocked_bloom_planes::TextState;
/// let log = b"GET /index\nGET /about\n";
/// let state = TextState::new(log.len() as u64, 2, KeyHasher::with_seed(0).hash(log));
/// assert_eq!((state.bytes, state.modified, state.terminator), (22, 0, b'\n'));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TextState {
    /// Length of the text.
    pub bytes: u64,
    /// Lines of the text; the last one need not have a terminator.
    pub lines: u64,
    /// XXH3-64 of the text, with seed 0.
    pub checksum: u64,
    /// Time of the last modification, in nanoseconds since 1970, or 0 if it is not known.
    pub modified: u64,
    /// The byte that ends a line.
    pub terminator: u8,
}

impl TextState {
    /// A text of this length, number of lines and checksum. Its lines end with line feeds, and the
    /// time of its last modification is not known.
    pub fn new(bytes: u64, lines: u64, checksum: u64) -> Self {
        TextState { bytes, lines, checksum, modified: 0, terminator: b'\n' }
    }

    /// Sets the time of the last modification, in nanoseconds since 1970.
    #[must_use]
    pub fn with_modified(self, modified: u64) -> Self {
        TextState { modified, ..self }
    }

    /// Sets the byte at the end of lines.
    #[must_use]
    pub fn with_terminator(self, terminator: u8) -> Self {
        TextState { terminator, ..self }
    }

    /// The record of the state, for planes whose first record has this checksum.
    pub(crate) fn record(&self, identity: u64) -> [u8; HEADER_BYTES] {
        let mut header = Header::new(MAGIC, VERSION);
        header.put(10, &[self.terminator]);
        let fields = [self.bytes, self.lines, self.modified, self.checksum, identity];
        for (offset, field) in (16..).step_by(8).zip(fields) {
            header.put(offset, &field.to_le_bytes());
        }
        header.seal()
    }

    pub(crate) fn from_record(bytes: &[u8], identity: u64) -> Result<Self, PlanesError> {
        let header = Header::read(bytes, MAGIC, VERSION)?;
        header.check_zero(11..16)?;
        let found = header.u64_at(48);
        if found != identity {
            let name = "identity of the planes";
            return Err(HeaderError::field(48, name, found, "that of these planes").into());
        }
        Ok(TextState {
            bytes: header.u64_at(16),
            lines: header.u64_at(24),
            modified: header.u64_at(32),
            checksum: header.u64_at(40),
            terminator: header.u8_at(10),
        })
    }
}
