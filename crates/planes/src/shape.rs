//! The shape of a row's filter, where the bits of an item are in it, and the false-positive rate
//! that follows.
//!
//! The probe scheme is the core's with blocks of any size from 16 to 512 bits; with 512 it is the
//! same, bit for bit.

use core::fmt::{self, Display, Formatter};

use blocked_bloom::probe::{MAX_BITS_PER_KEY, MAX_PROBES, MULTIPLIER, block_index};

/// Fewest bits in a block.
pub const MIN_BLOCK_BITS: u32 = 16;

/// Most bits in a block: those of the core's blocks.
pub const MAX_BLOCK_BITS: u32 = 512;

/// Most planes, that is bits of a row's filter: 2^26, 8 MiB a row.
pub const MAX_PLANES: u32 = 1 << 26;

/// Why there is no shape as requested: the value at fault.
///
/// ```
/// use blocked_bloom_planes::{Shape, ShapeError};
/// let error = Shape::new(1, 8, 2).unwrap_err();
/// assert_eq!(error, ShapeError::BlockBitsOutOfRange { block_bits: 8 });
/// assert_eq!(error.to_string(), "blocks of 8 bits: give 16 to 512");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ShapeError {
    /// Not 16 to 512 bits in a block.
    BlockBitsOutOfRange {
        /// The value given.
        block_bits: u32,
    },
    /// Not 1 to 30 probes.
    ProbesOutOfRange {
        /// The value given.
        probes: u32,
    },
    /// No plane, or more than [`MAX_PLANES`].
    PlanesOutOfRange {
        /// Blocks times bits in a block.
        planes: u64,
    },
    /// Not above 0 and up to 100 bits an item.
    BitsPerItemOutOfRange {
        /// The value given.
        bits_per_item: f64,
    },
    /// Not above 0 and below 1.
    RateOutOfRange {
        /// The value given.
        rate: f64,
    },
    /// No shape has so low a rate for rows of this many items.
    RateUnreachable {
        /// The value given.
        rate: f64,
        /// The lowest rate that there is.
        lowest: f64,
    },
}

impl Display for ShapeError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BlockBitsOutOfRange { block_bits } => {
                write!(f, "blocks of {block_bits} bits: give {MIN_BLOCK_BITS} to {MAX_BLOCK_BITS}")
            }
            Self::ProbesOutOfRange { probes } => {
                write!(f, "{probes} probes: give 1 to {MAX_PROBES}")
            }
            Self::PlanesOutOfRange { planes } => {
                write!(f, "{planes} planes, one per bit of a row: give 1 to {MAX_PLANES}")
            }
            Self::BitsPerItemOutOfRange { bits_per_item: bits } => {
                write!(
                    f,
                    "{bits:?} bits per item: give a number above 0 and up to {MAX_BITS_PER_KEY}"
                )
            }
            Self::RateOutOfRange { rate } => {
                write!(f, "false-positive rate {rate:?}: give a number above 0 and below 1")
            }
            Self::RateUnreachable { rate, lowest } => {
                write!(
                    f,
                    "false-positive rate {rate:e} is out of reach: the lowest is {lowest:.3e}"
                )
            }
        }
    }
}

impl core::error::Error for ShapeError {}

/// Values of the hash half that picks an item's bits.
const HIGH_HASHES: f64 = 4_294_967_296.0;

/// The shape that the filters of all rows have: `n` blocks of `m` bits, and `k` probes an item.
///
/// ```
/// use blocked_bloom_planes::Shape;
/// // Rows of ten columns, 128 bits a row, two probes a column.
/// let shape = Shape::new(1, 128, 2)?;
/// assert_eq!(shape.planes(), 128);
/// assert_eq!(format!("{:.4}", shape.false_positive_rate(10)), "0.0211");
///
/// // Pages of 1,000 different tokens, one false page in a hundred.
/// let shape = Shape::for_rate(1_000, 0.01)?;
/// assert!(shape.false_positive_rate(1_000) <= 0.01);
/// assert_eq!(shape.to_string(), "20 blocks of 506 bits, 5 probes: 10120 planes");
/// # Ok::<(), blocked_bloom_planes::ShapeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    blocks: u32,
    block_bits: u16,
    probes: u8,
}

impl Shape {
    /// `blocks` blocks of `block_bits` bits, `probes` bits an item.
    ///
    /// # Errors
    ///
    /// [`ShapeError`] naming the value: bits of a block are 16 to 512, probes 1 to 30, and blocks
    /// at least 1, such that all together have at most [`MAX_PLANES`] bits.
    pub fn new(blocks: u32, block_bits: u32, probes: u32) -> Result<Self, ShapeError> {
        if !(MIN_BLOCK_BITS..=MAX_BLOCK_BITS).contains(&block_bits) {
            return Err(ShapeError::BlockBitsOutOfRange { block_bits });
        }
        if !(1..=MAX_PROBES).contains(&probes) {
            return Err(ShapeError::ProbesOutOfRange { probes });
        }
        let planes = u64::from(blocks) * u64::from(block_bits);
        if planes == 0 || planes > u64::from(MAX_PLANES) {
            return Err(ShapeError::PlanesOutOfRange { planes });
        }
        Ok(Shape { blocks, block_bits: block_bits as u16, probes: probes as u8 })
    }

