//! The header of a stored filter, and Spark's sizing.

use alloc::vec::Vec;

use blocked_bloom::Bitmask;

use super::hash::SparkHash;
use super::version::Version;
use crate::classical::{Fields, Number, Scheme, Walk, Words, check_rate};
use crate::{ClassicalError, ClassicalFilter, ClassicalShape};

/// A filter of Spark, generic over the owner of its bytes. The bytes equal those that
/// `BloomFilter.writeTo` writes after the same insertions.
///
/// ```
/// use blocked_bloom_formats::spark::{SparkFilter, Version};
/// let mut filter = SparkFilter::new(Version::V1, 100, 0.01)?;
/// filter.insert("apple");
/// assert!(SparkFilter::from_bytes(filter.as_bytes())?.contains("apple"));
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
pub type SparkFilter<D = Vec<u8>> = ClassicalFilter<Version, D>;

/// Version, hash functions ([`probes`](ClassicalShape::probes), 1 to 1,074) and words of a filter.
///
/// ```
/// use blocked_bloom_formats::spark::{Shape, Version};
/// assert_eq!(Shape::for_items(Version::V1, 1_000, 0.03)?.probes(), 5);
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
pub type Shape = ClassicalShape<Version>;

impl Scheme for Version {
    type Hash = SparkHash;

    /// Version, hash functions, the seed in version 2, and words, four bytes each.
    #[inline]
    fn header_bytes(self) -> usize {
        match self {
            Version::V1 => 12,
            Version::V2 { .. } => 16,
        }
    }

    #[inline]
    fn hash_key(self, key: &[u8]) -> SparkHash {
        self.hash_bytes(key)
    }

    /// The first number is one step after the first hash, which version 2 multiplies by 2^31 - 1.
    /// 1.
    #[inline]
    fn walk(self, hash: SparkHash) -> Walk {
        let [h1, h2] = [hash.h1, hash.h2].map(i64::from);
        let base = match self {
            Version::V1 => h1,
            Version::V2 { .. } => h1 * i64::from(i32::MAX),
        };
        Walk { next: base.wrapping_add(h2).cast_unsigned(), step: h2.cast_unsigned() }
    }

    /// Negative numbers are inverted; version 1 first truncates numbers to 32 bits.
    #[inline]
    fn dividend(self, number: u64) -> u64 {
        let number = match self {
            Version::V1 => i64::from((number as u32).cast_signed()),
            Version::V2 { .. } => number.cast_signed(),
        };
        (number ^ number >> 63).cast_unsigned()
    }
}

impl Words for Version {
    /// As many as the smallest rate of an `f64` (2^-1074) takes. Spark has no limit, but with a
    /// damaged number a lookup could take seconds.
    const MAX_PROBES: u32 = 1074;

    fn header(self, probes: u32, words: u32) -> Vec<u8> {
        let [version, seed] = [self.number(), self.seed().cast_unsigned()];
        match self {
            Version::V1 => [version, probes, words].map(u32::to_be_bytes).concat(),
            Version::V2 { .. } => [version, probes, seed, words].map(u32::to_be_bytes).concat(),
        }
    }

    fn fields(self) -> [(&'static str, i64); 2] {
        [("version", self.number().into()), ("seed", self.seed().into())]
    }
}

impl Shape {
    /// Returns the shape that `BloomFilter.create(expectedNumItems, fpp)` chooses (`fpp` is 0.03 by
    /// default): `-n ln(p) / ln(2)^2` bits, truncated to an integer, and the hash functions and
    /// words [for these](Self::for_bits).
    ///
    /// # Errors
    ///
    /// [`ClassicalError::RateOutOfRange`] unless the rate is above 0 and below 1, and the errors of
    /// [`for_bits`](Self::for_bits).
    pub fn for_items(version: Version, items: u64, fpp: f64) -> Result<Self, ClassicalError> {
        check_rate(fpp)?;
        let ln2 = core::f64::consts::LN_2;
        // The conversion saturates.
        let bits = (-(items as f64) * libm::log(fpp) / (ln2 * ln2)) as u64;
        Self::for_bits(version, items, bits)
    }

