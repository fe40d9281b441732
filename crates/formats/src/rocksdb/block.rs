//! A filter block of RocksDB, borrowed: what kind it is, and its answers.
//!
//! The five bytes that end a block are decoded in RocksDB's order. A kind that is not known never answers "absent".

use blocked_bloom::parts::{fill_with_hits, look_up_keys};
use blocked_bloom::probe::MAX_PROBES;
use blocked_bloom::{Block, BloomFilter, Filter, Kernel, KeyHash, LengthError};
use blocked_bloom_ribbon::rocksdb::RibbonBlock;

use super::error::RocksdbError;
use super::hash::{KEY_HASH, hash_key, legacy_hash_key};
use super::legacy::Lines;

/// Bytes that end every filter block: how to read it.
pub(super) const TRAILER_BYTES: usize = 5;

/// What the last five bytes of a filter block say it is.
///
/// ```
/// use blocked_bloom_formats::rocksdb::{FilterBlock, FilterKind};
/// let block = [[0; 64].as_slice(), &[0xff, 0, 6, 0, 0]].concat();
/// let kind = FilterBlock::from_bytes(&block)?.kind();
/// assert_eq!(kind, FilterKind::FastLocalBloom { probes: 6, blocks: 1 });
/// # Ok::<(), blocked_bloom_formats::rocksdb::RocksdbError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterKind {
    /// The Bloom filter of `format_version` 5 and later, looked up by the kernels.
    FastLocalBloom {
        /// 1 to 30.
        probes: u8,
        /// Lines of 64 bytes, at least 1.
        blocks: u32,
    },
    /// The Bloom filter of earlier versions, looked up in scalar code.
    LegacyBloom {
        /// 1 to 127; RocksDB writes at most 30.
        probes: u8,
        /// At least 1.
        lines: u32,
        /// A power of two.
        line_bytes: u32,
    },
    /// Standard128Ribbon, of `NewRibbonFilterPolicy`, looked up by kernels of its own.
    Ribbon {
        /// Ordinal of the hash seed.
        seed: u8,
        /// Blocks of 128 slots, at least 2.
        blocks: u32,
    },
    /// Written as a filter that lets everything pass, or [`FilterBlock::pass_all`].
    PassAll,
    /// Every answer is "absent". Only by [`FilterBlock::from_bytes_or_no_keys`].
    NoKeys,
    /// A combination that no release of RocksDB writes and that its reader answers "maybe", for filters of the future.
    Reserved {
        /// The last five bytes.
        trailer: [u8; 5],
    },
}

