//! What is known of a filter: what it was made for and what was added, and what its bits say of
//! how full it is and what it lets through.

use super::parts::Blocks;
use super::{BloomFilter, Meta};
use crate::hash::{KeyError, KeyHash, KeyHasher};
use crate::params::Params;
use crate::prefix::FilterContents;
use crate::probe::{BLOCK_BITS, Block};

impl<D> BloomFilter<D> {
    /// The hash and seed the filter was built with.
    #[inline]
    pub fn key_hash(&self) -> KeyHash {
        self.meta.key_hash
    }

    /// The hasher of the filter's keys.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the caller hashes.
    #[inline]
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.meta.key_hash.hasher()
    }

    /// Additions so far, keys and prefixes, saturating. Not distinct keys: see
    /// [`estimated_keys`](Self::estimated_keys).
    pub fn keys_inserted(&self) -> u64 {
        self.meta.keys_inserted
    }

    /// What the filter holds: keys, prefixes of keys, or both.
    pub fn contents(&self) -> FilterContents {
        self.meta.contents
    }

    /// Whether the filter answers "maybe" to everything.
    pub fn is_pass_all(&self) -> bool {
        self.meta.pass_all
    }
}

impl<D: Blocks> BloomFilter<D> {
    /// Blocks, probes and predicted rate, with the keys inserted as the expected items.
    pub fn params(&self) -> Params {
        let Meta { keys_inserted, probes, pass_all, .. } = self.meta;
        Params::from_fields(keys_inserted, self.blocks().len() as u32, u32::from(probes), pass_all)
    }

    /// Bytes of the blocks.
    pub fn memory_bytes(&self) -> u64 {
        size_of_val(self.blocks()) as u64
    }

    /// Whether everything that is looked up is certainly absent: the filter holds it, and no bit is
    /// set. Cost: reads blocks up to the first bit.
    ///
    /// A filter of prefixes alone is never empty: it says "maybe" about every key.
    pub fn is_empty(&self) -> bool {
        self.answers && self.blocks().as_flattened().iter().all(|&byte| byte == 0)
    }

    /// Fraction of bits set, 0 to 1; about a half in a well used filter. Cost: reads every block.
    pub fn fill_ratio(&self) -> f64 {
        FillHistogram::from_blocks(self.blocks()).mean(|fill| fill)
    }

    /// Estimate of the distinct keys in the filter, from its bits: per block, the number of balls
    /// that fill as many of 512 cells, divided by the probes. `None` if a block has no zero bit
    /// left (as in a pass-all filter): then only "many" is known.
    ///
    /// Cost: reads every block.
    pub fn estimated_keys(&self) -> Option<u64> {
        let mean = FillHistogram::from_blocks(self.blocks()).mean(|fill| libm::log1p(-fill));
        let balls_per_block = mean / libm::log1p(-1.0 / f64::from(BLOCK_BITS));
        let keys = balls_per_block * self.blocks().len() as f64 / f64::from(self.meta.probes);
        keys.is_finite().then(|| libm::round(keys) as u64)
    }

    /// False-positive rate that the probe scheme predicts for the keys inserted, 0 to 1: that of
    /// [`params`](Self::params).
    pub fn expected_false_positive_rate(&self) -> f64 {
        self.params().false_positive_rate()
    }

    /// Estimates the false-positive rate from the bits, 0 to 1: the mean over blocks of
    /// `fill^probes`.
    ///
    /// Unlike the [expected](Self::expected_false_positive_rate) rate it needs no key count, so it
    /// also holds after unions and repeated keys. Both hold only for well-mixed hashes: if the caller
    /// supplies hashes that differ in a few bits, any number of absent keys can pass. Cost: reads
    /// every block.
    pub fn estimated_false_positive_rate(&self) -> f64 {
        FillHistogram::from_blocks(self.blocks()).mean(|fill| rate_at(fill, self.meta.probes))
    }
}

/// The chance that all probes of an absent key meet set bits, in a block this full.
pub(crate) fn rate_at(fill: f64, probes: u8) -> f64 {
    (1..probes).fold(fill, |power, _| power * fill)
}

/// How many blocks have how many of their bits set: what every statistic is computed from, so that
/// equal bits give equal figures.
pub(crate) struct FillHistogram([u64; BLOCK_BITS as usize + 1]);

impl FillHistogram {
    pub(crate) fn new() -> Self {
        FillHistogram([0; BLOCK_BITS as usize + 1])
    }

    fn from_blocks(blocks: &[Block]) -> Self {
        let mut fills = FillHistogram::new();
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
