//! Blocks and bytes of the filters of a level.

use blocked_bloom::parts::HEADER_BYTES;
use blocked_bloom::probe::{BLOCK_BITS, BLOCK_BYTES};
use blocked_bloom::{MAX_BITS_PER_KEY, MAX_RECOMMENDED_BLOCKS, Sizing};

use super::level::Level;

/// Returns the maximum blocks that a plan gives to one filter of this many keys.
pub(super) fn max_blocks(keys: u64) -> u32 {
    let sizing = Sizing::BitsPerKey(MAX_BITS_PER_KEY);
    let blocks = sizing.params(keys).map_or(u32::MAX, |params| params.blocks());
    blocks.min(MAX_RECOMMENDED_BLOCKS)
}

/// Returns the number of blocks in each filter of a level at these bits per key, rounded like
/// [`Sizing::BitsPerKey`]. Returns 0 for no filter.
pub(super) fn blocks_at(level: &Level, bits_per_key: f64) -> u32 {
    if level.keys == 0 || bits_per_key == 0.0 {
        return 0;
    }
    let keys = level.keys_per_filter() as f64;
    let most = f64::from(MAX_RECOMMENDED_BLOCKS);
    libm::ceil(keys * bits_per_key / f64::from(BLOCK_BITS)).clamp(1.0, most) as u32
}

/// Returns the bytes of a stored filter of this many blocks.
pub(super) fn stored_bytes(blocks: u32) -> u64 {
    HEADER_BYTES as u64 + u64::from(blocks) * BLOCK_BYTES as u64
}

/// Returns the stored bytes of all filters of a level with this many blocks each.
pub(super) fn level_bytes(level: &Level, blocks: u32) -> u128 {
    match blocks {
        0 => 0,
        _ => u128::from(level.filters()) * u128::from(stored_bytes(blocks)),
    }
}
