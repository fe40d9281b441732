//! Sizing: the number of blocks and probes of a filter, and its false-positive rate.
//!
//! Allocates nothing and finishes quickly for every input. `docs/parameters.md` has the formula:
//! the mean of `fill^k` to second order, averaged over the number of keys in a block.

use core::fmt::{self, Display, Formatter};

use crate::error::{ShortNumber, ensure};
use crate::header::HEADER_BYTES;
use crate::probe::{BLOCK_BITS, BLOCK_BYTES, MAX_BITS_PER_KEY, MAX_PROBES};

mod choice;

/// Largest recommended number of blocks: 2^28, which take 16 GiB. In larger filters, some blocks
/// receive noticeably more hashes than others, since 32 bits of the hash select the block. The rate
/// is then higher than [`Params::false_positive_rate`]: partition the filter.
pub const MAX_RECOMMENDED_BLOCKS: u32 = 1 << 28;

/// Returns the length of a stored filter in bytes.
pub(crate) fn stored_bytes(blocks: u32) -> u64 {
    HEADER_BYTES as u64 + u64::from(blocks) * BLOCK_BYTES as u64
}

const BITS: f64 = BLOCK_BITS as f64;

/// Number of values of the high half of a hash, which selects a key's bits.
const HIGH_HASHES: f64 = 4_294_967_296.0;

/// The rule for sizing filters. With the number of keys, it determines [`Params`].
///
/// ```
/// use blocked_bloom::Sizing;
/// let params = Sizing::BitsPerKey(10.0).params(1_000_000)?;
/// assert_eq!((params.blocks(), params.probes()), (19_532, 6));
/// assert!(Sizing::FalsePositiveRate(0.01).params(1_000_000)?.false_positive_rate() <= 0.01);
/// assert!(Sizing::MaxBytes(1 << 20).params(1_000_000)?.stored_bytes() <= 1 << 20);
/// # Ok::<(), blocked_bloom::ParamsError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Sizing {
    /// Bits of memory per key, 0 to [`MAX_BITS_PER_KEY`]; fractions are allowed. Rounded up to
    /// whole blocks of 512 bits. 0 means "no filter": a filter that answers "maybe" to everything.
    BitsPerKey(f64),
    /// Highest predicted false-positive rate, above 0. 1 means "no filter".
    FalsePositiveRate(f64),
    /// Largest length of a stored filter in bytes, including the header; at least 128 (one block).
    /// The filter never has more than [`MAX_BITS_PER_KEY`].
    MaxBytes(u64),
}

impl Sizing {
    /// Returns the blocks and probes for a number of keys.
    ///
    /// The number of probes is the smallest whose rate is within 1 % of the best. Cost: usually 20
    /// to 60 ns, or 0.2 to 1.5 us for a false-positive rate. It takes a few us if two numbers of
    /// probes have nearly the same rate, or above 57 bits per key with fewer than 20 blocks.
    ///
    /// # Errors
    ///
    /// [`ParamsError`] if the value is out of range, the rate is too low, or the filter would need
    /// more than 2^32 - 1 blocks.
    pub fn params(self, expected_items: u64) -> Result<Params, ParamsError> {
        self.params_of(expected_items, false)
    }

    /// Returns blocks and probes like [`params`](Self::params), but with a number of blocks that
    /// has many divisors, so that the filter can be folded later
    /// ([`BloomFilter::folded`](crate::BloomFilter::folded)).
    ///
    /// The number of blocks is rounded to a multiple of the largest power of two that is at most
    /// 1/64 of it. The filter can be folded by every power of two up to that one. It takes at most
    /// 1/64 (1.6 %) more memory; for [`MaxBytes`](Self::MaxBytes), which rounds down, at most 1/64
    /// less. The number is not rounded below 128 blocks, or if it would exceed 2^32 - 1. Probes and
    /// rate are those of the rounded number.
    ///
    /// # Errors
    ///
    /// The errors of [`params`](Self::params).
    pub fn foldable_params(self, expected_items: u64) -> Result<Params, ParamsError> {
        self.params_of(expected_items, true)
    }

