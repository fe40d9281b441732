//! The probe scheme, one key at a time. It runs everywhere and is the reference for the other
//! kernels.

use blocked_bloom::InstructionSet;

use super::{Table, for_each_block, for_each_group};
use crate::split_block::{self, SplitBlock};

pub(super) const TABLE: Table = Table {
    instructions: InstructionSet::Scalar,
    contains_one: split_block::contains,
    insert_one: split_block::insert,
    contains: [contains::<0>, contains::<1>, contains::<2>],
    insert: [insert::<0>, insert::<1>],
};

fn contains<const LINES: usize>(blocks: &[SplitBlock], hashes: &[u64], hits: &mut [u64]) {
    let count = blocks.len() as u32;
    let test = |&[hash]: &[u64; 1]| {
        let block = &blocks[split_block::block_index(hash, count) as usize];
        u64::from(split_block::contains(block, hash))
    };
    // One key at a time leaves no rest.
    for_each_group::<1, LINES>(blocks, hashes, hits, test);
}

fn insert<const LINES: usize>(blocks: &mut [SplitBlock], hashes: &[u64]) {
    for_each_block::<LINES>(blocks, hashes, |cell, hash| {
        let mut block = cell.get();
        split_block::insert(&mut block, hash);
        cell.set(block);
    });
}
