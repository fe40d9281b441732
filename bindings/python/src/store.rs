//! The filter of a Python object: one of the project's filters, built here or opened.

use std::io;

use blocked_bloom::parts::{BlockBuffer, HEADER_BYTES, Header};
use blocked_bloom::{
    Bitmask, Block, BloomFilter, Filter as _, FormatError, KeyHash, LengthError, Stored,
};
use blocked_bloom_scalable::{LinkBytes, ScalableBloomFilter};

use crate::batch::Keys;
use crate::bytes::{Bytes, SharedBytes};
use crate::columns::CHUNK;
use crate::error::Error;

/// One of the project's filters.
#[derive(Debug)]
pub(crate) enum Store {
    Owned(BloomFilter),
    Opened { filter: BloomFilter<Stored<Bytes>>, mapped: bool },
    Growing(ScalableBloomFilter),
    OpenedGrowing { filter: ScalableBloomFilter<Stored<LinkBytes<SharedBytes>>>, mapped: bool },
}

/// Evaluates the same expression for each kind of filter, all of which have the same methods.
macro_rules! each {
    ($store:expr, $filter:ident => $value:expr) => {
        match $store {
            Store::Owned($filter) => $value,
            Store::Opened { filter: $filter, .. } => $value,
            Store::Growing($filter) => $value,
            Store::OpenedGrowing { filter: $filter, .. } => $value,
        }
    };
}

/// Makes the matching call for each kind of keys.
macro_rules! look_up {
    ($filter:expr, $keys:expr, $words:expr) => {{
        let done: Result<(), LengthError> = match $keys {
            Keys::Numbers(keys) => $filter.contains_u64s_into(keys, $words),
            Keys::Bytes(keys) => $filter.contains_batch_into(keys, $words),
            Keys::Hashes(hashes) => $filter.contains_hashes_into(hashes, $words),
        };
        done.expect("a word for 64 keys")
    }};
}

impl Store {
    /// Opens and verifies a filter for a known number of keys.
    pub(crate) fn open(bytes: Bytes) -> Result<Self, Error> {
        let mapped = matches!(bytes, Bytes::Mapped(_));
        Ok(Store::Opened { filter: BloomFilter::from_bytes_any_hash(bytes)?, mapped })
    }

    /// Opens and verifies a growing filter.
    pub(crate) fn open_growing(bytes: Bytes) -> Result<Self, Error> {
        let mapped = matches!(bytes, Bytes::Mapped(_));
        let filter = ScalableBloomFilter::from_bytes_any_hash(SharedBytes::from(bytes))?;
        Ok(Store::OpenedGrowing { filter, mapped })
    }

    pub(crate) fn is_growing(&self) -> bool {
        matches!(self, Store::Growing(_) | Store::OpenedGrowing { .. })
    }

    pub(crate) fn is_read_only(&self) -> bool {
        match self {
            Store::Owned(_) | Store::Growing(_) => false,
            Store::Opened { mapped, .. } | Store::OpenedGrowing { mapped, .. } => *mapped,
        }
    }

    pub(crate) fn key_hash(&self) -> KeyHash {
        each!(self, filter => filter.key_hash())
    }

    pub(crate) fn keys(&self) -> u64 {
        each!(self, filter => filter.keys_inserted())
    }

    pub(crate) fn memory(&self) -> u64 {
        each!(self, filter => filter.memory_bytes())
    }

    pub(crate) fn expected_fpr(&self) -> f64 {
        each!(self, filter => filter.expected_false_positive_rate())
    }

    pub(crate) fn estimated_fpr(&self) -> f64 {
        each!(self, filter => filter.estimated_false_positive_rate())
    }

    #[inline]
    pub(crate) fn contains_hash(&self, hash: u64) -> bool {
        each!(self, filter => filter.contains_hash(hash))
    }

    pub(crate) fn contains(&self, keys: Keys<'_>, words: &mut [u64]) {
        each!(self, filter => look_up!(filter, keys, words));
    }

    pub(crate) fn write_to(&self, to: impl io::Write) -> io::Result<u64> {
        each!(self, filter => filter.write_to(to))
    }

