//! Choosing probes and blocks with a few estimates of the rate instead of hundreds of evaluations.
//!
//! The choices are those that evaluating [`rate`] for every candidate gives. Thresholds and estimates of known accuracy decide most of
//! them; where something is nearer to a threshold or to the target than that accuracy, `rate` decides.
//! Where `rate` itself cannot tell neighbours apart, for targets within some 10^-10 of 1 and 10^8 keys or more, the blocks may differ by a
//! few in hundreds of millions.

use super::table::{FEW, MANY_BLOCKS, ROWS};
use super::{BITS, HIGH_HASHES, rate};

/// The fewest probes whose rate is at most 1.01 times the best of any number of probes, for as many blocks as sizing allows for the keys.
///
/// Costs 5 to 35 ns, and two rates within `margin` of a threshold.
pub(super) fn best_probes(keys: u64, blocks: u32) -> u32 {
    if blocks < MANY_BLOCKS && keys < 256 {
        let place = blocks << 16 | (keys as u32) << 8 | 0xff;
        let found = FEW[..FEW.partition_point(|&few| few <= place)].last();
        if let Some(probes) = found.map(|few| few & 0xff).filter(|&probes| probes > 0) {
            return probes;
        }
    }
    let (keys_f, blocks_f, share) = (keys as f64, f64::from(blocks), 1.0 / f64::from(blocks));
    // So near are the thresholds to those of the formula: the number of keys is verified by `tools/sizing-tables.py`, the part of all
    // keys is several times what rounding in `rate` makes.
    let margin = 2e-3 + 2e-11 * keys_f;
    for ([c0, c1, c2, c3, ..], probes) in ROWS[..ROWS.len() - 1].iter().zip(1..) {
        let above = keys_f - (c0 * blocks_f + c1 + (c2 + c3 * share) * share);
        if above > margin {
            return probes;
        }
        if above > -margin {
            // At a threshold the best rate is that of one probe more.
            let enough = rate(keys, blocks, probes) <= rate(keys, blocks, probes + 1) * 1.01;
            return probes + u32::from(!enough);
        }
    }
    ROWS.len() as u32
}

/// About how many blocks so many keys need to have more probes than this.
fn blocks_above(probes: u32, keys: f64) -> f64 {
    let [c0, c1, c2, c3, ..] = ROWS[probes as usize - 1];
    let near = (keys - c1) / c0;
    near - (c2 + c3 / near) / (near * c0)
}

/// The fewest blocks, of at most `most`, whose rate with [`best_probes`] is at most `target`; the rate of `most` blocks if it is above.
///
/// The rate falls with every block. Costs 0.1 us for few blocks and some 0.5 us for many; some us where estimates leave a doubt; and up
/// to 0.3 ms for a target within 4 millionths of 1.
pub(super) fn fewest_blocks(keys: u64, target: f64, most: u32) -> Result<u32, f64> {
    let lowest = || rate(keys, most, best_probes(keys, most));
    let (mut next, doubt) = match ROWS.iter().position(|row| row[4] <= target) {
        // A single block is better than many of as many keys on average.
        Some(row) if keys as f64 <= ROWS[row][0] => return Ok(1),
        Some(row) => first_guess(row, keys as f64, target),
        // Many blocks have no such rate, and few hardly.
        None => match lowest() {
            lowest if lowest > target => return Err(lowest),
            _ => (f64::from(most), f64::INFINITY),
        },
    };
    // The answer is one of `low..=high`, of which the last is too many if it is more than `most`.
    let whole = |blocks: f64| (libm::ceil(blocks) as u64).clamp(1, u64::from(most) + 1);
    let (mut low, mut high) = (whole(next - doubt), whole(next + doubt));
    for step in 0.. {
        if low == high {
            break;
        }
        // Where estimates lead nowhere, halving does.
        let halves = step > 8 || next.is_nan();
        let blocks = if halves { low + (high - low) / 2 } else { whole(next).clamp(low, high - 1) };
        let probes = best_probes(keys, blocks as u32);
        let (reaches, root) = look(keys, blocks as u32, probes, target);
        // The root holds as long as the number of probes does.
        let rows = 1..ROWS.len() as u32;
        next = root;
        if reaches {
            high = blocks;
            if rows.contains(&(probes - 1)) {
                next = next.max(blocks_above(probes - 1, keys as f64));
            }
        } else {
            low = blocks + 1;
            if rows.contains(&probes) {
                next = next.min(blocks_above(probes, keys as f64));
            }
        }
    }
    if high > u64::from(most) { Err(lowest()) } else { Ok(high as u32) }
}

