//! Filters of large tables, cut into partitions that are loaded one by one.
//!
//! `build` cuts, `bytes` has the stored form. Loading and caching are the engine's: the index says which bytes it needs and takes what
//! was loaded, so that it serves synchronous and asynchronous engines alike.

mod build;
mod bytes;

use alloc::vec::Vec;

use crate::error::{AllocError, FormatError, KeyError};
use crate::filter::{BloomFilterRef, format};
use crate::hash::{KeyHash, KeyHasher};
use crate::header::HeaderError;
use crate::prefix::FilterContents;

pub use build::PartitionedFilterBuilder;
use bytes::Parts;

/// The opened index of a partitioned filter: says which partition a key needs and where it is, and opens what was loaded.
///
/// Owns or borrows the bytes that [`PartitionedFilterBuilder::finish`] gave, verified once. An engine keeps it in memory with the
/// table (some 30 bytes per partition) and loads partitions as they are needed: from a cache, a file, an object store. A partition
/// that cannot be loaded or opened must be answered "maybe".
///
/// ```
/// use blocked_bloom::{FilterOptions, PartitionIndex, PartitionedFilterBuilder, Sizing};
/// let mut file = Vec::new();
/// let mut builder = PartitionedFilterBuilder::new(FilterOptions::new(Sizing::BitsPerKey(10.0)), 4096)?;
/// for key in 0..100_000_u32 {
///     if let Some(partition) = builder.insert(key.to_be_bytes())? { // in ascending order
///         partition.write_to(&mut file)?;
///     }
/// }
/// let (last, index) = builder.finish()?;
/// last.write_to(&mut file)?;
///
/// let index = PartitionIndex::from_bytes(index)?;
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
    /// Of the bytes, when they were verified.
    length: usize,
    facts: Facts,
}

/// What the header of an index says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts {
    key_hash: KeyHash,
    contents: FilterContents,
    partitions: u32,
    keys: u64,
    /// Bytes of all partitions.
    stored_bytes: u64,
}

/// Where a partition is among the partitions that the builder gave out, one behind the other.
///
/// ```
/// # use blocked_bloom::{FilterOptions, PartitionIndex, PartitionedFilterBuilder, Sizing};
/// let builder = PartitionedFilterBuilder::new(FilterOptions::new(Sizing::BitsPerKey(10.0)), 4096)?;
/// let (only, index) = builder.finish()?;
/// let at = PartitionIndex::from_bytes(index)?.locate("any key");
/// assert_eq!((at.partition, at.offset, at.length), (0, 0, 128));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PartitionLocation {
    /// Its number, from 0.
    pub partition: usize,
    /// Bytes of the partitions before it: a multiple of 64.
    pub offset: u64,
    /// Its bytes: a multiple of 64, at least 128.
    pub length: u64,
}

impl<B: AsRef<[u8]>> PartitionIndex<B> {
    /// Verifies the bytes of an index: header, checksums, order of the separators. Cost: reads everything once.
    ///
    /// # Errors
    ///
    /// [`FormatError`] says what was found, where, and what was expected. Every truncation, extension and flipped bit is an
    /// error. Without an index, read the table as if it had no filter.
    pub fn from_bytes(bytes: B) -> Result<Self, FormatError> {
        let slice = bytes.as_ref();
        let (length, facts) = (slice.len(), bytes::verify(slice)?);
        Ok(PartitionIndex { bytes, length, facts })
    }

    /// Where the partition is that has a key, if any has: the last whose separator is not greater. Cost: a binary search.
    ///
    /// For a scan, locate its start: one partition answers [`contains_prefix`](BloomFilterRef::contains_prefix) for the prefix of a scan
    /// that begins there, in either direction, since it knows the prefixes of its neighbours at the cuts. `start` may be longer than
    /// the prefix, as where a scan goes on from some key: "absent" then means that no key from `start` on has the prefix, nor any key up
    /// to `start` for a scan in reverse. For a custom rule that holds if every key that starts with a prefix has that prefix.
    ///
    /// If the owner of the index's bytes lends others than were verified, the location is of no bytes, and [`open`](Self::open) fails.
    pub fn locate(&self, key: impl AsRef<[u8]>) -> PartitionLocation {
        let parts = self.parts();
        let location = parts.and_then(|parts| parts.location(parts.partition_of(key.as_ref())));
        location.unwrap_or(PartitionLocation { partition: 0, offset: 0, length: 0 })
    }

