//! The filter, generic over where its lines are: its lookups and facts.

use blocked_bloom::parts::{BlockBuffer, HEADER_BYTES, check_words};
use blocked_bloom::{Block, Filter, Kernel, KeyHash, LengthError, Stored};

use crate::kernel;
use crate::tags::{self, LANES, Place};

/// A filter that keys can be removed from, generic over where its lines are.
///
/// | type | where the lines are | made by |
/// |---|---|---|
/// | `RemovableFilter` | in memory of its own; keys can be added and removed | [`RemovableOptions::empty_filter`], [`from_hashes`](Self::from_hashes), [`to_filter`](Self::to_filter) |
/// | `RemovableFilter<Stored<B>>` | in stored bytes that `B` holds: a mapped file, an `Arc<[u8]>`, a `Vec<u8>` | [`from_bytes`](RemovableFilter::from_bytes), [`open_or_pass_all`](RemovableFilter::open_or_pass_all) |
/// | `RemovableFilter<&[Block]>` | borrowed from another filter, `Copy` | [`view`](Self::view) |
///
/// All are looked up alike, and answer "maybe" or "certainly absent" as a Bloom filter does, at
/// 18.3 bits per key, 0.085 % false positives and two cache lines a lookup. **Only remove keys that
/// were added**: the removal of another can take the tag of a key that is there, which is then
/// absent; `docs/removable.md` has the rate. A key that was added several times is there until it
/// was removed as often.
///
/// - Up to 64 copies of a key fit, 32 if its two lines are the same (one key in as many as there
///   are lines; any key where there is one line), and fewer where other keys have taken lanes.
/// - It does not grow. [`RemovableError::Full`] says that a key was not added, and the filter is as
///   it was. A tag does not have enough of the hash to be moved to a filter of another size, so a
///   larger one is made from the keys, which whoever removes keys has:
///   [`from_hashes`](Self::from_hashes). By default the first key is rejected at nine tenths of the
///   [capacity](Self::capacity) and the filter is for seven eighths of it.
/// - Filters cannot be merged.
/// - Stored bytes may have any alignment; if the filter starts at a multiple of 64 in memory, each
///   line is one cache line, else it straddles two. If their owner lends more or fewer bytes than
///   were opened, every answer is "maybe".
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
/// // Larger, from the keys.
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

/// Everything about a filter except its lines.
#[derive(Clone, Copy)]
pub(crate) struct Meta {
    pub(crate) key_hash: KeyHash,
    /// Lanes that are not empty.
    pub(crate) keys_inserted: u64,
    pub(crate) kernel: Kernel,
    /// Whether copies are advised to be on huge pages.
    pub(crate) huge_pages: bool,
}

/// Where the lines of a filter are. Nobody else can implement it, since this module is private.
///
/// ```
/// use blocked_bloom::Filter;
/// use blocked_bloom_removable::RemovableOptions;
/// let filter = RemovableOptions::new(100).empty_filter()?;
/// assert_eq!(filter.contains("apple"), filter.view().contains("apple"));
/// # Ok::<(), blocked_bloom_removable::RemovableError>(())
/// ```
pub trait Lines {
    /// 1 to 2^32 - 1 lines; or none, if they are not known: then every answer is "maybe".
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
    /// The same filter, borrowed. Free.
    #[inline]
    pub fn view(&self) -> RemovableFilter<&[Block]> {
        RemovableFilter { data: self.lines(), meta: self.meta }
    }

    /// The lines, 1 to 2^32 - 1, as [`tags`](crate::tags) defines them; none if the filter [passes
    /// all](Self::is_pass_all).
    #[inline]
    pub fn lines(&self) -> &[Block] {
        self.data.lines()
    }

    /// Whether the filter answers "maybe" to everything: it stands in for
    /// [damaged](RemovableFilter::open_or_pass_all) bytes, or the owner of the stored bytes lends
    /// others than were opened.
    pub fn is_pass_all(&self) -> bool {
        self.lines().is_empty()
    }

    /// Whether every key is certainly absent.
    pub fn is_empty(&self) -> bool {
        self.meta.keys_inserted == 0 && !self.is_pass_all()
    }

    /// Bytes of the lines.
    pub fn memory_bytes(&self) -> u64 {
        size_of_val(self.lines()) as u64
    }

    /// Keys that would fit if they were spread evenly: 32 for each line. Keys are rejected from
    /// nine tenths of it on.
    pub fn capacity(&self) -> u64 {
        self.lines().len() as u64 * LANES as u64
    }

    /// [`keys_inserted`](Self::keys_inserted) divided by [`capacity`](Self::capacity), 0 to 1: what
    /// to watch for making a larger filter in time. 1 if the filter passes all.
    pub fn load(&self) -> f64 {
        match self.capacity() {
            0 => 1.0,
            capacity => self.meta.keys_inserted as f64 / capacity as f64,
        }
    }

    /// The fraction of absent keys that are taken for present, 0 to 1, that the number of tags
    /// predicts: each tag in a key's two lines equals the key's own with a chance of 1 in 65,535.
    pub fn expected_false_positive_rate(&self) -> f64 {
        if self.is_pass_all() {
            return 1.0;
        }
        tags::false_positive_rate(self.load())
    }
}

impl<D> RemovableFilter<D> {
    /// Keys in the filter, copies included: inserted, and not removed since.
    pub fn keys_inserted(&self) -> u64 {
        self.meta.keys_inserted
    }

    /// The kernel of batches.
    pub fn kernel(&self) -> Kernel {
        self.meta.kernel
    }

    /// The same filter, with batches looked up, added and removed by `kernel`.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        RemovableFilter { meta: Meta { kernel, ..self.meta }, ..self }
    }
}

/// Cost of a lookup: two cache lines, prefetched in batches where the filter outgrows the cache.
/// [`prefetch_hash`](Filter::prefetch_hash) serves additions and removals too.
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

/// Same hash and same lines; neither the kernel nor where the bytes are matters. Filters that hold
/// the same keys have other lines if they came in another order.
impl<D: Lines, E: Lines> PartialEq<RemovableFilter<E>> for RemovableFilter<D> {
    fn eq(&self, other: &RemovableFilter<E>) -> bool {
        self.meta.key_hash == other.meta.key_hash && self.lines() == other.lines()
    }
}

impl<D: Lines> Eq for RemovableFilter<D> {}

/// The shape, without the tags.
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
