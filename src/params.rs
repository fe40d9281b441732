//! Sizing: how many blocks and probes a filter gets, and the false-positive rate that follows.
//!
//! Allocates nothing and finishes quickly for every input. `docs/parameters.md` has the formula:
//! the mean of `fill^k` to second order, averaged over the number of keys in a block.

use core::fmt::{self, Display, Formatter};

use crate::error::plural;
use crate::header::HEADER_BYTES;
use crate::probe::{BLOCK_BITS, BLOCK_BYTES, MAX_BITS_PER_KEY, MAX_PROBES};

mod choice;

/// Most blocks a filter should have: 2^28, 16 GiB. Above it blocks differ noticeably in how many
/// hashes they receive (32 bits of hash pick the block), so the rate is worse than
/// [`Params::false_positive_rate`] says: partition the filter.
pub const MAX_RECOMMENDED_BLOCKS: u32 = 1 << 28;

/// Bytes of a stored filter of this many blocks.
pub(crate) fn stored_bytes(blocks: u32) -> u64 {
    HEADER_BYTES as u64 + u64::from(blocks) * BLOCK_BYTES as u64
}

const BITS: f64 = BLOCK_BITS as f64;

/// Values of the hash half that picks a key's bits.
const HIGH_HASHES: f64 = 4_294_967_296.0;

/// What a filter is sized by: resolved to [`Params`] once the number of keys is known.
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
    /// Bits of memory per key, 0 to [`MAX_BITS_PER_KEY`], fractions allowed; rounded up to whole
    /// blocks of 512 bits. 0 means "no filter": one that answers "maybe" to everything.
    BitsPerKey(f64),
    /// The smallest filter of at most this predicted rate, above 0; 1 means "no filter".
    FalsePositiveRate(f64),
    /// The most bytes a stored filter may take, header included; at least 128 (one block). Memory
    /// that would exceed [`MAX_BITS_PER_KEY`] is left unused.
    MaxBytes(u64),
}

impl Sizing {
    /// Blocks and probes for a number of keys.
    ///
    /// The number of probes is the smallest whose rate is within 1 % of the best. Cost: 20 to 60
    /// ns; for a false-positive rate, which is searched for, 0.2 to 1.5 us. It is some us where two
    /// numbers of probes have nearly the same rate, so that rates must be summed, and above 57 bits
    /// per key in fewer than 20 blocks.
    ///
    /// # Errors
    ///
    /// [`ParamsError`] if the value is out of its range, the rate cannot be reached, or the filter
    /// would need more than 2^32 - 1 blocks.
    pub fn params(self, expected_items: u64) -> Result<Params, ParamsError> {
        self.params_of(expected_items, false)
    }

    /// As [`params`](Self::params), with a number of blocks that has many divisors, so that the
    /// filter can be folded ([`BloomFilter::folded`](crate::BloomFilter::folded)) later.
    ///
    /// The blocks are rounded to a multiple of the largest power of two that is at most a 64th of
    /// them: the filter can be folded by every power of two up to that one. Price: at most 1/64
    /// (1.6 %) more memory; for [`MaxBytes`](Self::MaxBytes), which rounds down, at most 1/64 less.
    /// Under 128 blocks, and where there would be more than 2^32 - 1, the number stays as it is.
    /// Probes and rate are those of the rounded number.
    ///
    /// # Errors
    ///
    /// As [`params`](Self::params).
    pub fn foldable_params(self, expected_items: u64) -> Result<Params, ParamsError> {
        self.params_of(expected_items, true)
    }

    fn params_of(self, expected_items: u64, foldable: bool) -> Result<Params, ParamsError> {
        if self.is_pass_all() {
            return Ok(Params::pass_all(expected_items));
        }
        let blocks = self.blocks_for(expected_items, foldable)?;
        // With no key every rate is 0: take the probes of one.
        let probes = choice::best_probes(expected_items.max(1), blocks);
        Ok(Params { expected_items, blocks, probes: probes as u8, pass_all: false })
    }

    /// Blocks of a filter that is one. Costs a multiplication, except for a rate, where it is
    /// nearly all that sizing costs.
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

    /// Whether the filter will answer "maybe" to everything, however many keys there are: 0 bits
    /// per key, or a rate of 1.
    pub fn is_pass_all(self) -> bool {
        matches!(self, Sizing::BitsPerKey(0.0) | Sizing::FalsePositiveRate(1.0))
    }
}

impl Display for Sizing {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Sizing::BitsPerKey(bits) => write!(f, "{bits} bits/key"),
            Sizing::FalsePositiveRate(rate) => write!(f, "a false-positive rate of {rate}"),
            Sizing::MaxBytes(bytes) => write!(f, "at most {bytes} bytes"),
        }
    }
}

/// The shape of a filter: blocks, probes and the number of keys it was sized for.
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
    expected_items: u64,
    blocks: u32,
    probes: u8,
    pass_all: bool,
}

impl Params {
    /// "No filter": one block of ones, one probe, "maybe" to everything.
    pub(crate) fn pass_all(expected_items: u64) -> Self {
        Params { expected_items, blocks: 1, probes: 1, pass_all: true }
    }

