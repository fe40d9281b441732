//! Writes filter blocks like RocksDB: the list of hashes, the rules for dropping equal ones, and
//! the sizing.
//!
//! Sizes are those without `optimize_filters_for_memory`, which makes the size of a block depend on
//! the machine's allocator. RocksDB reads both.
//!
//! Source: `XXPH3FilterBitsBuilder`, `FastLocalBloomBitsBuilder` and `LegacyBloomBitsBuilder` in
//! RocksDB's `table/block_based/filter_policy.cc`, `FullFilterBlockBuilder` in
//! `table/block_based/full_filter_block.cc`.

use alloc::vec::Vec;

use blocked_bloom::probe::BLOCK_BYTES;
use blocked_bloom::{AllocError, BloomFilter};
use blocked_bloom_ribbon::rocksdb::bloom_probes;

use super::block::TRAILER_BYTES;
use super::error::RocksdbError;
use super::hash::{KEY_HASH, hash_key, legacy_hash_key};
use super::legacy::Lines;

/// Collects the keys of a table and writes its filter block, byte for byte like RocksDB 7 and 8 for
/// the same keys in the same order, with `optimize_filters_for_memory` off.
///
/// `format_version` 5, 6 and 7 have the same blocks. Memory: 8 bytes per key, up to 16 while the
/// list grows, plus the block. A key whose hash equals the previous one is dropped.
///
/// ```
/// use blocked_bloom::Filter;
/// use blocked_bloom_formats::rocksdb::{FilterBlock, FilterBlockBuilder, FilterKind};
/// let mut builder = FilterBlockBuilder::new(10.0)?;
/// builder.extend(["apple", "apple", "banana"]);
/// assert_eq!(builder.len(), 2);
/// let block = builder.finish()?;
/// let filter = FilterBlock::from_bytes(&block)?;
/// assert_eq!(filter.kind(), FilterKind::FastLocalBloom { probes: 6, blocks: 1 });
/// assert!(filter.contains("banana"));
/// # Ok::<(), blocked_bloom_formats::rocksdb::RocksdbError>(())
/// ```
#[derive(Clone)]
pub struct FilterBlockBuilder {
    millibits_per_key: u32,
    legacy: bool,
    /// Adjacent hashes differ.
    hashes: Vec<u64>,
    /// The last key and the last prefix of `insert_with_prefix`.
    last: [Option<u64>; 2],
    failed: Option<AllocError>,
}

impl FilterBlockBuilder {
    /// Creates a builder of FastLocalBloom blocks (`format_version` 5 and later, RocksDB 6.6 and
    /// later).
    ///
    /// As in RocksDB, bits per key are rounded to thousandths, and limited to 1 to 100.
    ///
    /// # Errors
    ///
    /// [`RocksdbError::BitsPerKey`] for NaN and below 0.5, where RocksDB writes no filter.
    pub fn new(bits_per_key: f64) -> Result<Self, RocksdbError> {
        if bits_per_key.is_nan() || bits_per_key < 0.5 {
            return Err(RocksdbError::BitsPerKey { bits_per_key });
        }
        let millibits_per_key = (bits_per_key.clamp(1.0, 100.0) * 1_000.0 + 0.500_001) as u32;
        Ok(FilterBlockBuilder {
            millibits_per_key,
            legacy: false,
            hashes: Vec::new(),
            last: [None; 2],
            failed: None,
        })
    }

    /// Creates a builder of LegacyBloom blocks (`format_version` 4 and earlier), for tables that
    /// RocksDB before 6.6 must read.
    ///
    /// Bits per key are rounded to integers. Blocks have 64 bytes.
    ///
    /// # Errors
    ///
    /// The errors of [`new`](Self::new).
    ///
    /// ```
    /// use blocked_bloom_formats::rocksdb::{FilterBlock, FilterBlockBuilder, FilterKind};
    /// let mut builder = FilterBlockBuilder::legacy(10.0)?;
    /// builder.insert("apple");
    /// let block = builder.finish()?;
    /// let kind = FilterBlock::from_bytes(&block)?.kind();
    /// assert_eq!(kind, FilterKind::LegacyBloom { probes: 6, lines: 1, line_bytes: 64 });
    /// # Ok::<(), blocked_bloom_formats::rocksdb::RocksdbError>(())
    /// ```
    pub fn legacy(bits_per_key: f64) -> Result<Self, RocksdbError> {
        Ok(FilterBlockBuilder { legacy: true, ..FilterBlockBuilder::new(bits_per_key)? })
    }

