//! What all batches have in common: places of eight keys at a time, their lines prefetched some iterations before they are needed, and
//! what is done with the lanes that were found. Comparing lanes is each instruction set's own.
//!
//! All functions are always inlined, so that the closures are compiled for the instruction set of the caller.

use core::ops::Deref;

use blocked_bloom::Block;

use crate::tags::{KEEP_EMPTY, LANES, Place};

/// Keys an iteration: their hashes fill an AVX-512 register.
pub(super) const KEYS: usize = 8;

/// Iterations between the prefetch of a line and its use: 32 keys, 64 lines, as many as the core prefetches. Twice as many cost additions
/// to a filter of a million keys 40 % more and queries 3 %; at 100 million keys both take the same, and half as many make removals from a
/// filter of a million keys 30 % slower (AMD EPYC, Zen 5).
const DISTANCE: usize = 4;

/// The places of eight keys. On boundaries of cache lines, since a load waits for a store that crosses one.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Places {
    pub(super) first: [u32; KEYS],
    pub(super) second: [u32; KEYS],
    /// Four times in each word, as the lanes are compared: a load that broadcasts takes 64 bits as easily as 16 only with help.
    pub(super) tags: [u64; KEYS],
}

impl Places {
    const NONE: Places = Places { first: [0; KEYS], second: [0; KEYS], tags: [0; KEYS] };

    /// By the scalar definition.
    #[inline(always)]
    pub(super) fn scalar(hashes: &[u64; KEYS], lines: u32) -> Self {
        let mut places = Places::NONE;
        for (i, &hash) in hashes.iter().enumerate() {
            let place = Place::of(hash, lines);
            (places.first[i], places.second[i]) = (place.first, place.second);
            places.tags[i] = u64::from(place.tag) * 0x0001_0001_0001_0001;
        }
        places
    }
}

/// The hashes by eight; where fewer are left, the last of them again. With how many are real.
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

/// Calls `visit` with the places of every eight hashes, the index of the first, and how many are real, until it returns false. The lines of
/// later hashes were prefetched, `AHEAD` cache lines for each line.
#[inline(always)]
fn for_each_eight<const AHEAD: usize, L: Deref<Target = [Block]>>(
    mut lines: L,
    hashes: &[u64],
    places: impl Fn(&[u64; KEYS]) -> Places,
    mut visit: impl FnMut(&mut L, &Places, usize, usize) -> bool,
) {
    if AHEAD == 0 {
        for at in (0..hashes.len()).step_by(KEYS) {
            let (keys, real) = eight(hashes, at);
            if !visit(&mut lines, &places(&keys), at, real) {
                return;
            }
        }
        return;
    }
    let mut ring = [Places::NONE; DISTANCE];
    let mut prepared = 0;
    let mut prepare = |lines: &L, slot: &mut Places| {
        if prepared < hashes.len() {
            *slot = places(&eight(hashes, prepared).0);
            prefetch::<AHEAD>(lines, slot);
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
fn prefetch<const AHEAD: usize>(lines: &[Block], places: &Places) {
    let bytes = lines.as_flattened();
    for (&first, &second) in places.first.iter().zip(&places.second) {
        for line in [first, second] {
            let start = line as usize * size_of::<Block>();
            blocked_bloom::prefetch(bytes, start);
            if AHEAD > 1 {
                blocked_bloom::prefetch(bytes, start + size_of::<Block>() - 1);
            }
        }
    }
}

/// Tests every hash: `either(first, second, tags)` says whether a lane of one of both lines equals the tag.
#[inline(always)]
pub(super) fn contains<const AHEAD: usize>(
    lines: &[Block],
    hashes: &[u64],
    hits: &mut [u64],
    places: impl Fn(&[u64; KEYS]) -> Places,
    either: impl Fn(&Block, &Block, u64) -> bool,
) {
    hits.fill(0);
    for_each_eight::<AHEAD, _>(lines, hashes, places, |lines, places, at, real| {
        let mut bits = 0;
        for i in 0..KEYS {
            let first = &lines[places.first[i] as usize];
            let second = &lines[places.second[i] as usize];
            bits |= u64::from(either(first, second, places.tags[i])) << i;
        }
        hits[at / 64] |= (bits & (0xff >> (KEYS - real))) << (at % 64);
        true
    });
}

/// Adds the hashes in order up to the first that both lines are full for, and returns how many. `equal(line, tags)` gives a bit for each
/// lane, set if it equals the tag.
#[inline(always)]
pub(super) fn insert<const AHEAD: usize>(
    lines: &mut [Block],
    hashes: &[u64],
    places: impl Fn(&[u64; KEYS]) -> Places,
    equal: impl Fn(&Block, u64) -> u32,
) -> usize {
    let mut inserted = 0;
    for_each_eight::<AHEAD, _>(lines, hashes, places, |lines, places, _, real| {
        for i in 0..real {
            let [first, second] = [places.first[i] as usize, places.second[i] as usize];
            // Without a branch: where the first line has about 24 tags, none could be predicted, and in a filter at its load that is most of
            // the time. Additions to one of a million keys take 3.6 ns with AVX2 where a branch takes 10; to an empty one that fits the
            // cache 3.8 where a branch takes 2.9 (AMD EPYC, Zen 5).
            let (in_first, in_second) = (equal(&lines[first], 0), equal(&lines[second], 0));
            let free = in_first.count_ones();
            let keep = (free > KEEP_EMPTY) | (free >= in_second.count_ones());
            let line = core::hint::select_unpredictable(keep, first, second);
            let empty = core::hint::select_unpredictable(keep, in_first, in_second);
            if empty == 0 {
                return false;
            }
            set(&mut lines[line], empty.trailing_zeros(), places.tags[i] as u16);
            inserted += 1;
        }
        true
    });
    inserted
}

/// Removes a copy of each hash in order, writes which were there, and returns how many.
#[inline(always)]
pub(super) fn remove<const AHEAD: usize>(
    lines: &mut [Block],
    hashes: &[u64],
    found: &mut [u64],
    places: impl Fn(&[u64; KEYS]) -> Places,
    equal: impl Fn(&Block, u64) -> u32,
) -> usize {
    found.fill(0);
    let mut removed = 0;
    for_each_eight::<AHEAD, _>(lines, hashes, places, |lines, places, at, real| {
        for i in 0..real {
            let [low, high] = [
                places.first[i].min(places.second[i]) as usize,
                places.first[i].max(places.second[i]) as usize,
            ];
            let in_low = equal(&lines[low], places.tags[i]);
            let in_high = equal(&lines[high], places.tags[i]);
            let lanes = u64::from(in_low) | u64::from(in_high) << LANES;
            if lanes == 0 {
                continue;
            }
            let line = if in_low != 0 { low } else { high };
            set(&mut lines[line], lanes.trailing_zeros() % LANES as u32, 0);
            found[at / 64] |= 1 << (at % 64 + i);
            removed += 1;
        }
        true
    });
    removed
}

/// Writes a lane, 0 to 31.
#[inline(always)]
fn set(line: &mut Block, lane: u32, tag: u16) {
    line.as_chunks_mut().0[lane as usize % LANES] = tag.to_le_bytes();
}
