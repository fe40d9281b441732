//! Writing Ribbon blocks byte for byte as RocksDB does: its policy of sizes, its order of seeds,
//! its fall-backs to Bloom.
//!
//! Source: `Standard128RibbonBitsBuilder` in RocksDB's `table/block_based/filter_policy.cc`, 7.8.

use alloc::vec::Vec;

use blocked_bloom::Kernel;

use super::sizing;
use crate::error::RibbonError;
use crate::kernel;
use crate::scheme::rocksdb::{SEGMENT_BYTES, Shape, WIDTH, raw_seed};
use crate::solve::rocksdb::Solver;
use crate::threads::Threads;

/// Slots from which on Ribbon is written whether or not Bloom would be smaller.
const ALWAYS_RIBBON_SLOTS: u32 = 1_024;

const TRAILER_BYTES: usize = 5;

/// Options of Ribbon blocks as RocksDB has them, a number of bits per key: blocks get the rate of a
/// Bloom filter with so many.
///
/// ```
/// use blocked_bloom_ribbon::rocksdb::RibbonBlockOptions;
/// let options = RibbonBlockOptions::new(10.0)?;
/// // The rate of 1.25 MB of Bloom filter.
/// assert_eq!(options.block_bytes(1_000_000, 0x9c1c_34f1_0a4e_7ab3), 887_797);
/// assert!((0.0094..0.0097).contains(&options.false_positive_rate()));
/// # Ok::<(), blocked_bloom_ribbon::RibbonError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RibbonBlockOptions {
    millibits_per_key: u32,
    /// The rate, as one in this many.
    inverse_rate: f64,
}

/// What the builder made of the hashes.
///
/// ```
/// use blocked_bloom_ribbon::rocksdb::{BloomReason, BuiltBlock, RibbonBlockOptions};
/// // One line of Bloom is less than the 256 slots of the smallest Ribbon.
/// let built = RibbonBlockOptions::new(10.0)?.build(&[0x9c1c_34f1_0a4e_7ab3])?;
/// assert_eq!(built, BuiltBlock::Bloom(BloomReason::Smaller));
/// # Ok::<(), blocked_bloom_ribbon::RibbonError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuiltBlock {
    /// The block with its five bytes of trailer.
    Ribbon(Vec<u8>),
    /// Write a FastLocalBloom block of these hashes and bits per key, as RocksDB does here.
    Bloom(BloomReason),
}

/// Why RocksDB writes a Bloom filter although Ribbon was chosen.
///
/// ```
/// use blocked_bloom_ribbon::rocksdb::BloomReason;
/// assert_eq!(BloomReason::Smaller.to_string(), "a Bloom filter of so few keys is smaller");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BloomReason {
    /// There are so few keys that it is smaller.
    Smaller,
    /// There are more than 950 million keys.
    TooManyKeys,
    /// None of the 256 seeds has a solution.
    NoSeed,
}

impl core::fmt::Display for BloomReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(match self {
            Self::Smaller => "a Bloom filter of so few keys is smaller",
            Self::TooManyKeys => "more than 950000000 keys",
            Self::NoSeed => "no seed of 256 has a solution",
        })
    }
}

impl RibbonBlockOptions {
    /// Blocks with the rate of a Bloom filter of this many bits per key: what is given to RocksDB's
    /// `NewRibbonFilterPolicy`.
    ///
    /// As in RocksDB, less than 1 becomes 1, and more than 100 becomes 100.
    ///
    /// # Errors
    ///
    /// [`RibbonError::BitsPerKey`] for less than 0.5, where RocksDB writes no filter, and for NaN.
    pub fn new(bits_per_key: f64) -> Result<Self, RibbonError> {
        if bits_per_key.is_nan() || bits_per_key < 0.5 {
            return Err(RibbonError::BitsPerKey { bits_per_key });
        }
        let bits_per_key = bits_per_key.clamp(1.0, 100.0);
        let millibits_per_key = (bits_per_key * 1_000.0 + 0.500_001) as u32;
        let inverse_rate =
            sizing::inverse_rate(bits_per_key, sizing::bloom_probes(millibits_per_key));
        Ok(RibbonBlockOptions { millibits_per_key, inverse_rate })
    }

