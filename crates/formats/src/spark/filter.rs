//! A filter of Spark's in memory of its own, to be filled. The bytes are the stored ones at every moment.

use alloc::vec::Vec;

use super::hash::SparkHash;
use super::shape::{Probes, Shape, Version};
use super::view::SparkFilterRef;
use crate::ClassicalError;
use crate::classical;

/// A filter to which keys are added. Its bytes are those that Spark writes after the same insertions; the order of keys and repeated keys
/// make no difference. Queries are methods of [`view`](Self::view).
///
/// ```
/// use blocked_bloom_formats::spark::{SparkFilter, Version};
/// // BloomFilter.create(1000, 0.01) of Spark 4.1
/// let mut filter = SparkFilter::new(Version::V2 { seed: 0 }, 1_000, 0.01)?;
/// assert!(filter.insert_long(7) && filter.insert("seven"));
/// assert!(filter.view().contains_long(7) && !filter.view().contains_long(8));
/// assert_eq!(filter.into_bytes().len(), 16 + 150 * 8);
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SparkFilter {
    probes: Probes,
    bytes: Vec<u8>,
}

impl SparkFilter {
    /// An empty filter, sized as `BloomFilter.create` sizes it: see [`Shape::for_items`].
    ///
    /// # Errors
    ///
    /// Those of [`Shape::for_items`], and [`ClassicalError::Alloc`] if the memory cannot be had.
    pub fn new(version: Version, items: u64, fpp: f64) -> Result<Self, ClassicalError> {
        Self::with_shape(Shape::for_items(version, items, fpp)?)
    }

    /// An empty filter of this shape.
    ///
    /// # Errors
    ///
    /// [`ClassicalError::Alloc`] if the memory, up to 16 GiB, cannot be had.
    pub fn with_shape(shape: Shape) -> Result<Self, ClassicalError> {
        let [version, k, words] = [shape.version().number(), shape.hash_functions(), shape.words()];
        let header = match shape.version() {
            Version::V1 => [version, k, words].map(u32::to_be_bytes).concat(),
            Version::V2 { seed } => {
                [version, k, seed.cast_unsigned(), words].map(u32::to_be_bytes).concat()
            }
        };
        let bytes = classical::zeroed(&header, shape.bits() / 8)?;
        Ok(SparkFilter { probes: Probes::new(shape), bytes })
    }

    fn version(&self) -> Version {
        self.probes.shape().version()
    }

    fn words(&mut self) -> &mut [u8] {
        let start = self.version().header_bytes();
        &mut self.bytes[start..]
    }

    /// Adds bytes, as `putBinary` does, and `putString` the UTF-8 of text. Returns true if they were certainly not there before.
    ///
    /// Cost: two hashes and a cache line per hash function.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> bool {
        self.insert_hash(self.version().hash_bytes(key))
    }

    /// Adds a number, as `putLong` does. Returns true if it was certainly not there before.
    pub fn insert_long(&mut self, key: i64) -> bool {
        self.insert_hash(self.version().hash_long(key))
    }

    /// Adds the key with this hash, which must be of the filter's [`Version`]. Returns true if it was certainly not there before.
    pub fn insert_hash(&mut self, hash: SparkHash) -> bool {
        let probes = self.probes;
        classical::insert(self.words(), probes, hash)
    }

    /// Adds the keys with these hashes. Cost: cache lines of later keys are prefetched while bits are set.
    pub fn insert_hashes(&mut self, hashes: &[SparkHash]) {
        let probes = self.probes;
        classical::insert_all(self.words(), probes, hashes);
    }

    /// Adds every key of another filter of the same shape, Spark's `mergeInPlace`.
    ///
    /// # Errors
    ///
    /// [`ClassicalError::Mismatch`] if the version, the seed, the hash functions or the words differ. The filter is then unchanged.
    ///
    /// ```
    /// use blocked_bloom_formats::spark::{SparkFilter, Version};
    /// let mut parts = [1, 2].map(|_| SparkFilter::new(Version::V1, 100, 0.01).expect("a legal size"));
    /// parts[0].insert_long(1);
    /// parts[1].insert_long(2);
    /// let [mut filter, other] = parts;
    /// filter.union_with(other.view())?;
    /// assert!(filter.view().contains_long(1) && filter.view().contains_long(2));
    /// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
    /// ```
    pub fn union_with(&mut self, other: SparkFilterRef<'_>) -> Result<(), ClassicalError> {
        let numbers = |shape: Shape| {
            [
                ("version", shape.version().number().into()),
                ("seed", shape.version().seed().into()),
                ("hash functions", shape.hash_functions().into()),
                ("words", shape.words().into()),
            ]
        };
        let own = numbers(self.probes.shape());
        for ((field, expected), (_, found)) in own.into_iter().zip(numbers(other.shape())) {
            if found != expected {
                return Err(ClassicalError::Mismatch { field, found, expected });
            }
        }
        classical::merge(self.words(), other.words());
        Ok(())
    }

    /// The filter, borrowed: every query and the statistics.
    pub fn view(&self) -> SparkFilterRef<'_> {
        SparkFilterRef::of_words(&self.bytes[self.version().header_bytes()..], self.probes)
    }

    /// What `writeTo` writes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What `writeTo` writes, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Adds bytes, as [`SparkFilter::insert`] does.
impl<K: AsRef<[u8]>> Extend<K> for SparkFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| _ = self.insert(key));
    }
}

impl SparkFilterRef<'_> {
    /// A copy that owns its words and can be added to, merged into and written.
    ///
    /// # Errors
    ///
    /// [`ClassicalError::Alloc`] if the memory cannot be had.
    pub fn to_filter(&self) -> Result<SparkFilter, ClassicalError> {
        let mut copy = SparkFilter::with_shape(self.shape())?;
        copy.words().copy_from_slice(self.words());
        Ok(copy)
    }
}

/// The shape, without the bits.
impl core::fmt::Debug for SparkFilter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SparkFilter").field("shape", &self.probes.shape()).finish()
    }
}
