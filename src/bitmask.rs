//! The answers to a batch: one bit per key, in words of 64 bits. Bits past the last key are zero.

use alloc::vec::Vec;
use core::iter::{Map, Repeat, Zip, repeat};
use core::ops::Range;

/// One bit per key: 1 means that the key may be present (a hit), 0 that it is absent (a miss).
///
/// Reuse one mask for many batches: it allocates only if a batch is longer than all earlier ones.
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
    /// Creates an empty mask. Allocates nothing.
    pub const fn new() -> Self {
        Bitmask { words: Vec::new(), len: 0 }
    }

    /// Returns the number of keys in the batch.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the batch has no keys.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the answer for key `index`, or `None` past the end.
    pub fn get(&self, index: usize) -> Option<bool> {
        (index < self.len).then(|| bit((index, &self.words)))
    }

    /// Returns the answers in order, one per key.
    pub fn iter(&self) -> impl Iterator<Item = bool> {
        self.into_iter()
    }

    /// Returns the words. Key `i` is bit `i % 64` of word `i / 64`; bits past the last key are
    /// zero.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns the number of keys that may be present.
    pub fn count_hits(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns the number of keys that are certainly absent.
    pub fn count_misses(&self) -> usize {
        self.len - self.count_hits()
    }

    /// Returns the indices of the keys that may be present, in ascending order.
    ///
    /// Cost: one step per hit and per 64 keys.
    pub fn hits(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(i, &word)| bit_positions(word, i))
    }

    /// Returns the indices of the keys that are certainly absent, in ascending order.
    ///
    /// Cost: one step per miss and per 64 keys.
    pub fn misses(&self) -> impl Iterator<Item = usize> {
        let words = self.words.iter().enumerate();
        words.flat_map(|(i, &word)| bit_positions(!word & used(self.len, i), i))
    }

    /// Sets the mask to the answers for `len` keys. For filters of other packages.
    ///
    /// `write` receives one word per 64 keys, rounded up. It must overwrite all words: they hold
    /// **the answers of an earlier batch**, or the pattern `0xa5a5...` in debug builds. Bits past
    /// the last key are cleared afterwards. If `write` panics, the mask is empty.
    pub fn write(&mut self, len: usize, write: impl FnOnce(&mut [u64])) {
        let mut written = core::mem::take(self);
        let words = written.reset(len);
        if cfg!(debug_assertions) {
            words.fill(u64::from_ne_bytes([0xa5; 8]));
        }
        write(words);
        clear_unused(words, len);
        *self = written;
    }

    /// Sets the mask to the answers for `len` keys, like [`write`](Self::write). Every answer is
    /// "maybe" until `write` overwrites it, also if `write` panics.
    #[inline]
    pub(crate) fn write_answers(&mut self, len: usize, write: impl FnOnce(&mut [u64])) {
        let words = self.reset(len);
        fill_with_hits(words, len);
        write(words);
        clear_unused(words, len);
    }

    /// Changes the length to `len` bits and returns the words, whose contents are arbitrary. The
    /// caller must overwrite them and leave the bits past `len` zero.
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

/// Iterates over the answers in order, one per key.
impl<'m> IntoIterator for &'m Bitmask {
    type Item = bool;
    type IntoIter = Map<Zip<Range<usize>, Repeat<&'m [u64]>>, fn((usize, &'m [u64])) -> bool>;

    fn into_iter(self) -> Self::IntoIter {
        (0..self.len).zip(repeat(&self.words[..])).map(bit as fn(_) -> _)
    }
}

/// Returns bit `index` of the words.
#[inline]
fn bit((index, words): (usize, &[u64])) -> bool {
    words[index / 64] >> (index % 64) & 1 == 1
}

/// Writes "maybe" for `len` keys to one word per 64 keys, and zeros past the last key.
pub fn fill_with_hits(words: &mut [u64], len: usize) {
    words.iter_mut().enumerate().for_each(|(i, word)| *word = used(len, i));
}

/// Clears the bits past the last of `len` keys.
#[inline]
fn clear_unused(words: &mut [u64], len: usize) {
    if let Some((last, before)) = words.split_last_mut() {
        *last &= used(len, before.len());
    }
}

/// Returns the bits of word `i` that belong to one of `len` keys.
#[inline]
pub(crate) fn used(len: usize, i: usize) -> u64 {
    match len.saturating_sub(i * 64) {
        0 => 0,
        keys @ 1..64 => (1 << keys) - 1,
        _ => u64::MAX,
    }
}

/// Returns the positions of the ones in word `i`.
fn bit_positions(mut word: u64, i: usize) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (bit < 64).then_some(i * 64 + bit)
    })
}
