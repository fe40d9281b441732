//! The filter of an SST file: found by way of footer, metaindex and properties, verified, and
//! looked up.
//!
//! Whole keys are looked up in a filter of whole keys, prefixes in one of prefixes, under the
//! extractor it was built with. Every other lookup is answered "maybe". A damaged file is an error
//! that says where.

mod block;
mod entries;
mod metaindex;
mod partitions;
mod properties;
mod separators;
mod table;

use core::slice;

use blocked_bloom::parts::{check_words, fill_with_hits, stored};
use blocked_bloom::{Filter, Kernel, KeyHash, LengthError};

use self::block::{Block, BlockBytes};
pub use self::metaindex::FilterLayout;
use self::metaindex::Metaindex;
use self::partitions::Partitions;
use self::properties::Properties;
use self::separators::Separators;
pub use self::table::SST_MAGICS;
use self::table::Table;
use super::block::{ByteKeys, FilterBlock, IntegerKeys, ReadKey};
use super::checksum::ChecksumKind;
use super::error::RocksdbError;
use super::hash::{KEY_HASH, hash_key};
use crate::ranges::FileRanges;

#[derive(Clone)]
enum Filters<D> {
    /// No filter that is read; every answer is "maybe".
    Unread(FilterLayout),
    Full(FilterBlock<BlockBytes<D>>),
    Partitioned(Partitions<D>),
}

/// The filter of a block-based SST file, in bytes that `D` holds: a `&[u8]`, an `Arc<[u8]>`, a
/// `bytes::Bytes`. If their owner lends fewer or more than were opened, every answer is "maybe".
///
/// "Absent" means that the file holds no value, merge operand or deletion of that very key. Range
/// deletions are not in the filter: a file with [`range_deletions`](Self::range_deletions) may
/// still delete the key. Keys are user keys, without sequence number, type and timestamp.
///
/// ```
/// use blocked_bloom::Filter;
/// use blocked_bloom_formats::rocksdb::SstFilter;
/// # if cfg!(not(target_family = "wasm")) {
/// let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n5000_partitioned.sst")?;
/// let filter = SstFilter::open(&file)?;
/// assert!(filter.contains("user00000000"));
/// assert!(!filter.contains("nobody"));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SstFilter<D> {
    format_version: u32,
    checksum: ChecksumKind,
    properties: Properties,
    filters: Filters<D>,
}

impl<D: AsRef<[u8]> + Clone> SstFilter<D> {
    /// Finds the filter in the bytes of an SST file of `format_version` 2 to 7, and verifies every
    /// block on the way.
    ///
    /// Each filter block has a clone of `file`, so that a `Vec<u8>` is better borrowed, or made an
    /// `Arc<[u8]>`. Allocates the names among the properties, and for a partitioned filter some 180
    /// bytes per partition and its separators. Data blocks and their index are not read. A filter
    /// block of five bytes or fewer, which RocksDB writes where there is no key, is answered
    /// "maybe".
    ///
    /// Cost: one pass over the filter's bytes.
    ///
    /// # Errors
    ///
    /// [`RocksdbError`]: this is no such file, or it is damaged. A file without a filter is no
    /// error.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use blocked_bloom::Filter;
    /// # use blocked_bloom_formats::rocksdb::SstFilter;
    /// struct Table {
    ///     filter: SstFilter<Arc<[u8]>>,
    /// }
    /// # if cfg!(not(target_family = "wasm")) {
    /// # let path = "tests/fixtures/rocksdb/bloom_b10_n5000_partitioned.sst";
    /// let file: Arc<[u8]> = std::fs::read(path)?.into();
    /// let table = Table { filter: SstFilter::open(file)? };
    /// assert!(!table.filter.contains("nobody"));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(file: D) -> Result<Self, RocksdbError> {
        // What is opened is what was measured, even if the owner lends other bytes later.
        let stored = stored(file);
        let file = FileRanges::from(stored.bytes().unwrap_or_default());
        SstFilter::read(&file, |block| {
            let start = block.offset as usize;
            BlockBytes { stored: stored.clone(), start, end: start + block.bytes.len() }
        })
    }
}

impl<'a> SstFilter<&'a [u8]> {
    /// [`open`](Self::open) of a file of which only parts are in memory: footer, metaindex,
    /// properties, and the filter with its index. The example is at [`FileRanges`].
    ///
    /// # Errors
    ///
    /// As `open`, and [`RocksdbError::NotLoaded`], which says what to insert before the next call.
    /// That takes some five calls; of a partitioned filter up to 64 MiB of partitions are needed at
    /// once. Each call parses again what was loaded, and verifies the partitions again.
    pub fn open_ranges(file: &FileRanges<'a>) -> Result<Self, RocksdbError> {
        SstFilter::read(file, |block| BlockBytes {
            stored: stored(block.bytes),
            start: 0,
            end: block.bytes.len(),
        })
    }
}

