//! A split-block filter that several threads fill concurrently: the filter of a join's build side,
//! or of a column that is encoded in parallel.
//!
//! All accesses to the blocks are relaxed atomics. The kernels use plain loads, which would be
//! undefined behaviour while another thread writes the word, so they run only on the finished
//! filter.

use core::sync::atomic::Ordering::Relaxed;

use blocked_bloom::parts::{AtomicBuffer, AtomicWord, check_words};
use blocked_bloom::{Block, Filter, Kernel, KeyHash, LengthError};

use crate::error::SplitBlockError;
use crate::filter::{SplitBlockFilter, SplitBlocks};
use crate::hash::{KEY_HASH, hash_value};
use crate::kernel;
use crate::split_block::{self, SPLIT_BLOCK_BYTES, SplitBlock};

/// Words in a split block.
const WORDS: usize = SPLIT_BLOCK_BYTES / size_of::<AtomicWord>();
/// Split blocks per block of the buffer.
const SPLIT_BLOCKS_PER_BLOCK: usize = size_of::<Block>() / SPLIT_BLOCK_BYTES;

/// A split-block filter that any number of threads fill and query through `&self`, without locks.
///
/// For query engines: the threads of a join's build side insert the hashes of their batches, the
/// last thread converts the filter into a [`SplitBlockFilter`], and the probe side looks up batches
/// with the SIMD kernels. Nothing is copied. The bits equal those of a [`SplitBlockFilter`] after
/// the same insertions, in any order.
///
/// A hash is never absent for a thread that learned of its insertion through synchronisation
/// (joining a thread, a channel, a lock). A lookup that races with the insertion may return either
/// answer. All accesses are relaxed: a positive answer makes no other write visible.
///
/// Sharing has a cost: a new value takes about 25 to 28 ns, compared with 2 to 5 ns for
/// [`SplitBlockFilter::insert_hashes`]. For small filters and few threads, one filter per thread,
/// merged with [`union_with`](SplitBlockFilter::union_with), is faster.
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
/// // The build side is done. The probe side selects the rows that may have a partner.
/// let filter = filter.into_filter();
/// let hashes: Vec<u64> = (39_998..40_100_i64).map(|key| hash_value(key.to_le_bytes())).collect();
/// let mut rows = Vec::new();
/// filter.select_hashes(&hashes, &mut rows)?;
/// assert!(rows.starts_with(&[0, 1]) && rows.len() < 10);
/// # Ok::<(), blocked_bloom_split::SplitBlockError>(())
/// ```
pub struct AtomicSplitBlockFilter {
    buffer: AtomicBuffer,
    /// Number of split blocks. The buffer may have more, which are unused.
    len: u32,
    /// Only its prefetch threshold is used here. `into_filter` passes it on.
    kernel: Kernel,
}

impl AtomicSplitBlockFilter {
    /// Creates an empty filter for this many distinct values with this false-positive rate, sized
    /// like [`SplitBlockFilter::new`].
    ///
    /// # Errors
    ///
    /// The errors of [`SplitBlockFilter::new`].
    pub fn new(distinct_values: u64, rate: f64) -> Result<Self, SplitBlockError> {
        SplitBlockFilter::new(distinct_values, rate).map(Self::from)
    }

    /// Creates an empty filter of this many blocks of 32 bytes.
    ///
    /// # Errors
    ///
    /// The errors of [`SplitBlockFilter::with_blocks`].
    pub fn with_blocks(blocks: u32) -> Result<Self, SplitBlockError> {
        SplitBlockFilter::with_blocks(blocks).map(Self::from)
    }

