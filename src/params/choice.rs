//! The choice of probes and blocks with a few evaluations of the rate instead of hundreds.
//!
//! The results equal those of evaluating [`rate`] for every candidate. Thresholds and sums with
//! known error bounds decide most cases. If a candidate is closer to a threshold or to the target
//! than the bound, [`rate`] decides. `tests/sizing_grid.rs` compares the results with that
//! definition. For targets within about 10^-10 of 1 and 10^8 keys or more, [`rate`] itself cannot
//! distinguish neighbours: there the blocks may differ by a few in hundreds of millions.

use super::{BITS, HIGH_HASHES, MAX_PROBES, rate, strided_rate};

/// For each number of probes, starting with 1: `[c0, c1, doubt, rate, slope, bend]`.
///
/// The number of probes suffices for at least `c0 blocks + c1` keys, within `doubt / blocks` keys
/// and rounding. At this threshold, the rate with this number of probes is 1.01 times the rate with
/// one more probe. `c0` is the limit for many blocks; `c1` was interpolated at 21, 45 and 2000
/// blocks. The test `probes_change_at_the_same_keys` in `tests/sizing_grid.rs` verifies the three
/// values.
///
/// The other three values are for a first guess of the blocks for a rate; they never decide. With
/// `c0` keys in each of very many blocks, the rate is `rate`. A rate `r` above it requires about
/// `c0 e^(slope y + bend y²)` keys per block with `y = ln(r / rate)`, as long as this number of
/// probes is best.
const ROWS: [[f64; 6]; 20] = [
    [240.087889757354, -0.041943, 0.001, 3.7432e-01, 1.27584, 0.00000],
    [139.500637967404, 0.697099, 0.001, 1.7707e-01, 0.66753, 0.09143],
    [97.944921454365, 1.410000, 0.002, 8.4463e-02, 0.45564, 0.03922],
    [74.873341983310, 2.108445, 0.002, 3.9948e-02, 0.34771, 0.02148],
    [60.040774894759, 2.791202, 0.002, 1.8597e-02, 0.28253, 0.01328],
    [49.612707564745, 3.454768, 0.002, 8.4769e-03, 0.23911, 0.00881],
    [41.824652468524, 4.095170, 0.005, 3.7677e-03, 0.20831, 0.00611],
    [35.750936771672, 4.708519, 0.01, 1.6269e-03, 0.18547, 0.00436],
    [30.859370730980, 5.291261, 0.02, 6.8042e-04, 0.16800, 0.00317],
    [26.822437056517, 5.840302, 0.03, 2.7488e-04, 0.15432, 0.00232],
    [23.427609894426, 6.353075, 0.04, 1.0703e-04, 0.14342, 0.00169],
    [20.530939442281, 6.827580, 0.05, 4.0102e-05, 0.13463, 0.00123],
    [18.031350334292, 7.262411, 0.06, 1.4441e-05, 0.12748, 0.00086],
    [15.855598110095, 7.656837, 0.08, 4.9944e-06, 0.12166, 0.00057],
    [13.949008373468, 8.011094, 0.1, 1.6590e-06, 0.11697, 0.00030],
    [12.269400750672, 8.327413, 0.12, 5.2978e-07, 0.11337, 0.00001],
    [10.782495755469, 8.613721, 0.15, 1.6312e-07, 0.11113, -0.00046],
    [9.456827342953, 8.897802, 0.3, 4.8810e-08, 0.11150, -0.00156],
    [8.252603372675, 9.294231, 1.5, 1.4484e-08, 0.11911, -0.00504],
    [7.064254713871, 10.673441, 10.0, 4.3926e-09, 0.15583, -0.02064],
];

/// The probes for 1, 2, ... keys in one block. For more keys, [`ROWS`] applies.
const SINGLE_BLOCK_PROBES: [u32; 18] =
    [7, 8, 9, 10, 12, 13, 15, 18, 21, 26, 28, 27, 26, 24, 23, 21, 20, 19];

/// Returns the smallest number of probes whose rate is at most 1.01 times the best rate. `blocks`
/// must not exceed the result of sizing for so many keys.
///
/// Takes 20 to 60 ns; a few us near a threshold, and for fewer than 20 blocks if more than 20
/// probes are best (about 57 bits per key).
pub(super) fn best_probes(keys: u64, blocks: u32) -> u32 {
    if blocks == 1 && keys <= SINGLE_BLOCK_PROBES.len() as u64 {
        return SINGLE_BLOCK_PROBES[keys as usize - 1];
    }
    let (keys_f, blocks_f) = (keys as f64, f64::from(blocks));
    for ([c0, c1, doubt, ..], probes) in ROWS.iter().zip(1..) {
        let above = keys_f - (c0 * blocks_f + c1);
        let doubt = doubt / blocks_f + 1e-3 + 2e-11 * keys_f;
        if above > doubt {
            return probes;
        }
        if above > -doubt {
            return searched_probes(keys, blocks, probes);
        }
    }
    let more = ROWS.len() as u32 + 1;
    if blocks < 20 { searched_probes(keys, blocks, more) } else { more }
}

