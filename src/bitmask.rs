//! The answers to a batch: one bit per key, in words of 64 bits, zero bits past the last key.

use alloc::vec::Vec;
use core::iter::{Map, Repeat, Zip, repeat};
use core::ops::Range;

/// One bit per key: 1 means that it may be present (a hit), 0 that it is absent (a miss).
///
/// Reuse one mask for many batches: it allocates only when a batch is longer than any before.
///
/// ```
/// use blocked_bloom::{Bitmask, FilterOptions, Sizing};
/// let mut builder = FilterOptions::new(Sizing::BitsPerKey(16.0)).builder();
/// builder.extend(["apple", "cherry"])?;
/// let filter = builder.finish()?;
///
/// let mut hits = Bitmask::new();
/// filter.contains_batch(&["apple", "banana", "cherry"], &mut hits);
/// assert_eq!(hits.hits().collect::<Vec<_>>(), [0, 2]);
/// assert_eq!(hits.misses().collect::<Vec<_>>(), [1]);
/// assert_eq!(hits.iter().collect::<Vec<_>>(), [true, false, true]);
/// for (key, may_be_present) in ["apple", "banana", "cherry"].iter().zip(&hits) {
///     println!("{key}: {may_be_present}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bitmask {
    words: Vec<u64>,
    len: usize,
}

impl Bitmask {
    /// An empty mask. Allocates nothing yet.
    pub const fn new() -> Self {
        Bitmask { words: Vec::new(), len: 0 }
    }

    /// Keys of the batch.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the batch had no key.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The answer for key `index`, or `None` past the end.
    pub fn get(&self, index: usize) -> Option<bool> {
        (index < self.len).then(|| bit((index, &self.words)))
    }

    /// The answers in order, one for each key.
    pub fn iter(&self) -> impl Iterator<Item = bool> {
        (0..self.len).map(|index| bit((index, &self.words)))
    }

    /// Key `i` is bit `i % 64` of word `i / 64`, one word per 64 keys, zero bits past the last.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Number of keys that may be present.
    pub fn count_hits(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Number of keys that are certainly absent.
    pub fn count_misses(&self) -> usize {
        self.len - self.count_hits()
    }

    /// Indices of the keys that may be present, ascending. Cost: one step per hit and per 64 keys.
    pub fn hits(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(i, &word)| bit_positions(word, i))
    }

    /// Indices of the keys that are absent, ascending. Cost: one step per miss and per 64 keys.
    pub fn misses(&self) -> impl Iterator<Item = usize> {
        let len = self.len;
        self.words
            .iter()
            .enumerate()
            .flat_map(move |(i, &word)| bit_positions(!word & used(len, i), i))
    }

    /// Sets the mask to the answers to `len` keys. For filters of other packages.
    ///
    /// `write` receives one word per 64 keys, rounded up, and must overwrite all of them: they hold
    /// **the answers to an earlier batch**, and in debug builds the pattern `0xa5a5...`. Bits past
    /// the last key are cleared afterwards. If `write` panics, the mask is empty.
    pub fn write(&mut self, len: usize, write: impl FnOnce(&mut [u64])) {
        let mut written = core::mem::take(self);
        let words = written.reset(len);
        if cfg!(debug_assertions) {
            words.fill(u64::from_ne_bytes([0xa5; 8]));
        }
        write(words);
        if let Some((last, before)) = words.split_last_mut() {
            *last &= used(len, before.len());
        }
        *self = written;
    }

    /// Becomes the answers to `len` keys, as [`write`](Self::write), but says "maybe" of all of
    /// them until `write` overwrites that, and also if it panics.
    #[inline]
    pub(crate) fn write_answers(&mut self, len: usize, write: impl FnOnce(&mut [u64])) {
        let words = self.reset(len);
        fill_with_hits(words, len);
        write(words);
        if let Some((last, before)) = words.split_last_mut() {
            *last &= used(len, before.len());
        }
    }

    /// Becomes a mask of `len` bits and lends its words, whose contents are arbitrary, to be
    /// overwritten. The writer leaves the bits past `len` zero.
    #[inline]
    pub(crate) fn reset(&mut self, len: usize) -> &mut [u64] {
        let words = len.div_ceil(64);
        if words != self.words.len() {
            self.words.resize(words, 0);
        }
        self.len = len;
        &mut self.words
    }
}

/// The answers in order, one for each key, as [`Bitmask::iter`].
impl<'m> IntoIterator for &'m Bitmask {
    type Item = bool;
    type IntoIter = Map<Zip<Range<usize>, Repeat<&'m [u64]>>, fn((usize, &'m [u64])) -> bool>;

    fn into_iter(self) -> Self::IntoIter {
        (0..self.len).zip(repeat(&self.words[..])).map(bit as fn(_) -> _)
    }
}

/// Bit `index` of the words.
#[inline]
fn bit((index, words): (usize, &[u64])) -> bool {
    words[index / 64] >> (index % 64) & 1 == 1
}

/// Writes "maybe" for `len` keys, into one word per 64, and zeros past the last key.
pub fn fill_with_hits(words: &mut [u64], len: usize) {
    for (i, word) in words.iter_mut().enumerate() {
        *word = used(len, i);
    }
}

/// The bits of word `i` that belong to a key when there are `len`.
pub(crate) fn used(len: usize, i: usize) -> u64 {
    match len.saturating_sub(i * 64) {
        0 => 0,
        keys @ 1..64 => (1 << keys) - 1,
        _ => u64::MAX,
    }
}

/// Positions of the ones of word `i`.
fn bit_positions(mut word: u64, i: usize) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (bit < 64).then_some(i * 64 + bit)
    })
}
