//! A borrowed `Filter.db`: validation, questions one by one and in batches, statistics.
//!
//! This file owns the reading of the bytes. It copies nothing, allocates nothing but a batch's answers, and refuses a layout of
//! its own choosing.

use super::batch;
use super::law::{Walk, Words};
use super::{CassandraError, HEADER_BYTES, Hash128, Layout, Shape, murmur3};
use crate::bitmask::{self, Bitmask};
use crate::error::LengthError;
use crate::kernel;
use crate::view::check_length;

/// Filters up to this size stay in the second-level cache, where requesting lines ahead only costs.
pub(super) const FITS_BYTES: usize = 256 << 10;

/// A `Filter.db` borrowed from wherever its bytes are: a mapped file, a block cache.
///
/// `Copy`. Opening it costs nothing that depends on its size. Cassandra stores no checksum: a flipped bit within the words cannot
/// be seen, and a bit that was cleared makes keys "absent" that are there. Its `Digest` file is about the data, not the filter:
/// where files travel, keep a checksum of your own.
///
/// ```
/// use blocked_bloom::interop::cassandra::{CassandraFilter, Layout};
/// # let bytes = include_bytes!("../../../tests/fixtures/cassandra/nb-1-big-Filter.db");
/// let filter = CassandraFilter::from_bytes(bytes, Layout::of_version("nb")?)?;
/// assert!(filter.contains("apple"));
/// assert!(!filter.contains("granite"));
/// # Ok::<(), blocked_bloom::interop::cassandra::CassandraError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CassandraFilter<'a> {
    layout: Layout,
    /// None if every key is present.
    stored: Option<Stored<'a>>,
}

/// What a file that is not empty holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored<'a> {
    layout: Layout,
    /// Eight times as many as the shape has words.
    bytes: &'a [u8],
    shape: Shape,
    words: Words,
}

impl<'a> CassandraFilter<'a> {
    /// Opens the bytes of a `Filter.db`.
    ///
    /// A file of no bytes is a filter that answers "maybe" to every key: Cassandra reads it so.
    ///
    /// # Errors
    ///
    /// [`CassandraError::TooShort`] for 1 to 7 bytes; [`CassandraError::HashCount`] unless there are 1 to 21 probes;
    /// [`CassandraError::WordCount`] unless there are 1 to 2^31 - 1 words; [`CassandraError::Length`] unless the words are as many
    /// as the header says and nothing follows. Bytes that are refused must not be used to answer "absent".
    ///
    /// ```
    /// use blocked_bloom::interop::cassandra::{CassandraError, CassandraFilter, Layout};
    /// let bytes = [0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    /// assert!(!CassandraFilter::from_bytes(&bytes, Layout::Since4)?.contains("apple"));
    /// assert!(CassandraFilter::from_bytes(&[], Layout::Since4)?.contains("apple"));
    /// assert!(CassandraFilter::from_bytes(&bytes[..15], Layout::Since4).is_err());
    /// # Ok::<(), CassandraError>(())
    /// ```
    pub fn from_bytes(bytes: &'a [u8], layout: Layout) -> Result<Self, CassandraError> {
        if bytes.is_empty() {
            return Ok(CassandraFilter { layout, stored: None });
        }
        let found = bytes.len() as u64;
        let Some((header, words)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(CassandraError::TooShort { found });
        };
        let [k0, k1, k2, k3, w0, w1, w2, w3] = *header;
        let hash_count = i32::from_be_bytes([k0, k1, k2, k3]);
        let shape = Shape::new(hash_count, i32::from_be_bytes([w0, w1, w2, w3]))?;
        if found != shape.stored_bytes() {
            return Err(CassandraError::Length { found, expected: shape.stored_bytes() });
        }
        let stored = Stored { layout, bytes: words, shape, words: Words::new(shape.words()) };
        Ok(CassandraFilter { layout, stored: Some(stored) })
    }

    /// What a builder holds: bytes of this shape, header included, or none at all.
    pub(super) fn of_builder(
        bytes: &'a [u8],
        layout: Layout,
        shape: Option<(Shape, Words)>,
    ) -> Self {
        let stored = shape.map(|(shape, words)| Stored {
            layout,
            bytes: &bytes[HEADER_BYTES..],
            shape,
            words,
        });
        CassandraFilter { layout, stored }
    }