/// How a block is looked up.
#[derive(Clone, Copy)]
enum Reader<'a> {
    /// FastLocalBloom has the core's probe scheme.
    Kernels(BloomFilter<&'a [Block]>),
    Ribbon(RibbonBlock<'a>),
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
/// use blocked_bloom::Filter;
/// use blocked_bloom_formats::rocksdb::FilterBlock;
/// # let block = [[0; 64].as_slice(), &[0xff, 0, 6, 0, 0]].concat();
/// let filter = FilterBlock::from_bytes(&block).unwrap_or_else(|error| {
///     eprintln!("filter ignored: {error}");
///     FilterBlock::pass_all()
/// });
/// assert!(!filter.contains("apple"));
/// ```
/// use blocked_bloom::Filter;
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
    pub fn pass_all() -> Self {
        FilterBlock { bytes: &[0; 6], kind: FilterKind::PassAll, reader: Reader::Maybe }
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
    /// use blocked_bloom::Filter;
    /// use blocked_bloom_formats::rocksdb::FilterBlock;
    /// assert!(!FilterBlock::from_bytes_or_no_keys(&[0xff, 0, 6, 0, 0])?.contains("apple"));
    /// assert!(FilterBlock::from_bytes_or_no_keys(&[]).is_err());
    /// # Ok::<(), blocked_bloom_formats::rocksdb::RocksdbError>(())
    /// ```
    pub fn from_bytes_or_no_keys(bytes: &'a [u8]) -> Result<Self, RocksdbError> {
        match FilterBlock::from_bytes(bytes) {
            Err(RocksdbError::NoKeys { found: 1.. }) => {
                Ok(FilterBlock { bytes, kind: FilterKind::NoKeys, reader: Reader::Absent })
            }
            other => other,
        }
    }

    /// What the block is.
    pub fn kind(&self) -> FilterKind {
        self.kind
    }

    /// The block as it was given.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// A FastLocalBloom filter as one of the core's, for its statistics: fill, estimated keys, estimated rate. `None` for the
    /// other kinds.
    ///
    /// The number of keys is not in the block, so [`keys_inserted`](BloomFilter::keys_inserted) is 0. The view takes hashes
    /// ([`hash_key`]); of keys it knows nothing and answers "maybe".
    ///
    /// ```
    /// use blocked_bloom_formats::rocksdb::{FilterBlock, FilterBlockBuilder};
    /// let mut builder = FilterBlockBuilder::new(10.0)?;
    /// builder.extend((0..1_000_u32).map(u32::to_le_bytes));
    /// let block = builder.finish()?;
    /// let view = FilterBlock::from_bytes(&block)?.view().unwrap();
    /// assert!((950..1_050).contains(&view.estimated_keys().unwrap()));
    /// # Ok::<(), blocked_bloom_formats::rocksdb::RocksdbError>(())
    /// ```
    pub fn view(&self) -> Option<BloomFilter<&'a [Block]>> {
        match self.reader {
            Reader::Kernels(view) => Some(view),
            _ => None,
        }
    }

    /// A Ribbon filter by itself, for its shape and its rate. `None` for the other kinds, and where every answer is "maybe".
    ///
    /// ```
    /// use blocked_bloom_formats::rocksdb::{FilterBlock, RibbonBlockBuilder};
    /// let mut builder = RibbonBlockBuilder::new(10.0)?;
    /// builder.extend((0..10_000_u32).map(u32::to_le_bytes));
    /// let block = builder.finish()?;
    /// let ribbon = FilterBlock::from_bytes(&block)?.ribbon().unwrap();
    /// assert_eq!(ribbon.columns(), 7);
    /// assert!(ribbon.expected_false_positive_rate() < 0.01);
    /// # Ok::<(), blocked_bloom_formats::rocksdb::RocksdbError>(())
    /// ```
    pub fn ribbon(&self) -> Option<RibbonBlock<'a>> {
        match self.reader {
            Reader::Ribbon(block) => Some(block),
            _ => None,
        }
    }

    /// Looks up keys of these bytes, with the errors of
    /// [`contains_hashes_into`](Filter::contains_hashes_into).
    pub(super) fn look_up<K>(
        &self,
        keys: &[K],
        words: &mut [u64],
        bytes: impl BytesOf<K>,
    ) -> Result<(), LengthError> {
        let hash = |key: &K| bytes.with(key, |key| hash_key(key));
        // There is a word per 64 hashes.
        match &self.reader {
            Reader::Kernels(filter) => {
                let ahead = self.bytes.len() > Kernel::default().prefetch_threshold();
                let prefetch = ahead.then_some(|hash| filter.prefetch_hash(hash));
                look_up_keys(keys, words, hash, prefetch, |hashes, words| {
                    _ = filter.contains_hashes_into(hashes, words);
                })
            }
            // What one equation reads takes as long to find as a batch takes to test it: prefetched
            // while hashing, lookups take 1.3 to 1.8 of the time.
            Reader::Ribbon(filter) => {
                look_up_keys(keys, words, hash, None::<fn(u64)>, |hashes, words| {
                    _ = filter.contains_hashes_into(hashes, words);
                })
            }
            Reader::Scalar(lines) => {
                let hash = |key: &K| bytes.with(key, |key| legacy_hash_key(key)).into();
                look_up_keys(keys, words, hash, None::<fn(u64)>, |hashes, words| {
                    let hit = |&hash: &u64| u64::from(lines.contains(hash as u32));
                    for (word, hashes) in words.iter_mut().zip(hashes.chunks(64)) {
                        *word = hashes.iter().rev().fold(0, |word, hash| word << 1 | hit(hash));
                    }
                })
            }
            Reader::Maybe | Reader::Absent => {
                LengthError::check(keys.len(), words)?;
                match self.reader {
                    Reader::Absent => words.fill(0),
                    _ => fill_with_hits(words, keys.len()),
                }
                Ok(())
            }
        }
    }

    /// The same filter, with batches answered by `kernel` where kernels answer.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        let reader = match self.reader {
            Reader::Kernels(view) => Reader::Kernels(view.with_kernel(kernel)),
            Reader::Ribbon(block) => Reader::Ribbon(block.with_kernel(kernel)),
            other => other,
        };
        FilterBlock { reader, ..self }
    }
}

