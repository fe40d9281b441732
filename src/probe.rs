//! The probe scheme in plain scalar Rust: the block and the bits that a hash sets and tests.
//!
//! This module has no `unsafe` code and no SIMD, and knows nothing about filters, keys or files.
//! Tests compare every kernel with it, so it is written to be read.
//!
//! A block is 64 bytes (one cache line) of 512 bits; bit `b` is bit `b % 8` of byte `b / 8`, on
//! every machine. With `lo = hash as u32`, `hi = (hash >> 32) as u32` and `n` blocks:
//!
//! ```text
//! block_index = (lo * n) >> 32                          Lemire's fastrange, product in 64 bits
//! bit(i)      = (hi * G^i mod 2^32) >> 23               i = 0 .. probes, G = 0x9e3779b9
//! ```
//!
//! The scheme equals RocksDB's FastLocalBloom (`format_version` 5 and later) bit for bit. Daniel
//! Lemire describes the reduction in "Fast Random Integer Generation in an Interval", 2019.
//!
//! ```
//! use blocked_bloom::probe::{block_index, contains, insert};
//! let (mut blocks, hash) = ([[0; 64]; 10], 0x1234_5678_9abc_def0);
//! insert(&mut blocks[block_index(hash, 10) as usize], hash, 6);
//! assert!(contains(&blocks[block_index(hash, 10) as usize], hash, 6));
//! ```

/// One cache line of a filter: 512 bits.
///
/// ```
/// let empty: blocked_bloom::Block = [0; 64];
/// assert!(!blocked_bloom::probe::contains(&empty, 0x1234_5678_9abc_def0, 6));
/// ```
pub type Block = [u8; 64];

/// Bytes in a block.
pub const BLOCK_BYTES: usize = 64;

/// Bits in a block.
pub const BLOCK_BITS: u32 = 512;

/// Largest number of probes: 30, as in RocksDB.
pub const MAX_PROBES: u32 = 30;

/// Largest number of bits per key that sizing accepts: 100. With more, equal 32-bit halves of
/// hashes determine the false-positive rate.
pub const MAX_BITS_PER_KEY: f64 = 100.0;

/// The multiplier `G`: 2^32 divided by the golden ratio, odd.
pub const MULTIPLIER: u32 = 0x9e37_79b9;

/// Returns the index of the hash's block, `0 .. blocks`; 0 if `blocks` is 0.
///
/// The index is monotone in the low half of the hash: sorting by that half sorts by block.
///
/// ```
/// use blocked_bloom::probe::block_index;
/// assert_eq!(block_index(0x0000_0000_8000_0000, 10), 5);
/// assert_eq!(block_index(u64::MAX, u32::MAX), u32::MAX - 1);
/// ```
#[inline]
pub const fn block_index(hash: u64, blocks: u32) -> u32 {
    // Let `n = blocks` and `f(lo) = floor(lo * n / 2^32)`, with `0 <= lo <= 2^32 - 1` and
    // `0 <= n <= 2^32 - 1`. `unsafe` code relies on these three statements.
    //
    // 1. Nothing overflows: `lo * n <= (2^32 - 1)^2 = 2^64 - 2^33 + 1 < 2^64`, so the product of 64
    //    bits is exact, and the shift by 32 is the division by 2^32, rounded down.
    // 2. If `n > 0`, then `f(lo) < n`: `lo < 2^32` gives `lo * n < 2^32 * n`, so
    //    `lo * n / 2^32 < n`, and rounding down does not increase it. The result is below 2^32, so
    //    the last cast loses nothing.
    // 3. `f` is monotone: `a <= b` gives `a * n <= b * n`, and division by 2^32 and rounding down
    //    both keep that order. Block `i` therefore has the consecutive low halves
    //    `ceil(i * 2^32 / n) .. ceil((i + 1) * 2^32 / n)`: `f(lo) >= i` means `lo * n >= i * 2^32`.
    //    Since `n < 2^32`, each block has at least one.
    let lo = hash as u32;
    ((lo as u64 * blocks as u64) >> 32) as u32
}

/// Returns the bit positions, each `0 .. 512`, of the first `probes` probes of `hash`. They may
/// repeat.
///
/// ```
/// use blocked_bloom::probe::bits;
/// assert_eq!(bits(1 << 32, 3).collect::<Vec<_>>(), [0, 316, 454]);
/// ```
#[inline]
pub fn bits(hash: u64, probes: u32) -> impl Iterator<Item = u32> + Clone {
    let mut product = (hash >> 32) as u32;
    (0..probes).map(move |_| {
        let bit = product >> 23;
        product = product.wrapping_mul(MULTIPLIER);
        bit
    })
}

/// Whether every bit of `hash` is set in its block. If not, the hash is certainly absent.
///
/// Cost: `probes` byte loads from one cache line. There is no early exit, since a mispredicted
/// branch costs more than the probes that it saves.
///
/// ```
/// use blocked_bloom::probe::{contains, insert};
/// let mut block = [0; 64];
/// insert(&mut block, 0x1234_5678_9abc_def0, 6);
/// assert!(contains(&block, 0x1234_5678_9abc_def0, 6));
/// ```
#[inline]
pub fn contains(block: &Block, hash: u64, probes: u32) -> bool {
    let mut all = 1;
    for bit in bits(hash, probes) {
        all &= block[(bit / 8) as usize] >> (bit % 8);
    }
    all & 1 == 1
}

/// Sets every bit of `hash` in its block. Returns true if at least one bit was clear before.
///
/// ```
/// let mut block = [0; 64];
/// assert!(blocked_bloom::probe::insert(&mut block, 42 << 32, 6));
/// assert!(!blocked_bloom::probe::insert(&mut block, 42 << 32, 6));
/// ```
#[inline]
pub fn insert(block: &mut Block, hash: u64, probes: u32) -> bool {
    let (mut before, mut after) = (0, 0);
    for bit in bits(hash, probes) {
        let byte = &mut block[(bit / 8) as usize];
        before += u32::from(*byte);
        *byte |= 1 << (bit % 8);
        after += u32::from(*byte);
    }
    before != after
}
