//! Cutting a filter into partitions while the keys come.
//!
//! This file owns where the cuts are and what is known on both sides of them. It refuses keys out of order, and keeps no more than
//! one partition and the index.

use alloc::vec::Vec;
use core::cmp::Ordering;

use super::bytes::Draft;
use crate::builder::BloomFilterBuilder;
use crate::error::{AllocError, PartitionBuildError};
use crate::filter::BloomFilter;
use crate::format;
use crate::hash::KeyHash;
use crate::params::Sizing;

/// Builds a filter of ascending keys in partitions, each an ordinary filter, and an index that says which one a key needs.
///
/// A finished partition goes to the `sink`, a function from a [`BloomFilter`] to success or an error of its own, which stores it
/// behind those before: so memory is bounded by one partition, with its list of hashes, and the index (24 bytes per partition and a
/// separator that is one byte longer than what the keys at the cut have in common). Each partition is
/// [verified](BloomFilterBuilder::finish_verified) before it is given out.
///
/// Where the template adds prefixes, each partition also gets the prefix of the key behind it and of the key before it, so that a
/// scan that begins near a cut is answered by one partition, in either direction and whatever separators a writer of the index
/// chooses. Price: two additions per partition.
///
/// ```
/// use blocked_bloom::{BloomFilterBuilder, PartitionIndex, PartitionedFilterBuilder, Sizing};
/// let mut partitions = Vec::new(); // a file
/// let template = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
/// let mut builder = PartitionedFilterBuilder::new(template, 16 << 10, |filter| {
///     filter.write_to(&mut partitions).map(drop)
/// })?;
/// for key in ["apple", "banana", "cherry"] {
///     builder.insert(key)?;
/// }
/// let index: Vec<u8> = builder.finish()?; // stored, too
/// assert_eq!(PartitionIndex::from_bytes(index)?.stored_bytes(), partitions.len() as u64);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PartitionedFilterBuilder<S> {
    template: BloomFilterBuilder,
    seed: u64,
    sink: S,
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

