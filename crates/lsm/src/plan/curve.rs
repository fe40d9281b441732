//! The rate of one filter as a function of its blocks, as the corners of its lower convex hull.
//!
//! Sizes at which a block saves less than somewhat further on are left out, above all those below
//! about one bit per key.

use alloc::vec::Vec;

use blocked_bloom::Sizing;

use super::size::{max_blocks, stored_bytes};

/// Up to this many keys the rate is computed for the exact number. For more, it is computed for the
/// next power of two up to [`MAX_KEYS`], at the same bits per key. The two rates differ like those
/// of two binomial distributions with the same mean: by less than 1 %, which changes a plan less
/// than rounding to blocks does.
const MAX_EXACT_KEYS: u64 = 1_024;

/// Keys of the largest filters whose rate is computed. Above, only bits per key matter.
const MAX_KEYS: u64 = 1 << 20;

/// A number of blocks and the rate with them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) blocks: u32,
    pub(super) rate: f64,
}

/// The hull for one number of keys.
pub(super) struct Curve {
    keys: u64,
    corners: Vec<Point>,
}

impl Curve {
    /// Returns the number of keys whose curve serves filters of `keys` keys.
    pub(super) fn class(keys: u64) -> u64 {
        if keys <= MAX_EXACT_KEYS {
            keys
        } else {
            keys.checked_next_power_of_two().map_or(MAX_KEYS, |power| power.min(MAX_KEYS))
        }
    }

    /// Computes the curve of a class: about 400 sizes at 10 us each, or one per block if that is
    /// fewer.
    pub(super) fn new(keys: u64) -> Self {
        let most = max_blocks(keys);
        // A sixteenth of a bit per key, or 1/128 of the size if that is more.
        let smallest_step = (keys / (16 * 512)).max(1) as u32;
        let mut corners: Vec<Point> = Vec::new();
        let mut blocks = smallest_step;
        loop {
            let new = Point { blocks, rate: rate(keys, blocks) };
            while let [.., before, last] = corners[..]
                && slope(before, last) <= slope(before, new)
            {
                corners.pop();
            }
            corners.push(new);
            if blocks >= most {
                return Curve { keys, corners };
            }
            blocks = (blocks + smallest_step.max(blocks / 128)).min(most);
        }
    }

    /// Returns the corners for a filter of `keys` keys of this class, ascending. The last one is
    /// the maximum size.
    pub(super) fn corners(&self, keys: u64) -> Vec<Point> {
        let most = max_blocks(keys);
        if keys == self.keys {
            return self.corners.clone();
        }
        let scale = keys as f64 / self.keys as f64;
        let scaled = self.corners.iter().map(|corner| Point {
            // Saturates if there are too many.
            blocks: libm::round(f64::from(corner.blocks) * scale).max(1.0) as u32,
            ..*corner
        });
        let mut corners: Vec<Point> = scaled.take_while(|corner| corner.blocks < most).collect();
        corners.dedup_by_key(|corner| corner.blocks);
        corners.push(Point { blocks: most, rate: rate(keys, most) });
        corners
    }
}

/// Returns the rate of a filter of exactly this many blocks, with its best number of probes.
pub(super) fn rate(keys: u64, blocks: u32) -> f64 {
    Sizing::MaxBytes(stored_bytes(blocks))
        .params(keys)
        .map_or(1.0, |params| params.false_positive_rate())
}

/// Returns the fall of the rate per block.
fn slope(from: Point, to: Point) -> f64 {
    (from.rate - to.rate) / f64::from(to.blocks - from.blocks)
}