    /// Whether the key may be present: false means certainly absent. The key is the partition key as Cassandra serializes it: see
    /// [`composite_key`](super::composite_key).
    ///
    /// Cost: one hash, and a cache line per probe up to the first zero bit: two on average for an absent key, all of them for a
    /// present one.
    ///
    /// ```
    /// # use blocked_bloom::interop::cassandra::{CassandraFilter, Layout};
    /// # let bytes = include_bytes!("../../../tests/fixtures/cassandra/nb-1-big-Filter.db");
    /// # let filter = CassandraFilter::from_bytes(bytes, Layout::Since4)?;
    /// assert!(filter.contains("banana"));
    /// # Ok::<(), blocked_bloom::interop::cassandra::CassandraError>(())
    /// ```
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.contains_hash(murmur3(key))
    }

    /// Whether the key with this hash may be present.
    ///
    /// ```
    /// # use blocked_bloom::interop::cassandra::{CassandraFilter, Layout, murmur3};
    /// # let bytes = include_bytes!("../../../tests/fixtures/cassandra/nb-1-big-Filter.db");
    /// # let filter = CassandraFilter::from_bytes(bytes, Layout::Since4)?;
    /// assert!(filter.contains_hash(murmur3("banana")));
    /// # Ok::<(), blocked_bloom::interop::cassandra::CassandraError>(())
    /// ```
    #[inline]
    pub fn contains_hash(&self, hash: Hash128) -> bool {
        self.stored.is_none_or(|stored| stored.contains(hash))
    }

    /// Asks about every key; `hits` then has one bit per key. Batches may have any length.
    ///
    /// Cost: the hash of each key, and in filters that outgrow the cache the lines of its probes, which are requested while other
    /// keys are tested: on a filter of 100 MB about a third of the time that keys take one by one (`cargo bench --features
    /// interop-cassandra --bench cassandra`).
    ///
    /// ```
    /// # use blocked_bloom::Bitmask;
    /// # use blocked_bloom::interop::cassandra::{CassandraFilter, Layout};
    /// # let bytes = include_bytes!("../../../tests/fixtures/cassandra/nb-1-big-Filter.db");
    /// # let filter = CassandraFilter::from_bytes(bytes, Layout::Since4)?;
    /// let mut hits = Bitmask::new();
    /// filter.contains_batch(&["granite", "apple"], &mut hits);
    /// assert!(hits.hits().eq([1]));
    /// # Ok::<(), blocked_bloom::interop::cassandra::CassandraError>(())
    /// ```
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], hits: &mut Bitmask) {
        hits.write(keys.len(), |words| self.answer(keys, |key| murmur3(key), words));
    }

    /// [`contains_batch`](Self::contains_batch) into words of the caller's: key `i` is bit `i % 64` of `words[i / 64]`, bits
    /// past the last key are zero.
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per 64 keys, rounded up; nothing is written then.
    ///
    /// ```
    /// # use blocked_bloom::interop::cassandra::{CassandraFilter, Layout};
    /// # let bytes = include_bytes!("../../../tests/fixtures/cassandra/nb-1-big-Filter.db");
    /// # let filter = CassandraFilter::from_bytes(bytes, Layout::Since4)?;
    /// let mut words = [0];
    /// filter.contains_batch_into(&["granite", "apple"], &mut words)?;
    /// assert_eq!(words, [0b10]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch_into<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        check_length(keys.len(), words)?;
        self.answer(keys, |key| murmur3(key), words);
        Ok(())
    }

    /// Asks about every hash; `hits` then has one bit per hash: how one batch of keys is asked of the filters of many SSTables.
    ///
    /// ```
    /// # use blocked_bloom::Bitmask;
    /// # use blocked_bloom::interop::cassandra::{CassandraFilter, Layout, murmur3};
    /// # let bytes = include_bytes!("../../../tests/fixtures/cassandra/nb-1-big-Filter.db");
    /// # let filter = CassandraFilter::from_bytes(bytes, Layout::Since4)?;
    /// let hashes = ["granite", "apple"].map(murmur3);
    /// let mut hits = Bitmask::new();
    /// filter.contains_hashes(&hashes, &mut hits);
    /// assert!(hits.hits().eq([1]));
    /// # Ok::<(), blocked_bloom::interop::cassandra::CassandraError>(())
    /// ```
    pub fn contains_hashes(&self, hashes: &[Hash128], hits: &mut Bitmask) {
        hits.write(hashes.len(), |words| self.answer(hashes, |&hash| hash, words));
    }

    /// [`contains_hashes`](Self::contains_hashes) into words of the caller's, as
    /// [`contains_batch_into`](Self::contains_batch_into).
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per 64 hashes, rounded up; nothing is written then.
    ///
    /// ```
    /// # use blocked_bloom::interop::cassandra::{CassandraFilter, Layout, murmur3};
    /// let always = CassandraFilter::from_bytes(&[], Layout::Since4)?;
    /// let mut words = [0];
    /// always.contains_hashes_into(&["granite", "apple"].map(murmur3), &mut words)?;
    /// assert_eq!(words, [0b11]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_hashes_into(
        &self,
        hashes: &[Hash128],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        check_length(hashes.len(), words)?;
        self.answer(hashes, |&hash| hash, words);
        Ok(())
    }

    fn answer<K>(&self, keys: &[K], hash: impl Fn(&K) -> Hash128, words: &mut [u64]) {
        let Some(stored) = self.stored else {
            return bitmask::fill_with_hits(words, keys.len());
        };
        if stored.bytes.len() > FITS_BYTES {
            return batch::answer(stored, keys.iter().map(hash), words);
        }
        for (word, keys) in words.iter_mut().zip(keys.chunks(64)) {
            let answers = keys.iter().map(|key| stored.contains(hash(key)));
            *word = answers.enumerate().fold(0, |word, (i, hit)| word | u64::from(hit) << i);
        }
    }

    /// How the bytes are read.
    ///
    /// ```
    /// # use blocked_bloom::interop::cassandra::{CassandraFilter, Layout};
    /// let filter = CassandraFilter::from_bytes(&[], Layout::Since3)?;
    /// assert_eq!(filter.layout(), Layout::Since3);
    /// # Ok::<(), blocked_bloom::interop::cassandra::CassandraError>(())
    /// ```
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Probes per key and words; none for a file of no bytes.
    ///
    /// ```
    /// # use blocked_bloom::interop::cassandra::{CassandraFilter, Layout, Shape};
    /// # let bytes = include_bytes!("../../../tests/fixtures/cassandra/nb-1-big-Filter.db");
    /// # let filter = CassandraFilter::from_bytes(bytes, Layout::Since4)?;
    /// assert_eq!(filter.shape(), Some(Shape::new(5, 7)?));
    /// # Ok::<(), blocked_bloom::interop::cassandra::CassandraError>(())
    /// ```
    pub fn shape(&self) -> Option<Shape> {
        self.stored.map(|stored| stored.shape)
    }

    /// Whether the file has no bytes, so that every key may be present.
    ///
    /// ```
    /// # use blocked_bloom::interop::cassandra::{CassandraFilter, Layout};
    /// assert!(CassandraFilter::from_bytes(&[], Layout::Since4)?.is_always_present());
    /// # Ok::<(), blocked_bloom::interop::cassandra::CassandraError>(())
    /// ```
    pub fn is_always_present(&self) -> bool {
        self.stored.is_none()
    }

    /// Fraction of bits that are set, 0 to 1; 1 for a file of no bytes. Cost: reads every byte.
    ///
    /// ```
    /// # use blocked_bloom::interop::cassandra::{CassandraFilter, Layout};
    /// # let bytes = include_bytes!("../../../tests/fixtures/cassandra/nb-1-big-Filter.db");
    /// # let filter = CassandraFilter::from_bytes(bytes, Layout::Since4)?;
    /// assert!((0.3..0.5).contains(&filter.fill_ratio()));
    /// # Ok::<(), blocked_bloom::interop::cassandra::CassandraError>(())
    /// ```
    pub fn fill_ratio(&self) -> f64 {
        let Some(stored) = self.stored else { return 1.0 };
        let (words, _) = stored.bytes.as_chunks();
        let ones = words.iter().map(|&word| u64::from(u64::from_ne_bytes(word).count_ones()));
        ones.sum::<u64>() as f64 / stored.shape.bits() as f64
    }

    /// Estimate of the distinct keys in the filter, from its bits: `-(m / k) ln(1 - fill)` for `k` probes and `m` bits. None if
    /// no bit is zero: then only "many" is known.
    ///
    /// Cost: reads every byte.
    ///
    /// ```
    /// # use blocked_bloom::interop::cassandra::{CassandraFilter, Layout};
    /// # let bytes = include_bytes!("../../../tests/fixtures/cassandra/nb-1-big-Filter.db");
    /// # let filter = CassandraFilter::from_bytes(bytes, Layout::Since4)?;
    /// assert!((35..=45).contains(&filter.estimated_keys().unwrap()));
    /// # Ok::<(), blocked_bloom::interop::cassandra::CassandraError>(())
    /// ```
    pub fn estimated_keys(&self) -> Option<u64> {
        let shape = self.shape()?;
        let bits_per_probe = shape.bits() as f64 / f64::from(shape.hash_count());
        let keys = -libm::log1p(-self.fill_ratio()) * bits_per_probe;
        keys.is_finite().then(|| libm::round(keys) as u64)
    }

    /// False-positive rate that the filter really has, from its bits: `fill^k` for `k` probes; 1 for a file of no bytes.
    ///
    /// Cost: reads every byte.
    ///
    /// ```
    /// # use blocked_bloom::interop::cassandra::{CassandraFilter, Layout};
    /// # let bytes = include_bytes!("../../../tests/fixtures/cassandra/nb-1-big-Filter.db");
    /// # let filter = CassandraFilter::from_bytes(bytes, Layout::Since4)?;
    /// assert!(filter.estimated_false_positive_rate() < 0.02);
    /// # Ok::<(), blocked_bloom::interop::cassandra::CassandraError>(())
    /// ```
    pub fn estimated_false_positive_rate(&self) -> f64 {
        self.shape().map_or(1.0, |shape| libm::pow(self.fill_ratio(), shape.hash_count().into()))
    }
}

