//! The shape of a row's filter, the positions of an item's bits, and the resulting false-positive
//! rate.
//!
//! The probe scheme is that of the core with blocks of 16 to 512 bits. With 512 bits both are
//! equal, bit for bit.

use core::fmt::{self, Display, Formatter};

use blocked_bloom::probe::{MAX_BITS_PER_KEY, MAX_PROBES, MULTIPLIER, block_index};

/// Minimum number of bits in a block.
pub const MIN_BLOCK_BITS: u32 = 16;

/// Maximum number of bits in a block: that of the core's blocks.
pub const MAX_BLOCK_BITS: u32 = 512;

/// Maximum number of planes (bits of a row's filter): 2^26, or 8 MiB a row.
pub const MAX_PLANES: u32 = 1 << 26;

/// Why a shape is invalid.
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
    /// The bits in a block are outside 16 to 512.
    BlockBitsOutOfRange {
        /// The value given.
        block_bits: u32,
    },
    /// The number of probes is outside 1 to 30.
    ProbesOutOfRange {
        /// The value given.
        probes: u32,
    },
    /// The number of planes is 0 or above [`MAX_PLANES`].
    PlanesOutOfRange {
        /// Blocks times bits in a block.
        planes: u64,
    },
    /// The bits per item are not above 0 and at most 100.
    BitsPerItemOutOfRange {
        /// The value given.
        bits_per_item: f64,
    },
    /// The rate is not between 0 and 1.
    RateOutOfRange {
        /// The value given.
        rate: f64,
    },
    /// No shape reaches this rate for rows of this many items.
    RateUnreachable {
        /// The value given.
        rate: f64,
        /// The lowest possible rate.
        lowest: f64,
    },
}

blocked_bloom::impl_error!(ShapeError;
    Self::BlockBitsOutOfRange { block_bits } => (
        "blocks of {block_bits} bits: give {MIN_BLOCK_BITS} to {MAX_BLOCK_BITS}"
    ),
    Self::ProbesOutOfRange { probes } => ("{probes} probes: give 1 to {MAX_PROBES}"),
    Self::PlanesOutOfRange { planes } => (
        "{planes} planes, one per bit of a row: give 1 to {MAX_PLANES}"
    ),
    Self::BitsPerItemOutOfRange { bits_per_item: bits } => (
        "{bits:?} bits per item: give a number above 0 and up to {MAX_BITS_PER_KEY}"
    ),
    Self::RateOutOfRange { rate } => (
        "false-positive rate {rate:?}: give a number above 0 and below 1"
    ),
    Self::RateUnreachable { rate, lowest } => (
        "false-positive rate {rate:e} cannot be reached: give a rate clearly above {lowest:.3e}"
    ),
);

/// Number of values of the half of the hash that selects an item's bits.
const HIGH_HASHES: f64 = 4_294_967_296.0;

/// The shape of every row's filter: `n` blocks of `m` bits, and `k` probes per item.
///
/// ```
/// use blocked_bloom_planes::Shape;
/// // Rows of ten columns, 128 bits a row, two probes a column.
/// let shape = Shape::new(1, 128, 2)?;
/// assert_eq!(shape.planes(), 128);
/// assert_eq!(format!("{:.4}", shape.false_positive_rate(10)), "0.0211");
///
/// // Pages of 1,000 distinct tokens, one false page in a hundred.
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
    /// Creates a shape of `blocks` blocks of `block_bits` bits, with `probes` bits per item.
    ///
    /// # Errors
    ///
    /// [`ShapeError`] with the value, if `block_bits` is outside 16 to 512, `probes` outside 1 to
    /// 30, `blocks` is 0, or the total is above [`MAX_PLANES`] bits.
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

    /// Chooses the shape for rows of this many items with this many bits per item (above 0, at most
    /// 100). The total is rounded up to whole bits and is at least 16.
    ///
    /// Up to 512 bits make one block. More bits make as few equal blocks as possible. The number of
    /// probes is the smallest whose rate is at most 1.1 times the best rate, since a query reads
    /// one plane per probe.
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

    /// Chooses the shape with the fewest planes whose rate, for rows of this many items, is at most
    /// `rate` (above 0 and below 1). Cost: up to a few milliseconds.
    ///
    /// # Errors
    ///
    /// [`ShapeError::RateOutOfRange`]; [`ShapeError::RateUnreachable`] if neither 100 bits per item
    /// nor [`MAX_PLANES`] reach the rate.
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
        // One block is better than two with slightly more bits, so the search stays within one
        // block if that suffices.
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

    /// Returns a shape with this many bits, or slightly more, and the best number of probes.
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

    /// Returns the smallest number of probes whose rate is at most 1.1 times the best rate.
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

    /// Returns the number of blocks in a row's filter.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Returns the number of bits in a block.
    pub fn block_bits(&self) -> u32 {
        self.block_bits.into()
    }

    /// Returns the number of bits set per item, which is the number of planes read per queried
    /// item.
    pub fn probes(&self) -> u32 {
        self.probes.into()
    }

    /// Returns the number of bits in a row's filter. Each bit is a plane.
    pub fn planes(&self) -> u32 {
        self.blocks * u32::from(self.block_bits)
    }

    /// Returns the planes of a hash, possibly with repetitions. This defines the bit positions.
    ///
    /// With `lo = hash as u32`, `hi = hash >> 32`, `n` blocks of `m` bits and `G` = `0x9e3779b9`,
    /// the block is `(lo * n) >> 32`, its bit `i` is `((hi * G^i mod 2^32) * m) >> 32`, and the
    /// plane is `block * m + bit`.
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

    /// Sets the bits of the items in a row of words.
    #[inline]
    pub(crate) fn set(self, row: &mut [u64], hashes: impl IntoIterator<Item = u64>) {
        for plane in hashes.into_iter().flat_map(|hash| self.planes_of(hash)) {
            row[(plane / 64) as usize] |= 1 << (plane % 64);
        }
    }

    /// Returns the probability, 0 to 1, that a row of `items` distinct items matches an absent
    /// item.
    ///
    /// The rate of a block with `j` items is exact for independent probes. Let `r` be the number of
    /// looked-up bits that are still unset, initially the number of distinct bits among `k` probes.
    /// Each of the `j k` bits set by the items hits an unset one with probability `r / m`. The rate
    /// is the probability that `r` becomes 0, plus `j / 2^32` for an item with an equal half of the
    /// hash, averaged over `j ~ Binomial(items, 1 / n)`. The rate of a query for several items is
    /// about the product of their rates, or less if they share bits.
    ///
    /// Cost: about `j k^2` additions and multiplications.
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
        // Weights are kept as logarithms, because the weight of 0 items may underflow.
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

/// Distribution of the number of unset looked-up bits: `missing[r]` is the probability of `r`.
struct Occupancy {
    bits: f64,
    probes: usize,
    missing: [f64; MAX_PROBES as usize + 1],
}

impl Occupancy {
    /// Returns the distribution for an empty block: that of the distinct bits among the probes.
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

    /// Adds one item, whose probes hit bits independently.
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

    /// Returns the probability that no bit is unset, or that an item has an equal half of the hash.
    fn rate(&self, items: f64) -> f64 {
        (self.missing[0] + items / HIGH_HASHES).clamp(0.0, 1.0)
    }
}
