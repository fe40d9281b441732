//! Writing a `Filter.db`.
//!
//! This file owns the bytes while keys are added. They are the file's at every moment: header first, bits in the layout's order.

use alloc::vec::Vec;

use super::filter::{FITS_BYTES, byte_index};
use super::law::{Walk, Words};
use super::{CassandraError, CassandraFilter, HEADER_BYTES, Hash128, Layout, Shape, murmur3};
use crate::error::AllocError;
use crate::kernel;

/// Keys between the request of their lines and the setting of their bits.
const AHEAD: usize = 16;

/// Collects partition keys into the bytes of a `Filter.db`, the same that Cassandra writes for the same keys, number of partitions
/// and chance. The order of keys and repeated keys make no difference.
///
/// The layout is chosen first, because the bits of a key depend on it.
///
/// ```
/// use blocked_bloom::interop::cassandra::{CassandraFilter, CassandraFilterBuilder, Layout};
/// let mut builder = CassandraFilterBuilder::new(Layout::Since4, 1_000, 0.01)?;
/// for key in 0..1_000_i32 {
///     builder.insert(key.to_be_bytes());
/// }
/// let file = builder.finish();
/// assert_eq!(file.len(), 8 + 157 * 8);
/// let filter = CassandraFilter::from_bytes(&file, Layout::Since4)?;
/// assert!(filter.contains(999_i32.to_be_bytes()));
/// # Ok::<(), blocked_bloom::interop::cassandra::CassandraError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct CassandraFilterBuilder {
    layout: Layout,
    /// None if every key is present: then there are no bytes.
    shape: Option<(Shape, Words)>,
    bytes: Vec<u8>,
}

impl CassandraFilterBuilder {
    /// An empty filter, sized as Cassandra sizes it for an estimated number of partitions and the table's
    /// `bloom_filter_fp_chance`: see [`Shape::for_partitions`].
    ///
    /// At a chance of 1 there is no filter: [`finish`](Self::finish) then gives no bytes, which as a file answer "maybe" to every
    /// key.
    ///
    /// # Errors
    ///
    /// Those of [`Shape::for_partitions`], and [`CassandraError::Alloc`] if the memory cannot be had.
    ///
    /// ```
    /// use blocked_bloom::interop::cassandra::{CassandraFilterBuilder, Layout};
    /// let builder = CassandraFilterBuilder::new(Layout::Since4, 100, 0.01)?;
    /// assert_eq!(builder.view().shape().unwrap().words(), 16);
    /// # Ok::<(), blocked_bloom::interop::cassandra::CassandraError>(())
    /// ```
    pub fn new(layout: Layout, partitions: u64, fp_chance: f64) -> Result<Self, CassandraError> {
        match Shape::for_partitions(partitions, fp_chance)? {
            Some(shape) => Self::with_shape(layout, shape),
            None => Ok(CassandraFilterBuilder { layout, shape: None, bytes: Vec::new() }),
        }
    }

