//! The filter of an SST file: located through footer, metaindex and properties, verified, and
//! looked up.
//!
//! Whole keys are looked up in a filter of whole keys, and prefixes in a filter of prefixes, with
//! the extractor that built it. Every other lookup answers "maybe". A damaged file is an error with
//! the place of the damage.

mod block;
mod entries;
mod metaindex;
mod partitions;
mod properties;
mod separators;
mod table;

use alloc::vec::Vec;

use blocked_bloom::parts::{check_words, fill_with_hits, stored};
use blocked_bloom::{Filter, Kernel, KeyHash, LengthError};

use self::block::{Block, BlockBytes};
pub use self::metaindex::FilterLayout;
use self::metaindex::Metaindex;
use self::partitions::Partitions;
use self::properties::Properties;
pub use self::table::SST_MAGICS;
use self::table::Table;
use super::block::{ByteKeys, FilterBlock, IntegerKeys, ReadKey};
use super::checksum::ChecksumKind;
use super::error::RocksdbError;
use super::hash::{KEY_HASH, hash_key};
use crate::ranges::FileRanges;

/// The filter of a block-based SST file, in bytes of any owner `D`: a `&[u8]`, an `Arc<[u8]>`, a
/// `bytes::Bytes`. If the length of the owner's bytes changes after opening, every answer is
/// "maybe".
///
/// "Absent" means that the file has no value, merge operand or deletion of that key. Range
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
    layout: FilterLayout,
    /// One for a full filter. None without a supported filter: then every answer is "maybe".
    partitions: Partitions<D>,
}

impl<D: AsRef<[u8]> + Clone> SstFilter<D> {
    /// Locates the filter in the bytes of an SST file of `format_version` 2 to 7, and verifies
    /// every block that it reads.
    ///
    /// Each filter block keeps a clone of `file`, so borrow a `Vec<u8>` or convert it to an
    /// `Arc<[u8]>`. Allocates the names in the properties, and for a partitioned filter about 180
    /// bytes per partition and its separators. Data blocks and their index are not read. A filter
    /// block of five bytes or fewer, which RocksDB writes if there is no key, answers "maybe".
    ///
    /// Cost: one pass over the filter's bytes.
    ///
    /// # Errors
    ///
    /// [`RocksdbError`] if the file is not an SST file or is damaged. A missing filter is not an
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
        // The slice that was measured is the one that is opened; the owner may lend others later.
        let stored = stored(file);
        let file = FileRanges::from(stored.bytes().unwrap_or_default());
        SstFilter::read(&file, |block| {
            let start = block.offset as usize;
            BlockBytes { stored: stored.clone(), start, end: start + block.bytes.len() }
        })
    }
}

impl<'a> SstFilter<&'a [u8]> {
    /// Opens a file like [`open`](Self::open), with only parts of it in memory: footer, metaindex,
    /// properties, and the filter with its index. See the example of [`FileRanges`].
    ///
    /// # Errors
    ///
    /// The errors of `open`, and [`RocksdbError::NotLoaded`] with the range to insert before the
    /// next call. About five calls are needed; for a partitioned filter, up to 64 MiB of partitions
    /// at once. Each call parses the loaded bytes and verifies the partitions again.
    pub fn open_ranges(file: &FileRanges<'a>) -> Result<Self, RocksdbError> {
        SstFilter::read(file, |block| BlockBytes {
            stored: stored(block.bytes),
            start: 0,
            end: block.bytes.len(),
        })
    }
}