impl<D: AsRef<[u8]>> SstFilter<D> {
    /// Reads a file, of whose filter blocks `hold` makes the bytes to keep.
    fn read<'a>(
        file: &FileRanges<'a>,
        hold: impl Fn(Block<'a>) -> BlockBytes<D>,
    ) -> Result<Self, RocksdbError> {
        let table = Table::open(file)?;
        let names = Metaindex::read(table.block("metaindex", table.metaindex, 0)?)?;
        let properties = match names.properties {
            None => Properties::default(),
            Some(handle) => Properties::read(table.block_with_sequence_number(
                "properties block",
                handle,
                Properties::sequence_number,
            )?)?,
        };
        let filters = match names {
            Metaindex { full: Some(handle), .. } => {
                Filters::Full(table.block("filter block", handle, 0)?.filter(hold)?)
            }
            Metaindex { partitioned: Some(handle), .. } => {
                let index = table.block("partition index", handle, 0)?;
                Filters::Partitioned(Partitions::open(&table, index, &properties, hold)?)
            }
            Metaindex { unread, .. } => Filters::Unread(unread),
        };
        let (format_version, checksum) = (table.format_version, table.checksum);
        Ok(SstFilter { format_version, checksum, properties, filters })
    }

    /// Looks up keys, whose bytes `bytes` reads, with the errors of
    /// [`contains_hashes_into`](Filter::contains_hashes_into).
    fn look_up<K>(
        &self,
        keys: &[K],
        words: &mut [u64],
        bytes: impl ReadKey<K> + Copy,
    ) -> Result<(), LengthError> {
        check_words(keys.len(), words)?;
        match self.whole_key_filters() {
            Filters::Full(filter) => return filter.look_up(keys, words, bytes),
            Filters::Partitioned(partitions) => partitions.look_up(keys, words, bytes),
            Filters::Unread(_) => fill_with_hits(words, keys.len()),
        }
        Ok(())
    }

    /// The filters, if whole keys are in them.
    fn whole_key_filters(&self) -> &Filters<D> {
        match self.properties.whole_keys {
            Some(true) => &self.filters,
            _ => &Filters::Unread(FilterLayout::None),
        }
    }

    /// Whether the file may hold a key that begins with these bytes: false means certainly not.
    ///
    /// RocksDB's own extractors are known by their names, `rocksdb.FixedPrefix.N` and
    /// `rocksdb.CappedPrefix.N`: the first `N` bytes are looked up. The answer is "maybe" if fewer
    /// are given, if the filter has no prefixes, and for other extractors, for which there is
    /// [`contains_extracted`](Self::contains_extracted).
    ///
    /// Cost: as [`contains`](Filter::contains); in a partitioned filter each partition that may
    /// hold such keys is looked up.
    ///
    /// ```
    /// # use blocked_bloom_formats::rocksdb::SstFilter;
    /// # if cfg!(not(target_family = "wasm")) {
    /// # let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n3000_whole_and_prefix4.sst")?;
    /// let filter = SstFilter::open(&file)?;
    /// assert_eq!(filter.prefix_extractor(), Some("rocksdb.FixedPrefix.4"));
    /// assert!(filter.contains_prefix("p000"));
    /// assert!(!filter.contains_prefix("zzzz"));
    /// assert!(filter.contains_prefix("zzz")); // too short to say
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_prefix(&self, start: impl AsRef<[u8]>) -> bool {
        let start = start.as_ref();
        // The prefix of every key that begins with `start`, if all have the same one.
        let Some(prefix) = self.prefix_length().and_then(|length| start.get(..length)) else {
            return true;
        };
        match &self.filters {
            Filters::Unread(_) => true,
            Filters::Full(filter) => filter.contains(prefix),
            Filters::Partitioned(partitions) => partitions.contains_start(start, prefix),
        }
    }

