//! A filter block of RocksDB, borrowed: what kind it is, and its answers.
//!
//! This file owns the five bytes that end a block and the order in which RocksDB decodes them. It refuses blocks that are too short
//! to hold what they claim, and never answers "absent" for a kind it does not know.

use super::error::RocksdbError;
use super::hash::{key_hash, legacy_hash};
use super::legacy::Lines;
use super::{KEY_HASH, TRAILER_BYTES};
use crate::bitmask::{self, Bitmask};
use crate::error::LengthError;
use crate::kernel::Kernel;
use crate::prefix::Added;
use crate::probe::MAX_PROBES;
use crate::view::{BloomFilterRef, Meta, check_length};

/// What the last five bytes of a filter block say it is.
///
/// ```
/// use blocked_bloom::interop::rocksdb::{FilterBlock, FilterKind};
/// let block = [[0; 64].as_slice(), &[0xff, 0, 6, 0, 0]].concat();
/// let kind = FilterBlock::from_bytes(&block)?.kind();
/// assert_eq!(kind, FilterKind::FastLocalBloom { probes: 6, blocks: 1 });
/// # Ok::<(), blocked_bloom::interop::rocksdb::RocksdbError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterKind {
    /// The Bloom filter of `format_version` 5 and later, asked by the kernels.
    FastLocalBloom {
        /// 1 to 30.
        probes: u8,
        /// Lines of 64 bytes, at least 1.
        blocks: u32,
    },
    /// The Bloom filter of earlier versions, asked in scalar code.
    LegacyBloom {
        /// 1 to 127; RocksDB writes at most 30.
        probes: u8,
        /// At least 1.
        lines: u32,
        /// A power of two.
        line_bytes: u32,
    },
    /// Standard128Ribbon, which is not read here: every answer is "maybe".
    Ribbon {
        /// Ordinal of the hash seed.
        seed: u8,
        /// Blocks of 128 slots, at least 2.
        blocks: u32,
    },
    /// Written as a filter that lets everything pass, or [`FilterBlock::pass_all`].
    AlwaysTrue,
    /// No keys: every answer is "absent". Only by [`FilterBlock::from_bytes_or_no_keys`].
    AlwaysFalse,
    /// A combination that no release of RocksDB writes and that its reader answers "maybe", for filters of the future.
    Reserved {
        /// The last five bytes.
        trailer: [u8; 5],
    },
}

/// Who answers.
#[derive(Clone, Copy)]
enum Reader<'a> {
    Kernels(BloomFilterRef<'a>),
    Scalar(Lines<&'a [u8]>),
    Maybe,
    Absent,
}

/// A filter block of an SST file, without the five bytes of compression type and checksum that follow it there.
///
/// `Copy`, and borrowed at any alignment. Nothing in a filter block tells whether it is damaged: its checksum is in the SST file,
/// where [`SstFilter`](super::SstFilter) checks it.
///
/// ```
/// use blocked_bloom::interop::rocksdb::FilterBlock;
/// # let block = [[0; 64].as_slice(), &[0xff, 0, 6, 0, 0]].concat();
/// let filter = FilterBlock::from_bytes(&block).unwrap_or_else(|error| {
///     eprintln!("filter ignored: {error}");
///     FilterBlock::pass_all()
/// });
/// assert!(!filter.contains("apple"));
/// ```
#[derive(Clone, Copy)]
pub struct FilterBlock<'a> {
    bytes: &'a [u8],
    kind: FilterKind,
    reader: Reader<'a>,
}

impl FilterBlock<'static> {
    /// A filter that answers "maybe" to everything: what stands in for a damaged one.
    ///
    /// Its bytes are the six zeros that RocksDB writes for such a filter.
    ///
    /// ```
    /// use blocked_bloom::interop::rocksdb::{FilterBlock, FilterKind};
    /// let filter = FilterBlock::pass_all();
    /// assert!(filter.contains("anything"));
    /// assert_eq!(FilterBlock::from_bytes(filter.as_bytes())?.kind(), FilterKind::AlwaysTrue);
    /// # Ok::<(), blocked_bloom::interop::rocksdb::RocksdbError>(())
    /// ```
    pub fn pass_all() -> Self {
        FilterBlock { bytes: &[0; 6], kind: FilterKind::AlwaysTrue, reader: Reader::Maybe }
    }
}

