//! Plain Rust without a branch that depends on a lane. The compiler vectorises it with the target's
//! baseline: eight lanes per register with SSE2 and WebAssembly, otherwise four lanes per word.

use blocked_bloom::Block;

use super::Table;
use super::driver::{self, Places};
use crate::tags::Place;

pub(super) const TABLE: Table = Table {
    contains: [contains::<0>, contains::<1>, contains::<2>],
    insert: [insert::<0>, insert::<1>],
    remove: [remove::<0>, remove::<1>],
};

fn contains<const LINES: usize>(lines: &[Block], hashes: &[u64], hits: &mut [u64]) {
    ran!("portable");
    driver::contains::<LINES>(lines, hashes, hits, Places::scalar, contains_tag);
}

fn insert<const LINES: usize>(lines: &mut [Block], hashes: &[u64]) -> usize {
    ran!("portable");
    driver::insert::<LINES>(lines, hashes, Places::scalar, equal)
}

fn remove<const LINES: usize>(lines: &mut [Block], hashes: &[u64], found: &mut [u64]) -> usize {
    ran!("portable");
    driver::remove::<LINES>(lines, hashes, found, Places::scalar, equal)
}

/// Returns whether a lane of one of the hash's lines equals its tag, or there are no lines.
#[inline]
pub(crate) fn contains_one(lines: &[Block], hash: u64) -> bool {
    let Place { first, second, tag } = Place::new(hash, lines.len() as u32);
    match (lines.get(first as usize), lines.get(second as usize)) {
        (Some(first), Some(second)) => contains_tag(first, second, tag.into()),
        _ => true,
    }
}

/// Inserts the hash. Returns false if both lines are full.
#[inline]
pub(crate) fn insert_one(lines: &mut [Block], hash: u64) -> bool {
    let Place { first, second, tag } = Place::new(hash, lines.len() as u32);
    driver::insert_one(lines, [first, second], tag.into(), equal)
}

/// Removes one copy of the hash. Returns false if it is absent.
#[inline]
pub(crate) fn remove_one(lines: &mut [Block], hash: u64) -> bool {
    let Place { first, second, tag } = Place::new(hash, lines.len() as u32);
    driver::remove_one(lines, [first, second], tag.into(), equal)
}

#[inline(always)]
fn contains_tag(first: &Block, second: &Block, tags: u64) -> bool {
    let (first, second) = (first.as_chunks().0, second.as_chunks().0);
    let lanes = first.iter().zip(second);
    // All ones in each equal lane.
    lanes.fold(0_u16, |any, (&first, &second)| {
        let is = |lane| u16::from(u16::from_le_bytes(lane) == tags as u16).wrapping_neg();
        any | is(first) | is(second)
    }) != 0
}

/// Returns one bit per lane, set if the lane equals the tag.
#[inline(always)]
fn equal(line: &Block, tags: u64) -> u32 {
    let (lanes, _) = line.as_chunks();
    let mut bits = 0;
    for (i, &lane) in lanes.iter().enumerate() {
        bits |= u32::from(u16::from_le_bytes(lane) == tags as u16) << i;
    }
    bits
}