    fn params_of(self, expected_items: u64, foldable: bool) -> Result<Params, ParamsError> {
        if self.is_pass_all() {
            return Ok(Params { expected_items, blocks: 1, probes: 1, pass_all: true });
        }
        let blocks = self.blocks_for(expected_items, foldable)?;
        // Without keys every rate is 0; use the probes for one key.
        let probes = choice::best_probes(expected_items.max(1), blocks);
        Ok(Params { expected_items, blocks, probes: probes as u8, pass_all: false })
    }

    /// Returns the number of blocks of a filter that is not pass-all. Takes one multiplication,
    /// except for a rate, where it takes nearly all of the time of sizing.
    pub(crate) fn blocks_for(self, keys: u64, foldable: bool) -> Result<u32, ParamsError> {
        let blocks = match self {
            Sizing::BitsPerKey(bits) => blocks_for_bits(keys, bits)?,
            Sizing::FalsePositiveRate(rate) => blocks_for_rate(keys, rate)?,
            Sizing::MaxBytes(bytes) => blocks_for_bytes(keys, bytes)?,
        };
        let step = if foldable { 1 << (blocks / 64).max(1).ilog2() } else { 1 };
        Ok(match self {
            Sizing::MaxBytes(_) => blocks - blocks % step,
            _ => blocks.checked_next_multiple_of(step).unwrap_or(blocks),
        })
    }

    /// Whether the filter answers "maybe" to everything, for any number of keys: 0 bits per key, or
    /// a rate of 1.
    pub fn is_pass_all(self) -> bool {
        matches!(self, Sizing::BitsPerKey(0.0) | Sizing::FalsePositiveRate(1.0))
    }
}

impl Display for Sizing {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Sizing::BitsPerKey(bits) => write!(f, "{} bits/key", ShortNumber(*bits)),
            Sizing::FalsePositiveRate(rate) => {
                write!(f, "a false-positive rate of {}", ShortNumber(*rate))
            }
            Sizing::MaxBytes(bytes) => write!(f, "at most {bytes} bytes"),
        }
    }
}

/// The shape of a filter: blocks, probes and the expected number of keys.
///
/// Prints as one line for logs.
///
/// ```
/// use blocked_bloom::Sizing;
/// let params = Sizing::BitsPerKey(10.0).params(1_000_000)?;
/// assert_eq!(
///     params.to_string(),
///     "1000000 keys, 19532 blocks, 1250112 bytes stored, 10.00 bits/key, 6 probes, 0.966 % \
///      false positives"
/// );
/// # Ok::<(), blocked_bloom::ParamsError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Params {
    pub(crate) expected_items: u64,
    pub(crate) blocks: u32,
    pub(crate) probes: u8,
    pub(crate) pass_all: bool,
}

impl Params {
    /// Sets the number of probes. A pass-all filter keeps its one probe.
    ///
    /// # Errors
    ///
    /// [`ParamsError::ProbesOutOfRange`] unless there are 1 to 30 probes.
    pub fn with_probes(self, probes: u32) -> Result<Self, ParamsError> {
        ensure((1..=MAX_PROBES).contains(&probes), ParamsError::ProbesOutOfRange { probes })?;
        let probes = if self.pass_all { 1 } else { probes as u8 };
        Ok(Params { probes, ..self })
    }

    /// Returns the expected number of keys; for an existing filter, the number of keys inserted.
    pub fn expected_items(&self) -> u64 {
        self.expected_items
    }

    /// Returns the number of 64-byte blocks, 1 to 2^32 - 1. Partition filters with more than
    /// [`MAX_RECOMMENDED_BLOCKS`].
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Returns the number of bits that are set and tested per key, 1 to 30.
    pub fn probes(&self) -> u32 {
        u32::from(self.probes)
    }

    /// Whether the filter answers "maybe" to everything.
    pub fn is_pass_all(&self) -> bool {
        self.pass_all
    }

    /// Returns the length of the stored filter in bytes: header and blocks.
    pub fn stored_bytes(&self) -> u64 {
        stored_bytes(self.blocks)
    }

    /// Returns the bits of memory per expected key; infinite without keys.
    pub fn bits_per_key(&self) -> f64 {
        f64::from(self.blocks) * BITS / self.expected_items as f64
    }

