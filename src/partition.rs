//! Filters of large tables, cut into partitions that are loaded one by one.
//!
//! This file owns the opened index: which partition a key needs and where it is. `partition/build.rs` cuts, `partition/bytes.rs` has
//! the stored form, `partition/ask.rs` the questions. They refuse to keep partitions: loading and caching are the engine's.

mod ask;
mod build;
mod bytes;

use crate::error::PartitionIndexError;
use crate::hash::KeyHash;
use crate::prefix::Added;

pub use build::PartitionedFilterBuilder;
use bytes::Parts;

/// The opened index of a partitioned filter: says which partition a key needs, and asks it.
///
/// Owns or borrows the bytes that [`PartitionedFilterBuilder::finish`] gave, verified once. An engine keeps it in memory with the
/// table (some 30 bytes per partition) and loads partitions as they are needed: each question takes a loader, a function from
/// where a partition is to its bytes: from a cache, a file, an object store. A partition that cannot be loaded, is damaged or is
/// not the one that the index means is answered "maybe", and reported.
///
/// ```
/// use blocked_bloom::{Bitmask, BloomFilterBuilder, PartitionIndex, PartitionedFilterBuilder, Sizing};
/// let mut partitions = Vec::new(); // a file
/// let template = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
/// let mut builder = PartitionedFilterBuilder::new(template, 4096, |filter| {
///     filter.write_to(&mut partitions).map(drop)
/// })?;
/// for key in 0..100_000_u32 {
///     builder.insert(key.to_be_bytes())?; // in ascending order
/// }
/// let index = PartitionIndex::from_bytes(builder.finish()?)?;
/// assert_eq!(index.partitions(), 32);
///
/// let mut loaded = Vec::new();
/// let mut hits = Bitmask::new();
/// let keys = [5_000, 90_000, 5_001, 1 << 20].map(u32::to_be_bytes);
/// let failures = index.contains_batch(&keys, &mut hits, |at| {
///     loaded.push(at.partition);
///     let range = at.offset as usize..(at.offset + at.length) as usize;
///     partitions.get(range).ok_or("outside the file")
/// });
/// assert!(failures.is_empty() && hits.hits().take(3).eq([0, 1, 2]));
/// assert_eq!(loaded, [1, 27, 31]); // each once
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PartitionIndex<B> {
    bytes: B,
    /// Of the bytes, when they were verified.
    length: usize,
    facts: Facts,
    trusts_blocks: bool,
}

/// What the header of an index says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts {
    key_hash: KeyHash,
    added: Added,
    partitions: u32,
    keys: u64,
    /// Bytes of all partitions.
    stored_bytes: u64,
}

