//! The opened filter of a table, of any kind.

use alloc::vec::Vec;
use core::fmt::{self, Display, Formatter};
use core::ops::Bound;

use blocked_bloom::parts::{MAGIC as BLOOM_MAGIC, check_words, fill_with_hits};
use blocked_bloom::{
    AllocError, Block, BloomFilter, Filter, FormatError, KeyHash, LengthError, PrefixExtractor,
    Stored,
};
#[cfg(feature = "rocksdb")]
use blocked_bloom_formats::rocksdb::{FilterBlock, RocksdbError};
use blocked_bloom_ribbon::{RibbonError, RibbonFilter};

use crate::identity::FilterIdentity;
use crate::partition::{INDEX_MAGIC, PartitionError, PartitionIndex, header_checksum};

/// Length of a compact filter modulo 64. Every other container starts with a magic number, or its
/// length is a multiple of 64.
const COMPACT_REMAINDER: usize = 8;

/// The opened filter of a table, of any kind that [`FilterPolicy`](crate::FilterPolicy) and
/// [`KindPlan`](crate::KindPlan) choose.
///
/// [`from_bytes`](Self::from_bytes) recognises the kind. Lookups answer "maybe" if the filter
/// cannot know. `B` owns the stored bytes: a mapping, an `Arc<[u8]>`, a `Vec<u8>`.
///
/// ```
/// use blocked_bloom::{Filter, FilterOptions, Sizing};
/// use blocked_bloom_lsm::TableFilter;
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
/// let mut builder = options.builder();
/// builder.extend(["apple", "banana"])?;
/// let stored = builder.finish()?.to_bytes();
///
/// let (filter, error) = TableFilter::open_or_pass_all(stored, options.key_hash());
/// if let Some(error) = error {
///     eprintln!("reading the table without its filter: {error}");
/// }
/// let hasher = options.hasher()?;
/// assert!(filter.contains_hash(hasher.hash("apple")));
/// assert!(!filter.contains_hash(hasher.hash("cherry")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub enum TableFilter<B = Vec<u8>> {
    /// No filter, or an unusable one: every answer is "maybe".
    None(KeyHash),
    /// A Bloom filter in its own memory: one that was just built, or a copy aligned to cache lines.
    Owned(BloomFilter),
    /// A Bloom filter in its stored bytes, in the full or the compact form; also a pass-all filter.
    Bloom(BloomFilter<Stored<B>>),
    /// A Ribbon filter.
    Ribbon(RibbonFilter<B>),
    /// The index of a filter in partitions. Its answer for a hash is "maybe", because only a key
    /// determines the partition: [locate] the key, and look it up in the filter of its partition,
    /// which is a `TableFilter` of its own.
    ///
    /// [locate]: PartitionIndex::locate
    Partitioned(PartitionIndex<B>),
    /// A filter block of RocksDB, without the five bytes that follow it in a file.
    #[cfg(feature = "rocksdb")]
    Rocksdb(FilterBlock<B>),
}

impl<B: AsRef<[u8]>> TableFilter<B> {
    /// Opens stored bytes of the kind that their magic number names, and verifies their checksums.
    /// Empty bytes mean that the table has no filter.
    ///
    /// The compact form of a Bloom filter is recognised by its length. It has no checksum: its
    /// container has one, and must have checked it. Cost: reads the bytes once.
    ///
    /// # Errors
    ///
    /// [`TableFilterError`] if the bytes are damaged, of an unknown kind, or have another hash or
    /// seed than `key_hash`.
    pub fn from_bytes(bytes: B, key_hash: KeyHash) -> Result<Self, TableFilterError> {
        let stored = bytes.as_ref();
        Ok(if stored.is_empty() {
            TableFilter::None(key_hash)
        } else if stored.starts_with(&BLOOM_MAGIC) {
            TableFilter::Bloom(BloomFilter::from_bytes(bytes, key_hash)?)
        } else if stored.starts_with(&blocked_bloom_ribbon::MAGIC) {
            let filter = RibbonFilter::from_bytes(bytes, key_hash);
            TableFilter::Ribbon(filter.map_err(TableFilterError::Ribbon)?)
        } else if stored.starts_with(&INDEX_MAGIC) {
            let index = PartitionIndex::from_bytes(bytes, key_hash);
            TableFilter::Partitioned(index.map_err(TableFilterError::Partition)?)
        } else if stored.len() % 64 == COMPACT_REMAINDER {
            TableFilter::Bloom(BloomFilter::from_compact_bytes(bytes, key_hash)?)
        } else {
            let mut found = [0; 8];
            let length = stored.len().min(8);
            found[..length].copy_from_slice(&stored[..length]);
            return Err(TableFilterError::Unknown { found, length: stored.len() as u64 });
        })
    }

