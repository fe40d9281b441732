//! Filters of large tables, cut into partitions that are loaded one by one.
//!
//! `build` cuts filters into partitions, `bytes` has the stored form of the index. Loading and
//! caching are the engine's: the index says which bytes it needs and takes what was loaded, so that
//! it serves synchronous and asynchronous engines alike.

mod build;
mod bytes;

use core::fmt::{self, Display, Formatter};

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{
    BloomFilter, FilterContents, FormatError, KeyError, KeyHash, KeyHasher, Stored,
};

pub use build::{PartitionBuildError, PartitionedFilterBuilder};
pub(crate) use bytes::header_checksum;
use bytes::{Entries, IndexHeader};
pub use bytes::{INDEX_MAGIC, PartitionLocation};

/// The opened index of a partitioned filter: says which partition a key needs and where it is, and
/// opens what was loaded.
///
/// Owns or borrows the bytes that [`PartitionedFilterBuilder::finish`] gave, verified once. An
/// engine keeps it in memory with the table (some 30 bytes per partition) and loads partitions as
/// they are needed: from a cache, a file, an object store. A partition that cannot be loaded or
/// opened must be answered "maybe".
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
/// let index = PartitionIndex::from_bytes(index)?.require_key_hash(options.key_hash())?;
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
    /// Verifies the bytes of an index: header, checksums, order of the separators. Cost: reads
    /// everything once.
    ///
    /// # Errors
    ///
    /// [`PartitionError::Header`] says what was found, where, and what was expected. Every
    /// truncation, extension and flipped bit is an error. Without an index, read the table as if it
    /// had no filter.
    pub fn from_bytes(bytes: B) -> Result<Self, PartitionError> {
        let slice = bytes.as_ref();
        let (length, header) = (slice.len(), bytes::verify(slice)?);
        Ok(PartitionIndex { bytes, length, header })
    }

    /// The same index if its partitions were built with this hash and seed.
    ///
    /// Call it once where an index is opened whose partitions will be looked up by hash: a hash of
    /// another seed would be answered "absent" for a key that is there.
    ///
    /// # Errors
    ///
    /// [`FormatError::HashMismatch`] naming both.
    pub fn require_key_hash(self, expected: KeyHash) -> Result<Self, FormatError> {
        match self.header.key_hash {
            found if found == expected => Ok(self),
            found => Err(FormatError::HashMismatch { found, expected }),
        }
    }

    /// Locates the only partition that can hold the key: the last whose separator is not greater.
    /// Cost: a binary search.
    ///
    /// For a scan, locate the key at which it starts. For the prefix of that key,
    /// [`contains_prefix`](BloomFilter::contains_prefix) of this one partition answers for a scan
    /// in either direction, since the partition knows the prefixes of its neighbours at the cuts.
    /// The key may be longer than the prefix, as where a scan goes on from some key: "absent" then
    /// means that no key from there on has the prefix, nor any key up to there for a scan in
    /// reverse. For a custom rule that holds if every key that starts with a prefix has that
    /// prefix.
    ///
    /// If the owner of the index's bytes lends others than were verified, the location is of no
    /// bytes, and [`open`](Self::open) fails.
    pub fn locate(&self, key: impl AsRef<[u8]>) -> PartitionLocation {
        let parts = self.parts();
        let location = parts.and_then(|parts| parts.location(parts.find_partition(key.as_ref())));
        let none = PartitionLocation { partition: 0, offset: 0, length: 0, header_checksum: 0 };
        location.unwrap_or(none)
    }

    /// Opens the bytes that were loaded for a location, and verifies that they are undamaged and
    /// the partition that the index means: by header checksum, hash and seed. The filter keeps
    /// them: `&[u8]`, a `Vec<u8>`, the handle of a cache. Cost: reads all of them once.
    ///
    /// # Errors
    ///
    /// [`PartitionError::Format`] as [`BloomFilter::from_bytes`], and for another hash or seed than
    /// the index says; [`PartitionError::OtherPartition`] for an intact filter that is another
    /// partition, or one of another table; [`PartitionError::Header`] if the location is not of
    /// this index, or the owner of the index lends other bytes. Then answer "maybe".
    pub fn open<C: AsRef<[u8]>>(
        &self,
        at: &PartitionLocation,
        bytes: C,
    ) -> Result<BloomFilter<Stored<C>>, PartitionError> {
        let found = bytes::header_checksum(bytes.as_ref());
        self.check_partition(at, found, BloomFilter::from_bytes(bytes)?)
    }

    /// [`open`](Self::open) without reading the blocks, as [`BloomFilter::from_bytes_trusted`]: for
    /// bytes that were verified when they entered a cache. Cost: reads 64 bytes.
    ///
    /// # Errors
    ///
    /// As `open`, but for damaged blocks.
    pub fn open_trusted<C: AsRef<[u8]>>(
        &self,
        at: &PartitionLocation,
        bytes: C,
    ) -> Result<BloomFilter<Stored<C>>, PartitionError> {
        let found = bytes::header_checksum(bytes.as_ref());
        self.check_partition(at, found, BloomFilter::from_bytes_trusted(bytes)?)
    }

    /// `found` is the checksum that ends the header of the filter.
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
        Ok(filter.require_key_hash(self.header.key_hash)?)
    }

    /// Where a partition is, or `None` past the last.
    pub fn location(&self, partition: usize) -> Option<PartitionLocation> {
        self.parts()?.location(partition)
    }

    /// The least key that a partition may have, empty for the first; `None` past the last.
    ///
    /// The shortest bytes that are greater than every key of the partition before.
    pub fn separator(&self, partition: usize) -> Option<&[u8]> {
        self.parts()?.separator(partition)
    }

    /// Number of partitions, at least 1.
    pub fn partitions(&self) -> usize {
        self.header.partitions as usize
    }

    /// Keys of all partitions, equal ones counted once; prefixes are not counted.
    pub fn keys_inserted(&self) -> u64 {
        self.header.keys
    }

    /// Bytes of all partitions together, without the index.
    pub fn stored_bytes(&self) -> u64 {
        self.header.stored_bytes
    }

    /// Bytes of the index itself.
    pub fn index_bytes(&self) -> u64 {
        self.length as u64
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// The checksum that ends the header of the index itself.
    pub(crate) fn header_checksum(&self) -> u64 {
        bytes::header_checksum(self.bytes.as_ref())
    }

    /// What the keys were hashed with.
    pub fn key_hash(&self) -> KeyHash {
        self.header.key_hash
    }

    /// The hasher of the keys.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`], which an opened index never gives.
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.header.key_hash.hasher()
    }

    /// What the partitions hold: keys, prefixes of keys, or both.
    pub fn contents(&self) -> FilterContents {
        self.header.contents
    }

    /// The entries and separators; none if the owner lends other bytes than those that were
    /// verified.
    fn parts(&self) -> Option<Entries<'_>> {
        let bytes = self.bytes.as_ref();
        (bytes.len() == self.length).then(|| Entries::split(bytes, self.header.partitions))?
    }
}

