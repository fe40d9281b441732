//! What a filter's bits say of it: how full it is, how many keys it holds, what it lets through. Nothing here uses the number of keys
//! inserted.

use super::BloomFilter;
use crate::probe::{BLOCK_BITS, Block};

impl<D: AsRef<[Block]>> BloomFilter<D> {
    /// Fraction of bits that are set, 0 to 1; about one half when the filter is well used. Cost: reads every block.
    pub fn fill_ratio(&self) -> f64 {
        Fills::of(self.blocks()).mean(|fill| fill)
    }

    /// Estimate of the distinct keys in the filter, from its bits: per block, the number of balls that fill as many of 512
    /// cells, divided by the probes. `None` if a block has no zero bit left (as in a pass-all filter): then only "many" is
    /// known.
    ///
    /// Cost: reads every block.
    pub fn estimated_keys(&self) -> Option<u64> {
        let mean = Fills::of(self.blocks()).mean(|fill| libm::log1p(-fill));
        let balls_per_block = mean / libm::log1p(-1.0 / f64::from(BLOCK_BITS));
        let keys = balls_per_block * self.blocks().len() as f64 / f64::from(self.meta.probes);
        keys.is_finite().then(|| libm::round(keys) as u64)
    }

    /// False-positive rate that the probe scheme predicts for the keys inserted, 0 to 1: that of [`params`](Self::params).
    pub fn expected_false_positive_rate(&self) -> f64 {
        self.params().false_positive_rate()
    }

    /// False-positive rate that the filter really has, from its bits: the mean over blocks of `fill^probes`, 0 to 1.
    ///
    /// Unlike the [expected](Self::expected_false_positive_rate) rate it needs no key count, so it also holds after unions and repeated
    /// keys. Cost: reads every block.
    pub fn estimated_false_positive_rate(&self) -> f64 {
        Fills::of(self.blocks()).mean(|fill| rate_at(fill, self.meta.probes))
    }
}

/// The chance that every probe of an absent key meets a set bit, in a block of which this fraction is set.
pub(crate) fn rate_at(fill: f64, probes: u8) -> f64 {
    (1..probes).fold(fill, |power, _| power * fill)
}

/// How many blocks have how many of their bits set: what every statistic is computed from, so that equal bits give equal figures.
pub(crate) struct Fills([u64; BLOCK_BITS as usize + 1]);

impl Fills {
    pub(crate) fn none() -> Self {
        Fills([0; BLOCK_BITS as usize + 1])
    }

    fn of(blocks: &[Block]) -> Self {
        let mut fills = Fills::none();
        for block in blocks {
            fills.count(block);
        }
        fills
    }

    /// Counts a block, and returns how many of its bits are set.
    pub(crate) fn count(&mut self, block: &Block) -> usize {
        let (words, _) = block.as_chunks();
        let ones: u32 = words.iter().map(|&word| u64::from_ne_bytes(word).count_ones()).sum();
        self.0[ones as usize] += 1;
        ones as usize
    }

    /// The mean over blocks of a function of the fraction of a block's bits that are set.
    pub(crate) fn mean(&self, value: impl Fn(f64) -> f64) -> f64 {
        let some = || self.0.iter().enumerate().filter(|(_, blocks)| **blocks > 0);
        let weighted = some()
            .map(|(ones, &blocks)| blocks as f64 * value(ones as f64 / f64::from(BLOCK_BITS)));
        weighted.sum::<f64>() / self.0.iter().sum::<u64>() as f64
    }
}
