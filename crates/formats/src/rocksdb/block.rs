//! A filter block of RocksDB: its kind, and lookups.
//!
//! The last five bytes of a block are decoded in RocksDB's order. Unknown kinds never answer
//! "absent".

use blocked_bloom::parts::{check_words, fill_with_hits, look_up_keys, stored};
use blocked_bloom::probe::{BLOCK_BYTES, MAX_PROBES};
use blocked_bloom::{Block, BloomFilter, Filter, Kernel, KeyHash, LengthError, Stored};
use blocked_bloom_ribbon::rocksdb::RibbonBlock;

use super::error::RocksdbError;
use super::hash::{KEY_HASH, hash_key, legacy_hash_key};
use super::legacy::Lines;

/// Bytes at the end of every filter block, which contain its kind.
pub(super) const TRAILER_BYTES: usize = 5;

/// The kind of a filter block, from its last five bytes.
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
    /// The Bloom filter of `format_version` 5 and later, looked up with kernels.
    FastLocalBloom {
        /// 1 to 30.
        probes: u8,
        /// Blocks of 64 bytes, at least 1.
        blocks: u32,
    },
    /// The Bloom filter of earlier versions, looked up with scalar code.
    LegacyBloom {
        /// 1 to 127; RocksDB writes at most 30.
        probes: u8,
        /// At least 1.
        lines: u32,
        /// A power of two.
        line_bytes: u32,
    },
    /// Standard128Ribbon, of `NewRibbonFilterPolicy`, looked up with its own kernels.
    Ribbon {
        /// Ordinal of the hash seed.
        seed: u8,
        /// Blocks of 128 slots, at least 2.
        blocks: u32,
    },
    /// A pass-all filter written by RocksDB, or [`FilterBlock::pass_all`].
    PassAll,
    /// A filter without keys: every answer is "absent". Only [`FilterBlock::from_bytes_or_no_keys`]
    /// opens it.
    NoKeys,
    /// A combination that no release of RocksDB writes. It is reserved for future filters, and
    /// RocksDB's reader answers "maybe".
    Reserved {
        /// The last five bytes.
        trailer: [u8; 5],
    },
}

/// The lookup code of a block. Each variant contains the whole block.
#[derive(Clone, Copy)]
enum Reader<D> {
    /// FastLocalBloom uses the core's probe scheme.
    Kernels(BloomFilter<Blocks<D>>),
    Ribbon(RibbonBlock<D>),
    Scalar(Lines<Bits<D>>),
    Maybe(Stored<D>),
    Absent(Stored<D>),
}

/// A block of FastLocalBloom.
#[derive(Clone, Copy)]
struct Blocks<D> {
    block: Stored<D>,
    /// The number of blocks. It is stored because every address of a block depends on it: computing
    /// it from the length would delay each lookup.
    count: u32,
}

impl<D: AsRef<[u8]>> Blocks<D> {
    /// Returns `None` if the length of the owner's bytes has changed.
    #[inline]
    fn get(&self) -> Option<&[Block]> {
        self.block.bytes()?.as_chunks().0.get(..self.count as usize)
    }
}

impl<D: AsRef<[u8]>> AsRef<[Block]> for Blocks<D> {
    #[inline]
    fn as_ref(&self) -> &[Block] {
        match self.get() {
            Some(blocks) => blocks,
            None => full_block(),
        }
    }
}

/// Returns a block for which the answer is "maybe", for owners whose bytes changed. Cold, so that
/// the compiler branches: a conditional move would make the address of the block wait for this
/// check.
#[cold]
fn full_block() -> &'static [Block] {
    &[[0xff; BLOCK_BYTES]]
}

/// The bits of a block: all bytes before its trailer.
#[derive(Clone, Copy)]
struct Bits<D>(Stored<D>);

impl<D: AsRef<[u8]>> AsRef<[u8]> for Bits<D> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        let block = self.0.bytes().unwrap_or_default();
        block.split_last_chunk::<TRAILER_BYTES>().map_or(&[], |(bits, _)| bits)
    }
}

