//! A classical filter of any system, generic over the owner of its bytes: lookups, insertion,
//! merging.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt::{self, Debug, Formatter};

use blocked_bloom::parts::fill_with_hits;
use blocked_bloom::{AllocError, Bitmask};

use super::batch;
use super::bit_array::{BitArray, PREFETCH_THRESHOLD};
use super::error::ClassicalError;
use super::scheme::{ClassicalShape, Scheme, Words};

/// The prefetch distance of insertion, in keys.
const DISTANCE: usize = 16;

/// A classical filter of the system `S`, generic over the owner of its bytes.
///
/// | type | storage of the bytes | created by |
/// |---|---|---|
/// | `ClassicalFilter<S>` | its own memory; accepts keys, and can be merged | `new`, [`with_shape`](Self::with_shape), [`to_filter`](Self::to_filter) |
/// | `ClassicalFilter<S, D>` | any owner `D`: a mapped file, a `Vec<u8>`, an `Arc<[u8]>`, a `&[u8]` | `from_bytes` |
/// | `ClassicalFilter<S, &[u8]>` | borrowed from another filter, `Copy` | [`view`](Self::view) |
///
/// All three have the same lookups, and their bytes are always the stored filter. `S` is
/// [`guava::Strategy`](crate::guava::Strategy), [`spark::Version`](crate::spark::Version),
/// [`cassandra::Layout`](crate::cassandra::Layout) or
/// [`redis::LinkScheme`](crate::redis::LinkScheme). Each has an alias for this type:
/// [`GuavaFilter`](crate::guava::GuavaFilter), [`SparkFilter`](crate::spark::SparkFilter),
/// [`CassandraFilter`](crate::cassandra::CassandraFilter), [`Link`](crate::redis::Link).
///
/// If the length of the owner's bytes changes after opening, every answer is "maybe". None of these
/// systems stores a **checksum**: a cleared bit cannot be detected, and makes a present key absent.
/// Protect such bytes with a checksum of your own.
///
/// ```
/// # #[cfg(feature = "spark")] {
/// use blocked_bloom_formats::{ClassicalError, ClassicalFilter};
/// use blocked_bloom_formats::spark::{SparkFilter, Version};
/// let mut filter: ClassicalFilter<Version> = SparkFilter::new(Version::V1, 100, 0.01)?;
/// assert!(filter.insert("apple")); // certainly new
/// let stored: &[u8] = filter.as_bytes();
/// let opened = SparkFilter::from_bytes(stored)?;
/// assert!(opened.contains("apple") && opened == filter);
/// # }
/// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
/// ```
#[derive(Clone, Copy)]
pub struct ClassicalFilter<S, D = Vec<u8>> {
    pub(crate) shape: ClassicalShape<S>,
    bytes: D,
}

impl<S: Scheme, D: AsRef<[u8]>> ClassicalFilter<S, D> {
    /// Creates a filter from bytes that have the length of the shape.
    pub(crate) fn from_parts(shape: ClassicalShape<S>, bytes: D) -> Self {
        ClassicalFilter { shape, bytes }
    }

    /// Creates a filter from bytes if they have the length of the shape.
    #[cfg(any(feature = "cassandra", feature = "guava", feature = "spark"))]
    pub(crate) fn open(shape: ClassicalShape<S>, bytes: D) -> Result<Self, ClassicalError> {
        let filter = ClassicalFilter::from_parts(shape, bytes);
        filter.check_length()?;
        Ok(filter)
    }

    fn check_length(&self) -> Result<&[u8], ClassicalError> {
        let bytes = self.bytes.as_ref();
        match (bytes.len() as u64, self.shape.stored_bytes()) {
            (found, expected) if found == expected => Ok(bytes),
            (found, expected) => Err(ClassicalError::Length { found, expected }),
        }
    }