impl<D: AsRef<[u8]>> SstFilter<D> {
    /// Reads a file. `hold` returns the bytes to keep for each filter block.
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
        let mut partitions = Partitions { filters: Vec::new(), separators: None };
        let layout = match names {
            Metaindex { full: Some(handle), .. } => {
                partitions.push(table.block("filter block", handle, 0)?.filter(hold)?)?;
                FilterLayout::Full
            }
            Metaindex { partitioned: Some(handle), .. } => {
                let index = table.block("partition index", handle, 0)?;
                partitions = Partitions::open(&table, index, &properties, hold)?;
                FilterLayout::Partitioned
            }
            Metaindex { unread, .. } => unread,
        };
        let (format_version, checksum) = (table.format_version, table.checksum);
        Ok(SstFilter { format_version, checksum, properties, layout, partitions })
    }

    /// Looks up keys with the errors of [`contains_hashes_into`](Filter::contains_hashes_into).
    /// `bytes` reads the bytes of a key.
    fn look_up<K>(
        &self,
        keys: &[K],
        words: &mut [u64],
        bytes: impl ReadKey<K> + Copy,
    ) -> Result<(), LengthError> {
        check_words(keys.len(), words)?;
        match self.whole_key_filters() {
            Some(partitions) => partitions.look_up(keys, words, bytes),
            None => fill_with_hits(words, keys.len()),
        }
        Ok(())
    }

    /// Returns the filters, if they are read and contain whole keys.
    fn whole_key_filters(&self) -> Option<&Partitions<D>> {
        self.filters().filter(|_| self.properties.whole_keys == Some(true))
    }

    /// Returns the filters, if they are read.
    fn filters(&self) -> Option<&Partitions<D>> {
        Some(&self.partitions).filter(|partitions| !partitions.filters.is_empty())
    }

    /// Returns whether the file may contain a key that begins with these bytes; false means
    /// certainly not.
    ///
    /// RocksDB's own extractors, `rocksdb.FixedPrefix.N` and `rocksdb.CappedPrefix.N`, are known by
    /// name: the first `N` bytes are looked up. The answer is "maybe" for fewer bytes, for a filter
    /// without prefixes, and for other extractors (use
    /// [`contains_extracted`](Self::contains_extracted)).
    ///
    /// Cost: as for [`contains`](Filter::contains). In a partitioned filter, each partition that
    /// may contain such keys is looked up.
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
        // The prefix of every key that begins with `start`, if it is the same for all.
        let Some(prefix) = self.prefix_length().and_then(|length| start.get(..length)) else {
            return true;
        };
        self.filters().is_none_or(|partitions| partitions.contains_start(start, prefix))
    }

    /// Returns whether the file may contain a key with this prefix under the extractor of this
    /// name; false means certainly not.
    ///
    /// For custom extractors. The answer is "maybe" if the file was written with another extractor,
    /// or the filter has no prefixes. Cost: in a partitioned filter, every partition is looked up.
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
        let filters = self.filters().filter(|_| self.prefix_extractor() == Some(extractor));
        filters.is_none_or(|partitions| partitions.contains_prefix(prefix.as_ref()))
    }

    /// Returns how the filter is stored.
    pub fn layout(&self) -> FilterLayout {
        self.layout
    }

    /// Returns the filter blocks in the order of their keys: one for a full filter, one per
    /// partition, none without a filter.
    pub fn filter_blocks(&self) -> impl Iterator<Item = &FilterBlock<impl AsRef<[u8]>>> {
        self.partitions.filters.iter()
    }

    /// Returns the index of the [filter block](Self::filter_blocks) that may contain a whole key.
    /// Returns `None` without a filter, and if every block is looked up because the keys are not
    /// ordered by their bytes alone.
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
        match self.layout {
            FilterLayout::Full => Some(0),
            _ => self.partitions.partition(key.as_ref()),
        }
    }

    /// Returns the `format_version` of the file, 2 to 7.
    pub fn format_version(&self) -> u32 {
        self.format_version
    }

    /// Returns the kind of checksum of the file's blocks.
    pub fn checksum_kind(&self) -> ChecksumKind {
        self.checksum
    }

    /// Returns the property `rocksdb.filter.policy`: the policy that the writer was set to, which
    /// may differ from the filter it wrote (see [`FilterBlock::kind`]). As in the methods below,
    /// `None` means that the property is missing or is not text.
    pub fn filter_policy(&self) -> Option<&str> {
        self.properties.policy.as_deref()
    }

    /// Returns the property `rocksdb.num.filter_entries`: keys and prefixes in the filter.
    pub fn filter_entries(&self) -> Option<u64> {
        self.properties.filter_entries
    }

    /// Returns the property `rocksdb.num.range-deletions`. Unless it is `Some(0)`, the file may
    /// delete a key for which its filter answers "absent". `None` means that the file does not have
    /// the property, so the number is unknown.
    pub fn range_deletions(&self) -> Option<u64> {
        self.properties.range_deletions
    }

    /// Returns the property `rocksdb.block.based.table.whole.key.filtering`: whether the filter
    /// contains whole keys.
    pub fn whole_keys(&self) -> Option<bool> {
        self.properties.whole_keys
    }

    /// Returns the name of the extractor whose prefixes the filter contains, if any.
    pub fn prefix_extractor(&self) -> Option<&str> {
        let extractor = self.properties.extractor.as_deref();
        extractor.filter(|_| self.properties.prefixes == Some(true))
    }

    /// Returns whether [`contains_prefix`](Self::contains_prefix) knows the extractor:
    /// `rocksdb.FixedPrefix.N` or `rocksdb.CappedPrefix.N`, with `N` in decimal digits. If not, or
    /// without an extractor, it always answers "maybe".
    pub fn knows_its_extractor(&self) -> bool {
        self.prefix_length().is_some()
    }

    /// Returns the length of the prefixes of a known extractor.
    fn prefix_length(&self) -> Option<usize> {
        let names = ["rocksdb.FixedPrefix.", "rocksdb.CappedPrefix."];
        let extractor = self.prefix_extractor()?;
        let digits = names.iter().find_map(|name| extractor.strip_prefix(name))?;
        // Parsing alone would accept a sign.
        digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())?
    }

    /// Returns the property `rocksdb.comparator`. With any other comparator than
    /// `leveldb.BytewiseComparator`, every partition of a partitioned filter is looked up, since
    /// only the order of bytes is known here. Their false positives add up.
    pub fn comparator(&self) -> Option<&str> {
        self.properties.comparator.as_deref()
    }

    /// Sets the kernel that runs batches, for blocks that kernels look up.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        SstFilter { partitions: self.partitions.with_kernel(kernel), ..self }
    }
}

