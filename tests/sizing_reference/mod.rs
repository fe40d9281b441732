//! Sizing as it was before `src/params/choice.rs`, word for word from `src/params.rs` but for this head: every choice evaluates the
//! formula for every candidate. What the choices of the crate are compared with, and the time they take.

use blocked_bloom::probe::{MAX_BITS_PER_KEY, MAX_PROBES};
use blocked_bloom::{ParamsError, Sizing};

const BITS: f64 = 512.0;

/// `(blocks, probes)`, or (1, 1) for no filter.
pub(crate) fn params(sizing: Sizing, keys: u64, foldable: bool) -> Result<(u32, u32), ParamsError> {
    if sizing.is_pass_all() {
        return Ok((1, 1));
    }
    let blocks = match sizing {
        Sizing::BitsPerKey(bits) => blocks_for_bits(keys, bits)?,
        Sizing::FalsePositiveRate(rate) => blocks_for_rate(keys, rate)?,
        Sizing::MaxBytes(bytes) => blocks_for_bytes(keys, bytes)?,
        _ => unreachable!("{sizing}"),
    };
    let step = if foldable { 1 << (blocks / 64).max(1).ilog2() } else { 1 };
    let blocks = match sizing {
        Sizing::MaxBytes(_) => blocks - blocks % step,
        _ => blocks.checked_next_multiple_of(step).unwrap_or(blocks),
    };
    // With no key every rate is 0: take the probes of one.
    let (probes, _) = best_probes(keys.max(1), blocks);
    Ok((blocks, probes))
}

