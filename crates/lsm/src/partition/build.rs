//! Cuts a filter into partitions while its keys are added in order: only one partition and the
//! index are kept in memory.

use alloc::vec::Vec;
use core::fmt::{self, Display, Formatter};

use blocked_bloom::{
    AllocError, BloomFilter, BloomFilterBuilder, BuildError, FilterOptions, KeyHash, Sizing,
};

use super::bytes::{Draft, header_checksum};

/// Builds a filter of ascending keys in partitions, each an ordinary filter, and an index that says
/// which one a key needs.
///
/// [`insert`](Self::insert) returns each partition when it is full, to be stored behind those
/// before. So memory is bounded by one partition, with its list of hashes, and the index (24 bytes
/// per partition and a separator that is one byte longer than what the keys at the cut have in
/// common). Each partition is [verified](BloomFilterBuilder::finish_verified) before it is
/// returned.
///
/// Where the options add prefixes, each partition also gets the prefix of the key behind it and of
/// the key before it, so that a scan that begins near a cut is answered by one partition, in either
/// direction and whatever separators a writer of the index chooses. Price: two additions per
/// partition.
///
/// ```
/// use blocked_bloom::{FilterOptions, Sizing};
/// use blocked_bloom_lsm::{PartitionIndex, PartitionedFilterBuilder};
/// let mut file = Vec::new();
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
/// let mut builder = PartitionedFilterBuilder::new(options.clone(), 16 << 10)?;
/// for key in ["apple", "banana", "cherry"] {
///     if let Some(partition) = builder.insert(key)? {
///         partition.write_to(&mut file)?;
///     }
/// }
/// let (last, index) = builder.finish()?;
/// last.write_to(&mut file)?;
/// let index = PartitionIndex::from_bytes(index, options.key_hash())?;
/// assert_eq!(index.stored_bytes(), file.len() as u64);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PartitionedFilterBuilder {
    options: FilterOptions,
    /// Most additions to a partition.
    most: u64,
    /// Most additions that come with a key.
    per_key: u64,
    /// Keys that certainly fit the current partition.
    fits: u64,
    current: BloomFilterBuilder,
    /// Keys in the current partition.
    current_keys: u64,
    /// Least bytes that the current partition may have.
    separator: Vec<u8>,
    last_key: Vec<u8>,
    /// Calls of `insert`.
    position: u64,
    /// Different keys.
    keys: u64,
    index: Draft,
    failed: bool,
}

impl PartitionedFilterBuilder {
    /// A builder of partitions that each take at most `partition_bytes`, header included, and as
    /// nearly that as whole blocks of 64 bytes can. 4 to 64 KiB suit most stores: what a block
    /// cache holds and a query can afford to load.
    ///
    /// The options are those of every partition; their memory limit holds for each partition.
    ///
    /// # Errors
    ///
    /// [`PartitionBuildError`] if the options are for the caller's hashes, cannot size a filter, or
    /// are sized by [`Sizing::MaxBytes`], or if `partition_bytes` hold no filter of one key (128 do
    /// at up to 100 bits per key).
    pub fn new(options: FilterOptions, partition_bytes: u64) -> Result<Self, PartitionBuildError> {
        if let KeyHash::Caller { tag } = options.key_hash() {
            return Err(PartitionBuildError::CallerHash { tag });
        }
        if let Sizing::MaxBytes(bytes) = options.sizing() {
            return Err(PartitionBuildError::SizedByBytes { bytes });
        }
        let smallest = options.params(1).map_err(BuildError::from)?.stored_bytes();
        let most = options.max_additions(partition_bytes).map_err(BuildError::from)?;
        if most == 0 {
            return Err(PartitionBuildError::TooFewBytes { bytes: partition_bytes, smallest });
        }
        let contents = options.contents();
        let per_key = u64::from(contents.whole_keys()) + u64::from(contents.extractor().is_some());
        Ok(PartitionedFilterBuilder {
            current: options.builder(),
            options,
            most,
            per_key,
            fits: 0,
            current_keys: 0,
            separator: Vec::new(),
            last_key: Vec::new(),
            position: 0,
            keys: 0,
            index: Draft::default(),
            failed: false,
        })
    }

