//! The filter, generic over the storage of its lines: lookups and properties.

use blocked_bloom::parts::{BlockBuffer, HEADER_BYTES, check_words};
use blocked_bloom::{Block, Filter, Kernel, KeyHash, LengthError, Stored};

use crate::kernel;
use crate::tags::{self, LANES, Place};

/// A filter with removal, generic over the storage of its lines.
///
/// | type | storage of the lines | created by |
/// |---|---|---|
/// | `RemovableFilter` | its own memory; keys can be inserted and removed | [`RemovableOptions::empty_filter`], [`from_hashes`](Self::from_hashes), [`to_filter`](Self::to_filter) |
/// | `RemovableFilter<Stored<B>>` | stored bytes in `B`: a mapped file, an `Arc<[u8]>`, a `Vec<u8>` | [`from_bytes`](RemovableFilter::from_bytes), [`open_or_pass_all`](RemovableFilter::open_or_pass_all) |
/// | `RemovableFilter<&[Block]>` | borrowed from another filter, `Copy` | [`view`](Self::view) |
///
/// All three have the same lookups and answer "maybe" or "certainly absent", like a Bloom filter.
/// The filter takes 18.3 bits per key, has 0.085 % false positives, and reads two cache lines per
/// lookup. **Only remove keys that were inserted**: removing any other key can remove the tag of a
/// key that is present, which then becomes absent (`docs/removable.md` states the rate). A key
/// inserted twice must be removed twice.
///
/// - A key can be inserted up to 64 times, or 32 times if both of its lines are the same (always
///   the case with one line, and for one key in `n` with `n` lines). The limit is lower where other
///   keys use the lanes.
/// - The filter does not grow. [`RemovableError::Full`] means that a key was not inserted and that
///   the filter is unchanged. A tag has too few bits of the hash to be moved to a larger filter, so
///   build a larger one from the keys: [`from_hashes`](Self::from_hashes). By default, a filter for
///   `n` keys fills 7/8 of its [capacity](Self::capacity), and the first key is rejected at about
///   9/10.
/// - Filters cannot be merged.
/// - Stored bytes may have any alignment. If the filter starts at a multiple of 64 in memory, each
///   line is one cache line; otherwise it straddles two. If the length of the owner's bytes
///   changes, every answer is "maybe".
///
/// ```
/// use blocked_bloom::Filter;
/// use blocked_bloom_removable::{RemovableError, RemovableFilter, RemovableOptions};
/// let options = RemovableOptions::new(1_000);
/// let mut sessions = options.empty_filter()?;
/// sessions.insert("alice")?;
/// sessions.insert("bob")?;
/// assert!(sessions.remove("alice")?);
/// assert!(!sessions.contains("alice") && sessions.contains("bob"));
///
/// // A larger filter, built from the keys.
/// let hasher = options.hasher()?;
/// let live = ["bob"].map(|key| hasher.hash(key));
/// sessions = RemovableFilter::from_hashes(&options.with_keys(2_000), &live)?;
/// assert!(sessions.contains("bob"));
/// # Ok::<(), RemovableError>(())
/// ```
///
/// [`RemovableError::Full`]: crate::RemovableError::Full
/// [`RemovableOptions::empty_filter`]: crate::RemovableOptions::empty_filter
#[derive(Clone, Copy)]
pub struct RemovableFilter<D = BlockBuffer> {
    pub(crate) data: D,
    pub(crate) meta: Meta,
}

/// All fields of a filter except its lines.
#[derive(Clone, Copy)]
pub(crate) struct Meta {
    pub(crate) key_hash: KeyHash,
    /// Number of lanes in use.
    pub(crate) keys_inserted: u64,
    pub(crate) kernel: Kernel,
    /// Whether copies are advised to use huge pages.
    pub(crate) huge_pages: bool,
}

/// The storage of a filter's lines. Private, so that no other crate can implement it.
///
/// ```
/// use blocked_bloom::Filter;
/// use blocked_bloom_removable::RemovableOptions;
/// let filter = RemovableOptions::new(100).empty_filter()?;
/// assert_eq!(filter.contains("apple"), filter.view().contains("apple"));
/// # Ok::<(), blocked_bloom_removable::RemovableError>(())
/// ```
pub trait Lines {
    /// Returns 1 to 2^32 - 1 lines, or none if they are unknown; every answer is then "maybe".
    fn lines(&self) -> &[Block];
}

impl Lines for BlockBuffer {
    #[inline]
    fn lines(&self) -> &[Block] {
        self
    }
}

impl Lines for &[Block] {
    #[inline]
    fn lines(&self) -> &[Block] {
        self
    }
}