impl<'a> FilterBlock<'a> {
    /// Decodes the last five bytes, in RocksDB's order. Cost: reads only these.
    ///
    /// If the bits of a FastLocalBloom filter are not a multiple of 64 bytes, which no writer makes, the bytes after the last whole
    /// line are ignored, as RocksDB does.
    ///
    /// # Errors
    ///
    /// [`RocksdbError::NoKeys`] for five bytes or fewer (but see [`from_bytes_or_no_keys`](Self::from_bytes_or_no_keys)),
    /// [`NoLine`](RocksdbError::NoLine) and [`BlockTooLong`](RocksdbError::BlockTooLong).
    ///
    /// ```
    /// use blocked_bloom::interop::rocksdb::FilterBlock;
    /// assert!(FilterBlock::from_bytes(&[0xff, 0, 6, 0, 0]).is_err());
    /// assert!(FilterBlock::from_bytes(&[0; 6])?.contains("anything"));
    /// # Ok::<(), blocked_bloom::interop::rocksdb::RocksdbError>(())
    /// ```
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, RocksdbError> {
        let found = bytes.len() as u64;
        let Some((bits, trailer)) = bytes.split_last_chunk::<TRAILER_BYTES>() else {
            return Err(RocksdbError::NoKeys { found });
        };
        if bits.is_empty() {
            return Err(RocksdbError::NoKeys { found });
        }
        if found > u64::from(u32::MAX) {
            return Err(RocksdbError::BlockTooLong { found });
        }
        let (kind, reader) = decode(bits, *trailer)?;
        Ok(FilterBlock { bytes, kind, reader })
    }

    /// As [`from_bytes`](Self::from_bytes), but a block of one to five bytes is a filter without keys: every key is absent.
    ///
    /// So RocksDB reads it, and up to release 8 it writes five bytes for no keys. Of no bytes RocksDB makes no reader, and so
    /// answers "maybe": here they stay an error. A truncated block looks like one without keys and then hides
    /// every key of its table: use this only on bytes whose length and checksum were verified. RocksDB itself stores no filter
    /// for a table without keys, so there is little to gain.
    ///
    /// # Errors
    ///
    /// [`RocksdbError::NoKeys`] for no bytes, [`NoLine`](RocksdbError::NoLine) and [`BlockTooLong`](RocksdbError::BlockTooLong).
    ///
    /// ```
    /// use blocked_bloom::interop::rocksdb::FilterBlock;
    /// assert!(!FilterBlock::from_bytes_or_no_keys(&[0xff, 0, 6, 0, 0])?.contains("apple"));
    /// assert!(FilterBlock::from_bytes_or_no_keys(&[]).is_err());
    /// # Ok::<(), blocked_bloom::interop::rocksdb::RocksdbError>(())
    /// ```
    pub fn from_bytes_or_no_keys(bytes: &'a [u8]) -> Result<Self, RocksdbError> {
        match FilterBlock::from_bytes(bytes) {
            Err(RocksdbError::NoKeys { found: 1.. }) => {
                Ok(FilterBlock { bytes, kind: FilterKind::AlwaysFalse, reader: Reader::Absent })
            }
            other => other,
        }
    }

    /// What the block is.
    ///
    /// ```
    /// use blocked_bloom::interop::rocksdb::{FilterBlock, FilterKind};
    /// assert_eq!(FilterBlock::pass_all().kind(), FilterKind::AlwaysTrue);
    /// ```
    pub fn kind(&self) -> FilterKind {
        self.kind
    }

