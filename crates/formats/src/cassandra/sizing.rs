//! The size of a filter: how Cassandra computes probes and words from an estimated number of
//! partitions and a chance. Its table of probabilities is computed here.

use super::layout::Layout;
use crate::classical::{Number, check_rate};
use crate::{ClassicalError, ClassicalShape};

/// Maximum bits per key in the table, which starts at 2.
const MAX_BITS_PER_KEY: u32 = 20;
/// Extra bits per filter.
const EXCESS_BITS: u64 = 20;

/// The lowest chance: the entry of Cassandra's table for the maximum bits per key and the best
/// number of probes.
const LOWEST_CHANCE: f64 = 6.71e-5;

/// Layout, probes (1 to 21) and words of a filter.
///
/// ```
/// use blocked_bloom_formats::cassandra::{Layout, Shape};
/// let shape = Shape::for_partitions(Layout::Cassandra4, 1_000, 0.01)?;
/// assert!(shape.false_positive_rate(1_000) < 0.01);
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
pub type Shape = ClassicalShape<Layout>;

impl Shape {
    /// Returns Cassandra's shape for this many partitions and a table's `bloom_filter_fp_chance`
    /// (0.01 unless set). With a chance of 1 it has no bytes: such a table has no filter.
    ///
    /// Cassandra estimates the number of partitions, so its own files are often larger than
    /// necessary. The actual rate of a shape is
    /// [`false_positive_rate`](Self::false_positive_rate). It is usually lower than the chance, but
    /// higher for chances above 0.4, for which Cassandra uses one bit per key and two probes.
    ///
    /// # Errors
    ///
    /// [`ClassicalError::RateOutOfRange`] unless the chance is above 0 and up to 1;
    /// [`ClassicalError::RateTooLow`] below 0.0000671; [`ClassicalError::OutOfRange`] for more than
    /// 2^31 - 1 words.
    ///
    /// ```
    /// use blocked_bloom_formats::cassandra::{Layout, Shape};
    /// let shape = Shape::for_partitions(Layout::Cassandra4, 64, 0.1)?;
    /// assert_eq!((shape.probes(), shape.words(), shape.stored_bytes()), (3, 6, 8 + 6 * 8));
    /// assert_eq!(Shape::for_partitions(Layout::Cassandra4, 64, 1.0)?.stored_bytes(), 0);
    /// assert!(Shape::for_partitions(Layout::Cassandra4, 64, 0.00006).is_err());
    /// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
    /// ```
    pub fn for_partitions(
        layout: Layout,
        partitions: u64,
        fp_chance: f64,
    ) -> Result<Self, ClassicalError> {
        if fp_chance == 1.0 {
            return Ok(Shape::from_parts(layout, 0, 0, 0));
        }
        check_rate(fp_chance)?;
        if fp_chance < LOWEST_CHANCE {
            return Err(ClassicalError::RateTooLow { rate: fp_chance, least: LOWEST_CHANCE });
        }
        let (probes, bits_per_key) = probes_and_bits(fp_chance);
        let bits = partitions.saturating_mul(u64::from(bits_per_key)).saturating_add(EXCESS_BITS);
        Self::checked(layout, Number::given(probes), Number::given(bits.div_ceil(64)))
    }
}

/// Returns the probes and bits per key: the fewest bits at which the best number of probes has a
/// chance of at most `fp_chance`, and then the fewest probes with such a chance.
fn probes_and_bits(fp_chance: f64) -> (u32, u32) {
    if fp_chance >= table(2, best(2)) {
        // Cassandra intends two bits and one probe here, but passes them in the wrong order.
        return (2, best(2));
    }
    let mut bits_per_key = 2;
    while bits_per_key < MAX_BITS_PER_KEY && table(bits_per_key, best(bits_per_key)) > fp_chance {
        bits_per_key += 1;
    }
    let mut probes = best(bits_per_key);
    while probes > 1 && table(bits_per_key, probes - 1) <= fp_chance {
        probes -= 1;
    }
    (probes, bits_per_key)
}

/// Returns the best number of probes for this many bits per key.
fn best(bits_per_key: u32) -> u32 {
    libm::round(f64::from(bits_per_key) * core::f64::consts::LN_2) as u32
}

/// Returns the entry of Cassandra's table: the chance of a classical filter, `(1 - e^(-k/b))^k`, to
/// three significant digits. One of its 157 entries is rounded differently.
fn table(bits_per_key: u32, probes: u32) -> f64 {
    if (bits_per_key, probes) == (5, 3) {
        return 0.092;
    }
    let (k, b) = (f64::from(probes), f64::from(bits_per_key));
    let exact = libm::pow(-libm::expm1(-k / b), k);
    let mut scale = 1.0;
    while exact * scale < 100.0 {
        scale *= 10.0;
    }
    // An integer divided by a power of ten is the `f64` nearest to the decimal number.
    libm::round(exact * scale) / scale
}
