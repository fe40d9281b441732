//! A Ribbon block of RocksDB, borrowed.

use blocked_bloom::{Filter, Kernel, KeyHash, LengthError};

use crate::kernel::{self, Functions};
use crate::scheme::rocksdb::Segments;

/// The bytes that end a filter block: its kind, and for Ribbon the seed and the number of blocks of slots.
const TRAILER_BYTES: usize = 5;

/// The first byte of the trailer.
const MARKER: u8 = 0xfe;

/// RocksDB's hash of keys: the same tag as `KEY_HASH` of `blocked-bloom-formats` has.
const KEY_HASH: KeyHash = KeyHash::Caller { tag: u64::from_be_bytes(*b"XXPH3_64") };

/// A Ribbon filter block of RocksDB, borrowed at any alignment.
///
/// It is of the 64-bit hashes that RocksDB's other filters are of too; keys are hashed by `blocked-bloom-formats`.
///
/// ```
/// use blocked_bloom::{Bitmask, Filter};
/// use blocked_bloom_ribbon::rocksdb::RibbonBlock;
/// // Two blocks of zeros with one column: RocksDB writes more.
/// let block = [[0; 32].as_slice(), &[0xfe, 0, 2, 0, 0]].concat();
/// let filter = RibbonBlock::from_bytes(&block).unwrap();
/// let mut hits = Bitmask::new();
/// filter.contains_hashes(&[0x9c1c_34f1_0a4e_7ab3, 0xb7e1_5162_8aed_2a6a], &mut hits);
/// assert_eq!(hits.get(0), Some(filter.contains_hash(0x9c1c_34f1_0a4e_7ab3)));
/// ```
#[derive(Clone, Copy)]
pub struct RibbonBlock<'a> {
    segments: Segments<'a>,
    seed: u8,
    functions: Functions,
}

impl<'a> RibbonBlock<'a> {
    /// Reads the five bytes that end a block. `None` unless they say that it is a Ribbon filter, and where RocksDB's reader answers "maybe"
    /// to every key: of fewer than two blocks of slots, fewer than 16 bytes of data, or 4 GiB.
    ///
    /// Nothing in a block tells whether it is damaged.
    pub fn from_bytes(block: &'a [u8]) -> Option<Self> {
        match block.split_last_chunk::<TRAILER_BYTES>()? {
            (data, &[MARKER, seed, low, middle, high]) => {
                RibbonBlock::from_parts(data, seed, u32::from_le_bytes([low, middle, high, 0]))
            }
            _ => None,
        }
    }

    /// The filter in these data, without the trailer, whose seed and number of blocks of slots these are. `None` as for
    /// [`from_bytes`](Self::from_bytes).
    pub fn from_parts(data: &'a [u8], seed: u8, blocks: u32) -> Option<Self> {
        if data.len() as u64 > u64::from(u32::MAX) {
            return None;
        }
        let segments = Segments::new(data, blocks, seed)?;
        Some(RibbonBlock { segments, seed, functions: Kernel::default().into() })
    }

    /// Columns of most blocks of slots, 1 to 32: an absent key passes each with a probability of one half.
    pub fn columns(&self) -> u32 {
        self.segments.shape().columns()
    }

    /// Blocks of 128 slots, 2 to 2^24 - 1.
    pub fn blocks(&self) -> u32 {
        self.segments.shape().blocks()
    }

    /// Ordinal of the hash seed.
    pub fn seed(&self) -> u8 {
        self.seed
    }

    /// The fraction of absent keys that pass, from the shape alone: `2^-columns`, and twice that in blocks with one column less.
    pub fn expected_false_positive_rate(&self) -> f64 {
        self.segments.shape().rate()
    }

    /// The kernel that answers lookups.
    pub fn kernel(&self) -> Kernel {
        self.functions.kernel
    }

    /// The same filter, with lookups answered by `kernel`.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        RibbonBlock { functions: kernel.into(), ..self }
    }
}

/// Of hashes: keys, which `blocked-bloom-formats` hashes, are answered "maybe". Cost of a lookup: some
/// 30 bytes for each bit of the rate, in one to five cache lines.
impl Filter for RibbonBlock<'_> {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        kernel::one_128(self.functions, &self.segments, hash)
    }

    #[inline]
    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        LengthError::check(hashes.len(), words)?;
        kernel::contains_128(self.functions, &self.segments, hashes, words);
        Ok(())
    }

    #[inline]
    fn prefetch_hash(&self, hash: u64) {
        kernel::prefetch_128(&self.segments, hash);
    }

    /// RocksDB's hash of keys, as one of the caller's.
    #[inline]
    fn key_hash(&self) -> KeyHash {
        KEY_HASH
    }

    #[inline]
    fn hash_key(&self, _: &[u8]) -> Option<u64> {
        None
    }
}

/// The shape, without the bits.
impl core::fmt::Debug for RibbonBlock<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RibbonBlock")
            .field("blocks", &self.blocks())
            .field("columns", &self.columns())
            .field("short", &self.segments.shape().short())
            .field("seed", &self.seed)
            .field("kernel", &self.functions.kernel)
            .finish()
    }
}