    /// Returns `None` if the length of the bytes has changed, or if there are none. Every key
    /// passes in both cases.
    #[inline]
    fn array(&self) -> Option<BitArray<'_, S>> {
        let (start, words) = (self.shape.scheme.header_bytes(), self.shape.bits() / 8);
        let bytes = self.bytes.as_ref().get(start..)?;
        (bytes.len() as u64 == words).then(|| BitArray::new(bytes, self.shape))
    }

    /// Returns whether the key may be present; false means certainly absent. A key is bytes: the
    /// output of the program's `Funnel` (Guava), the argument of `putBinary` or, as UTF-8, of
    /// `putString` (Spark), a serialized partition key (Cassandra).
    ///
    /// Cost: one hash, and one cache line per probe up to the first zero bit: two on average for an
    /// absent key, all of them for a present key.
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.contains_hash(self.shape.scheme.hash_key(key.as_ref()))
    }

    /// Returns whether the key with this hash (from the filter's scheme) may be present.
    #[inline]
    pub fn contains_hash(&self, hash: S::Hash) -> bool {
        self.array().is_none_or(|array| array.contains(hash))
    }

    /// Prefetches the cache lines that [`contains_hash`](Self::contains_hash) reads for this hash,
    /// if the filter exceeds the cache.
    #[inline]
    pub fn prefetch_hash(&self, hash: S::Hash) {
        if let Some(array) = self.array()
            && self.outgrows_cache()
        {
            array.prefetch_all(hash);
        }
    }

    #[inline]
    fn outgrows_cache(&self) -> bool {
        self.shape.bits() / 8 > PREFETCH_THRESHOLD
    }

    /// Looks up all keys, and sets one bit of `hits` per key. Batches may have any length. If a
    /// key's `as_ref` panics, the mask is empty.
    ///
    /// Cost: the hash of each key. In filters that exceed the cache, also the cache lines of its
    /// probes, which are prefetched while other keys are tested: with 100 MB, a batch takes 0.17x
    /// to 0.33x the time of single lookups (`benches/classical.rs`).
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], hits: &mut Bitmask) {
        let hashes = keys.iter().map(|key| self.shape.scheme.hash_key(key.as_ref()));
        hits.write(keys.len(), |words| self.look_up(hashes, words));
    }

    /// Looks up all hashes, and sets one bit of `hits` per hash. Use it to look up one batch of
    /// keys in many filters.
    pub fn contains_hashes(&self, hashes: &[S::Hash], hits: &mut Bitmask) {
        hits.write(hashes.len(), |words| self.look_up(hashes.iter().copied(), words));
    }

    /// Looks up all hashes; `words` has one word per 64.
    #[inline]
    pub(crate) fn look_up(
        &self,
        hashes: impl ExactSizeIterator<Item = S::Hash>,
        words: &mut [u64],
    ) {
        match self.array() {
            Some(array) => batch::contains_all(array, hashes, words),
            None => fill_with_hits(words, hashes.len()),
        }
    }

    /// Returns the same filter with borrowed bytes.
    pub fn view(&self) -> ClassicalFilter<S, &[u8]> {
        ClassicalFilter { shape: self.shape, bytes: self.as_bytes() }
    }

    /// Copies the filter into its own memory, so that it accepts keys and can be merged into.
    ///
    /// # Errors
    ///
    /// [`ClassicalError::Alloc`]; [`ClassicalError::Length`] if the length of the owner's bytes has
    /// changed.
    pub fn to_filter(&self) -> Result<ClassicalFilter<S>, ClassicalError> {
        let stored = self.check_length()?;
        let mut bytes = Vec::new();
        let error = AllocError::new(stored.len() as u64);
        bytes.try_reserve_exact(stored.len()).map_err(|_| error)?;
        bytes.extend_from_slice(stored);
        Ok(ClassicalFilter { shape: self.shape, bytes })
    }

    /// Returns the stored filter.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Returns the stored bits, without the header; empty if every key passes.
    pub fn words(&self) -> &[u8] {
        self.array().map_or(&[], BitArray::bytes)
    }

    /// Returns the owner of the bytes. For an owned filter, that is the stored filter, without a
    /// copy.
    pub fn into_inner(self) -> D {
        self.bytes
    }

    /// Returns scheme, probes and bits.
    pub fn shape(&self) -> ClassicalShape<S> {
        self.shape
    }

    /// Returns whether the filter answers "maybe" to every key: it has no bits, or the length of
    /// the owner's bytes has changed.
    pub fn is_pass_all(&self) -> bool {
        self.shape.probes() == 0 || self.array().is_none()
    }

    /// Returns the fraction of set bits, 0 to 1; 1 if every key passes. Cost: reads every byte.
    pub fn fill_ratio(&self) -> f64 {
        let array = self.array().filter(|_| self.shape.probes() > 0);
        array.map_or(1.0, BitArray::fill_ratio)
    }

    /// Estimates the number of distinct keys from the bits: `-(m / k) ln(1 - fill)` for `k` probes
    /// and `m` bits, like Guava's `approximateElementCount`. Returns `None` if no bit is zero,
    /// since the number is then unbounded.
    ///
    /// Cost: reads every byte.
    pub fn estimated_keys(&self) -> Option<u64> {
        let bits_per_probe = self.shape.used_bits() as f64 / f64::from(self.shape.probes());
        let keys = -libm::log1p(-self.fill_ratio()) * bits_per_probe;
        keys.is_finite().then(|| libm::round(keys) as u64)
    }

    /// Returns the actual false-positive rate, computed from the bits: `fill^k` for `k` probes,
    /// like `expectedFpp` of Guava and Spark; 1 if every key passes.
    ///
    /// Cost: reads every byte.
    pub fn estimated_false_positive_rate(&self) -> f64 {
        libm::pow(self.fill_ratio(), self.shape.probes().into())
    }
}