/// Where a partition is among the partitions that the builder gave out, one behind the other.
///
/// ```
/// # use blocked_bloom::{BloomFilterBuilder, PartitionIndex, PartitionedFilterBuilder, Sizing};
/// # let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
/// # let builder = PartitionedFilterBuilder::new(builder, 4096, |_| Ok::<(), std::fmt::Error>(()))?;
/// # let index = PartitionIndex::from_bytes(builder.finish()?)?;
/// let at = index.location(0).unwrap();
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
    /// [`PartitionIndexError`] says what was found, where, and what was expected. Every truncation, extension and flipped bit is an
    /// error. Without an index, read the table as if it had no filter.
    ///
    /// ```
    /// use blocked_bloom::{PartitionIndex, PartitionIndexError};
    /// let error = PartitionIndex::from_bytes(b"short").unwrap_err();
    /// assert_eq!(error, PartitionIndexError::TooShort { found: 5 });
    /// ```
    pub fn from_bytes(bytes: B) -> Result<Self, PartitionIndexError> {
        let slice = bytes.as_ref();
        let (length, facts) = (slice.len(), bytes::verify(slice)?);
        Ok(PartitionIndex { bytes, length, facts, trusts_blocks: false })
    }

    /// From now on partitions are verified as [`BloomFilterRef::from_bytes_trusted`](crate::BloomFilterRef::from_bytes_trusted) does, by header and length, and that they are
    /// the ones that the index means: for a loader whose bytes were verified when they entered its cache. A question then reads
    /// 64 bytes of header and a line per key instead of the partition.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, PartitionIndex, PartitionedFilterBuilder, Sizing};
    /// # let mut partition = Vec::new();
    /// # let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// # let mut builder = PartitionedFilterBuilder::new(builder, 4096, |filter| filter.write_to(&mut partition).map(drop))?;
    /// # builder.insert("apple")?;
    /// # let index = builder.finish()?;
    /// let index = PartitionIndex::from_bytes(index)?.trust_loaded_blocks();
    /// let (maybe, failure) = index.contains("apple", |_| Ok::<_, std::io::Error>(&partition));
    /// assert!(maybe && failure.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn trust_loaded_blocks(self) -> Self {
        PartitionIndex { trusts_blocks: true, ..self }
    }

    /// The partition that has a key, if any has: the last whose separator is not greater. Cost: a binary search.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, PartitionIndex, PartitionedFilterBuilder, Sizing};
    /// # let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// let mut builder = PartitionedFilterBuilder::new(builder, 128, |_| Ok::<(), std::fmt::Error>(()))?;
    /// for key in 0..200_u8 {
    ///     builder.insert([key])?;
    /// }
    /// let index = PartitionIndex::from_bytes(builder.finish()?)?;
    /// assert_eq!(index.partitions(), 4);
    /// assert_eq!([0, 50, 51, 255].map(|key| index.partition_of([key])), [0, 0, 1, 3].map(Some));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn partition_of(&self, key: impl AsRef<[u8]>) -> Option<usize> {
        self.parts().map(|parts| parts.partition_of(key.as_ref()))
    }

    /// Where a partition is, or `None` past the last.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, PartitionIndex, PartitionedFilterBuilder, Sizing};
    /// # let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// # let builder = PartitionedFilterBuilder::new(builder, 4096, |_| Ok::<(), std::fmt::Error>(()))?;
    /// let index = PartitionIndex::from_bytes(builder.finish()?)?;
    /// assert_eq!(index.location(0).unwrap().length, 128);
    /// assert_eq!(index.location(1), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn location(&self, partition: usize) -> Option<PartitionLocation> {
        self.parts()?.location(partition)
    }

    /// The least key that a partition may have, empty for the first; `None` past the last.
    ///
    /// The shortest bytes that are greater than every key of the partition before.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, PartitionIndex, PartitionedFilterBuilder, Sizing};
    /// # let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// let mut builder = PartitionedFilterBuilder::new(builder, 128, |_| Ok::<(), std::fmt::Error>(()))?;
    /// for key in 0..200_u8 {
    ///     builder.insert([key, 1, 2, 3])?;
    /// }
    /// let index = PartitionIndex::from_bytes(builder.finish()?)?;
    /// assert_eq!(index.separator(0), Some(&[][..]));
    /// assert_eq!(index.separator(1), Some(&[51][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn separator(&self, partition: usize) -> Option<&[u8]> {
        self.parts()?.separator(partition)
    }

    /// Number of partitions, at least 1.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, PartitionIndex, PartitionedFilterBuilder, Sizing};
    /// # let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// # let builder = PartitionedFilterBuilder::new(builder, 4096, |_| Ok::<(), std::fmt::Error>(()))?;
    /// assert_eq!(PartitionIndex::from_bytes(builder.finish()?)?.partitions(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn partitions(&self) -> usize {
        self.facts.partitions as usize
    }

    /// Keys of all partitions, equal ones counted once; prefixes are not counted.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, PartitionIndex, PartitionedFilterBuilder, Sizing};
    /// # let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// # let mut builder = PartitionedFilterBuilder::new(builder, 4096, |_| Ok::<(), std::fmt::Error>(()))?;
    /// builder.insert("apple")?;
    /// builder.insert("apple")?;
    /// assert_eq!(PartitionIndex::from_bytes(builder.finish()?)?.keys_inserted(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keys_inserted(&self) -> u64 {
        self.facts.keys
    }

    /// Bytes of all partitions together, without the index.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, PartitionIndex, PartitionedFilterBuilder, Sizing};
    /// # let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// # let builder = PartitionedFilterBuilder::new(builder, 4096, |_| Ok::<(), std::fmt::Error>(()))?;
    /// assert_eq!(PartitionIndex::from_bytes(builder.finish()?)?.stored_bytes(), 128);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stored_bytes(&self) -> u64 {
        self.facts.stored_bytes
    }

    /// What the keys were hashed with.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, KeyHash, PartitionIndex, PartitionedFilterBuilder, Sizing};
    /// # let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// # let builder = PartitionedFilterBuilder::new(builder, 4096, |_| Ok::<(), std::fmt::Error>(()))?;
    /// assert_eq!(PartitionIndex::from_bytes(builder.finish()?)?.key_hash(), KeyHash::default());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn key_hash(&self) -> KeyHash {
        self.facts.key_hash
    }

    /// What was added: keys, prefixes of keys, or both.
    ///
    /// ```
    /// # use blocked_bloom::{Added, BloomFilterBuilder, PartitionIndex, PartitionedFilterBuilder, Sizing};
    /// # let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// # let builder = PartitionedFilterBuilder::new(builder, 4096, |_| Ok::<(), std::fmt::Error>(()))?;
    /// assert_eq!(PartitionIndex::from_bytes(builder.finish()?)?.added(), Added::WholeKeys);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn added(&self) -> Added {
        self.facts.added
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
        f.debug_struct("PartitionIndex")
            .field("facts", &self.facts)
            .field("trusts_blocks", &self.trusts_blocks)
            .finish_non_exhaustive()
    }
}
