//! Adding keys, one by one and in batches.

use core::mem::MaybeUninit;

use super::BloomFilter;
use super::parts::BlocksMut;
use crate::bitmask::Bitmask;
use crate::hash::{HashKeys, Key, KeyError};
use crate::kernel::Tile;
use crate::probe;

/// Hashes of a batch of keys computed before they are inserted: 4 KiB of stack.
const HASHES_AT_ONCE: usize = 512;

/// The insertion of batches, of a filter that has one owner or is shared by threads.
macro_rules! insert_methods {
    ($self:ident: [$($receiver:tt)+] $($where:tt)*) => {
        /// Adds every key. Keys are hashed some at a time into a buffer on the stack: no other
        /// memory is used. Cost: the hash and about one cache line of every key, with prefetch
        /// where the filter outgrows the cache.
        ///
        /// # Errors
        ///
        /// As [`insert`](Self::insert). Nothing is changed then.
        pub fn insert_batch<K: Key>($($receiver)+, keys: &[K]) -> Result<(), KeyError>
        $($where)*
        {
            let hash = $self.meta.hasher_to_insert()?.bytes($self.kernel);
            insert_keys(keys, hash, &mut [], |hashes, new| $self.insert_all(hashes, new));
            Ok(())
        }

        /// [`insert_batch`](Self::insert_batch) of integers, whose keys are their little-endian
        /// bytes; with its errors.
        pub fn insert_u64s($($receiver)+, keys: &[u64]) -> Result<(), KeyError>
        $($where)*
        {
            let hash = $self.meta.hasher_to_insert()?.integers($self.kernel);
            insert_keys(keys, hash, &mut [], |hashes, new| $self.insert_all(hashes, new));
            Ok(())
        }

        /// Adds every key with these hashes.
        ///
        /// # Errors
        ///
        /// As [`insert_hash`](Self::insert_hash). Nothing is changed then.
        pub fn insert_hashes($($receiver)+, hashes: &[u64]) -> Result<(), KeyError>
        $($where)*
        {
            $self.meta.contents.check_insert()?;
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
        pub fn insert_batch_new<K: Key>(
            $($receiver)+,
            keys: &[K],
            new: &mut Bitmask,
        ) -> Result<(), KeyError>
        $($where)*
        {
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
        ) -> Result<(), KeyError>
        $($where)*
        {
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
        ) -> Result<(), KeyError>
        $($where)*
        {
            new.reset(0);
            $self.meta.contents.check_insert()?;
            $self.insert_all(hashes, new.reset(hashes.len()));
            Ok(())
        }
    };
}
pub(super) use insert_methods;

impl<D> BloomFilter<D> {
    /// Whole filter as one tile, for the batch insert kernels.
    pub(crate) fn tile(&mut self) -> Tile<'_>
    where
        D: BlocksMut,
    {
        let blocks = self.data.as_mut();
        let total = blocks.len() as u32;
        Tile { blocks, first: 0, total }
    }

    pub(crate) fn count(&mut self, additions: u64) {
        self.meta.keys_inserted = self.meta.keys_inserted.saturating_add(additions);
    }

    /// Adds a key. Returns true if it was certainly not there before, as `HashSet` does.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the filter is of the caller's hashes, or holds prefixes, which only a
    /// builder adds. Nothing is changed then.
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> Result<bool, KeyError>
    where
        D: BlocksMut,
    {
        let hasher = self.hasher()?;
        self.insert_hash(hasher.hash(key))
    }

    /// Adds the key with this hash. Returns true if it was certainly not there before.
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

    insert_methods!(self: [&mut self] where D: BlocksMut);

    /// [`insert_hashes_new`](Self::insert_hashes_new), but only hashes that were new count as
    /// [`keys_inserted`](Self::keys_inserted): for filters of distinct keys; with its errors.
    pub fn insert_hashes_counting_new(
        &mut self,
        hashes: &[u64],
        new: &mut Bitmask,
    ) -> Result<(), KeyError>
    where
        D: BlocksMut,
    {
        let before = self.meta.keys_inserted;
        self.insert_hashes_new(hashes, new)?;
        self.meta.keys_inserted = before.saturating_add(new.count_hits() as u64);
        Ok(())
    }

    /// Adds hashes of keys or prefixes. `new`: empty, or a word per 64 hashes, for which were new.
    pub(crate) fn insert_all(&mut self, hashes: &[u64], new: &mut [u64])
    where
        D: BlocksMut,
    {
        self.count(hashes.len() as u64);
        let (kernel, probes) = (self.kernel, u32::from(self.meta.probes));
        kernel.insert_into(self.tile(), probes, hashes, new);
    }

    /// Removes every key. A pass-all filter stays pass-all.
    pub fn clear(&mut self)
    where
        D: BlocksMut,
    {
        self.meta.keys_inserted = 0;
        if !self.meta.pass_all {
            self.data.as_mut().fill([0; 64]);
        }
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