/// Blocks at which the rate is about `target`, by the row of [`ROWS`] that it belongs to, and by how many this may be wrong.
fn first_guess(row: usize, keys: f64, target: f64) -> (f64, f64) {
    let guess = if row == 0 {
        blocks_of_one_probe(keys, target)
    } else {
        let [c0, c1, _, _, rate, slope, bend] = ROWS[row];
        let y = libm::log(target / rate);
        let mean = c0 * libm::exp(y * (slope + bend * y));
        // Few blocks shift the keys at equal rates by half of what they shift the thresholds.
        (keys - c1 / 2.0) / mean.min(ROWS[row - 1][0])
    };
    // `tools/sizing-tables.py` verifies half of this.
    let doubt = match row {
        0..=18 if keys < 4_000.0 * guess => 0.1 + 0.006 * guess,
        19 => 0.4 + 0.006 * guess,
        _ => f64::INFINITY,
    };
    (guess, doubt)
}

/// Solves `rate = 1 - (1 - 1 / (512 blocks))^keys`: one probe hits a bit that no key has set.
fn blocks_of_one_probe(keys: f64, rate: f64) -> f64 {
    -1.0 / (BITS * libm::expm1(libm::log1p(-rate) / keys))
}

/// Whether the rate is at most `target`, and about the blocks at which it is with as many probes, or NaN.
///
/// Costs some 0.1 us, and one [`rate`] where the estimate is too near to the target.
fn look(keys: u64, blocks: u32, probes: u32, target: f64) -> (bool, f64) {
    let (keys_f, blocks_f) = (keys as f64, f64::from(blocks));
    let mean = keys_f / blocks_f;
    let (estimate, accuracy, root) = if blocks == 1 || mean > 6_400.0 {
        // In blocks with some more keys than 6400 equal hashes alone make a rate of 1, which changes the mean of all.
        (target, 0.0, f64::NAN)
    } else if probes == 1 {
        let by_hash = mean / HIGH_HASHES;
        let unset = libm::exp(keys_f * libm::log1p(-1.0 / (BITS * blocks_f)));
        (1.0 - unset + by_hash, 1e-12, blocks_of_one_probe(keys_f, target - by_hash))
    } else {
        let [estimate, slope, bend] = estimate(keys_f, blocks_f, probes);
        // Second order in ln(blocks), of which the rate is nearly a power.
        let straight = libm::log(target / estimate) / slope;
        let curved = straight * (1.0 - straight * bend / (2.0 * slope));
        (estimate, 3e-10, blocks_f * libm::exp(curved))
    };
    let near = (estimate - target).abs() <= accuracy * target;
    let reaches = if near { rate(keys, blocks, probes) <= target } else { estimate < target };
    (reaches, root)
}