    /// The block as it was given.
    ///
    /// ```
    /// assert_eq!(blocked_bloom::interop::rocksdb::FilterBlock::pass_all().as_bytes(), [0; 6]);
    /// ```
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// A FastLocalBloom filter as a filter of this crate, for its statistics: fill, estimated keys, estimated rate. `None` for the
    /// other kinds.
    ///
    /// The number of keys is not in the block, so [`keys_inserted`](BloomFilterRef::keys_inserted) is 0. The view takes hashes
    /// ([`key_hash`]); asked about a key it answers "maybe".
    ///
    /// ```
    /// use blocked_bloom::interop::rocksdb::{FilterBlock, FilterBlockBuilder};
    /// let mut builder = FilterBlockBuilder::new(10.0)?;
    /// builder.extend((0..1_000_u32).map(u32::to_le_bytes));
    /// let block = builder.finish()?;
    /// let view = FilterBlock::from_bytes(&block)?.view().unwrap();
    /// assert!((950..1_050).contains(&view.estimated_keys().unwrap()));
    /// # Ok::<(), blocked_bloom::interop::rocksdb::RocksdbError>(())
    /// ```
    pub fn view(&self) -> Option<BloomFilterRef<'a>> {
        match self.reader {
            Reader::Kernels(view) => Some(view),
            _ => None,
        }
    }

    /// Whether the key may be present: false means certainly absent.
    ///
    /// Cost: one hash, one cache line (two if the block is not aligned to 64 bytes).
    ///
    /// ```
    /// assert!(blocked_bloom::interop::rocksdb::FilterBlock::pass_all().contains("apple"));
    /// ```
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        match &self.reader {
            Reader::Kernels(view) => view.contains_hash(key_hash(key.as_ref())),
            Reader::Scalar(lines) => lines.contains(legacy_hash(key.as_ref())),
            Reader::Maybe => true,
            Reader::Absent => false,
        }
    }

    /// Whether the key with this [`key_hash`] may be present. A LegacyBloom filter, which has another hash, answers "maybe".
    ///
    /// ```
    /// assert!(blocked_bloom::interop::rocksdb::FilterBlock::pass_all().contains_hash(1));
    /// ```
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        match &self.reader {
            Reader::Kernels(view) => view.contains_hash(hash),
            Reader::Scalar(_) | Reader::Maybe => true,
            Reader::Absent => false,
        }
    }

    /// Asks about every key; `hits` then has one bit per key. Batches may have any length.
    ///
    /// ```
    /// use blocked_bloom::{Bitmask, interop::rocksdb::FilterBlock};
    /// let mut hits = Bitmask::new();
    /// FilterBlock::pass_all().contains_batch(&["apple", "banana"], &mut hits);
    /// assert_eq!(hits.count_hits(), 2);
    /// ```
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], hits: &mut Bitmask) {
        hits.write(keys.len(), |words| self.keys(keys, words));
    }

    /// [`contains_batch`](Self::contains_batch) into words of the caller's: key `i` is bit `i % 64` of `words[i / 64]`, bits
    /// past the last key are zero.
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per 64 keys, rounded up; nothing is written then.
    ///
    /// ```
    /// use blocked_bloom::interop::rocksdb::FilterBlock;
    /// let mut words = [0];
    /// FilterBlock::pass_all().contains_batch_into(&["apple", "banana"], &mut words)?;
    /// assert_eq!(words, [0b11]);
    /// # Ok::<(), blocked_bloom::LengthError>(())
    /// ```
    pub fn contains_batch_into<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        check_length(keys.len(), words)?;
        self.keys(keys, words);
        Ok(())
    }

    /// Asks about the key of every [`key_hash`]; `hits` then has one bit per hash. A LegacyBloom filter, which has another hash,
    /// answers "maybe" to each.
    ///
    /// Hash a batch once and ask the filters of many tables.
    ///
    /// ```
    /// use blocked_bloom::{Bitmask, interop::rocksdb::FilterBlock};
    /// let mut hits = Bitmask::new();
    /// FilterBlock::pass_all().contains_hashes(&[1, 2, 3], &mut hits);
    /// assert_eq!(hits.count_hits(), 3);
    /// ```
    pub fn contains_hashes(&self, hashes: &[u64], hits: &mut Bitmask) {
        hits.write(hashes.len(), |words| self.hashes(hashes, words));
    }

    /// [`contains_hashes`](Self::contains_hashes) into words of the caller's, as
    /// [`contains_batch_into`](Self::contains_batch_into).
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per 64 hashes, rounded up; nothing is written then.
    ///
    /// ```
    /// use blocked_bloom::interop::rocksdb::FilterBlock;
    /// let mut words = [0; 2];
    /// FilterBlock::pass_all().contains_hashes_into(&[0; 65], &mut words)?;
    /// assert_eq!(words, [u64::MAX, 1]);
    /// # Ok::<(), blocked_bloom::LengthError>(())
    /// ```
    pub fn contains_hashes_into(
        &self,
        hashes: &[u64],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        check_length(hashes.len(), words)?;
        self.hashes(hashes, words);
        Ok(())
    }

    /// The same filter, with batches answered by `kernel` where kernels answer.
    ///
    /// ```
    /// use blocked_bloom::{Kernel, interop::rocksdb::FilterBlock};
    /// let scalar = Kernel::supported().last().unwrap();
    /// assert!(FilterBlock::pass_all().with_kernel(scalar).contains("apple"));
    /// ```
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        let reader = match self.reader {
            Reader::Kernels(view) => Reader::Kernels(view.with_kernel(kernel)),
            other => other,
        };
        FilterBlock { reader, ..self }
    }

    /// The callers have checked that there is one word per 64 keys.
    pub(super) fn keys<K: AsRef<[u8]>>(&self, keys: &[K], words: &mut [u64]) {
        match &self.reader {
            Reader::Kernels(view) => view.keys_by(hash_into, keys, words),
            Reader::Scalar(lines) => {
                for (word, keys) in words.iter_mut().zip(keys.chunks(64)) {
                    let hit = |key: &K| u64::from(lines.contains(legacy_hash(key.as_ref())));
                    *word = keys.iter().rev().fold(0, |word, key| word << 1 | hit(key));
                }
            }
            Reader::Maybe => bitmask::fill_with_hits(words, keys.len()),
            Reader::Absent => words.fill(0),
        }
    }

    fn hashes(&self, hashes: &[u64], words: &mut [u64]) {
        match &self.reader {
            Reader::Kernels(view) => view.hashes(hashes, words),
            Reader::Scalar(_) | Reader::Maybe => bitmask::fill_with_hits(words, hashes.len()),
            Reader::Absent => words.fill(0),
        }
    }
}