    /// An empty filter of this shape.
    ///
    /// # Errors
    ///
    /// [`CassandraError::Alloc`] if the memory, up to 16 GiB, cannot be had.
    ///
    /// ```
    /// use blocked_bloom::interop::cassandra::{CassandraFilterBuilder, Layout, Shape};
    /// let file = CassandraFilterBuilder::with_shape(Layout::Since4, Shape::new(5, 1)?)?.finish();
    /// assert_eq!(file, [0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    /// # Ok::<(), blocked_bloom::interop::cassandra::CassandraError>(())
    /// ```
    pub fn with_shape(layout: Layout, shape: Shape) -> Result<Self, CassandraError> {
        let error = AllocError { bytes: shape.stored_bytes() };
        let length = usize::try_from(shape.stored_bytes()).map_err(|_| error)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| error)?;
        bytes.extend_from_slice(&shape.hash_count().to_be_bytes());
        bytes.extend_from_slice(&shape.words().to_be_bytes());
        bytes.resize(length, 0);
        Ok(CassandraFilterBuilder {
            layout,
            shape: Some((shape, Words::new(shape.words()))),
            bytes,
        })
    }

    /// Adds a partition key as Cassandra serializes it: see [`composite_key`](super::composite_key). Returns true if it was
    /// certainly not there before; never where there is no filter.
    ///
    /// Cost: one hash and a cache line per probe.
    ///
    /// ```
    /// # use blocked_bloom::interop::cassandra::{CassandraFilterBuilder, Layout};
    /// let mut builder = CassandraFilterBuilder::new(Layout::Since4, 100, 0.01)?;
    /// assert!(builder.insert("apple"));
    /// assert!(!builder.insert("apple"));
    /// assert!(builder.view().contains("apple"));
    /// # Ok::<(), blocked_bloom::interop::cassandra::CassandraError>(())
    /// ```
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> bool {
        self.insert_hash(murmur3(key))
    }

    /// Adds the key with this hash. Returns true if it was certainly not there before.
    ///
    /// ```
    /// # use blocked_bloom::interop::cassandra::{CassandraFilterBuilder, Layout, murmur3};
    /// let mut builder = CassandraFilterBuilder::new(Layout::Since4, 100, 0.01)?;
    /// builder.insert_hash(murmur3("apple"));
    /// assert!(builder.view().contains("apple"));
    /// # Ok::<(), blocked_bloom::interop::cassandra::CassandraError>(())
    /// ```
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
    /// Cost: lines of later keys are requested while bits are set. In a filter of 100 MB that takes about a third of the time
    /// that keys take one by one: hash some thousand keys, then add them.
    ///
    /// ```
    /// # use blocked_bloom::interop::cassandra::{CassandraFilterBuilder, Layout, murmur3};
    /// let mut builder = CassandraFilterBuilder::new(Layout::Since4, 100, 0.01)?;
    /// builder.insert_hashes(&["apple", "banana"].map(murmur3));
    /// assert!(builder.view().contains("banana"));
    /// # Ok::<(), blocked_bloom::interop::cassandra::CassandraError>(())
    /// ```
    pub fn insert_hashes(&mut self, hashes: &[Hash128]) {
        if self.bytes.len() <= FITS_BYTES {
            return hashes.iter().for_each(|&hash| _ = self.insert_hash(hash));
        }
        let (first, _) = hashes.split_at(AHEAD.min(hashes.len()));
        first.iter().for_each(|&hash| self.request(hash));
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&later) = hashes.get(i + AHEAD) {
                self.request(later);
            }
            self.insert_hash(hash);
        }
    }

    /// Requests the lines of a key's bits.
    fn request(&self, hash: Hash128) {
        for position in self.positions(hash) {
            kernel::request(&self.bytes, HEADER_BYTES + byte_index(position, self.layout));
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

    /// The filter so far, to be asked.
    ///
    /// ```
    /// # use blocked_bloom::interop::cassandra::{CassandraFilterBuilder, Layout};
    /// let builder = CassandraFilterBuilder::new(Layout::Since4, 100, 0.01)?;
    /// assert_eq!(builder.view().fill_ratio(), 0.0);
    /// # Ok::<(), blocked_bloom::interop::cassandra::CassandraError>(())
    /// ```
    pub fn view(&self) -> CassandraFilter<'_> {
        CassandraFilter::of_builder(&self.bytes, self.layout, self.shape)
    }

    /// The bytes of the file.
    ///
    /// ```
    /// # use blocked_bloom::interop::cassandra::{CassandraFilterBuilder, Layout};
    /// let no_filter = CassandraFilterBuilder::new(Layout::Since4, 100, 1.0)?;
    /// assert!(no_filter.finish().is_empty());
    /// # Ok::<(), blocked_bloom::interop::cassandra::CassandraError>(())
    /// ```
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

impl<K: AsRef<[u8]>> Extend<K> for CassandraFilterBuilder {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| _ = self.insert(key));
    }
}

/// The layout and the shape, without the bits.
impl core::fmt::Debug for CassandraFilterBuilder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("CassandraFilterBuilder")
            .field("layout", &self.layout)
            .field("shape", &self.shape.map(|(shape, _)| shape))
            .finish()
    }
}