    /// Predicts the false-positive rate, 0 to 1, for the expected number of keys.
    ///
    /// Uses the formula for blocked filters in `docs/parameters.md`. The formula for classical
    /// filters is too low by 13 % at 10 bits per key and by 40 % at 16.
    pub fn false_positive_rate(&self) -> f64 {
        self.false_positive_rate_at(self.expected_items)
    }

    /// Predicts the false-positive rate, 0 to 1, for `items` distinct keys.
    pub fn false_positive_rate_at(&self, items: u64) -> f64 {
        if self.pass_all { 1.0 } else { rate(items, self.blocks, self.probes()) }
    }

    /// Returns the largest number of distinct keys with which the predicted rate is at most `rate`.
    ///
    /// # Errors
    ///
    /// [`ParamsError::RateOutOfRange`] unless `0 < rate <= 1`.
    pub fn max_items(&self, rate: f64) -> Result<u64, ParamsError> {
        check_rate(rate)?;
        if rate == 1.0 {
            return Ok(u64::MAX);
        }
        // The rate grows with the keys, from 0 for none, except in a pass-all filter.
        Ok(partition_point(0, u64::MAX, |items| self.false_positive_rate_at(items + 1) <= rate))
    }
}

impl Display for Params {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        let Params { expected_items: keys, blocks, probes, pass_all } = *self;
        write!(f, "{keys} key{}, ", plural(keys))?;
        if pass_all {
            return write!(f, "no filter: every answer is \"maybe\"");
        }
        let bytes = self.stored_bytes();
        write!(f, "{blocks} block{}, {bytes} bytes stored, ", plural(blocks.into()))?;
        if keys > 0 {
            write!(f, "{:.2} bits/key, ", self.bits_per_key())?;
        }
        write!(f, "{probes} probe{}, ", plural(probes.into()))?;
        match self.false_positive_rate() * 100.0 {
            percent @ 0.001.. => write!(f, "{percent:.3} % false positives")?,
            0.0 => write!(f, "0 % false positives")?,
            percent => write!(f, "{percent:.2e} % false positives")?,
        }
        if blocks > MAX_RECOMMENDED_BLOCKS {
            write!(f, "; over {MAX_RECOMMENDED_BLOCKS} blocks (16 GiB): partition it")?;
        }
        Ok(())
    }
}