    /// Adds a key that is not less than the one before, in the order of bytes; one equal to it is
    /// dropped. If the partition was full, it is finished first and returned: store it behind those
    /// before.
    ///
    /// # Errors
    ///
    /// [`PartitionBuildError::Unsorted`] with the key's position; the key was not added then. Any
    /// error of `finish_verified` for the partition that was full; then its keys are lost, and
    /// every further call fails.
    pub fn insert(
        &mut self,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<BloomFilter>, PartitionBuildError> {
        if self.failed {
            return Err(PartitionBuildError::AlreadyFailed);
        }
        let key = key.as_ref();
        let position = self.position;
        self.position += 1;
        if position > 0 && key < &self.last_key[..] {
            return Err(PartitionBuildError::Unsorted { position });
        }
        if position > 0 && key == self.last_key {
            return Ok(None);
        }
        let added = self.add(key);
        self.failed = added.is_err();
        added
    }

    fn add(&mut self, key: &[u8]) -> Result<Option<BloomFilter>, PartitionBuildError> {
        let mut full = None;
        if self.fits == 0 {
            // The capacity left is computed here and not at every key, since that is slow.
            if self.capacity_left() == 0 && self.current_keys > 0 {
                full = Some(self.cut(key)?);
            }
            // A partition has a key at least, even where that and the neighbours' prefixes are more
            // than fit.
            self.fits = self.capacity_left().max(1);
        }
        self.fits -= 1;
        self.current.insert(key).map_err(BuildError::from)?;
        self.current_keys += 1;
        self.keys += 1;
        replace(&mut self.last_key, key)?;
        Ok(full)
    }

    fn capacity_left(&self) -> u64 {
        let for_neighbour = u64::from(self.options.extractor().is_some());
        self.most.saturating_sub(self.current.len() + for_neighbour) / self.per_key
    }

    /// Finishes the partition before `key`.
    fn cut(&mut self, key: &[u8]) -> Result<BloomFilter, PartitionBuildError> {
        if self.index.partitions() + 1 >= u32::MAX as usize {
            return Err(PartitionBuildError::TooManyPartitions);
        }
        let mut next = self.options.builder();
        // A forward scan may begin in this partition and find its first key in the next one; a
        // reverse scan the other way round.
        next.insert_prefix_of(&self.last_key).map_err(BuildError::from)?;
        self.current.insert_prefix_of(key).map_err(BuildError::from)?;
        let filter = self.finish_current(next)?;
        replace(&mut self.separator, shortest_between(&self.last_key, key))?;
        Ok(filter)
    }

    fn finish_current(
        &mut self,
        next: BloomFilterBuilder,
    ) -> Result<BloomFilter, PartitionBuildError> {
        let filter = core::mem::replace(&mut self.current, next).finish_verified()?;
        self.current_keys = 0;
        let checksum = header_checksum(&filter.stored_header());
        self.index.push(checksum, filter.params().stored_bytes(), &self.separator)?;
        Ok(filter)
    }

    /// The last partition, to be stored behind the others, and the stored index. Without keys there
    /// is one partition, which is empty.
    ///
    /// # Errors
    ///
    /// Any error of `finish_verified` for the last partition, and
    /// [`PartitionBuildError::AlreadyFailed`] after an error.
    pub fn finish(mut self) -> Result<(BloomFilter, Vec<u8>), PartitionBuildError> {
        if self.failed {
            return Err(PartitionBuildError::AlreadyFailed);
        }
        let rest = self.options.builder();
        let last = self.finish_current(rest)?;
        let index =
            self.index.to_bytes(self.options.key_hash(), self.options.contents(), self.keys)?;
        Ok((last, index))
    }

    /// Bytes that the builder holds: the hashes of the current partition, and the index so far.
    pub fn memory_bytes(&self) -> u64 {
        let keys = self.last_key.capacity() + self.separator.capacity();
        self.current.memory_bytes() + (self.index.memory_bytes() + keys) as u64
    }
}

/// The shortest bytes that are greater than `low` and not greater than `high`, which is greater
/// than `low`: what both begin with, and the byte of `high` behind it.
fn shortest_between<'k>(low: &[u8], high: &'k [u8]) -> &'k [u8] {
    let common = low.iter().zip(high).take_while(|(low, high)| low == high).count();
    &high[..high.len().min(common + 1)]
}

