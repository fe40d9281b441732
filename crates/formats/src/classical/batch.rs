//! Lookups of batches in filters that outgrow the cache: the order in which cache lines are
//! prefetched and tested.

use super::bit_array::{BitArray, PREFETCH_THRESHOLD};
use super::scheme::{Scheme, Walk};

/// Keys that pass through a stage together.
const GROUP: usize = 32;

/// A key that is being looked up.
#[derive(Clone, Copy, Default)]
struct Key {
    /// Its place in the batch.
    index: usize,
    /// The positions of the first two probes.
    first: [u64; 2],
    /// The other probes.
    rest: Walk,
}

/// A group of keys, or those of it that are not ruled out yet.
#[derive(Default)]
struct Group {
    keys: [Key; GROUP],
    len: usize,
}

impl Group {
    fn keys(&self) -> &[Key] {
        &self.keys[..self.len]
    }

    /// Replaces the keys by the next of the batch, and prefetches the first lines of each.
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

    /// Keeps the keys whose first bits are both set, and prefetches the other lines of each.
    #[inline]
    fn rule_out<S: Scheme>(&mut self, array: BitArray<'_, S>) {
        let mut kept = 0;
        for i in 0..self.len {
            let key = self.keys[i];
            self.keys[kept] = key;
            // No branch: whether a bit is set cannot be predicted.
            kept += usize::from(array.is_set(key.first[0]) & array.is_set(key.first[1]));
        }
        self.len = kept;
        for key in self.keys() {
            array.rest(key.rest).for_each(|position| array.prefetch(position));
        }
    }

    /// Tests the other bits of every key, and writes the answers of those that may be present.
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

/// [`contains_all`] of a filter that outgrows the cache.
///
/// For absent keys half of all probes find a zero, and a line that is prefetched in vain costs as
/// much as one that is needed. So a key's first two lines are prefetched when it is hashed; the
/// others one group later, if both bits are set, and these are tested another group later.
/// Prefetching all lines at once takes twice as long for absent keys, and no less for present ones.
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
