//! The answers of many filters to a batch: a row of bits per filter, one bit per key, zero bits past the last key of a row.

use alloc::vec::Vec;
use core::ops::Range;

use crate::bitmask;
use crate::error::{AllocError, SetError};

/// One bit per filter and key: 1 means the filter may hold the key.
///
/// [`FilterSet`](crate::FilterSet) writes it, and reads in it which pairs to look up. Reuse one for many batches: it allocates
/// only when it is larger than any before.
///
/// ```
/// use blocked_bloom::{BitMatrix, FilterOptions, FilterSet, Sizing};
/// let options = FilterOptions::new(Sizing::BitsPerKey(16.0));
/// let mut tables = Vec::new();
/// for keys in [["apple", "banana"], ["cherry", "damson"]] {
///     let mut builder = options.builder();
///     builder.extend(keys)?;
///     tables.push(builder.finish()?);
/// }
/// let set = FilterSet::new(options.key_hash(), &tables)?;
/// let mut hashes = Vec::new();
/// set.hasher()?.hash_batch(&["banana", "elder", "cherry"], &mut hashes);
///
/// let mut hits = BitMatrix::new();
/// set.contains_hashes(&hashes, &mut hits)?;
/// assert!(hits.keys_of(0).eq([0])); // the first table may hold the banana
/// assert!(hits.keys_of(1).eq([2]));
/// assert!(hits.filters_of(1).eq([])); // no table holds the elder
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BitMatrix {
    /// Row after row of `keys.div_ceil(64)` words.
    words: Vec<u64>,
    filters: usize,
    keys: usize,
}

impl BitMatrix {
    /// A matrix without filters and keys. Allocates nothing yet.
    pub const fn new() -> Self {
        BitMatrix { words: Vec::new(), filters: 0, keys: 0 }
    }

    /// Becomes a matrix of zeros.
    ///
    /// # Errors
    ///
    /// [`SetError::Alloc`]; the matrix is as it was.
    pub fn clear(&mut self, filters: usize, keys: usize) -> Result<(), SetError> {
        self.reset(filters, keys)?.fill(0);
        Ok(())
    }

    /// Sets the bits of a filter and a range of keys: those to look up with
    /// [`retain_hashes`](crate::FilterSet::retain_hashes). In a sorted batch, the keys within a table's range follow each other.
    ///
    /// # Errors
    ///
    /// [`SetError::Range`] for what is not in the matrix; nothing is set then.
    pub fn set_keys(&mut self, filter: usize, keys: Range<usize>) -> Result<(), SetError> {
        if filter >= self.filters || keys.start > keys.end || keys.end > self.keys {
            let (keys, matrix) = ((keys.start, keys.end), (self.filters, self.keys));
            return Err(SetError::Range { filter, keys, matrix });
        }
        let row = self.row(filter);
        for (i, word) in self.words[row].iter_mut().enumerate() {
            *word |= bitmask::used(keys.end, i) & !bitmask::used(keys.start, i);
        }
        Ok(())
    }

    /// Number of filters.
    pub fn filters(&self) -> usize {
        self.filters
    }

    /// Number of keys.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// The bit of a filter and a key, or `None` outside the matrix.
    pub fn get(&self, filter: usize, key: usize) -> Option<bool> {
        (filter < self.filters && key < self.keys)
            .then(|| self.words[self.row(filter)][key / 64] >> (key % 64) & 1 == 1)
    }

    /// The keys that the filter may hold, ascending: what to read from a table. Empty outside the matrix. Cost: one step per hit and
    /// per 64 keys.
    pub fn keys_of(&self, filter: usize) -> impl Iterator<Item = usize> {
        let row = if filter < self.filters { self.row(filter) } else { 0..0 };
        bitmask::all_ones(&self.words[row])
    }

    /// The filters that may hold the key, ascending: where to look for it. Empty outside the matrix. Cost: one word per filter.
    pub fn filters_of(&self, key: usize) -> impl Iterator<Item = usize> {
        let filters = if key < self.keys { self.filters } else { 0 };
        (0..filters).filter(move |&filter| self.get(filter, key) == Some(true))
    }

    /// The bits, row after row: key `i` of a filter is bit `i % 64` of word `i / 64` of its row, which has one word per 64 keys, and
    /// zero bits past the last key.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Number of pairs of a filter and a key that it may hold: reads at most.
    pub fn count_hits(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn row(&self, filter: usize) -> Range<usize> {
        let words = self.keys.div_ceil(64);
        filter * words..(filter + 1) * words
    }

    /// The words of a matrix of this shape, to be filled by what cannot panic. They hold anything.
    pub(super) fn reset(&mut self, filters: usize, keys: usize) -> Result<&mut [u64], AllocError> {
        let words = words(filters, keys);
        let grow = words.saturating_sub(self.words.len());
        let bytes = (words as u64).saturating_mul(8);
        self.words.try_reserve_exact(grow).map_err(|_| AllocError { bytes })?;
        self.words.resize(words, 0);
        (self.filters, self.keys) = (filters, keys);
        Ok(&mut self.words)
    }

    pub(super) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }
}

/// Words of the answers of so many filters about so many keys, saturating.
pub(super) fn words(filters: usize, keys: usize) -> usize {
    filters.saturating_mul(keys.div_ceil(64))
}