    /// Inserts a value by its [hash](hash_value). Returns true if this call set at least one bit;
    /// the value was then certainly absent.
    ///
    /// Cost: one cache line. If all bits are already set, nothing is written and the line stays
    /// shared among the cores. Otherwise each of the four 64-bit words costs an atomic
    /// read-modify-write.
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> bool {
        let mut set = [0; SPLIT_BLOCK_BYTES];
        split_block::insert(&mut set, hash);
        let masks = set.as_chunks::<{ size_of::<AtomicWord>() }>().0.iter().map(|set| {
            let mut bits = [0; 8];
            bits[..set.len()].copy_from_slice(set);
            u64::from_le_bytes(bits)
        });
        let words = self.words(hash).iter().zip(masks);
        let missing = words.clone().map(|(word, bits)| bits & !word.load(Relaxed));
        if missing.fold(0, |all, missing| all | missing) == 0 {
            return false;
        }
        // Without a prefetch, a branch for each word took 1.1x the time in cache and 1.4x from
        // memory (Emerald Rapids): mispredicted branches keep cache misses from overlapping.
        let set = words.map(|(word, bits)| bits & !word.fetch_or(bits, Relaxed));
        set.fold(0, |all, set| all | set) != 0
    }

    /// Inserts values by their hashes. Each thread calls it with its batches. Costs as much as
    /// [`insert_hash`](Self::insert_hash), with prefetches if the filter exceeds the cache.
    pub fn insert_hashes(&self, hashes: &[u64]) {
        self.for_each_ahead(hashes, |_, hash| _ = self.insert_hash(hash));
    }

    /// Converts the filter for a single owner, with SIMD kernels, statistics and stored form,
    /// without copying.
    ///
    /// It takes the filter by value, so no thread can still insert. Use `Arc::into_inner` to take
    /// it out of an `Arc`.
    #[must_use]
    pub fn into_filter(self) -> SplitBlockFilter {
        let data = SplitBlocks { buffer: self.buffer.into_inner(), len: self.len as usize };
        SplitBlockFilter::from_data(data, self.kernel)
    }

    /// Returns the words of a hash's block.
    #[inline]
    fn words(&self, hash: u64) -> &[AtomicWord; WORDS] {
        let index = split_block::block_index(hash, self.len) as usize;
        let (halves, _) = self.buffer.blocks()[index / SPLIT_BLOCKS_PER_BLOCK].as_chunks();
        &halves[index % SPLIT_BLOCKS_PER_BLOCK]
    }

    /// Calls `visit` with the index of every hash and the hash, in order. If the filter exceeds the
    /// cache, prefetches the line of each hash in advance.
    #[inline]
    fn for_each_ahead(&self, hashes: &[u64], visit: impl FnMut(usize, u64)) {
        let bytes = self.len as usize * SPLIT_BLOCK_BYTES;
        let is_ahead = bytes > self.kernel.prefetch_threshold();
        kernel::for_each_ahead(hashes, bytes, is_ahead, |&hash| self.prefetch_hash(hash), visit);
    }
}

/// A lookup that races with an insertion may return either answer. A batch costs as much as single
/// lookups, with prefetches if the filter exceeds the cache. Kernels run only after
/// [`into_filter`](AtomicSplitBlockFilter::into_filter).
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

    /// Returns Parquet's hash of values, XXH64, as a caller-supplied hash.
    #[inline]
    fn key_hash(&self) -> KeyHash {
        KEY_HASH
    }

    #[inline]
    fn hash_key(&self, plain: &[u8]) -> Option<u64> {
        Some(hash_value(plain))
    }
}

/// Shares a filter among threads, to fill it. Nothing is copied.
impl From<SplitBlockFilter> for AtomicSplitBlockFilter {
    fn from(filter: SplitBlockFilter) -> Self {
        let SplitBlockFilter { data: SplitBlocks { buffer, len }, functions } = filter;
        let kernel = functions.kernel;
        AtomicSplitBlockFilter { buffer: AtomicBuffer::new(buffer), len: len as u32, kernel }
    }
}

/// Calls [`AtomicSplitBlockFilter::into_filter`].
impl From<AtomicSplitBlockFilter> for SplitBlockFilter {
    fn from(filter: AtomicSplitBlockFilter) -> Self {
        filter.into_filter()
    }
}

/// Shows the shape, without the bits.
impl core::fmt::Debug for AtomicSplitBlockFilter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("AtomicSplitBlockFilter")
            .field("blocks", &self.len)
            .field("kernel", &self.kernel)
            .finish()
    }
}
