//! A Ribbon block of RocksDB.

use blocked_bloom::parts::{check_words, fill_with_hits, stored};
use blocked_bloom::{Filter, Kernel, KeyHash, LengthError, Stored};

use crate::kernel::{self, Functions};
use crate::scheme::rocksdb::{Segments, Shape, raw_seed};

/// The bytes that end a filter block: its kind, and for Ribbon the seed and the number of blocks of
/// slots.
const TRAILER_BYTES: usize = 5;

/// The first byte of the trailer.
const MARKER: u8 = 0xfe;

/// The identity of RocksDB's key hash, so that a [`BloomFilter`](blocked_bloom::BloomFilter) can
/// share its hashes. `blocked-bloom-formats` computes the hash.
///
/// ```
/// use blocked_bloom::{BloomFilter, Sizing};
/// use blocked_bloom_ribbon::rocksdb::KEY_HASH;
/// let params = Sizing::BitsPerKey(10.0).params(1_000)?;
/// let mut filter = BloomFilter::with_params(params, KEY_HASH)?;
/// filter.insert_hash(7)?;
/// assert!(filter.contains_hash(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub const KEY_HASH: KeyHash = KeyHash::Caller { tag: u64::from_be_bytes(*b"XXPH3_64") };

/// A Ribbon filter block of RocksDB in bytes of any owner `D`, at any alignment.
///
/// It takes the 64-bit hashes of RocksDB's other filters; `blocked-bloom-formats` computes them
/// from keys. If the length of the owner's bytes changes after opening, every answer is "maybe".
///
/// ```
/// use blocked_bloom::{Bitmask, Filter};
/// use blocked_bloom_ribbon::rocksdb::RibbonBlock;
/// // Two blocks of zeros with one column. RocksDB writes more columns.
/// let block = [[0; 32].as_slice(), &[0xfe, 0, 2, 0, 0]].concat();
/// let filter = RibbonBlock::from_bytes(block).unwrap();
/// let mut hits = Bitmask::new();
/// filter.contains_hashes(&[0x9c1c_34f1_0a4e_7ab3, 0xb7e1_5162_8aed_2a6a], &mut hits);
/// assert_eq!(hits.get(0), Some(filter.contains_hash(0x9c1c_34f1_0a4e_7ab3)));
/// ```
#[derive(Clone, Copy)]
pub struct RibbonBlock<D> {
    /// Including the trailer.
    block: Stored<D>,
    shape: Shape,
    seed: u8,
    raw_seed: u32,
    functions: Functions,
}

impl<D: AsRef<[u8]>> RibbonBlock<D> {
    /// Opens a block by reading its trailer of five bytes. Blocks have no checksum.
    ///
    /// # Errors
    ///
    /// Returns the bytes if they do not end like a Ribbon filter, and if RocksDB's reader would
    /// answer "maybe" to every key: fewer than two blocks of slots, fewer than 16 bytes of data, or
    /// 4 GiB or more.
    pub fn from_bytes(block: D) -> Result<Self, D> {
        let block = stored(block);
        match read(block.bytes().unwrap_or_default()) {
            Some((shape, seed)) => {
                let (raw_seed, functions) = (raw_seed(seed), Kernel::default().into());
                Ok(RibbonBlock { block, shape, seed, raw_seed, functions })
            }
            None => Err(block.into_inner()),
        }
    }

    /// Returns the block with its trailer; empty if the length of the owner's bytes changed.
    pub fn as_bytes(&self) -> &[u8] {
        self.block.bytes().unwrap_or_default()
    }

    /// Returns `None` if the length of the owner's bytes changed.
    #[inline]
    fn segments(&self) -> Option<Segments<'_>> {
        let (data, _) = self.block.bytes()?.split_last_chunk::<TRAILER_BYTES>()?;
        Segments::new(data, &self.shape, self.raw_seed)
    }
}

/// Reads the shape and the seed of a block.
fn read(block: &[u8]) -> Option<(Shape, u8)> {
    match block.split_last_chunk::<TRAILER_BYTES>()? {
        (data, &[MARKER, seed, low, middle, high]) if u32::try_from(data.len()).is_ok() => {
            let blocks = u32::from_le_bytes([low, middle, high, 0]);
            Some((Shape::new(data.len(), blocks)?, seed))
        }
        _ => None,
    }
}

impl<D> RibbonBlock<D> {
    /// Returns the number of columns of most blocks of slots, 1 to 32. An absent key passes each
    /// with a probability of 1/2.
    pub fn columns(&self) -> u32 {
        self.shape.columns()
    }

    /// Returns the number of blocks of 128 slots, 2 to 2^24 - 1.
    pub fn blocks(&self) -> u32 {
        self.shape.blocks()
    }

    /// Returns the ordinal of the hash seed.
    pub fn seed(&self) -> u8 {
        self.seed
    }

    /// Returns the expected fraction of absent keys that pass, computed from the shape:
    /// `2^-columns`, and twice that in blocks with one column less.
    pub fn expected_false_positive_rate(&self) -> f64 {
        self.shape.rate()
    }

    /// Returns the kernel that runs lookups.
    pub fn kernel(&self) -> Kernel {
        self.functions.kernel
    }

    /// Sets the kernel that runs lookups.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        RibbonBlock { functions: kernel.into(), ..self }
    }
}

/// Takes hashes. Lookups by key answer "maybe"; `blocked-bloom-formats` hashes keys. A lookup reads
/// about 30 bytes per column, in one to five cache lines.
impl<D: AsRef<[u8]>> Filter for RibbonBlock<D> {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.segments()
            .is_none_or(|segments| kernel::contains_one_128(self.functions, &segments, hash))
    }

    #[inline]
    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        check_words(hashes.len(), words)?;
        match self.segments() {
            Some(segments) => kernel::contains_128(self.functions, &segments, hashes, words),
            None => fill_with_hits(words, hashes.len()),
        }
        Ok(())
    }

    #[inline]
    fn prefetch_hash(&self, hash: u64) {
        if let Some(segments) = self.segments() {
            kernel::prefetch_equation(&segments, hash);
        }
    }

    /// Returns RocksDB's key hash as a caller-supplied hash.
    #[inline]
    fn key_hash(&self) -> KeyHash {
        KEY_HASH
    }

    #[inline]
    fn hash_key(&self, key: &[u8]) -> Option<u64> {
        Some(self.hasher().ok()?.hash(key))
    }
}

/// Shows the shape, without the bits.
impl<D> core::fmt::Debug for RibbonBlock<D> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RibbonBlock")
            .field("blocks", &self.blocks())
            .field("columns", &self.columns())
            .field("short", &self.shape.short())
            .field("seed", &self.seed)
            .field("kernel", &self.functions.kernel)
            .finish()
    }
}