    /// Whether the file may hold a key from which the extractor of this name makes this prefix:
    /// false means certainly not.
    ///
    /// For extractors of the caller's own. The answer is "maybe" if the file was written with
    /// another one, and if the filter has no prefixes. Cost: in a partitioned filter, every
    /// partition is looked up.
    ///
    /// ```
    /// # use blocked_bloom_formats::rocksdb::SstFilter;
    /// # if cfg!(not(target_family = "wasm")) {
    /// # let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n3000_whole_and_prefix4.sst")?;
    /// let filter = SstFilter::open(&file)?;
    /// assert!(!filter.contains_extracted("rocksdb.FixedPrefix.4", "zzzz"));
    /// assert!(filter.contains_extracted("my.UserId", "zzzz"));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_extracted(&self, extractor: &str, prefix: impl AsRef<[u8]>) -> bool {
        match &self.filters {
            _ if self.prefix_extractor() != Some(extractor) => true,
            Filters::Unread(_) => true,
            Filters::Full(filter) => filter.contains(prefix),
            Filters::Partitioned(partitions) => partitions.contains_prefix(prefix.as_ref()),
        }
    }

    /// How the filter is stored.
    pub fn layout(&self) -> FilterLayout {
        match self.filters {
            Filters::Unread(layout) => layout,
            Filters::Full(_) => FilterLayout::Full,
            Filters::Partitioned(_) => FilterLayout::Partitioned,
        }
    }

    /// The filter blocks in the order of their keys: one for a full filter, one per partition, none
    /// without a filter.
    pub fn filter_blocks(&self) -> impl Iterator<Item = &FilterBlock<impl AsRef<[u8]>>> {
        self.blocks().iter()
    }

    fn blocks(&self) -> &[FilterBlock<BlockBytes<D>>] {
        match &self.filters {
            Filters::Unread(_) => &[],
            Filters::Full(filter) => slice::from_ref(filter),
            Filters::Partitioned(partitions) => partitions.filters(),
        }
    }

    fn separators(&self) -> Option<&Separators> {
        match &self.filters {
            Filters::Partitioned(partitions) => partitions.separators(),
            Filters::Unread(_) | Filters::Full(_) => None,
        }
    }

    /// Which of the [`filter_blocks`](Self::filter_blocks) holds a whole key, if any does. `None`
    /// without a filter, and if every block is looked up, since the keys are not ordered by their
    /// bytes alone.
    ///
    /// ```
    /// # use blocked_bloom_formats::rocksdb::SstFilter;
    /// # if cfg!(not(target_family = "wasm")) {
    /// # let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n5000_partitioned.sst")?;
    /// let filter = SstFilter::open(&file)?;
    /// assert_eq!(filter.partition("a"), Some(0));
    /// assert_eq!(filter.partition("z"), Some(filter.filter_blocks().count() - 1));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn partition(&self, key: impl AsRef<[u8]>) -> Option<usize> {
        match &self.filters {
            Filters::Unread(_) => None,
            Filters::Full(_) => Some(0),
            Filters::Partitioned(partitions) => partitions.partition(key.as_ref()),
        }
    }

    /// The `format_version` of the file, 2 to 7.
    pub fn format_version(&self) -> u32 {
        self.format_version
    }

    /// How the file's blocks are checked.
    pub fn checksum_kind(&self) -> ChecksumKind {
        self.checksum
    }

    /// The property `rocksdb.filter.policy`: the policy that the writer was set to, not what it
    /// wrote (see [`FilterBlock::kind`]). `None` if there is no such property or it is no text, as
    /// in the methods below.
    pub fn filter_policy(&self) -> Option<&str> {
        self.properties.policy.as_deref()
    }

    /// The property `rocksdb.num.filter_entries`: keys and prefixes in the filter.
    pub fn filter_entries(&self) -> Option<u64> {
        self.properties.filter_entries
    }

    /// The property `rocksdb.num.range-deletions`. If it is not `Some(0)`, the file may delete a
    /// key of which its filter says "absent": `None` if the file does not have the property, so
    /// that nothing is known.
    pub fn range_deletions(&self) -> Option<u64> {
        self.properties.range_deletions
    }

    /// The property `rocksdb.block.based.table.whole.key.filtering`: whether whole keys are in the
    /// filter.
    pub fn whole_keys(&self) -> Option<bool> {
        self.properties.whole_keys
    }

    /// The name of the extractor whose prefixes are in the filter; `None` if there are none.
    pub fn prefix_extractor(&self) -> Option<&str> {
        let extractor = self.properties.extractor.as_deref();
        extractor.filter(|_| self.properties.prefixes == Some(true))
    }

    /// Whether [`contains_prefix`](Self::contains_prefix) knows the extractor:
    /// `rocksdb.FixedPrefix.N` or `rocksdb.CappedPrefix.N`, with `N` in decimal digits. If not, or
    /// if there is none, it always answers "maybe".
    pub fn knows_its_extractor(&self) -> bool {
        self.prefix_length().is_some()
    }

    /// Bytes of the prefixes of an extractor that is known.
    fn prefix_length(&self) -> Option<usize> {
        let names = ["rocksdb.FixedPrefix.", "rocksdb.CappedPrefix."];
        let extractor = self.prefix_extractor()?;
        let digits = names.iter().find_map(|name| extractor.strip_prefix(name))?;
        // Parsing alone would take a sign.
        digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())?
    }

    /// The property `rocksdb.comparator`. With another comparator than
    /// `leveldb.BytewiseComparator`, every partition of a partitioned filter is looked up, since
    /// only the order of bytes is known here: their false positives add up.
    pub fn comparator(&self) -> Option<&str> {
        self.properties.comparator.as_deref()
    }

    /// The same filter, with batches looked up by `kernel` where kernels look up.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        let filters = match self.filters {
            Filters::Full(filter) => Filters::Full(filter.with_kernel(kernel)),
            Filters::Partitioned(partitions) => {
                Filters::Partitioned(partitions.with_kernel(kernel))
            }
            unread => unread,
        };
        SstFilter { filters, ..self }
    }
}

