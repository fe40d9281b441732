//! Writing Ribbon blocks, or the Bloom block that RocksDB writes in their place.

use alloc::vec::Vec;

use blocked_bloom::{Bitmask, Filter};
use blocked_bloom_ribbon::RibbonError;
use blocked_bloom_ribbon::rocksdb::{BuiltBlock, RibbonBlockOptions};

use super::block::FilterBlock;
use super::builder::FilterBlockBuilder;
use super::error::RocksdbError;

/// Hashes that are looked up at a time to verify a block.
const BATCH: usize = 4_096;

/// Collects the keys of a table and writes its Ribbon block: byte for byte what RocksDB 7 and 8
/// write with `NewRibbonFilterPolicy` for the same keys in the same order, with
/// `optimize_filters_for_memory` off.
///
/// As RocksDB does, it writes a FastLocalBloom block where that is smaller (up to some 400 keys at
/// 10 bits per key), above 950 million keys, and in the one case of about 10^300 where no seed has
/// a solution. RocksDB's policy by default also writes Bloom at flush, so that its databases mix
/// both; [`FilterBlock`] reads either.
///
/// Memory: 8 bytes per key, up to 16 while the list grows; when building, some 32 more and the
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
/// // The same rate as Bloom's 10 bits per key, in 7.
/// let mut bloom = FilterBlockBuilder::new(10.0)?;
/// bloom.extend(keys());
/// assert!(block.len() < bloom.finish()?.len() * 3 / 4);
/// # Ok::<(), blocked_bloom_formats::rocksdb::RocksdbError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RibbonBlockBuilder {
    options: RibbonBlockOptions,
    /// The hashes, which both kinds collect alike, and the fall-back.
    keys: FilterBlockBuilder,
}

impl RibbonBlockBuilder {
    /// A builder of blocks with the rate of a Bloom filter of this many bits per key, which then
    /// take some 28 % fewer.
    ///
    /// # Errors
    ///
    /// [`RocksdbError::BitsPerKey`] as [`FilterBlockBuilder::new`].
    pub fn new(bits_per_key: f64) -> Result<Self, RocksdbError> {
        let keys = FilterBlockBuilder::new(bits_per_key)?;
        let options = RibbonBlockOptions::new(bits_per_key).map_err(convert_error)?;
        Ok(RibbonBlockBuilder { options, keys })
    }

    /// Adds a user key (without sequence number, type and timestamp), or, for a filter of prefixes
    /// only, a prefix.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) {
        self.keys.insert(key);
    }

    /// Adds a key and its prefix, as [`FilterBlockBuilder::insert_with_prefix`].
    pub fn insert_with_prefix(&mut self, key: impl AsRef<[u8]>, prefix: impl AsRef<[u8]>) {
        self.keys.insert_with_prefix(key, prefix);
    }

    /// Hashes that the filter will hold, as [`FilterBlockBuilder::len`].
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no key was added.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The filter block, without the five bytes of compression type and checksum that follow it in
    /// an SST file.
    ///
    /// Without keys it has no bytes, as in RocksDB: store no filter then. Cost: 46 to 58 ns per key
    /// (Zen 5).
    ///
    /// # Errors
    ///
    /// [`RocksdbError::Alloc`] if memory ran out.
    pub fn finish(self) -> Result<Vec<u8>, RocksdbError> {
        let built = self.options.build(self.keys.hashes()?).map_err(convert_error)?;
        self.finish_or_bloom(built)
    }

    /// [`finish`](Self::finish), and then looks up every key that was added.
    ///
    /// # Errors
    ///
    /// As `finish`, and [`RocksdbError::KeysMissing`] if the block cannot be trusted.
    pub fn finish_verified(self) -> Result<Vec<u8>, RocksdbError> {
        if self.is_empty() {
            return self.finish();
        }
        let block = self.clone().finish()?;
        let (filter, mut hits, mut missing) = (FilterBlock::from_bytes(&block)?, Bitmask::new(), 0);
        for hashes in self.keys.hashes()?.chunks(BATCH) {
            filter.contains_hashes(hashes, &mut hits);
            missing += hits.count_misses() as u64;
        }
        match missing {
            0 => Ok(block),
            missing => Err(RocksdbError::KeysMissing { missing, keys: self.len() as u64 }),
        }
    }

    /// [`finish`](Self::finish) by the threads of the current rayon pool; the bytes do not depend
    /// on their number.
    ///
    /// # Errors
    ///
    /// As `finish`.
    #[cfg(feature = "rayon")]
    pub fn par_finish(self) -> Result<Vec<u8>, RocksdbError> {
        let built = self.options.par_build(self.keys.hashes()?).map_err(convert_error)?;
        self.finish_or_bloom(built)
    }

    fn finish_or_bloom(self, built: BuiltBlock) -> Result<Vec<u8>, RocksdbError> {
        match built {
            BuiltBlock::Ribbon(block) => Ok(block),
            _ => self.keys.finish(),
        }
    }
}

/// Building a block of hashes has no other errors.
fn convert_error(error: RibbonError) -> RocksdbError {
    match error {
        RibbonError::Alloc(error) => error.into(),
        RibbonError::BitsPerKey { bits_per_key } => RocksdbError::BitsPerKey { bits_per_key },
        other => unreachable!("{other}"),
    }
}

/// Adds every key.
impl<K: AsRef<[u8]>> Extend<K> for RibbonBlockBuilder {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        self.keys.extend(keys);
    }
}
