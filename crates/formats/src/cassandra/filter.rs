//! An owned `Filter.db` that keys are added to. Its bytes are always those of the file: header first, bits in the layout's order.

use alloc::vec::Vec;

use super::error::CassandraError;
use super::hash::{Hash128, hash_key};
use super::layout::Layout;
use super::limits::HEADER_BYTES;
use super::probe::Probes;
use super::shape::Shape;
use super::view::CassandraFilterRef;
use crate::classical;

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
    probes: Option<Probes>,
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
            None => Ok(CassandraFilter { layout, probes: None, bytes: Vec::new() }),
        }
    }

    /// An empty filter of this shape.
    ///
    /// # Errors
    ///
    /// [`CassandraError::Alloc`] if the memory, up to 16 GiB, cannot be had.
    pub fn with_shape(layout: Layout, shape: Shape) -> Result<Self, CassandraError> {
        let [k, words] = [shape.hash_count(), shape.words()].map(u32::to_be_bytes);
        let bytes = classical::zeroed(&[k, words].concat(), shape.bits() / 8)?;
        Ok(CassandraFilter { layout, probes: Some(Probes::new(layout, shape)), bytes })
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
        match self.probes {
            Some(probes) => classical::insert(&mut self.bytes[HEADER_BYTES..], probes, hash),
            None => false,
        }
    }

    /// Adds the keys with these hashes.
    ///
    /// Cost: cache lines of later keys are prefetched while bits are set. In a filter of 100 MB that takes about a third of the
    /// time of single insertions: hash some thousand keys, then add them.
    pub fn insert_hashes(&mut self, hashes: &[Hash128]) {
        if let Some(probes) = self.probes {
            classical::insert_all(&mut self.bytes[HEADER_BYTES..], probes, hashes);
        }
    }

    /// The filter, borrowed: every query and the statistics.
    pub fn view(&self) -> CassandraFilterRef<'_> {
        CassandraFilterRef::of_parts(&self.bytes, self.layout, self.probes)
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
            .field("shape", &self.probes.map(Probes::shape))
            .finish()
    }
}