impl Stored<'_> {
    #[inline]
    fn contains(self, hash: Hash128) -> bool {
        let mut walk = self.walk(hash);
        (0..self.shape.hash_count()).all(|_| self.is_set(self.words.position(walk.next())))
    }

    #[inline]
    pub(super) fn walk(self, hash: Hash128) -> Walk {
        Walk::of(hash, self.layout)
    }

    /// The positions of the first two probes, taken off the walk; twice the same where a key has one.
    #[inline]
    pub(super) fn first(self, walk: &mut Walk) -> [u64; 2] {
        let first = self.words.position(walk.next());
        let second = self.words.position(walk.next());
        [first, if self.shape.hash_count() == 1 { first } else { second }]
    }

    /// The positions after the first two.
    #[inline]
    pub(super) fn rest(self, mut walk: Walk) -> impl Iterator<Item = u64> {
        (2..self.shape.hash_count()).map(move |_| self.words.position(walk.next()))
    }

    #[inline]
    pub(super) fn is_set(self, position: u64) -> bool {
        self.bytes[byte_index(position, self.layout)] >> (position % 8) & 1 == 1
    }

    /// Requests the line of a position.
    #[inline]
    pub(super) fn request(self, position: u64) {
        kernel::request(self.bytes, byte_index(position, self.layout));
    }
}

/// The byte, after the header, that holds a position.
#[inline]
pub(super) fn byte_index(position: u64, layout: Layout) -> usize {
    ((position / 8) ^ layout.byte_flip()) as usize
}

/// The layout and the shape, without the bits.
impl core::fmt::Debug for CassandraFilter<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("CassandraFilter")
            .field("layout", &self.layout)
            .field("shape", &self.shape())
            .finish()
    }
}