/// The first value in `low .. high` for which `holds` is false, or `high`; `holds` is true up to some point.
fn partition_point(mut low: u64, mut high: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

fn check_rate(rate: f64) -> Result<(), ParamsError> {
    if rate > 0.0 && rate <= 1.0 { Ok(()) } else { Err(ParamsError::RateOutOfRange { rate }) }
}

/// Keys times bits in blocks, at least one; exact to one part in 2^52.
fn blocks_for_bits(keys: u64, bits: f64) -> Result<u32, ParamsError> {
    if !(0.0..=MAX_BITS_PER_KEY).contains(&bits) {
        return Err(ParamsError::BitsPerKeyOutOfRange { bits_per_key: bits });
    }
    let blocks = libm::ceil(keys as f64 * bits / BITS).max(1.0);
    if blocks > f64::from(u32::MAX) {
        return Err(ParamsError::BlocksOutOfRange { blocks: blocks as u64 });
    }
    Ok(blocks as u32)
}

fn blocks_for_bytes(keys: u64, bytes: u64) -> Result<u32, ParamsError> {
    let blocks = bytes.saturating_sub(64) / 64;
    if blocks == 0 {
        return Err(ParamsError::TooFewBytes { bytes });
    }
    Ok(blocks.min(most_blocks(keys)) as u32)
}

/// Blocks at [`MAX_BITS_PER_KEY`].
fn most_blocks(keys: u64) -> u64 {
    blocks_for_bits(keys, MAX_BITS_PER_KEY).map_or(u64::from(u32::MAX), u64::from)
}

fn blocks_for_rate(keys: u64, target: f64) -> Result<u32, ParamsError> {
    check_rate(target)?;
    let reaches = |blocks: u64| best_probes(keys, blocks as u32).1 <= target;
    let most = most_blocks(keys);
    // Bracket the answer by doubling from well below it: 1.2 bits per halving of the rate is the least any filter can do.
    let least = keys as f64 * 1.2 * -libm::log2(target) / BITS;
    let mut high = (least as u64).clamp(1, most);
    let mut low = 1;
    while !reaches(high) {
        if high == most {
            let (_, lowest) = best_probes(keys, most as u32);
            let needs_partition = most == u64::from(u32::MAX);
            return Err(ParamsError::RateUnreachable { rate: target, lowest, needs_partition });
        }
        low = high + 1;
        high = (high + high / 4 + 1).min(most);
    }
    Ok(partition_point(low, high, |blocks| !reaches(blocks)) as u32)
}

/// The fewest probes within 1 % of the best rate, and their rate.
pub(crate) fn best_probes(keys: u64, blocks: u32) -> (u32, f64) {
    let mut rates = [1.0; MAX_PROBES as usize];
    let mut best = f64::INFINITY;
    for (probes, slot) in (1..=MAX_PROBES).zip(&mut rates) {
        *slot = rate(keys, blocks, probes);
        best = best.min(*slot);
        // One minimum: past it, nothing better comes.
        if *slot > 1.2 * best {
            break;
        }
    }
    let chosen = rates.iter().position(|&rate| rate <= best * 1.01).unwrap_or(0);
    (chosen as u32 + 1, rates[chosen])
}

/// The false-positive rate of `keys` distinct keys in `blocks` blocks: see the top of this file.
pub(crate) fn rate(keys: u64, blocks: u32, probes: u32) -> f64 {
    let block = BlockRate::new(probes);
    if blocks == 1 {
        return block.at(Load::of(keys as f64, probes));
    }
    // Binomial(keys, 1 / blocks) over +-12 sigma around its mean, each weight from its neighbour; the mode's is 1 until the
    // sum divides it out. The window gets 40 more above, for means so small that 12 sigma is less than a key.
    let (keys, others) = (keys as f64, f64::from(blocks) - 1.0);
    let mean = keys / f64::from(blocks);
    let sigma = libm::sqrt(mean);
    let mode = libm::floor(mean);
    let first = libm::floor((mean - 12.0 * sigma).max(0.0));
    let last = libm::ceil(mean + 12.0 * sigma + 40.0).min(keys);
    // Every bit is set in double precision once a block has 512 * 40 probes; then the window, however wide, gives 1.
    if first * f64::from(probes) > BITS * 40.0 {
        return 1.0;
    }
    let (mut sum, mut weights) = (0.0, 0.0);
    let mut add = |load: Load, weight: f64| {
        weights += weight;
        sum += weight * block.at(load);
    };
    let (mut load, mut weight) = (Load::of(mode, probes), 1.0);
    while load.keys <= last && weight > 0.0 {
        add(load, weight);
        weight *= (keys - load.keys) / ((load.keys + 1.0) * others);
        load = load.step(1.0, block.one_more);
    }
    (load, weight) = (Load::of(mode, probes), 1.0);
    while load.keys > first && weight > 0.0 {
        weight *= load.keys * others / (keys - load.keys + 1.0);
        load = load.step(-1.0, block.one_less);
        add(load, weight);
    }
    (sum / weights).clamp(0.0, 1.0)
}

/// How full a block is: its keys `j` and, with `b = j k`, the powers `[(511/512)^b, (510/512)^b]`.
#[derive(Clone, Copy)]
struct Load {
    keys: f64,
    powers: [f64; 2],
}

impl Load {
    fn of(keys: f64, probes: u32) -> Self {
        // ln(511/512), ln(510/512)
        const LOGARITHMS: [f64; 2] = [-0.001_955_034_835_803_350_6, -0.003_913_899_321_136_329];
        let balls = keys * f64::from(probes);
        Load { keys, powers: LOGARITHMS.map(|log| libm::exp(balls * log)) }
    }

    /// One key more or less, by a multiplication instead of an exponential.
    fn step(self, keys: f64, factors: [f64; 2]) -> Self {
        let powers = [self.powers[0] * factors[0], self.powers[1] * factors[1]];
        Load { keys: self.keys + keys, powers }
    }
}

/// The rate of one block at a number of probes.
struct BlockRate {
    probes: u32,
    one_more: [f64; 2],
    one_less: [f64; 2],
}

impl BlockRate {
    fn new(probes: u32) -> Self {
        let [one_more, one_less] = [1.0, -1.0].map(|keys| Load::of(keys, probes).powers);
        BlockRate { probes, one_more, one_less }
    }

    fn at(&self, load: Load) -> f64 {
        if load.keys == 0.0 {
            return 0.0;
        }
        let (k, [q, q2]) = (f64::from(self.probes), load.powers);
        let p = 1.0 - q;
        let variance = ((BITS - 1.0) * q2 + q) / BITS - q * q;
        let second_order = 1.0 + k * (k - 1.0) * variance.max(0.0) / (2.0 * p * p);
        let power = (1..self.probes).fold(p, |power, _| power * p);
        (power * second_order + load.keys / 4_294_967_296.0).clamp(0.0, 1.0)
    }
}
