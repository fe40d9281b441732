//! The trait of filters that are looked up by 64-bit hashes.

use alloc::boxed::Box;
#[cfg(target_has_atomic = "ptr")]
use alloc::sync::Arc;
use core::cell::Cell;

use crate::batch::{LengthError, check_words, look_up};
use crate::bitmask::{self, Bitmask};
use crate::hash::{
    HashBytes, HashIntegers, HashKeys, KernelHash, Key, KeyError, KeyHash, KeyHasher,
};
use crate::kernel::Kernel;
use crate::probe::Block;

/// The lookups of a filter that is queried by 64-bit hashes. Use `dyn Filter` for code that handles
/// several kinds of filters.
///
/// [`BloomFilter`](crate::BloomFilter) also has these methods as inherent ones, except
/// `contains_*_into`. For all other types, including those of other packages, import the trait.
/// `&F`, `Box<F>` and `Arc<F>` implement it if `F` does, even if `F` is `dyn Filter`; they hash a
/// batch of keys before they look it up. For a plain `&dyn Filter`, use
/// [`contains_key`](Self::contains_key) instead of `contains`.
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
/// let shared = options.atomic_filter(100)?;
/// let filters: [Box<dyn Filter>; 2] = [Box::new(filter), Box::new(shared)];
/// assert_eq!(tables_to_read(&filters, options.hasher()?.hash("apple")), [0]);
/// assert!(filters[0].contains("apple"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # For authors of filters
///
/// Five methods are required, and the others call them. If [`key_hash`](Self::key_hash) returns
/// [`KeyHash::Xxh3`], [`hash_key`](Self::hash_key) must compute that hash, since its [`KeyHasher`]
/// hashes batches of keys. Override the lookups of batches of keys with
/// [`look_up_keys`](crate::parts::look_up_keys) if the filter is faster when memory is prefetched
/// while later keys are hashed.
pub trait Filter {
    /// Whether the key with this hash may be present: false means certainly absent.
    ///
    /// The hash must be the filter's own: for a hash of another seed, the filter answers "absent"
    /// although the key was inserted.
    fn contains_hash(&self, hash: u64) -> bool;

    /// Looks up every hash. Bit `i % 64` of `words[i / 64]` becomes 1 if the key with hash `i` may
    /// be present, otherwise 0. Bits past the last hash become 0.
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is one word per 64 hashes, rounded up. Nothing is written then.
    /// Implementations call [`check_words`](crate::parts::check_words) first.
    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError>;

    /// Prefetches the memory that [`contains_hash`](Self::contains_hash) reads for this hash. See
    /// [`BloomFilter::prefetch_hash`](crate::BloomFilter::prefetch_hash).
    fn prefetch_hash(&self, hash: u64);

    /// Returns the block of the hash and the number of probes, if
    /// [`contains_hash`](Self::contains_hash) tests exactly the bits that [`probe`](crate::probe)
    /// defines; otherwise `None`. [`Kernel::test_blocks`] then computes the bits of a key once for
    /// many filters with the same number of probes.
    #[inline]
    fn block_and_probes(&self, hash: u64) -> Option<(&Block, u32)> {
        _ = hash;
        None
    }

    /// Returns the hash of the filter's keys. It is [`KeyHash::Caller`] if the caller supplies the
    /// hashes, or if the filter uses the hash of another system.
    fn key_hash(&self) -> KeyHash;

    /// Returns the hash for looking up this key, or `None` if only the caller can compute it. The
    /// method is required, so that filters with the hash of another system do not use XXH3.
    fn hash_key(&self, key: &[u8]) -> Option<u64>;