impl<S, E> PartitionedFilterBuilder<S>
where
    S: FnMut(BloomFilter) -> Result<(), E>,
{
    /// A builder of partitions that each take at most `partition_bytes`, header included, but as near to them as whole blocks of 64
    /// bytes come. 4 to 64 KiB suit most stores: what a block cache holds and a query can afford to load.
    ///
    /// `template` is a builder without keys that has the settings of every partition: sizing, probes, seed, prefixes. Its memory
    /// limit is one of each partition.
    ///
    /// # Errors
    ///
    /// [`PartitionBuildError`] if the template has keys, has the caller's hash, cannot size a filter, or is sized by
    /// [`Sizing::MaxBytes`], or if `partition_bytes` hold no filter of one key (128 do at up to 100 bits per key).
    ///
    /// ```
    /// use blocked_bloom::{BloomFilterBuilder, PartitionBuildError, PartitionedFilterBuilder, Sizing};
    /// let template = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// let sink = |_| Ok::<(), std::io::Error>(());
    /// let error = PartitionedFilterBuilder::new(template, 100, sink).err();
    /// assert!(matches!(error, Some(PartitionBuildError::TooFewBytes { bytes: 100, smallest: 128 })));
    /// ```
    pub fn new(
        template: BloomFilterBuilder,
        partition_bytes: u64,
        sink: S,
    ) -> Result<Self, PartitionBuildError<E>> {
        let seed = match template.key_hash() {
            KeyHash::Xxh3 { seed } => seed,
            KeyHash::Caller { tag } => return Err(PartitionBuildError::CallerHash { tag }),
        };
        if template.has_keys() {
            return Err(PartitionBuildError::TemplateHasKeys { keys: template.len() });
        }
        if let Sizing::MaxBytes(bytes) = template.sizing() {
            return Err(PartitionBuildError::SizedByBytes { bytes });
        }
        let most = template.most_additions(partition_bytes).map_err(|error| match error {
            Ok(smallest) => PartitionBuildError::TooFewBytes { bytes: partition_bytes, smallest },
            Err(error) => PartitionBuildError::Build(error),
        })?;
        let added = template.added();
        let per_key = u64::from(added.whole_keys()) + u64::from(added.extractor().is_some());
        Ok(PartitionedFilterBuilder {
            current: template.clone(),
            template,
            seed,
            sink,
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

    /// Adds a key that is not less than the one before, in the order of bytes; one equal to it is dropped. If the partition is full,
    /// it is finished and given to the sink first.
    ///
    /// # Errors
    ///
    /// [`PartitionBuildError::Unsorted`] with the key's position, and what finishing a partition and the sink come to. After an error
    /// every call fails.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, PartitionedFilterBuilder, Sizing};
    /// # let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// # let mut builder = PartitionedFilterBuilder::new(builder, 4096, |_| Ok::<(), std::fmt::Error>(()))?;
    /// builder.insert("apple")?;
    /// builder.insert("apple")?;
    /// assert!(builder.insert("aardvark").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<(), PartitionBuildError<E>> {
        if self.failed {
            return Err(PartitionBuildError::AlreadyFailed);
        }
        let inserted = self.try_insert(key.as_ref());
        self.failed = inserted.is_err();
        inserted
    }

    fn try_insert(&mut self, key: &[u8]) -> Result<(), PartitionBuildError<E>> {
        let position = self.position;
        self.position += 1;
        if position > 0 {
            match key.cmp(&self.last_key) {
                Ordering::Less => return Err(PartitionBuildError::Unsorted { position }),
                Ordering::Equal => return Ok(()),
                Ordering::Greater => {}
            }
        }
        if self.fits == 0 {
            self.make_room(key)?;
        }
        self.fits -= 1;
        self.current.insert(key);
        self.current_keys += 1;
        self.keys += 1;
        replace(&mut self.last_key, key)?;
        Ok(())
    }

    /// Counts for how many keys there is room, and cuts if there is none: a count is slow, so it is not made at every key.
    fn make_room(&mut self, key: &[u8]) -> Result<(), PartitionBuildError<E>> {
        if self.room() == 0 && self.current_keys > 0 {
            self.cut(key)?;
        }
        // A partition has a key at least, even where that and the neighbours' prefixes are more than fit.
        self.fits = self.room().max(1);
        Ok(())
    }

    fn room(&self) -> u64 {
        let for_neighbour = u64::from(self.template.added().extractor().is_some());
        self.most.saturating_sub(self.current.len() + for_neighbour) / self.per_key
    }

    /// Finishes the partition before `key`.
    fn cut(&mut self, key: &[u8]) -> Result<(), PartitionBuildError<E>> {
        if self.index.partitions() + 1 >= u32::MAX as usize {
            return Err(PartitionBuildError::TooManyPartitions);
        }
        let mut next = self.template.clone();
        // A scan from here on forward may begin in this partition and find its first key in the next, and the reverse.
        next.add_prefix_of(&self.last_key);
        self.current.add_prefix_of(key);
        self.give_out(next)?;
        replace(&mut self.separator, shortest_between(&self.last_key, key))?;
        Ok(())
    }

    fn give_out(&mut self, next: BloomFilterBuilder) -> Result<(), PartitionBuildError<E>> {
        let filter = core::mem::replace(&mut self.current, next).finish_verified()?;
        self.current_keys = 0;
        let checksum = format::header_checksum(&format::header(&filter.view())).unwrap_or_default();
        let bytes = filter.params().stored_bytes();
        self.index.push(checksum, bytes, &self.separator)?;
        (self.sink)(filter).map_err(PartitionBuildError::Sink)
    }

    /// Gives the last partition to the sink; returns the stored index. Without keys there is one partition, which is empty.
    ///
    /// # Errors
    ///
    /// What finishing a partition and the sink come to, and [`PartitionBuildError::AlreadyFailed`] after an error.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, PartitionedFilterBuilder, Sizing};
    /// # let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// let builder = PartitionedFilterBuilder::new(builder, 4096, |_| Ok::<(), std::fmt::Error>(()))?;
    /// assert_eq!(builder.finish()?.len(), 64 + 24);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish(mut self) -> Result<Vec<u8>, PartitionBuildError<E>> {
        if self.failed {
            return Err(PartitionBuildError::AlreadyFailed);
        }
        let rest = self.template.clone();
        self.give_out(rest)?;
        Ok(self.index.to_bytes(self.seed, self.template.added(), self.keys)?)
    }

    /// Bytes that the builder holds: the hashes of the current partition, and the index so far.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, PartitionedFilterBuilder, Sizing};
    /// # let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// # let mut builder = PartitionedFilterBuilder::new(builder, 4096, |_| Ok::<(), std::fmt::Error>(()))?;
    /// for key in 0..1_000_000_u32 {
    ///     builder.insert(key.to_be_bytes())?;
    /// }
    /// assert!(builder.memory_bytes() < 50_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn memory_bytes(&self) -> u64 {
        let keys = self.last_key.capacity() + self.separator.capacity();
        self.current.memory_bytes() + (self.index.memory_bytes() + keys) as u64
    }
}

/// The shortest bytes that are greater than `low` and not greater than `high`, which is greater than `low`: what both begin with, and
/// the byte of `high` behind it.
fn shortest_between<'k>(low: &[u8], high: &'k [u8]) -> &'k [u8] {
    let common = low.iter().zip(high).take_while(|(low, high)| low == high).count();
    &high[..high.len().min(common + 1)]
}

fn replace(bytes: &mut Vec<u8>, with: &[u8]) -> Result<(), AllocError> {
    bytes.clear();
    bytes.try_reserve(with.len()).map_err(|_| AllocError { bytes: with.len() as u64 })?;
    bytes.extend_from_slice(with);
    Ok(())
}

/// How far it came, without keys.
impl<S> core::fmt::Debug for PartitionedFilterBuilder<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PartitionedFilterBuilder")
            .field("template", &self.template)
            .field("most_per_partition", &self.most)
            .field("keys", &self.keys)
            .field("partitions", &self.index.partitions())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}
