//! Rows that are lines of a text: how many, and how they are divided into items.

use core::num::NonZeroU32;

/// Rows that are lines of a text: how many lines are a row, and that its items are their words.
///
/// Stored with the planes, so that a query is divided as the text was: an item that was never
/// hashed, such as `node-3` where the words are `node` and `3`, is absent from every row.
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
    /// This many lines a row, divided into words.
    pub fn new(lines: NonZeroU32) -> Self {
        TextRows { lines }
    }

    /// Lines that are a row. The last row may have fewer.
    pub fn lines(&self) -> NonZeroU32 {
        self.lines
    }

    /// The words of a line, or of what is looked up: the longest runs of ASCII letters and digits,
    /// underscores, and bytes that are not ASCII, as they are written.
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