    /// The shape of a filter that exists already. The caller has checked the ranges.
    pub(crate) fn from_fields(
        expected_items: u64,
        blocks: u32,
        probes: u32,
        pass_all: bool,
    ) -> Self {
        Params { expected_items, blocks, probes: probes as u8, pass_all }
    }

    /// The same shape with another number of probes, for those who measured another optimum.
    ///
    /// # Errors
    ///
    /// [`ParamsError::ProbesOutOfRange`] unless 1 to 30.
    pub fn with_probes(self, probes: u32) -> Result<Self, ParamsError> {
        if !(1..=MAX_PROBES).contains(&probes) {
            return Err(ParamsError::ProbesOutOfRange { probes });
        }
        let probes = if self.pass_all { 1 } else { probes as u8 };
        Ok(Params { probes, ..self })
    }

    /// Keys the filter was sized for; for an existing filter, keys inserted.
    pub fn expected_items(&self) -> u64 {
        self.expected_items
    }

    /// Blocks of 64 bytes, 1 to 2^32 - 1. Above [`MAX_RECOMMENDED_BLOCKS`], partition.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Bits set and tested per key, 1 to 30.
    pub fn probes(&self) -> u32 {
        u32::from(self.probes)
    }

    /// Whether the filter answers "maybe" to everything.
    pub fn is_pass_all(&self) -> bool {
        self.pass_all
    }

    /// Bytes of the stored filter: header and blocks.
    pub fn stored_bytes(&self) -> u64 {
        stored_bytes(self.blocks)
    }

    /// Bits of the blocks per expected key; infinite for no key.
    pub fn bits_per_key(&self) -> f64 {
        f64::from(self.blocks) * BITS / self.expected_items as f64
    }

    /// Predicted false-positive rate with the expected number of keys, 0 to 1.
    ///
    /// By the formula of `docs/parameters.md`, which knows blocks: the classical one is too low for
    /// this filter, by 13 % at 10 bits per key and 40 % at 16.
    pub fn false_positive_rate(&self) -> f64 {
        self.false_positive_rate_at(self.expected_items)
    }

    /// Predicted false-positive rate, 0 to 1, if the filter holds `items` distinct keys.
    pub fn false_positive_rate_at(&self, items: u64) -> f64 {
        if self.pass_all { 1.0 } else { rate(items, self.blocks, self.probes()) }
    }

    /// The most distinct keys that keep this filter's predicted rate at or under `rate`.
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
        let counted = |f: &mut Formatter<'_>, count: u64, noun: &str| {
            write!(f, "{count} {noun}{}, ", if count == 1 { "" } else { "s" })
        };
        counted(f, self.expected_items, "key")?;
        if self.pass_all {
            return write!(f, "no filter: every answer is \"maybe\"");
        }
        counted(f, self.blocks.into(), "block")?;
        write!(f, "{} bytes stored, ", self.stored_bytes())?;
        if self.expected_items > 0 {
            write!(f, "{:.2} bits/key, ", self.bits_per_key())?;
        }
        counted(f, self.probes.into(), "probe")?;
        match self.false_positive_rate() * 100.0 {
            percent @ 0.001.. => write!(f, "{percent:.3} % false positives")?,
            0.0 => write!(f, "0 % false positives")?,
            percent => write!(f, "{percent:.2e} % false positives")?,
        }
        if self.blocks > MAX_RECOMMENDED_BLOCKS {
            write!(f, "; over {MAX_RECOMMENDED_BLOCKS} blocks (16 GiB): partition it")?;
        }
        Ok(())
    }
}