/// Writes the hash of each key to the start of `hashes`.
fn hash_into<K: AsRef<[u8]>>(keys: &[K], hashes: &mut [u64]) {
    for (hash, key) in hashes.iter_mut().zip(keys) {
        *hash = key_hash(key.as_ref());
    }
}

/// `BuiltinFilterPolicy::GetBuiltinFilterBitsReader` of RocksDB; there is at least one byte before the trailer.
fn decode(bits: &[u8], trailer: [u8; 5]) -> Result<(FilterKind, Reader<'_>), RocksdbError> {
    let [marker, rest @ ..] = trailer;
    let maybe = |kind| Ok((kind, Reader::Maybe));
    let reserved = maybe(FilterKind::Reserved { trailer });
    match marker.cast_signed() {
        0 => maybe(FilterKind::AlwaysTrue),
        -1 => {
            // The upper three bits of the second byte are the line's length: 0 for 64 bytes.
            let [0, probes, 0, 0] = rest else { return reserved };
            if !(1..=MAX_PROBES as u8).contains(&probes) {
                return reserved;
            }
            let (blocks, tail) = bits.as_chunks();
            if blocks.is_empty() {
                return Err(RocksdbError::NoLine { found: tail.len() as u64 });
            }
            let meta = Meta {
                key_hash: KEY_HASH,
                keys_inserted: 0,
                probes,
                pass_all: false,
                added: Added::WholeKeys,
            };
            let view = BloomFilterRef::new(blocks, meta, Kernel::default());
            let kind = FilterKind::FastLocalBloom { probes, blocks: blocks.len() as u32 };
            Ok((kind, Reader::Kernels(view)))
        }
        -2 => {
            let [seed, low, middle, high] = rest;
            match u32::from_le_bytes([low, middle, high, 0]) {
                0 | 1 => reserved,
                blocks => maybe(FilterKind::Ribbon { seed, blocks }),
            }
        }
        ..0 => reserved,
        1.. => {
            let lines = u32::from_le_bytes(rest);
            let Some(read) = Lines::new(bits, lines, marker) else { return reserved };
            let line_bytes = read.line_bytes();
            let kind = FilterKind::LegacyBloom { probes: marker, lines, line_bytes };
            Ok((kind, Reader::Scalar(read)))
        }
    }
}

/// Same bytes, read in the same way; the kernel does not matter.
impl PartialEq for FilterBlock<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.bytes == other.bytes
    }
}

impl Eq for FilterBlock<'_> {}

/// The kind and the length, without the bits.
impl core::fmt::Debug for FilterBlock<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FilterBlock")
            .field("kind", &self.kind)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}
