//! Words of tags, which one thread writes while others read them, and the operations on lines of
//! them.
//!
//! Generic over the word's type, and uses nothing else of this crate, so that a model checker can
//! run it with small lines: `tests/loom` includes this file. Every order that a reader relies on,
//! of memory and of lines, is chosen here.

use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

/// A word of lanes, the lowest lane in the lowest bits. A trait, so that a model checker's words
/// can stand in for the machine's.
///
/// **Why a reader misses no key that is there.** There is one writer, so the states of all words
/// are a sequence. Readers' loads acquire and stores release: a reader that has seen one state
/// never sees an older one in a later load, and its loads, one word after the other, are the words
/// of states in ascending order, as if it had looked at each in turn. Call a lane's place in that
/// order its position, and take a tag of which at least one copy is in the filter throughout the
/// lookup. When the reader has come to position `p` without having found a copy, there is one at
/// `p` or behind it:
///
/// - At the start this says that a copy is somewhere.
/// - When the reader goes on from `p`, where it found none, the copy at `p` or behind is behind
///   `p`.
/// - A copy that is added takes none away.
/// - [`remove`] empties the lowest position of all copies. If that is before `p`, a copy at `p` or
///   behind stays; if not, all copies are at `p` or behind, and one stays.
///
/// So the reader finds a copy at the last position at the latest. This needs one order of lines for
/// all keys: of two keys that share a tag and both lines, the first line of one may be the second
/// of the other, so the order is that of the lines' numbers. With relaxed loads, or an order of
/// lines that depends on the key, loom finds an execution in which a reader misses a key
/// (`tests/loom`).
pub(super) trait Word {
    /// Lanes of a word: 2 or 4.
    const LANES: usize;
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, word: u64, order: Ordering);
}

/// A one in the lowest bit of every lane, and all but its highest.
const ONES: u64 = 0x0001_0001_0001_0001;
const LOW: u64 = 0x7fff * ONES;

/// The highest bit of every lane that equals `tag`.
#[inline]
fn equal<W: Word>(word: u64, tag: u16) -> u64 {
    let differing = word ^ (u64::from(tag) * ONES);
    // Adding carries into the highest bit of a lane unless its low bits are zero, and never out of
    // the lane.
    !(((differing & LOW) + LOW) | differing | LOW) & (u64::MAX >> (64 - 16 * W::LANES))
}

/// Both lines of a key, the one with the lower number first.
#[inline]
fn ascending<W, const N: usize>(lines: &[[W; N]], [first, second]: [u32; 2]) -> [&[W; N]; 2] {
    [first.min(second), first.max(second)].map(|line| &lines[line as usize])
}

/// Whether a lane of one of both lines equals `tag`.
#[inline]
pub(super) fn contains<W: Word, const N: usize>(
    lines: &[[W; N]],
    place: [u32; 2],
    tag: u16,
) -> bool {
    let words = ascending(lines, place).into_iter().flatten();
    words.fold(0, |found, word| found | equal::<W>(word.load(Acquire), tag)) != 0
}

/// Puts `tag` into the lowest empty lane of the first line if that has more than `keep_empty` empty
/// lanes, else of the emptier line. False if there is none. Only the writer calls it.
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

/// Empties the lowest lane that equals `tag`, of the line with the lower number if it has one.
/// False if neither has. Only the writer calls it.
#[inline]
pub(super) fn remove<W: Word, const N: usize>(lines: &[[W; N]], place: [u32; 2], tag: u16) -> bool {
    replace(ascending(lines, place).into_iter().flatten(), tag, 0)
}

/// Replaces `from` in the lowest lane that has it, of the first word that does, by `to`. False if
/// none has.
#[inline]
fn replace<'a, W: Word + 'a>(words: impl IntoIterator<Item = &'a W>, from: u16, to: u16) -> bool {
    for word in words {
        // Nobody else writes.
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
