//! Filters of large tables, cut into partitions that are loaded one by one.
//!
//! `build` cuts filters into partitions, and `bytes` contains the stored form of the index. The
//! engine loads and caches: the index returns the location of the bytes that it needs, and opens
//! the bytes that the engine loaded. That works for synchronous and asynchronous engines.

mod build;
mod bytes;

use core::fmt::{self, Display, Formatter};
use core::iter;
use core::ops::Bound::{self, Excluded, Included, Unbounded};

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{
    BloomFilter, FilterContents, FormatError, KeyError, KeyHash, KeyHasher, Stored,
};

pub use build::{PartitionBuildError, PartitionedFilterBuilder};
pub(crate) use bytes::header_checksum;
use bytes::{Entries, IndexHeader};
pub use bytes::{INDEX_MAGIC, PartitionLocation};

/// The location that an index returns after its bytes have changed.
const UNUSABLE: PartitionLocation =
    PartitionLocation { partition: 0, offset: 0, length: 0, header_checksum: 0 };

/// The opened index of a partitioned filter. It locates the partition of a key, and opens the bytes
/// that the engine loaded.
///
/// It owns or borrows the bytes that [`PartitionedFilterBuilder::finish`] returned, verified once.
/// An engine keeps it in memory with the table (about 30 bytes per partition), and loads partitions
/// on demand from a cache, a file or an object store. Answer "maybe" for a partition that cannot be
/// loaded or opened.
///
/// ```
/// use blocked_bloom::{FilterOptions, Sizing};
/// use blocked_bloom_lsm::{PartitionIndex, PartitionedFilterBuilder};
/// let mut file = Vec::new();
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
/// let mut builder = PartitionedFilterBuilder::new(options.clone(), 4096)?;
/// for key in 0..100_000_u32 {
///     if let Some(partition) = builder.insert(key.to_be_bytes())? { // in ascending order
///         partition.write_to(&mut file)?;
///     }
/// }
/// let (last, index) = builder.finish()?;
/// last.write_to(&mut file)?;
///
/// let index = PartitionIndex::from_bytes(index, options.key_hash())?;
/// let key = 90_000_u32.to_be_bytes();
/// let at = index.locate(key);
/// let loaded = &file[at.offset as usize..][..at.length as usize]; // however the engine loads
/// assert_eq!(at.partition, 27);
/// assert!(index.open(&at, loaded)?.contains(key));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PartitionIndex<B> {
    bytes: B,
    /// Length of the bytes when they were verified.
    length: usize,
    header: IndexHeader,
}

impl<B: AsRef<[u8]>> PartitionIndex<B> {
    /// Opens an index whose partitions have the hash `key_hash`, and verifies its header, checksums
    /// and the order of its separators. Cost: reads everything once.
    ///
    /// # Errors
    ///
    /// [`PartitionError::Header`] with the value found, its offset, and the expected value. Every
    /// truncation, extension and flipped bit is an error, and so is another hash or seed
    /// ([`HeaderError::HashMismatch`]). Without an index, read the table as if it had no filter.
    pub fn from_bytes(bytes: B, key_hash: KeyHash) -> Result<Self, PartitionError> {
        Self::read(bytes, Some(key_hash))
    }

    /// Opens an index of any hash, and verifies it as [`from_bytes`](Self::from_bytes) does.
    ///
    /// This is for tools that describe filters, and for engines that look up by key after a change
    /// of the seed. Before you look up a hash in a partition, compare
    /// [`key_hash`](Self::key_hash).
    ///
    /// # Errors
    ///
    /// The errors of `from_bytes`, except for a different hash.
    pub fn from_bytes_any_hash(bytes: B) -> Result<Self, PartitionError> {
        Self::read(bytes, None)
    }

    fn read(bytes: B, expected: Option<KeyHash>) -> Result<Self, PartitionError> {
        let slice = bytes.as_ref();
        let (length, header) = (slice.len(), bytes::verify(slice, expected)?);
        Ok(PartitionIndex { bytes, length, header })
    }

    /// Locates the only partition that can contain the key: the last one whose separator is not
    /// greater than the key. Cost: a binary search.
    ///
    /// For a scan, locate its first key. This one partition then answers
    /// [`contains_prefix`](BloomFilter::contains_prefix) for the prefix of that key, for scans in
    /// both directions, because each partition also contains the prefixes of the neighbouring keys
    /// at its cuts. The key may be longer than the prefix, for example where a scan continues.
    /// "Absent" then means that no later key has the prefix (or no earlier key, for a
    /// reverse scan). With a custom rule, this requires that every key that starts with a prefix
    /// has that prefix.
    ///
    /// If the owner of the index's bytes now returns other bytes than were verified, the location
    /// is empty, and [`open`](Self::open) fails.
    pub fn locate(&self, key: impl AsRef<[u8]>) -> PartitionLocation {
        let parts = self.parts();
        let location = parts.and_then(|parts| parts.location(parts.find_partition(key.as_ref())));
        location.unwrap_or(UNUSABLE)
    }

