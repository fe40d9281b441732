//! The tag scheme, one key at a time. It runs everywhere, does not prefetch, and is the reference
//! for the other kernels.

use blocked_bloom::Block;

use super::Table;
use crate::tags;

pub(super) const TABLE: Table =
    Table { contains: [contains; 3], insert: [insert; 2], remove: [remove; 2] };

fn contains(lines: &[Block], hashes: &[u64], hits: &mut [u64]) {
    for (hashes, word) in hashes.chunks(64).zip(hits) {
        let bit = |(i, &hash)| u64::from(tags::contains(lines, hash)) << i;
        *word = hashes.iter().enumerate().map(bit).sum();
    }
}

fn insert(lines: &mut [Block], hashes: &[u64]) -> usize {
    hashes.iter().take_while(|&&hash| tags::insert(lines, hash)).count()
}

fn remove(lines: &mut [Block], hashes: &[u64], found: &mut [u64]) -> usize {
    let mut removed = 0;
    for (hashes, word) in hashes.chunks(64).zip(found) {
        *word = 0;
        for (i, &hash) in hashes.iter().enumerate() {
            let was_there = tags::remove(lines, hash);
            *word |= u64::from(was_there) << i;
            removed += usize::from(was_there);
        }
    }
    removed
}
