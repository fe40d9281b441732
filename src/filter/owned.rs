//! The filter that owns its blocks: made, added to, cleared.

use core::fmt::{self, Display, Formatter};
use core::mem::MaybeUninit;

use super::lookup::check_shape;
use super::{BloomFilter, Meta};
use crate::bitmask::Bitmask;
use crate::buffer::{AllocError, BlockBuffer};
use crate::hash::{HashKeys, KeyError, KeyHash};
use crate::kernel::{Kernel, Tile};
use crate::params::{Params, ParamsError};
use crate::prefix::FilterContents;
use crate::probe::{self, Block};

/// Hashes of a batch of keys computed before they are inserted: 4 KiB of stack.
const HASHES_AT_ONCE: usize = 512;

/// The insertion of batches, of a filter that has one owner or is shared by threads.
macro_rules! insert_methods {
    ($self:ident, $($receiver:tt)+) => {
        /// Adds every key. Keys are hashed some at a time into a buffer on the stack: no other
        /// memory is used. Cost: the hash and about one cache line of every key, with prefetch
        /// where the filter outgrows the cache.
        ///
        /// # Errors
        ///
        /// As [`insert`](Self::insert). Nothing is changed then.
        pub fn insert_batch<K: AsRef<[u8]>>($($receiver)+, keys: &[K]) -> Result<(), KeyError> {
            let hash = $self.meta.hasher_to_insert()?.bytes($self.kernel);
            insert_keys(keys, hash, &mut [], |hashes, new| $self.insert_all(hashes, new));
            Ok(())
        }

        /// [`insert_batch`](Self::insert_batch) of integers, whose keys are their little-endian
        /// bytes; with its errors.
        pub fn insert_u64s($($receiver)+, keys: &[u64]) -> Result<(), KeyError> {
            let hash = $self.meta.hasher_to_insert()?.integers($self.kernel);
            insert_keys(keys, hash, &mut [], |hashes, new| $self.insert_all(hashes, new));
            Ok(())
        }

        /// Adds every key with these hashes.
        ///
        /// # Errors
        ///
        /// As [`insert_hash`](Self::insert_hash). Nothing is changed then.
        pub fn insert_hashes($($receiver)+, hashes: &[u64]) -> Result<(), KeyError> {
            $self.meta.check_insert()?;
            $self.insert_all(hashes, &mut []);
            Ok(())
        }

        /// Adds every key. `new` then has one bit per key: what [`insert`](Self::insert) of the
        /// keys one by one would have returned, so 1 if the key was certainly not there before, nor
        /// earlier in the batch. Cost: with AVX-512 and AVX2 up to 1.3 of
        /// [`insert_batch`](Self::insert_batch), without up to 1.4.
        ///
        /// Of threads that add a key to a shared filter at the same time, each may find it new;
        /// none does whose call began after another's had returned.
        ///
        /// # Errors
        ///
        /// As [`insert`](Self::insert). Nothing is added then, and `new` is empty.
        pub fn insert_batch_new<K: AsRef<[u8]>>(
            $($receiver)+,
            keys: &[K],
            new: &mut Bitmask,
        ) -> Result<(), KeyError> {
            new.reset(0);
            let hash = $self.meta.hasher_to_insert()?.bytes($self.kernel);
                        new.write(keys.len(), |new| {
                insert_keys(keys, hash, new, |hashes, new| $self.insert_all(hashes, new));
            });
            Ok(())
        }

        /// [`insert_batch_new`](Self::insert_batch_new) of integers, whose keys are their
        /// little-endian bytes; with its errors.
        pub fn insert_u64s_new(
            $($receiver)+,
            keys: &[u64],
            new: &mut Bitmask,
        ) -> Result<(), KeyError> {
            new.reset(0);
            let hash = $self.meta.hasher_to_insert()?.integers($self.kernel);
            new.write(keys.len(), |new| {
                insert_keys(keys, hash, new, |hashes, new| $self.insert_all(hashes, new));
            });
            Ok(())
        }

        /// [`insert_batch_new`](Self::insert_batch_new) of keys with these hashes; with the errors
        /// of [`insert_hash`](Self::insert_hash).
        pub fn insert_hashes_new(
            $($receiver)+,
            hashes: &[u64],
            new: &mut Bitmask,
        ) -> Result<(), KeyError> {
            new.reset(0);
            $self.meta.check_insert()?;
            $self.insert_all(hashes, new.reset(hashes.len()));
            Ok(())
        }
    };
}
pub(super) use insert_methods;

