//! The loops that all kernels share: compute the places of eight keys, prefetch their lines some
//! iterations in advance, and act on the lanes found. Each instruction set compares lanes itself.
//!
//! All functions are always inlined, so that the closures are compiled for the caller's instruction
//! set.

use core::hint::select_unpredictable;
use core::ops::Deref;

use blocked_bloom::Block;

use crate::tags::{KEEP_EMPTY, LANES, Place};

/// Keys per iteration: their hashes fill an AVX-512 register.
pub(super) const KEYS: usize = 8;

/// Iterations between the prefetch of a line and its use: 32 keys, or 64 lines, as many as the core
/// prefetches. Twice the distance makes insertions into a filter of a million keys 40 % slower and
/// queries 3 %, and changes nothing at 100 million keys. Half the distance makes removals from a
/// filter of a million keys 30 % slower (AMD EPYC, Zen 5).
///
/// Places are kept in a ring, since both the prefetch and the use need them. The core's
/// `PrefetchAhead` takes hashes, computes each place twice, and works 64 keys ahead. Above a
/// million keys it takes 1.1 to 1.2 times the time for queries and 1.1 to 1.3 times for insertions
/// and removals (Zen 5, AVX2 and AVX-512).
const DISTANCE: usize = 4;

/// The places of eight keys. Aligned to cache lines, since a load stalls on a store that crosses a
/// cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Places {
    pub(super) first: [u32; KEYS],
    pub(super) second: [u32; KEYS],
    /// Each tag four times in a word, because one load can broadcast 64 bits but not 16.
    pub(super) tags: [u64; KEYS],
}

impl Places {
    const EMPTY: Places = Places { first: [0; KEYS], second: [0; KEYS], tags: [0; KEYS] };

    /// Computes the places with the scalar definition.
    #[inline(always)]
    pub(super) fn scalar(hashes: &[u64; KEYS], lines: u32) -> Self {
        let mut places = Places::EMPTY;
        for (i, &hash) in hashes.iter().enumerate() {
            let place = Place::new(hash, lines);
            (places.first[i], places.second[i]) = (place.first, place.second);
            places.tags[i] = u64::from(place.tag) * 0x0001_0001_0001_0001;
        }
        places
    }
}

/// Returns eight hashes beginning at `start`, and how many of them are real. If fewer than eight
/// are left, the last hash is repeated.
#[inline(always)]
fn eight(hashes: &[u64], start: usize) -> ([u64; KEYS], usize) {
    let rest = &hashes[start..];
    if let Some(keys) = rest.first_chunk() {
        return (*keys, KEYS);
    }
    let mut keys = [rest[rest.len() - 1]; KEYS];
    keys[..rest.len()].copy_from_slice(rest);
    (keys, rest.len())
}

/// Calls `visit` for every eight hashes with their places, the index of the first, and how many are
/// real, until it returns false. Prefetches the lines of later hashes: `LINES` cache lines per
/// line.
#[inline(always)]
pub(super) fn for_each_eight<const LINES: usize, L: Deref<Target = [Block]>>(
    mut lines: L,
    hashes: &[u64],
    places: impl Fn(&[u64; KEYS], u32) -> Places,
    mut visit: impl FnMut(&mut L, &Places, usize, usize) -> bool,
) {
    let count = lines.len() as u32;
    if LINES == 0 {
        for at in (0..hashes.len()).step_by(KEYS) {
            let (keys, real) = eight(hashes, at);
            if !visit(&mut lines, &places(&keys, count), at, real) {
                return;
            }
        }
        return;
    }
    let mut ring = [Places::EMPTY; DISTANCE];
    let mut prepared = 0;
    let mut prepare = |lines: &L, slot: &mut Places| {
        if prepared < hashes.len() {
            *slot = places(&eight(hashes, prepared).0, count);
            prefetch::<LINES>(lines, slot);
            prepared += KEYS;
        }
    };
    for slot in &mut ring {
        prepare(&lines, slot);
    }
    for at in (0..hashes.len()).step_by(KEYS) {
        let slot = &mut ring[at / KEYS % DISTANCE];
        let current = *slot;
        prepare(&lines, slot);
        if !visit(&mut lines, &current, at, KEYS.min(hashes.len() - at)) {
            return;
        }
    }
}

#[inline(always)]
fn prefetch<const LINES: usize>(lines: &[Block], places: &Places) {
    for (&first, &second) in places.first.iter().zip(&places.second) {
        for line in [first, second] {
            let start = line as usize * size_of::<Block>();
            crate::prefetch(lines, start);
            if LINES > 1 {
                crate::prefetch(lines, start + size_of::<Block>() - 1);
            }
        }
    }
}

