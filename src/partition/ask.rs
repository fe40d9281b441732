//! Questions to a partitioned filter: each loads the partitions that it needs, and answers "maybe" for those it does not get.
//!
//! This file owns the grouping of a batch and the check that a loaded filter is the one that is meant. It refuses to guess for a
//! partition that failed, and to give up on the others.

use alloc::vec::Vec;

use super::bytes::Parts;
use super::{PartitionIndex, PartitionLocation};
use crate::bitmask::{self, Bitmask};
use crate::error::{AllocError, LengthError, PartitionError, PartitionFailure};
use crate::format;
use crate::prefix::PrefixExtractor;
use crate::view::{self, BloomFilterRef};

impl<B: AsRef<[u8]>> PartitionIndex<B> {
    /// Whether the key may be present, and why its partition could not be asked, if it could not: then the answer is true.
    ///
    /// `load` gets where the partition is and gives its bytes. It is not called if the answer is known without: whole keys were not
    /// added, so every answer is true.
    ///
    /// Cost: a binary search in the index, loading, one pass over the partition that verifies it (unless
    /// [trusted](Self::trust_loaded_blocks)), one cache line.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, PartitionIndex, PartitionedFilterBuilder, Sizing};
    /// # let mut partitions = Vec::new();
    /// # let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// # let mut builder = PartitionedFilterBuilder::new(builder, 4096, |filter| filter.write_to(&mut partitions).map(drop))?;
    /// # builder.insert("apple")?;
    /// # let index = PartitionIndex::from_bytes(builder.finish()?)?;
    /// let (maybe, failure) = index.contains("banana", |at| {
    ///     partitions.get(at.offset as usize..(at.offset + at.length) as usize).ok_or("outside the file")
    /// });
    /// if let Some(failure) = failure {
    ///     eprintln!("filter not used: {failure}");
    /// }
    /// assert!(!maybe);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains<P: AsRef<[u8]>, E>(
        &self,
        key: impl AsRef<[u8]>,
        load: impl FnOnce(PartitionLocation) -> Result<P, E>,
    ) -> (bool, Option<PartitionFailure<E>>) {
        let key = key.as_ref();
        match self.facts.added.whole_keys() {
            true => self.ask_one(key, load, |filter| filter.contains(key)),
            false => (true, None),
        }
    }

    /// Whether a key that starts with `start` may be present, as [`BloomFilterRef::contains_prefix`] answers, and why the partition
    /// could not be asked, if it could not: then the answer is true.
    ///
    /// One partition is asked, that in which a scan from `start` begins; it knows the prefixes of its neighbours at the cuts.
    ///
    /// `start` may be longer than the prefix, as where a scan of a prefix goes on from some key: false then means that no key from
    /// `start` on has the prefix, nor any key up to `start` for a scan in reverse. For a custom rule that holds if every key that
    /// starts with a prefix has that prefix; of other rules this is asked only about keys that start with `start`.
    ///
    /// `load` is not called if the answer is known without: prefixes by this rule were not added, or the keys need not share one.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, PartitionIndex, PartitionedFilterBuilder, PrefixExtractor, Sizing};
    /// # let mut partitions = Vec::new();
    /// let tenant = PrefixExtractor::fixed(4);
    /// let template = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0)).prefixes(tenant.clone());
    /// # let mut builder = PartitionedFilterBuilder::new(template, 4096, |filter| filter.write_to(&mut partitions).map(drop))?;
    /// builder.insert("ab12/apple")?;
    /// # let index = PartitionIndex::from_bytes(builder.finish()?)?;
    /// let load = |_| Ok::<_, std::io::Error>(&partitions);
    /// assert!(index.contains_prefix(&tenant, "ab12/", load).0);
    /// assert!(!index.contains_prefix(&tenant, "cd34/", load).0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_prefix<P: AsRef<[u8]>, E>(
        &self,
        extractor: &PrefixExtractor,
        start: impl AsRef<[u8]>,
        load: impl FnOnce(PartitionLocation) -> Result<P, E>,
    ) -> (bool, Option<PartitionFailure<E>>) {
        let start = start.as_ref();
        let has_prefixes = self.facts.added.extractor() == Some(extractor.id());
        match extractor.scan_prefix(start).filter(|_| has_prefixes) {
            Some(prefix) => {
                self.ask_one(start, load, |filter| filter.prefixes(extractor).contains(prefix))
            }
            None => (true, None),
        }
    }

    /// Asks about every key; `hits` then has one bit per key. Each partition that has keys of the batch is loaded once, in ascending
    /// order. Returns the partitions that could not be asked, whose keys are hits; nothing is allocated for them if there are none.
    ///
    /// Cost beside loading: 24 bytes per key are allocated for the batch, and sorted by partition unless the keys are in order.
    ///
    /// ```
    /// # use blocked_bloom::{Bitmask, BloomFilterBuilder, PartitionIndex, PartitionedFilterBuilder, Sizing};
    /// # let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// # let mut builder = PartitionedFilterBuilder::new(builder, 4096, |_| Ok::<(), std::fmt::Error>(()))?;
    /// # builder.insert("apple")?;
    /// # let index = PartitionIndex::from_bytes(builder.finish()?)?;
    /// let mut hits = Bitmask::new();
    /// let failures = index.contains_batch(&["apple", "banana"], &mut hits, |_| {
    ///     Err::<&[u8], _>("not available")
    /// });
    /// assert_eq!((hits.count_hits(), failures.len()), (2, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch<K: AsRef<[u8]>, P: AsRef<[u8]>, E>(
        &self,
        keys: &[K],
        hits: &mut Bitmask,
        load: impl FnMut(PartitionLocation) -> Result<P, E>,
    ) -> Vec<PartitionFailure<E>> {
        let mut failures = Vec::new();
        hits.write(keys.len(), |words| failures = self.ask_many(keys, words, load));
        failures
    }

    /// [`contains_batch`](Self::contains_batch) into words of the caller's: key `i` is bit `i % 64` of `words[i / 64]`, bits
    /// past the last key are zero.
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per 64 keys, rounded up; nothing is written or loaded then.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilterBuilder, PartitionIndex, PartitionedFilterBuilder, Sizing};
    /// # let mut partitions = Vec::new();
    /// # let builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
    /// # let mut builder = PartitionedFilterBuilder::new(builder, 4096, |filter| filter.write_to(&mut partitions).map(drop))?;
    /// # builder.insert("apple")?;
    /// # let index = PartitionIndex::from_bytes(builder.finish()?)?;
    /// let mut words = [0];
    /// let load = |_| Ok::<_, std::io::Error>(&partitions);
    /// let failures = index.contains_batch_into(&["banana", "apple"], &mut words, load)?;
    /// assert!(failures.is_empty() && words == [0b10]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch_into<K: AsRef<[u8]>, P: AsRef<[u8]>, E>(
        &self,
        keys: &[K],
        words: &mut [u64],
        load: impl FnMut(PartitionLocation) -> Result<P, E>,
    ) -> Result<Vec<PartitionFailure<E>>, LengthError> {
        view::check_length(keys.len(), words)?;
        Ok(self.ask_many(keys, words, load))
    }

    fn ask_one<P: AsRef<[u8]>, E>(
        &self,
        key: &[u8],
        load: impl FnOnce(PartitionLocation) -> Result<P, E>,
        ask: impl FnOnce(&BloomFilterRef<'_>) -> bool,
    ) -> (bool, Option<PartitionFailure<E>>) {
        let Some(parts) = self.parts() else {
            return (true, Some(PartitionFailure::new(0, PartitionError::IndexChanged)));
        };
        let partition = parts.partition_of(key);
        match self.with_filter(parts, partition, load, |filter| ask(filter)) {
            Ok(maybe) => (maybe, None),
            Err(error) => (true, Some(PartitionFailure::new(partition, error))),
        }
    }

    /// There is a word per 64 keys.
    fn ask_many<K: AsRef<[u8]>, P: AsRef<[u8]>, E>(
        &self,
        keys: &[K],
        words: &mut [u64],
        mut load: impl FnMut(PartitionLocation) -> Result<P, E>,
    ) -> Vec<PartitionFailure<E>> {
        let mut failures = Vec::new();
        let hasher = self.facts.key_hash.hasher();
        let (Some(hasher), true) = (hasher, self.facts.added.whole_keys()) else {
            bitmask::fill_with_hits(words, keys.len());
            return failures;
        };
        let Some(parts) = self.parts() else {
            bitmask::fill_with_hits(words, keys.len());
            failures.push(PartitionFailure::new(0, PartitionError::IndexChanged));
            return failures;
        };
        // What is not asked, for whatever reason, is a hit.
        bitmask::fill_with_hits(words, keys.len());
        let (mut order, mut hashes) = (Vec::new(), Vec::new());
        if order.try_reserve_exact(keys.len()).is_err()
            || hashes.try_reserve_exact(keys.len()).is_err()
        {
            let bytes = keys.len() as u64 * (size_of::<(usize, usize)>() + 8) as u64;
            failures.push(PartitionFailure::new(0, PartitionError::Alloc(AllocError { bytes })));
            return failures;
        }
        let partition_of = |(i, key): (usize, &K)| (parts.partition_of(key.as_ref()), i);
        order.extend(keys.iter().enumerate().map(partition_of));
        // Linear if the keys are in order.
        order.sort_unstable();
        let mut hits = Bitmask::new();
        for group in order.chunk_by(|one, next| one.0 == next.0) {
            let partition = group[0].0;
            let asked = self.with_filter(parts, partition, &mut load, |filter| {
                hashes.clear();
                hashes.extend(group.iter().map(|&(_, i)| hasher.hash(&keys[i])));
                filter.contains_hashes(&hashes, &mut hits);
            });
            match asked {
                Ok(()) => hits.misses().for_each(|miss| clear(words, group[miss].1)),
                Err(error) => failures.push(PartitionFailure::new(partition, error)),
            }
        }
        failures
    }

    /// Loads a partition, and asks it if it is the one that the index means.
    fn with_filter<P: AsRef<[u8]>, E, R>(
        &self,
        parts: Parts<'_>,
        partition: usize,
        load: impl FnOnce(PartitionLocation) -> Result<P, E>,
        ask: impl FnOnce(&BloomFilterRef<'_>) -> R,
    ) -> Result<R, PartitionError<E>> {
        let at = parts.location(partition).zip(parts.header_checksum(partition));
        let Some((location, expected)) = at else { return Err(PartitionError::IndexChanged) };
        let loaded = load(location).map_err(PartitionError::Load)?;
        // Asked for once: what was verified is what is asked.
        let bytes = loaded.as_ref();
        let filter = match self.trusts_blocks {
            true => BloomFilterRef::from_bytes_trusted(bytes)?,
            false => BloomFilterRef::from_bytes(bytes)?,
        };
        let found = format::header_checksum(bytes);
        if found != Some(expected) {
            let found = found.unwrap_or_default();
            return Err(PartitionError::OtherFilter { found, expected });
        }
        Ok(ask(&filter.require_key_hash(self.facts.key_hash)?))
    }
}

fn clear(words: &mut [u64], bit: usize) {
    words[bit / 64] &= !(1 << (bit % 64));
}