    /// Opens stored bytes and never fails: for unusable bytes it returns a filter that answers
    /// "maybe" to every key, plus the error to log.
    pub fn open_or_pass_all(bytes: B, key_hash: KeyHash) -> (Self, Option<TableFilterError>) {
        match TableFilter::from_bytes(bytes, key_hash) {
            Ok(filter) => (filter, None),
            Err(error) => (TableFilter::None(key_hash), Some(error)),
        }
    }

    /// Opens a filter block of RocksDB: a Bloom filter of either format, or Ribbon.
    ///
    /// A block has neither magic number nor checksum, so [`from_bytes`](Self::from_bytes) cannot
    /// recognise it. The reader of the SST file must have verified the checksum that follows the
    /// block. Look up hashes of `blocked_bloom_formats::rocksdb::hash_key`.
    ///
    /// # Errors
    ///
    /// [`TableFilterError::Rocksdb`] if the bytes are not a filter block.
    #[cfg(feature = "rocksdb")]
    #[cfg_attr(docsrs, doc(cfg(feature = "rocksdb")))]
    pub fn from_rocksdb_block(bytes: B) -> Result<Self, TableFilterError> {
        let block = FilterBlock::from_bytes(bytes).map_err(TableFilterError::Rocksdb)?;
        Ok(TableFilter::Rocksdb(block))
    }

    /// Looks up a scan: returns false if the table certainly contains no key that starts with
    /// `start`, as [`BloomFilter::contains_prefix`] describes.
    ///
    /// Only Bloom filters answer. The other kinds contain no prefixes, or do not record the rule by
    /// which they were cut, and return true. For a filter in partitions, look up the partition in
    /// which the scan starts.
    pub fn contains_prefix(&self, extractor: &PrefixExtractor, start: impl AsRef<[u8]>) -> bool {
        match self {
            TableFilter::Owned(filter) => filter.contains_prefix(extractor, start),
            TableFilter::Bloom(filter) => filter.contains_prefix(extractor, start),
            _ => true,
        }
    }

