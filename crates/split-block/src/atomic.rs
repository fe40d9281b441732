//! A split-block filter that threads fill at the same time: the filter of a join's build side, or
//! of a column that is encoded in parallel.
//!
//! The blocks are accessed as atomic words only, relaxed. The kernels load plainly, which would be
//! undefined behaviour while another thread writes the word: they look up once the filter is
//! complete.

use core::sync::atomic::Ordering::Relaxed;

use blocked_bloom::parts::{AtomicBuffer, AtomicWord, check_words};
use blocked_bloom::{Block, Filter, Kernel, KeyHash, LengthError};

use crate::error::SplitBlockError;
use crate::filter::{SplitBlockFilter, SplitBlocks};
use crate::hash::{KEY_HASH, hash_value};
use crate::kernel;
use crate::split_block::{self, SPLIT_BLOCK_BYTES, SplitBlock};

/// Words of a split block.
const WORDS: usize = SPLIT_BLOCK_BYTES / size_of::<AtomicWord>();
/// Split blocks per block of the buffer.
const SPLIT_BLOCKS_PER_BLOCK: usize = size_of::<Block>() / SPLIT_BLOCK_BYTES;

/// A split-block filter that any number of threads fill and query through `&self`, without locks.
///
/// For query engines: the threads of a join's build side add the hashes of their batches, the last
/// one turns the filter into a [`SplitBlockFilter`], and the probe side looks up batches by the
/// SIMD kernels. Nothing is copied on the way. The bits are those that a [`SplitBlockFilter`] would
/// have after the same insertions, in any order.
///
/// A hash is never absent for a thread that learned of its insertion by any synchronisation
/// (joining a thread, a channel, a lock). A lookup that races with the insertion may answer either
/// way. All accesses are relaxed: an answer of true makes nothing else visible.
///
/// Sharing costs: a new value takes 25 to 28 ns, where [`SplitBlockFilter::insert_hashes`] takes 2
/// to 5 (AMD EPYC, Zen 5). A filter for each of a few threads, merged by
/// [`union_with`](SplitBlockFilter::union_with), is faster while it is small.
///
/// Exists on targets with atomic words of 64 or 32 bits (`target_has_atomic`).
///
/// ```
/// use blocked_bloom_split::{AtomicSplitBlockFilter, hash_value};
/// let filter = AtomicSplitBlockFilter::new(40_000, 0.01)?;
/// std::thread::scope(|threads| {
///     for part in 0..4_i64 {
///         let filter = &filter;
///         threads.spawn(move || {
///             let keys = part * 10_000..(part + 1) * 10_000;
///             let hashes: Vec<u64> = keys.map(|key| hash_value(key.to_le_bytes())).collect();
///             hashes.chunks(1_024).for_each(|batch| filter.insert_hashes(batch));
///         });
///     }
/// });
///
/// // The build side is done. The probe side wants the numbers of the rows that may have a partner.
/// let filter = filter.into_filter();
/// let hashes: Vec<u64> = (39_998..40_100_i64).map(|key| hash_value(key.to_le_bytes())).collect();
/// let mut rows = Vec::new();
/// filter.select_hashes(&hashes, &mut rows)?;
/// assert!(rows.starts_with(&[0, 1]) && rows.len() < 10);
/// # Ok::<(), blocked_bloom_split::SplitBlockError>(())
/// ```
pub struct AtomicSplitBlockFilter {
    buffer: AtomicBuffer,
    /// Split blocks. The buffer may have more, which are not used.
    len: u32,
    /// Used here for its prefetch threshold only; `into_filter` passes it on.
    kernel: Kernel,
}

impl AtomicSplitBlockFilter {
    /// An empty filter for this many distinct values, that lets this fraction of absent ones pass:
    /// sized as [`SplitBlockFilter::new`] says.
    ///
    /// # Errors
    ///
    /// As [`SplitBlockFilter::new`].
    pub fn new(distinct_values: u64, rate: f64) -> Result<Self, SplitBlockError> {
        SplitBlockFilter::new(distinct_values, rate).map(Self::from)
    }

    /// An empty filter of this many blocks of 32 bytes.
    ///
    /// # Errors
    ///
    /// As [`SplitBlockFilter::with_blocks`].
    pub fn with_blocks(blocks: u32) -> Result<Self, SplitBlockError> {
        SplitBlockFilter::with_blocks(blocks).map(Self::from)
    }