/// A filter block of an SST file, without the compression type and checksum (five bytes) that
/// follow it there, in bytes of any owner `D`: a `&[u8]`, a `Vec<u8>`, an `Arc<[u8]>`, a mapping.
///
/// It accepts any alignment, and is `Copy` if `D` is. A filter block has no checksum of its own: it
/// is in the SST file, where [`SstFilter`](super::SstFilter) checks it. If the length of the
/// owner's bytes changes after opening, every answer is "maybe".
///
/// ```
/// use blocked_bloom::Filter;
/// use blocked_bloom_formats::rocksdb::FilterBlock;
/// # let block = [[0; 64].as_slice(), &[0xff, 0, 6, 0, 0]].concat();
/// let (filter, error) = FilterBlock::open_or_pass_all(block);
/// if let Some(error) = error {
///     eprintln!("filter ignored: {error}");
/// }
/// assert!(!filter.contains("apple"));
/// # Ok::<(), blocked_bloom_formats::rocksdb::RocksdbError>(())
/// ```
#[derive(Clone, Copy)]
pub struct FilterBlock<D> {
    kind: FilterKind,
    reader: Reader<D>,
}

impl FilterBlock<&'static [u8]> {
    /// Returns a filter that answers "maybe" to every key, to replace a damaged filter.
    ///
    /// Its bytes are the six zeros that RocksDB writes for such a filter.
    pub fn pass_all() -> Self {
        FilterBlock::maybe(&[0; 6])
    }
}

impl<D: AsRef<[u8]>> FilterBlock<D> {
    /// Opens a block by decoding its last five bytes in RocksDB's order. Cost: reads only these.
    ///
    /// If the bits of a FastLocalBloom filter are not a multiple of 64 bytes, which no writer
    /// produces, the bytes after the last whole block are ignored, as in RocksDB.
    ///
    /// # Errors
    ///
    /// [`RocksdbError::NoKeys`] for five bytes or fewer (but see
    /// [`from_bytes_or_no_keys`](Self::from_bytes_or_no_keys)), [`NoLine`](RocksdbError::NoLine)
    /// and [`BlockTooLong`](RocksdbError::BlockTooLong).
    pub fn from_bytes(bytes: D) -> Result<Self, RocksdbError> {
        FilterBlock::read(bytes).map_err(|(_, error)| error)
    }

    /// Opens a block like [`from_bytes`](Self::from_bytes), and never fails: for unusable bytes it
    /// returns a filter that answers "maybe" to every key, plus the error to log. Either filter
    /// keeps the bytes.
    pub fn open_or_pass_all(bytes: D) -> (Self, Option<RocksdbError>) {
        match FilterBlock::read(bytes) {
            Ok(filter) => (filter, None),
            Err((bytes, error)) => (FilterBlock::maybe(bytes), Some(error)),
        }
    }

    fn read(bytes: D) -> Result<Self, (D, RocksdbError)> {
        // Decodes the slice whose length was recorded; the owner may lend others later.
        let block = stored(bytes);
        let kind = match FilterKind::detect(block.bytes().unwrap_or_default()) {
            Ok(kind) => kind,
            Err(error) => return Err((block.into_inner(), error)),
        };
        let reader = match kind {
            FilterKind::FastLocalBloom { probes, blocks } => {
                let blocks = Blocks { block, count: blocks };
                let filter = BloomFilter::from_blocks(blocks, probes.into(), KEY_HASH);
                Reader::Kernels(filter.expect("1 to 2^26 blocks and 1 to 30 probes are in range"))
            }
            FilterKind::LegacyBloom { probes, lines, line_bytes } => {
                Reader::Scalar(Lines::from_parts(Bits(block), lines, line_bytes, probes))
            }
            FilterKind::Ribbon { .. } => match RibbonBlock::from_bytes(block.into_inner()) {
                Ok(ribbon) => Reader::Ribbon(ribbon),
                // Without a whole segment there is nothing to look up.
                Err(bytes) => Reader::Maybe(stored(bytes)),
            },
            FilterKind::PassAll | FilterKind::Reserved { .. } => Reader::Maybe(block),
            FilterKind::NoKeys => Reader::Absent(block),
        };
        Ok(FilterBlock { kind, reader })
    }

    fn maybe(bytes: D) -> Self {
        FilterBlock { kind: FilterKind::PassAll, reader: Reader::Maybe(stored(bytes)) }
    }