    /// Looks up a range: returns false if the table certainly contains no key between the bounds,
    /// as [`BloomFilter::contains_range`] describes.
    ///
    /// Only Bloom filters answer. For a filter in partitions, look up every partition that
    /// [`PartitionIndex::locate_range`] returns.
    pub fn contains_range(
        &self,
        extractor: &PrefixExtractor,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> bool {
        match self {
            TableFilter::Owned(filter) => filter.contains_range(extractor, lower, upper),
            TableFilter::Bloom(filter) => filter.contains_range(extractor, lower, upper),
            _ => true,
        }
    }

    /// Returns the bytes that lookups read: blocks, a Ribbon filter, the index of partitions or a
    /// block of RocksDB; 0 without a filter.
    pub fn memory_bytes(&self) -> u64 {
        match self {
            TableFilter::None(_) => 0,
            TableFilter::Owned(filter) => filter.memory_bytes(),
            TableFilter::Bloom(filter) => filter.memory_bytes(),
            TableFilter::Ribbon(filter) => filter.memory_bytes(),
            TableFilter::Partitioned(index) => index.index_bytes(),
            #[cfg(feature = "rocksdb")]
            TableFilter::Rocksdb(block) => block.as_bytes().len() as u64,
        }
    }

    /// Returns the identity of the filter: the checksum in the header of its stored form, or the
    /// number of bytes if there is no header (a block of RocksDB, or no filter).
    ///
    /// Cost: none for stored bytes. For a Bloom filter in its own memory, and for the compact form,
    /// it reads the blocks.
    pub fn identity(&self) -> FilterIdentity {
        FilterIdentity::HeaderChecksum(match self {
            TableFilter::None(_) => return FilterIdentity::Length(0),
            TableFilter::Owned(filter) => header_checksum(&filter.stored_header()),
            TableFilter::Bloom(filter) => {
                let stored =
                    filter.holder().bytes().filter(|bytes| bytes.starts_with(&BLOOM_MAGIC));
                match stored {
                    Some(bytes) => header_checksum(bytes),
                    None => header_checksum(&filter.stored_header()),
                }
            }
            TableFilter::Ribbon(filter) => header_checksum(filter.as_bytes()),
            TableFilter::Partitioned(index) => index.header_checksum(),
            #[cfg(feature = "rocksdb")]
            TableFilter::Rocksdb(block) => {
                return FilterIdentity::Length(block.as_bytes().len() as u64);
            }
        })
    }

    /// Returns the false-positive rate predicted from kind and shape, 0 to 1; 1 if every hash is
    /// answered "maybe".
    pub fn expected_false_positive_rate(&self) -> f64 {
        match self {
            TableFilter::Owned(filter) => filter.expected_false_positive_rate(),
            TableFilter::Bloom(filter) => filter.expected_false_positive_rate(),
            TableFilter::Ribbon(filter) => filter.expected_false_positive_rate(),
            #[cfg(feature = "rocksdb")]
            TableFilter::Rocksdb(block) => {
                let ribbon = block.ribbon().map(|ribbon| ribbon.expected_false_positive_rate());
                let bloom = || block.view().map(|bloom| bloom.estimated_false_positive_rate());
                ribbon.or_else(bloom).unwrap_or(1.0)
            }
            TableFilter::None(_) | TableFilter::Partitioned(_) => 1.0,
        }
    }

    /// Copies the filter into memory of its own, and releases the owner of its stored bytes.
    ///
    /// Each block of a Bloom filter then is in one cache line; in stored bytes it may be in two. A
    /// Bloom filter of RocksDB can then be looked up by hashes only: a key is answered "maybe".
    ///
    /// # Errors
    ///
    /// [`TableFilterError::Alloc`] if there is no memory for the copy, and the errors of
    /// [`from_bytes`](Self::from_bytes), which verifies the copies of all kinds but Bloom.
    pub fn into_own_memory(self) -> Result<TableFilter, TableFilterError> {
        match self {
            TableFilter::None(key_hash) => Ok(TableFilter::None(key_hash)),
            TableFilter::Owned(filter) => Ok(TableFilter::Owned(filter)),
            TableFilter::Bloom(filter) => Ok(TableFilter::Owned(filter.to_filter()?)),
            TableFilter::Ribbon(filter) => {
                TableFilter::from_bytes(copy(filter.as_bytes())?, filter.key_hash())
            }
            TableFilter::Partitioned(index) => {
                TableFilter::from_bytes(copy(index.as_bytes())?, index.key_hash())
            }
            #[cfg(feature = "rocksdb")]
            TableFilter::Rocksdb(block) => match block.view() {
                Some(view) => Ok(TableFilter::Owned(view.to_filter()?)),
                None => TableFilter::from_rocksdb_block(copy(block.as_bytes())?),
            },
        }
    }
}

fn copy(bytes: &[u8]) -> Result<Vec<u8>, AllocError> {
    let mut copy = Vec::new();
    let no_memory = |_| AllocError::new(bytes.len() as u64);
    copy.try_reserve_exact(bytes.len()).map_err(no_memory)?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// Evaluates `$call` for the filter, or `$maybe` if the table has no filter for hashes.
macro_rules! match_filter {
    ($table:ident, $filter:ident => $call:expr, $maybe:expr) => {
        match $table {
            TableFilter::Owned($filter) => $call,
            TableFilter::Bloom($filter) => $call,
            TableFilter::Ribbon($filter) => $call,
            #[cfg(feature = "rocksdb")]
            TableFilter::Rocksdb($filter) => $call,
            TableFilter::None(_) | TableFilter::Partitioned(_) => $maybe,
        }
    };
}

/// Cost of a lookup: that of the kind, for Bloom one cache line.
impl<B: AsRef<[u8]>> Filter for TableFilter<B> {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        match_filter!(self, filter => filter.contains_hash(hash), true)
    }

    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        let keys = hashes.len();
        match_filter!(self, f => f.contains_hashes_into(hashes, words), fill_maybe(keys, words))
    }

    #[inline]
    fn prefetch_hash(&self, hash: u64) {
        match_filter!(self, filter => filter.prefetch_hash(hash), ());
    }

    #[inline]
    fn block_and_probes(&self, hash: u64) -> Option<(&Block, u32)> {
        // Only these kinds have blocks. With a case for each kind, the match becomes an indirect
        // jump, which takes longer than two comparisons.
        match self {
            TableFilter::Owned(filter) => filter.block_and_probes(hash),
            TableFilter::Bloom(filter) => filter.block_and_probes(hash),
            #[cfg(feature = "rocksdb")]
            TableFilter::Rocksdb(block) => block.block_and_probes(hash),
            _ => None,
        }
    }

    #[inline]
    fn key_hash(&self) -> KeyHash {
        match self {
            TableFilter::None(key_hash) => *key_hash,
            TableFilter::Owned(filter) => filter.key_hash(),
            TableFilter::Bloom(filter) => filter.key_hash(),
            TableFilter::Ribbon(filter) => filter.key_hash(),
            TableFilter::Partitioned(index) => index.key_hash(),
            #[cfg(feature = "rocksdb")]
            TableFilter::Rocksdb(block) => block.key_hash(),
        }
    }

