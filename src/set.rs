//! Many filters looked up together: one key against the filters of all tables, or a batch of keys. Borrows the filters' blocks, and reads
//! no header when it answers.

mod matrix;
mod walk;

use alloc::vec::Vec;

use crate::bitmask::{self, Bitmask, check_length};
use crate::error::{AllocError, KeyError, LengthError, SetError};
use crate::filter::BloomFilterRef;
use crate::hash::{KeyHash, KeyHasher};
use crate::kernel::{Kernel, Prefetch, Source, is_aligned};

pub use matrix::BitMatrix;

/// The filters of many tables, all of one hash and seed, looked up together.
///
/// A key's bits in its block depend on the hash and the number of probes only: they are computed once, the lines of all filters
/// are prefetched, and each filter then costs one comparison of a line. Filters may have any sizes, numbers of probes and
/// alignments; pass-all filters answer "maybe" as ever. Answers are those of
/// [`contains_hash`](BloomFilterRef::contains_hash), filter by filter.
///
/// Making one costs an allocation and some 7 ns per filter, and it borrows the filters: make it for a batch, or keep it as long as the tables
/// are borrowed. For one key where no set is at hand, [`prefetch_hash`](BloomFilterRef::prefetch_hash) is faster.
///
/// ```
/// use blocked_bloom::{Bitmask, FilterOptions, FilterSet, Sizing};
/// let options = FilterOptions::new(Sizing::BitsPerKey(16.0));
/// let mut tables = Vec::new();
/// for keys in [["apple", "banana"], ["cherry", "damson"]] {
///     let mut builder = options.builder();
///     builder.extend(keys)?;
///     tables.push(builder.finish()?);
/// }
/// let set = FilterSet::new(options.key_hash(), &tables)?;
/// let mut hits = Bitmask::new();
/// set.contains("cherry", &mut hits);
/// assert!(hits.hits().eq([1])); // only the second table need be read
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct FilterSet<'a> {
    key_hash: KeyHash,
    kernel: Kernel,
    /// Of each filter, its blocks and the index of its number of probes in `probes`.
    sources: Vec<Source<'a>>,
    /// The numbers of probes that occur, 1 to 30, each once.
    probes: Vec<u8>,
    /// Size of all blocks, saturating.
    bytes: usize,
    /// Whether each block is one cache line.
    aligned: bool,
}

impl<'a> FilterSet<'a> {
    /// Most filters of a set: 65,536.
    pub const MAX_FILTERS: usize = 1 << 16;