    /// Opens a block like [`from_bytes`](Self::from_bytes), except that a block of one to five
    /// bytes is a filter without keys: every key is absent.
    ///
    /// RocksDB reads such blocks this way, and up to release 8 it writes five bytes for no keys.
    /// For an empty block RocksDB creates no reader and answers "maybe"; here it is an error. A
    /// truncated block looks like one without keys and then hides every key of its table, so use
    /// this only for bytes whose length and checksum were verified. RocksDB itself stores no filter
    /// for a table without keys, so the benefit is small.
    ///
    /// # Errors
    ///
    /// [`RocksdbError::NoKeys`] for no bytes, [`NoLine`](RocksdbError::NoLine) and
    /// [`BlockTooLong`](RocksdbError::BlockTooLong).
    ///
    /// ```
    /// use blocked_bloom::Filter;
    /// use blocked_bloom_formats::rocksdb::FilterBlock;
    /// assert!(!FilterBlock::from_bytes_or_no_keys([0xff, 0, 6, 0, 0])?.contains("apple"));
    /// assert!(FilterBlock::from_bytes_or_no_keys([]).is_err());
    /// # Ok::<(), blocked_bloom_formats::rocksdb::RocksdbError>(())
    /// ```
    pub fn from_bytes_or_no_keys(bytes: D) -> Result<Self, RocksdbError> {
        // Checks the slice whose length was recorded; the owner may lend others later.
        let block = stored(bytes);
        match block.bytes().unwrap_or_default().len() {
            1..=TRAILER_BYTES => {
                Ok(FilterBlock { kind: FilterKind::NoKeys, reader: Reader::Absent(block) })
            }
            _ => FilterBlock::from_bytes(block.into_inner()),
        }
    }

    /// Returns the kind of the block.
    pub fn kind(&self) -> FilterKind {
        self.kind
    }