/// A filter of prefixes only, or of a file that does not say what it holds, answers "maybe" to
/// whole keys: look up in it by [`contains_prefix`](SstFilter::contains_prefix).
///
/// In a partitioned filter, look up keys and not hashes: a hash, by [`hash_key`](super::hash_key),
/// does not tell which partition its key is in, so that it is looked up in every one, and the false
/// positives of all partitions add up. A LegacyBloom filter, which has another hash, answers
/// "maybe" to hashes.
///
/// Cost of a lookup: that of a [`FilterBlock`], and for a partitioned filter a binary search;
/// batches of keys are grouped by partition first, which allocates 16 bytes per key.
impl<D: AsRef<[u8]>> Filter for SstFilter<D> {
    fn contains_hash(&self, hash: u64) -> bool {
        match self.whole_key_filters() {
            Filters::Unread(_) => true,
            Filters::Full(filter) => filter.contains_hash(hash),
            Filters::Partitioned(partitions) => {
                partitions.filters().iter().any(|filter| filter.contains_hash(hash))
            }
        }
    }

    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        check_words(hashes.len(), words)?;
        match self.whole_key_filters() {
            Filters::Full(filter) => return filter.contains_hashes_into(hashes, words),
            Filters::Partitioned(partitions) => partitions.look_up_hashes(hashes, words),
            Filters::Unread(_) => fill_with_hits(words, hashes.len()),
        }
        Ok(())
    }

    fn prefetch_hash(&self, hash: u64) {
        if let Filters::Full(_) | Filters::Partitioned(_) = self.whole_key_filters() {
            self.filter_blocks().for_each(|filter| filter.prefetch_hash(hash));
        }
    }

    /// [`KEY_HASH`](super::KEY_HASH).
    fn key_hash(&self) -> KeyHash {
        KEY_HASH
    }

    fn hash_key(&self, key: &[u8]) -> Option<u64> {
        Some(hash_key(key))
    }

    fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        match self.whole_key_filters() {
            Filters::Unread(_) => true,
            Filters::Full(filter) => filter.contains(key),
            Filters::Partitioned(partitions) => partitions.contains(key.as_ref()),
        }
    }

    fn contains_batch_into<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        self.look_up(keys, words, ByteKeys)
    }

    fn contains_u64s_into(&self, keys: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        self.look_up(keys, words, IntegerKeys)
    }
}

/// Same properties, and same filters for the same keys; neither the kernel nor who owns the bytes
/// matters.
impl<D: AsRef<[u8]>, E: AsRef<[u8]>> PartialEq<SstFilter<E>> for SstFilter<D> {
    fn eq(&self, other: &SstFilter<E>) -> bool {
        (self.format_version, self.checksum) == (other.format_version, other.checksum)
            && self.properties == other.properties
            && self.layout() == other.layout()
            && self.blocks() == other.blocks()
            && self.separators() == other.separators()
    }
}

impl<D: AsRef<[u8]>> Eq for SstFilter<D> {}

/// What the file says of itself, without the bits.
impl<D: AsRef<[u8]>> core::fmt::Debug for SstFilter<D> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SstFilter")
            .field("format_version", &self.format_version)
            .field("checksum", &self.checksum)
            .field("layout", &self.layout())
            .field("filter_blocks", &self.filter_blocks().count())
            .field("filter_policy", &self.filter_policy())
            .field("whole_keys", &self.whole_keys())
            .field("prefix_extractor", &self.prefix_extractor())
            .finish_non_exhaustive()
    }
}
