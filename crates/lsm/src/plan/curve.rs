//! The rate of one filter as a function of its blocks, as far as a plan can use it: the corners of
//! its lower convex hull.
//!
//! Sizes at which the rate falls more slowly than a little further on are left out: above all those
//! of less than about a bit per key.

use alloc::vec::Vec;

use blocked_bloom::Sizing;

use super::size::{most_blocks, stored_bytes};

/// Up to this many keys the rate is computed for exactly that number; for more, for the next power
/// of two up to [`MAX_KEYS`], with as many bits per key. The two rates differ as those of two binomial
/// distributions of the same mean: by under 1 %, which moves a plan by less than the rounding to
/// blocks.
const MAX_EXACT_KEYS: u64 = 1_024;

/// Keys of the largest filters whose rate is computed: from here on only bits per key matter.
const MAX_KEYS: u64 = 1 << 20;

/// A number of blocks and the rate they give.
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
    /// The number of keys whose curve serves filters of `keys` keys.
    pub(super) fn class(keys: u64) -> u64 {
        if keys <= MAX_EXACT_KEYS {
            keys
        } else {
            keys.checked_next_power_of_two().map_or(MAX_KEYS, |power| power.min(MAX_KEYS))
        }
    }

    /// The curve of a class. Some 400 sizes of 10 us, or one for each block if these are fewer.
    pub(super) fn new(keys: u64) -> Self {
        let most = most_blocks(keys);
        // A sixteenth of a bit per key, 1/128 of the size once that is more.
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

    /// The corners for a filter of `keys` keys of this class, ascending; the last is the most
    /// blocks it may have.
    pub(super) fn corners(&self, keys: u64) -> Vec<Point> {
        let most = most_blocks(keys);
        if keys == self.keys {
            return self.corners.clone();
        }
        let scale = keys as f64 / self.keys as f64;
        let scaled = self.corners.iter().map(|corner| Point {
            // Saturates where there are too many.
            blocks: libm::round(f64::from(corner.blocks) * scale).max(1.0) as u32,
            ..*corner
        });
        let mut corners: Vec<Point> = scaled.take_while(|corner| corner.blocks < most).collect();
        corners.dedup_by_key(|corner| corner.blocks);
        corners.push(Point { blocks: most, rate: rate(keys, most) });
        corners
    }
}

/// The rate of a filter of exactly this many blocks, with the probes it would get.
pub(super) fn rate(keys: u64, blocks: u32) -> f64 {
    Sizing::MaxBytes(stored_bytes(blocks))
        .params(keys)
        .map_or(1.0, |params| params.false_positive_rate())
}

/// By how much the rate falls per block.
fn slope(from: Point, to: Point) -> f64 {
    (from.rate - to.rate) / f64::from(to.blocks - from.blocks)
}
