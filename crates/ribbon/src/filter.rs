//! A sharded filter and the bytes it lives in.

use blocked_bloom::parts::{BlockBuffer, check_words, fill_with_hits};
use blocked_bloom::{AllocError, Block, Filter, Kernel, KeyHash, LengthError};

use crate::error::RibbonError;
use crate::format::Meta;
use crate::kernel::{self, Functions};
use crate::scheme::{Entry, Shards};

/// A static filter of sharded Ribbon-64, together with its bytes: those that a builder made
/// ([`RibbonBytes`]), or others that it was opened from, a mapped file, a `Vec<u8>`, an
/// `Arc<[u8]>`, a `&[u8]`.
///
/// Keys cannot be added, nor filters merged: every bit depends on the equations of many keys.
///
/// The owner of the bytes is not trusted to lend the same slice twice: if its length differs from
/// what was verified, the answer is "maybe", and no contents make a lookup read outside.
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
    /// Opens a stored filter of this hash and verifies everything: header, length, the checksum of
    /// what follows, and the directory. Cost: reads everything once.
    ///
    /// # Errors
    ///
    /// [`RibbonError::Header`] or [`RibbonError::Shard`] for the first fault, and
    /// [`HeaderError::HashMismatch`] in `Header` for another hash, seed or tag. The filter must not
    /// be used to answer "absent" then.
    pub fn from_bytes(bytes: B, key_hash: KeyHash) -> Result<Self, RibbonError> {
        let meta = Meta::verify(bytes.as_ref(), Some(key_hash))?;
        Ok(RibbonFilter::from_verified(bytes, meta))
    }

    /// Opens a stored filter of any hash and verifies all of it, as
    /// [`from_bytes`](Self::from_bytes) does: for tools that describe filters. Before you look up a
    /// hash, compare [`key_hash`](Filter::key_hash).
    ///
    /// # Errors
    ///
    /// [`RibbonError`], as `from_bytes` but for another hash.
    pub fn from_bytes_any_hash(bytes: B) -> Result<Self, RibbonError> {
        let meta = Meta::verify(bytes.as_ref(), None)?;
        Ok(RibbonFilter::from_verified(bytes, meta))
    }

    /// Opens a stored filter of this hash and verifies header and length only, for bytes whose
    /// owner has checksums of its own. Cost: reads 64 bytes.
    ///
    /// # Errors
    ///
    /// [`RibbonError::Header`].
    pub fn from_bytes_trusted(bytes: B, key_hash: KeyHash) -> Result<Self, RibbonError> {
        let (_, meta) = Meta::read(bytes.as_ref(), Some(key_hash))?;
        Ok(RibbonFilter::from_verified(bytes, meta))
    }

    /// Opens a stored filter as [`from_bytes`](Self::from_bytes) does, and never fails: for bytes
    /// that cannot be used it returns a filter that answers "maybe" to everything, plus the error
    /// to log. The filter keeps the bytes either way.
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

    /// The same filter, borrowed.
    pub fn view(&self) -> RibbonFilter<&[u8]> {
        RibbonFilter { bytes: self.bytes.as_ref(), meta: self.meta, functions: self.functions }
    }

    /// The stored filter, which is also its form in memory; the bytes that were rejected, if the
    /// filter stands in for a damaged one.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Gives the bytes back.
    pub fn into_inner(self) -> B {
        self.bytes
    }

    /// `None` if the bytes do not have the length that was verified.
    #[inline]
    fn parts(&self) -> Option<Shards<'_>> {
        self.meta.parts(self.bytes.as_ref())
    }

    /// Keys that were added, adjacent equal ones counted once.
    pub fn keys_inserted(&self) -> u64 {
        self.meta.keys
    }

    /// Shards, of some 3,900 keys each; 0 if there are no keys.
    pub fn shards(&self) -> u32 {
        self.meta.shards
    }

    /// Columns of most blocks of slots, 1 to 32: an absent key passes each with a probability of
    /// one half. 0 of a filter that answers "maybe" to everything.
    pub fn columns(&self) -> u32 {
        self.meta.columns
    }

    /// Bytes of the filter, in memory and stored, header included.
    pub fn memory_bytes(&self) -> u64 {
        self.as_bytes().len() as u64
    }

    /// Bits of the stored filter for each key; 0 without keys.
    pub fn bits_per_key(&self) -> f64 {
        match self.meta.keys {
            0 => 0.0,
            keys => 8.0 * self.memory_bytes() as f64 / keys as f64,
        }
    }

    /// The fraction of absent keys that pass, from the shapes of the shards: `2^-columns`, and
    /// twice that in blocks with one column less. Cost: reads the directory.
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

    /// The kernel that answers lookups.
    pub fn kernel(&self) -> Kernel {
        self.functions.kernel
    }

    /// The same filter, with lookups answered by `kernel`.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        RibbonFilter { functions: kernel.into(), ..self }
    }
}

impl<B> RibbonFilter<B> {
    /// Of bytes that have been verified.
    pub(crate) fn from_verified(bytes: B, meta: Meta) -> Self {
        RibbonFilter { bytes, meta, functions: Kernel::default().into() }
    }
}

/// Cost of a lookup: eight bytes of the directory, and 16 bytes for each bit of the rate, in one to
/// three cache lines. The directory, 8 bytes for 3,900 keys, is not prefetched, but read to find
/// the other lines.
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
            kernel::prefetch_64(&shards, hash);
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

/// Same bytes, and both are filters of them or neither is; the kernel does not matter.
impl<B: AsRef<[u8]>, C: AsRef<[u8]>> PartialEq<RibbonFilter<C>> for RibbonFilter<B> {
    fn eq(&self, other: &RibbonFilter<C>) -> bool {
        self.meta == other.meta && self.as_bytes() == other.as_bytes()
    }
}

impl<B: AsRef<[u8]>> Eq for RibbonFilter<B> {}

/// The shape, without the bits.
impl<B> core::fmt::Debug for RibbonFilter<B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RibbonFilter")
            .field("meta", &self.meta)
            .field("kernel", &self.functions.kernel)
            .finish_non_exhaustive()
    }
}

/// The bytes of a filter that was built, in memory aligned to cache lines and, if the options allow
/// it, advised to be on huge pages where it is large.
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
    /// At most those of the buffer.
    len: usize,
}

impl RibbonBytes {
    /// This many zeros.
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
