//! Lookups of batches of keys: groups of keys are hashed, and looked up while the blocks of later
//! groups are prefetched.

use core::mem::MaybeUninit;

use crate::bitmask;
use crate::hash::HashKeys;
use crate::kernel::GROUP;

/// Number of keys that are hashed at a time without prefetching: 8 KiB of stack.
const CHUNK_KEYS: usize = 1024;

/// Number of groups between the one being prefetched and the one being looked up.
const GROUPS_AHEAD: usize = 2;

/// Looks up keys with a hash function other than [`KeyHasher`](crate::KeyHasher). `hash` returns
/// the hash of a key, and `contains` overwrites one word of answers for each 64 hashes.
///
/// With `prefetch`, which receives each hash once it is computed, a group of 64 keys is looked up
/// after the next two groups are hashed. Without it, up to 1,024 keys are hashed and then looked
/// up. If reading a key panics, all answers that were not written are "maybe".
///
/// # Errors
///
/// [`LengthError`] unless there is one word per 64 keys, rounded up. Nothing is written then.
#[inline]
pub fn look_up_keys<K>(
    keys: &[K],
    words: &mut [u64],
    hash: impl Fn(&K) -> u64,
    prefetch: Option<impl Fn(u64)>,
    contains: impl Fn(&[u64], &mut [u64]),
) -> Result<(), LengthError> {
    check_words(keys.len(), words)?;
    match prefetch {
        Some(prefetch) if words.len() > 1 => {
            // If reading a key panics, the remaining answers are "maybe".
            bitmask::fill_with_hits(words, keys.len());
            // A `move` closure, so that its captures stay in registers while hashes are written.
            let load = move |keys: &[K], group: &mut [u64]| {
                for (to, key) in group.iter_mut().zip(keys) {
                    *to = hash(key);
                    prefetch(*to);
                }
            };
            look_up_ahead(keys, words, load, contains);
        }
        prefetch => {
            let hash = move |key: &K| {
                let hash = hash(key);
                prefetch.iter().for_each(|prefetch| prefetch(hash));
                hash
            };
            look_up(keys, words, hash, None::<fn(&[u64])>, contains);
        }
    }
    Ok(())
}

/// Looks up keys by their hashes, with one word per 64 keys. With `prefetch`, keys are hashed and
/// prefetched in groups, and each group is looked up after the next two are prefetched. Up to 64
/// keys are not prefetched.
#[inline]
pub(crate) fn look_up<K>(
    keys: &[K],
    words: &mut [u64],
    hash: impl HashKeys<K>,
    prefetch: Option<impl Fn(&[u64])>,
    contains: impl Fn(&[u64], &mut [u64]),
) {
    // If reading a key panics, the remaining answers are "maybe".
    if let [word] = &mut *words {
        *word = bitmask::used(keys.len(), 0);
    } else {
        bitmask::fill_with_hits(words, keys.len());
    }
    match (words, prefetch) {
        ([], _) => {}
        (words @ [_], _) => {
            let mut memory = [MaybeUninit::uninit(); GROUP];
            contains(hash.hash_keys(keys, &mut memory), words);
        }
        (words, Some(prefetch)) => {
            let mut memory = [MaybeUninit::uninit(); GROUP];
            let load = |keys: &[K], group: &mut [u64]| {
                let hashes = hash.hash_keys(keys, &mut memory);
                prefetch(hashes);
                group.copy_from_slice(hashes);
            };
            look_up_ahead(keys, words, load, contains);
        }
        (words, None) => look_up_many(keys, words, hash, contains),
    }
}

/// Looks up keys without prefetching, [`CHUNK_KEYS`] at a time. Not inlined, so that calls with few
/// keys use little stack.
#[inline(never)]
fn look_up_many<K>(
    keys: &[K],
    words: &mut [u64],
    hash: impl HashKeys<K>,
    contains: impl Fn(&[u64], &mut [u64]),
) {
    let mut memory = [MaybeUninit::uninit(); CHUNK_KEYS];
    for (keys, words) in keys.chunks(CHUNK_KEYS).zip(words.chunks_mut(CHUNK_KEYS / GROUP)) {
        contains(hash.hash_keys(keys, &mut memory), words);
    }
}

/// Hashes and prefetches each group with `load`, and looks up the group two places before it. Not
/// inlined, so that calls with few keys use little stack.
#[inline(never)]
fn look_up_ahead<K>(
    keys: &[K],
    words: &mut [u64],
    mut load: impl FnMut(&[K], &mut [u64]),
    contains: impl Fn(&[u64], &mut [u64]),
) {
    let mut ring = [[0; GROUP]; GROUPS_AHEAD + 1];
    let mut load = |keys: &[K], group: &mut [u64; GROUP]| load(keys, &mut group[..keys.len()]);
    let mut later = keys.chunks(GROUP);
    later.by_ref().take(GROUPS_AHEAD).zip(&mut ring).for_each(|(keys, group)| load(keys, group));
    for (i, (keys, word)) in keys.chunks(GROUP).zip(words).enumerate() {
        if let Some(keys) = later.next() {
            load(keys, &mut ring[(i + GROUPS_AHEAD) % ring.len()]);
        }
        contains(&ring[i % ring.len()][..keys.len()], core::slice::from_mut(word));
    }
}

/// Error of a lookup whose slice of words for the answers has the wrong length.
///
/// ```
/// use blocked_bloom::{BloomFilter, Filter, KeyHash};
/// let filter = BloomFilter::pass_all(KeyHash::default());
/// let error = filter.contains_hashes_into(&[1, 2, 3], &mut [0; 2]).unwrap_err();
/// assert_eq!((error.words, error.expected), (2, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LengthError {
    /// Length of the slice.
    pub words: usize,
    /// Expected length: one word per 64 keys, rounded up.
    pub expected: usize,
}

/// Checks that there is one word per 64 keys, rounded up. For implementations of
/// [`Filter`](crate::Filter).
///
/// # Errors
///
/// [`LengthError`] if the number of words is different.
#[inline]
pub fn check_words(keys: usize, words: &[u64]) -> Result<(), LengthError> {
    let expected = keys.div_ceil(64);
    if words.len() == expected { Ok(()) } else { Err(LengthError { words: words.len(), expected }) }
}

impl_error!(LengthError;
    Self { words, expected } => (
        "{words} words for the answers, expected {expected}: pass one word per 64 keys"
    ),
);
