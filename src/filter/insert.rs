//! Insertion of keys, one by one and in batches.

use core::mem::MaybeUninit;

use super::BloomFilter;
use super::parts::BlocksMut;
use crate::bitmask::Bitmask;
use crate::hash::{HashBytes, HashIntegers, HashKeys, KernelHash, Key, KeyError};
use crate::kernel::Tile;
use crate::probe;

/// Number of keys of a batch that are hashed before they are inserted: 4 KiB of stack.
const HASHES_AT_ONCE: usize = 512;

/// The insertion of keys and of batches, for filters with one owner, filters that threads share,
/// and the writers of such filters. `$bloom` is the filter of `$self`.
macro_rules! insert_methods {
    ($self:ident, $bloom:expr, [$($receiver:tt)+] $($where:tt)*) => {
        /// Inserts a key. Returns true if it was certainly not present before, as `HashSet` does.
        ///
        /// # Errors
        ///
        /// [`KeyError`] if the filter holds caller-supplied hashes, or prefixes, which only a
        /// builder inserts. Nothing is changed then.
        #[inline]
        pub fn insert($($receiver)+, key: impl Key) -> Result<bool, KeyError> $($where)* {
            let hasher = $bloom.meta.key_hash.hasher()?;
            $self.insert_hash(hasher.hash(key))
        }

        /// Inserts every key. Keys are hashed in groups into a buffer on the stack; no other memory
        /// is used.
        ///
        /// Cost: the hash and about one cache line per key, which is prefetched if the filter is
        /// larger than the cache.
        ///
        /// # Errors
        ///
        /// The errors of [`insert`](Self::insert). Nothing is changed then.
        pub fn insert_batch<K: Key>($($receiver)+, keys: &[K]) -> Result<(), KeyError> $($where)* {
            let hash = HashBytes::new($bloom.meta.hasher_to_insert()?, $bloom.kernel);
            insert_keys(keys, hash, &mut [], |hashes, new| $bloom.insert_all(hashes, new));
            Ok(())
        }

        /// Inserts every integer like [`insert_batch`](Self::insert_batch), with the same errors.
        /// The key of an integer is its little-endian bytes.
        pub fn insert_u64s($($receiver)+, keys: &[u64]) -> Result<(), KeyError> $($where)* {
            let hash = HashIntegers::new($bloom.meta.hasher_to_insert()?, $bloom.kernel);
            insert_keys(keys, hash, &mut [], |hashes, new| $bloom.insert_all(hashes, new));
            Ok(())
        }

        /// Inserts every key with these hashes.
        ///
        /// # Errors
        ///
        /// The errors of [`insert_hash`](Self::insert_hash). Nothing is changed then.
        pub fn insert_hashes($($receiver)+, hashes: &[u64]) -> Result<(), KeyError> $($where)* {
            $bloom.meta.contents.check_insert().map(|()| $bloom.insert_all(hashes, &mut []))
        }

        /// Inserts every key and reports the new ones: `new` has one bit per key afterwards, 1 if
        /// the key was certainly not present before, neither in the filter nor earlier in the
        /// batch. These are the results of [`insert`](Self::insert) for the keys one by one.
        ///
        /// If threads insert a key into a shared filter at the same time, each may find it new. A
        /// call that starts after another one returned does not.
        ///
        /// Cost: up to 1.4x the time of [`insert_batch`](Self::insert_batch).
        ///
        /// # Errors
        ///
        /// The errors of [`insert`](Self::insert). Nothing is inserted then, and `new` is empty.
        pub fn insert_batch_new<K: Key>($($receiver)+, keys: &[K], new: &mut Bitmask)
        -> Result<(), KeyError> $($where)* {
            let hasher = $bloom.meta.hasher_to_insert();
            let hash = hasher.map(|hasher| HashBytes::new(hasher, $bloom.kernel));
            insert_keys_new(keys, hash, new, |hashes, new| $bloom.insert_all(hashes, new))
        }

        /// Inserts every integer and reports the new ones, like
        /// [`insert_batch_new`](Self::insert_batch_new), with the same errors.
        pub fn insert_u64s_new($($receiver)+, keys: &[u64], new: &mut Bitmask)
        -> Result<(), KeyError> $($where)* {
            let hasher = $bloom.meta.hasher_to_insert();
            let hash = hasher.map(|hasher| HashIntegers::new(hasher, $bloom.kernel));
            insert_keys_new(keys, hash, new, |hashes, new| $bloom.insert_all(hashes, new))
        }

        /// Inserts every key with these hashes and reports the new ones, like
        /// [`insert_batch_new`](Self::insert_batch_new), with the errors of
        /// [`insert_hash`](Self::insert_hash).
        pub fn insert_hashes_new($($receiver)+, hashes: &[u64], new: &mut Bitmask)
        -> Result<(), KeyError> $($where)* {
            new.reset(0);
            $bloom.meta.contents.check_insert()?;
            $bloom.insert_all(hashes, new.reset(hashes.len()));
            Ok(())
        }
    };
}
pub(super) use insert_methods;

impl<D: BlocksMut> BloomFilter<D> {
    /// Returns the whole filter as one tile, for the insert kernels.
    pub(crate) fn tile(&mut self) -> Tile<'_> {
        let blocks = self.data.as_mut();
        let total = blocks.len() as u32;
        Tile { blocks, first: 0, total }
    }

    /// Inserts hashes of keys or prefixes. `new` is empty, or has one word per 64 hashes, which
    /// reports the new ones.
    pub(crate) fn insert_all(&mut self, hashes: &[u64], new: &mut [u64]) {
        self.count(hashes.len() as u64);
        let (kernel, probes) = (self.kernel, u32::from(self.meta.probes));
        kernel.insert_into(self.tile(), probes, hashes, new);
    }
}

impl<D> BloomFilter<D> {
    pub(crate) fn count(&mut self, additions: u64) {
        self.meta.keys_inserted = self.meta.keys_inserted.saturating_add(additions);
    }

    insert_methods!(self, self, [&mut self] where D: BlocksMut);

    /// Inserts the key with this hash. Returns true if it was certainly not present before.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoPrefix`] if the filter holds prefixes. Nothing is changed then.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> Result<bool, KeyError>
    where
        D: BlocksMut,
    {
        self.meta.contents.check_insert()?;
        self.count(1);
        let blocks = self.data.as_mut();
        let index = probe::block_index(hash, blocks.len() as u32);
        Ok(probe::insert(&mut blocks[index as usize], hash, u32::from(self.meta.probes)))
    }
}

impl<D: BlocksMut> BloomFilter<D> {
    /// Inserts hashes like [`insert_hashes_new`](Self::insert_hashes_new), with the same errors,
    /// but adds only the number of new hashes to [`keys_inserted`](Self::keys_inserted). For
    /// filters of distinct keys.
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

    /// Removes every key. A pass-all filter stays pass-all.
    pub fn clear(&mut self) {
        self.meta.keys_inserted = 0;
        if !self.meta.pass_all {
            self.data.as_mut().fill([0; 64]);
        }
    }
}

/// Hashes keys in groups and inserts each group. `new` is empty, or has one word per 64 keys.
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

/// Like [`insert_keys`], but reports the new keys. `new` is empty after an error.
pub(super) fn insert_keys_new<K>(
    keys: &[K],
    hash: Result<impl HashKeys<K>, KeyError>,
    new: &mut Bitmask,
    insert: impl FnMut(&[u64], &mut [u64]),
) -> Result<(), KeyError> {
    new.reset(0);
    let hash = hash?;
    new.write(keys.len(), |new| insert_keys(keys, hash, new, insert));
    Ok(())
}