fn replace(bytes: &mut Vec<u8>, with: &[u8]) -> Result<(), AllocError> {
    bytes.clear();
    bytes.try_reserve(with.len()).map_err(|_| AllocError::new(with.len() as u64))?;
    bytes.extend_from_slice(with);
    Ok(())
}

/// The options and the progress, without keys.
impl fmt::Debug for PartitionedFilterBuilder {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionedFilterBuilder")
            .field("options", &self.options)
            .field("most_per_partition", &self.most)
            .field("keys", &self.keys)
            .field("partitions", &self.index.partitions())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

/// Why a partitioned filter could not be built. What was stored of it must not be used.
///
/// ```
/// use blocked_bloom::{FilterOptions, Sizing};
/// use blocked_bloom_lsm::{PartitionBuildError, PartitionedFilterBuilder};
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
/// let mut builder = PartitionedFilterBuilder::new(options, 4096)?;
/// builder.insert("banana")?;
/// let error = builder.insert("apple").unwrap_err();
/// assert!(matches!(error, PartitionBuildError::Unsorted { position: 1 }));
/// # Ok::<(), PartitionBuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PartitionBuildError {
    /// A partition could not be sized or built.
    Build(BuildError),
    /// The options are for the caller's hashes: partitions are found by keys.
    CallerHash {
        /// The tag of the caller's hash.
        tag: u64,
    },
    /// The options size a whole filter by its bytes, so no number of keys fills a partition.
    SizedByBytes {
        /// The bytes of the sizing.
        bytes: u64,
    },
    /// Not even a filter of one key fits a partition.
    TooFewBytes {
        /// Target size of a partition.
        bytes: u64,
        /// Size of a stored filter of one key.
        smallest: u64,
    },
    /// A key came after a greater one. It was not added; the builder can go on.
    Unsorted {
        /// Which, counted from 0.
        position: u64,
    },
    /// More than 2^32 - 1 partitions.
    TooManyPartitions,
    /// The builder could not finish a partition before, whose keys are lost.
    AlreadyFailed,
}

impl Display for PartitionBuildError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Build(ref error) => error.fmt(f),
            Self::CallerHash { tag } => write!(
                f,
                "partitions are found by keys, not by {}: give options with an XXH3 hash",
                KeyHash::Caller { tag }
            ),
            Self::SizedByBytes { bytes } => write!(
                f,
                "partitions sized by at most {bytes} bytes never fill up: give bits per key or a \
                 false-positive rate"
            ),
            Self::TooFewBytes { bytes, smallest } => {
                write!(f, "partitions of {bytes} bytes: a filter of one key takes {smallest}")
            }
            Self::Unsorted { position } => write!(
                f,
                "key {position} is less than the one before: add keys in ascending order of bytes"
            ),
            Self::TooManyPartitions => {
                write!(f, "more than {} partitions: make them larger", u32::MAX)
            }
            Self::AlreadyFailed => {
                write!(f, "the builder has failed before: build the filter again")
            }
        }
    }
}

impl core::error::Error for PartitionBuildError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Build(error) => Some(error),
            _ => None,
        }
    }
}

impl From<BuildError> for PartitionBuildError {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

impl From<AllocError> for PartitionBuildError {
    fn from(error: AllocError) -> Self {
        Self::Build(error.into())
    }
}
