//! A borrowed filter of Spark's: validation, queries one by one and in batches, statistics.

use blocked_bloom::Bitmask;

use super::hash::SparkHash;
use super::shape::{Probes, Shape, Version};
use crate::ClassicalError;
use crate::classical::{BitArray, Number};

/// What `BloomFilter.writeTo` wrote, borrowed from wherever its bytes are.
///
/// `Copy`. Opening it costs nothing that depends on its size.
///
/// ```
/// use blocked_bloom_formats::spark::{SparkFilterRef, Version};
/// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/spark/spark_V2_n5000_fpp0.001.bin"));
/// let filter = SparkFilterRef::from_bytes(bytes)?;
/// assert_eq!(filter.shape().version(), Version::V2 { seed: 12345 });
/// assert!(filter.contains("k0") && filter.contains_long(1_234_567_891_006));
/// assert!(!filter.contains("durian"));
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SparkFilterRef<'a> {
    bits: BitArray<'a, Probes>,
}

impl<'a> SparkFilterRef<'a> {
    /// Opens the bytes of one filter, and nothing after it.
    ///
    /// # Errors
    ///
    /// [`ClassicalError::Truncated`] for fewer bytes than a header; [`ClassicalError::OutOfRange`] unless the version is 1 or 2, there are 1
    /// to 1,074 hash functions (Spark has no limit), and 1 to 2^31 - 1 words; [`ClassicalError::Length`] unless the words are as many as the
    /// header says and nothing follows. Bytes that fail must not be used to answer "absent".
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, ClassicalError> {
        let found = bytes.len() as u64;
        let number = |index: usize| match bytes.as_chunks().0.get(index) {
            Some(&number) => Ok(Number::stored(index as u64 * 4, i32::from_be_bytes(number))),
            None => Err(ClassicalError::Truncated { offset: found }),
        };
        let version = match number(0)?.within("version", 1, 2)? {
            1 => Version::V1,
            _ => Version::V2 { seed: number(2)?.value() as i32 },
        };
        let start = version.header_bytes();
        let shape = Shape::checked(version, number(1)?, number(start / 4 - 1)?)?;
        if found != shape.stored_bytes() {
            return Err(ClassicalError::Length { found, expected: shape.stored_bytes() });
        }
        Ok(Self::of_words(&bytes[start..], Probes::new(shape)))
    }

    /// As many words as the shape has.
    pub(super) fn of_words(words: &'a [u8], probes: Probes) -> Self {
        SparkFilterRef { bits: BitArray::new(words, probes) }
    }

    #[inline]
    fn version(&self) -> Version {
        self.shape().version()
    }

    /// Whether these bytes may have been added by `putBinary`, or as the UTF-8 of text by `putString`: false means certainly not.
    ///
    /// Cost: two hashes, and a cache line per hash function up to the first zero bit: two on average for an absent key, all of them for
    /// a present one.
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.contains_hash(self.version().hash_bytes(key))
    }

    /// Whether this number may have been added by `putLong`, or a smaller integral type's: false means certainly not.
    #[inline]
    pub fn contains_long(&self, key: i64) -> bool {
        self.contains_hash(self.version().hash_long(key))
    }

    /// Whether the key with this hash, of the filter's [`Version`], may have been added.
    #[inline]
    pub fn contains_hash(&self, hash: SparkHash) -> bool {
        self.bits.contains(hash)
    }

    /// Looks up keys of bytes; `hits` then has one bit per key. Batches may have any length. If a key panics when it is read, the mask is
    /// empty.
    ///
    /// Cost: the hashes of each key, and in filters that outgrow the cache the cache lines of its probes, which are prefetched while other
    /// keys are tested (`cargo bench --bench classical`).
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], hits: &mut Bitmask) {
        let hashes = keys.iter().map(|key| self.version().hash_bytes(key));
        hits.write(keys.len(), |words| self.bits.contains_all(hashes, words));
    }

    /// Looks up numbers, as [`contains_batch`](Self::contains_batch) does bytes.
    pub fn contains_longs(&self, keys: &[i64], hits: &mut Bitmask) {
        let hashes = keys.iter().map(|&key| self.version().hash_long(key));
        hits.write(keys.len(), |words| self.bits.contains_all(hashes, words));
    }

    /// Looks up hashes of the filter's [`Version`]: how one batch of keys is looked up in many filters.
    pub fn contains_hashes(&self, hashes: &[SparkHash], hits: &mut Bitmask) {
        hits.write(hashes.len(), |words| self.bits.contains_all(hashes.iter().copied(), words));
    }

    /// Version, hash functions and words.
    pub fn shape(&self) -> Shape {
        self.bits.scheme().shape()
    }

    /// The words: 8 bytes each, big-endian.
    pub fn words(&self) -> &'a [u8] {
        self.bits.bytes()
    }

    /// Fraction of bits that are set, 0 to 1: Spark's `cardinality` by `bitSize`. Cost: reads every byte.
    pub fn fill_ratio(&self) -> f64 {
        self.bits.fill_ratio()
    }

    /// Estimate of the distinct keys in the filter, from its bits: `-(m / k) ln(1 - fill)` for `k` hash functions and `m` bits. None if
    /// no bit is zero: then only "many" is known.
    ///
    /// Cost: reads every byte.
    pub fn estimated_keys(&self) -> Option<u64> {
        self.bits.estimated_keys()
    }

    /// False-positive rate that the filter really has, Spark's `expectedFpp`: `fill^k` for `k` hash functions.
    ///
    /// Cost: reads every byte.
    pub fn estimated_false_positive_rate(&self) -> f64 {
        self.bits.estimated_false_positive_rate()
    }
}

/// The shape, without the bits.
impl core::fmt::Debug for SparkFilterRef<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SparkFilterRef").field("shape", &self.shape()).finish()
    }
}