/// The first value in `low .. high` from which on `holds` is false; `high` if none.
fn partition_point(mut low: u64, mut high: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

pub(crate) fn check_rate(rate: f64) -> Result<(), ParamsError> {
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
    let blocks = bytes.saturating_sub(HEADER_BYTES as u64) / BLOCK_BYTES as u64;
    if blocks == 0 {
        return Err(ParamsError::TooFewBytes { bytes });
    }
    Ok(blocks.min(max_blocks(keys)) as u32)
}

/// Blocks at [`MAX_BITS_PER_KEY`].
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

/// The false-positive rate of `keys` distinct keys in `blocks` blocks, by the formula of
/// `docs/parameters.md`, with all terms that change the sum.
fn rate(keys: u64, blocks: u32, probes: u32) -> f64 {
    strided_rate(keys, blocks, probes, 1, f64::EPSILON / 4.0)[0]
}

/// [`rate`], and the first and second derivative of ln(rate) by ln(blocks), as sums over every
/// `stride`-th number of keys that a block can have. A sum ends at terms below `negligible` times
/// it. For one block there are no derivatives: they are NaN.
///
/// A sum with a stride is wrong by the distribution's characteristic function at `2 pi / stride`,
/// which is at most `e^(-variance (1 - cos(2 pi / stride)))`. With `p = 1 / blocks` the derivatives
/// follow from `d weight(j) / dp = weight(j) (j - keys p) / (p (1 - p))`, so from the mean and the
/// variance of `j` when each `j` is weighted by the rate of its blocks too.
fn strided_rate(keys: u64, blocks: u32, probes: u32, stride: u32, negligible: f64) -> [f64; 3] {
    let (keys, k) = (keys as f64, f64::from(probes));
    if blocks == 1 {
        return [block_rate(keys, powers(keys * k), probes), f64::NAN, f64::NAN];
    }
    // Binomial(keys, 1 / blocks) from its mode on, each weight from its neighbour; the mode's is 1
    // until the sum divides it out.
    let (others, mean) = (f64::from(blocks) - 1.0, keys / f64::from(blocks));
    // Every bit is set in double precision once a block has 512 * 40 probes.
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
    // A weight is its neighbour's times `up / down`, each of which changes by a constant.
    let more = ([keys - mode, -1.0], [(mode + 1.0) * others, others]);
    let fewer = ([mode * others, -others], [keys - mode + 1.0, 1.0]);
    for (sign, ([mut up, up_step], [mut down, down_step])) in [(1.0, more), (-1.0, fewer)] {
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

/// The powers of 511/512 and 510/512: how full this many probes leave a block.
fn powers(probes: f64) -> [f64; 2] {
    // ln(511/512), ln(510/512)
    [-0.001_955_034_835_803_350_6, -0.003_913_899_321_136_329].map(|log| libm::exp(probes * log))
}

/// The rate of one block of this many keys, with the [`powers`] of all their probes.
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

/// Why a filter cannot have the size or the shape that was asked for.
///
/// ```
/// use blocked_bloom::{ParamsError, Sizing};
/// let error = Sizing::BitsPerKey(f64::NAN).params(1_000).unwrap_err();
/// assert!(matches!(error, ParamsError::BitsPerKeyOutOfRange { .. }));
/// assert_eq!(error.to_string(), "NaN bits per key: give 0 to 100 (0 means no filter)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParamsError {
    /// Not 0 to 100 bits per key.
    BitsPerKeyOutOfRange {
        /// The value given.
        bits_per_key: f64,
    },
    /// Not above 0 and up to 1.
    RateOutOfRange {
        /// The value given.
        rate: f64,
    },
    /// No filter of these keys has so low a rate.
    RateUnreachable {
        /// The value given.
        rate: f64,
        /// The lowest rate sizing can give.
        lowest: f64,
        /// Whether the limit is the number of blocks: then several smaller filters reach the rate.
        needs_partition: bool,
    },
    /// Not even one block fits.
    TooFewBytes {
        /// The value given.
        bytes: u64,
    },
    /// Not 1 to 2^32 - 1 blocks.
    BlocksOutOfRange {
        /// What would be needed.
        blocks: u64,
    },
    /// Not 1 to 30 probes.
    ProbesOutOfRange {
        /// The value given.
        probes: u32,
    },
    /// The number of blocks is no multiple of what it should be divided by.
    NotADivisor {
        /// What the blocks should be divided by.
        divisor: u32,
        /// Blocks of the filter.
        blocks: u32,
        /// The nearest smaller number that divides them; none under 1.
        below: Option<u32>,
        /// The nearest larger number that divides them; none over their number.
        above: Option<u32>,
    },
}

impl Display for ParamsError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BitsPerKeyOutOfRange { bits_per_key } => {
                write!(
                    f,
                    "{bits_per_key} bits per key: give 0 to {MAX_BITS_PER_KEY} (0 means no filter)"
                )
            }
            Self::RateOutOfRange { rate } => {
                write!(f, "false-positive rate {rate}: give a number above 0 and up to 1")
            }
            Self::RateUnreachable { rate, lowest, needs_partition: false } => write!(
                f,
                "false-positive rate {rate:e} is out of reach: at {MAX_BITS_PER_KEY} bits/key \
                 it is {lowest:.3e}"
            ),
            Self::RateUnreachable { rate, lowest, needs_partition: true } => write!(
                f,
                "false-positive rate {rate:e} is out of reach: with all {} blocks it is \
                 {lowest:.3e}; partition the keys",
                u32::MAX
            ),
            Self::TooFewBytes { bytes } => {
                write!(
                    f,
                    "{bytes} bytes hold no filter: the smallest takes 128 (header and one block)"
                )
            }
            Self::BlocksOutOfRange { blocks: 0 } => write!(f, "0 blocks: a filter has at least 1"),
            Self::BlocksOutOfRange { blocks } => write!(
                f,
                "{blocks} blocks needed, {} allowed: partition the keys over several filters",
                u32::MAX
            ),
            Self::ProbesOutOfRange { probes } => {
                write!(f, "{probes} probes: give 1 to {MAX_PROBES}")
            }
            Self::NotADivisor { divisor, blocks, below, above } => {
                let s = plural(blocks.into());
                write!(f, "{divisor} does not divide {blocks} block{s}: fold by ")?;
                match (below, above) {
                    (Some(below), Some(above)) => write!(f, "{below} or {above}"),
                    (Some(only), None) | (None, Some(only)) => only.fmt(f),
                    (None, None) => 1.fmt(f),
                }
            }
        }
    }
}

impl_error!(ParamsError);
