//! Lines of text as rows: lines per row, and how lines are divided into items.

use core::num::NonZeroU32;

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
