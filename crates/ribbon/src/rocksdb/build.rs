//! Writes Ribbon blocks byte for byte as RocksDB does, including its sizes, its order of seeds and
//! its fallbacks to Bloom.
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

/// From this many slots upwards, Ribbon is written even if Bloom would be smaller.
const ALWAYS_RIBBON_SLOTS: u32 = 1_024;

const TRAILER_BYTES: usize = 5;

/// RocksDB's settings of Ribbon blocks: the bits per key of a Bloom filter with the same rate.
///
/// ```
/// use blocked_bloom_ribbon::rocksdb::RibbonBlockOptions;
/// let options = RibbonBlockOptions::new(10.0)?;
/// // The rate of a Bloom filter of 1.25 MB.
/// assert_eq!(options.block_bytes(1_000_000, 0x9c1c_34f1_0a4e_7ab3), 887_797);
/// assert!((0.0094..0.0097).contains(&options.false_positive_rate()));
/// # Ok::<(), blocked_bloom_ribbon::RibbonError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RibbonBlockOptions {
    millibits_per_key: u32,
    /// Reciprocal of the rate.
    inverse_rate: f64,
}

/// The result of building a block.
///
/// ```
/// use blocked_bloom_ribbon::rocksdb::{BloomReason, BuiltBlock, RibbonBlockOptions};
/// // A Bloom block of one cache line is smaller than the 256 slots of the smallest Ribbon block.
/// let built = RibbonBlockOptions::new(10.0)?.build(&[0x9c1c_34f1_0a4e_7ab3])?;
/// assert_eq!(built, BuiltBlock::Bloom(BloomReason::Smaller));
/// # Ok::<(), blocked_bloom_ribbon::RibbonError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuiltBlock {
    /// The block with its trailer of five bytes.
    Ribbon(Vec<u8>),
    /// RocksDB writes a FastLocalBloom block of these hashes and bits per key here. Do the same.
    Bloom(BloomReason),
}

/// Why RocksDB writes a Bloom filter although Ribbon was selected.
///
/// ```
/// use blocked_bloom_ribbon::rocksdb::BloomReason;
/// assert_eq!(BloomReason::Smaller.to_string(), "a Bloom filter of so few keys is smaller");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BloomReason {
    /// A Bloom filter of so few keys is smaller.
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
            Self::NoSeed => "none of the 256 seeds has a solution",
        })
    }
}

impl RibbonBlockOptions {
    /// Creates options for blocks with the rate of a Bloom filter of this many bits per key, the
    /// argument of RocksDB's `NewRibbonFilterPolicy`.
    ///
    /// Values below 1 become 1 and values above 100 become 100, as in RocksDB.
    ///
    /// # Errors
    ///
    /// [`RibbonError::BitsPerKey`] for NaN and below 0.5, where RocksDB writes no filter.
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

    /// Returns the target rate of the blocks. Blocks of few keys have a lower rate, because sizes
    /// are whole bytes.
    pub fn false_positive_rate(&self) -> f64 {
        1.0 / self.inverse_rate
    }

    /// Returns the length of a Ribbon block of this many keys, including the trailer. Above 950
    /// million keys, where RocksDB writes a Bloom block, returns the length for 950 million. The
    /// first hash determines how a fraction of a block is rounded.
    pub fn block_bytes(&self, keys: u32, first_hash: u64) -> usize {
        sizing::data_bytes(
            sizing::slots(keys.min(sizing::MAX_KEYS as u32)),
            self.inverse_rate,
            first_hash,
        ) + TRAILER_BYTES
    }

    /// Builds the block of these hashes. Adjacent hashes must differ, since RocksDB drops repeated
    /// ones. Without hashes the block is empty, and RocksDB stores no filter.
    ///
    /// Memory besides the block: 24 bytes per slot (1.02 to 1.1 slots per key), and 8 bytes per
    /// key. Cost: about 46 to 58 ns per key.
    ///
    /// # Errors
    ///
    /// [`RibbonError::Alloc`].
    pub fn build(&self, hashes: &[u64]) -> Result<BuiltBlock, RibbonError> {
        self.build_by(hashes, None, Threads::One)
    }

    /// Builds the block like [`build`](Self::build), with the threads of the current rayon pool.
    /// The bytes do not depend on the number of threads.
    ///
    /// # Errors
    ///
    /// The errors of `build`.
    #[cfg(feature = "rayon")]
    pub fn par_build(&self, hashes: &[u64]) -> Result<BuiltBlock, RibbonError> {
        self.build_by(hashes, None, Threads::Pool)
    }

    /// Builds the block like [`build`](Self::build), with this length (including the trailer) for a
    /// Ribbon block. RocksDB with `optimize_filters_for_memory` chooses the length so that its
    /// allocator wastes little. The rate follows from the length.
    ///
    /// # Errors
    ///
    /// The errors of `build`.
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

/// Assembles the bytes of a solved block.
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
