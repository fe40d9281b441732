//! Filling a filter with several threads, in the caller's rayon pool.
//!
//! The block index is monotone in the low half of a hash, so cuts of the block array are cuts of the hashes: each chunk is
//! reordered by cut, and one task per cut inserts into blocks that no other task holds. No atomics, no locks, and the same
//! bytes at any thread count, since OR-ing bits commutes. This file refuses `unsafe`.

use alloc::vec::Vec;
use rayon::prelude::*;

use crate::filter::BloomFilter;
use crate::kernel::Tile;
use crate::probe;

/// Hashes below which one thread is as fast as two: up to there the filter fits the last-level cache, and reordering costs what
/// the second thread saves.
const SEQUENTIAL_BELOW: usize = 1 << 22;

/// Cuts per thread, so that a thread that is late costs little.
const CUTS_PER_THREAD: usize = 4;

/// Most blocks in a cut: 256 KiB, so that a task's blocks stay in its core's cache.
const MAX_CUT_BLOCKS: usize = 1 << 12;

/// Inserts every hash of the chunks.
pub(crate) fn insert_chunks(filter: &mut BloomFilter, chunks: Vec<Vec<u64>>) {
    let hashes = chunks.iter().map(Vec::len).sum::<usize>();
    let threads = rayon::current_num_threads();
    if threads > 1 && hashes >= SEQUENTIAL_BELOW {
        insert_by_cut(filter, chunks, threads * CUTS_PER_THREAD);
    } else {
        for chunk in &chunks {
            filter.insert_hashes(chunk);
        }
    }
}

/// Inserts every hash of the chunks, in about `tasks` tasks or more.
fn insert_by_cut(filter: &mut BloomFilter, mut chunks: Vec<Vec<u64>>, tasks: usize) {
    filter.count(chunks.iter().map(|chunk| chunk.len() as u64).sum());
    let (kernel, probes) = (filter.view().kernel(), filter.params().probes());
    let Tile { blocks, total, .. } = filter.tile();
    // A power of two: the cut of a block is a shift.
    let cut_blocks = (blocks.len() / tasks).clamp(1, MAX_CUT_BLOCKS);
    let shift = cut_blocks.ilog2();
    let cuts = blocks.len().div_ceil(1 << shift);
    let cut_of = |hash| (probe::block_index(hash, total) >> shift) as usize;
    let starts: Vec<Vec<usize>> = chunks
        .par_iter_mut()
        .map_init(Vec::new, |scratch, chunk| {
            let starts = partition(chunk, scratch, cuts, cut_of);
            core::mem::swap(chunk, scratch);
            starts
        })
        .collect();
    blocks.par_chunks_mut(1 << shift).enumerate().for_each(|(cut, blocks)| {
        for (chunk, starts) in chunks.iter().zip(&starts) {
            let tile = Tile { blocks: &mut *blocks, first: (cut << shift) as u32, total };
            kernel.insert(tile, probes, &chunk[starts[cut]..starts[cut + 1]]);
        }
    });
}

/// Copies `hashes` to `parted`, those of cut 0 first, then those of cut 1, and so on. Returns where each cut starts, and last
/// the number of hashes.
fn partition(
    hashes: &[u64],
    parted: &mut Vec<u64>,
    cuts: usize,
    cut_of: impl Fn(u64) -> usize,
) -> Vec<usize> {
    parted.resize(hashes.len(), 0);
    let mut starts = alloc::vec![0; cuts + 1];
    for &hash in hashes {
        starts[cut_of(hash)] += 1;
    }
    let mut end = 0;
    for start in &mut starts {
        end += *start;
        *start = end;
    }
    // From the ends down, so that what remains are the starts.
    for &hash in hashes {
        let end = &mut starts[cut_of(hash)];
        *end -= 1;
        parted[*end] = hash;
    }
    starts
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::{insert_by_cut, partition};
    use crate::{BloomFilter, KeyHash, KeyHasher, Sizing};

    #[test]
    fn every_cut_gives_the_same_bytes() {
        let hashes: Vec<u64> =
            (0..30_000_u64).map(|key| KeyHasher::default().hash(key.to_le_bytes())).collect();
        for blocks in [1, 2, 3, 7, 8, 1_000, 9_001] {
            let params = Sizing::MaxBytes(64 + 64 * blocks).params(1_000_000).unwrap();
            let empty = BloomFilter::with_params(params, KeyHash::default()).unwrap();
            let mut expected = empty.clone();
            for &hash in &hashes {
                expected.insert_hash(hash);
            }
            for (tasks, chunk) in [(1, 30_000), (2, 30_000), (3, 7_000), (8, 1), (64, 999)] {
                let chunks = hashes.chunks(chunk).map(<[u64]>::to_vec).collect();
                let mut filter = empty.clone();
                insert_by_cut(&mut filter, chunks, tasks);
                assert_eq!(filter, expected, "{blocks} blocks, {tasks} tasks");
            }
            let mut nothing = empty.clone();
            insert_by_cut(&mut nothing, vec![Vec::new()], 4);
            assert_eq!(nothing, empty);
        }
    }

    #[test]
    fn partitions_keep_every_hash_and_order_the_cuts() {
        for (len, cuts) in [(0, 1), (1, 1), (1, 5), (7, 3), (1000, 7), (1000, 64)] {
            let hashes: Vec<u64> = (0..len).map(|i| i * i * 7919 + 13).collect();
            let cut_of = |hash| (hash % cuts) as usize;
            let mut parts = vec![7; 3];
            let starts = partition(&hashes, &mut parts, cuts as usize, cut_of);
            assert_eq!((starts[0], starts.len() as u64), (0, cuts + 1));
            for (cut, bounds) in starts.windows(2).enumerate() {
                assert!(parts[bounds[0]..bounds[1]].iter().all(|&hash| cut_of(hash) == cut));
            }
            assert_eq!(*starts.last().unwrap() as u64, len);
            let (mut before, mut after) = (hashes, parts);
            before.sort_unstable();
            after.sort_unstable();
            assert_eq!(before, after);
        }
    }
}
