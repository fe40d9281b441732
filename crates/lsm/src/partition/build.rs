//! Cuts a filter into partitions while its keys are added in order. Only one partition and the
//! index are kept in memory.

use alloc::vec::Vec;
use core::fmt::{self, Display, Formatter};

use blocked_bloom::{
    AllocError, BloomFilter, BloomFilterBuilder, BuildError, FilterOptions, KeyHash, Sizing,
};

use super::bytes::{IndexBuilder, header_checksum};

/// Builds a filter of ascending keys in partitions, each an ordinary filter, and an index that
/// locates the partition of a key.
///
/// [`insert`](Self::insert) returns each partition when it is full; store it after the previous
/// ones. So memory is limited to one partition with its list of hashes, and the index. The index
/// takes 24 bytes per partition, plus a separator one byte longer than the common prefix of the
/// keys at the cut. Each partition is [verified](BloomFilterBuilder::finish_verified) before it is
/// returned.
///
/// If the options add prefixes, each partition also gets the prefix of the next partition's first
/// key and of the previous partition's last key. A scan that starts near a cut then needs one
/// partition only, in both directions, whatever separators the writer of an index chooses. Price:
/// two additions per partition.
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
    /// Maximum additions to a partition.
    max_additions: u64,
    /// Maximum additions per key.
    additions_per_key: u64,
    /// Keys that certainly still fit into the current partition.
    keys_left: u64,
    current: BloomFilterBuilder,
    /// Keys in the current partition.
    current_keys: u64,
    /// Least bytes that a key of the current partition may have.
    separator: Vec<u8>,
    last_key: Vec<u8>,
    /// Number of calls of `insert`.
    position: u64,
    /// Number of distinct keys.
    keys: u64,
    index: IndexBuilder,
    failed: bool,
}

impl PartitionedFilterBuilder {
    /// Creates a builder. Each partition takes at most `partition_bytes`, header included, and
    /// fills them as far as whole blocks of 64 bytes can. 4 to 64 KiB suit most stores: small
    /// enough for a query to load, and for a block cache.
    ///
    /// The options are those of every partition. Their memory limit holds for each partition.
    ///
    /// # Errors
    ///
    /// [`PartitionBuildError`] if the options use caller-supplied hashes, cannot size a filter, or
    /// are sized by [`Sizing::MaxBytes`], or if `partition_bytes` is too small for a filter of one
    /// key (128 bytes are enough at up to 100 bits per key).
    pub fn new(options: FilterOptions, partition_bytes: u64) -> Result<Self, PartitionBuildError> {
        if let KeyHash::Caller { tag } = options.key_hash() {
            return Err(PartitionBuildError::CallerHash { tag });
        }
        if let Sizing::MaxBytes(bytes) = options.sizing() {
            return Err(PartitionBuildError::SizedByBytes { bytes });
        }
        let smallest = options.params(1).map_err(BuildError::from)?.stored_bytes();
        let max_additions = options.max_additions(partition_bytes).map_err(BuildError::from)?;
        if max_additions == 0 {
            return Err(PartitionBuildError::TooFewBytes { bytes: partition_bytes, smallest });
        }
        let contents = options.contents();
        let additions_per_key =
            u64::from(contents.whole_keys()) + u64::from(contents.extractor().is_some());
        Ok(PartitionedFilterBuilder {
            current: options.builder(),
            options,
            max_additions,
            additions_per_key,
            keys_left: 0,
            current_keys: 0,
            separator: Vec::new(),
            last_key: Vec::new(),
            position: 0,
            keys: 0,
            index: IndexBuilder::default(),
            failed: false,
        })
    }