/// From this many bytes upwards, the zeros are fresh pages from the system. Writing 500 MB of zeros
/// would take 0.25 s.
const LAZY: usize = 1 << 20;

/// Returns a header followed by this many zeros.
fn zeroed(header: &[u8], bytes: u64) -> Result<Vec<u8>, AllocError> {
    let total = bytes.saturating_add(header.len() as u64);
    let error = AllocError::new(total);
    let total = usize::try_from(total).map_err(|_| error)?;
    let mut file = Vec::new();
    file.try_reserve_exact(total).map_err(|_| error)?;
    if total >= LAZY {
        // Only `vec!` takes memory that is already zero, but it aborts the program if there is
        // none. So the memory is first reserved, to check that there is enough, and then released.
        drop(file);
        let mut file = vec![0; total];
        file[..header.len()].copy_from_slice(header);
        return Ok(file);
    }
    file.extend_from_slice(header);
    file.resize(total, 0);
    Ok(file)
}

impl<S: Scheme> ClassicalFilter<S> {
    /// Creates an empty filter of this shape after this header.
    pub(crate) fn empty(shape: ClassicalShape<S>, header: &[u8]) -> Result<Self, AllocError> {
        Ok(ClassicalFilter { shape, bytes: zeroed(header, shape.bits() / 8)? })
    }

