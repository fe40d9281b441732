//! Opening stored filters, and lookups in and properties of split-block filters in any storage.

use blocked_bloom::parts::{check_words, look_up_keys, stored};
use blocked_bloom::{Filter, Kernel, KeyHash, LengthError};

use crate::error::SplitBlockError;
use crate::filter::{SplitBlockFilter, StoredSplitBlocks};
use crate::hash::{KEY_HASH, hash_value};
use crate::header::{self, Header};
use crate::kernel::{self, Lookup};
use crate::split_block::{self, SplitBlock};

impl<B: AsRef<[u8]>> SplitBlockFilter<StoredSplitBlocks<B>> {
    /// Opens the bytes of one filter: header and bitset, and nothing after them.
    ///
    /// Cost: reads only the header, and does not allocate. The bitset has no checksum: see the
    /// [crate](crate).
    ///
    /// # Errors
    ///
    /// [`SplitBlockError`] if the header is damaged or has another algorithm, hash or compression,
    /// if the bitset's length is not a positive multiple of 32 up to 2 GiB - 32, or if the bytes
    /// are shorter or longer than header and bitset.
    ///
    /// ```
    /// use blocked_bloom::Filter;
    /// use blocked_bloom_split::SplitBlockFilter;
    /// let mut filter = SplitBlockFilter::new(100, 0.01)?;
    /// filter.insert("apple");
    /// let stored = filter.to_bytes();
    ///
    /// let filter = SplitBlockFilter::from_bytes(&stored)?;
    /// assert!(filter.contains("apple"));
    /// # Ok::<(), blocked_bloom_split::SplitBlockError>(())
    /// ```
    pub fn from_bytes(bytes: B) -> Result<Self, SplitBlockError> {
        // Uses the slice whose length was recorded; the owner may lend others later.
        let stored = stored(bytes);
        let bytes = stored.bytes().unwrap_or_default();
        let header = Header::read(bytes, 0)?;
        let (found, expected) = (bytes.len() as u64, header.total_bytes());
        if found != expected {
            return Err(SplitBlockError::Length { found, expected });
        }
        let data = StoredSplitBlocks { stored, start: header.header_bytes };
        Ok(SplitBlockFilter::from_data(data, Kernel::default()))
    }

    /// Returns the owner of the bytes.
    pub fn into_inner(self) -> B {
        self.data.stored.into_inner()
    }
}

impl<'a> SplitBlockFilter<&'a [SplitBlock]> {
    /// Opens a filter without a header: only the bitset.
    ///
    /// # Errors
    ///
    /// [`SplitBlockError::BitsetLength`] unless the length is a positive multiple of 32 up to 2 GiB
    /// - 32.
    pub fn from_bitset(bitset: &'a [u8]) -> Result<Self, SplitBlockError> {
        header::bitset_length(i64::try_from(bitset.len()).unwrap_or(i64::MAX))?;
        let (blocks, _) = bitset.as_chunks();
        Ok(SplitBlockFilter::from_data(blocks, Kernel::default()))
    }
}

impl<D: AsRef<[SplitBlock]>> SplitBlockFilter<D> {
    /// Returns the blocks, 1 to 67,108,863. `blocks().as_flattened()` is the bitset.
    #[inline]
    pub fn blocks(&self) -> &[SplitBlock] {
        self.data.as_ref()
    }

    /// Returns the size of the blocks in bytes.
    pub fn memory_bytes(&self) -> u64 {
        size_of_val(self.blocks()) as u64
    }

    /// Returns whether no bit is set, so that every value is certainly absent, as for a column of
    /// nulls. Cost: reads blocks up to the first set bit.
    pub fn is_empty(&self) -> bool {
        self.blocks().iter().all(|block| *block == [0; 32])
    }

    /// Returns the fraction of set bits, 0 to 1. Cost: reads every block.
    pub fn fill_ratio(&self) -> f64 {
        let ones = |word: &[u8; 4]| u64::from(u32::from_le_bytes(*word).count_ones());
        let (words, _) = self.blocks().as_flattened().as_chunks();
        words.iter().map(ones).sum::<u64>() as f64 / (32 * words.len()) as f64
    }

    /// Returns the actual false-positive rate, 0 to 1, computed from the bits: the mean over all
    /// blocks of the product of the fills of the block's eight words.
    ///
    /// Writers estimate `fill_ratio^8` instead, which is too low if blocks fill unevenly. Cost:
    /// reads every block.
    pub fn estimated_false_positive_rate(&self) -> f64 {
        let fill = |word: &[u8; 4]| f64::from(u32::from_le_bytes(*word).count_ones()) / 32.0;
        let rate = |block: &SplitBlock| block.as_chunks().0.iter().map(fill).product::<f64>();
        self.blocks().iter().map(rate).sum::<f64>() / self.blocks().len() as f64
    }
}