    /// The shape for rows of this many items, at this many bits each: above 0 and up to 100;
    /// rounded up to whole bits, and to at least 16.
    ///
    /// Up to 512 bits are one block, more are as few blocks as hold them, all of the same size.
    /// Probes are the fewest whose rate is at most 1.1 times the best, since a query reads a plane
    /// for each.
    ///
    /// # Errors
    ///
    /// [`ShapeError::BitsPerItemOutOfRange`], or [`ShapeError::PlanesOutOfRange`] for more than
    /// [`MAX_PLANES`].
    ///
    /// ```
    /// use blocked_bloom_planes::Shape;
    /// let shape = Shape::for_bits_per_item(10, 12.8)?;
    /// assert_eq!(shape.to_string(), "1 block of 128 bits, 7 probes: 128 planes");
    /// # Ok::<(), blocked_bloom_planes::ShapeError>(())
    /// ```
    pub fn for_bits_per_item(items: u64, bits_per_item: f64) -> Result<Self, ShapeError> {
        if !(bits_per_item > 0.0 && bits_per_item <= MAX_BITS_PER_KEY) {
            return Err(ShapeError::BitsPerItemOutOfRange { bits_per_item });
        }
        // The conversion saturates.
        Shape::from_bits(items, libm::ceil(items as f64 * bits_per_item) as u64)
    }

    /// The shape with the fewest planes whose rate for rows of this many items is at most this,
    /// above 0 and below 1. Cost: up to some milliseconds.
    ///
    /// # Errors
    ///
    /// [`ShapeError::RateOutOfRange`]; [`ShapeError::RateUnreachable`] if 100 bits an item, or
    /// [`MAX_PLANES`], do not reach it.
    pub fn for_rate(items: u64, rate: f64) -> Result<Self, ShapeError> {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(ShapeError::RateOutOfRange { rate });
        }
        let most = (items as f64 * MAX_BITS_PER_KEY)
            .clamp(f64::from(MIN_BLOCK_BITS), f64::from(MAX_PLANES)) as u64;
        let reached = |bits: u64| -> Result<f64, ShapeError> {
            Ok(Shape::from_bits(items, bits)?.false_positive_rate(items))
        };
        let lowest = reached(most)?;
        if lowest > rate {
            return Err(ShapeError::RateUnreachable { rate, lowest });
        }
        // A single block is better than two with slightly more bits: where one suffices, the search
        // stays there.
        let one_block = most.min(u64::from(MAX_BLOCK_BITS));
        let (mut low, mut high) = match reached(one_block)? <= rate {
            true => (u64::from(MIN_BLOCK_BITS), one_block),
            false => (one_block + 1, most),
        };
        while low < high {
            let middle = low + (high - low) / 2;
            if reached(middle)? <= rate { high = middle } else { low = middle + 1 }
        }
        Shape::from_bits(items, high)
    }

    /// This many bits in all, or a few more, at the best number of probes.
    fn from_bits(items: u64, bits: u64) -> Result<Self, ShapeError> {
        let bits = bits.max(MIN_BLOCK_BITS.into());
        if bits > u64::from(MAX_PLANES) {
            return Err(ShapeError::PlanesOutOfRange { planes: bits });
        }
        let blocks = bits.div_ceil(MAX_BLOCK_BITS.into());
        let block_bits = bits.div_ceil(blocks);
        let shape = Shape::new(blocks as u32, block_bits as u32, 1)?;
        Ok(Shape { probes: shape.best_probes(items), ..shape })
    }

    /// The fewest probes whose rate is at most 1.1 times that of the best number.
    fn best_probes(self, items: u64) -> u8 {
        let mut rates = [1.0; MAX_PROBES as usize];
        let (mut best, mut evaluated) = (1.0, 0);
        for (probes, rate) in (1..).zip(&mut rates) {
            *rate = Shape { probes, ..self }.false_positive_rate(items.max(1));
            evaluated = usize::from(probes);
            if *rate > best {
                break; // The rate has one minimum.
            }
            best = *rate;
        }
        let fewest = rates[..evaluated].iter().position(|&rate| rate <= 1.1 * best);
        fewest.map_or(1, |probes| probes as u8 + 1)
    }

    /// Blocks in the filter of a row.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Bits in a block.
    pub fn block_bits(&self) -> u32 {
        self.block_bits.into()
    }

    /// Bits set for an item, and planes read by a query for one.
    pub fn probes(&self) -> u32 {
        self.probes.into()
    }

    /// Bits in the filter of a row, each of which is a plane.
    pub fn planes(&self) -> u32 {
        self.blocks * u32::from(self.block_bits)
    }

    /// The planes of a hash, which may repeat: the definition of where bits are.
    ///
    /// With `lo = hash as u32`, `hi = hash >> 32`, `n` blocks of `m` bits and `G` = `0x9e3779b9`:
    /// the block is `(lo * n) >> 32`, bit `i` of it `((hi * G^i mod 2^32) * m) >> 32`, and the
    /// plane `block * m + bit`.
    ///
    /// ```
    /// let shape = blocked_bloom_planes::Shape::new(2, 80, 3)?;
    /// assert_eq!(shape.planes_of(0x0000_0001_8000_0000).collect::<Vec<_>>(), [80, 129, 151]);
    /// # Ok::<(), blocked_bloom_planes::ShapeError>(())
    /// ```
    #[inline]
    pub fn planes_of(&self, hash: u64) -> impl Iterator<Item = u32> + use<> {
        let block_bits = u32::from(self.block_bits);
        let first = block_index(hash, self.blocks) * block_bits;
        let mut product = (hash >> 32) as u32;
        (0..self.probes).map(move |_| {
            let bit = (u64::from(product) * u64::from(block_bits)) >> 32;
            product = product.wrapping_mul(MULTIPLIER);
            first + bit as u32
        })
    }

    /// Sets the bits of some items in a row of words.
    #[inline]
    pub(crate) fn set(self, row: &mut [u64], hashes: impl IntoIterator<Item = u64>) {
        for plane in hashes.into_iter().flat_map(|hash| self.planes_of(hash)) {
            row[(plane / 64) as usize] |= 1 << (plane % 64);
        }
    }

    /// The chance that a row of `items` distinct items may have an item that it does not have, 0 to
    /// 1.
    ///
    /// The rate of a block with `j` items is exact if probes are independent. Let `r` be how many
    /// of the looked-up bits are missing: at first the number of distinct bits among `k` probes.
    /// Each of the `j k` bits that the items set hits a missing one with a chance of `r / m`. The
    /// rate is the chance that `r` becomes 0, plus `j / 2^32` for an item with the same half of the
    /// hash. It is averaged over `j ~ Binomial(items, 1 / n)`. A query for all of several items has
    /// about the product of their rates, less for those that share bits.
    ///
    /// Cost: some `j k^2` additions and multiplications.
    pub fn false_positive_rate(&self, items: u64) -> f64 {
        if items == 0 {
            return 0.0;
        }
        let mut block = Occupancy::new(self.block_bits(), self.probes());
        if self.blocks == 1 {
            for _ in 0..items {
                if block.is_full() {
                    break;
                }
                block.add_item();
            }
            return block.rate(items as f64);
        }
        // Weights are kept as logarithms, since that of no item may underflow.
        let (items, others) = (items as f64, f64::from(self.blocks) - 1.0);
        let mean = items / (others + 1.0);
        let last = (mean + 12.0 * libm::sqrt(mean) + 40.0).min(items);
        let mut log_weight = items * libm::log1p(-1.0 / (others + 1.0));
        let (mut sum, mut weights, mut here) = (0.0, 0.0, 0.0);
        while here <= last && !block.is_full() {
            let weight = libm::exp(log_weight);
            sum += weight * block.rate(here);
            weights += weight;
            log_weight += libm::log((items - here) / ((here + 1.0) * others));
            here += 1.0;
            block.add_item();
        }
        // With more items the block stays full: every lookup passes.
        let full = if block.is_full() { (1.0 - weights).max(0.0) } else { 0.0 };
        (sum + full).clamp(0.0, 1.0)
    }
}

