//! Writes Ribbon blocks, or the Bloom block that RocksDB writes instead.

use alloc::vec::Vec;

use blocked_bloom::{Bitmask, Filter};
use blocked_bloom_ribbon::RibbonError;
use blocked_bloom_ribbon::rocksdb::{BuiltBlock, RibbonBlockOptions};

use super::block::FilterBlock;
use super::builder::FilterBlockBuilder;
use super::error::RocksdbError;

/// Hashes looked up at a time to verify a block.
const BATCH: usize = 4_096;

/// Collects the keys of a table and writes its Ribbon block, byte for byte like RocksDB 7 and 8
/// with `NewRibbonFilterPolicy` for the same keys in the same order, with
/// `optimize_filters_for_memory` off.
///
/// Like RocksDB, it writes a FastLocalBloom block if that is smaller (up to about 400 keys at 10
/// bits per key), above 950 million keys, and in the one case of about 10^300 where no seed has a
/// solution. By default RocksDB's policy also writes Bloom at flush, so its databases mix both;
/// [`FilterBlock`] reads both.
///
/// Memory: 8 bytes per key, up to 16 while the list grows. Building needs about 32 more, and the
/// block.
///
/// ```
/// use blocked_bloom::Filter;
/// use blocked_bloom_formats::rocksdb::{
///     FilterBlock, FilterBlockBuilder, FilterKind, RibbonBlockBuilder,
/// };
/// let keys = || (0..20_000_u32).map(u32::to_le_bytes);
/// let mut builder = RibbonBlockBuilder::new(10.0)?;
/// builder.extend(keys());
/// let block = builder.finish()?;
/// let filter = FilterBlock::from_bytes(&block)?;
/// assert!(matches!(filter.kind(), FilterKind::Ribbon { .. }));
/// assert!(keys().all(|key| filter.contains(key)));
///
/// // The rate of a Bloom filter with 10 bits per key, with 7.
/// let mut bloom = FilterBlockBuilder::new(10.0)?;
/// bloom.extend(keys());
/// assert!(block.len() < bloom.finish()?.len() * 3 / 4);
/// # Ok::<(), blocked_bloom_formats::rocksdb::RocksdbError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RibbonBlockBuilder {
    options: RibbonBlockOptions,
    /// The hashes, which both kinds collect in the same way, and the fallback.
    keys: FilterBlockBuilder,
}

impl RibbonBlockBuilder {
    /// Creates a builder of blocks with the rate of a Bloom filter of this many bits per key. The
    /// blocks take about 28 % fewer bits.
    ///
    /// # Errors
    ///
    /// [`RocksdbError::BitsPerKey`], like [`FilterBlockBuilder::new`].
    pub fn new(bits_per_key: f64) -> Result<Self, RocksdbError> {
        let keys = FilterBlockBuilder::new(bits_per_key)?;
        let options = RibbonBlockOptions::new(bits_per_key).map_err(convert_error)?;
        Ok(RibbonBlockBuilder { options, keys })
    }

    /// Inserts a user key (without sequence number, type and timestamp), or, for a filter of
    /// prefixes only, a prefix.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) {
        self.keys.insert(key);
    }

    /// Inserts a key and its prefix, like [`FilterBlockBuilder::insert_with_prefix`].
    pub fn insert_with_prefix(&mut self, key: impl AsRef<[u8]>, prefix: impl AsRef<[u8]>) {
        self.keys.insert_with_prefix(key, prefix);
    }

    /// Returns the number of hashes in the filter, like [`FilterBlockBuilder::len`].
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether no key was inserted.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the filter block, without the compression type and checksum (five bytes) that follow
    /// it in an SST file.
    ///
    /// Without keys it is empty, as in RocksDB: store no filter then. Cost: about 46 to 58 ns per
    /// key.
    ///
    /// # Errors
    ///
    /// [`RocksdbError::Alloc`] if an allocation failed.
    pub fn finish(self) -> Result<Vec<u8>, RocksdbError> {
        self.build()
    }

    fn build(&self) -> Result<Vec<u8>, RocksdbError> {
        let built = self.options.build(self.keys.hashes()?).map_err(convert_error)?;
        self.block_or_bloom(built)
    }

    /// Returns the block like [`finish`](Self::finish), and looks up every inserted key.
    ///
    /// # Errors
    ///
    /// The errors of `finish`, and [`RocksdbError::KeysMissing`] if the block must not be used.
    pub fn finish_verified(self) -> Result<Vec<u8>, RocksdbError> {
        if self.is_empty() {
            return self.finish();
        }
        let block = self.build()?;
        self.verify(&block)?;
        Ok(block)
    }

    /// Looks up every inserted key in a block.
    fn verify(&self, block: &[u8]) -> Result<(), RocksdbError> {
        let (filter, mut hits, mut missing) = (FilterBlock::from_bytes(block)?, Bitmask::new(), 0);
        for hashes in self.keys.hashes()?.chunks(BATCH) {
            filter.contains_hashes(hashes, &mut hits);
            missing += hits.count_misses() as u64;
        }
        match missing {
            0 => Ok(()),
            missing => Err(RocksdbError::KeysMissing { missing, keys: self.len() as u64 }),
        }
    }

    /// Returns the block like [`finish`](Self::finish), built with the threads of the current rayon
    /// pool. The bytes do not depend on the number of threads.
    ///
    /// # Errors
    ///
    /// The errors of `finish`.
    #[cfg(feature = "rayon")]
    pub fn par_finish(self) -> Result<Vec<u8>, RocksdbError> {
        let built = self.options.par_build(self.keys.hashes()?).map_err(convert_error)?;
        self.block_or_bloom(built)
    }

    fn block_or_bloom(&self, built: BuiltBlock) -> Result<Vec<u8>, RocksdbError> {
        match built {
            BuiltBlock::Ribbon(block) => Ok(block),
            _ => self.keys.build(),
        }
    }
}

/// Converts an error of building a block from hashes, which can only be these.
fn convert_error(error: RibbonError) -> RocksdbError {
    match error {
        RibbonError::Alloc(error) => error.into(),
        RibbonError::BitsPerKey { bits_per_key } => RocksdbError::BitsPerKey { bits_per_key },
        other => unreachable!("{other}"),
    }
}

/// Inserts all keys.
impl<K: AsRef<[u8]>> Extend<K> for RibbonBlockBuilder {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        self.keys.extend(keys);
    }
}

#[cfg(all(test, feature = "std"))]
#[path = "../../tests/unit/ribbon.rs"]
mod tests;
