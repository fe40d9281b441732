//! Strategies, the header of a stored filter, and Guava's sizing.

use alloc::vec::Vec;

use super::hash::{GuavaHash, hash_key};
use crate::classical::{Fields, Number, Scheme, Walk, Words, check_rate};
use crate::{ClassicalError, ClassicalFilter, ClassicalShape};

/// A filter of Guava, generic over the owner of its bytes. The bytes equal those that
/// `BloomFilter.writeTo` writes after the same insertions.
///
/// ```
/// use blocked_bloom_formats::guava::GuavaFilter;
/// let mut filter = GuavaFilter::new(100, 0.01)?;
/// filter.insert("apple");
/// assert!(GuavaFilter::from_bytes(filter.as_bytes())?.contains("apple"));
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
pub type GuavaFilter<D = Vec<u8>> = ClassicalFilter<Strategy, D>;

/// Strategy, hash functions ([`probes`](ClassicalShape::probes), 1 to 255) and words of a filter.
///
/// ```
/// use blocked_bloom_formats::guava::Shape;
/// assert_eq!(Shape::for_insertions(1_000, 0.03)?.probes(), 5);
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
pub type Shape = ClassicalShape<Strategy>;

/// The computation of positions from a key's hash: the first byte of a stored filter.
///
/// ```
/// use blocked_bloom_formats::guava::{GuavaFilter, Strategy};
/// assert_eq!(GuavaFilter::new(10, 0.01)?.shape().scheme(), Strategy::Mitz64);
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strategy {
    /// `MURMUR128_MITZ_32`, 0: positions come from the two 32-bit halves of the hash's first half.
    /// Guava's strategy before 17.0; such filters can use 2^31 bits.
    Mitz32,
    /// `MURMUR128_MITZ_64`, 1: positions come from both halves of the hash.
    Mitz64,
}

impl Scheme for Strategy {
    type Hash = GuavaHash;

    #[inline]
    fn header_bytes(self) -> usize {
        6
    }

    #[inline]
    fn hash_key(self, key: &[u8]) -> GuavaHash {
        hash_key(key)
    }

    /// `Mitz64` begins with the first half and steps by the second. `Mitz32` uses the two halves of
    /// the first half in the same way, but begins one step later.
    #[inline]
    fn walk(self, hash: GuavaHash) -> Walk {
        match self {
            Strategy::Mitz64 => Walk { next: hash.h1, step: hash.h2 },
            Strategy::Mitz32 => {
                let (low, high) = (hash.h1 as u32, (hash.h1 >> 32) as u32);
                Walk { next: low.wrapping_add(high).into(), step: high.into() }
            }
        }
    }

    /// `Mitz64` clears the sign bit. `Mitz32` takes the lowest 32 bits, and inverts negative
    /// numbers.
    #[inline]
    fn dividend(self, number: u64) -> u64 {
        match self {
            Strategy::Mitz64 => number & u64::MAX >> 1,
            Strategy::Mitz32 => {
                let number = (number as u32).cast_signed();
                (number ^ number >> 31).cast_unsigned().into()
            }
        }
    }
}

impl Words for Strategy {
    const MAX_PROBES: u32 = 255;

    fn header(self, probes: u32, words: u32) -> Vec<u8> {
        [&[self as u8, probes as u8][..], &words.to_be_bytes()].concat()
    }

    fn fields(self) -> [(&'static str, i64); 2] {
        [("strategy", self as i64), ("seed", 0)]
    }
}

impl Shape {
    /// Returns the shape that `BloomFilter.create` chooses for this many insertions and this `fpp`
    /// (by default 0.03): `-n ln(p) / ln(2)^2` bits, truncated to an integer and rounded up to
    /// words, and `-log2(p)` hash functions, rounded. 0 insertions count as 1, as in Guava.
    ///
    /// Guava up to 31 computed the hash functions from the truncated number of bits. Some of its
    /// filters for up to 152 keys have one more or less (65 of 3,000 shapes), and `isCompatible`
    /// returns false for them. For an existing filter, use [its own
    /// shape](ClassicalFilter::shape).
    ///
    /// # Errors
    ///
    /// [`ClassicalError::RateOutOfRange`] unless the rate is above 0 and below 1.
    /// [`ClassicalError::OutOfRange`] for 0 bits, more than 2^31 - 1 words, or more than 255 hash
    /// functions, where Guava throws.
    pub fn for_insertions(insertions: u64, fpp: f64) -> Result<Self, ClassicalError> {
        check_rate(fpp)?;
        let ln2 = core::f64::consts::LN_2;
        let bits = -(insertions.max(1) as f64) * libm::log(fpp) / (ln2 * ln2);
        let probes = libm::round(-libm::log(fpp) / ln2).max(1.0);
        // The conversion saturates.
        let words = Number::given((bits as u64).div_ceil(64));
        Self::checked(Strategy::Mitz64, Number::given(probes as i64), words)
    }
}

impl GuavaFilter {
    /// Creates an empty filter with the size that `BloomFilter.create` chooses: see
    /// [`Shape::for_insertions`].
    ///
    /// # Errors
    ///
    /// The errors of [`Shape::for_insertions`], and [`ClassicalError::Alloc`].
    ///
    /// ```
    /// use blocked_bloom_formats::guava::GuavaFilter;
    /// // BloomFilter.create(Funnels.longFunnel(), 1000, 0.01)
    /// let mut filter = GuavaFilter::new(1_000, 0.01)?;
    /// for id in 0..1_000_i64 {
    ///     filter.insert(id.to_le_bytes());
    /// }
    /// assert!(filter.contains(999_i64.to_le_bytes()));
    /// assert_eq!(filter.into_inner()[..6], [1, 7, 0, 0, 0, 150]);
    /// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
    /// ```
    pub fn new(insertions: u64, fpp: f64) -> Result<Self, ClassicalError> {
        Self::with_shape(Shape::for_insertions(insertions, fpp)?)
    }
}

impl<D: AsRef<[u8]>> GuavaFilter<D> {
    /// Opens the bytes of one filter. Nothing may follow it. Cost: reads the header.
    ///
    /// # Errors
    ///
    /// [`ClassicalError::Truncated`] for fewer bytes than a header; [`ClassicalError::OutOfRange`]
    /// unless the strategy is 0 or 1 and there are 1 to 255 hash functions and 1 to 2^31 - 1 words;
    /// [`ClassicalError::Length`] if the number of words differs from the header or other bytes
    /// follow. Rejected bytes must not be used to answer "absent".
    ///
    /// ```
    /// use blocked_bloom_formats::guava::GuavaFilter;
    /// # let bytes = include_bytes!(concat!(
    /// #     env!("CARGO_MANIFEST_DIR"),
    /// #     "/tests/fixtures/guava/guava_mitz64_n1000_fpp0.03.bin"
    /// # ));
    /// let filter = GuavaFilter::from_bytes(bytes)?;
    /// assert!(filter.contains("k0") && !filter.contains("durian"));
    /// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
    /// ```
    pub fn from_bytes(bytes: D) -> Result<Self, ClassicalError> {
        let header = Fields(bytes.as_ref());
        let (kind, probes, words) = (header.byte(0)?, header.byte(1)?, header.number(2)?);
        let strategy = match Number::stored(0, kind.cast_signed()).check_range("strategy", 0, 1)? {
            0 => Strategy::Mitz32,
            _ => Strategy::Mitz64,
        };
        Self::open(Shape::checked(strategy, Number::stored(1, probes), words)?, bytes)
    }
}