/// What the header says, without the separators.
impl<B> fmt::Debug for PartitionIndex<B> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionIndex").field("header", &self.header).finish_non_exhaustive()
    }
}

/// Why an index or a partition cannot be opened. Then answer "maybe": for the keys of the
/// partition, or for all if it is the index.
///
/// ```
/// use blocked_bloom::parts::HeaderError;
/// use blocked_bloom::{FilterOptions, FormatError, Sizing};
/// use blocked_bloom_lsm::{PartitionError, PartitionIndex, PartitionedFilterBuilder};
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
/// let (only, index) = PartitionedFilterBuilder::new(options.clone(), 4096)?.finish()?;
/// let index = PartitionIndex::from_bytes(index)?;
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
    /// The index is damaged or no index, or a location is not one of its own.
    Header(HeaderError),
    /// The bytes of a partition are damaged or no filter, or one of another hash or seed than the
    /// index says.
    Format(FormatError),
    /// An intact filter, but not the partition that the index means: another one, or one of another
    /// table.
    OtherPartition {
        /// Checksum in the header of the filter.
        found: u64,
        /// Checksum in the index.
        expected: u64,
    },
}

impl PartitionError {
    /// The offset, in bytes, of the field at fault, in the index or in the partition; for a wrong
    /// length, the place where the bytes end or should have ended, whichever comes first.
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
