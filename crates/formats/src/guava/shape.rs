//! Strategy, hash functions and words: what the header says, how Guava sizes, and where the bits of a key are.

use super::hash::GuavaHash;
use crate::ClassicalError;
use crate::classical::{self, Modulus, Number, Scheme, Walk};

/// Bytes before the words: the strategy, the hash functions, and the words as four big-endian bytes.
pub(super) const HEADER_BYTES: usize = 6;

/// How positions are computed from a key's hash: the first byte of a stored filter.
///
/// ```
/// use blocked_bloom_formats::guava::{GuavaFilter, Strategy};
/// assert_eq!(GuavaFilter::new(10, 0.01)?.view().shape().strategy(), Strategy::Mitz64);
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strategy {
    /// `MURMUR128_MITZ_32`, 0: the halves of the first half, as numbers of 32 bits. Guava's before 17.0; such filters have a usable
    /// range of 2^31 bits.
    Mitz32,
    /// `MURMUR128_MITZ_64`, 1: both halves, as numbers of 64 bits.
    Mitz64,
}

/// Strategy, hash functions and words: what the header of a stored filter says.
///
/// ```
/// use blocked_bloom_formats::guava::{Shape, Strategy};
/// let shape = Shape::for_insertions(1_000, 0.03)?;
/// assert_eq!((shape.hash_functions(), shape.words()), (5, 115));
/// assert_eq!(shape.stored_bytes(), 6 + 115 * 8);
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    strategy: Strategy,
    /// 1 to 255.
    hash_functions: u8,
    /// 1 to 2^31 - 1.
    words: u32,
}

impl Shape {
    /// A shape of these hash functions, 1 to 255, and words of 64 bits, 1 to 2^31 - 1.
    ///
    /// # Errors
    ///
    /// [`ClassicalError::OutOfRange`].
    pub fn new(strategy: Strategy, hash_functions: u8, words: u32) -> Result<Self, ClassicalError> {
        Self::checked(strategy, Number::given(hash_functions), Number::given(words))
    }

    pub(super) fn checked(
        strategy: Strategy,
        hash_functions: Number,
        words: Number,
    ) -> Result<Self, ClassicalError> {
        let hash_functions = hash_functions.within("hash functions", 1, 255)? as u8;
        let words = words.within("words", 1, i32::MAX.into())? as u32;
        Ok(Shape { strategy, hash_functions, words })
    }

    /// The shape that `BloomFilter.create` gives a filter for so many insertions and this `fpp` (0.03 unless the program gives one):
    /// `-n ln(p) / ln(2)^2` bits, cut to a whole number and then rounded up to words, and `-log2(p)` hash functions, rounded. No
    /// insertions are taken for one, as Guava does.
    ///
    /// Older versions of Guava computed the hash functions from the cut number of bits: those of filters for a handful of keys
    /// may differ by one. For the shape of a filter that is there, take [its own](super::GuavaFilterRef::shape).
    ///
    /// # Errors
    ///
    /// [`ClassicalError::RateOutOfRange`] unless the rate is above 0 and below 1; [`ClassicalError::OutOfRange`] if there would be no bit, more
    /// than 2^31 - 1 words, or more than 255 hash functions: Guava throws then.
    pub fn for_insertions(insertions: u64, fpp: f64) -> Result<Self, ClassicalError> {
        if !(fpp > 0.0 && fpp < 1.0) {
            return Err(ClassicalError::RateOutOfRange { rate: fpp });
        }
        let ln2 = core::f64::consts::LN_2;
        let bits = -(insertions.max(1) as f64) * libm::log(fpp) / (ln2 * ln2);
        let hash_functions = libm::round(-libm::log(fpp) / ln2).max(1.0);
        // Conversion saturates.
        let words = Number::given((bits as u64).div_ceil(64));
        Self::checked(Strategy::Mitz64, Number::given(hash_functions as i64), words)
    }

    /// The same shape with another strategy.
    #[must_use]
    pub fn with_strategy(self, strategy: Strategy) -> Self {
        Shape { strategy, ..self }
    }

    /// How positions are computed.
    pub fn strategy(self) -> Strategy {
        self.strategy
    }

    /// Bits per key, 1 to 255.
    pub fn hash_functions(self) -> u32 {
        self.hash_functions.into()
    }

    /// Words of 64 bits, 1 to 2^31 - 1.
    pub fn words(self) -> u32 {
        self.words
    }

    /// Bits: all of the words'.
    pub fn bits(self) -> u64 {
        u64::from(self.words) * 64
    }

    /// Bytes of a stored filter of this shape: 6 and 8 per word, at most 16 GiB.
    pub fn stored_bytes(self) -> u64 {
        HEADER_BYTES as u64 + self.bits() / 8
    }

    /// The false-positive rate with this many distinct keys, 0 to 1: `(1 - e^(-k n / m))^k` for `k` hash functions, `n` keys and `m`
    /// bits (Bloom 1970, with the usual approximation). Filters of a few words have more.
    pub fn false_positive_rate(self, keys: u64) -> f64 {
        classical::false_positive_rate(self.hash_functions(), self.bits(), keys)
    }

    /// The header of a filter of this shape.
    pub(super) fn header(self) -> [u8; HEADER_BYTES] {
        let [a, b, c, d] = self.words.to_be_bytes();
        [self.strategy as u8, self.hash_functions, a, b, c, d]
    }
}

/// Reads the strategy.
pub(super) fn strategy(byte: u8) -> Result<Strategy, ClassicalError> {
    match Number::stored(0, byte.cast_signed()).within("strategy", 0, 1)? {
        0 => Ok(Strategy::Mitz32),
        _ => Ok(Strategy::Mitz64),
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
    type Hash = GuavaHash;

    #[inline]
    fn probes(self) -> u32 {
        self.shape.hash_functions()
    }

    #[inline]
    fn bits(self) -> u64 {
        self.shape.bits()
    }

    /// `Mitz64` begins with the first half and steps by the second. `Mitz32` does so with the halves of the first half, one step ahead.
    #[inline]
    fn walk(self, hash: GuavaHash) -> Walk {
        match self.shape.strategy {
            Strategy::Mitz64 => Walk { next: hash.h1, step: hash.h2 },
            Strategy::Mitz32 => {
                let (low, high) = (hash.h1 as u32, (hash.h1 >> 32) as u32);
                Walk { next: low.wrapping_add(high).into(), step: high.into() }
            }
        }
    }

    /// `Mitz64` clears the sign bit; `Mitz32`, of whose numbers the lowest 32 bits count, inverts negative ones. The words are
    /// big-endian, so the bytes of each are reversed.
    #[inline]
    fn position(self, number: u64) -> u64 {
        let number = match self.shape.strategy {
            Strategy::Mitz64 => number & u64::MAX >> 1,
            Strategy::Mitz32 => {
                let number = (number as u32).cast_signed();
                (number ^ number >> 31).cast_unsigned().into()
            }
        };
        self.bits.remainder(number) ^ 56
    }
}