impl BloomFilter {
    /// An empty filter of the given shape and hash; pass-all if `params` are.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory for the blocks.
    pub fn new(params: Params, key_hash: KeyHash) -> Result<Self, AllocError> {
        let blocks = BlockBuffer::zeroed(params.blocks(), true)?;
        Ok(BloomFilter::empty(blocks, params, key_hash))
    }

    /// A filter in blocks that are zero and as many as `params` say.
    pub(crate) fn empty(mut blocks: BlockBuffer, params: Params, key_hash: KeyHash) -> Self {
        if params.is_pass_all() {
            blocks.fill([0xff; 64]);
        }
        let meta = Meta::new(key_hash, params.probes() as u8, params.is_pass_all());
        BloomFilter::of(blocks, meta, Kernel::default())
    }

    /// Whole filter as one tile, for the batch insert kernels.
    pub(crate) fn tile(&mut self) -> Tile<'_> {
        let total = self.data.len() as u32;
        Tile { blocks: &mut self.data, first: 0, total }
    }

    pub(crate) fn count(&mut self, additions: u64) {
        self.meta.keys_inserted = self.meta.keys_inserted.saturating_add(additions);
    }

    /// The same filter, whose additions turned out to be this many, and which holds `contents` unless it is pass-all.
    pub(crate) fn with_facts(mut self, keys_inserted: u64, contents: FilterContents) -> Self {
        self.meta.keys_inserted = keys_inserted;
        let contents = if self.meta.pass_all { FilterContents::WholeKeys } else { contents };
        BloomFilter::of(self.data, Meta { contents, ..self.meta }, self.kernel)
    }

    /// Adds a key. Returns true if it was certainly not there before, as `HashSet` does.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the filter is of the caller's hashes, or holds prefixes, which only a builder adds. Nothing is changed then.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool, KeyError> {
        let hasher = self.hasher()?;
        self.insert_hash(hasher.hash(key))
    }

    /// Adds the key with this hash. Returns true if it was certainly not there before.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoPrefix`] if the filter holds prefixes. Nothing is changed then.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> Result<bool, KeyError> {
        self.meta.check_insert()?;
        self.count(1);
        let index = probe::block_index(hash, self.data.len() as u32);
        Ok(probe::insert(&mut self.data[index as usize], hash, u32::from(self.meta.probes)))
    }

    insert_methods!(self, &mut self);

    /// [`insert_hashes_new`](Self::insert_hashes_new), but only hashes that were new count as [`keys_inserted`](Self::keys_inserted): for
    /// filters of distinct keys; with its errors.
    pub fn insert_hashes_counting_new(
        &mut self,
        hashes: &[u64],
        new: &mut Bitmask,
    ) -> Result<(), KeyError> {
        let before = self.meta.keys_inserted;
        self.insert_hashes_new(hashes, new)?;
        self.meta.keys_inserted = before.saturating_add(new.count_hits() as u64);
        Ok(())
    }

    /// Adds every hash, be it of a key or of a prefix. `new` is empty, or one word per 64 hashes, for which were new.
    pub(crate) fn insert_all(&mut self, hashes: &[u64], new: &mut [u64]) {
        self.count(hashes.len() as u64);
        let (kernel, probes) = (self.kernel, u32::from(self.meta.probes));
        kernel.insert_into(self.tile(), probes, hashes, new);
    }

    /// Has the allocator move the blocks: see [`BlockBuffer::reallocate`].
    pub fn reallocate(&mut self) {
        self.data.reallocate();
    }

    /// Removes every key. A pass-all filter stays pass-all.
    pub fn clear(&mut self) {
        self.meta.keys_inserted = 0;
        if !self.meta.pass_all {
            self.data.fill([0; 64]);
        }
    }
}

impl<D: AsRef<[Block]>> BloomFilter<D> {
    /// Copies the blocks into a filter that can be changed.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory for the copy.
    pub fn to_filter(&self) -> Result<BloomFilter, AllocError> {
        let data = BlockBuffer::copy_of(self.blocks(), true)?;
        let BloomFilter { meta, kernel, answers, .. } = *self;
        Ok(BloomFilter { data, meta, kernel, answers })
    }
}

