//! A sharded filter and its bytes.

use blocked_bloom::parts::{BlockBuffer, check_words, fill_with_hits};
use blocked_bloom::{AllocError, Block, Filter, Kernel, KeyHash, LengthError};

use crate::error::RibbonError;
use crate::format::Meta;
use crate::kernel::{self, Functions};
use crate::scheme::{Entry, Shards};

/// A static filter of sharded Ribbon-64 with its bytes: built ([`RibbonBytes`]), or opened from any
/// owner of bytes, such as a mapped file, a `Vec<u8>`, an `Arc<[u8]>` or a `&[u8]`.
///
/// Keys cannot be inserted later and filters cannot be merged, since every bit depends on many
/// keys.
///
/// The owner need not return the same slice every time. If the length differs from the verified
/// length, every answer is "maybe". No contents make a lookup read outside of the bytes.
///
/// ```
/// use blocked_bloom::{Bitmask, Filter};
/// use blocked_bloom_ribbon::{RibbonFilter, RibbonOptions};
/// let options = RibbonOptions::new(0.001);
/// let mut builder = options.builder();
/// builder.extend(["apple", "cherry"])?;
/// let filter = builder.finish()?;
/// let stored: &[u8] = filter.as_bytes();
///
/// let filter = RibbonFilter::from_bytes(stored, options.key_hash())?;
/// let mut hits = Bitmask::new();
/// filter.contains_batch(&["apple", "banana", "cherry"], &mut hits);
/// assert!(hits.hits().eq([0, 2]));
/// # Ok::<(), blocked_bloom_ribbon::RibbonError>(())
/// ```
#[derive(Clone, Copy)]
pub struct RibbonFilter<B = RibbonBytes> {
    bytes: B,
    meta: Meta,
    functions: Functions,
}

impl<B: AsRef<[u8]>> RibbonFilter<B> {
    /// Opens a stored filter that uses this hash, and verifies it completely: header, length, body
    /// checksum and directory. Cost: reads all bytes once.
    ///
    /// # Errors
    ///
    /// [`RibbonError::Header`] or [`RibbonError::Shard`] for the first fault. Another hash, seed or
    /// tag is `HeaderError::HashMismatch` in `Header`. Rejected bytes must not be used to answer
    /// "absent".
    pub fn from_bytes(bytes: B, key_hash: KeyHash) -> Result<Self, RibbonError> {
        let meta = Meta::verify(bytes.as_ref(), Some(key_hash))?;
        Ok(RibbonFilter::from_verified(bytes, meta))
    }

    /// Opens a stored filter with any hash and verifies it completely, for tools that describe
    /// filters. Compare [`key_hash`](Filter::key_hash) before you look up a hash.
    ///
    /// # Errors
    ///
    /// The errors of [`from_bytes`](Self::from_bytes), except for another hash.
    pub fn from_bytes_any_hash(bytes: B) -> Result<Self, RibbonError> {
        let meta = Meta::verify(bytes.as_ref(), None)?;
        Ok(RibbonFilter::from_verified(bytes, meta))
    }

    /// Opens a stored filter that uses this hash and verifies only its header and length, for bytes
    /// that were verified by other means. Cost: reads 64 bytes.
    ///
    /// # Errors
    ///
    /// [`RibbonError::Header`].
    pub fn from_bytes_trusted(bytes: B, key_hash: KeyHash) -> Result<Self, RibbonError> {
        let (_, meta) = Meta::read(bytes.as_ref(), Some(key_hash))?;
        Ok(RibbonFilter::from_verified(bytes, meta))
    }

    /// Opens a stored filter like [`from_bytes`](Self::from_bytes), and never fails: for unusable
    /// bytes it returns a filter that answers "maybe" to every key, plus the error to log. Either
    /// filter keeps the bytes.
    ///
    /// ```
    /// use blocked_bloom::Filter;
    /// use blocked_bloom_ribbon::{RibbonFilter, RibbonOptions};
    /// let options = RibbonOptions::new(0.01);
    /// let stored = options.builder().finish()?;
    /// let (filter, error) = RibbonFilter::open_or_pass_all(stored.as_bytes(), options.key_hash());
    /// assert!(error.is_none() && !filter.contains("apple"));
    /// let (filter, error) = RibbonFilter::open_or_pass_all(&[0; 64], options.key_hash());
    /// assert!(error.is_some() && filter.contains("apple"));
    /// # Ok::<(), blocked_bloom_ribbon::RibbonError>(())
    /// ```
    pub fn open_or_pass_all(bytes: B, key_hash: KeyHash) -> (Self, Option<RibbonError>) {
        let (meta, error) = match Meta::verify(bytes.as_ref(), Some(key_hash)) {
            Ok(meta) => (meta, None),
            Err(error) => (Meta::pass_all(key_hash, 0), Some(error)),
        };
        (RibbonFilter::from_verified(bytes, meta), error)
    }

    /// Returns the same filter with borrowed bytes.
    pub fn view(&self) -> RibbonFilter<&[u8]> {
        RibbonFilter { bytes: self.bytes.as_ref(), meta: self.meta, functions: self.functions }
    }

