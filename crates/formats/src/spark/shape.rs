//! Version, hash functions and words: what the header says, how Spark sizes, and where the bits of a key are.

use super::hash::SparkHash;
use crate::ClassicalError;
use crate::classical::{self, Modulus, Number, Scheme, Walk};

/// Most hash functions: as many as the smallest rate that a number of 64 bits can be (2^-1074) takes. Spark has no limit; a damaged number
/// would make a lookup take seconds.
const MAX_HASH_FUNCTIONS: i64 = 1074;

/// The version of a filter: how keys are hashed and where their bits are. It hands out the hashes of keys.
///
/// ```
/// use blocked_bloom_formats::spark::{SparkFilter, Version};
/// let filter = SparkFilter::new(Version::V1, 100, 0.03)?;
/// let hash = filter.view().shape().version().hash_long(7);
/// assert!(!filter.view().contains_hash(hash));
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Version {
    /// Every Spark up to 4.0. Positions are computed in 32 bits: beyond 2^31 bits, and a good deal below, keys crowd.
    V1,
    /// The default since 4.1: positions in 64 bits, and a seed.
    V2 {
        /// The seed of the hash, 0 unless the program gives one.
        seed: i32,
    },
}

impl Version {
    /// The seed of the hash: 0 in version 1.
    pub fn seed(self) -> i32 {
        match self {
            Version::V1 => 0,
            Version::V2 { seed } => seed,
        }
    }

    /// The number that the header has: 1 or 2.
    pub fn number(self) -> u32 {
        match self {
            Version::V1 => 1,
            Version::V2 { .. } => 2,
        }
    }

    /// Bytes before the words: version, hash functions, the seed in version 2, and words, four bytes each.
    pub(super) fn header_bytes(self) -> usize {
        match self {
            Version::V1 => 12,
            Version::V2 { .. } => 16,
        }
    }
}

/// Version, hash functions and words: what the header of a stored filter says.
///
/// ```
/// use blocked_bloom_formats::spark::{Shape, Version};
/// let shape = Shape::for_items(Version::V1, 1_000, 0.03)?;
/// assert_eq!((shape.hash_functions(), shape.words()), (5, 115));
/// assert_eq!(shape.stored_bytes(), 12 + 115 * 8);
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    version: Version,
    /// 1 to 1,074.
    hash_functions: u32,
    /// 1 to 2^31 - 1.
    words: u32,
}

impl Shape {
    /// A shape of these hash functions, 1 to 1,074, and words of 64 bits, 1 to 2^31 - 1.
    ///
    /// # Errors
    ///
    /// [`ClassicalError::OutOfRange`].
    pub fn new(version: Version, hash_functions: u32, words: u32) -> Result<Self, ClassicalError> {
        Self::checked(version, Number::given(hash_functions), Number::given(words))
    }

    pub(super) fn checked(
        version: Version,
        hash_functions: Number,
        words: Number,
    ) -> Result<Self, ClassicalError> {
        let hash_functions = hash_functions.within("hash functions", 1, MAX_HASH_FUNCTIONS)? as u32;
        let words = words.within("words", 1, i32::MAX.into())? as u32;
        Ok(Shape { version, hash_functions, words })
    }

    /// The shape that `BloomFilter.create(expectedNumItems, fpp)` gives a filter (`fpp` is 0.03 unless the program gives one):
    /// `-n ln(p) / ln(2)^2` bits, cut to a whole number, and [of those](Self::for_bits) hash functions and words.
    ///
    /// # Errors
    ///
    /// [`ClassicalError::RateOutOfRange`] unless the rate is above 0 and below 1, and those of [`for_bits`](Self::for_bits).
    pub fn for_items(version: Version, items: u64, fpp: f64) -> Result<Self, ClassicalError> {
        if !(fpp > 0.0 && fpp < 1.0) {
            return Err(ClassicalError::RateOutOfRange { rate: fpp });
        }
        let ln2 = core::f64::consts::LN_2;
        // Conversion saturates.
        let bits = (-(items as f64) * libm::log(fpp) / (ln2 * ln2)) as u64;
        Self::for_bits(version, items, bits)
    }