/// Tests every hash. `either(first, second, tags)` returns whether a lane of either line equals the
/// tag.
#[inline(always)]
pub(super) fn contains<const LINES: usize>(
    lines: &[Block],
    hashes: &[u64],
    hits: &mut [u64],
    places: impl Fn(&[u64; KEYS], u32) -> Places,
    either: impl Fn(&Block, &Block, u64) -> bool,
) {
    hits.fill(0);
    for_each_eight::<LINES, _>(lines, hashes, places, |lines, places, at, real| {
        let test = |i: usize| {
            let first = &lines[places.first[i] as usize];
            let second = &lines[places.second[i] as usize];
            u64::from(either(first, second, places.tags[i])) << i
        };
        let mut bits = 0;
        // The compiler unrolls a loop of known length.
        if real == KEYS {
            for i in 0..KEYS {
                bits |= test(i);
            }
        } else {
            for i in 0..real {
                bits |= test(i);
            }
        }
        hits[at / 64] |= bits << (at % 64);
        true
    });
}

/// Inserts hashes in order until both lines of a hash are full, and returns their number.
/// `equal(line, tags)` returns one bit per lane, set if the lane equals the tag.
#[inline(always)]
pub(super) fn insert<const LINES: usize>(
    lines: &mut [Block],
    hashes: &[u64],
    places: impl Fn(&[u64; KEYS], u32) -> Places,
    equal: impl Fn(&Block, u64) -> u32,
) -> usize {
    let mut inserted = 0;
    for_each_eight::<LINES, _>(lines, hashes, places, |lines, places, _, real| {
        for i in 0..real {
            let place = [places.first[i], places.second[i]];
            if !insert_one(lines, place, places.tags[i], &equal) {
                return false;
            }
            inserted += 1;
        }
        true
    });
    inserted
}

/// Inserts a tag into its first or its second line. Returns false if both are full.
#[inline(always)]
pub(super) fn insert_one(
    lines: &mut [Block],
    [first, second]: [u32; 2],
    tags: u64,
    equal: impl Fn(&Block, u64) -> u32,
) -> bool {
    let first_empty = equal(&lines[first as usize], 0);
    let second_empty = equal(&lines[second as usize], 0);
    // Without a branch: when the first line has about 24 tags, which is usual in a full filter, the
    // branch cannot be predicted. Insertions into a filter of a million keys take 3.6 ns with AVX2,
    // and 10 ns with a branch. Into an empty filter that fits the cache they take 3.8 ns, and 2.9
    // ns with a branch (AMD EPYC, Zen 5). Prefetching the second line only if the first is full
    // took 4.5 ns.
    let free = first_empty.count_ones();
    let keep = (free > KEEP_EMPTY) | (free >= second_empty.count_ones());
    let line = select_unpredictable(keep, first, second);
    let empty = select_unpredictable(keep, first_empty, second_empty);
    if empty != 0 {
        set(&mut lines[line as usize], empty.trailing_zeros(), tags as u16);
    }
    empty != 0
}

/// Removes one copy of each hash in order, writes which were present, and returns their number.
#[inline(always)]
pub(super) fn remove<const LINES: usize>(
    lines: &mut [Block],
    hashes: &[u64],
    found: &mut [u64],
    places: impl Fn(&[u64; KEYS], u32) -> Places,
    equal: impl Fn(&Block, u64) -> u32,
) -> usize {
    found.fill(0);
    let mut removed = 0;
    for_each_eight::<LINES, _>(lines, hashes, places, |lines, places, at, real| {
        for i in 0..real {
            let place = [places.first[i], places.second[i]];
            if remove_one(lines, place, places.tags[i], &equal) {
                found[at / 64] |= 1 << (at % 64 + i);
                removed += 1;
            }
        }
        true
    });
    removed
}

/// Removes one copy of a tag from the line with the lower number, or else from the other line.
/// Returns false if neither contains it.
#[inline(always)]
pub(super) fn remove_one(
    lines: &mut [Block],
    [first, second]: [u32; 2],
    tags: u64,
    equal: impl Fn(&Block, u64) -> u32,
) -> bool {
    let [low, high] = [first.min(second) as usize, first.max(second) as usize];
    let low_equal = equal(&lines[low], tags);
    let lanes = u64::from(low_equal) | u64::from(equal(&lines[high], tags)) << LANES;
    if lanes == 0 {
        return false;
    }
    let line = if low_equal != 0 { low } else { high };
    set(&mut lines[line], lanes.trailing_zeros() % LANES as u32, 0);
    true
}

/// Writes lane 0 to 31.
#[inline(always)]
fn set(line: &mut Block, lane: u32, tag: u16) {
    line.as_chunks_mut().0[lane as usize % LANES] = tag.to_le_bytes();
}
