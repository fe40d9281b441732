//! Batches for filters whose keys the core does not hash, and answers in words of 64 bits where no kernel writes them.

/// Keys that are hashed at a time: 8 KiB of stack.
#[cfg(any(feature = "parquet", feature = "rocksdb"))]
const AT_ONCE: usize = 1024;

/// Writes "maybe" for this many keys, and zeros past the last.
pub(crate) fn fill_with_maybe(words: &mut [u64], keys: usize) {
    for (i, word) in words.iter_mut().enumerate() {
        *word = match keys.saturating_sub(64 * i) {
            used @ 0..64 => (1 << used) - 1,
            _ => u64::MAX,
        };
    }
}

/// Hashes keys and looks up their hashes, as many at a time as there is space for hashes. There is one word per 64 keys.
#[cfg(any(feature = "parquet", feature = "rocksdb"))]
#[inline]
pub(crate) fn look_up<'k, K>(
    keys: &'k [K],
    words: &mut [u64],
    hash: impl Fn(&'k K) -> u64,
    contains: impl Fn(&[u64], &mut [u64]),
) {
    // If a key panics when it is read, what is left says "maybe".
    fill_with_maybe(words, keys.len());
    let some = |keys: &'k [K], hashes: &mut [u64], words: &mut [u64]| {
        hashes.iter_mut().zip(keys).for_each(|(to, key)| *to = hash(key));
        contains(hashes, words);
    };
    // Clearing space for more costs as much as looking up a few keys.
    match keys.len() {
        few @ 0..=8 => return some(keys, &mut [0; 8][..few], words),
        few @ 9..=64 => return some(keys, &mut [0; 64][..few], words),
        _ => {}
    }
    let mut hashes = [0; AT_ONCE];
    for (keys, words) in keys.chunks(AT_ONCE).zip(words.chunks_mut(AT_ONCE / 64)) {
        some(keys, &mut hashes[..keys.len()], words);
    }
}

/// Keys that are hashed and prefetched at a time.
#[cfg(any(feature = "parquet", feature = "rocksdb"))]
const GROUP: usize = 64;

/// Groups between the one that is hashed and the one that is looked up.
#[cfg(any(feature = "parquet", feature = "rocksdb"))]
const GROUPS_AHEAD: usize = 2;

/// [`look_up`], with the memory of later keys on its way, if `prefetch` takes their hashes, while others are hashed. `contains` prefetches no more:
/// with both, Parquet's filters took up to 1.4 of the time. RocksDB's Ribbon blocks do not gain even so: what one equation reads takes as long
/// to find as a batch takes to test it, 1.3 to 1.8 of the time.
#[cfg(any(feature = "parquet", feature = "rocksdb"))]
#[inline]
pub(crate) fn look_up_ahead<'k, K>(
    keys: &'k [K],
    words: &mut [u64],
    hash: impl Fn(&'k K) -> u64,
    prefetch: Option<impl Fn(u64)>,
    contains: impl Fn(&[u64], &mut [u64]),
) {
    // If a key panics when it is read, what is left says "maybe".
    fill_with_maybe(words, keys.len());
    let load = |keys: &'k [K], hashes: &mut [u64]| {
        for (key, to) in keys.iter().zip(hashes) {
            *to = hash(key);
            prefetch.iter().for_each(|prefetch| prefetch(*to));
        }
    };
    let some = |hashes: &mut [u64], words: &mut [u64]| {
        load(keys, hashes);
        contains(hashes, words);
    };
    // Clearing space for more costs as much as looking up a few keys.
    match keys.len() {
        few @ 0..=8 => return some(&mut [0; 8][..few], words),
        few @ 9..=GROUP => return some(&mut [0; GROUP][..few], words),
        _ => {}
    }
    let mut ring = [[0; GROUP]; GROUPS_AHEAD + 1];
    let mut later = keys.chunks(GROUP);
    later.by_ref().take(GROUPS_AHEAD).zip(&mut ring).for_each(|(keys, group)| load(keys, group));
    for (i, (keys, word)) in keys.chunks(GROUP).zip(words).enumerate() {
        if let Some(keys) = later.next() {
            load(keys, &mut ring[(i + GROUPS_AHEAD) % ring.len()]);
        }
        contains(&ring[i % ring.len()][..keys.len()], core::slice::from_mut(word));
    }
}
