//! The answers to a batch: one bit per key.
//!
//! This file owns the words and their invariant, zero bits past the last key. It refuses to know what was asked.

use alloc::vec::Vec;

/// One bit per key of a batch: 1 means the key may be present (a hit), 0 that it is certainly absent (a miss).
///
/// Reuse one mask for many batches: it allocates only when a batch is longer than any before.
///
/// ```
/// use blocked_bloom::{Bitmask, BloomFilterBuilder, Sizing};
/// let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(16.0));
/// builder.extend(["apple", "cherry"]);
/// let filter = builder.finish()?;
///
/// let mut hits = Bitmask::new();
/// filter.contains_batch(&["apple", "banana", "cherry"], &mut hits);
/// assert_eq!(hits.hits().collect::<Vec<_>>(), [0, 2]);
/// assert_eq!(hits.misses().collect::<Vec<_>>(), [1]);
/// # Ok::<(), blocked_bloom::BuildError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bitmask {
    words: Vec<u64>,
    len: usize,
}

impl Bitmask {
    /// An empty mask. Allocates nothing yet.
    ///
    /// ```
    /// assert!(blocked_bloom::Bitmask::new().is_empty());
    /// ```
    pub const fn new() -> Self {
        Bitmask { words: Vec::new(), len: 0 }
    }

    /// Keys of the batch.
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, BloomFilter, KeyHash};
    /// # let filter = BloomFilter::pass_all(KeyHash::default())?;
    /// let mut hits = Bitmask::new();
    /// filter.contains_hashes(&[1, 2, 3], &mut hits);
    /// assert_eq!(hits.len(), 3);
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the batch had no key.
    ///
    /// ```
    /// assert!(blocked_bloom::Bitmask::default().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The answer for key `index`, or `None` past the end.
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, BloomFilter, KeyHash};
    /// # let filter = BloomFilter::pass_all(KeyHash::default())?;
    /// let mut hits = Bitmask::new();
    /// filter.contains_hashes(&[1], &mut hits);
    /// assert_eq!((hits.get(0), hits.get(1)), (Some(true), None));
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    pub fn get(&self, index: usize) -> Option<bool> {
        (index < self.len).then(|| self.words[index / 64] >> (index % 64) & 1 == 1)
    }

    /// The bits: key `i` is bit `i % 64` of word `i / 64`, one word per 64 keys, zero bits past the last key.
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, BloomFilter, KeyHash};
    /// # let filter = BloomFilter::pass_all(KeyHash::default())?;
    /// let mut hits = Bitmask::new();
    /// filter.contains_hashes(&[1, 2, 3], &mut hits);
    /// assert_eq!(hits.words(), [0b111]);
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Number of keys that may be present.
    ///
    /// ```
    /// assert_eq!(blocked_bloom::Bitmask::new().count_hits(), 0);
    /// ```
    pub fn count_hits(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Number of keys that are certainly absent.
    ///
    /// ```
    /// assert_eq!(blocked_bloom::Bitmask::new().count_misses(), 0);
    /// ```
    pub fn count_misses(&self) -> usize {
        self.len - self.count_hits()
    }

    /// Indices of the keys that may be present, ascending. Cost: one step per hit and per 64 keys.
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, BloomFilter, KeyHash};
    /// # let filter = BloomFilter::pass_all(KeyHash::default())?;
    /// let mut hits = Bitmask::new();
    /// filter.contains_hashes(&[7, 8], &mut hits);
    /// assert!(hits.hits().eq([0, 1]));
    /// # Ok::<(), blocked_bloom::AllocError>(())
    /// ```
    pub fn hits(&self) -> impl Iterator<Item = usize> {
        all_ones(&self.words)
    }

    /// Indices of the keys that are certainly absent, ascending. Cost: one step per miss and per 64 keys.
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, BloomFilterBuilder, Sizing};
    /// # let filter = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0)).finish()?;
    /// let mut hits = Bitmask::new();
    /// filter.contains_hashes(&[7, 8], &mut hits);
    /// assert!(hits.misses().eq([0, 1]));
    /// # Ok::<(), blocked_bloom::BuildError>(())
    /// ```
    pub fn misses(&self) -> impl Iterator<Item = usize> {
        let len = self.len;
        self.words.iter().enumerate().flat_map(move |(i, &word)| ones(!word & used(len, i), i))
    }

    /// Becomes the answers to `len` keys: `fill` gets the words, whose contents are arbitrary, writes all of them and leaves the
    /// bits past `len` zero. If it panics, which a key may do when it is looked at, the mask is left empty.
    pub(crate) fn write(&mut self, len: usize, fill: impl FnOnce(&mut [u64])) {
        let mut words = core::mem::take(self);
        fill(words.reset(len));
        *self = words;
    }

    /// The words of a mask of `len` bits, to be filled by what cannot panic. They hold anything.
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

/// Writes "maybe" for `len` keys.
pub(crate) fn fill_with_hits(words: &mut [u64], len: usize) {
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

/// Positions of the ones of all words.
pub(crate) fn all_ones(words: &[u64]) -> impl Iterator<Item = usize> {
    words.iter().enumerate().flat_map(|(i, &word)| ones(word, i))
}

/// Positions of the ones of word `i`.
fn ones(mut word: u64, i: usize) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (bit < 64).then_some(i * 64 + bit)
    })
}
