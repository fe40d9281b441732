//! The trait of all filters that are looked up by hashes of 64 bits: some required methods, and
//! every other lookup made of them.

use alloc::boxed::Box;
#[cfg(target_has_atomic = "ptr")]
use alloc::sync::Arc;
use core::cell::Cell;

use crate::batch::{LengthError, check_words, look_up};
use crate::bitmask::{self, Bitmask};
use crate::hash::{HashKeys, Key, KeyError, KeyHash, KeyHasher};
use crate::kernel::Kernel;

/// A filter that is looked up by hashes of 64 bits, of whatever kind: its lookups, also for code
/// over several kinds, as `dyn Filter`.
///
/// [`BloomFilter`](crate::BloomFilter) has these methods itself, except `contains_*_into`; for all
/// other types, also those of other packages, import the trait. `&F`, `Box<F>` and `Arc<F>` are
/// filters if `F` is, also if `F` is `dyn Filter`: they look up batches of keys by hashing them
/// first. A plain `&dyn Filter` has [`contains_key`](Self::contains_key) for `contains`.
///
/// ```
/// use blocked_bloom::{Filter, FilterOptions, Sizing};
/// fn tables_to_read(filters: &[Box<dyn Filter>], hash: u64) -> Vec<usize> {
///     filters.iter().for_each(|filter| filter.prefetch_hash(hash));
///     (0..filters.len()).filter(|&table| filters[table].contains_hash(hash)).collect()
/// }
/// let options = FilterOptions::new(Sizing::BitsPerKey(16.0));
/// let mut filter = options.empty_filter(100)?;
/// filter.insert("apple")?;
/// let grows = options.atomic_filter(100)?;
/// let filters: [Box<dyn Filter>; 2] = [Box::new(filter), Box::new(grows)];
/// assert_eq!(tables_to_read(&filters, options.hasher()?.hash("apple")), [0]);
/// assert!(filters[0].contains("apple"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # For authors of filters
///
/// Five methods are required; the others are made of them. If [`key_hash`](Self::key_hash) is an
/// XXH3, it must be that of [`hash_key`](Self::hash_key), since batches of keys are hashed by its
/// [`KeyHasher`]. A filter that gains if memory is prefetched while later keys are hashed replaces
/// the batches of keys by [`look_up_keys`](crate::parts::look_up_keys).
pub trait Filter {
    /// Whether the key with this hash may be present: false means certainly absent.
    ///
    /// The hash must be the filter's own: with another seed, a key that is there is "absent".
    fn contains_hash(&self, hash: u64) -> bool;

    /// Looks up every hash: hash `i` is bit `i % 64` of `words[i / 64]`, 1 if it may be present;
    /// bits past the last hash become zero.
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per 64 hashes, rounded up; nothing is
    /// written then. An implementation begins with [`check_words`](crate::parts::check_words).
    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError>;

    /// Prefetches the memory that [`contains_hash`](Self::contains_hash) reads for this hash: see
    /// [`BloomFilter::prefetch_hash`](crate::BloomFilter::prefetch_hash).
    fn prefetch_hash(&self, hash: u64);

    /// Which hashes the filter is of: those of keys, or the caller's, among them other systems'.
    fn key_hash(&self) -> KeyHash;

    /// The hash by which this key is looked up, or `None` if only the caller knows it. Required, so
    /// that no filter of another system's hash has its keys hashed by this one.
    fn hash_key(&self, key: &[u8]) -> Option<u64>;