/// [`rate`] for at least two blocks and probes, wrong by 4.4e-11 of it on a grid, and the first and second derivative of ln(rate) by ln(blocks).
///
/// The same sum over every `stride`-th number of keys only, and only as far as its terms matter; the chance of equal hashes apart, as
/// its mean is known. A sum with a stride is wrong by the distribution's characteristic function at `2 pi / stride`, which is at most
/// `e^(-variance (1 - cos(2 pi / stride)))`: the strides keep the exponent under -24. With `p = 1 / blocks` the derivatives follow from
/// `d weight(j) / dp = weight(j) (j - keys p) / (p (1 - p))`, so from the mean and the variance of `j` where the filter says "maybe".
fn estimate(keys: f64, blocks: f64, probes: u32) -> [f64; 3] {
    let share = 1.0 / blocks;
    let mean = keys * share;
    // No square root, not a number, is 0.
    let stride = ((0.9 * libm::sqrt(mean * (1.0 - share) - 7.0)) as u32).max(1);
    // p^(k-2) (p² + k (k-1) / 2 V) as in `block_rate`, with `p` and `V` written as powers of 511/512 and 510/512.
    let k = f64::from(probes);
    let pairs = k * (k - 1.0) / 2.0;
    let [c1, c2, c11] = [pairs / BITS - 2.0, 1.0 - pairs, pairs * (BITS - 1.0) / BITS];
    let fill =
        |[q, q2]: [f64; 2]| power(1.0 - q, probes - 2) * (1.0 + q * (c1 + q * c2) + c11 * q2);
    let factors = [511.0 / 512.0, 510.0 / 512.0].map(|base| power(base, stride * probes));
    // The middle of the terms that matter is above the mean; it is a multiple of the stride.
    let steps = ((mean + k / 2.0).min(keys) / f64::from(stride)) as u32;
    let middle = f64::from(steps * stride);
    let start = factors.map(|factor| power(factor, steps));
    let start_fill = fill(start);
    // From the middle on, the sums of weights, of weighted fills, and of those times the steps and their square. The ratio of
    // neighbours' weights is `up / down`, each of which changes by a constant.
    let side = |factors: [f64; 2], [mut up, up_step]: [f64; 2], [mut down, down_step]: [f64; 2]| {
        let [mut q, mut q2] = start;
        let (mut weight, mut steps, mut weights) = (1.0, 0.0, 1.0);
        let mut sums = [start_fill, 0.0, 0.0];
        loop {
            let mut ratio = [1.0, 1.0];
            for _ in 0..stride {
                down += down_step;
                ratio = [ratio[0] * up, ratio[1] * down];
                up -= up_step;
            }
            weight *= ratio[0] / ratio[1];
            q *= factors[0];
            q2 *= factors[1];
            steps += 1.0;
            let part = weight * fill([q, q2]);
            weights += weight;
            sums = [sums[0] + part, sums[1] + part * steps, sums[2] + part * steps * steps];
            if part <= 1e-10 * sums[0] && weight <= 1e-10 * weights {
                return (weights, sums);
            }
        }
    };
    let others = 1.0 / (blocks - 1.0);
    let rest = [(keys - middle) * others, others];
    let (more, more_sums) = side(factors, rest, [middle, 1.0]);
    let (fewer, fewer_sums) = side(factors.map(f64::recip), [middle, 1.0], rest);
    let sum = more_sums[0] + fewer_sums[0] - start_fill;
    let stride = f64::from(stride);
    let shift = (more_sums[1] - fewer_sums[1]) * stride / sum;
    let variance = (more_sums[2] + fewer_sums[2]) * stride * stride / sum - shift * shift;
    let (above, scale) = (middle - mean + shift, 1.0 / (1.0 - share));
    let (by_fill, by_hash) = (sum / (more + fewer - 1.0), mean / HIGH_HASHES);
    let rate = by_fill + by_hash;
    // The derivatives of ln(by_fill), and with those of `by_hash`, which is inverse to the blocks, those of ln(rate).
    let first = -above * scale;
    let second = (variance * scale - mean + share * above * scale) * scale;
    let slope = (by_fill * first - by_hash) / rate;
    let bend = (by_fill * (second + first * first) + by_hash) / rate - slope * slope;
    [rate, slope, bend]
}

/// By squaring.
fn power(mut base: f64, mut exponent: u32) -> f64 {
    let mut power = 1.0;
    loop {
        if exponent & 1 == 1 {
            power *= base;
        }
        exponent >>= 1;
        if exponent == 0 {
            return power;
        }
        base *= base;
    }
}
