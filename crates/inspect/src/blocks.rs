//! Data for drawing filters: how full the blocks are, and the block and bits of a single key.

use blocked_bloom::probe::{self, BLOCK_BITS};
use blocked_bloom::{Block, BloomFilter};
use blocked_bloom_split::{SplitBlock, SplitBlockFilter, split_block};

/// The fill of a filter's blocks, returned by [`Opened::block_loads`](crate::Opened::block_loads).
///
/// ```
/// use blocked_bloom::FilterOptions;
/// use blocked_bloom_inspect::{FileRanges, Format, Opened};
/// let mut builder = FilterOptions::default().builder();
/// builder.extend((0..10_000_u32).map(u32::to_le_bytes))?;
/// let stored = builder.finish()?.to_bytes();
///
/// let opened = Opened::new("f", &FileRanges::from(&stored[..]), Format::NATIVE, None)?;
/// let loads = opened.block_loads(0).unwrap();
/// assert_eq!(loads.histogram.iter().sum::<u64>(), loads.blocks);
/// // The expected numbers add up to the number of blocks.
/// assert!((loads.expected.iter().sum::<f64>() / loads.blocks as f64 - 1.0).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BlockLoads {
    /// Bits per block: 512, or 256 for Parquet.
    pub block_bits: u32,
    /// Number of blocks.
    pub blocks: u64,
    /// Number of bits that each key sets.
    pub probes: u32,
    /// Fraction of all bits that are set, 0 to 1.
    pub fill_ratio: f64,
    /// Number of blocks for each count of set bits, from 0 to `block_bits`.
    pub histogram: Vec<u64>,
    /// The histogram expected of evenly hashed keys that set the same total number of bits. A large
    /// difference means a bad hash or damaged bits. Empty if every bit is set.
    pub expected: Vec<f64>,
}

/// The block and bits of a key in one filter, returned by
/// [`Opened::probes`](crate::Opened::probes).
///
/// ```
/// # use blocked_bloom::FilterOptions;
/// # use blocked_bloom_inspect::{FileRanges, Format, LookupOptions, Opened};
/// # let mut builder = FilterOptions::default().builder();
/// # builder.extend(["apple"])?;
/// # let stored = builder.finish()?.to_bytes();
/// # let opened = Opened::new("f", &FileRanges::from(&stored[..]), Format::NATIVE, None)?;
/// let probes = opened.probes(b"apple", &LookupOptions::default())?;
/// assert_eq!((probes.len(), probes[0].block), (1, 0));
/// assert!(probes[0].bits.iter().all(|&(_, is_set)| is_set)); // so it may be present
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Probe {
    /// Number of the filter, as [`Opened::block_loads`](crate::Opened::block_loads) counts them.
    pub part: usize,
    /// Number of the block in the filter.
    pub block: u64,
    /// Bytes of the block: 64, or 32 for Parquet. Bit `b` is bit `b % 8` of byte `b / 8`.
    pub bytes: Vec<u8>,
    /// Bits of the key in the order of the probe scheme, and whether each is set. Bits may repeat.
    pub bits: Vec<(u32, bool)>,
}

impl Probe {
    /// Returns whether every bit is set, so that the key may be in this filter.
    pub fn is_hit(&self) -> bool {
        self.bits.iter().all(|&(_, is_set)| is_set)
    }

    fn new(part: usize, block: u32, bytes: &[u8], bits: impl Iterator<Item = u32>) -> Self {
        let is_set = |bit: u32| bytes[bit as usize / 8] >> (bit % 8) & 1 == 1;
        let bits = bits.map(|bit| (bit, is_set(bit))).collect();
        Probe { part, block: block.into(), bytes: bytes.to_vec(), bits }
    }
}