    /// Returns the stored filter, which is also its form in memory. A pass-all filter returns the
    /// rejected bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Returns the owner of the bytes.
    pub fn into_inner(self) -> B {
        self.bytes
    }

    /// Returns `None` if the length of the bytes differs from the verified length.
    #[inline]
    fn parts(&self) -> Option<Shards<'_>> {
        self.meta.parts(self.bytes.as_ref())
    }

    /// Returns the number of inserted keys. Adjacent equal keys count once.
    pub fn keys_inserted(&self) -> u64 {
        self.meta.keys
    }

    /// Returns the number of shards, each of about 3,900 keys; 0 without keys.
    pub fn shards(&self) -> u32 {
        self.meta.shards
    }

    /// Returns the number of columns of most blocks of slots, 1 to 32. An absent key passes each
    /// with a probability of 1/2. A pass-all filter returns 0.
    pub fn columns(&self) -> u32 {
        self.meta.columns
    }

    /// Returns the size of the filter in bytes, in memory and stored, including the header.
    pub fn memory_bytes(&self) -> u64 {
        self.as_bytes().len() as u64
    }

    /// Returns the stored bits per key; 0 without keys.
    pub fn bits_per_key(&self) -> f64 {
        match self.meta.keys {
            0 => 0.0,
            keys => 8.0 * self.memory_bytes() as f64 / keys as f64,
        }
    }

    /// Returns the expected fraction of absent keys that pass, computed from the shapes of the
    /// shards: `2^-columns`, and twice that in blocks with one column less. Cost: reads the
    /// directory.
    pub fn expected_false_positive_rate(&self) -> f64 {
        match self.parts() {
            None => 1.0,
            Some(Shards { directory: [], .. }) => 0.0,
            Some(shards) => {
                let rate = |&word: &_| Entry::from_word(word).rate(shards.columns);
                shards.directory.iter().map(rate).sum::<f64>() / shards.directory.len() as f64
            }
        }
    }

    /// Returns the kernel that runs lookups.
    pub fn kernel(&self) -> Kernel {
        self.functions.kernel
    }

    /// Sets the kernel that runs lookups.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        RibbonFilter { functions: kernel.into(), ..self }
    }
}

impl<B> RibbonFilter<B> {
    /// Creates a filter of bytes that were verified.
    pub(crate) fn from_verified(bytes: B, meta: Meta) -> Self {
        RibbonFilter { bytes, meta, functions: Kernel::default().into() }
    }
}

/// A lookup reads eight bytes of the directory, and 16 bytes per column in one to three cache
/// lines. The directory (8 bytes per 3,900 keys) is not prefetched, because locating the other
/// lines requires reading it.
impl<B: AsRef<[u8]>> Filter for RibbonFilter<B> {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.parts().is_none_or(|shards| kernel::contains_one_64(self.functions, &shards, hash))
    }

    #[inline]
    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        check_words(hashes.len(), words)?;
        match self.parts() {
            Some(shards) => kernel::contains_64(self.functions, &shards, hashes, words),
            None => fill_with_hits(words, hashes.len()),
        }
        Ok(())
    }

    #[inline]
    fn prefetch_hash(&self, hash: u64) {
        if let Some(shards) = self.parts() {
            kernel::prefetch_equation(&shards, hash);
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

/// Compares the bytes, and whether both are pass-all filters; the kernel does not matter.
impl<B: AsRef<[u8]>, C: AsRef<[u8]>> PartialEq<RibbonFilter<C>> for RibbonFilter<B> {
    fn eq(&self, other: &RibbonFilter<C>) -> bool {
        self.meta == other.meta && self.as_bytes() == other.as_bytes()
    }
}

impl<B: AsRef<[u8]>> Eq for RibbonFilter<B> {}

/// Shows the shape, without the bits.
impl<B> core::fmt::Debug for RibbonFilter<B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RibbonFilter")
            .field("meta", &self.meta)
            .field("kernel", &self.functions.kernel)
            .finish_non_exhaustive()
    }
}

/// The bytes of a built filter, aligned to cache lines. Large buffers are advised to use huge pages
/// if the options allow it.
///
/// ```
/// use blocked_bloom_ribbon::RibbonOptions;
/// let bytes = RibbonOptions::default().builder().finish()?.into_inner();
/// assert_eq!(bytes.as_ref().len(), 64); // a header
/// # Ok::<(), blocked_bloom_ribbon::RibbonError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RibbonBytes {
    buffer: BlockBuffer,
    /// Length of the filter, at most that of the buffer.
    len: usize,
}

impl RibbonBytes {
    /// Allocates this many zero bytes.
    pub(crate) fn zeroed(len: usize, huge_pages: bool) -> Result<Self, AllocError> {
        let blocks = u32::try_from(len.div_ceil(size_of::<Block>()));
        let blocks = blocks.map_err(|_| AllocError::new(len as u64))?;
        let buffer = BlockBuffer::zeroed(blocks, huge_pages)?;
        Ok(RibbonBytes { buffer, len })
    }

    pub(crate) fn as_mut(&mut self) -> &mut [u8] {
        &mut self.buffer.as_flattened_mut()[..self.len]
    }
}

impl AsRef<[u8]> for RibbonBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        &self.buffer.as_flattened()[..self.len]
    }
}
