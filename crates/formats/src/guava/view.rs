//! A borrowed filter of Guava's: validation, queries one by one and in batches, statistics.

use blocked_bloom::Bitmask;

use super::hash::{GuavaHash, hash_key};
use super::shape::{HEADER_BYTES, Probes, Shape, strategy};
use crate::ClassicalError;
use crate::classical::{BitArray, Number};

/// What `BloomFilter.writeTo` wrote, borrowed from wherever its bytes are.
///
/// `Copy`. Opening it costs nothing that depends on its size. Keys are the bytes that the program's `Funnel` makes of them: see the
/// [module](super).
///
/// ```
/// use blocked_bloom_formats::guava::GuavaFilterRef;
/// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/guava/guava_mitz64_n1000_fpp0.03.bin"));
/// let filter = GuavaFilterRef::from_bytes(bytes)?;
/// assert!(filter.contains("k0") && !filter.contains("durian"));
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct GuavaFilterRef<'a> {
    bits: BitArray<'a, Probes>,
}

impl<'a> GuavaFilterRef<'a> {
    /// Opens the bytes of one filter, and nothing after it.
    ///
    /// # Errors
    ///
    /// [`ClassicalError::Truncated`] for fewer bytes than a header; [`ClassicalError::OutOfRange`] unless the strategy is 0 or 1, there are 1
    /// to 255 hash functions, and 1 to 2^31 - 1 words; [`ClassicalError::Length`] unless the words are as many as the header says and
    /// nothing follows. Bytes that fail must not be used to answer "absent".
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, ClassicalError> {
        let found = bytes.len() as u64;
        let Some((&[kind, k, w0, w1, w2, w3], words)) = bytes.split_first_chunk::<HEADER_BYTES>()
        else {
            return Err(ClassicalError::Truncated { offset: found });
        };
        let count = i32::from_be_bytes([w0, w1, w2, w3]);
        let [k, count] = [Number::stored(1, k), Number::stored(2, count)];
        let shape = Shape::checked(strategy(kind)?, k, count)?;
        if found != shape.stored_bytes() {
            return Err(ClassicalError::Length { found, expected: shape.stored_bytes() });
        }
        Ok(Self::of_words(words, Probes::new(shape)))
    }

    /// As many words as the shape has.
    pub(super) fn of_words(words: &'a [u8], probes: Probes) -> Self {
        GuavaFilterRef { bits: BitArray::new(words, probes) }
    }

    /// Whether the key may be present: false means certainly absent.
    ///
    /// Cost: one hash, and a cache line per hash function up to the first zero bit: two on average for an absent key, all of them for
    /// a present one.
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.contains_hash(hash_key(key))
    }

    /// Whether the key with this hash may be present.
    #[inline]
    pub fn contains_hash(&self, hash: GuavaHash) -> bool {
        self.bits.contains(hash)
    }

    /// Looks up every key; `hits` then has one bit per key. Batches may have any length. If a key panics when it is read, the mask is empty.
    ///
    /// Cost: the hash of each key, and in filters that outgrow the cache the cache lines of its probes, which are prefetched while other
    /// keys are tested (`cargo bench --bench classical`).
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], hits: &mut Bitmask) {
        hits.write(keys.len(), |words| self.bits.contains_all(keys.iter().map(hash_key), words));
    }

    /// Looks up every hash; `hits` then has one bit per hash: how one batch of keys is looked up in many filters.
    pub fn contains_hashes(&self, hashes: &[GuavaHash], hits: &mut Bitmask) {
        hits.write(hashes.len(), |words| self.bits.contains_all(hashes.iter().copied(), words));
    }

    /// Strategy, hash functions and words.
    pub fn shape(&self) -> Shape {
        self.bits.scheme().shape()
    }

    /// The words: 8 bytes each, big-endian.
    pub fn words(&self) -> &'a [u8] {
        self.bits.bytes()
    }

    /// Fraction of bits that are set, 0 to 1. Cost: reads every byte.
    pub fn fill_ratio(&self) -> f64 {
        self.bits.fill_ratio()
    }

    /// Estimate of the distinct keys in the filter, Guava's `approximateElementCount`: `-(m / k) ln(1 - fill)` for `k` hash functions
    /// and `m` bits. None if no bit is zero: then only "many" is known.
    ///
    /// Cost: reads every byte.
    pub fn estimated_keys(&self) -> Option<u64> {
        self.bits.estimated_keys()
    }

    /// False-positive rate that the filter really has, Guava's `expectedFpp`: `fill^k` for `k` hash functions.
    ///
    /// Cost: reads every byte.
    pub fn estimated_false_positive_rate(&self) -> f64 {
        self.bits.estimated_false_positive_rate()
    }
}

/// The shape, without the bits.
impl core::fmt::Debug for GuavaFilterRef<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("GuavaFilterRef").field("shape", &self.shape()).finish()
    }
}