    /// Returns the block's bytes; empty if the length of the owner's bytes has changed.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.reader {
            Reader::Kernels(filter) => filter.holder().block.bytes().unwrap_or_default(),
            Reader::Ribbon(ribbon) => ribbon.as_bytes(),
            Reader::Scalar(lines) => lines.bits().0.bytes().unwrap_or_default(),
            Reader::Maybe(block) | Reader::Absent(block) => block.bytes().unwrap_or_default(),
        }
    }

    /// Returns a FastLocalBloom filter as a filter of the core, for its statistics: fill, estimated
    /// keys, estimated rate. Returns `None` for other kinds.
    ///
    /// A block does not contain the number of keys, so
    /// [`keys_inserted`](BloomFilter::keys_inserted) is 0. The view takes hashes ([`hash_key`]),
    /// and answers "maybe" to keys.
    ///
    /// ```
    /// use blocked_bloom_formats::rocksdb::{FilterBlock, FilterBlockBuilder};
    /// let mut builder = FilterBlockBuilder::new(10.0)?;
    /// builder.extend((0..1_000_u32).map(u32::to_le_bytes));
    /// let block = FilterBlock::from_bytes(builder.finish()?)?;
    /// assert!((950..1_050).contains(&block.view().unwrap().estimated_keys().unwrap()));
    /// # Ok::<(), blocked_bloom_formats::rocksdb::RocksdbError>(())
    /// ```
    pub fn view(&self) -> Option<BloomFilter<&[Block]>> {
        match &self.reader {
            Reader::Kernels(filter) => Some(filter.view()),
            _ => None,
        }
    }

    /// Returns a Ribbon filter, for its shape and rate. Returns `None` for other kinds, and if
    /// every answer is "maybe".
    ///
    /// ```
    /// use blocked_bloom_formats::rocksdb::{FilterBlock, RibbonBlockBuilder};
    /// let mut builder = RibbonBlockBuilder::new(10.0)?;
    /// builder.extend((0..10_000_u32).map(u32::to_le_bytes));
    /// let block = FilterBlock::from_bytes(builder.finish()?)?;
    /// let ribbon = block.ribbon().unwrap();
    /// assert_eq!(ribbon.columns(), 7);
    /// assert!(ribbon.expected_false_positive_rate() < 0.01);
    /// # Ok::<(), blocked_bloom_formats::rocksdb::RocksdbError>(())
    /// ```
    pub fn ribbon(&self) -> Option<&RibbonBlock<D>> {
        match &self.reader {
            Reader::Ribbon(block) => Some(block),
            _ => None,
        }
    }

    /// Returns the filter if the core's kernels look it up and its owner still lends the blocks.
    /// Checked first, so that a lookup does not choose between them and [`full_block`].
    #[inline]
    fn kernel_filter(&self) -> Option<&BloomFilter<Blocks<D>>> {
        match &self.reader {
            Reader::Kernels(filter) if filter.holder().get().is_some() => Some(filter),
            _ => None,
        }
    }

    /// Looks up keys with the errors of [`contains_hashes_into`](Filter::contains_hashes_into).
    /// `bytes` reads the bytes of a key.
    #[inline]
    pub(super) fn look_up<K>(
        &self,
        keys: &[K],
        words: &mut [u64],
        bytes: impl ReadKey<K>,
    ) -> Result<(), LengthError> {
        let Some(filter) = self.kernel_filter() else {
            return self.look_up_otherwise(keys, words, bytes);
        };
        let hash = move |key: &K| bytes.with_bytes(key, |key| hash_key(key));
        if let ([key], [word]) = (keys, &mut *words) {
            // If a key panics when it is read, the remaining answers are "maybe".
            *word = 1;
            *word = filter.contains_hash(hash(key)).into();
            return Ok(());
        }
        let filter = filter.view();
        let ahead = filter.memory_bytes() > filter.kernel().prefetch_threshold() as u64;
        let prefetch = ahead.then_some(move |hash| filter.prefetch_hash(hash));
        look_up_keys(keys, words, hash, prefetch, move |hashes, words| {
            _ = filter.contains_hashes_into(hashes, words);
        })
    }

    /// Looks up keys in blocks of other kinds, and if the owner lends other bytes than at first.
    /// Not inlined, like the next functions, since every call would save the registers that it
    /// needs.
    #[inline(never)]
    fn look_up_otherwise<K>(
        &self,
        keys: &[K],
        words: &mut [u64],
        bytes: impl ReadKey<K>,
    ) -> Result<(), LengthError> {
        if let Reader::Scalar(lines) = &self.reader {
            let hash = |key: &K| bytes.with_bytes(key, |key| legacy_hash_key(key)).into();
            return look_up_keys(keys, words, hash, None::<fn(u64)>, |hashes, words| {
                let hit = |&hash: &u64| u64::from(lines.contains(hash as u32));
                for (word, hashes) in words.iter_mut().zip(hashes.chunks(64)) {
                    *word = hashes.iter().rev().fold(0, |word, hash| word << 1 | hit(hash));
                }
            });
        }
        // Without prefetches: locating the bytes of a Ribbon equation takes as much time as
        // testing it in a batch. With prefetches while hashing, lookups take 1.3x to 1.8x the
        // time.
        let hash = |key: &K| bytes.with_bytes(key, |key| hash_key(key));
        look_up_keys(keys, words, hash, None::<fn(u64)>, |hashes, words| {
            _ = self.look_up_hashes_otherwise(hashes, words);
        })
    }

    #[inline(never)]
    fn look_up_hashes_otherwise(
        &self,
        hashes: &[u64],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        check_words(hashes.len(), words)?;
        match &self.reader {
            Reader::Ribbon(filter) => return filter.contains_hashes_into(hashes, words),
            Reader::Absent(block) if block.bytes().is_some() => words.fill(0),
            _ => fill_with_hits(words, hashes.len()),
        }
        Ok(())
    }

    #[inline(never)]
    fn contains_otherwise(&self, key: &[u8]) -> bool {
        match &self.reader {
            Reader::Scalar(lines) => lines.contains(legacy_hash_key(key)),
            _ => self.contains_hash_otherwise(hash_key(key)),
        }
    }

    #[inline(never)]
    fn contains_hash_otherwise(&self, hash: u64) -> bool {
        match &self.reader {
            Reader::Ribbon(filter) => filter.contains_hash(hash),
            Reader::Absent(block) => block.bytes().is_none(),
            Reader::Kernels(_) | Reader::Scalar(_) | Reader::Maybe(_) => true,
        }
    }

    /// Sets the kernel that runs batches, for blocks that kernels look up.
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

/// Hashes come from [`hash_key`], and serve the filters of many tables. A LegacyBloom filter has
/// another hash: look it up by keys. It answers "maybe" to hashes.
///
/// A lookup reads one cache line, or two if the block is not aligned to 64 bytes. In a Ribbon block
/// it reads one to five.
impl<D: AsRef<[u8]>> Filter for FilterBlock<D> {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        match self.kernel_filter() {
            Some(filter) => filter.contains_hash(hash),
            None => self.contains_hash_otherwise(hash),
        }
    }

    #[inline]
    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        match self.kernel_filter() {
            Some(filter) => filter.contains_hashes_into(hashes, words),
            None => self.look_up_hashes_otherwise(hashes, words),
        }
    }

    #[inline]
    fn prefetch_hash(&self, hash: u64) {
        match &self.reader {
            Reader::Kernels(filter) => filter.prefetch_hash(hash),
            Reader::Ribbon(filter) => filter.prefetch_hash(hash),
            Reader::Scalar(_) | Reader::Maybe(_) | Reader::Absent(_) => {}
        }
    }

    #[inline]
    fn block_and_probes(&self, hash: u64) -> Option<(&Block, u32)> {
        self.kernel_filter()?.block_and_probes(hash)
    }

    /// Returns [`KEY_HASH`].
    #[inline]
    fn key_hash(&self) -> KeyHash {
        KEY_HASH
    }

    #[inline]
    fn hash_key(&self, key: &[u8]) -> Option<u64> {
        Some(hash_key(key))
    }

    #[inline]
    fn contains_key(&self, key: &[u8]) -> bool {
        match self.kernel_filter() {
            Some(filter) => filter.contains_hash(hash_key(key)),
            None => self.contains_otherwise(key),
        }
    }

    #[inline]
    fn contains_batch_into<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        words: &mut [u64],
    ) -> Result<(), LengthError> {
        self.look_up(keys, words, ByteKeys)
    }

    #[inline]
    fn contains_u64s_into(&self, keys: &[u64], words: &mut [u64]) -> Result<(), LengthError> {
        self.look_up(keys, words, IntegerKeys)
    }
}

