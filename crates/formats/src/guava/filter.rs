//! A filter of Guava's in memory of its own, to be filled. The bytes are the stored ones at every moment.

use alloc::vec::Vec;

use super::hash::{GuavaHash, hash_key};
use super::shape::{HEADER_BYTES, Probes, Shape};
use super::view::GuavaFilterRef;
use crate::ClassicalError;
use crate::classical;

/// A filter to which keys are added. Its bytes are those that Guava writes after the same insertions; the order of keys and repeated keys
/// make no difference. Queries are methods of [`view`](Self::view).
///
/// ```
/// use blocked_bloom_formats::guava::GuavaFilter;
/// // BloomFilter.create(Funnels.longFunnel(), 1000, 0.01)
/// let mut filter = GuavaFilter::new(1_000, 0.01)?;
/// for id in 0..1_000_i64 {
///     filter.insert(id.to_le_bytes());
/// }
/// assert!(filter.view().contains(999_i64.to_le_bytes()));
/// assert_eq!(filter.into_bytes()[..6], [1, 7, 0, 0, 0, 150]);
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct GuavaFilter {
    probes: Probes,
    bytes: Vec<u8>,
}

impl GuavaFilter {
    /// An empty filter, sized as `BloomFilter.create` sizes it: see [`Shape::for_insertions`].
    ///
    /// # Errors
    ///
    /// Those of [`Shape::for_insertions`], and [`ClassicalError::Alloc`] if the memory cannot be had.
    pub fn new(insertions: u64, fpp: f64) -> Result<Self, ClassicalError> {
        Self::with_shape(Shape::for_insertions(insertions, fpp)?)
    }

    /// An empty filter of this shape.
    ///
    /// # Errors
    ///
    /// [`ClassicalError::Alloc`] if the memory, up to 16 GiB, cannot be had.
    pub fn with_shape(shape: Shape) -> Result<Self, ClassicalError> {
        let bytes = classical::zeroed(&shape.header(), shape.bits() / 8)?;
        Ok(GuavaFilter { probes: Probes::new(shape), bytes })
    }

    fn words(&mut self) -> &mut [u8] {
        &mut self.bytes[HEADER_BYTES..]
    }

    /// Adds a key: the bytes that the program's `Funnel` makes of it. Returns true if it was certainly not there before.
    ///
    /// Cost: one hash and a cache line per hash function.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> bool {
        self.insert_hash(hash_key(key))
    }

    /// Adds the key with this hash. Returns true if it was certainly not there before.
    pub fn insert_hash(&mut self, hash: GuavaHash) -> bool {
        let probes = self.probes;
        classical::insert(self.words(), probes, hash)
    }

    /// Adds the keys with these hashes. Cost: cache lines of later keys are prefetched while bits are set.
    pub fn insert_hashes(&mut self, hashes: &[GuavaHash]) {
        let probes = self.probes;
        classical::insert_all(self.words(), probes, hashes);
    }

    /// Adds every key of another filter of the same shape, Guava's `putAll`. That both programs have the same `Funnel` is for the caller
    /// to know.
    ///
    /// # Errors
    ///
    /// [`ClassicalError::Mismatch`] if the strategy, the hash functions or the words differ. The filter is then unchanged.
    ///
    /// ```
    /// use blocked_bloom_formats::guava::GuavaFilter;
    /// let mut filters = [GuavaFilter::new(100, 0.01)?, GuavaFilter::new(100, 0.01)?];
    /// filters[0].insert("apple");
    /// filters[1].insert("banana");
    /// let [mut filter, other] = filters;
    /// filter.union_with(other.view())?;
    /// assert!(filter.view().contains("apple") && filter.view().contains("banana"));
    /// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
    /// ```
    pub fn union_with(&mut self, other: GuavaFilterRef<'_>) -> Result<(), ClassicalError> {
        let numbers = |shape: Shape| {
            [
                ("strategy", shape.strategy() as i64),
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
    pub fn view(&self) -> GuavaFilterRef<'_> {
        GuavaFilterRef::of_words(&self.bytes[HEADER_BYTES..], self.probes)
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

impl<K: AsRef<[u8]>> Extend<K> for GuavaFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| _ = self.insert(key));
    }
}

impl GuavaFilterRef<'_> {
    /// A copy that owns its words and can be added to, merged into and written.
    ///
    /// # Errors
    ///
    /// [`ClassicalError::Alloc`] if the memory cannot be had.
    pub fn to_filter(&self) -> Result<GuavaFilter, ClassicalError> {
        let mut copy = GuavaFilter::with_shape(self.shape())?;
        copy.words().copy_from_slice(self.words());
        Ok(copy)
    }
}

/// The shape, without the bits.
impl core::fmt::Debug for GuavaFilter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("GuavaFilter").field("shape", &self.probes.shape()).finish()
    }
}
