//! Words of tags that one thread writes while others read them, and the operations on their lines.
//!
//! The module is generic over the type of word and uses nothing else of this crate, so that a model
//! checker can run it with small lines: `tests/loom` includes this file. It chooses every memory
//! order and every order of lines on which a reader relies.

use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

/// A word of lanes, with the lowest lane in the lowest bits. A trait, so that a model checker can
/// substitute its own words.
///
/// **Why a reader never misses a key that is present.** There is one writer, so the states of all
/// words form a sequence. Loads acquire and stores release: a reader that has seen one state never
/// sees an older one in a later load. Its loads therefore return the words of states in ascending
/// order, as if it had looked at each state in turn. Call a lane's rank in the reading order its
/// position, and take a tag with at least one copy in the filter throughout the lookup. When the
/// reader arrives at position `p` without having found a copy, a copy is at `p` or at a later
/// position:
///
/// - At the start, this only says that a copy exists.
/// - When the reader continues from `p`, where it found none, the copy must be at a later position.
/// - Inserting a copy removes none.
/// - [`remove`] empties the lowest position of all copies. If that is before `p`, a copy at `p` or
///   later remains. Otherwise all copies are at `p` or later, and one remains.
///
/// So the reader finds a copy at the last position at the latest. This requires one order of lines
/// for all keys: if two keys share a tag and both lines, the first line of one may be the second of
/// the other, so the order is that of the line numbers. With relaxed loads, or with an order of
/// lines that depends on the key, loom finds an execution in which a reader misses a key
/// (`tests/loom`).
pub(super) trait Word {
    /// Lanes per word: 2 or 4.
    const LANES: usize;
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, word: u64, order: Ordering);
}

/// The lowest bit of every lane (`ONES`), and all bits except the highest of every lane (`LOW`).
const ONES: u64 = 0x0001_0001_0001_0001;
const LOW: u64 = 0x7fff * ONES;

/// Returns the highest bit of every lane that equals `tag`.
#[inline]
fn equal<W: Word>(word: u64, tag: u16) -> u64 {
    let differing = word ^ (u64::from(tag) * ONES);
    // The addition carries into the highest bit of a lane unless its low bits are zero, and never
    // into the next lane.
    !(((differing & LOW) + LOW) | differing | LOW) & (u64::MAX >> (64 - 16 * W::LANES))
}

/// Returns both lines of a key, the one with the lower number first.
#[inline]
fn ascending<W, const N: usize>(lines: &[[W; N]], [first, second]: [u32; 2]) -> [&[W; N]; 2] {
    [first.min(second), first.max(second)].map(|line| &lines[line as usize])
}

/// Returns whether a lane of either line equals `tag`.
#[inline]
pub(super) fn contains<W: Word, const N: usize>(
    lines: &[[W; N]],
    place: [u32; 2],
    tag: u16,
) -> bool {
    let words = ascending(lines, place).into_iter().flatten();
    words.fold(0, |found, word| found | equal::<W>(word.load(Acquire), tag)) != 0
}

/// Writes `tag` into the lowest empty lane of the first line if that has more than `keep_empty`
/// empty lanes, otherwise of the emptier line. Returns false if both are full. Only the writer
/// calls it.
#[inline]
pub(super) fn insert<W: Word, const N: usize>(
    lines: &[[W; N]],
    place: [u32; 2],
    tag: u16,
    keep_empty: u32,
) -> bool {
    let [first, second] = place.map(|line| &lines[line as usize]);
    let empty_lanes = |line: &[W; N]| -> u32 {
        line.iter().map(|word| equal::<W>(word.load(Relaxed), 0).count_ones()).sum()
    };
    let empty = empty_lanes(first);
    let keep = empty > keep_empty || empty >= empty_lanes(second);
    replace(if keep { first } else { second }, 0, tag)
}

/// Empties the lowest lane that equals `tag`, in the line with the lower number if it has one.
/// Returns false if neither line has one. Only the writer calls it.
#[inline]
pub(super) fn remove<W: Word, const N: usize>(lines: &[[W; N]], place: [u32; 2], tag: u16) -> bool {
    replace(ascending(lines, place).into_iter().flatten(), tag, 0)
}

/// Replaces the first occurrence of `from` by `to`: in the lowest lane of the first word that has
/// it. Returns false if no word has it.
#[inline]
fn replace<'a, W: Word + 'a>(words: impl IntoIterator<Item = &'a W>, from: u16, to: u16) -> bool {
    for word in words {
        // Relaxed suffices: only this thread writes.
        let old = word.load(Relaxed);
        let lanes = equal::<W>(old, from);
        if lanes != 0 {
            let lane = lanes.trailing_zeros() / 16 * 16;
            word.store(old ^ (u64::from(from ^ to) << lane), Release);
            return true;
        }
    }
    false
}
