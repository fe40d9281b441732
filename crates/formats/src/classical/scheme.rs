//! The differences between the systems' classical filters: the positions of a key's bits, and the
//! header.

use alloc::vec::Vec;
use core::fmt::{self, Debug, Formatter};

use super::error::{ClassicalError, Number};
use super::modulus::Modulus;

/// Computes the positions of a key's bits in the filters of a system, and the size of the header.
/// Other packages cannot implement it, since this module is private.
///
/// ```
/// use blocked_bloom_formats::ClassicalFilter;
/// # #[cfg(feature = "guava")] {
/// use blocked_bloom_formats::guava::{Strategy, hash_key};
/// let filter: ClassicalFilter<Strategy> = ClassicalFilter::<Strategy>::new(100, 0.01)?;
/// assert!(!filter.contains_hash(hash_key("apple")));
/// # }
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
pub trait Scheme: Copy + Debug + PartialEq {
    /// The hash from which the positions of a key are computed.
    type Hash: Copy;

    /// Returns the number of bytes before the bits, if there are bits.
    fn header_bytes(self) -> usize;

    /// Returns the hash of a key of bytes.
    fn hash_key(self, key: &[u8]) -> Self::Hash;

    /// Returns the numbers from which the positions of a key are computed.
    fn walk(self, hash: Self::Hash) -> Walk;

    /// Maps a number of the walk to a dividend. Its remainder by the number of bits is the position
    /// of a bit.
    fn dividend(self, number: u64) -> u64;

    /// Returns the number that is XORed with a position to find its bit in the stored bytes: result
    /// `p` is bit `p % 8` of byte `p / 8`. It is 56 for big-endian words, to reverse the bytes of
    /// each word, and 0 otherwise.
    #[inline]
    fn byte_flip(self) -> u64 {
        56
    }

    /// Counts an inserted key that was certainly new, if the header contains the number of keys.
    #[inline]
    fn added(&mut self) {}
}

/// The numbers from which a key's positions are computed: an arithmetic sequence modulo 2^64. All
/// these formats use double hashing (Kirsch and Mitzenmacher 2006).
///
/// ```
/// # #[cfg(feature = "guava")] {
/// use blocked_bloom_formats::guava::{GuavaFilter, hash_key};
/// let mut filter = GuavaFilter::new(100, 0.01)?;
/// assert!(filter.insert_hash(hash_key("apple")));
/// # }
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk {
    pub(crate) next: u64,
    pub(crate) step: u64,
}

impl Walk {
    #[inline]
    pub(super) fn advance(&mut self) -> u64 {
        let number = self.next;
        self.next = number.wrapping_add(self.step);
        number
    }
}

/// A scheme whose filters are 64-bit words after a header.
///
/// ```
/// # #[cfg(feature = "guava")] {
/// use blocked_bloom_formats::guava::{Shape, Strategy};
/// assert_eq!(Shape::new(Strategy::Mitz64, 5, 115)?.words(), 115);
/// # }
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
pub trait Words: Scheme {
    /// Maximum number of probes per key.
    const MAX_PROBES: u32;

    /// Returns the header of a filter with this many probes and words.
    fn header(self, probes: u32, words: u32) -> Vec<u8>;