    /// Adds a value by its [hash](hash_value). True if this call set at least one bit
    /// that was not set: then the value was certainly not there.
    ///
    /// Cost: one cache line. If all bits are set already, nothing is written, so that the line
    /// stays shared among the cores; else each word of 64 bits with a missing bit, four at most,
    /// costs an atomic read-modify-write.
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> bool {
        let mut set = [0; SPLIT_BLOCK_BYTES];
        split_block::insert(&mut set, hash);
        let mut is_new = false;
        for (word, set) in self.words(hash).iter().zip(set.chunks_exact(size_of::<AtomicWord>())) {
            let mut bits = [0; 8];
            bits[..set.len()].copy_from_slice(set);
            let bits = u64::from_le_bytes(bits);
            if word.load(Relaxed) & bits != bits {
                is_new |= word.fetch_or(bits, Relaxed) & bits != bits;
            }
        }
        is_new
    }

    /// Adds values by their hashes: what each thread calls with its batches. Cost: as
    /// [`insert_hash`](Self::insert_hash), with prefetch where the filter outgrows the cache.
    pub fn insert_hashes(&self, hashes: &[u64]) {
        self.for_each_ahead(hashes, |_, hash| _ = self.insert_hash(hash));
    }

    /// The same filter for one owner, with SIMD kernels, statistics and bytes. Nothing is copied.
    ///
    /// It takes the filter by value, so that no thread can still insert: every insertion is in it.
    /// `Arc::into_inner` takes it out of an `Arc`.
    #[must_use]
    pub fn into_filter(self) -> SplitBlockFilter {
        let data = SplitBlocks { buffer: self.buffer.into_inner(), len: self.len as usize };
        SplitBlockFilter::from_data(data, self.kernel)
    }

    /// The words of a hash's block.
    #[inline]
    fn words(&self, hash: u64) -> &[AtomicWord; WORDS] {
        let index = split_block::block_index(hash, self.len) as usize;
        let (halves, _) = self.buffer.blocks()[index / SPLIT_BLOCKS_PER_BLOCK].as_chunks();
        &halves[index % SPLIT_BLOCKS_PER_BLOCK]
    }

    /// Calls `visit` with the index of every hash and the hash, in order. If the filter outgrows
    /// the cache, the line of each is prefetched before.
    #[inline]
    fn for_each_ahead(&self, hashes: &[u64], visit: impl FnMut(usize, u64)) {
        let bytes = self.len as usize * SPLIT_BLOCK_BYTES;
        let is_ahead = bytes > self.kernel.prefetch_threshold();
        kernel::for_each_ahead(hashes, bytes, is_ahead, |&hash| self.prefetch_hash(hash), visit);
    }
}

/// A value that is added meanwhile may be answered either way. Cost of a batch: that of single
/// lookups, with prefetch where the filter outgrows the cache. After
/// [`into_filter`](AtomicSplitBlockFilter::into_filter) the kernels look up.
impl Filter for AtomicSplitBlockFilter {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        let mut copy: SplitBlock = [0; SPLIT_BLOCK_BYTES];
        for (bytes, word) in copy.chunks_exact_mut(size_of::<AtomicWord>()).zip(self.words(hash)) {
            bytes.copy_from_slice(&word.load(Relaxed).to_le_bytes()[..bytes.len()]);
        }
        split_block::contains(&copy, hash)
    }

    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        check_words(hashes.len(), words)?;
        words.fill(0);
        self.for_each_ahead(hashes, |i, hash| {
            words[i / 64] |= u64::from(self.contains_hash(hash)) << (i % 64);
        });
        Ok(())
    }

    #[inline]
    fn prefetch_hash(&self, hash: u64) {
        let index = split_block::block_index(hash, self.len) as usize;
        crate::prefetch(self.buffer.blocks(), index * SPLIT_BLOCK_BYTES);
    }

    /// Parquet's hash of values, XXH64, as one of the caller's.
    #[inline]
    fn key_hash(&self) -> KeyHash {
        KEY_HASH
    }

    #[inline]
    fn hash_key(&self, plain: &[u8]) -> Option<u64> {
        Some(hash_value(plain))
    }
}

/// Shares a filter among threads, to be filled. Nothing is copied.
impl From<SplitBlockFilter> for AtomicSplitBlockFilter {
    fn from(filter: SplitBlockFilter) -> Self {
        let SplitBlockFilter { data: SplitBlocks { buffer, len }, functions } = filter;
        let kernel = functions.kernel;
        AtomicSplitBlockFilter { buffer: AtomicBuffer::new(buffer), len: len as u32, kernel }
    }
}

/// [`AtomicSplitBlockFilter::into_filter`].
impl From<AtomicSplitBlockFilter> for SplitBlockFilter {
    fn from(filter: AtomicSplitBlockFilter) -> Self {
        filter.into_filter()
    }
}

/// The shape, without the bits.
impl core::fmt::Debug for AtomicSplitBlockFilter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("AtomicSplitBlockFilter")
            .field("blocks", &self.len)
            .field("kernel", &self.kernel)
            .finish()
    }
}
