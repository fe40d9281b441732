//! The filter of an SST file: found by way of footer, metaindex and properties, verified, and asked.
//!
//! This file owns the rules by which a question may be put to a filter: whole keys to a filter of whole keys, prefixes to one of
//! prefixes, under the extractor it was built with. Every other question it answers "maybe". It refuses damaged files with an error
//! that says where.

mod checksum;
mod entries;
mod metaindex;
mod partitions;
mod properties;
mod table;

pub use self::checksum::ChecksumKind;
use self::metaindex::Metaindex;
use self::partitions::Partitions;
use self::properties::Properties;
use self::table::{Block, Table};
use super::block::FilterBlock;
use super::error::RocksdbError;
use crate::bitmask::{self, Bitmask};
use crate::error::LengthError;
use crate::kernel::Kernel;
use crate::view::check_length;

/// The comparator under which keys are ordered by their bytes.
const BYTEWISE: &str = "leveldb.BytewiseComparator";

/// How the filter of an SST file is stored.
///
/// ```
/// use blocked_bloom::interop::rocksdb::FilterLayout;
/// assert_ne!(FilterLayout::None, FilterLayout::Full);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FilterLayout {
    /// There is none.
    None,
    /// One block for the whole file.
    Full,
    /// A block per range of keys, and an index of them.
    Partitioned,
    /// Only a filter per data block, which RocksDB dropped in 2022 and which is not read here.
    PerDataBlock,
    /// Only a filter by a policy that is not RocksDB's own.
    OtherPolicy,
}

#[derive(Clone, PartialEq, Eq)]
enum Filters<'a> {
    /// Nothing to ask; every answer is "maybe".
    Unread(FilterLayout),
    Full(FilterBlock<'a>),
    Partitioned(Partitions<'a>),
}

/// The filter of a block-based SST file, borrowed from the file's bytes.
///
/// "Absent" means that the file holds no value, merge operand or deletion of that very key. Range deletions are not in the filter:
/// a file with [`range_deletions`](Self::range_deletions) may delete the key all the same. Keys are user keys, without sequence
/// number, type and timestamp.
///
/// ```
/// use blocked_bloom::interop::rocksdb::SstFilter;
/// # if cfg!(not(target_family = "wasm")) {
/// let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n5000_partitioned.sst")?;
/// let filter = SstFilter::open(&file)?;
/// assert!(filter.contains("user00000000"));
/// assert!(!filter.contains("nobody"));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SstFilter<'a> {
    format_version: u32,
    checksum: ChecksumKind,
    properties: Properties<'a>,
    filters: Filters<'a>,
}

impl<'a> SstFilter<'a> {
    /// Finds the filter in the bytes of an SST file of `format_version` 2 to 7, and verifies every block on the way.
    ///
    /// Allocates nothing for a full filter, some 120 bytes per partition for a partitioned one. Data blocks and their index are
    /// not read. A filter block of five bytes or fewer, which RocksDB writes where there is no key, is answered "maybe".
    ///
    /// Cost: one pass over the filter's bytes.
    ///
    /// # Errors
    ///
    /// [`RocksdbError`]: this is no such file, or it is damaged. A file without a filter is no error.
    ///
    /// ```
    /// use blocked_bloom::interop::rocksdb::{RocksdbError, SstFilter};
    /// let error = SstFilter::open(&[0; 100]).unwrap_err();
    /// assert!(matches!(error, RocksdbError::Magic { offset: 92, found: 0 }));
    /// ```
    pub fn open(file: &'a [u8]) -> Result<Self, RocksdbError> {
        let table = Table::open(file)?;
        let names = Metaindex::of(table.block("metaindex", table.metaindex, 0)?)?;
        let properties = match names.properties {
            None => Properties::default(),
            Some(handle) => Properties::of(table.block_with_sequence_number(
                "properties block",
                handle,
                Properties::sequence_number,
            )?)?,
        };
        let filters = match names {
            Metaindex { full: Some(handle), .. } => {
                Filters::Full(filter_block(table.block("filter block", handle, 0)?)?)
            }
            Metaindex { partitioned: Some(handle), .. } => {
                let index = table.block("partition index", handle, 0)?;
                Filters::Partitioned(Partitions::of(&table, index, &properties)?)
            }
            Metaindex { unread, .. } => Filters::Unread(unread),
        };
        let Table { format_version, checksum, .. } = table;
        Ok(SstFilter { format_version, checksum, properties, filters })
    }