    /// The filters, to be looked up with hashes of `key_hash`. There may be none. Lists of filters, of references to them, of views, of
    /// [`BloomFilterBytes`](crate::BloomFilterBytes) by reference: whatever turns into a view.
    ///
    /// # Errors
    ///
    /// [`SetError::HashMismatch`] naming the first filter of another hash or seed, which would answer "absent" for keys that
    /// it holds; [`SetError::TooManyFilters`] above [`MAX_FILTERS`](Self::MAX_FILTERS); [`SetError::Alloc`].
    pub fn new<F: Into<BloomFilterRef<'a>>>(
        key_hash: KeyHash,
        filters: impl IntoIterator<Item = F>,
    ) -> Result<Self, SetError> {
        let mut set = FilterSet {
            key_hash,
            kernel: Kernel::default(),
            sources: Vec::new(),
            probes: Vec::new(),
            bytes: 0,
            aligned: true,
        };
        let filters = filters.into_iter();
        set.reserve(filters.size_hint().0.min(Self::MAX_FILTERS))?;
        for filter in filters {
            set.push(filter.into())?;
        }
        Ok(set)
    }

    fn reserve(&mut self, filters: usize) -> Result<(), AllocError> {
        let bytes = (filters * size_of::<Source<'_>>()) as u64;
        self.sources.try_reserve(filters).map_err(|_| AllocError { bytes })
    }

    fn push(&mut self, filter: BloomFilterRef<'a>) -> Result<(), SetError> {
        let (index, expected) = (self.len(), self.key_hash);
        match filter.key_hash() {
            _ if index == Self::MAX_FILTERS => {
                return Err(SetError::TooManyFilters { limit: Self::MAX_FILTERS });
            }
            found if found != expected => {
                return Err(SetError::HashMismatch { index, found, expected });
            }
            _ => self.reserve(1)?,
        }
        let (blocks, probes) = filter.effective();
        let probes = probes as u8;
        let which = self.probes.iter().position(|&known| known == probes);
        let which = which.unwrap_or_else(|| {
            self.probes.push(probes);
            self.probes.len() - 1
        });
        self.sources.push(Source::new(blocks, which));
        self.bytes = self.bytes.saturating_add(size_of_val(blocks));
        self.aligned &= is_aligned(blocks);
        Ok(())
    }

    /// Number of filters.
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Whether there is no filter.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// The hash and seed of all filters.
    pub fn key_hash(&self) -> KeyHash {
        self.key_hash
    }

    /// The hasher of the set's keys.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the caller hashes.
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.key_hash.hasher()
    }

    /// The kernel that answers, whichever kernels the filters had.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The same set, answered by `kernel`.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        FilterSet { kernel, ..self }
    }

    /// Looks up the key in every filter; `hits` then has one bit per filter.
    ///
    /// Filters of [`KeyHash::Caller`] cannot hash a key and answer "maybe".
    pub fn contains(&self, key: impl AsRef<[u8]>, hits: &mut Bitmask) {
        match self.hasher() {
            Ok(hasher) => self.contains_hash(hasher.hash(key), hits),
            Err(_) => bitmask::fill_with_hits(hits.reset(self.len()), self.len()),
        }
    }

    /// Looks up the key with this hash in every filter; `hits` then has one bit per filter.
    ///
    /// The hash must be of the set's [`hasher`](Self::hasher).
    ///
    /// Cost: one cache line per filter, all prefetched before the first is tested.
    pub fn contains_hash(&self, hash: u64, hits: &mut Bitmask) {
        self.one(hash, hits.reset(self.len()));
    }

    /// [`contains_hash`](Self::contains_hash) into words of the caller's: up to 64 filters answer in one word.
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per 64 filters, rounded up; nothing is written then.
    pub fn contains_hash_into(&self, hash: u64, words: &mut [u64]) -> Result<(), LengthError> {
        check_length(self.len(), words)?;
        self.one(hash, words);
        Ok(())
    }

    /// Looks up every hash in every filter; `hits` then has one bit per filter and hash.
    ///
    /// The hashes must be of the set's [`hasher`](Self::hasher).
    ///
    /// Cost: about one cache line per filter and hash. Filters are walked one after the other, each with the whole batch, and the next
    /// one's lines are prefetched while the last keys are tested.
    ///
    /// # Errors
    ///
    /// [`SetError::Alloc`]; `hits` is as it was.
    pub fn contains_hashes(&self, hashes: &[u64], hits: &mut BitMatrix) -> Result<(), SetError> {
        self.all(hashes, hits.reset(self.len(), hashes.len())?);
        Ok(())
    }

    /// [`contains_hashes`](Self::contains_hashes) into words of the caller's, laid out as [`BitMatrix::words`].
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per filter and 64 hashes, rounded up; nothing is written then.
    pub fn contains_hashes_into(
        &self,
        hashes: &[u64],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        self.check_words(hashes, words)?;
        self.all(hashes, words);
        Ok(())
    }

    /// Looks up the pairs of a filter and a hash whose bits are set, and clears those that are certainly absent. Other pairs are not
    /// looked up and stay zero: keys outside a table's range cost nothing.
    ///
    /// ```
    /// use blocked_bloom::{BitMatrix, BloomFilterRef, FilterSet, KeyHash};
    /// let set = FilterSet::new(KeyHash::default(), [BloomFilterRef::pass_all(KeyHash::default()); 2])?;
    /// let mut pairs = BitMatrix::new();
    /// pairs.clear(2, 4)?;
    /// pairs.set_keys(0, 0..2)?; // the first table ends before the third key of this batch
    /// pairs.set_keys(1, 1..4)?;
    /// set.retain_hashes(&[10, 20, 30, 40], &mut pairs)?;
    /// assert_eq!(pairs.words(), [0b0011, 0b1110]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Cost: about one cache line per pair that is looked up.
    ///
    /// # Errors
    ///
    /// [`SetError::Shape`] if the matrix is of other numbers of filters and keys; it is left as it was.
    pub fn retain_hashes(&self, hashes: &[u64], pairs: &mut BitMatrix) -> Result<(), SetError> {
        let (filters, keys) = (pairs.filters(), pairs.keys());
        let (expected_filters, expected_keys) = (self.len(), hashes.len());
        if (filters, keys) != (expected_filters, expected_keys) {
            return Err(SetError::Shape { filters, keys, expected_filters, expected_keys });
        }
        self.some(hashes, pairs.words_mut());
        Ok(())
    }

    /// [`retain_hashes`](Self::retain_hashes) in words of the caller's, laid out as [`BitMatrix::words`]. Bits past the last key are
    /// cleared.
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per filter and 64 hashes, rounded up; nothing is written then.
    pub fn retain_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        self.check_words(hashes, words)?;
        self.some(hashes, words);
        Ok(())
    }

    fn check_words(&self, hashes: &[u64], words: &[u64]) -> Result<(), LengthError> {
        match matrix::words(self.len(), hashes.len()) {
            expected if words.len() == expected => Ok(()),
            expected => Err(LengthError { words: words.len(), expected }),
        }
    }

    fn prefetch(&self) -> Prefetch {
        Prefetch::of_many(self.bytes, self.aligned)
    }
}

/// The shape, without the bits.
impl core::fmt::Debug for FilterSet<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FilterSet")
            .field("filters", &self.len())
            .field("bytes", &self.bytes)
            .field("probes", &self.probes)
            .field("key_hash", &self.key_hash)
            .field("kernel", &self.kernel)
            .finish()
    }
}