impl<B: AsRef<[u8]>> Lines for Stored<B> {
    #[inline]
    fn lines(&self) -> &[Block] {
        let lines = self.bytes().and_then(|bytes| bytes.get(HEADER_BYTES..));
        lines.unwrap_or_default().as_chunks().0
    }
}

impl<D: Lines> RemovableFilter<D> {
    /// Returns the same filter with borrowed lines, at no cost.
    #[inline]
    pub fn view(&self) -> RemovableFilter<&[Block]> {
        RemovableFilter { data: self.lines(), meta: self.meta }
    }

    /// Returns the lines, 1 to 2^32 - 1, as defined in [`tags`](crate::tags). A
    /// [pass-all](Self::is_pass_all) filter has none.
    #[inline]
    pub fn lines(&self) -> &[Block] {
        self.data.lines()
    }

    /// Returns whether the filter answers "maybe" to every key. It either replaces
    /// [damaged](RemovableFilter::open_or_pass_all) bytes, or the length of the stored bytes
    /// changed after opening.
    pub fn is_pass_all(&self) -> bool {
        self.lines().is_empty()
    }

    /// Returns whether the filter contains no key.
    pub fn is_empty(&self) -> bool {
        self.meta.keys_inserted == 0 && !self.is_pass_all()
    }

    /// Returns the size of the lines in bytes.
    pub fn memory_bytes(&self) -> u64 {
        size_of_val(self.lines()) as u64
    }

    /// Returns the number of lanes: 32 per line. The first key is rejected at about 9/10 of it.
    pub fn capacity(&self) -> u64 {
        self.lines().len() as u64 * LANES as u64
    }

    /// Returns [`keys_inserted`](Self::keys_inserted) divided by [`capacity`](Self::capacity), 0 to
    /// 1. Build a larger filter before it reaches 0.9. A pass-all filter returns 1.
    pub fn load(&self) -> f64 {
        match self.capacity() {
            0 => 1.0,
            capacity => self.meta.keys_inserted as f64 / capacity as f64,
        }
    }

    /// Returns the expected fraction of absent keys that pass, 0 to 1, computed from the number of
    /// tags. Each tag in a key's two lines equals the key's tag with a probability of 1/65,535.
    pub fn expected_false_positive_rate(&self) -> f64 {
        if self.is_pass_all() {
            return 1.0;
        }
        tags::false_positive_rate(self.load())
    }
}

impl<D> RemovableFilter<D> {
    /// Returns the number of keys in the filter, including copies.
    pub fn keys_inserted(&self) -> u64 {
        self.meta.keys_inserted
    }

    /// Returns the kernel that runs batches.
    pub fn kernel(&self) -> Kernel {
        self.meta.kernel
    }

    /// Sets the kernel that runs batches.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        RemovableFilter { meta: Meta { kernel, ..self.meta }, ..self }
    }
}

/// A lookup reads two cache lines. Batches prefetch them if the filter exceeds the cache.
/// [`prefetch_hash`](Filter::prefetch_hash) also serves insertions and removals.
impl<D: Lines> Filter for RemovableFilter<D> {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        kernel::contains_one(self.lines(), hash)
    }

    #[inline]
    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        check_words(hashes.len(), words)?;
        kernel::contains(self.meta.kernel, self.lines(), hashes, words);
        Ok(())
    }

    #[inline]
    fn prefetch_hash(&self, hash: u64) {
        let lines = self.lines();
        for start in Place::new(hash, lines.len() as u32).offsets() {
            crate::prefetch(lines, start);
            crate::prefetch(lines, start + size_of::<Block>() - 1);
        }
    }

    #[inline]
    fn key_hash(&self) -> KeyHash {
        self.meta.key_hash
    }

    #[inline]
    fn hash_key(&self, key: &[u8]) -> Option<u64> {
        Some(self.hasher().ok()?.hash(key))
    }
}

/// Compares the hash and the lines; kernel and storage do not matter. Filters with the same keys
/// can differ if the keys were inserted in another order.
impl<D: Lines, E: Lines> PartialEq<RemovableFilter<E>> for RemovableFilter<D> {
    fn eq(&self, other: &RemovableFilter<E>) -> bool {
        self.meta.key_hash == other.meta.key_hash && self.lines() == other.lines()
    }
}

impl<D: Lines> Eq for RemovableFilter<D> {}

/// Shows all properties, without the tags.
impl<D: Lines> core::fmt::Debug for RemovableFilter<D> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RemovableFilter")
            .field("lines", &self.lines().len())
            .field("keys_inserted", &self.meta.keys_inserted)
            .field("key_hash", &self.meta.key_hash)
            .field("kernel", &self.meta.kernel)
            .field("huge_pages", &self.meta.huge_pages)
            .finish()
    }
}
