//! Codes: hashes of the units of keys that keep units of a block together.
//!
//! A unit `x` is at `x mod 2^w` of block `x / 2^w`. Its code is the block's start, a mixed hash in
//! `0 .. starts`, plus that offset. Codes never wrap, so the codes of a range within a block are a
//! range too, and a false positive needs a key of another block whose code falls into it. Another
//! block's start is there with a probability of at most (length of the range) / `starts`, for all
//! keys.

use blocked_bloom::KeyHasher;

/// Largest number of blocks that a lookup reads. Longer ranges are answered "maybe".
pub(crate) const MAX_BLOCKS: u128 = 8;

/// Parts of a bucket, as a power of two.
pub(crate) const PART_BITS: u32 = 5;

/// The hash of blocks. The seed is fixed, so that equal keys have equal bytes in every build. A
/// pairwise independent hash would not do: with a fixed seed, keys exist whose rate is many times
/// the bound.
const HASHER: KeyHasher = KeyHasher::with_seed(0);

/// The map from units to codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    /// 1 to 2^62.
    pub(crate) starts: u64,
    /// `w`, the units of a block as a power of two.
    pub(crate) block_bits: u32,
}

impl Space {
    /// Returns the space for this many units at 4 to 32 bits each, and the low bits of codes.
    ///
    /// A bucket of 2^(low bits + 5) codes takes 64 bits and a key takes (low bits + 1), which
    /// leaves this number of buckets. All results are the same on every machine: the operations are
    /// exact or correctly rounded.
    pub(crate) fn new(units: usize, bits_per_key: f64) -> (Self, u32) {
        let low_bits = (bits_per_key - 2.334) as u32;
        let buckets = units as f64 * (bits_per_key - f64::from(low_bits + 1)) / 64.0;
        let codes = buckets * (1_u64 << (low_bits + PART_BITS)) as f64;
        let codes = (codes as u64).clamp(64, 1 << 62);
        let block_bits = (codes / 16).ilog2().min(low_bits + PART_BITS);
        (Space { starts: codes - (1 << block_bits), block_bits }, low_bits)
    }

    /// Returns one more than the largest code.
    pub(crate) fn codes(self) -> u64 {
        self.starts + (1 << self.block_bits)
    }

    #[inline]
    fn start(self, block: u128) -> u64 {
        let hash = match u64::try_from(block) {
            Ok(block) => HASHER.hash(block.to_le_bytes()),
            Err(_) => HASHER.hash(block.to_le_bytes()),
        };
        ((u128::from(hash) * u128::from(self.starts)) >> 64) as u64
    }

    /// Returns the code of a unit.
    pub(crate) fn code(self, unit: u128) -> u64 {
        self.start(unit >> self.block_bits) + (unit as u64 & ((1 << self.block_bits) - 1))
    }

    /// Returns the first and last code of a range of units in each block, or `None` for too many
    /// blocks.
    #[inline]
    pub(crate) fn pieces(
        self,
        first: u128,
        last: u128,
    ) -> Option<impl Iterator<Item = (u64, u64)>> {
        let mask = (1 << self.block_bits) - 1;
        let block = first >> self.block_bits;
        let more = (last >> self.block_bits) - block;
        (more < MAX_BLOCKS).then(|| {
            (0..=more as u64).map(move |i| {
                let start = self.start(block + u128::from(i));
                let from = if i == 0 { first as u64 & mask } else { 0 };
                let to = if u128::from(i) == more { last as u64 & mask } else { mask };
                (start + from, start + to)
            })
        })
    }
}
