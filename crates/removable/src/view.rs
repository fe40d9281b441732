//! A borrowed filter: every query is written here once, and the owned filter lends this view.

use blocked_bloom::{
    BatchQuery, Block, FormatError, Kernel, KeyError, KeyHash, KeyHasher, LengthError,
};

use crate::error::RemovableError;
use crate::filter::RemovableFilter;
use crate::kernel;
use crate::tags::{self, LANES, Place};

/// A removable filter borrowed from wherever its bytes are: a mapped file, a cache, an owned [`RemovableFilter`].
///
/// `Copy`. The bytes may have any alignment; if the filter starts at a multiple of 64 in memory, each line is one cache line, else it
/// straddles two. Batches are looked up by the methods of [`BatchQuery`].
///
/// ```
/// use blocked_bloom_removable::{RemovableFilterRef, RemovableOptions};
/// let mut filter = RemovableOptions::new(1_000).empty_filter()?;
/// filter.insert("apple")?;
/// let stored: Vec<u8> = filter.to_bytes();
///
/// let filter = RemovableFilterRef::from_bytes(&stored)?;
/// assert!(filter.contains("apple") && !filter.contains("banana"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct RemovableFilterRef<'a> {
    /// 1 to 2^32 - 1.
    lines: &'a [Block],
    /// Lanes that are not empty.
    len: u64,
    key_hash: KeyHash,
    kernel: Kernel,
}

impl<'a> RemovableFilterRef<'a> {
    /// The callers have checked that there are 1 to 2^32 - 1 lines, and counted the tags.
    #[inline]
    pub(crate) fn new(lines: &'a [Block], len: u64, key_hash: KeyHash, kernel: Kernel) -> Self {
        RemovableFilterRef { lines, len, key_hash, kernel }
    }

    /// Whether the key may be in the filter: false means certainly absent.
    ///
    /// A filter of [`KeyHash::Caller`] cannot hash a key and answers true.
    ///
    /// Cost: one hash, two cache lines.
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        match self.hasher() {
            Ok(hasher) => self.contains_hash(hasher.hash(key)),
            Err(_) => true,
        }
    }

    /// Whether the key with this hash may be in the filter.
    ///
    /// The hash must be of the filter's [`hasher`](Self::hasher): with the hash of another seed, the filter answers "absent" for a key
    /// that is there.
    ///
    /// Cost: two cache lines.
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        kernel::contains_one(self.lines, hash)
    }

    /// Prefetches both lines of a hash, for a lookup, an addition or a removal that comes some hundred nanoseconds later.
    #[inline]
    pub fn prefetch_hash(&self, hash: u64) {
        let place = Place::of(hash, self.lines.len() as u32);
        for line in [place.first, place.second] {
            let start = line as usize * size_of::<Block>();
            blocked_bloom::prefetch(self.lines.as_flattened(), start);
            blocked_bloom::prefetch(self.lines.as_flattened(), start + size_of::<Block>() - 1);
        }
    }

    /// Keys in the filter, copies included: added and not removed.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether every key is certainly absent.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Keys that would fit if they were spread evenly: 32 for each line. Keys are rejected from nine tenths of it on.
    pub fn capacity(&self) -> u64 {
        self.lines.len() as u64 * LANES as u64
    }

    /// [`len`](Self::len) divided by [`capacity`](Self::capacity), 0 to 1.
    pub fn load(&self) -> f64 {
        self.len as f64 / self.capacity() as f64
    }

    /// The fraction of absent keys that are taken for present, 0 to 1, as the number of tags gives it: of 65,535 tags, each of those in
    /// a key's two lines is the key's own by chance.
    pub fn estimated_false_positive_rate(&self) -> f64 {
        let in_both_lines = 2.0 * self.len as f64 / self.lines.len() as f64;
        -libm::expm1(-in_both_lines / 65_535.0)
    }

    /// The lines, 1 to 2^32 - 1, as [`tags`] defines them.
    pub fn lines(&self) -> &'a [Block] {
        self.lines
    }

    /// The hash and seed of the filter.
    pub fn key_hash(&self) -> KeyHash {
        self.key_hash
    }

    /// The hasher of the filter's keys.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the caller hashes.
    #[inline]
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.key_hash.hasher()
    }

    /// The same filter if it has this hash and seed. Call it once where a filter is opened that will be looked up by hash.
    ///
    /// # Errors
    ///
    /// [`FormatError::HashMismatch`] naming both.
    pub fn require_key_hash(self, expected: KeyHash) -> Result<Self, FormatError> {
        match self.key_hash {
            found if found == expected => Ok(self),
            found => Err(FormatError::HashMismatch { found, expected }),
        }
    }

    /// A copy that can be added to and removed from.
    ///
    /// # Errors
    ///
    /// [`RemovableError::Alloc`].
    pub fn to_filter(&self) -> Result<RemovableFilter, RemovableError> {
        RemovableFilter::copy_of(self)
    }

    /// The kernel that answers batches.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The same filter, with batches answered by `kernel`.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        RemovableFilterRef { kernel, ..self }
    }
}

/// Tags in all lines.
pub(crate) fn count_tags(lines: &[Block]) -> u64 {
    lines.iter().map(|line| LANES as u64 - u64::from(tags::empty_lanes(line))).sum()
}

impl BatchQuery for RemovableFilterRef<'_> {
    /// Cost: two cache lines per hash, prefetched where the filter outgrows the cache; one indirect call per batch.
    #[inline]
    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        kernel::contains(self.kernel, self.lines, hashes, words)
    }

    #[inline]
    fn hash_keys<K: AsRef<[u8]>>(&self, keys: &[K], hashes: &mut [u64]) -> Result<(), KeyError> {
        let hasher = self.hasher()?;
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = hasher.hash(key);
        }
        Ok(())
    }
}

/// Same hash and same lines; the kernel does not matter. Filters that hold the same keys have other lines if they came in another order.
impl PartialEq for RemovableFilterRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.key_hash == other.key_hash && self.lines == other.lines
    }
}

impl Eq for RemovableFilterRef<'_> {}

/// The shape, without the tags.
impl core::fmt::Debug for RemovableFilterRef<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RemovableFilterRef")
            .field("lines", &self.lines.len())
            .field("len", &self.len)
            .field("key_hash", &self.key_hash)
            .field("kernel", &self.kernel)
            .finish()
    }
}