    /// The shape that `BloomFilter.create(expectedNumItems, numBits)` gives a filter: `m / n ln(2)` hash functions, rounded, at least one,
    /// and the bits rounded up to words.
    ///
    /// # Errors
    ///
    /// [`ClassicalError::OutOfRange`] unless there is an item and a bit, as Spark throws then, and for more than 1,074 hash functions or
    /// 2^31 - 1 words.
    pub fn for_bits(version: Version, items: u64, bits: u64) -> Result<Self, ClassicalError> {
        Number::given(items).within("items", 1, i64::MAX - 1)?;
        Number::given(bits).within("bits", 1, i64::from(i32::MAX) * 64)?;
        let hash_functions = bits as f64 / items as f64 * core::f64::consts::LN_2;
        let hash_functions = libm::round(hash_functions).max(1.0);
        let hash_functions = Number::given(hash_functions as i64);
        Self::checked(version, hash_functions, Number::given(bits.div_ceil(64)))
    }

    /// The version, and the seed if it has one.
    pub fn version(self) -> Version {
        self.version
    }

    /// Bits per key, 1 to 1,074.
    pub fn hash_functions(self) -> u32 {
        self.hash_functions
    }

    /// Words of 64 bits, 1 to 2^31 - 1.
    pub fn words(self) -> u32 {
        self.words
    }

    /// Bits, Spark's `bitSize`: all of the words'.
    pub fn bits(self) -> u64 {
        u64::from(self.words) * 64
    }

    /// Bytes of a stored filter of this shape: 12 or 16, and 8 per word, at most 16 GiB.
    pub fn stored_bytes(self) -> u64 {
        self.version.header_bytes() as u64 + self.bits() / 8
    }

    /// The false-positive rate with this many distinct keys, 0 to 1: `(1 - e^(-k n / m))^k` for `k` hash functions, `n` keys and `m`
    /// bits (Bloom 1970, with the usual approximation). Filters of a few words have more, and so have those of version 1 with many millions
    /// of keys, whose positions come from 32 bits.
    pub fn false_positive_rate(self, keys: u64) -> f64 {
        classical::false_positive_rate(self.hash_functions, self.bits(), keys)
    }
}

/// Where the bits of a key are in a filter of this shape.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Probes {
    shape: Shape,
    bits: Modulus,
}

impl Probes {
    pub(super) fn new(shape: Shape) -> Self {
        Probes { shape, bits: Modulus::new(shape.bits()) }
    }

    pub(super) fn shape(self) -> Shape {
        self.shape
    }
}

impl Scheme for Probes {
    type Hash = SparkHash;

    #[inline]
    fn probes(self) -> u32 {
        self.shape.hash_functions
    }

    #[inline]
    fn bits(self) -> u64 {
        self.shape.bits()
    }

    /// The first number is one step from where it begins: from the first hash, in version 2 times 2^31 - 1.
    #[inline]
    fn walk(self, hash: SparkHash) -> Walk {
        let [h1, h2] = [hash.h1, hash.h2].map(i64::from);
        let base = match self.shape.version {
            Version::V1 => h1,
            Version::V2 { .. } => h1 * i64::from(i32::MAX),
        };
        Walk { next: base.wrapping_add(h2).cast_unsigned(), step: h2.cast_unsigned() }
    }

    /// Negative numbers are inverted, in version 1 as numbers of 32 bits. The words are big-endian, so the bytes of each are reversed.
    #[inline]
    fn position(self, number: u64) -> u64 {
        let number = match self.shape.version {
            Version::V1 => i64::from((number as u32).cast_signed()),
            Version::V2 { .. } => number.cast_signed(),
        };
        self.bits.remainder((number ^ number >> 63).cast_unsigned()) ^ 56
    }
}