/// Returns the first value in `low .. high` for which `holds` is false, or `high` if it always
/// holds.
pub(crate) fn partition_point(mut low: u64, mut high: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

pub(crate) fn check_rate(rate: f64) -> Result<(), ParamsError> {
    ensure(rate > 0.0 && rate <= 1.0, ParamsError::RateOutOfRange { rate })
}

/// Returns the blocks for this many bits per key, at least one; exact to one part in 2^52.
fn blocks_for_bits(keys: u64, bits: f64) -> Result<u32, ParamsError> {
    let is_legal = (0.0..=MAX_BITS_PER_KEY).contains(&bits);
    ensure(is_legal, ParamsError::BitsPerKeyOutOfRange { bits_per_key: bits })?;
    let blocks = libm::ceil(keys as f64 * bits / BITS).max(1.0);
    let error = ParamsError::BlocksOutOfRange { blocks: blocks as u64 };
    ensure(blocks <= f64::from(u32::MAX), error).map(|()| blocks as u32)
}

fn blocks_for_bytes(keys: u64, bytes: u64) -> Result<u32, ParamsError> {
    let blocks = bytes.saturating_sub(HEADER_BYTES as u64) / BLOCK_BYTES as u64;
    ensure(blocks > 0, ParamsError::TooFewBytes { bytes })?;
    Ok(blocks.min(max_blocks(keys)) as u32)
}

/// Returns the blocks for [`MAX_BITS_PER_KEY`].
fn max_blocks(keys: u64) -> u64 {
    blocks_for_bits(keys, MAX_BITS_PER_KEY).map_or(u64::from(u32::MAX), u64::from)
}

fn blocks_for_rate(keys: u64, target: f64) -> Result<u32, ParamsError> {
    check_rate(target)?;
    if keys == 0 {
        return Ok(1);
    }
    let most = max_blocks(keys) as u32;
    choice::fewest_blocks(keys, target, most).map_err(|lowest| ParamsError::RateUnreachable {
        rate: target,
        lowest,
        needs_partition: most == u32::MAX,
    })
}

/// Returns the false-positive rate of `keys` distinct keys in `blocks` blocks, by the formula in
/// `docs/parameters.md`, with all terms that change the sum.
fn rate(keys: u64, blocks: u32, probes: u32) -> f64 {
    strided_rate(keys, blocks, probes, 1, f64::EPSILON / 4.0)[0]
}

/// Returns [`rate`] and the first and second derivatives of ln(rate) by ln(blocks). They are
/// computed as sums over every `stride`-th number of keys in a block. A sum ends at terms that are
/// less than `negligible` times the sum. With one block, the derivatives are NaN.
///
/// The error of a sum with a stride is the distribution's characteristic function at `2 pi /
/// stride`, which is at most `e^(-variance (1 - cos(2 pi / stride)))`. With `p = 1 / blocks`, the
/// derivatives follow from `d weight(j) / dp = weight(j) (j - keys p) / (p (1 - p))`: they depend
/// on the mean and the variance of `j` if each `j` is also weighted by the rate of a block with `j`
/// keys.
fn strided_rate(keys: u64, blocks: u32, probes: u32, stride: u32, negligible: f64) -> [f64; 3] {
    let (keys, k) = (keys as f64, f64::from(probes));
    if blocks == 1 {
        return [block_rate(keys, powers(keys * k), probes), f64::NAN, f64::NAN];
    }
    // Binomial(keys, 1 / blocks), from its mode outwards: each weight is computed from its
    // neighbour. The weight of the mode is set to 1, and the sum of the weights divides the result.
    let (others, mean) = (f64::from(blocks) - 1.0, keys / f64::from(blocks));
    // In double precision, every bit of a block with 512 * 40 probes is set.
    if (mean - 12.0 * libm::sqrt(mean)) * k > BITS * 40.0 {
        return [1.0, f64::NAN, f64::NAN];
    }
    let (mut sum, mut weights, mut moments) = (0.0, 0.0, [0.0; 2]);
    let mut add = |keys: f64, powers: [f64; 2], weight: f64| {
        let (part, above) = (weight * block_rate(keys, powers, probes), keys - mean);
        sum += part;
        weights += weight;
        moments = [moments[0] + part * above, moments[1] + part * above * above];
        part > negligible * sum || weight > negligible * weights
    };
    let mode = libm::floor(mean);
    let start = powers(mode * k);
    add(mode, start, 1.0);
    // A weight is its neighbour's times `up / down`; `up` and `down` change by constants.
    let upwards = ([keys - mode, -1.0], [(mode + 1.0) * others, others]);
    let downwards = ([mode * others, -others], [keys - mode + 1.0, 1.0]);
    for (sign, ([mut up, up_step], [mut down, down_step])) in [(1.0, upwards), (-1.0, downwards)] {
        let step = sign * f64::from(stride);
        let factors = powers(step * k);
        let (mut keys, [mut q, mut q2], mut weight) = (mode, start, 1.0);
        loop {
            let mut ratio = [1.0, 1.0];
            for _ in 0..stride {
                ratio = [ratio[0] * up, ratio[1] * down];
                (up, down) = (up + up_step, down + down_step);
            }
            weight *= ratio[0] / ratio[1];
            (keys, q, q2) = (keys + step, q * factors[0], q2 * factors[1]);
            if !add(keys, [q, q2], weight) {
                break;
            }
        }
    }
    let scale = 1.0 + 1.0 / others;
    let [above, square] = moments.map(|moment| moment / sum);
    let bend = ((square - above * above) * scale - mean + above / others) * scale;
    [(sum / weights).clamp(0.0, 1.0), -above * scale, bend]
}

/// Returns the powers of 511/512 and 510/512: the probabilities that one given bit, and that two
/// given bits, stay clear after this many probes.
fn powers(probes: f64) -> [f64; 2] {
    // ln(511/512), ln(510/512)
    [-0.001_955_034_835_803_350_6, -0.003_913_899_321_136_329].map(|log| libm::exp(probes * log))
}

/// Returns the rate of one block with this many keys, from the [`powers`] of all their probes.
fn block_rate(keys: f64, [q, q2]: [f64; 2], probes: u32) -> f64 {
    if keys == 0.0 {
        return 0.0;
    }
    let (k, p) = (f64::from(probes), 1.0 - q);
    let variance = ((BITS - 1.0) * q2 + q) / BITS - q * q;
    let second_order = 1.0 + k * (k - 1.0) * variance.max(0.0) / (2.0 * p * p);
    let power = (1..probes).fold(p, |power, _| power * p);
    (power * second_order + keys / HIGH_HASHES).clamp(0.0, 1.0)
}

/// Error of sizing or folding a filter.
///
/// ```
/// use blocked_bloom::{ParamsError, Sizing};
/// let error = Sizing::BitsPerKey(f64::NAN).params(1_000).unwrap_err();
/// assert!(matches!(error, ParamsError::BitsPerKeyOutOfRange { .. }));
/// assert_eq!(error.to_string(), "NaN bits per key: must be 0 to 100 (0 means no filter)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParamsError {
    /// The number of bits per key is not 0 to 100.
    BitsPerKeyOutOfRange {
        /// Rejected value.
        bits_per_key: f64,
    },
    /// The false-positive rate is not above 0 and at most 1.
    RateOutOfRange {
        /// Rejected value.
        rate: f64,
    },
    /// No filter of these keys has such a low rate.
    RateUnreachable {
        /// Rejected value.
        rate: f64,
        /// The lowest possible rate.
        lowest: f64,
        /// Whether the limit is the number of blocks. Several smaller filters reach the rate then.
        needs_partition: bool,
    },
    /// The header and one block do not fit.
    TooFewBytes {
        /// Rejected value.
        bytes: u64,
    },
    /// The number of blocks is not 1 to 2^32 - 1.
    BlocksOutOfRange {
        /// Number of blocks.
        blocks: u64,
    },
    /// The number of probes is not 1 to 30.
    ProbesOutOfRange {
        /// Rejected value.
        probes: u32,
    },
    /// The number of blocks is not a multiple of the divisor.
    NotADivisor {
        /// Rejected value.
        divisor: u32,
        /// Number of blocks of the filter.
        blocks: u32,
        /// The nearest smaller divisor, if any.
        below: Option<u32>,
        /// The nearest larger divisor, if any.
        above: Option<u32>,
    },
}