/// Hashes are those of [`hash_key`], which serve the filters of many tables. A LegacyBloom filter has
/// another hash: it finds keys, and answers "maybe" to hashes.
///
/// Cost of a lookup: one cache line, two if the block is not aligned to 64 bytes; of a Ribbon block one
/// to five.
impl Filter for FilterBlock<'_> {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        match &self.reader {
            Reader::Kernels(filter) => filter.contains_hash(hash),
            Reader::Ribbon(filter) => filter.contains_hash(hash),
            Reader::Scalar(_) | Reader::Maybe => true,
            Reader::Absent => false,
        }
    }

    #[inline]
    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        LengthError::check(hashes.len(), words)?;
        match &self.reader {
            Reader::Kernels(filter) => return filter.contains_hashes_into(hashes, words),
            Reader::Ribbon(filter) => return filter.contains_hashes_into(hashes, words),
            Reader::Absent => words.fill(0),
            Reader::Scalar(_) | Reader::Maybe => fill_with_hits(words, hashes.len()),
        }
        Ok(())
    }

    #[inline]
    fn prefetch_hash(&self, hash: u64) {
        match &self.reader {
            Reader::Kernels(filter) => filter.prefetch_hash(hash),
            Reader::Ribbon(filter) => filter.prefetch_hash(hash),
            Reader::Scalar(_) | Reader::Maybe | Reader::Absent => {}
        }
    }

    /// [`KEY_HASH`].
    #[inline]
    fn key_hash(&self) -> KeyHash {
        KEY_HASH
    }

    #[inline]
    fn hash_key(&self, key: &[u8]) -> Option<u64> {
        Some(hash_key(key))
    }

    #[inline]
    fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        match &self.reader {
            Reader::Kernels(filter) => filter.contains_hash(hash_key(key)),
            Reader::Ribbon(filter) => filter.contains_hash(hash_key(key)),
            Reader::Scalar(lines) => lines.contains(legacy_hash_key(key)),
            Reader::Maybe => true,
            Reader::Absent => false,
        }
    }

    #[inline]
    fn contains_batch_into<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        self.look_up(keys, words, Plain)
    }

    #[inline]
    fn contains_u64s_into(&self, keys: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        self.look_up(keys, words, LittleEndian)
    }
}

/// How the bytes of a key are read.
pub(super) trait BytesOf<K> {
    /// What `read` makes of the key's bytes.
    fn with<R>(&self, key: &K, read: impl FnOnce(&[u8]) -> R) -> R;
}

/// Keys that lend their bytes.
#[derive(Clone, Copy)]
pub(super) struct Plain;

impl<K: AsRef<[u8]>> BytesOf<K> for Plain {
    #[inline]
    fn with<R>(&self, key: &K, read: impl FnOnce(&[u8]) -> R) -> R {
        read(key.as_ref())
    }
}

/// Integers.
#[derive(Clone, Copy)]
pub(super) struct LittleEndian;

impl BytesOf<u64> for LittleEndian {
    #[inline]
    fn with<R>(&self, key: &u64, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&key.to_le_bytes())
    }
}

/// `BuiltinFilterPolicy::GetBuiltinFilterBitsReader` of RocksDB; there is at least one byte before the trailer.
fn decode(bits: &[u8], trailer: [u8; 5]) -> Result<(FilterKind, Reader<'_>), RocksdbError> {
    let [marker, rest @ ..] = trailer;
    let maybe = |kind| Ok((kind, Reader::Maybe));
    let reserved = maybe(FilterKind::Reserved { trailer });
    match marker.cast_signed() {
        0 => maybe(FilterKind::PassAll),
        -1 => {
            // The upper three bits of the second byte are the line's length: 0 for 64 bytes.
            let [0, probes, 0, 0] = rest else { return reserved };
            if !(1..=MAX_PROBES as u8).contains(&probes) {
                return reserved;
            }
            let (blocks, tail) = bits.as_chunks();
            // A block has less than 2^32 bytes, and the probes are in range.
            let no_line = |_| RocksdbError::NoLine { found: tail.len() as u64 };
            let view =
                BloomFilter::from_blocks(blocks, probes.into(), KEY_HASH).map_err(no_line)?;
            let kind = FilterKind::FastLocalBloom { probes, blocks: blocks.len() as u32 };
            Ok((kind, Reader::Kernels(view)))
        }
        -2 => {
            let [seed, low, middle, high] = rest;
            match u32::from_le_bytes([low, middle, high, 0]) {
                0 | 1 => reserved,
                blocks => {
                    let ribbon = RibbonBlock::from_parts(bits, seed, blocks);
                    // Without a whole segment there is nothing to look up.
                    let reader = ribbon.map_or(Reader::Maybe, Reader::Ribbon);
                    Ok((FilterKind::Ribbon { seed, blocks }, reader))
                }
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
