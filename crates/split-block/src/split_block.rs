//! The probe scheme of split-block filters in plain scalar Rust: the 32-byte block of a hash, and
//! its bits there. It is the reference for the kernels.
//!
//! A block has 32 bytes: eight little-endian words of 32 bits. Each key sets one bit in each word.
//! With `lo = hash as u32`, `hi = (hash >> 32) as u32` and `n` blocks:
//!
//! ```text
//! block_index = (hi * n) >> 32                  product in 64 bits; the core's scheme takes lo
//! bit(i)      = (lo * SALTS[i] mod 2^32) >> 27  of word i, i = 0 .. 8
//! ```
//!
//! Source: `BloomFilter.md` of the Parquet format; the blocks are those of Putze, Sanders and
//! Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", 2007.
//!
//! ```
//! use blocked_bloom_split::split_block::{bits, block_index, contains, insert};
//! let (mut blocks, hash) = ([[0; 32]; 10], 0x8000_0000_0000_002a);
//! let block = &mut blocks[block_index(hash, 10) as usize];
//! assert!(!contains(block, hash));
//! assert!(insert(block, hash));
//! assert!(contains(block, hash));
//! // In the middle of the range of hashes, so in the middle of the blocks; one bit in each word.
//! assert_eq!(blocks[5][..4], (1_u32 << bits(hash)[0]).to_le_bytes());
//! ```

/// 32 bytes of a filter: eight little-endian words of 32 bits.
///
/// ```
/// use blocked_bloom_split::SplitBlock;
/// use blocked_bloom_split::split_block::contains;
/// let empty: SplitBlock = [0; 32];
/// assert!(!contains(&empty, 0x1234_5678_9abc_def0));
/// ```
pub type SplitBlock = [u8; SPLIT_BLOCK_BYTES];

/// Number of bytes in a block.
pub const SPLIT_BLOCK_BYTES: usize = 32;

/// The odd multipliers, one per word.
pub const SALTS: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// Returns the block of `hash`, `0 .. blocks`. Returns 0 if `blocks` is 0.
///
/// Monotone in the hash: sorting by hash also sorts by block.
///
/// ```
/// use blocked_bloom_split::split_block::block_index;
/// assert_eq!(block_index(0x8000_0000_0000_0000, 10), 5);
/// assert_eq!(block_index(u64::MAX, u32::MAX), u32::MAX - 1);
/// ```
#[inline]
pub const fn block_index(hash: u64, blocks: u32) -> u32 {
    (((hash >> 32) * blocks as u64) >> 32) as u32
}

/// Returns the bit positions of `hash`, one per word, each `0 .. 32`. They depend only on the low
/// half of the hash.
///
/// ```
/// use blocked_bloom_split::split_block::{SALTS, bits};
/// assert_eq!(bits(0), [0; 8]);
/// assert_eq!(bits(1), SALTS.map(|salt| salt >> 27));
/// ```
#[inline]
pub fn bits(hash: u64) -> [u32; 8] {
    SALTS.map(|salt| (hash as u32).wrapping_mul(salt) >> 27)
}

/// Returns whether every bit of `hash` is set in its block: true means "maybe", false "certainly
/// absent".
///
/// Cost: 32 bytes, which are in one cache line if they are aligned. No branch depends on the block.
#[inline]
pub fn contains(block: &SplitBlock, hash: u64) -> bool {
    let (words, _) = block.as_chunks();
    let mut all = 1;
    for (&word, bit) in words.iter().zip(bits(hash)) {
        all &= u32::from_le_bytes(word) >> bit;
    }
    all & 1 == 1
}

/// Sets every bit of `hash` in its block. Returns true if at least one was unset.
#[inline]
pub fn insert(block: &mut SplitBlock, hash: u64) -> bool {
    let mut new = 0;
    let (words, _) = block.as_chunks_mut();
    for (word, bit) in words.iter_mut().zip(bits(hash)) {
        let before = u32::from_le_bytes(*word);
        let set = 1 << bit;
        new |= !before & set;
        *word = (before | set).to_le_bytes();
    }
    new != 0
}

/// Returns the false-positive rate, 0 to 1, of a filter with this many blocks and distinct values.
///
/// In a block with `j` values, the bit of an absent value is set in one word with a probability of
/// `1 - (31/32)^j`, and in all eight words with its eighth power. The rate is the mean over `j ~
/// Binomial(values, 1 / blocks)`. Expanding the power results in a sum of nine terms, exact except
/// for rounding (about 1e-14). Writers size filters with `(1 - e^(-8 n / m))^8`, which ignores
/// blocks and is lower: 0.85 % instead of 1.26 % at 10 bits per value. Without blocks, every value
/// passes.
///
/// ```
/// use blocked_bloom_split::split_block::false_positive_rate;
/// let blocks = 1_000_000 * 10 / 256; // 10 bits per value
/// assert!((0.012_6..0.012_7).contains(&false_positive_rate(1_000_000, blocks)));
/// ```
pub fn false_positive_rate(values: u64, blocks: u32) -> f64 {
    const BINOMIAL: [f64; 9] = [1.0, -8.0, 28.0, -56.0, 70.0, -56.0, 28.0, -8.0, 1.0];
    if blocks == 0 {
        return 1.0;
    }
    let (values, blocks) = (values as f64, f64::from(blocks));
    let term = |(i, binomial): (i32, f64)| {
        // The mean of (31/32)^(ij).
        let unset = -libm::expm1(f64::from(i) * libm::log(31.0 / 32.0));
        let log = if values == 0.0 { 0.0 } else { values * libm::log1p(-unset / blocks) };
        binomial * libm::exp(log)
    };
    (0..).zip(BINOMIAL).map(term).sum::<f64>().clamp(0.0, 1.0)
}