/// Hashes keys some at a time and has them inserted; `new` is empty, or a word per 64 keys.
pub(super) fn insert_keys<K>(
    keys: &[K],
    hash: impl HashKeys<K>,
    new: &mut [u64],
    mut insert: impl FnMut(&[u64], &mut [u64]),
) {
    let mut memory = [const { MaybeUninit::uninit() }; HASHES_AT_ONCE];
    let mut new = new.chunks_mut(HASHES_AT_ONCE / 64);
    for keys in keys.chunks(HASHES_AT_ONCE) {
        insert(hash.hash_keys(keys, &mut memory), new.next().unwrap_or_default());
    }
}

impl Kernel {
    /// Sets the bits of every hash in the blocks of a filter of this probe scheme: for packages that write the containers of other
    /// systems.
    ///
    /// # Errors
    ///
    /// [`ParamsError::BlocksOutOfRange`] unless there are 1 to 2^32 - 1 blocks, [`ParamsError::ProbesOutOfRange`] unless 1 to 30;
    /// nothing is changed then.
    ///
    /// ```
    /// use blocked_bloom::{BloomFilter, Kernel, KeyHash};
    /// let mut blocks = [[0; 64]; 3];
    /// Kernel::default().insert(&mut blocks, 6, &[0x9c1c_34f1_0a4e_7ab3])?;
    /// let filter = BloomFilter::from_blocks(&blocks, 6, KeyHash::Caller { tag: 1 })?;
    /// assert!(filter.contains_hash(0x9c1c_34f1_0a4e_7ab3));
    /// # Ok::<(), blocked_bloom::ParamsError>(())
    /// ```
    pub fn insert(
        self,
        blocks: &mut [Block],
        probes: u32,
        hashes: &[u64],
    ) -> Result<(), ParamsError> {
        let total = check_shape(blocks.len() as u64, probes)?;
        self.insert_into(Tile { blocks, first: 0, total }, probes, hashes, &mut []);
        Ok(())
    }
}

/// Why a builder could not finish.
///
/// ```
/// use blocked_bloom::{BuildError, FilterOptions, Sizing};
/// let mut builder = FilterOptions::new(Sizing::BitsPerKey(10.0)).with_memory_limit(8 << 10).builder();
/// builder.extend((0..2_000_u32).map(u32::to_le_bytes))?;
/// let error = builder.finish().unwrap_err();
/// assert_eq!(error, BuildError::MemoryLimit { limit_bytes: 8 << 10, keys: 2_000 });
/// # Ok::<(), blocked_bloom::KeyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// The keys cannot be sized as requested.
    Params(ParamsError),
    /// Memory ran out.
    Alloc(AllocError),
    /// Keys or hashes were given that the filter cannot take.
    Key(KeyError),
    /// The list of hashes reached the builder's limit, and no number of expected items was given.
    MemoryLimit {
        /// The limit that was given.
        limit_bytes: u64,
        /// Keys that were added in all, adjacent equal ones counted once: what to size a filter for.
        keys: u64,
    },
    /// The hashes in memory are no longer those that were added: memory is failing, or was overwritten.
    HashesChanged {
        /// Sum of the mixed hashes as they were added.
        expected: u64,
        /// The same of those in memory.
        found: u64,
    },
    /// The finished filter says that keys are absent which were added to it.
    KeysMissing {
        /// How many.
        missing: u64,
        /// Of this many.
        keys: u64,
    },
}

impl Display for BuildError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Params(error) => error.fmt(f),
            Self::Alloc(error) => error.fmt(f),
            Self::Key(error) => error.fmt(f),
            Self::MemoryLimit { limit_bytes, keys } => write!(
                f,
                "the hashes of {keys} keys do not fit the limit of {limit_bytes} bytes: give a number of \
                 expected items, or size a filter for {keys} keys and add them again"
            ),
            Self::HashesChanged { expected, found } => write!(
                f,
                "hashes changed in memory before they were inserted: their sum is {found:#018x}, expected \
                 {expected:#018x}; build the filter again"
            ),
            Self::KeysMissing { missing, keys } => write!(
                f,
                "the finished filter misses {missing} of {keys} keys: do not use it, build it again"
            ),
        }
    }
}

error!(BuildError, Params(ParamsError), Alloc(AllocError), Key(KeyError));