impl<D: AsRef<[SplitBlock]>> SplitBlockFilter<D> {
    /// Calls `work` with a function for single lookups. The kernel is selected once for all of
    /// them; [`contains_hash`](Filter::contains_hash) makes an indirect call each time.
    ///
    /// Code of `work` that the compiler inlines, such as a closure with a loop, is compiled for
    /// AVX2 if the kernel uses it. Otherwise lookups cost as much as `contains_hash`. In a filter
    /// that fits the cache, a lookup takes half of that; in larger filters,
    /// [batches](Filter::contains_hashes) are much faster.
    ///
    /// ```
    /// use blocked_bloom_split::SplitBlockFilter;
    /// let mut filter = SplitBlockFilter::with_blocks(4)?;
    /// filter.insert_hash(7);
    /// let hits = filter.with_lookup(|lookup| (0..9).filter(|&h| lookup.contains_hash(h)).count());
    /// assert_eq!(hits, 1);
    /// # Ok::<(), blocked_bloom_split::SplitBlockError>(())
    /// ```
    #[inline]
    pub fn with_lookup<R>(&self, work: impl FnOnce(Lookup<'_>) -> R) -> R {
        kernel::with_lookup(self.functions, self.blocks(), work)
    }

    /// Looks up all hashes; `words` has one word per 64.
    #[inline]
    pub(crate) fn look_up(&self, hashes: &[u64], words: &mut [u64]) {
        kernel::contains(self.functions, self.blocks(), hashes, words);
    }

    #[inline]
    fn look_up_values<V>(
        &self,
        values: &[V],
        words: &mut [u64],
        hash: impl Fn(&V) -> u64,
    ) -> Result<(), LengthError> {
        if kernel::is_prefetched_while_hashing(self.blocks()) {
            return self.look_up_ahead(values, words, hash);
        }
        look_up_keys(values, words, hash, None::<fn(u64)>, |hashes, words| {
            self.look_up(hashes, words);
        })
    }

    /// Like [`look_up_values`](Self::look_up_values), for filters that exceed the cache: prefetches
    /// while hashing. The kernel then does not prefetch: with both, lookups took up to 1.4x the
    /// time.
    ///
    /// Not inlined, because the code that hashes values would then be duplicated.
    #[inline(never)]
    fn look_up_ahead<V>(
        &self,
        values: &[V],
        words: &mut [u64],
        hash: impl Fn(&V) -> u64,
    ) -> Result<(), LengthError> {
        let (functions, blocks) = (self.functions, self.blocks());
        let lines = kernel::lines(functions.kernel, blocks);
        let prefetch = |hash| match lines {
            ..=1 => kernel::prefetch::<1, _>(blocks, hash),
            _ => kernel::prefetch::<2, _>(blocks, hash),
        };
        look_up_keys(values, words, hash, Some(prefetch), |hashes, words| {
            kernel::contains_ahead(functions, blocks, hashes, words, 0);
        })
    }
}

/// Keys are the plain-encoded bytes of values. Integers are values of a 64-bit column. Hashes come
/// from [`hash_value`], and serve the filters of all row groups.
///
/// A lookup reads 32 bytes, about one cache line. Batches prefetch if the filter exceeds the cache.
impl<D: AsRef<[SplitBlock]>> Filter for SplitBlockFilter<D> {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        let blocks = self.blocks();
        let index = split_block::block_index(hash, blocks.len() as u32);
        self.functions.contains_one(&blocks[index as usize], hash)
    }

    #[inline]
    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        check_words(hashes.len(), words)?;
        self.look_up(hashes, words);
        Ok(())
    }

    #[inline]
    fn prefetch_hash(&self, hash: u64) {
        kernel::prefetch::<2, _>(self.blocks(), hash);
    }

    /// Returns Parquet's hash of values, XXH64, as a caller-supplied hash.
    #[inline]
    fn key_hash(&self) -> KeyHash {
        KEY_HASH
    }

    #[inline]
    fn hash_key(&self, plain: &[u8]) -> Option<u64> {
        Some(hash_value(plain))
    }

    #[inline]
    fn contains_batch_into<K: AsRef<[u8]>>(
        &self,
        plain: &[K],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        self.look_up_values(plain, words, |value| hash_value(value))
    }

    #[inline]
    fn contains_u64s_into(&self, values: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        self.look_up_values(values, words, |value| hash_value(value.to_le_bytes()))
    }
}
