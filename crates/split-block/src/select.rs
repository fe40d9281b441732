//! Selection vectors: the answers to a batch as the numbers of the rows that may be present, as
//! query engines pass them on.

use alloc::vec::Vec;

use crate::error::SplitBlockError;
use crate::filter::SplitBlockFilter;
use crate::split_block::SplitBlock;

/// Rows that are looked up at a time: their answers take 512 bytes, and the prefetches of the first
/// 64 rows, which overlap with nothing, are few of all.
const CHUNK_ROWS: usize = 4096;

impl<D: AsRef<[SplitBlock]>> SplitBlockFilter<D> {
    /// Looks up every hash; `rows` then has the numbers, from 0 and ascending, of those that may be
    /// present, and nothing else.
    ///
    /// Cost: as a batch, and about a nanosecond per row that may be present. Memory: 4 bytes for
    /// each of those; a vector that is used again allocates only when more rows are left than ever
    /// before.
    ///
    /// # Errors
    ///
    /// [`SplitBlockError::TooManyRows`] for more than 2^32 hashes, which a number of 32 bits cannot
    /// count. `rows` is empty then.
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
            // The last row is at most 2^32 - 1, so that a number that has wrapped is not used.
            first = first.wrapping_add(CHUNK_ROWS as u32);
        }
        Ok(())
    }
}

/// Appends `first` plus the position of each bit that is set in the words.
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
            // Where most rows are left, counting is twice as fast as finding bits.
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