impl Display for Shape {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let plural = |count: u32| if count == 1 { "" } else { "s" };
        let (blocks, probes) = (self.blocks, self.probes());
        write!(f, "{blocks} block{} of {} bits, ", plural(blocks), self.block_bits)?;
        write!(f, "{probes} probe{}: {} planes", plural(probes), self.planes())
    }
}

/// How many of the looked-up bits are missing: `missing[r]` is the chance that `r` are.
struct Occupancy {
    bits: f64,
    probes: usize,
    missing: [f64; MAX_PROBES as usize + 1],
}

impl Occupancy {
    /// Of an empty block: as many as the probes of the item have distinct bits.
    fn new(bits: u32, probes: u32) -> Self {
        let mut missing = [0.0; MAX_PROBES as usize + 1];
        missing[0] = 1.0;
        let bits = f64::from(bits);
        for probe in 1..=probes as usize {
            for distinct in (0..=probe).rev() {
                let same = missing[distinct] * distinct as f64 / bits;
                let fewer = distinct.checked_sub(1).map_or(0.0, |fewer| {
                    missing[fewer] * (1.0 - (distinct as f64 - 1.0) / bits).max(0.0)
                });
                missing[distinct] = same + fewer;
            }
        }
        Occupancy { bits, probes: probes as usize, missing }
    }

    /// One item more in the block, whose probes hit bits independently.
    fn add_item(&mut self) {
        for _ in 0..self.probes {
            for r in 1..=self.probes {
                let hit = self.missing[r] * (r as f64 / self.bits);
                self.missing[r] -= hit;
                self.missing[r - 1] += hit;
            }
        }
    }

    fn is_full(&self) -> bool {
        self.missing[1..].iter().sum::<f64>() < 1e-17
    }

    /// The chance that no bit is missing, or that one of the items has the same half of the hash.
    fn rate(&self, items: f64) -> f64 {
        (self.missing[0] + items / HIGH_HASHES).clamp(0.0, 1.0)
    }
}