    /// Returns the hasher of the filter's keys.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the caller supplies the hashes, or if the filter uses the hash of
    /// another system.
    #[inline]
    fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.key_hash().hasher()
    }

    /// Whether the key with these bytes may be present: false means certainly absent. A filter of
    /// caller-supplied hashes cannot hash a key and returns true. Use it instead of
    /// [`contains`](Self::contains) with `&dyn Filter`.
    #[inline]
    fn contains_key(&self, key: &[u8]) -> bool {
        self.hash_key(key).is_none_or(|hash| self.contains_hash(hash))
    }

    /// Whether the key may be present, like [`contains_key`](Self::contains_key).
    #[inline]
    fn contains(&self, key: impl Key) -> bool
    where
        Self: Sized,
    {
        self.contains_key(key.as_ref())
    }

    /// Looks up every hash. `hits` has one bit per hash afterwards: 1 means that the key may be
    /// present, 0 that it is certainly absent. Batches may have any length.
    #[inline]
    fn contains_hashes(&self, hashes: &[u64], hits: &mut Bitmask) {
        // Cannot fail: a mask has one word per 64 hashes.
        hits.write_answers(hashes.len(), |words| _ = self.contains_hashes_into(hashes, words));
    }

    /// Looks up every key. `hits` has one bit per key afterwards. A filter of caller-supplied
    /// hashes answers "maybe". If reading a key panics, all keys not yet looked up are "maybe".
    #[inline]
    fn contains_batch<K: Key>(&self, keys: &[K], hits: &mut Bitmask)
    where
        Self: Sized,
    {
        hits.write_answers(keys.len(), |words| _ = self.contains_batch_into(keys, words));
    }

    /// Looks up every key like [`contains_batch`](Self::contains_batch), and writes the answers
    /// like [`contains_hashes_into`](Self::contains_hashes_into), with the same errors.
    #[inline]
    fn contains_batch_into<K: Key>(&self, keys: &[K], words: &mut [u64]) -> Result<(), LengthError>
    where
        Self: Sized,
    {
        let vectors = self.hasher().map(|hasher| HashBytes::new(hasher, Kernel::default()));
        look_up_keys(self, keys, words, vectors, |key| self.hash_key(key.as_ref()))
    }

    /// Looks up every integer, like [`contains_batch`](Self::contains_batch). The key of an integer
    /// is its little-endian bytes.
    #[inline]
    fn contains_u64s(&self, keys: &[u64], hits: &mut Bitmask)
    where
        Self: Sized,
    {
        hits.write_answers(keys.len(), |words| _ = self.contains_u64s_into(keys, words));
    }

    /// Looks up every integer like [`contains_u64s`](Self::contains_u64s), and writes the answers
    /// like [`contains_hashes_into`](Self::contains_hashes_into), with the same errors.
    #[inline]
    fn contains_u64s_into(&self, keys: &[u64], words: &mut [u64]) -> Result<(), LengthError>
    where
        Self: Sized,
    {
        let vectors = self.hasher().map(|hasher| HashIntegers::new(hasher, Kernel::default()));
        look_up_keys(self, keys, words, vectors, |key| self.hash_key(&key.to_le_bytes()))
    }
}

/// Implements the trait for pointers to filters.
macro_rules! filter_for_pointers {
    ($($pointer:ty),*) => {$(
        impl<F: Filter + ?Sized> Filter for $pointer {
            forward! {
                contains_hash(hash: u64) -> bool;
                contains_hashes_into(hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError>;
                prefetch_hash(hash: u64) -> ();
                block_and_probes(hash: u64) -> Option<(&Block, u32)>;
                key_hash() -> KeyHash;
                hash_key(key: &[u8]) -> Option<u64>;
                contains_key(key: &[u8]) -> bool;
            }
        }
    )*};
}

/// Methods that call those of the filter that `self` points to.
macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        #[inline]
        fn $name(&self, $($argument: $type),*) -> $result {
            (**self).$name($($argument),*)
        }
    )*};
}

filter_for_pointers!(&F, Box<F>);
#[cfg(target_has_atomic = "ptr")]
filter_for_pointers!(Arc<F>);

/// Looks up keys with the vectors of a [`KeyHasher`], or else with the hash function. Once one key
/// cannot be hashed, every remaining answer of the call is "maybe".
fn look_up_keys<K>(
    filter: &impl Filter,
    keys: &[K],
    words: &mut [u64],
    vectors: Result<impl HashKeys<K>, KeyError>,
    hash: impl Fn(&K) -> Option<u64>,
) -> Result<(), LengthError> {
    check_words(keys.len(), words)?;
    let known = Cell::new(true);
    let contains = |hashes: &[u64], words: &mut [u64]| match known.get() {
        // Cannot fail: `check_words` has checked the length.
        true => _ = filter.contains_hashes_into(hashes, words),
        false => bitmask::fill_with_hits(words, hashes.len()),
    };
    let hash = |key: &K| {
        hash(key).unwrap_or_else(|| {
            known.set(false);
            0
        })
    };
    match vectors {
        Ok(vectors) => look_up(keys, words, vectors, None::<fn(&[u64])>, contains),
        Err(_) => look_up(keys, words, hash, None::<fn(&[u64])>, contains),
    }
    Ok(())
}