    /// The rate that blocks are made for. A block of few keys has a lower one, since bytes are
    /// whole.
    pub fn false_positive_rate(&self) -> f64 {
        1.0 / self.inverse_rate
    }

    /// Length of a Ribbon block of this many keys, trailer included; above 950 million, where a
    /// Bloom block is written instead, that of 950 million. The first hash rounds a fraction of a
    /// block up or down.
    pub fn block_bytes(&self, keys: u32, first_hash: u64) -> usize {
        sizing::data_bytes(
            sizing::slots(keys.min(sizing::MAX_KEYS as u32)),
            self.inverse_rate,
            first_hash,
        ) + TRAILER_BYTES
    }

    /// The block of these hashes, of which none equals the one before it (RocksDB drops such).
    /// Without hashes it has no bytes, and RocksDB stores no filter.
    ///
    /// Memory, beside the block: 24 bytes per slot, of which there are 1.02 to 1.1 per key, and 8
    /// per key. Cost: 46 to 58 ns per key (Zen 5).
    ///
    /// # Errors
    ///
    /// [`RibbonError::Alloc`].
    pub fn build(&self, hashes: &[u64]) -> Result<BuiltBlock, RibbonError> {
        self.build_by(hashes, None, Threads::One)
    }

    /// [`build`](Self::build) by the threads of the current rayon pool; the bytes do not depend on
    /// their number.
    ///
    /// # Errors
    ///
    /// As `build`.
    #[cfg(feature = "rayon")]
    pub fn par_build(&self, hashes: &[u64]) -> Result<BuiltBlock, RibbonError> {
        self.build_by(hashes, None, Threads::Pool)
    }

    /// [`build`](Self::build), with this length for a Ribbon block, trailer included: RocksDB with
    /// `optimize_filters_for_memory` chooses the length by what its allocator would waste. The rate
    /// follows from the length.
    ///
    /// # Errors
    ///
    /// As `build`.
    pub fn build_with_length(
        &self,
        hashes: &[u64],
        bytes: usize,
    ) -> Result<BuiltBlock, RibbonError> {
        self.build_by(hashes, Some(bytes), Threads::One)
    }

    pub(crate) fn build_by(
        &self,
        hashes: &[u64],
        length: Option<usize>,
        threads: Threads,
    ) -> Result<BuiltBlock, RibbonError> {
        let Some(&first) = hashes.first() else { return Ok(BuiltBlock::Ribbon(Vec::new())) };
        if hashes.len() > sizing::MAX_KEYS {
            return Ok(BuiltBlock::Bloom(BloomReason::TooManyKeys));
        }
        let slots = sizing::slots(hashes.len() as u32);
        let data = sizing::data_bytes(slots, self.inverse_rate, first);
        let bloom = sizing::bloom_bytes(hashes.len(), self.millibits_per_key);
        if slots < ALWAYS_RIBBON_SLOTS && bloom < data as u128 {
            return Ok(BuiltBlock::Bloom(BloomReason::Smaller));
        }
        let data = length.map_or(data, |length| length.saturating_sub(TRAILER_BYTES));
        let mut solver = Solver::default();
        for attempt in 0..=u8::MAX {
            let seed = (first as u8).wrapping_add(attempt);
            if solver.add_all(hashes, raw_seed(seed), slots, threads)? {
                return Ok(BuiltBlock::Ribbon(finish(&solver, slots / WIDTH, data, seed)?));
            }
        }
        Ok(BuiltBlock::Bloom(BloomReason::NoSeed))
    }
}

/// The bytes of the solution.
fn finish(solver: &Solver, blocks: u32, data: usize, seed: u8) -> Result<Vec<u8>, RibbonError> {
    let mut block = Vec::new();
    Threads::One.refill(&mut block, data + TRAILER_BYTES)?;
    let (bits, trailer) = block.split_at_mut(data);
    if let Some(shape) = Shape::new(data, blocks) {
        let (segments, _) = bits[..shape.segments() * SEGMENT_BYTES].as_chunks_mut();
        kernel::substitute_128(Kernel::default(), &solver.rows, segments, shape);
    }
    let [low, middle, high, _] = blocks.to_le_bytes();
    trailer.copy_from_slice(&[0xfe, seed, low, middle, high]);
    Ok(block)
}