/// Computes [`best_probes`] by its definition, with a search that starts at a guess. With more
/// probes, the rate falls to its only minimum and then rises.
fn searched_probes(keys: u64, blocks: u32, mut probes: u32) -> u32 {
    let rate = |probes| rate(keys, blocks, probes);
    let mut best = rate(probes);
    while probes < MAX_PROBES {
        let more = rate(probes + 1);
        if more >= best {
            break;
        }
        (probes, best) = (probes + 1, more);
    }
    while probes > 1 {
        let fewer = rate(probes - 1);
        if fewer > best * 1.01 {
            break;
        }
        (probes, best) = (probes - 1, best.min(fewer));
    }
    probes
}

/// Returns the smallest number of blocks, at most `most`, whose rate with [`best_probes`] is at
/// most `target`. If there is none, the error is the rate of `most` blocks.
///
/// The rate falls with every block, so the rates of two neighbours prove the answer. Takes 0.2 us
/// for one probe and about 1 us for more (three or four rates), a few us if estimates are too close
/// to decide, and up to 0.3 ms for a target within 4 millionths of 1.
pub(super) fn fewest_blocks(keys: u64, target: f64, most: u32) -> Result<u32, f64> {
    let keys_f = keys as f64;
    // Approximate number of blocks above which `keys` keys need more than `probes` probes, or NaN,
    // which `min` and `max` ignore.
    let last = |probes: u32| {
        let row = ROWS.get((probes as usize).wrapping_sub(1));
        row.map_or(f64::NAN, |[c0, c1, ..]| (keys_f - c1) / c0)
    };
    let reached = ROWS.iter().find(|row| row[3] <= target);
    let [c0, c1, _, row_rate, slope, bend] = reached.unwrap_or(&ROWS[ROWS.len() - 1]);
    let y = libm::log(target / row_rate);
    // With few blocks, the number of keys at which the rate is reached is shifted by half of the
    // shift of the row's threshold.
    let mut next = (keys_f - c1 / 2.0) / (c0 * libm::exp(y * (slope + bend * y)));
    // The answer is in `low..=high`. If it is more than `most`, no number of blocks suffices.
    let (mut low, mut high) = (1, u64::from(most) + 1);
    let mut steps = 0;
    while low < high {
        steps += 1;
        // If estimates do not converge, the range is halved. NaN becomes `low`.
        let estimated = (libm::ceil(next) as u64).clamp(low, high - 1);
        let blocks = if steps > 9 { low + (high - low) / 2 } else { estimated };
        let (blocks_f, blocks) = (blocks as f64, blocks as u32);
        let (mean, probes) = (keys_f / blocks_f, best_probes(keys, blocks));
        // `next` becomes the number of blocks at which the rate with this number of probes is about
        // `target`. For 3 million random sizes, the relative error of `found` was at most 7.4e-15
        // with one probe and 4.4e-11 with more.
        let (mut found, accuracy);
        if probes == 1 && mean < 6_400.0 {
            // The one probe hits a set bit with probability 1 - (1 - 1 / (512 blocks))^keys.
            let by_hash = mean / HIGH_HASHES;
            found = by_hash - libm::expm1(keys_f * libm::log1p(-1.0 / (BITS * blocks_f)));
            accuracy = 1e-12;
            next = -1.0 / (BITS * libm::expm1(libm::log1p(by_hash - target) / keys_f));
        } else {
            // With more than 6400 keys in a block, equal hashes alone raise the rate to 1, and no
            // stride may skip that. Otherwise, the stride keeps the exponent of the error bound of
            // `strided_rate` below -24. The root of a negative number is NaN, for which
            // the stride becomes 1.
            let variance = mean * (1.0 - 1.0 / blocks_f);
            let stride = if probes == 1 { 1.0 } else { 0.9 * libm::sqrt(variance - 7.0) };
            let [rate, slope, bend] =
                strided_rate(keys, blocks, probes, (stride as u32).max(1), 1e-10);
            (found, accuracy) = (rate, 3e-10);
            // A step of second order in ln(blocks), since ln(rate) is nearly linear in it.
            let straight = libm::log(target / rate) / slope;
            next = blocks_f * libm::exp(straight * (1.0 - straight * bend / (2.0 * slope)));
        }
        if (found - target).abs() <= accuracy * target {
            found = rate(keys, blocks, probes);
        }
        // The estimate is valid while the number of probes does not change.
        if found <= target {
            high = u64::from(blocks);
            next = next.max(last(probes - 1));
        } else {
            low = u64::from(blocks) + 1;
            next = next.min(last(probes));
        }
    }
    if high > u64::from(most) {
        return Err(rate(keys, most, best_probes(keys, most)));
    }
    Ok(high as u32)
}
