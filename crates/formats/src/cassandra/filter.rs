//! An owned `Filter.db` that keys are added to. Its bytes are always those of the file: header first, bits in the layout's order.

use alloc::vec::Vec;

use blocked_bloom::AllocError;

use super::error::CassandraError;
use super::hash::{Hash128, hash_key};
use super::layout::Layout;
use super::limits::HEADER_BYTES;
use super::probe::{Walk, Words};
use super::shape::Shape;
use super::stored::{PREFETCH_THRESHOLD, byte_index};
use super::view::CassandraFilterRef;

/// Prefetch distance, in keys.
const DISTANCE: usize = 16;

/// A filter to which partition keys are added. Its bytes are those that Cassandra writes for the same keys, expected number of partitions
/// and `bloom_filter_fp_chance`; the order of keys and repeated keys make no difference.
///
/// The layout is chosen first, because the bits of a key depend on it. Queries are methods of [`view`](Self::view).
///
/// ```
/// use blocked_bloom_formats::cassandra::{CassandraFilter, CassandraFilterRef, Layout};
/// let mut filter = CassandraFilter::new(Layout::Since4, 1_000, 0.01)?;
/// for key in 0..1_000_i32 {
///     filter.insert(key.to_be_bytes());
/// }
/// let file = filter.into_bytes();
/// assert_eq!(file.len(), 8 + 157 * 8);
/// let filter = CassandraFilterRef::from_bytes(&file, Layout::Since4)?;
/// assert!(filter.contains(999_i32.to_be_bytes()));
/// # Ok::<(), blocked_bloom_formats::cassandra::CassandraError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct CassandraFilter {
    layout: Layout,
    /// None if every key may be present: then there are no bytes.
    shape: Option<(Shape, Words)>,
    bytes: Vec<u8>,
}

impl CassandraFilter {
    /// An empty filter, sized as Cassandra sizes it for an estimated number of partitions and the table's
    /// `bloom_filter_fp_chance`: see [`Shape::for_partitions`].
    ///
    /// At a chance of 1 Cassandra writes no filter: then there are no bytes, and every key is "maybe".
    ///
    /// # Errors
    ///
    /// Those of [`Shape::for_partitions`], and [`CassandraError::Alloc`] if the memory cannot be had.
    pub fn new(layout: Layout, partitions: u64, fp_chance: f64) -> Result<Self, CassandraError> {
        match Shape::for_partitions(partitions, fp_chance)? {
            Some(shape) => Self::with_shape(layout, shape),
            None => Ok(CassandraFilter { layout, shape: None, bytes: Vec::new() }),
        }
    }

    /// An empty filter of this shape.
    ///
    /// # Errors
    ///
    /// [`CassandraError::Alloc`] if the memory, up to 16 GiB, cannot be had.
    pub fn with_shape(layout: Layout, shape: Shape) -> Result<Self, CassandraError> {
        let error = AllocError::new(shape.stored_bytes());
        let length = usize::try_from(shape.stored_bytes()).map_err(|_| error)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| error)?;
        bytes.extend_from_slice(&shape.hash_count().to_be_bytes());
        bytes.extend_from_slice(&shape.words().to_be_bytes());
        bytes.resize(length, 0);
        Ok(CassandraFilter { layout, shape: Some((shape, Words::new(shape.words()))), bytes })
    }

    /// Adds a partition key as Cassandra serializes it: see [`composite_key`](super::composite_key). Returns true if it was
    /// certainly not there before; never where there is no filter.
    ///
    /// Cost: one hash and a cache line per probe.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> bool {
        self.insert_hash(hash_key(key))
    }

    /// Adds the key with this hash. Returns true if it was certainly not there before.
    pub fn insert_hash(&mut self, hash: Hash128) -> bool {
        let layout = self.layout;
        let mut is_new = false;
        for position in self.positions(hash) {
            let byte = &mut self.bytes[HEADER_BYTES + byte_index(position, layout)];
            let bit = 1 << (position % 8);
            is_new |= *byte & bit == 0;
            *byte |= bit;
        }
        is_new
    }

    /// Adds the keys with these hashes.
    ///
    /// Cost: cache lines of later keys are prefetched while bits are set. In a filter of 100 MB that takes about a third of the
    /// time of single insertions: hash some thousand keys, then add them.
    pub fn insert_hashes(&mut self, hashes: &[Hash128]) {
        if self.bytes.len() <= PREFETCH_THRESHOLD {
            return hashes.iter().for_each(|&hash| _ = self.insert_hash(hash));
        }
        let (first, _) = hashes.split_at(DISTANCE.min(hashes.len()));
        first.iter().for_each(|&hash| self.prefetch(hash));
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&later) = hashes.get(i + DISTANCE) {
                self.prefetch(later);
            }
            self.insert_hash(hash);
        }
    }

    /// Prefetches the cache lines of a key's bits.
    fn prefetch(&self, hash: Hash128) {
        for position in self.positions(hash) {
            blocked_bloom::prefetch(&self.bytes, HEADER_BYTES + byte_index(position, self.layout));
        }
    }

    /// The positions of a key's bits; none where there is no filter.
    #[inline]
    fn positions(&self, hash: Hash128) -> impl Iterator<Item = u64> + use<> {
        let mut walk = Walk::of(hash, self.layout);
        let (probes, words) = match self.shape {
            Some((shape, words)) => (shape.hash_count(), words),
            None => (0, Words::new(1)),
        };
        (0..probes).map(move |_| words.position(walk.next()))
    }

    /// The filter, borrowed: every query and the statistics.
    pub fn view(&self) -> CassandraFilterRef<'_> {
        CassandraFilterRef::of_parts(&self.bytes, self.layout, self.shape)
    }

    /// The bytes of the file; none at a chance of 1.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of the file, without a copy; none at a chance of 1.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl<K: AsRef<[u8]>> Extend<K> for CassandraFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| _ = self.insert(key));
    }
}

/// The layout and the shape, without the bits.
impl core::fmt::Debug for CassandraFilter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("CassandraFilter")
            .field("layout", &self.layout)
            .field("shape", &self.shape.map(|(shape, _)| shape))
            .finish()
    }
}
