//! A borrowed `Filter.db`: validation, queries one by one and in batches, statistics. The layout is always the caller's choice.

use blocked_bloom::Bitmask;

use super::error::CassandraError;
use super::hash::{Hash128, hash_key};
use super::layout::Layout;
use super::limits::HEADER_BYTES;
use super::probe::Probes;
use super::shape::Shape;
use crate::classical::BitArray;
use crate::words::fill_with_maybe;

/// A `Filter.db` borrowed from wherever its bytes are: a mapped file, a block cache.
///
/// `Copy`. Opening it costs nothing that depends on its size. Cassandra stores no checksum: a flipped bit within the words cannot
/// be seen, and a bit that was cleared makes keys "absent" that are there. Its `Digest` file is about the data, not the filter:
/// where files travel, keep a checksum of your own.
///
/// ```
/// use blocked_bloom_formats::cassandra::{CassandraFilterRef, Layout};
/// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/cassandra/nb-1-big-Filter.db"));
/// let filter = CassandraFilterRef::from_bytes(bytes, Layout::of_version("nb")?)?;
/// assert!(filter.contains("apple"));
/// assert!(!filter.contains("granite"));
/// # Ok::<(), blocked_bloom_formats::cassandra::CassandraError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CassandraFilterRef<'a> {
    layout: Layout,
    /// None if every key may be present.
    bits: Option<BitArray<'a, Probes>>,
}

impl<'a> CassandraFilterRef<'a> {
    /// Opens the bytes of a `Filter.db`.
    ///
    /// A file of no bytes is a filter that answers "maybe" to every key: Cassandra reads it so.
    ///
    /// # Errors
    ///
    /// [`CassandraError::TooShort`] for 1 to 7 bytes; [`CassandraError::HashCount`] unless there are 1 to 21 probes;
    /// [`CassandraError::WordCount`] unless there are 1 to 2^31 - 1 words; [`CassandraError::Length`] unless the words are as many
    /// as the header says and nothing follows. Bytes that fail must not be used to answer "absent".
    pub fn from_bytes(bytes: &'a [u8], layout: Layout) -> Result<Self, CassandraError> {
        if bytes.is_empty() {
            return Ok(Self::of_parts(bytes, layout, None));
        }
        let found = bytes.len() as u64;
        let Some((header, _)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(CassandraError::TooShort { found });
        };
        let [k0, k1, k2, k3, w0, w1, w2, w3] = *header;
        let hash_count = i32::from_be_bytes([k0, k1, k2, k3]);
        let shape = Shape::new(hash_count, i32::from_be_bytes([w0, w1, w2, w3]))?;
        if found != shape.stored_bytes() {
            return Err(CassandraError::Length { found, expected: shape.stored_bytes() });
        }
        Ok(Self::of_parts(bytes, layout, Some(Probes::new(layout, shape))))
    }

    /// A file that is as long as its shape says, or has no bytes and none.
    pub(super) fn of_parts(file: &'a [u8], layout: Layout, probes: Option<Probes>) -> Self {
        let bits = probes.map(|probes| BitArray::new(&file[HEADER_BYTES..], probes));
        CassandraFilterRef { layout, bits }
    }

    /// Whether the key may be present: false means certainly absent. The key is the partition key as Cassandra serializes it: see
    /// [`composite_key`](super::composite_key).
    ///
    /// Cost: one hash, and a cache line per probe up to the first zero bit: two on average for an absent key, all of them for a
    /// present one.
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.contains_hash(hash_key(key))
    }

    /// Whether the key with this hash may be present.
    #[inline]
    pub fn contains_hash(&self, hash: Hash128) -> bool {
        self.bits.is_none_or(|bits| bits.contains(hash))
    }

    /// Looks up every key; `hits` then has one bit per key. Batches may have any length. If a key panics when it is read, the mask is empty.
    ///
    /// Cost: the hash of each key, and in filters that outgrow the cache the cache lines of its probes, which are prefetched while other
    /// keys are tested: on a filter of 100 MB about a third of the time that keys take one by one (`cargo bench --bench cassandra`).
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], hits: &mut Bitmask) {
        hits.write(keys.len(), |words| self.look_up(keys, |key| hash_key(key), words));
    }

    /// Looks up every hash; `hits` then has one bit per hash: how one batch of keys is looked up in the filters of many SSTables.
    pub fn contains_hashes(&self, hashes: &[Hash128], hits: &mut Bitmask) {
        hits.write(hashes.len(), |words| self.look_up(hashes, |&hash| hash, words));
    }

    fn look_up<K>(&self, keys: &[K], hash: impl Fn(&K) -> Hash128, words: &mut [u64]) {
        match self.bits {
            Some(bits) => bits.contains_all(keys.iter().map(hash), words),
            None => fill_with_maybe(words, keys.len()),
        }
    }

    /// How the bytes are read.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Probes per key and words; none for a file of no bytes.
    pub fn shape(&self) -> Option<Shape> {
        self.bits.map(|bits| bits.scheme().shape())
    }

    /// Whether the file has no bytes, so that every key may be present.
    pub fn is_pass_all(&self) -> bool {
        self.bits.is_none()
    }

    /// Fraction of bits that are set, 0 to 1; 1 for a file of no bytes. Cost: reads every byte.
    pub fn fill_ratio(&self) -> f64 {
        self.bits.map_or(1.0, BitArray::fill_ratio)
    }

    /// Estimate of the distinct keys in the filter, from its bits: `-(m / k) ln(1 - fill)` for `k` probes and `m` bits. None if
    /// no bit is zero: then only "many" is known.
    ///
    /// Cost: reads every byte.
    pub fn estimated_keys(&self) -> Option<u64> {
        self.bits?.estimated_keys()
    }

    /// False-positive rate that the filter really has, from its bits: `fill^k` for `k` probes; 1 for a file of no bytes.
    ///
    /// Cost: reads every byte.
    pub fn estimated_false_positive_rate(&self) -> f64 {
        self.bits.map_or(1.0, BitArray::estimated_false_positive_rate)
    }
}

/// The layout and the shape, without the bits.
impl core::fmt::Debug for CassandraFilterRef<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("CassandraFilterRef")
            .field("layout", &self.layout)
            .field("shape", &self.shape())
            .finish()
    }
}