    #[inline]
    fn hash_key(&self, key: &[u8]) -> Option<u64> {
        match self {
            #[cfg(feature = "rocksdb")]
            TableFilter::Rocksdb(block) => block.hash_key(key),
            _ => Some(self.hasher().ok()?.hash(key)),
        }
    }

    #[inline]
    fn contains_key(&self, key: &[u8]) -> bool {
        match_filter!(self, filter => filter.contains_key(key), true)
    }

    fn contains_batch_into<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        let count = keys.len();
        match_filter!(self, f => f.contains_batch_into(keys, words), fill_maybe(count, words))
    }

    fn contains_u64s_into(&self, keys: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        let count = keys.len();
        match_filter!(self, f => f.contains_u64s_into(keys, words), fill_maybe(count, words))
    }
}

fn fill_maybe(keys: usize, words: &mut [u64]) -> Result<(), LengthError> {
    check_words(keys, words)?;
    fill_with_hits(words, keys);
    Ok(())
}

/// Prints the kind and the header of the filter, without its contents.
impl<B: AsRef<[u8]>> fmt::Debug for TableFilter<B> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (kind, inner): (&str, &dyn fmt::Debug) = match self {
            TableFilter::None(key_hash) => ("None", key_hash),
            TableFilter::Owned(filter) => ("Owned", filter),
            TableFilter::Bloom(filter) => ("Bloom", filter),
            TableFilter::Ribbon(filter) => ("Ribbon", filter),
            TableFilter::Partitioned(index) => ("Partitioned", index),
            #[cfg(feature = "rocksdb")]
            TableFilter::Rocksdb(block) => ("Rocksdb", block),
        };
        f.debug_tuple(kind).field(inner).finish()
    }
}

/// A filter that was just built.
impl From<BloomFilter> for TableFilter {
    fn from(filter: BloomFilter) -> Self {
        TableFilter::Owned(filter)
    }
}

/// A filter that was opened, for example a partition by its index.
impl<B> From<BloomFilter<Stored<B>>> for TableFilter<B> {
    fn from(filter: BloomFilter<Stored<B>>) -> Self {
        TableFilter::Bloom(filter)
    }
}

/// The reason why the filter of a table cannot be used. Answer "maybe" then.
///
/// ```
/// use blocked_bloom::KeyHash;
/// use blocked_bloom_lsm::{TableFilter, TableFilterError};
/// let error = TableFilter::from_bytes(b"no filter", KeyHash::default()).unwrap_err();
/// assert_eq!(error, TableFilterError::Unknown { found: *b"no filte", length: 9 });
/// let text = "9 bytes starting with 6e6f2066696c7465: not a known kind of filter";
/// assert_eq!(error.to_string(), text);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum TableFilterError {
    /// Neither a known magic number nor the length of a compact filter.
    Unknown {
        /// The first eight bytes, padded with zeros.
        found: [u8; 8],
        /// Number of bytes.
        length: u64,
    },
    /// A damaged Bloom filter, or one with another hash or seed.
    Bloom(FormatError),
    /// A Ribbon filter that is damaged, or has another hash or seed.
    Ribbon(RibbonError),
    /// An index of partitions that is damaged, or of another hash or seed.
    Partition(PartitionError),
    /// The bytes are not a filter block of RocksDB.
    #[cfg(feature = "rocksdb")]
    Rocksdb(RocksdbError),
    /// An intact filter that belongs to another table or partition.
    OtherFilter {
        /// Identity of the given filter.
        found: FilterIdentity,
        /// Identity that the place requires.
        expected: FilterIdentity,
    },
    /// No memory for the copy of [`into_own_memory`](TableFilter::into_own_memory).
    Alloc(AllocError),
}

impl Display for TableFilterError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { found, length } => {
                let found = u64::from_be_bytes(*found);
                write!(f, "{length} bytes starting with {found:016x}: not a known kind of filter")
            }
            Self::Bloom(error) => error.fmt(f),
            Self::Ribbon(error) => error.fmt(f),
            Self::Partition(error) => error.fmt(f),
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb(error) => error.fmt(f),
            Self::OtherFilter { found, expected } => {
                write!(f, "{found}, expected {expected}: it belongs to another table or partition")
            }
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for TableFilterError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Unknown { .. } | Self::OtherFilter { .. } => None,
            Self::Bloom(error) => Some(error),
            Self::Ribbon(error) => Some(error),
            Self::Partition(error) => Some(error),
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb(error) => Some(error),
            Self::Alloc(error) => Some(error),
        }
    }
}

impl From<FormatError> for TableFilterError {
    fn from(error: FormatError) -> Self {
        Self::Bloom(error)
    }
}

impl From<AllocError> for TableFilterError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}
