//! The header of a `Filter.db`, and creating, filling and opening one.

use alloc::vec::Vec;

use super::hash::{Hash128, hash_key};
use super::layout::Layout;
use super::sizing::Shape;
use crate::classical::{Fields, Scheme, Walk, Words};
use crate::{ClassicalError, ClassicalFilter};

/// A `Filter.db`, generic over the owner of its bytes. The bytes equal those that Cassandra writes
/// for the same keys, expected number of partitions and `bloom_filter_fp_chance`. Its scheme is the
/// [`Layout`], which the caller must pass, since the bytes do not contain it.
///
/// A key is the partition key as Cassandra serializes it: see
/// [`composite_key`](super::composite_key). An empty file is a filter that answers "maybe" to every
/// key. Cassandra reads it that way, and writes it for a chance of 1. Cassandra's `Digest` file
/// covers the data, not the filter.
///
/// ```
/// use blocked_bloom_formats::cassandra::{CassandraFilter, Layout, Shape};
/// let shape = Shape::for_partitions(Layout::Cassandra4, 100, 0.01)?;
/// let mut filter = CassandraFilter::with_shape(shape)?;
/// filter.insert("apple");
/// assert!(CassandraFilter::from_bytes(filter.as_bytes(), Layout::Cassandra4)?.contains("apple"));
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
pub type CassandraFilter<D = Vec<u8>> = ClassicalFilter<Layout, D>;

impl Scheme for Layout {
    type Hash = Hash128;

    #[inline]
    fn header_bytes(self) -> usize {
        8
    }

    #[inline]
    fn hash_key(self, key: &[u8]) -> Hash128 {
        hash_key(key)
    }

    /// Cassandra 3.0 swapped the halves of the hash: the first number and the step.
    #[inline]
    fn walk(self, Hash128 { h1, h2 }: Hash128) -> Walk {
        match self {
            Layout::Cassandra2 => Walk { next: h1, step: h2 },
            Layout::Cassandra3 | Layout::Cassandra4 => Walk { next: h2, step: h1 },
        }
    }

    /// The position is the magnitude of Java's remainder, which has the sign of the dividend. The
    /// magnitude of the smallest number is 2^63.
    #[inline]
    fn dividend(self, number: u64) -> u64 {
        number.cast_signed().unsigned_abs()
    }

    #[inline]
    fn byte_flip(self) -> u64 {
        match self {
            Layout::Cassandra2 | Layout::Cassandra3 => 56,
            Layout::Cassandra4 => 0,
        }
    }
}

impl Words for Layout {
    /// The length of the array into which Cassandra computes a key's positions.
    const MAX_PROBES: u32 = 21;

    fn header(self, probes: u32, words: u32) -> Vec<u8> {
        [probes, words].map(u32::to_be_bytes).concat()
    }

    fn fields(self) -> [(&'static str, i64); 2] {
        [("layout", self as i64), ("seed", 0)]
    }
}

impl CassandraFilter {
    /// Creates an empty filter, sized as in Cassandra for an estimated number of partitions and the
    /// table's `bloom_filter_fp_chance`: see [`Shape::for_partitions`].
    ///
    /// # Errors
    ///
    /// The errors of [`Shape::for_partitions`], and [`ClassicalError::Alloc`].
    ///
    /// ```
    /// use blocked_bloom_formats::cassandra::{CassandraFilter, Layout};
    /// let mut filter = CassandraFilter::new(Layout::Cassandra4, 1_000, 0.01)?;
    /// for key in 0..1_000_i32 {
    ///     filter.insert(key.to_be_bytes());
    /// }
    /// let file = filter.into_inner();
    /// assert_eq!(file.len(), 8 + 157 * 8);
    /// let filter = CassandraFilter::from_bytes(&file, Layout::Cassandra4)?;
    /// assert!(filter.contains(999_i32.to_be_bytes()));
    /// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
    /// ```
    pub fn new(layout: Layout, partitions: u64, fp_chance: f64) -> Result<Self, ClassicalError> {
        Self::with_shape(Shape::for_partitions(layout, partitions, fp_chance)?)
    }
}

impl<D: AsRef<[u8]>> CassandraFilter<D> {
    /// Opens the bytes of a `Filter.db`. Cost: reads the header.
    ///
    /// # Errors
    ///
    /// [`ClassicalError::Truncated`] for 1 to 7 bytes; [`ClassicalError::OutOfRange`] unless there
    /// are 1 to 21 probes and 1 to 2^31 - 1 words; [`ClassicalError::Length`] if the number of
    /// words differs from the header or other bytes follow. Rejected bytes must not be used to
    /// answer "absent".
    ///
    /// ```
    /// use blocked_bloom_formats::cassandra::{CassandraFilter, Layout};
    /// # let bytes = include_bytes!(concat!(
    /// #     env!("CARGO_MANIFEST_DIR"),
    /// #     "/tests/fixtures/cassandra/nb-1-big-Filter.db"
    /// # ));
    /// let layout = Layout::from_file_name("nb-1-big-Filter.db")?;
    /// let filter = CassandraFilter::from_bytes(bytes, layout)?;
    /// assert!(filter.contains("apple") && !filter.contains("granite"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes(bytes: D, layout: Layout) -> Result<Self, ClassicalError> {
        let header = Fields(bytes.as_ref());
        let shape = match header.is_empty() {
            true => Shape::from_parts(layout, 0, 0, 0),
            false => Shape::checked(layout, header.number(0)?, header.number(4)?)?,
        };
        Self::open(shape, bytes)
    }
}