    /// Locates every partition that a range touches, in ascending order; at least one. The table
    /// contains no key of the range if
    /// [`contains_range`](BloomFilter::contains_range) with these bounds is false for all of them.
    ///
    /// A partition that cannot be loaded or opened is "maybe". If the owner of the index's bytes
    /// now returns other bytes than were verified, the locations are empty, and
    /// [`open`](Self::open) fails. Cost: two binary searches.
    ///
    /// ```
    /// use std::ops::Bound::Included;
    /// use blocked_bloom::{BloomFilter, FilterOptions, PrefixExtractor, Sizing};
    /// use blocked_bloom_lsm::{PartitionIndex, PartitionedFilterBuilder};
    /// let rule = PrefixExtractor::fixed(3);
    /// let options = FilterOptions::new(Sizing::BitsPerKey(16.0)).with_only_prefixes(rule.clone());
    /// let mut partitions: Vec<BloomFilter> = Vec::new();
    /// let mut builder = PartitionedFilterBuilder::new(options.clone(), 128)?;
    /// for number in (0..20_000_u32).filter(|number| number >> 8 & 7 != 5) {
    ///     partitions.extend(builder.insert(number.to_be_bytes())?);
    /// }
    /// let (last, index) = builder.finish()?;
    /// partitions.push(last);
    /// let index = PartitionIndex::from_bytes(index, options.key_hash())?;
    ///
    /// let contains = |from: u32, to: u32| {
    ///     let (from, to) = (from.to_be_bytes(), to.to_be_bytes());
    ///     let (lower, upper) = (Included(&from[..]), Included(&to[..]));
    ///     index.locate_range(lower, upper).any(|at| {
    ///         partitions[at.partition].contains_range(&rule, lower, upper) // after loading it
    ///     })
    /// };
    /// assert!(contains(0x0400, 0x0500));
    /// assert!(!contains(0x0500, 0x05ff) && !contains(0x0d10, 0x0d20));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn locate_range(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> impl Iterator<Item = PartitionLocation> {
        let first = match lower {
            Included(key) | Excluded(key) => self.locate(key),
            Unbounded => self.locate([]),
        };
        let last = match upper {
            Included(key) => self.locate(key).partition,
            Excluded(key) => {
                // A partition that starts at the excluded bound is not touched.
                let last = self.locate(key).partition;
                last.saturating_sub((self.separator(last) == Some(key)).into())
            }
            Unbounded => self.partitions() - 1,
        };
        let others = (first.partition + 1..=last).map(|partition| self.location(partition));
        iter::once(first).chain(others.map(|location| location.unwrap_or(UNUSABLE)))
    }

    /// Opens the bytes loaded for a location. Verifies that they are undamaged and that they are
    /// the right partition, by header checksum, hash and seed. The filter keeps the bytes: a
    /// `&[u8]`, a `Vec<u8>`, the handle of a cache. Cost: reads all of them once.
    ///
    /// # Errors
    ///
    /// [`PartitionError::Format`] as for [`BloomFilter::from_bytes`], and for another hash or seed
    /// than that of the index; [`PartitionError::OtherPartition`] for an intact filter of another
    /// partition or table; [`PartitionError::Header`] if the location does not belong to this
    /// index, or if the owner of the index returns other bytes. Answer "maybe" then.
    pub fn open<C: AsRef<[u8]>>(
        &self,
        at: &PartitionLocation,
        bytes: C,
    ) -> Result<BloomFilter<Stored<C>>, PartitionError> {
        let found = bytes::header_checksum(bytes.as_ref());
        self.check_partition(at, found, BloomFilter::from_bytes(bytes, self.key_hash())?)
    }

    /// Opens the bytes loaded for a location without reading the blocks, as
    /// [`BloomFilter::from_bytes_trusted`] does: for bytes that were verified when they entered a
    /// cache. Cost: reads 64 bytes.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), except for damaged blocks.
    pub fn open_trusted<C: AsRef<[u8]>>(
        &self,
        at: &PartitionLocation,
        bytes: C,
    ) -> Result<BloomFilter<Stored<C>>, PartitionError> {
        let found = bytes::header_checksum(bytes.as_ref());
        self.check_partition(at, found, BloomFilter::from_bytes_trusted(bytes, self.key_hash())?)
    }

    /// `found` is the checksum at the end of the filter's header.
    fn check_partition<C: AsRef<[u8]>>(
        &self,
        at: &PartitionLocation,
        found: u64,
        filter: BloomFilter<Stored<C>>,
    ) -> Result<BloomFilter<Stored<C>>, PartitionError> {
        let Some(parts) = self.parts() else {
            let (found, expected) = (self.bytes.as_ref().len() as u64, self.length as u64);
            return Err(HeaderError::Length { found, expected }.into());
        };
        let Some(expected) = parts.header_checksum(at.partition) else {
            let partition = at.partition as u64;
            return Err(HeaderError::field(12, "partition", partition, "not in the index").into());
        };
        if found != expected {
            return Err(PartitionError::OtherPartition { found, expected });
        }
        Ok(filter)
    }

    /// Returns the location of a partition, or `None` past the last.
    pub fn location(&self, partition: usize) -> Option<PartitionLocation> {
        self.parts()?.location(partition)
    }

    /// Returns the least key that a partition may contain, empty for the first; `None` past the
    /// last.
    ///
    /// It is the shortest byte string greater than every key of the previous partition.
    pub fn separator(&self, partition: usize) -> Option<&[u8]> {
        self.parts()?.separator(partition)
    }

    /// Returns the number of partitions, at least 1.
    pub fn partitions(&self) -> usize {
        self.header.partitions as usize
    }

    /// Returns the number of distinct keys of all partitions, without prefixes.
    pub fn keys_inserted(&self) -> u64 {
        self.header.keys
    }

    /// Returns the bytes of all partitions, without the index.
    pub fn stored_bytes(&self) -> u64 {
        self.header.stored_bytes
    }

    /// Returns the bytes of the index.
    pub fn index_bytes(&self) -> u64 {
        self.length as u64
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Returns the checksum at the end of the index's own header.
    pub(crate) fn header_checksum(&self) -> u64 {
        bytes::header_checksum(self.bytes.as_ref())
    }

    /// Returns the hash and seed of the keys.
    pub fn key_hash(&self) -> KeyHash {
        self.header.key_hash
    }

    /// Returns the hasher of the keys.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`], which never happens for an opened index.
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.header.key_hash.hasher()
    }

    /// Returns the contents of the partitions: keys, prefixes of keys, or both.
    pub fn contents(&self) -> FilterContents {
        self.header.contents
    }

    /// Returns the entries and separators, or `None` if the owner returns other bytes than were
    /// verified.
    fn parts(&self) -> Option<Entries<'_>> {
        let bytes = self.bytes.as_ref();
        (bytes.len() == self.length).then(|| Entries::split(bytes, self.header.partitions))?
    }
}