    /// Returns the shape that `BloomFilter.create(expectedNumItems, numBits)` chooses: `m / n
    /// ln(2)` hash functions, rounded, at least one, and the bits rounded up to words.
    ///
    /// # Errors
    ///
    /// [`ClassicalError::OutOfRange`] for 0 items or 0 bits, where Spark throws, and for more than
    /// 1,074 hash functions or 2^31 - 1 words.
    pub fn for_bits(version: Version, items: u64, bits: u64) -> Result<Self, ClassicalError> {
        Number::given(items).check_range("items", 1, i64::MAX - 1)?;
        Number::given(bits).check_range("bits", 1, i64::from(i32::MAX) * 64)?;
        let probes = libm::round(bits as f64 / items as f64 * core::f64::consts::LN_2).max(1.0);
        let words = Number::given(bits.div_ceil(64));
        Self::checked(version, Number::given(probes as i64), words)
    }
}

impl SparkFilter {
    /// Creates an empty filter with the size that `BloomFilter.create` chooses: see
    /// [`Shape::for_items`].
    ///
    /// # Errors
    ///
    /// The errors of [`Shape::for_items`], and [`ClassicalError::Alloc`].
    ///
    /// ```
    /// use blocked_bloom_formats::spark::{SparkFilter, Version};
    /// // BloomFilter.create(1000, 0.01) of Spark 4.1
    /// let mut filter = SparkFilter::new(Version::V2 { seed: 0 }, 1_000, 0.01)?;
    /// assert!(filter.insert_long(7) && filter.insert("seven"));
    /// assert!(filter.contains_long(7) && !filter.contains_long(8));
    /// assert_eq!(filter.into_inner().len(), 16 + 150 * 8);
    /// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
    /// ```
    pub fn new(version: Version, items: u64, fpp: f64) -> Result<Self, ClassicalError> {
        Self::with_shape(Shape::for_items(version, items, fpp)?)
    }

    /// Inserts a number, like `putLong`. Returns true if it was certainly absent before.
    pub fn insert_long(&mut self, key: i64) -> bool {
        self.insert_hash(self.shape.scheme().hash_long(key))
    }
}

impl<D: AsRef<[u8]>> SparkFilter<D> {
    /// Opens the bytes of one filter. Nothing may follow it. Cost: reads the header.
    ///
    /// # Errors
    ///
    /// [`ClassicalError::Truncated`] for fewer bytes than a header; [`ClassicalError::OutOfRange`]
    /// unless the version is 1 or 2 and there are 1 to 1,074 hash functions (Spark has no limit)
    /// and 1 to 2^31 - 1 words; [`ClassicalError::Length`] if the number of words differs from the
    /// header or other bytes follow. Rejected bytes must not be used to answer "absent".
    ///
    /// ```
    /// use blocked_bloom_formats::spark::{SparkFilter, Version};
    /// # let bytes = include_bytes!(concat!(
    /// #     env!("CARGO_MANIFEST_DIR"),
    /// #     "/tests/fixtures/spark/spark_V2_n5000_fpp0.001.bin"
    /// # ));
    /// let filter = SparkFilter::from_bytes(bytes)?;
    /// assert_eq!(filter.shape().scheme(), Version::V2 { seed: 12345 });
    /// assert!(filter.contains("k0") && filter.contains_long(1_234_567_891_006));
    /// assert!(!filter.contains("durian"));
    /// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
    /// ```
    pub fn from_bytes(bytes: D) -> Result<Self, ClassicalError> {
        let header = Fields(bytes.as_ref());
        let version = match header.number(0)?.check_range("version", 1, 2)? {
            1 => Version::V1,
            _ => Version::V2 { seed: header.number(8)?.value() as i32 },
        };
        let words = header.number(version.header_bytes() - 4)?;
        Self::open(Shape::checked(version, header.number(4)?, words)?, bytes)
    }

    /// Returns whether this number may have been inserted by `putLong`, in any integral type; false
    /// means certainly not.
    #[inline]
    pub fn contains_long(&self, key: i64) -> bool {
        self.contains_hash(self.shape.scheme().hash_long(key))
    }

    /// Looks up numbers, like [`contains_batch`](Self::contains_batch) does for bytes.
    pub fn contains_longs(&self, keys: &[i64], hits: &mut Bitmask) {
        let hashes = keys.iter().map(|&key| self.shape.scheme().hash_long(key));
        hits.write(keys.len(), |words| self.look_up(hashes, words));
    }
}
