//! Batches of keys and of hashes: what all filters have in common, and the trait of code that takes any of them.

use core::fmt::{self, Display, Formatter};
use core::mem::MaybeUninit;

use crate::bitmask;
use crate::hash::{KeyError, KeyHash, KeyHasher};
use crate::kernel::{GROUP, Kernel};

/// Keys that are hashed at a time: 8 KiB of stack.
const AT_ONCE: usize = 1024;

/// Groups between the one that is prefetched and the one that is looked up.
const GROUPS_AHEAD: usize = 2;

/// A filter that is looked up by hashes of 64 bits, of whatever kind: for code over several kinds, also as `dyn Filter`.
///
/// Every type has these methods by itself too, and lookups by key beside them; nobody who uses one type needs the trait.
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
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Filter {
    /// Whether the key with this hash may be present: false means certainly absent.
    ///
    /// The hash must be the filter's own: with a hash of another seed, it answers "absent" for a key that is there.
    fn contains_hash(&self, hash: u64) -> bool;

    /// Looks up every hash: hash `i` is bit `i % 64` of `words[i / 64]`, 1 if it may be present, bits past the last hash are zero.
    ///
    /// # Errors
    ///
    /// [`LengthError`] unless there is exactly one word per 64 hashes, rounded up; nothing is written then.
    fn contains_hashes_into(&self, hashes: &[u64], words: &mut [u64]) -> Result<(), LengthError>;

    /// Prefetches the memory that [`contains_hash`](Self::contains_hash) reads for this hash.
    fn prefetch_hash(&self, hash: u64);

    /// Which hashes the filter is of.
    fn key_hash(&self) -> KeyHash;
}

/// Hashes keys as `filter` does and looks them up, some thousand at a time: for filters of other packages. If the caller hashes, every answer is
/// "maybe"; and if a key panics when it is read, what was not written yet says "maybe" too.
///
/// # Errors
///
/// [`LengthError`] unless there is exactly one word per 64 keys, rounded up; nothing is written then.
///
/// ```
/// use blocked_bloom::{FilterOptions, Sizing, contains_batch_into};
/// let mut filter = FilterOptions::new(Sizing::BitsPerKey(16.0)).empty_filter(100)?;
/// filter.insert("apple")?;
/// let mut words = [0];
/// contains_batch_into(&filter, &["apple", "banana"], &mut words)?;
/// assert_eq!(words, [0b01]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn contains_batch_into<F: Filter + ?Sized, K: AsRef<[u8]>>(
    filter: &F,
    keys: &[K],
    words: &mut [u64],
) -> Result<(), LengthError> {
    look_up_in(filter, keys, words, KeyHasher::hash_keys)
}

/// [`contains_batch_into`] for integers, whose keys are their little-endian bytes; with its errors.
pub fn contains_u64s_into<F: Filter + ?Sized>(
    filter: &F,
    keys: &[u64],
    words: &mut [u64],
) -> Result<(), LengthError> {
    look_up_in(filter, keys, words, KeyHasher::hash_new_integers)
}

fn look_up_in<F: Filter + ?Sized, K>(
    filter: &F,
    keys: &[K],
    words: &mut [u64],
    hash: impl for<'h> Fn(KeyHasher, Kernel, &[K], &'h mut [MaybeUninit<u64>]) -> &'h [u64],
) -> Result<(), LengthError> {
    LengthError::check(keys.len(), words)?;
    let by = (filter.key_hash().hasher(), Kernel::default());
    look_up(by, keys, words, hash, None::<fn(&[u64])>, |hashes, words| {
        // There is a word per 64 hashes.
        _ = filter.contains_hashes_into(hashes, words);
    });
    Ok(())
}

/// Hashes and looks up keys; there is one word per 64 keys. With `prefetch`, keys are hashed and prefetched a group at a time, while a group
/// before them is looked up; else as many are hashed at a time as there is space for. Not inlined, so that calls of few keys have little stack.
#[inline(never)]
pub(crate) fn look_up<K>(
    (hasher, kernel): (Result<KeyHasher, KeyError>, Kernel),
    keys: &[K],
    words: &mut [u64],
    hash: impl for<'h> Fn(KeyHasher, Kernel, &[K], &'h mut [MaybeUninit<u64>]) -> &'h [u64],
    prefetch: Option<impl Fn(&[u64])>,
    contains: impl Fn(&[u64], &mut [u64]),
) {
    // If a key panics when it is read, what is left says "maybe".
    bitmask::fill_with_hits(words, keys.len());
    let Ok(hasher) = hasher else { return };
    let Some(prefetch) = prefetch else {
        let mut memory = [MaybeUninit::uninit(); AT_ONCE];
        for (keys, words) in keys.chunks(AT_ONCE).zip(words.chunks_mut(AT_ONCE / GROUP)) {
            contains(hash(hasher, kernel, keys, &mut memory), words);
        }
        return;
    };
    let (mut memory, mut ring) = ([MaybeUninit::uninit(); GROUP], [[0; GROUP]; GROUPS_AHEAD + 1]);
    let mut load = |keys: &[K], group: &mut [u64; GROUP]| {
        let hashes = hash(hasher, kernel, keys, &mut memory);
        prefetch(hashes);
        group[..keys.len()].copy_from_slice(hashes);
    };
    let mut later = keys.chunks(GROUP);
    later.by_ref().take(GROUPS_AHEAD).zip(&mut ring).for_each(|(keys, group)| load(keys, group));
    for (i, (keys, word)) in keys.chunks(GROUP).zip(words).enumerate() {
        if let Some(keys) = later.next() {
            load(keys, &mut ring[(i + GROUPS_AHEAD) % ring.len()]);
        }
        contains(&ring[i % ring.len()][..keys.len()], core::slice::from_mut(word));
    }
}

/// A slice of words for the results of a batch has the wrong length.
///
/// ```
/// use blocked_bloom::{BloomFilter, KeyHash};
/// let filter = BloomFilter::pass_all(KeyHash::default());
/// let error = filter.contains_hashes_into(&[1, 2, 3], &mut [0; 2]).unwrap_err();
/// assert_eq!((error.words, error.expected), (2, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LengthError {
    /// Words given.
    pub words: usize,
    /// Words needed: one per 64 keys, rounded up.
    pub expected: usize,
}

impl LengthError {
    /// Checks that there is exactly one word per 64 keys, rounded up: for types of other packages that implement [`Filter`].
    ///
    /// # Errors
    ///
    /// The error itself if there is not.
    #[inline]
    pub fn check(keys: usize, words: &[u64]) -> Result<(), Self> {
        let expected = keys.div_ceil(64);
        if words.len() == expected {
            Ok(())
        } else {
            Err(LengthError { words: words.len(), expected })
        }
    }
}

impl Display for LengthError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} words for the results, {} needed: one per 64 keys", self.words, self.expected)
    }
}

impl core::error::Error for LengthError {}