    /// Returns the named values that must be equal to merge filters.
    fn fields(self) -> [(&'static str, i64); 2];
}

/// Scheme, probes and bits: the contents of a stored filter's header.
///
/// ```
/// # #[cfg(feature = "guava")] {
/// use blocked_bloom_formats::guava::{Shape, Strategy};
/// let shape = Shape::for_insertions(1_000, 0.03)?;
/// assert_eq!((shape.scheme(), shape.probes(), shape.words()), (Strategy::Mitz64, 5, 115));
/// assert_eq!(shape.stored_bytes(), 6 + 115 * 8);
/// # }
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClassicalShape<S> {
    pub(crate) scheme: S,
    /// At least 1, or 0 if there are no bits and every key passes.
    probes: u32,
    /// A multiple of 8.
    bits: u64,
    /// Divides by the number of bits that probes use: all bits, except in old links of RedisBloom.
    modulus: Modulus,
}

impl<S: Words> ClassicalShape<S> {
    /// Creates a shape of this many probes and 64-bit words (1 to 2^31 - 1).
    ///
    /// # Errors
    ///
    /// [`ClassicalError::OutOfRange`] for other numbers of words, and unless there are 1 to 255
    /// (Guava), 1,074 (Spark) or 21 (Cassandra) probes.
    pub fn new(scheme: S, probes: u32, words: u32) -> Result<Self, ClassicalError> {
        Self::checked(scheme, Number::given(probes), Number::given(words))
    }

    pub(crate) fn checked(
        scheme: S,
        probes: Number,
        words: Number,
    ) -> Result<Self, ClassicalError> {
        let probes = probes.check_range("probes", 1, S::MAX_PROBES.into())? as u32;
        let bits = 64 * words.check_range("words", 1, i32::MAX.into())? as u64;
        Ok(ClassicalShape::from_parts(scheme, probes, bits, bits))
    }

    /// Returns the number of 64-bit words.
    pub fn words(self) -> u32 {
        (self.bits / 64) as u32
    }

    pub(super) fn header(self) -> Vec<u8> {
        if self.bits == 0 { Vec::new() } else { self.scheme.header(self.probes, self.words()) }
    }

    /// Returns the named values that must be equal to merge filters.
    pub(super) fn fields(self) -> [(&'static str, i64); 4] {
        let [first, second] = self.scheme.fields();
        [first, second, ("probes", self.probes.into()), ("words", self.words().into())]
    }
}

impl<S: Scheme> ClassicalShape<S> {
    /// Creates a shape whose probes use the first `used` bits: 1 to 2^63, or 0 without bits.
    pub(crate) fn from_parts(scheme: S, probes: u32, bits: u64, used: u64) -> Self {
        ClassicalShape { scheme, probes, bits, modulus: Modulus::new(used) }
    }

    /// Returns the scheme, which hashes keys and computes positions.
    pub fn scheme(self) -> S {
        self.scheme
    }

    /// Returns the number of bits per key; 0 if there are no bits and every key passes.
    #[inline]
    pub fn probes(self) -> u32 {
        self.probes
    }

    /// Returns the number of bits of the filter. Probes use all of them, except in old links of
    /// RedisBloom: there they use the first ones, up to a power of two stored in the link.
    #[inline]
    pub fn bits(self) -> u64 {
        self.bits
    }

    #[inline]
    pub(super) fn used_bits(self) -> u64 {
        self.modulus.divisor()
    }

    /// Returns the number of bytes before the bits.
    #[inline]
    pub(super) fn start(self) -> usize {
        if self.bits == 0 { 0 } else { self.scheme.header_bytes() }
    }

    /// Returns the size of a stored filter of this shape: header and bits, at most 16 GiB. Links of
    /// RedisBloom have no header and no such limit.
    #[inline]
    pub fn stored_bytes(self) -> u64 {
        self.start() as u64 + self.bits / 8
    }

    /// Returns the false-positive rate with this many distinct keys, 0 to 1: `(1 - e^(-k n / m))^k`
    /// for `k` probes, `n` keys and `m` bits (Bloom 1970, with the usual approximation). The actual
    /// rate is higher in filters of a few words, and in Spark's version 1 with many millions of
    /// keys, because its positions come from 32 bits.
    pub fn false_positive_rate(self, keys: u64) -> f64 {
        let set = f64::from(self.probes) * keys as f64;
        let fill = -libm::expm1(-set / self.used_bits() as f64);
        libm::pow(fill, self.probes.into())
    }

    /// Returns the position of a number of a walk: bit `position % 8` of byte `position / 8`.
    #[inline]
    pub(super) fn position(self, number: u64) -> u64 {
        self.modulus.remainder(self.scheme.dividend(number)) ^ self.scheme.byte_flip()
    }
}

impl<S: Debug> Debug for ClassicalShape<S> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassicalShape")
            .field("scheme", &self.scheme)
            .field("probes", &self.probes)
            .field("bits", &self.bits)
            .finish()
    }
}