    /// Returns the stored bytes.
    #[cfg(feature = "redis")]
    pub(crate) fn stored_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Inserts a key of bytes, in the form that [`contains`](Self::contains) takes. Returns true if
    /// it was certainly absent before. The order of keys does not matter, and repeated keys change
    /// nothing.
    ///
    /// Cost: one hash, and one cache line per probe.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> bool {
        self.insert_hash(self.shape.scheme.hash_key(key.as_ref()))
    }

    /// Inserts a key by its hash (from the filter's scheme). Returns true if it was certainly
    /// absent before.
    #[inline]
    pub fn insert_hash(&mut self, hash: S::Hash) -> bool {
        let shape = self.shape;
        let bytes = &mut self.bytes[shape.start()..];
        let mut walk = shape.scheme.walk(hash);
        let mut is_new = false;
        for _ in 0..shape.probes() {
            let position = shape.position(walk.advance());
            let (byte, bit) = (&mut bytes[(position / 8) as usize], 1 << (position % 8));
            is_new |= *byte & bit == 0;
            *byte |= bit;
        }
        if is_new {
            self.shape.scheme.added();
        }
        is_new
    }

    /// Inserts keys by their hashes.
    ///
    /// Cost: cache lines of later keys are prefetched while bits are set. In a filter of 100 MB
    /// this takes about 0.33x the time of single insertions: hash about 1,000 keys, then insert
    /// them.
    pub fn insert_hashes(&mut self, hashes: &[S::Hash]) {
        if !self.outgrows_cache() {
            return hashes.iter().for_each(|&hash| _ = self.insert_hash(hash));
        }
        hashes.iter().take(DISTANCE).for_each(|&hash| self.prefetch_hash(hash));
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&later) = hashes.get(i + DISTANCE) {
                self.prefetch_hash(later);
            }
            self.insert_hash(hash);
        }
    }
}

impl<S: Words> ClassicalFilter<S> {
    /// Creates an empty filter of this shape.
    ///
    /// # Errors
    ///
    /// [`ClassicalError::Alloc`]. A filter may take up to 16 GiB.
    pub fn with_shape(shape: ClassicalShape<S>) -> Result<Self, ClassicalError> {
        Ok(Self::empty(shape, &shape.header())?)
    }

    /// Inserts every key of another filter of the same shape, like `putAll` of Guava and
    /// `mergeInPlace` of Spark. The caller must know that both programs convert keys to the same
    /// bytes.
    ///
    /// # Errors
    ///
    /// [`ClassicalError::Mismatch`] if scheme, probes or words differ; [`ClassicalError::Length`]
    /// if the length of the other owner's bytes has changed. The filter is unchanged in both cases.
    ///
    /// ```
    /// # #[cfg(feature = "guava")] {
    /// use blocked_bloom_formats::guava::GuavaFilter;
    /// let mut filters = [GuavaFilter::new(100, 0.01)?, GuavaFilter::new(100, 0.01)?];
    /// filters[0].insert("apple");
    /// filters[1].insert("banana");
    /// let [mut filter, other] = filters;
    /// filter.union_with(&other)?;
    /// assert!(filter.contains("apple") && filter.contains("banana"));
    /// # }
    /// # Ok::<(), blocked_bloom_formats::ClassicalError>(())
    /// ```
    pub fn union_with<D: AsRef<[u8]>>(
        &mut self,
        other: &ClassicalFilter<S, D>,
    ) -> Result<(), ClassicalError> {
        let (own, others) = (self.shape.fields(), other.shape.fields());
        for ((field, expected), (_, found)) in own.into_iter().zip(others) {
            if found != expected {
                return Err(ClassicalError::Mismatch { field, found, expected });
            }
        }
        let (start, other) = (self.shape.start(), other.check_length()?);
        let words = self.bytes[start..].iter_mut().zip(&other[start..]);
        words.for_each(|(byte, other)| *byte |= other);
        Ok(())
    }
}

impl<S: Scheme, K: AsRef<[u8]>> Extend<K> for ClassicalFilter<S> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| _ = self.insert(key));
    }
}

/// Compares shape and bytes; the storage does not matter.
impl<S: Scheme, D: AsRef<[u8]>, E: AsRef<[u8]>> PartialEq<ClassicalFilter<S, E>>
    for ClassicalFilter<S, D>
{
    fn eq(&self, other: &ClassicalFilter<S, E>) -> bool {
        self.shape == other.shape && self.as_bytes() == other.as_bytes()
    }
}

impl<S: Scheme + Eq, D: AsRef<[u8]>> Eq for ClassicalFilter<S, D> {}

/// Shows the shape, without the bits.
impl<S: Debug, D> Debug for ClassicalFilter<S, D> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassicalFilter").field("shape", &self.shape).finish_non_exhaustive()
    }
}
