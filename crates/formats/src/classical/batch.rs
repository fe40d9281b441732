//! Batch lookups in filters that exceed the cache: the order in which cache lines are prefetched
//! and tested.

use super::bit_array::{BitArray, PREFETCH_THRESHOLD};
use super::scheme::{Scheme, Walk};

/// Keys that pass a stage together.
const GROUP: usize = 32;

/// A key that is being looked up.
#[derive(Clone, Copy, Default)]
struct Key {
    /// Its index in the batch.
    index: usize,
    /// The positions of the first two probes.
    first: [u64; 2],
    /// The remaining probes.
    rest: Walk,
}

/// The keys of a group that are not ruled out yet.
#[derive(Default)]
struct Group {
    keys: [Key; GROUP],
    len: usize,
}

impl Group {
    fn keys(&self) -> &[Key] {
        &self.keys[..self.len]
    }

    /// Replaces the keys by the next ones of the batch, and prefetches the first lines of each.
    #[inline]
    fn fill<S: Scheme>(
        &mut self,
        array: BitArray<'_, S>,
        hashes: &mut impl Iterator<Item = (usize, S::Hash)>,
    ) {
        self.len = 0;
        for (key, (index, hash)) in self.keys.iter_mut().zip(hashes) {
            let mut rest = array.walk(hash);
            let first = array.first(&mut rest);
            first.into_iter().for_each(|position| array.prefetch(position));
            *key = Key { index, first, rest };
            self.len += 1;
        }
    }

    /// Keeps the keys whose first two bits are set, and prefetches the other lines of each.
    #[inline]
    fn rule_out<S: Scheme>(&mut self, array: BitArray<'_, S>) {
        let mut kept = 0;
        for i in 0..self.len {
            let key = self.keys[i];
            self.keys[kept] = key;
            // Without a branch, which could not be predicted.
            kept += usize::from(array.is_set(key.first[0]) & array.is_set(key.first[1]));
        }
        self.len = kept;
        for key in self.keys() {
            array.rest(key.rest).for_each(|position| array.prefetch(position));
        }
    }

    /// Tests the other bits of every key, and sets the answers of keys that may be present.
    #[inline]
    fn finish<S: Scheme>(&self, array: BitArray<'_, S>, words: &mut [u64]) {
        for key in self.keys() {
            let hit = array.rest(key.rest).all(|position| array.is_set(position));
            words[key.index / 64] |= u64::from(hit) << (key.index % 64);
        }
    }
}

/// Writes bit `i % 64` of `words[i / 64]` for hash `i`; there is one word per 64 hashes.
#[inline]
pub(super) fn contains_all<S: Scheme>(
    array: BitArray<'_, S>,
    mut hashes: impl Iterator<Item = S::Hash>,
    words: &mut [u64],
) {
    if array.bytes().len() as u64 > PREFETCH_THRESHOLD {
        return contains_ahead(array, hashes, words);
    }
    for word in words {
        let answers = hashes.by_ref().take(64).map(|hash| array.contains(hash));
        *word = answers.enumerate().fold(0, |word, (i, hit)| word | u64::from(hit) << i);
    }
}

/// Like [`contains_all`], for filters that exceed the cache.
///
/// Half of all probes for absent keys find a zero, and an unnecessary prefetch costs as much as a
/// necessary one. So a key's first two lines are prefetched when it is hashed. If both bits are
/// set, the other lines are prefetched one group later, and tested another group later. Prefetching
/// all lines at once takes twice as much time for absent keys, and no less for present ones.
fn contains_ahead<S: Scheme>(
    array: BitArray<'_, S>,
    hashes: impl Iterator<Item = S::Hash>,
    words: &mut [u64],
) {
    words.fill(0);
    let mut hashes = hashes.enumerate();
    let mut groups: [Group; 3] = Default::default();
    let [next, prefetched, survivors] = &mut groups;
    let (mut next, mut prefetched, mut survivors) = (next, prefetched, survivors);
    loop {
        next.fill(array, &mut hashes);
        prefetched.rule_out(array);
        survivors.finish(array, words);
        if next.len + prefetched.len == 0 {
            return;
        }
        (next, prefetched, survivors) = (survivors, next, prefetched);
    }
}