    /// Inserts a user key (without sequence number, type and timestamp), or, for a filter of
    /// prefixes only, a prefix.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) {
        self.push(self.hash(key.as_ref()));
    }

    /// Inserts a key and its prefix, for a table whose filter contains both (`whole_key_filtering`
    /// with a `prefix_extractor`).
    ///
    /// Insert a key without a prefix (outside of the extractor's domain) with
    /// [`insert`](Self::insert). A key that equals the last key inserted with this method is
    /// dropped, and so is a prefix that equals the last prefix. Later releases of RocksDB drop some
    /// more hashes, so their block can be one cache line shorter.
    ///
    /// ```
    /// # use blocked_bloom_formats::rocksdb::FilterBlockBuilder;
    /// # let mut builder = FilterBlockBuilder::new(10.0)?;
    /// builder.insert_with_prefix("user:1", "user");
    /// builder.insert_with_prefix("user:2", "user");
    /// assert_eq!(builder.len(), 3);
    /// # Ok::<(), blocked_bloom_formats::rocksdb::RocksdbError>(())
    /// ```
    pub fn insert_with_prefix(&mut self, key: impl AsRef<[u8]>, prefix: impl AsRef<[u8]>) {
        for (which, bytes) in [key.as_ref(), prefix.as_ref()].into_iter().enumerate() {
            let hash = Some(self.hash(bytes));
            if self.last[which] != hash {
                self.last[which] = hash;
                hash.into_iter().for_each(|hash| self.push(hash));
            }
        }
    }

    fn hash(&self, key: &[u8]) -> u64 {
        if self.legacy { u64::from(legacy_hash_key(key)) } else { hash_key(key) }
    }

    fn push(&mut self, hash: u64) {
        if self.failed.is_some() || self.hashes.last() == Some(&hash) {
            return;
        }
        if self.hashes.try_reserve(1).is_err() {
            self.failed = Some(AllocError::new(16 * self.hashes.len() as u64));
            return;
        }
        self.hashes.push(hash);
    }

    /// Returns the collected hashes, for a builder of another kind of block.
    ///
    /// # Errors
    ///
    /// [`RocksdbError::Alloc`] if an allocation failed.
    pub(super) fn hashes(&self) -> Result<&[u64], RocksdbError> {
        self.failed.map_or(Ok(&self.hashes), |error| Err(error.into()))
    }

    /// Returns the number of hashes in the filter: keys and prefixes that were not dropped. This is
    /// RocksDB's property `rocksdb.num.filter_entries`.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Returns whether no key was inserted.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Returns the filter block, without the compression type and checksum (five bytes) that follow
    /// it in an SST file.
    ///
    /// Without keys it has five bytes, which RocksDB reads as "no keys"; store no filter then, like
    /// RocksDB. Above 4 GiB (3.4 billion keys at 10 bits) the block stops growing and the rate
    /// rises, as in RocksDB. Split the table before that.
    ///
    /// # Errors
    ///
    /// [`RocksdbError::Alloc`] if an allocation failed.
    pub fn finish(self) -> Result<Vec<u8>, RocksdbError> {
        self.build()
    }

    pub(super) fn build(&self) -> Result<Vec<u8>, RocksdbError> {
        if let Some(error) = self.failed {
            return Err(error.into());
        }
        if self.legacy { self.build_legacy() } else { self.build_fast() }
    }

    fn build_fast(&self) -> Result<Vec<u8>, RocksdbError> {
        const MAX_BITS: u128 = 0xffff_ffc0;
        let bits = self.hashes.len() as u128 * u128::from(self.millibits_per_key);
        let lines = bits.div_ceil(8_000).min(MAX_BITS).div_ceil(BLOCK_BYTES as u128) as u64;
        let probes = bloom_probes(self.millibits_per_key);
        let mut block = zeroed(lines * BLOCK_BYTES as u64)?;
        if !self.hashes.is_empty() {
            let (blocks, _) = block.as_chunks_mut();
            let filter = BloomFilter::from_blocks(blocks, probes, KEY_HASH);
            let mut filter = filter.expect("1 to 2^26 blocks and 1 to 24 probes are in range");
            filter.insert_hashes(&self.hashes).expect("a filter of whole keys takes hashes");
        }
        block.extend_from_slice(&[0xff, 0, probes as u8, 0, 0]);
        Ok(block)
    }

    fn build_legacy(&self) -> Result<Vec<u8>, RocksdbError> {
        const MAX_BITS: u128 = 0xffff_0000;
        let bits_per_key = (self.millibits_per_key + 500) / 1_000;
        let bits = (self.hashes.len() as u128 * u128::from(bits_per_key)).min(MAX_BITS) as u64;
        // An odd number, so that the remainder depends on every bit of a hash.
        let lines = if self.hashes.is_empty() { 0 } else { bits.div_ceil(512) | 1 };
        let probes = (bits_per_key * 69 / 100).clamp(1, 30) as u8;
        let mut block = zeroed(lines * BLOCK_BYTES as u64)?;
        if let Some(mut lines) = Lines::new(block.as_mut_slice(), lines as u32, probes) {
            self.hashes.iter().for_each(|&hash| lines.insert(hash as u32));
        }
        block.push(probes);
        block.extend_from_slice(&(lines as u32).to_le_bytes());
        Ok(block)
    }
}

/// Returns zero bytes with capacity for the trailer.
fn zeroed(bytes: u64) -> Result<Vec<u8>, AllocError> {
    let error = AllocError::new(bytes + TRAILER_BYTES as u64);
    let length = usize::try_from(bytes).map_err(|_| error)?;
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(length + TRAILER_BYTES).map_err(|_| error)?;
    zeros.resize(length, 0);
    Ok(zeros)
}

/// Inserts all keys.
impl<K: AsRef<[u8]>> Extend<K> for FilterBlockBuilder {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| self.insert(key));
    }
}

/// Shows the sizing and the number of hashes, without the hashes.
impl core::fmt::Debug for FilterBlockBuilder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FilterBlockBuilder")
            .field("millibits_per_key", &self.millibits_per_key)
            .field("legacy", &self.legacy)
            .field("len", &self.len())
            .field("failed", &self.failed)
            .finish()
    }
}