    /// Whether the file may hold this user key: false means certainly not.
    ///
    /// A file whose filter is of prefixes only, or that does not say, answers "maybe": ask
    /// [`contains_prefix`](Self::contains_prefix) with the key.
    ///
    /// Cost: one hash, one cache line, and for a partitioned filter a binary search.
    ///
    /// ```
    /// # use blocked_bloom::interop::rocksdb::SstFilter;
    /// # if cfg!(not(target_family = "wasm")) {
    /// # let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n5000_str.sst")?;
    /// let filter = SstFilter::open(&file)?;
    /// assert!(filter.contains("user00000000"));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        match &self.filters {
            _ if self.properties.whole_keys != Some(true) => true,
            Filters::Unread(_) => true,
            Filters::Full(filter) => filter.contains(key),
            Filters::Partitioned(partitions) => partitions.contains(key.as_ref()),
        }
    }

    /// Asks about every key; `hits` then has one bit per key. Batches may have any length.
    ///
    /// For a partitioned filter the keys are grouped by partition first, which allocates 32 bytes per key.
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, interop::rocksdb::SstFilter};
    /// # if cfg!(not(target_family = "wasm")) {
    /// # let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n5000_str.sst")?;
    /// let mut hits = Bitmask::new();
    /// SstFilter::open(&file)?.contains_batch(&["user00000000", "nobody"], &mut hits);
    /// assert!(hits.hits().eq([0]));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], hits: &mut Bitmask) {
        hits.write(keys.len(), |words| self.keys(keys, words));
    }

    /// [`contains_batch`](Self::contains_batch) into words of the caller's: key `i` is bit `i % 64` of `words[i / 64]`, bits
    /// past the last key are zero.
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per 64 keys, rounded up; nothing is written then.
    ///
    /// ```
    /// # use blocked_bloom::interop::rocksdb::SstFilter;
    /// # if cfg!(not(target_family = "wasm")) {
    /// # let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n5000_str.sst")?;
    /// let mut words = [0];
    /// SstFilter::open(&file)?.contains_batch_into(&["user00000000", "nobody"], &mut words)?;
    /// assert_eq!(words, [0b01]);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch_into<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        check_length(keys.len(), words)?;
        self.keys(keys, words);
        Ok(())
    }

    fn keys<K: AsRef<[u8]>>(&self, keys: &[K], words: &mut [u64]) {
        match &self.filters {
            Filters::Full(filter) if self.properties.whole_keys == Some(true) => {
                filter.keys(keys, words);
            }
            Filters::Partitioned(partitions) if self.properties.whole_keys == Some(true) => {
                partitions.keys(keys, words);
            }
            _ => bitmask::fill_with_hits(words, keys.len()),
        }
    }

    /// Whether the file may hold a key that begins with these bytes: false means certainly not.
    ///
    /// RocksDB's own extractors are known by their names, `rocksdb.FixedPrefix.N` and `rocksdb.CappedPrefix.N`: the first `N`
    /// bytes are asked for. "Maybe" is the answer where fewer are given, to filters without prefixes, and under other extractors,
    /// for which there is [`contains_extracted`](Self::contains_extracted).
    ///
    /// Cost: as [`contains`](Self::contains); in a partitioned filter each partition that may hold such keys is asked.
    ///
    /// ```
    /// # use blocked_bloom::interop::rocksdb::SstFilter;
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
        // What the extractor makes of every key that begins so, if it makes the same of all.
        let Some(prefix) = self.prefix_length().and_then(|length| start.get(..length)) else {
            return true;
        };
        match &self.filters {
            Filters::Unread(_) => true,
            Filters::Full(filter) => filter.contains(prefix),
            Filters::Partitioned(partitions) => partitions.contains_start(start, prefix),
        }
    }

    /// Whether the file may hold a key from which the extractor of this name makes this prefix: false means certainly not.
    ///
    /// For extractors of the caller's own. "Maybe" is the answer if the file was written with another, and to filters without
    /// prefixes. Cost: in a partitioned filter, every partition is asked.
    ///
    /// ```
    /// # use blocked_bloom::interop::rocksdb::SstFilter;
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
    ///
    /// ```
    /// # use blocked_bloom::interop::rocksdb::{FilterLayout, SstFilter};
    /// # if cfg!(not(target_family = "wasm")) {
    /// # let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n5000_partitioned.sst")?;
    /// assert_eq!(SstFilter::open(&file)?.layout(), FilterLayout::Partitioned);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn layout(&self) -> FilterLayout {
        match self.filters {
            Filters::Unread(layout) => layout,
            Filters::Full(_) => FilterLayout::Full,
            Filters::Partitioned(_) => FilterLayout::Partitioned,
        }
    }

    /// The filter blocks in the order of their keys: one of a full filter, one per partition, none without a filter.
    ///
    /// ```
    /// # use blocked_bloom::interop::rocksdb::SstFilter;
    /// # if cfg!(not(target_family = "wasm")) {
    /// # let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n5000_partitioned.sst")?;
    /// for block in SstFilter::open(&file)?.filter_blocks() {
    ///     println!("{:?}, fill {:?}", block.kind(), block.view().map(|view| view.fill_ratio()));
    /// }
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn filter_blocks(&self) -> impl Iterator<Item = FilterBlock<'a>> {
        let (full, partitions) = match &self.filters {
            Filters::Unread(_) => (None, None),
            Filters::Full(filter) => (Some(*filter), None),
            Filters::Partitioned(partitions) => (None, Some(partitions.filters())),
        };
        full.into_iter().chain(partitions.into_iter().flatten())
    }

    /// The `format_version` of the file, 2 to 7.
    ///
    /// ```
    /// # use blocked_bloom::interop::rocksdb::SstFilter;
    /// # if cfg!(not(target_family = "wasm")) {
    /// # let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n5000_str.sst")?;
    /// assert_eq!(SstFilter::open(&file)?.format_version(), 5);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn format_version(&self) -> u32 {
        self.format_version
    }

    /// How the file's blocks are checked.
    ///
    /// ```
    /// # use blocked_bloom::interop::rocksdb::{ChecksumKind, SstFilter};
    /// # if cfg!(not(target_family = "wasm")) {
    /// # let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n5000_str.sst")?;
    /// assert_eq!(SstFilter::open(&file)?.checksum_kind(), ChecksumKind::Xxh3);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn checksum_kind(&self) -> ChecksumKind {
        self.checksum
    }

    /// The property `rocksdb.filter.policy`: the policy that the writer was set to, not what it wrote (see
    /// [`FilterBlock::kind`]). `None` if there is no such property, or it is no text, here and in those below.
    ///
    /// ```
    /// # use blocked_bloom::interop::rocksdb::SstFilter;
    /// # if cfg!(not(target_family = "wasm")) {
    /// # let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n5000_str.sst")?;
    /// assert_eq!(SstFilter::open(&file)?.filter_policy(), Some("bloomfilter"));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn filter_policy(&self) -> Option<&'a str> {
        self.properties.policy
    }

    /// The property `rocksdb.num.filter_entries`: keys and prefixes in the filter.
    ///
    /// ```
    /// # use blocked_bloom::interop::rocksdb::SstFilter;
    /// # if cfg!(not(target_family = "wasm")) {
    /// # let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n5000_str.sst")?;
    /// assert_eq!(SstFilter::open(&file)?.filter_entries(), Some(5_000));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn filter_entries(&self) -> Option<u64> {
        self.properties.filter_entries
    }

    /// The property `rocksdb.num.range-deletions`. If it is not `Some(0)`, the file may delete a key of which its filter says "absent":
    /// `None` if the file does not have the property, so that nothing is known.
    ///
    /// ```
    /// # use blocked_bloom::interop::rocksdb::SstFilter;
    /// # if cfg!(not(target_family = "wasm")) {
    /// # let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n5000_str.sst")?;
    /// assert_eq!(SstFilter::open(&file)?.range_deletions(), Some(0));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn range_deletions(&self) -> Option<u64> {
        self.properties.range_deletions
    }

    /// The property `rocksdb.block.based.table.whole.key.filtering`: whether whole keys are in the filter.
    ///
    /// ```
    /// # use blocked_bloom::interop::rocksdb::SstFilter;
    /// # if cfg!(not(target_family = "wasm")) {
    /// # let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n5000_str.sst")?;
    /// assert_eq!(SstFilter::open(&file)?.whole_keys(), Some(true));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn whole_keys(&self) -> Option<bool> {
        self.properties.whole_keys
    }

    /// The name of the extractor whose prefixes are in the filter; `None` if there are none.
    ///
    /// ```
    /// # use blocked_bloom::interop::rocksdb::SstFilter;
    /// # if cfg!(not(target_family = "wasm")) {
    /// # let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n5000_str.sst")?;
    /// assert_eq!(SstFilter::open(&file)?.prefix_extractor(), None);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prefix_extractor(&self) -> Option<&'a str> {
        if self.properties.prefixes == Some(true) { self.properties.extractor } else { None }
    }

    /// Whether [`contains_prefix`](Self::contains_prefix) knows the extractor: `rocksdb.FixedPrefix.N` or `rocksdb.CappedPrefix.N`,
    /// with `N` in decimal digits. If not, or if there is none, its every answer is "maybe".
    ///
    /// ```
    /// # use blocked_bloom::interop::rocksdb::SstFilter;
    /// # if cfg!(not(target_family = "wasm")) {
    /// # let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n3000_whole_and_prefix4.sst")?;
    /// assert!(SstFilter::open(&file)?.knows_its_extractor());
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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

    /// The property `rocksdb.comparator`. A partitioned filter under another comparator than `leveldb.BytewiseComparator` is asked
    /// partition by partition, since here only the order of bytes is known: its false positives add up.
    ///
    /// ```
    /// # use blocked_bloom::interop::rocksdb::SstFilter;
    /// # if cfg!(not(target_family = "wasm")) {
    /// # let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n5000_str.sst")?;
    /// assert_eq!(SstFilter::open(&file)?.comparator(), Some("leveldb.BytewiseComparator"));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn comparator(&self) -> Option<&'a str> {
        self.properties.comparator
    }

    /// The same filter, with batches answered by `kernel` where kernels answer.
    ///
    /// ```
    /// # use blocked_bloom::{Kernel, interop::rocksdb::SstFilter};
    /// # if cfg!(not(target_family = "wasm")) {
    /// # let file = std::fs::read("tests/fixtures/rocksdb/bloom_b10_n5000_str.sst")?;
    /// let scalar = Kernel::supported().last().unwrap();
    /// let filter = SstFilter::open(&file)?.with_kernel(scalar);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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

/// The filter in a block that was verified: five bytes or fewer are what RocksDB wrote.
fn filter_block(block: Block<'_>) -> Result<FilterBlock<'_>, RocksdbError> {
    match FilterBlock::from_bytes(block.bytes) {
        Err(RocksdbError::NoKeys { .. }) => Ok(FilterBlock::pass_all()),
        other => other,
    }
}

/// What the file says of itself, without the bits.
impl core::fmt::Debug for SstFilter<'_> {
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