    pub(crate) fn stored_bytes(&self) -> u64 {
        let headers = match self {
            Store::Owned(_) | Store::Opened { .. } => 1,
            Store::Growing(filter) => 1 + filter.links().len(),
            Store::OpenedGrowing { filter, .. } => 1 + filter.links().len(),
        };
        self.memory() + (headers * HEADER_BYTES) as u64
    }

    /// Returns a copy that can be changed.
    pub(crate) fn copy(&self) -> Result<Store, Error> {
        Ok(match self {
            Store::Owned(filter) => Store::Owned(filter.to_filter()?),
            Store::Opened { filter, .. } => Store::Owned(filter.to_filter()?),
            Store::Growing(filter) => Store::Growing(filter.to_filter()?),
            Store::OpenedGrowing { filter, .. } => Store::Growing(filter.to_filter()?),
        })
    }

    /// Copies a loaded filter so that it can be changed, which takes twice its size for a moment.
    fn make_owned(&mut self) -> Result<(), Error> {
        if self.is_read_only() {
            return Err(Error::ReadOnly);
        }
        if let Store::Opened { .. } | Store::OpenedGrowing { .. } = self {
            *self = self.copy()?;
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn insert_hash(&mut self, hash: u64) -> Result<bool, Error> {
        match self {
            Store::Owned(filter) => Ok(filter.insert_hash(hash)?),
            Store::Growing(filter) => Ok(filter.insert_hash(hash)?),
            _ => {
                self.make_owned()?;
                self.insert_hash(hash)
            }
        }
    }

    pub(crate) fn insert(&mut self, keys: Keys<'_>) -> Result<(), Error> {
        match (&mut *self, keys) {
            (Store::Owned(filter), Keys::Bytes(keys)) => Ok(filter.insert_batch(keys)?),
            (Store::Owned(filter), Keys::Numbers(keys)) => Ok(filter.insert_u64s(keys)?),
            (Store::Growing(filter), Keys::Bytes(keys)) => Ok(filter.insert_batch(keys)?),
            (_, Keys::Hashes(hashes)) => self.insert_hashes(hashes),
            (_, Keys::Numbers(numbers)) => {
                let hashes = &mut [0; CHUNK][..numbers.len()];
                self.key_hash().hasher()?.hash_u64s(numbers, hashes).expect("a hash for each key");
                self.insert_hashes(hashes)
            }
            _ => {
                self.make_owned()?;
                self.insert(keys)
            }
        }
    }

    fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), Error> {
        match self {
            Store::Owned(filter) => Ok(filter.insert_hashes(hashes)?),
            Store::Growing(filter) => Ok(filter.insert_hashes(hashes)?),
            _ => {
                self.make_owned()?;
                self.insert_hashes(hashes)
            }
        }
    }

    /// Like `insert_hashes`, on the threads of the caller's pool if the filter supports it.
    pub(crate) fn par_insert_hashes(&mut self, hashes: &[u64]) -> Result<(), Error> {
        self.make_owned()?;
        match self {
            Store::Owned(filter) => Ok(filter.par_insert_hashes(hashes)?),
            _ => self.insert_hashes(hashes),
        }
    }

    pub(crate) fn insert_new(&mut self, keys: Keys<'_>, new: &mut Bitmask) -> Result<(), Error> {
        match (&mut *self, keys) {
            (Store::Owned(filter), Keys::Numbers(keys)) => filter.insert_u64s_new(keys, new)?,
            (Store::Owned(filter), Keys::Bytes(keys)) => filter.insert_batch_new(keys, new)?,
            (Store::Owned(filter), Keys::Hashes(hashes)) => {
                filter.insert_hashes_new(hashes, new)?
            }
            (Store::Growing(filter), Keys::Numbers(keys)) => filter.insert_u64s_new(keys, new)?,
            (Store::Growing(filter), Keys::Bytes(keys)) => filter.insert_batch_new(keys, new)?,
            (Store::Growing(filter), Keys::Hashes(hashes)) => {
                filter.insert_hashes_new(hashes, new)?
            }
            _ => {
                self.make_owned()?;
                self.insert_new(keys, new)?;
            }
        }
        Ok(())
    }

    /// Adds the keys of another filter of the same kind.
    pub(crate) fn union(&mut self, other: &Store) -> Result<(), Error> {
        self.make_owned()?;
        match (self, other) {
            (Store::Owned(filter), Store::Owned(other)) => Ok(filter.union_with(other)?),
            (Store::Owned(filter), Store::Opened { filter: other, .. }) => {
                Ok(filter.union_with(other)?)
            }
            (Store::Growing(filter), other) => match other.copy()? {
                Store::Growing(other) => Ok(filter.union_with(other)?),
                _ => {
                    Err(Error::Value("a growing filter is merged with growing filters only".into()))
                }
            },
            _ => Err(Error::Value(
                "a filter for a known number of keys is merged with such filters only".into(),
            )),
        }
    }

    fn view(&self) -> Option<BloomFilter<&[Block]>> {
        match self {
            Store::Owned(filter) => Some(filter.view()),
            Store::Opened { filter, .. } => Some(filter.view()),
            _ => None,
        }
    }

    /// Estimates the number of keys from the bits. Growing filters return their count.
    pub(crate) fn estimated_keys(&self) -> Option<u64> {
        self.view().map_or(Some(self.keys()), |filter| filter.estimated_keys())
    }

    /// Returns a filter of the keys that may be in both: the bits set in both.
    pub(crate) fn intersection(&self, other: &Store) -> Result<Store, Error> {
        let (Some(left), Some(right)) = (self.view(), other.view()) else {
            return Err(Error::Value(
                "growing filters have no intersection: \
                 their keys are in filters of different sizes"
                    .into(),
            ));
        };
        // The header must not say pass-all unless both filters are.
        let (left, right) = if left.is_pass_all() { (right, left) } else { (left, right) };
        let (shape, expected) = (left.params(), right.params());
        if (shape.blocks(), shape.probes(), left.key_hash())
            != (expected.blocks(), expected.probes(), right.key_hash())
        {
            let of =
                |blocks, probes, hash| format!("{blocks} blocks with {probes} probes of {hash}");
            let (left, right) = (
                of(shape.blocks(), shape.probes(), left.key_hash()),
                of(expected.blocks(), expected.probes(), right.key_hash()),
            );
            return Err(Error::Value(format!(
                "the filters have different shapes: {left}, {right}"
            )));
        }
        let mut blocks = BlockBuffer::copy_of(left.blocks(), true)?;
        for (block, other) in blocks.iter_mut().zip(right.blocks()) {
            block.iter_mut().zip(other).for_each(|(byte, other)| *byte &= other);
        }
        let keys = BloomFilter::from_blocks(&blocks, shape.probes(), left.key_hash())?
            .estimated_keys()
            .unwrap_or_else(|| left.keys_inserted().min(right.keys_inserted()));
        // Only stored bytes make a mutable filter of given blocks, so take this filter's header and
        // replace the number of keys and the blocks.
        let bytes = left.stored_header();
        let magic = std::array::from_fn(|i| bytes[i]);
        let mut header = Header::read(&bytes, magic, 1).map_err(FormatError::from)?;
        header.put(32, &keys.to_le_bytes());
        header.put_body_checksum(48, blocks.as_flattened());
        Store::open(Bytes::joined(header.seal(), blocks)?)
    }
}

impl PartialEq for Store {
    fn eq(&self, other: &Self) -> bool {
        if let (Some(left), Some(right)) = (self.view(), other.view()) {
            return left == right;
        }
        match (self, other) {
            (Store::Growing(left), right) => match right {
                Store::Growing(right) => left == right,
                Store::OpenedGrowing { filter: right, .. } => left == right,
                _ => false,
            },
            (Store::OpenedGrowing { .. }, Store::Growing(_)) => other == self,
            (
                Store::OpenedGrowing { filter: left, .. },
                Store::OpenedGrowing { filter: right, .. },
            ) => left == right,
            _ => false,
        }
    }
}