impl_error!(ParamsError;
    Self::BitsPerKeyOutOfRange { bits_per_key } => (
        "{} bits per key: must be 0 to {MAX_BITS_PER_KEY} (0 means no filter)",
        ShortNumber(*bits_per_key)
    ),
    Self::RateOutOfRange { rate } => (
        "false-positive rate {}: must be above 0 and at most 1", ShortNumber(*rate)
    ),
    Self::RateUnreachable { rate, lowest, needs_partition: false } => (
        "false-positive rate {rate:e} is too low: with {MAX_BITS_PER_KEY} bits per key it is \
         {lowest:.3e}"
    ),
    Self::RateUnreachable { rate, lowest, needs_partition: true } => (
        "false-positive rate {rate:e} is too low: with {} blocks it is {lowest:.3e}; partition the \
         keys",
        u32::MAX
    ),
    Self::TooFewBytes { bytes } => (
        "{bytes} bytes cannot hold a filter: the smallest takes 128 (header and one block)"
    ),
    Self::BlocksOutOfRange { blocks: 0 } => ("0 blocks: a filter has at least 1"),
    Self::BlocksOutOfRange { blocks } => (
        "{blocks} blocks, at most {} allowed: partition the keys over several filters", u32::MAX
    ),
    Self::ProbesOutOfRange { probes } => ("{probes} probes: must be 1 to {MAX_PROBES}"),
    Self::NotADivisor { divisor, blocks, below: Some(below), above: Some(above) } => (
        "{divisor} is not a divisor of {blocks}, the number of blocks: fold by {below} or {above}"
    ),
    Self::NotADivisor { divisor, blocks, below, above } => (
        "{divisor} is not a divisor of {blocks}, the number of blocks: fold by {}",
        below.or(*above).unwrap_or(1)
    ),
);