/// A filter of prefixes only, or of a file that does not state its contents, answers "maybe" to
/// whole keys. Use [`contains_prefix`](SstFilter::contains_prefix).
///
/// Look up keys instead of hashes in a partitioned filter. A hash (from
/// [`hash_key`](super::hash_key)) does not determine the partition of its key, so every partition
/// is looked up and their false positives add up. A LegacyBloom filter, which has another hash,
/// answers "maybe" to hashes.
///
/// A lookup costs as much as in a [`FilterBlock`], plus a binary search in a partitioned filter.
/// Batches of keys are first grouped by partition, which allocates 16 bytes per key.
impl<D: AsRef<[u8]>> Filter for SstFilter<D> {
    fn contains_hash(&self, hash: u64) -> bool {
        self.whole_key_filters().is_none_or(|partitions| partitions.contains_hash(hash))
    }

    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        check_words(hashes.len(), words)?;
        match self.whole_key_filters() {
            Some(partitions) => partitions.look_up_hashes(hashes, words),
            None => fill_with_hits(words, hashes.len()),
        }
        Ok(())
    }

    fn prefetch_hash(&self, hash: u64) {
        let filters = self.whole_key_filters().map_or(&[][..], |partitions| &partitions.filters);
        filters.iter().for_each(|filter| filter.prefetch_hash(hash));
    }

    /// Returns [`KEY_HASH`](super::KEY_HASH).
    fn key_hash(&self) -> KeyHash {
        KEY_HASH
    }

    fn hash_key(&self, key: &[u8]) -> Option<u64> {
        Some(hash_key(key))
    }

    fn contains_key(&self, key: &[u8]) -> bool {
        self.whole_key_filters().is_none_or(|partitions| partitions.contains(key))
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

/// Compares the properties, and the filters for the same keys; kernel and owner do not matter.
impl<D: AsRef<[u8]>, E: AsRef<[u8]>> PartialEq<SstFilter<E>> for SstFilter<D> {
    fn eq(&self, other: &SstFilter<E>) -> bool {
        (self.format_version, self.checksum) == (other.format_version, other.checksum)
            && self.properties == other.properties
            && self.layout == other.layout
            && self.partitions.filters == other.partitions.filters
            && self.partitions.separators == other.partitions.separators
    }
}

impl<D: AsRef<[u8]>> Eq for SstFilter<D> {}

/// Shows the properties of the file, without the bits.
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
