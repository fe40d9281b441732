//! Keys of a batch become hashes a group at a time, looked up while later ones are prefetched.

use core::fmt::{self, Display, Formatter};
use core::mem::MaybeUninit;

use crate::bitmask;
use crate::hash::HashKeys;
use crate::kernel::GROUP;

/// Keys that are hashed at a time if nothing is prefetched: 8 KiB of stack.
const CHUNK_KEYS: usize = 1024;

/// Groups between the one that is prefetched and the one that is looked up.
const GROUPS_AHEAD: usize = 2;

/// Looks up keys whose hash is not of a [`KeyHasher`](crate::KeyHasher): `hash` gives it, and
/// `contains` overwrites a word of answers for each 64 hashes that it is given.
///
/// With `prefetch`, which is called with each hash as soon as it is known, a group of 64 keys is
/// looked up once the next two groups are hashed. Without, up to 1,024 keys are hashed, then looked
/// up. If a key panics when it is read, the answers that were not written yet are "maybe".
///
/// # Errors
///
/// [`LengthError`] unless there is one word per 64 keys, rounded up; nothing is written then.
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
            // If a key panics when it is read, what is left says "maybe".
            bitmask::fill_with_hits(words, keys.len());
            // Moved, so that what it uses stays in registers while hashes are written.
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

/// Looks up keys by their hashes; there is one word per 64 keys. With `prefetch`, keys are hashed
/// and prefetched a group at a time, and each group is looked up once the next two are prefetched.
#[inline]
pub(crate) fn look_up<K>(
    keys: &[K],
    words: &mut [u64],
    hash: impl HashKeys<K>,
    prefetch: Option<impl Fn(&[u64])>,
    contains: impl Fn(&[u64], &mut [u64]),
) {
    // If a key panics when it is read, what is left says "maybe".
    if let [word] = &mut *words {
        *word = bitmask::used(keys.len(), 0);
    } else {
        bitmask::fill_with_hits(words, keys.len());
    }
    match (words, prefetch) {
        ([], _) => {}
        (words @ [_], prefetch) => {
            let mut memory = [MaybeUninit::uninit(); GROUP];
            let hashes = hash.hash_keys(keys, &mut memory);
            prefetch.iter().for_each(|prefetch| prefetch(hashes));
            contains(hashes, words);
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

/// Hashes as many keys at a time as fit. Not inlined, so that calls of few keys have little stack.
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

/// Hashes and prefetches each group by `load`, and looks up the one two groups before it. Not
/// inlined, so that calls of few keys have little stack.
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

/// A slice of words for the results of a batch has the wrong length.
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
    /// Words given.
    pub words: usize,
    /// Words needed: one per 64 keys, rounded up.
    pub expected: usize,
}

/// Checks that there is exactly one word per 64 keys, rounded up: for implementations of
/// [`Filter`](crate::Filter).
///
/// # Errors
///
/// [`LengthError`] if there is not.
#[inline]
pub fn check_words(keys: usize, words: &[u64]) -> Result<(), LengthError> {
    let expected = keys.div_ceil(64);
    if words.len() == expected { Ok(()) } else { Err(LengthError { words: words.len(), expected }) }
}

impl Display for LengthError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} words for the results, {} needed: one per 64 keys", self.words, self.expected)
    }
}

impl core::error::Error for LengthError {}