    /// Inserts a key. Keys must be in ascending order of their bytes; a key equal to the previous
    /// one is ignored. If the partition was full, it is finished and returned: store it after the
    /// previous ones.
    ///
    /// # Errors
    ///
    /// [`PartitionBuildError::Unsorted`] with the key's position; the key was not inserted, and the
    /// builder can continue. Any error of `finish_verified` for the full partition; its keys are
    /// then lost, and every further call fails.
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
        if self.keys_left == 0 {
            // The remaining capacity is computed here and not for every key, because that is slow.
            if self.capacity_left() == 0 && self.current_keys > 0 {
                full = Some(self.cut(key)?);
            }
            // A partition contains at least one key, even if the key and the neighbours' prefixes
            // do not fit.
            self.keys_left = self.capacity_left().max(1);
        }
        self.keys_left -= 1;
        self.current.insert(key).map_err(BuildError::from)?;
        self.current_keys += 1;
        self.keys += 1;
        replace(&mut self.last_key, key)?;
        Ok(full)
    }

    fn capacity_left(&self) -> u64 {
        let neighbour_prefix = u64::from(self.options.extractor().is_some());
        self.max_additions.saturating_sub(self.current.len() + neighbour_prefix)
            / self.additions_per_key
    }

    /// Finishes the partition before `key`.
    fn cut(&mut self, key: &[u8]) -> Result<BloomFilter, PartitionBuildError> {
        if self.index.partitions() + 1 >= u32::MAX as usize {
            return Err(PartitionBuildError::TooManyPartitions);
        }
        let mut next = self.options.builder();
        // A forward scan may start in this partition and find its first key in the next one, and a
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

    /// Returns the last partition, to be stored after the others, and the stored index. Without
    /// keys there is one empty partition.
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

    /// Returns the bytes that the builder uses: the hashes of the current partition, and the index
    /// so far.
    pub fn memory_bytes(&self) -> u64 {
        let keys = self.last_key.capacity() + self.separator.capacity();
        self.current.memory_bytes() + (self.index.memory_bytes() + keys) as u64
    }
}

/// Returns the shortest prefix of `high` that is greater than `low`: the common prefix and one more
/// byte. `high` must be greater than `low`.
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

/// Prints the options and the progress, without keys.
impl fmt::Debug for PartitionedFilterBuilder {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionedFilterBuilder")
            .field("options", &self.options)
            .field("most_per_partition", &self.max_additions)
            .field("keys", &self.keys)
            .field("partitions", &self.index.partitions())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

/// The reason why a partitioned filter could not be built. Do not use the partitions that were
/// stored.
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
    /// The options use caller-supplied hashes, but partitions are located by key.
    CallerHash {
        /// The tag of the caller's hash.
        tag: u64,
    },
    /// The options size a filter by its bytes, which does not limit the keys of a partition.
    SizedByBytes {
        /// The bytes of the sizing.
        bytes: u64,
    },
    /// Even a filter of one key does not fit into a partition.
    TooFewBytes {
        /// Maximum bytes of a partition.
        bytes: u64,
        /// Bytes of a stored filter of one key.
        smallest: u64,
    },
    /// A key was less than the previous one. It was not inserted; the builder can continue.
    Unsorted {
        /// Index of the key, from 0.
        position: u64,
    },
    /// More than 2^32 - 1 partitions.
    TooManyPartitions,
    /// The builder could not finish an earlier partition, whose keys are lost.
    AlreadyFailed,
}

impl Display for PartitionBuildError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Build(ref error) => error.fmt(f),
            Self::CallerHash { tag } => write!(
                f,
                "partitions are located by key, which {} cannot hash: use options with XXH3",
                KeyHash::Caller { tag }
            ),
            Self::SizedByBytes { bytes } => write!(
                f,
                "a size of at most {bytes} bytes does not limit the keys of a partition: set bits \
                 per key or a false-positive rate"
            ),
            Self::TooFewBytes { bytes, smallest } => {
                write!(
                    f,
                    "partitions of {bytes} bytes are too small: one key takes {smallest} bytes"
                )
            }
            Self::Unsorted { position } => write!(
                f,
                "key {position} is less than the previous key: insert keys in ascending order"
            ),
            Self::TooManyPartitions => {
                write!(f, "more than {} partitions: make them larger", u32::MAX)
            }
            Self::AlreadyFailed => {
                write!(f, "the builder failed earlier: build the filter again")
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
