//! Selection vectors: the answers to a batch as the numbers of the rows that may be present, the
//! form that query engines use.

use alloc::vec::Vec;

use crate::error::SplitBlockError;
use crate::filter::SplitBlockFilter;
use crate::split_block::SplitBlock;

/// Rows looked up at a time. Their answers take 512 bytes, and the first 64 rows, whose prefetches
/// overlap with no other work, are a small part.
const CHUNK_ROWS: usize = 4096;

impl<D: AsRef<[SplitBlock]>> SplitBlockFilter<D> {
    /// Looks up all hashes, and replaces `rows` by the indices of those that may be present, in
    /// ascending order.
    ///
    /// Cost: a batch lookup, and about 1 ns per row that may be present. Memory: 4 bytes per such
    /// row. A reused vector allocates only if more rows remain than ever before.
    ///
    /// # Errors
    ///
    /// [`SplitBlockError::TooManyRows`] for more than 2^32 hashes, the limit of 32-bit numbers.
    /// `rows` is then empty.
    ///
    /// ```
    /// use blocked_bloom_split::{SplitBlockFilter, hash_value};
    /// let mut filter = SplitBlockFilter::new(100, 0.01)?;
    /// filter.insert(7_i32.to_le_bytes());
    /// let column = [5, 7, 6, 7_i32].map(|value| hash_value(value.to_le_bytes()));
    /// let mut rows = Vec::new();
    /// filter.select_hashes(&column, &mut rows)?;
    /// assert_eq!(rows, [1, 3]);
    /// # Ok::<(), blocked_bloom_split::SplitBlockError>(())
    /// ```
    pub fn select_hashes(
        &self,
        hashes: &[u64],
        rows: &mut Vec<u32>,
    ) -> Result<(), SplitBlockError> {
        rows.clear();
        if hashes.len() as u64 > 1 << 32 {
            return Err(SplitBlockError::TooManyRows { rows: hashes.len() as u64 });
        }
        let mut words = [0; CHUNK_ROWS / 64];
        let mut first = 0_u32;
        for hashes in hashes.chunks(CHUNK_ROWS) {
            let words = &mut words[..hashes.len().div_ceil(64)];
            self.look_up(hashes, words);
            append(words, first, rows);
            // The last row is at most 2^32 - 1, so a number that has wrapped is not used.
            first = first.wrapping_add(CHUNK_ROWS as u32);
        }
        Ok(())
    }
}

/// Appends `first` plus the position of each set bit in the words.
fn append(words: &[u64], first: u32, rows: &mut Vec<u32>) {
    let ones: u32 = words.iter().map(|word| word.count_ones()).sum();
    let start = rows.len();
    rows.resize(start + ones as usize, 0);
    let mut rest = &mut rows[start..];
    for (i, &word) in words.iter().enumerate() {
        let first = first.wrapping_add(64 * i as u32);
        let (rows, later) = rest.split_at_mut(word.count_ones() as usize);
        rest = later;
        if word == u64::MAX {
            // If most rows remain, counting is twice as fast as finding bits.
            rows.iter_mut().enumerate().for_each(|(i, row)| *row = first.wrapping_add(i as u32));
            continue;
        }
        let mut word = word;
        for row in rows {
            *row = first.wrapping_add(word.trailing_zeros());
            word &= word.wrapping_sub(1);
        }
    }
}