/// Prints the header, without the separators.
impl<B> fmt::Debug for PartitionIndex<B> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionIndex").field("header", &self.header).finish_non_exhaustive()
    }
}

/// The reason why an index or a partition cannot be opened. Answer "maybe" then: for the keys of
/// the partition, or for all keys if it is the index.
///
/// ```
/// use blocked_bloom::parts::HeaderError;
/// use blocked_bloom::{FilterOptions, FormatError, Sizing};
/// use blocked_bloom_lsm::{PartitionError, PartitionIndex, PartitionedFilterBuilder};
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
/// let (only, index) = PartitionedFilterBuilder::new(options.clone(), 4096)?.finish()?;
/// let index = PartitionIndex::from_bytes(index, options.key_hash())?;
/// let (at, stored) = (index.locate("any key"), only.to_bytes());
///
/// let truncated = index.open(&at, &stored[..100]).unwrap_err();
/// let PartitionError::Format(FormatError::Header(error)) = truncated else { panic!() };
/// assert!(matches!(error, HeaderError::Length { found: 100, .. }));
/// let whole = options.empty_filter(1_000)?.to_bytes();
/// assert!(matches!(index.open(&at, whole).unwrap_err(), PartitionError::OtherPartition { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum PartitionError {
    /// The index is damaged or not an index, or the location does not belong to it.
    Header(HeaderError),
    /// The bytes of a partition are damaged, not a filter, or have another hash or seed than the
    /// index.
    Format(FormatError),
    /// An intact filter of another partition or table.
    OtherPartition {
        /// Checksum in the header of the filter.
        found: u64,
        /// Checksum in the index.
        expected: u64,
    },
}

impl PartitionError {
    /// Returns the offset of the wrong field, in bytes, in the index or the partition. For a wrong
    /// length, the offset where the bytes end or should have ended, whichever is smaller.
    pub fn offset(&self) -> u64 {
        match self {
            Self::Header(error) => error.offset(),
            Self::Format(error) => error.offset(),
            Self::OtherPartition { .. } => bytes::HEADER_CHECKSUM as u64,
        }
    }
}

impl Display for PartitionError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(error) => error.fmt(f),
            Self::Format(error) => error.fmt(f),
            Self::OtherPartition { found, expected } => write!(
                f,
                "offset {}: a filter with header checksum {found:016x}, expected \
                 {expected:016x}: it belongs to another partition or table",
                self.offset()
            ),
        }
    }
}

impl core::error::Error for PartitionError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Header(error) => Some(error),
            Self::Format(error) => Some(error),
            Self::OtherPartition { .. } => None,
        }
    }
}

impl From<HeaderError> for PartitionError {
    fn from(error: HeaderError) -> Self {
        Self::Header(error)
    }
}

impl From<FormatError> for PartitionError {
    fn from(error: FormatError) -> Self {
        Self::Format(error)
    }
}