    /// Groups a batch by partition: for each partition that is needed, ascending, where it is, and the positions in `keys` of the keys
    /// that need it, ascending. Load and open each once, and look up its keys.
    ///
    /// Cost: a binary search per key, and sorting by partition unless the keys are in order; 24 bytes per key are allocated.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory for the groups.
    pub fn locate_batch<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
    ) -> Result<Vec<(PartitionLocation, Vec<usize>)>, AllocError> {
        let error = AllocError { bytes: keys.len() as u64 * 24 };
        let mut order = Vec::new();
        order.try_reserve_exact(keys.len()).map_err(|_| error)?;
        let parts = self.parts();
        let partition_of = |key: &K| parts.map_or(0, |parts| parts.partition_of(key.as_ref()));
        order.extend(keys.iter().enumerate().map(|(i, key)| (partition_of(key), i)));
        // Linear if the keys are in order.
        order.sort_unstable();
        let mut groups = Vec::new();
        for group in order.chunk_by(|one, next| one.0 == next.0) {
            let partition = group[0].0;
            let location = self.location(partition);
            let location =
                location.unwrap_or(PartitionLocation { partition, offset: 0, length: 0 });
            let mut positions = Vec::new();
            positions.try_reserve_exact(group.len()).map_err(|_| error)?;
            groups.try_reserve(1).map_err(|_| error)?;
            positions.extend(group.iter().map(|&(_, i)| i));
            groups.push((location, positions));
        }
        Ok(groups)
    }

    /// Opens the bytes that were loaded for a location, and verifies that they are undamaged and the partition that the index means: by
    /// header checksum, hash and seed. Cost: reads all of them once.
    ///
    /// # Errors
    ///
    /// [`FormatError`] as [`BloomFilterRef::from_bytes`]; [`FormatError::OtherPartition`] for an intact filter that is another
    /// partition, or one of another table. Then answer "maybe".
    pub fn open<'b>(
        &self,
        at: &PartitionLocation,
        bytes: &'b [u8],
    ) -> Result<BloomFilterRef<'b>, FormatError> {
        self.require(at, bytes, BloomFilterRef::from_bytes(bytes)?)
    }

    /// [`open`](Self::open) without reading the blocks, as [`BloomFilterRef::from_bytes_trusted`]: for bytes that were verified when they
    /// entered a cache. Cost: reads 64 bytes.
    ///
    /// # Errors
    ///
    /// As `open`, but for damaged blocks.
    pub fn open_trusted<'b>(
        &self,
        at: &PartitionLocation,
        bytes: &'b [u8],
    ) -> Result<BloomFilterRef<'b>, FormatError> {
        self.require(at, bytes, BloomFilterRef::from_bytes_trusted(bytes)?)
    }

    fn require<'b>(
        &self,
        at: &PartitionLocation,
        bytes: &[u8],
        filter: BloomFilterRef<'b>,
    ) -> Result<BloomFilterRef<'b>, FormatError> {
        let Some(parts) = self.parts() else {
            let (found, expected) = (self.bytes.as_ref().len() as u64, self.length as u64);
            return Err(HeaderError::Length { found, expected }.into());
        };
        let Some(expected) = parts.header_checksum(at.partition) else {
            let partition = at.partition as u64;
            return Err(HeaderError::field(12, "partition", partition, "not in the index").into());
        };
        let found = format::header_checksum(bytes).unwrap_or_default();
        if found != expected {
            return Err(FormatError::OtherPartition { found, expected });
        }
        filter.require_key_hash(self.facts.key_hash)
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
        self.facts.partitions as usize
    }

    /// Keys of all partitions, equal ones counted once; prefixes are not counted.
    pub fn keys_inserted(&self) -> u64 {
        self.facts.keys
    }

    /// Bytes of all partitions together, without the index.
    pub fn stored_bytes(&self) -> u64 {
        self.facts.stored_bytes
    }

    /// What the keys were hashed with.
    pub fn key_hash(&self) -> KeyHash {
        self.facts.key_hash
    }

    /// The hasher of the keys.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`], which an index that opens never gives.
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.facts.key_hash.hasher()
    }

    /// What the partitions hold: keys, prefixes of keys, or both.
    pub fn contents(&self) -> FilterContents {
        self.facts.contents
    }

    /// The entries and separators; none if the owner lends other bytes than those that were verified.
    fn parts(&self) -> Option<Parts<'_>> {
        let bytes = self.bytes.as_ref();
        (bytes.len() == self.length).then(|| Parts::of(bytes, self.facts.partitions))?
    }
}

/// What the header says, without the separators.
impl<B> core::fmt::Debug for PartitionIndex<B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PartitionIndex").field("facts", &self.facts).finish_non_exhaustive()
    }
}
