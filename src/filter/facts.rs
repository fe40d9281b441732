//! Accessors of a filter, and statistics that are computed from its bits.

use super::parts::Blocks;
use super::{BloomFilter, Meta};
use crate::hash::{KeyError, KeyHash, KeyHasher};
use crate::params::Params;
use crate::prefix::FilterContents;
use crate::probe::{BLOCK_BITS, Block};

impl<D> BloomFilter<D> {
    /// Returns the hash and seed that the filter was built with.
    #[inline]
    pub fn key_hash(&self) -> KeyHash {
        self.meta.key_hash
    }

    /// Returns the hasher of the filter's keys.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the caller supplies the hashes.
    #[inline]
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.meta.key_hash.hasher()
    }

    /// Returns the number of keys and prefixes inserted so far (saturating). Duplicates count; for
    /// distinct keys, see [`estimated_keys`](Self::estimated_keys).
    pub fn keys_inserted(&self) -> u64 {
        self.meta.keys_inserted
    }

    /// Returns the contents of the filter: keys, prefixes of keys, or both.
    pub fn contents(&self) -> FilterContents {
        self.meta.contents
    }

    /// Whether the filter answers "maybe" to everything.
    pub fn is_pass_all(&self) -> bool {
        self.meta.pass_all
    }
}

impl<D: Blocks> BloomFilter<D> {
    /// Returns the blocks, the probes and the predicted rate for the number of keys inserted.
    pub fn params(&self) -> Params {
        let Meta { keys_inserted: expected_items, probes, pass_all, .. } = self.meta;
        Params { expected_items, blocks: self.blocks().len() as u32, probes, pass_all }
    }

    /// Returns the size of the blocks in bytes.
    pub fn memory_bytes(&self) -> u64 {
        size_of_val(self.blocks()) as u64
    }

    /// Whether every lookup returns "absent": no bit is set, and the filter holds whole keys. A
    /// filter of prefixes alone is never empty, since it answers "maybe" for every key.
    ///
    /// Cost: reads the blocks up to the first bit that is set.
    pub fn is_empty(&self) -> bool {
        self.answers && self.blocks().as_flattened().iter().all(|&byte| byte == 0)
    }

    /// Returns the fraction of bits that are set, 0 to 1; about 0.5 in a filter with as many keys
    /// as expected. Cost: reads every block.
    pub fn fill_ratio(&self) -> f64 {
        FillHistogram::from_blocks(self.blocks()).mean(|fill| fill)
    }

    /// Estimates the number of distinct keys from the bits. Returns `None` if a block has no zero
    /// bit, as in a pass-all filter.
    ///
    /// For each block, the estimate is the number of random probes that would set as many of the
    /// 512 bits, divided by the number of probes per key. Cost: reads every block.
    pub fn estimated_keys(&self) -> Option<u64> {
        let mean = FillHistogram::from_blocks(self.blocks()).mean(|fill| libm::log1p(-fill));
        let balls_per_block = mean / libm::log1p(-1.0 / f64::from(BLOCK_BITS));
        let keys = balls_per_block * self.blocks().len() as f64 / f64::from(self.meta.probes);
        keys.is_finite().then(|| libm::round(keys) as u64)
    }

    /// Predicts the false-positive rate, 0 to 1, from the number of keys inserted: the rate of
    /// [`params`](Self::params).
    pub fn expected_false_positive_rate(&self) -> f64 {
        self.params().false_positive_rate()
    }

    /// Estimates the false-positive rate from the bits, 0 to 1: the mean over blocks of
    /// `fill^probes`.
    ///
    /// Unlike the [expected](Self::expected_false_positive_rate) rate, it does not depend on the
    /// number of keys inserted, so it is also correct after merging and with repeated keys. Both
    /// rates require well-mixed hashes: if the caller supplies hashes that differ in a few bits,
    /// any number of absent keys can pass. Cost: reads every block.
    pub fn estimated_false_positive_rate(&self) -> f64 {
        FillHistogram::from_blocks(self.blocks()).mean(|fill| rate_at(fill, self.meta.probes))
    }
}

/// Returns the probability that all probes of an absent key hit set bits, in a block with this
/// fraction of set bits.
pub(crate) fn rate_at(fill: f64, probes: u8) -> f64 {
    (1..probes).fold(fill, |power, _| power * fill)
}

/// For each number of set bits, 0 to 512, the number of blocks that have it. All statistics are
/// computed from the histogram, so that equal bits have equal statistics.
pub(crate) struct FillHistogram([u64; BLOCK_BITS as usize + 1]);

impl FillHistogram {
    pub(crate) fn new() -> Self {
        FillHistogram([0; BLOCK_BITS as usize + 1])
    }

    fn from_blocks(blocks: &[Block]) -> Self {
        let mut fills = FillHistogram::new();
        blocks.iter().for_each(|block| _ = fills.count(block));
        fills
    }

    /// Counts a block and returns the number of its bits that are set.
    pub(crate) fn count(&mut self, block: &Block) -> usize {
        let (words, _) = block.as_chunks();
        let ones: u32 = words.iter().map(|&word| u64::from_ne_bytes(word).count_ones()).sum();
        self.0[ones as usize] += 1;
        ones as usize
    }

    /// Returns the mean over all blocks of a function of the fraction of set bits.
    pub(crate) fn mean(&self, value: impl Fn(f64) -> f64) -> f64 {
        // `value` may be infinite for a number of ones that no block has.
        let counts = self.0.iter().enumerate().filter(|(_, blocks)| **blocks > 0);
        let weighted =
            counts.map(|(ones, &blocks)| blocks as f64 * value(ones as f64 / BLOCK_BITS as f64));
        weighted.sum::<f64>() / self.0.iter().sum::<u64>() as f64
    }
}