/// Reads the bytes of a key.
pub(super) trait ReadKey<K> {
    /// Calls `read` with the key's bytes, and returns its result.
    fn with_bytes<R>(&self, key: &K, read: impl FnOnce(&[u8]) -> R) -> R;
}

/// Keys that lend their bytes.
#[derive(Clone, Copy)]
pub(super) struct ByteKeys;

impl<K: AsRef<[u8]>> ReadKey<K> for ByteKeys {
    #[inline]
    fn with_bytes<R>(&self, key: &K, read: impl FnOnce(&[u8]) -> R) -> R {
        read(key.as_ref())
    }
}

/// Integers, whose bytes are little-endian.
#[derive(Clone, Copy)]
pub(super) struct IntegerKeys;

impl ReadKey<u64> for IntegerKeys {
    #[inline]
    fn with_bytes<R>(&self, key: &u64, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&key.to_le_bytes())
    }
}

impl FilterKind {
    /// Decodes the last five bytes of a block, like
    /// `BuiltinFilterPolicy::GetBuiltinFilterBitsReader` of RocksDB.
    fn detect(block: &[u8]) -> Result<Self, RocksdbError> {
        let found = block.len() as u64;
        let no_keys = RocksdbError::NoKeys { found };
        let Some((bits @ [_, ..], &trailer)) = block.split_last_chunk::<TRAILER_BYTES>() else {
            return Err(no_keys);
        };
        if found > u64::from(u32::MAX) {
            return Err(RocksdbError::BlockTooLong { found });
        }
        let [marker, rest @ ..] = trailer;
        let reserved = Self::Reserved { trailer };
        Ok(match marker.cast_signed() {
            0 => Self::PassAll,
            -1 => {
                // The upper three bits of the second byte are the block length; 0 means 64 bytes.
                let [0, probes, 0, 0] = rest else { return Ok(reserved) };
                let (blocks, tail) = bits.as_chunks::<BLOCK_BYTES>();
                match (1..=MAX_PROBES as u8).contains(&probes) {
                    false => reserved,
                    true if blocks.is_empty() => {
                        return Err(RocksdbError::NoLine { found: tail.len() as u64 });
                    }
                    true => Self::FastLocalBloom { probes, blocks: blocks.len() as u32 },
                }
            }
            -2 => {
                let [seed, low, middle, high] = rest;
                match u32::from_le_bytes([low, middle, high, 0]) {
                    0 | 1 => reserved,
                    blocks => Self::Ribbon { seed, blocks },
                }
            }
            ..0 => reserved,
            1.. => {
                let lines = u32::from_le_bytes(rest);
                Lines::new(bits, lines, marker).map_or(reserved, |read| {
                    let line_bytes = read.line_bytes();
                    Self::LegacyBloom { probes: marker, lines, line_bytes }
                })
            }
        })
    }
}

/// Compares the bytes and how they are read; kernel and owner do not matter.
impl<D: AsRef<[u8]>, E: AsRef<[u8]>> PartialEq<FilterBlock<E>> for FilterBlock<D> {
    fn eq(&self, other: &FilterBlock<E>) -> bool {
        self.kind == other.kind && self.as_bytes() == other.as_bytes()
    }
}

impl<D: AsRef<[u8]>> Eq for FilterBlock<D> {}

/// Shows the kind and the length, without the bits.
impl<D: AsRef<[u8]>> core::fmt::Debug for FilterBlock<D> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FilterBlock")
            .field("kind", &self.kind)
            .field("bytes", &self.as_bytes().len())
            .finish()
    }
}