    /// The hasher of the filter's keys.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the caller hashes, or the filter is of another system's hash.
    #[inline]
    fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.key_hash().hasher()
    }

    /// Whether the key with these bytes may be present: false means certainly absent. A filter of
    /// the caller's hashes cannot hash a key, and answers true. This is [`contains`](Self::contains)
    /// for `&dyn Filter`.
    #[inline]
    fn contains_key(&self, key: &[u8]) -> bool {
        self.hash_key(key).is_none_or(|hash| self.contains_hash(hash))
    }

    /// Whether the key may be present, as [`contains_key`](Self::contains_key).
    #[inline]
    fn contains(&self, key: impl Key) -> bool
    where
        Self: Sized,
    {
        self.contains_key(key.as_ref())
    }

    /// Looks up every hash; `hits` then has one bit per hash: 1 may be present, 0 is certainly
    /// absent. Batches may have any length.
    #[inline]
    fn contains_hashes(&self, hashes: &[u64], hits: &mut Bitmask) {
        // A mask of that length has one word per 64.
        hits.write_answers(hashes.len(), |words| _ = self.contains_hashes_into(hashes, words));
    }

    /// Looks up every key; `hits` then has one bit per key. A filter of the caller's hashes answers
    /// "maybe"; and if a key panics when it is read, what was not looked up yet says "maybe" too.
    #[inline]
    fn contains_batch<K: Key>(&self, keys: &[K], hits: &mut Bitmask)
    where
        Self: Sized,
    {
        hits.write_answers(keys.len(), |words| _ = self.contains_batch_into(keys, words));
    }

    /// [`contains_batch`](Self::contains_batch) into words of the caller's, with the errors of
    /// [`contains_hashes_into`](Self::contains_hashes_into).
    #[inline]
    fn contains_batch_into<K: Key>(&self, keys: &[K], words: &mut [u64]) -> Result<(), LengthError>
    where
        Self: Sized,
    {
        match self.hasher() {
            Ok(hasher) => look_up_keys(self, keys, words, hasher.bytes(Kernel::default())),
            Err(_) => look_up_each(self, keys, words, |key| self.hash_key(key.as_ref())),
        }
    }

    /// Looks up integers, whose keys are their little-endian bytes, as
    /// [`contains_batch`](Self::contains_batch): the fastest way from keys to answers.
    #[inline]
    fn contains_u64s(&self, keys: &[u64], hits: &mut Bitmask)
    where
        Self: Sized,
    {
        hits.write_answers(keys.len(), |words| _ = self.contains_u64s_into(keys, words));
    }

    /// [`contains_u64s`](Self::contains_u64s) into words of the caller's, with the errors of
    /// [`contains_hashes_into`](Self::contains_hashes_into).
    #[inline]
    fn contains_u64s_into(&self, keys: &[u64], words: &mut [u64]) -> Result<(), LengthError>
    where
        Self: Sized,
    {
        match self.hasher() {
            Ok(hasher) => look_up_keys(self, keys, words, hasher.integers(Kernel::default())),
            Err(_) => look_up_each(self, keys, words, |key| self.hash_key(&key.to_le_bytes())),
        }
    }
}

/// Implements the trait for pointers to filters.
macro_rules! filter_for_pointers {
    ($($pointer:ty),*) => {$(
        impl<F: Filter + ?Sized> Filter for $pointer {
            #[inline]
            fn contains_hash(&self, hash: u64) -> bool {
                (**self).contains_hash(hash)
            }

            #[inline]
            fn contains_hashes_into(
                &self,
                hashes: &[u64],
                words: &mut [u64],
            ) -> Result<(), LengthError> {
                (**self).contains_hashes_into(hashes, words)
            }

            #[inline]
            fn prefetch_hash(&self, hash: u64) {
                (**self).prefetch_hash(hash);
            }

            #[inline]
            fn key_hash(&self) -> KeyHash {
                (**self).key_hash()
            }

            #[inline]
            fn hash_key(&self, key: &[u8]) -> Option<u64> {
                (**self).hash_key(key)
            }
        }
    )*};
}
filter_for_pointers!(&F, Box<F>);
#[cfg(target_has_atomic = "ptr")]
filter_for_pointers!(Arc<F>);

fn look_up_keys<K>(
    filter: &impl Filter,
    keys: &[K],
    words: &mut [u64],
    hash: impl HashKeys<K>,
) -> Result<(), LengthError> {
    check_words(keys.len(), words)?;
    look_up(keys, words, hash, None::<fn(&[u64])>, |hashes, words| {
        // There is a word per 64 hashes.
        _ = filter.contains_hashes_into(hashes, words);
    });
    Ok(())
}

/// From the first key on whose hash is not known, all answers of the call are "maybe".
fn look_up_each<K>(
    filter: &impl Filter,
    keys: &[K],
    words: &mut [u64],
    hash: impl Fn(&K) -> Option<u64>,
) -> Result<(), LengthError> {
    check_words(keys.len(), words)?;
    let known = Cell::new(true);
    let hash = |key: &K| {
        hash(key).unwrap_or_else(|| {
            known.set(false);
            0
        })
    };
    look_up(keys, words, hash, None::<fn(&[u64])>, |hashes, words| match known.get() {
        // There is a word per 64 hashes.
        true => _ = filter.contains_hashes_into(hashes, words),
        false => bitmask::fill_with_hits(words, hashes.len()),
    });
    Ok(())
}