/// One of the block filters in a stored filter.
pub(crate) enum Part<'o> {
    Bloom(BloomFilter<&'o [Block]>),
    SplitBlock(SplitBlockFilter<&'o [SplitBlock]>),
}

impl Part<'_> {
    /// Returns `None` for a pass-all filter, which has no blocks.
    pub(crate) fn loads(&self) -> Option<BlockLoads> {
        let (histogram, probes) = match self {
            Part::Bloom(filter) => (histogram(filter.blocks()), filter.params().probes()),
            Part::SplitBlock(filter) => (histogram(filter.blocks()), SPLIT_BLOCK_WORDS),
        };
        let (block_bits, blocks) = (histogram.len() as u32 - 1, histogram.iter().sum::<u64>());
        if blocks == 0 {
            return None;
        }
        let ones: u64 = (0..).zip(&histogram).map(|(bits, blocks)| bits * blocks).sum();
        let fill_ratio = ones as f64 / (f64::from(block_bits) * blocks as f64);
        // The probability that a key sets a given bit of its block; its probes may coincide. The
        // number of evenly hashed keys that set a bit has a Poisson distribution.
        let sets = match self {
            Part::Bloom(_) => {
                -(f64::from(probes) * (-1.0 / f64::from(block_bits)).ln_1p()).exp_m1()
            }
            Part::SplitBlock(_) => 1.0 / WORD_BITS as f64,
        };
        let load = -(-fill_ratio).ln_1p() / sets;
        let expected = match load.is_finite() {
            true => expected(self, load, blocks, probes),
            false => Vec::new(),
        };
        Some(BlockLoads { block_bits, blocks, probes, fill_ratio, histogram, expected })
    }

    /// Returns the block and bits of a hash in part `number`. `None` if there are no blocks.
    pub(crate) fn probe(&self, number: usize, hash: u64) -> Option<Probe> {
        match self {
            Part::Bloom(filter) => {
                let blocks = filter.blocks();
                let index = probe::block_index(hash, blocks.len() as u32);
                let bits = probe::bits(hash, filter.params().probes());
                Some(Probe::new(number, index, blocks.get(index as usize)?, bits))
            }
            Part::SplitBlock(filter) => {
                let blocks = filter.blocks();
                let index = split_block::block_index(hash, blocks.len() as u32);
                let bits = (0..).zip(split_block::bits(hash)).map(|(word, bit)| 32 * word + bit);
                Some(Probe::new(number, index, blocks.get(index as usize)?, bits))
            }
        }
    }
}

/// Counts the blocks with each number of set bits.
fn histogram<const BYTES: usize>(blocks: &[[u8; BYTES]]) -> Vec<u64> {
    let mut histogram = vec![0; 8 * BYTES + 1];
    for block in blocks {
        let ones: u32 = block.iter().map(|byte| byte.count_ones()).sum();
        histogram[ones as usize] += 1;
    }
    histogram
}

/// Words of a split block. A key sets one bit in each.
const SPLIT_BLOCK_WORDS: u32 = 8;
const WORD_BITS: usize = 32;

/// Returns the expected number of blocks with each number of set bits, for blocks of `load` keys on
/// average. The distribution for a given number of keys is averaged over the number of keys in a
/// block, which has a binomial distribution.
fn expected(part: &Part<'_>, load: f64, blocks: u64, probes: u32) -> Vec<f64> {
    // The distribution of the number of bits set so far, in a block or in a word of a split block.
    let mut set = match part {
        Part::Bloom(_) => vec![0.0; BLOCK_BITS as usize + 1],
        Part::SplitBlock(_) => vec![0.0; WORD_BITS + 1],
    };
    set[0] = 1.0;
    let (n, keys) = (blocks as f64, (load * blocks as f64).round());
    let mut expected = Vec::new();
    let mut in_block = 0.0_f64;
    // The logarithm of the probability of this number of keys in a block. The probability itself
    // may be too small for an `f64` for small numbers.
    let mut log = if blocks == 1 { 0.0 } else { keys * (-1.0 / n).ln_1p() };
    loop {
        let weight = match blocks {
            1 => f64::from(u8::from(in_block == keys)),
            _ => log.exp(),
        };
        if weight > 0.0 {
            let of_block = match part {
                Part::Bloom(_) => set.clone(),
                Part::SplitBlock(_) => sum_of_eight(&set),
            };
            expected.resize(of_block.len(), 0.0);
            expected.iter_mut().zip(of_block).for_each(|(sum, share)| *sum += n * weight * share);
        }
        // The probabilities rise up to the mean and fall above it.
        if in_block >= keys || (in_block > load && weight < 1e-15) {
            return expected;
        }
        log += ((keys - in_block) / ((in_block + 1.0) * (n - 1.0).max(1.0))).ln();
        in_block += 1.0;
        let throws = if let Part::Bloom(_) = part { probes } else { 1 };
        (0..throws).for_each(|_| throw(&mut set));
    }
}

/// Updates the probabilities of each number of set bits for one more probe, which may hit any bit.
fn throw(set: &mut [f64]) {
    let bits = (set.len() - 1) as f64;
    for ones in (1..set.len()).rev() {
        let before = (ones - 1) as f64;
        set[ones] = set[ones] * (ones as f64 / bits) + set[ones - 1] * ((bits - before) / bits);
    }
    set[0] = 0.0;
}

/// Returns the distribution of the sum of eight independent numbers with this distribution.
fn sum_of_eight(word: &[f64]) -> Vec<f64> {
    let twice = |chances: Vec<f64>| {
        let mut sum = vec![0.0; 2 * chances.len() - 1];
        for (i, a) in chances.iter().enumerate() {
            chances.iter().enumerate().for_each(|(j, b)| sum[i + j] += a * b);
        }
        sum
    };
    twice(twice(twice(word.to_vec())))
}
