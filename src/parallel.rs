//! Filling and merging filters with several threads, in the caller's rayon pool.
//!
//! Filling: the block index is monotone in the low half of a hash, so cuts of the block array are cuts of the hashes: each chunk is
//! reordered by cut, and one task per cut inserts into blocks that no other task holds. No atomics, no locks, and the same
//! bytes at any thread count, since OR-ing bits commutes. Beside the hashes it needs a scratch chunk per thread and 1 KiB per
//! chunk. Merging: one task per range of blocks. This file refuses `unsafe`.

use alloc::vec::Vec;
use rayon::prelude::*;

use crate::error::AllocError;
use crate::filter::BloomFilter;
use crate::kernel::Tile;
use crate::probe::{self, Block};

/// Hashes below which one thread is as fast as two: reordering costs what the second one saves while the filter fits the
/// last-level cache.
const SEQUENTIAL_BELOW: usize = 1 << 23;

/// Cuts per thread, so that a thread that is late costs little.
const CUTS_PER_THREAD: usize = 4;

/// Blocks in a cut of a filter that has enough of them: 256 KiB, so that a task's blocks stay in its core's cache.
const CUT_BLOCKS: usize = 1 << 12;

/// Most cuts, so that what is kept per chunk and cut stays small beside the chunk.
const MAX_CUTS: usize = 256;

/// Where each cut starts in a chunk, and last the chunk's length.
type Starts = [u32; MAX_CUTS + 1];

/// Hashes that are reordered at a time where they need not be kept: 64 MiB, so that each block is written some times while its cut
/// is in the cache.
const WINDOW: usize = 1 << 23;

/// Hashes in a piece that one thread reorders.
const PIECE: usize = 1 << 16;

/// Inserts every hash of the chunks, of less than 2^32 hashes each, whose order may change.
pub(crate) fn insert_chunks(
    filter: &mut BloomFilter,
    chunks: &mut [Vec<u64>],
) -> Result<(), AllocError> {
    match tasks_for(chunks.iter().map(Vec::len).sum()) {
        Some(tasks) => insert_by_cut(filter, chunks, tasks),
        None => {
            chunks.iter().for_each(|chunk| filter.insert_hashes(chunk));
            Ok(())
        }
    }
}

/// Tasks that share the inserting of so many hashes; none if one thread does it all.
fn tasks_for(hashes: usize) -> Option<usize> {
    // Asking for the number of threads starts a pool: not for a small filter.
    let threads = || rayon::current_num_threads();
    (hashes >= SEQUENTIAL_BELOW && threads() > 1).then(|| threads() * CUTS_PER_THREAD)
}

/// Maps the chunks and folds the results, by several threads if there are many hashes.
pub(crate) fn map_and_fold<R: Copy + Send + Sync>(
    chunks: &[Vec<u64>],
    map: impl Fn(&Vec<u64>) -> R + Send + Sync,
    fold: impl Fn(R, R) -> R + Send + Sync,
    start: R,
) -> R {
    if chunks.iter().map(Vec::len).sum::<usize>() < SEQUENTIAL_BELOW {
        return chunks.iter().map(map).fold(start, fold);
    }
    chunks.par_iter().map(map).reduce(|| start, fold)
}

impl BloomFilter {
    /// [`insert_hashes`](Self::insert_hashes) by the threads of the current rayon pool, if there are eight million hashes or more:
    /// below, one thread is as fast. The bytes do not depend on the number of threads.
    ///
    /// Memory: 64 MiB, in which hashes are brought into the order of the blocks.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if that memory is not there; a part of the hashes may have been added.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilter, KeyHash, Sizing};
    /// let params = Sizing::BitsPerKey(10.0).params(3)?;
    /// let mut filter = BloomFilter::with_params(params, KeyHash::default())?;
    /// filter.par_insert_hashes(&[1, 2, 3])?;
    /// assert!(filter.contains_hash(3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn par_insert_hashes(&mut self, hashes: &[u64]) -> Result<(), AllocError> {
        if tasks_for(hashes.len()).is_none() {
            self.insert_hashes(hashes);
            return Ok(());
        }
        let copy = |piece: &[u64], room: &mut Vec<u64>| room.extend_from_slice(piece);
        self.insert_windows(hashes, copy)
    }

    /// [`insert_batch`](Self::insert_batch) by the threads of the current rayon pool: from 65,536 keys on they are hashed in
    /// parallel, and inserted in parallel as [`par_insert_hashes`](Self::par_insert_hashes) does. The bytes do not depend on the number
    /// of threads.
    ///
    /// Memory: 64 MiB for their hashes.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if that memory is not there; a part of the keys may have been added.
    ///
    /// ```
    /// # use blocked_bloom::{BloomFilter, KeyHash, Sizing};
    /// let params = Sizing::BitsPerKey(10.0).params(3)?;
    /// let mut filter = BloomFilter::with_params(params, KeyHash::default())?;
    /// filter.par_insert_batch(&["apple", "banana", "cherry"])?;
    /// assert!(filter.contains("cherry"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn par_insert_batch<K: AsRef<[u8]> + Sync>(
        &mut self,
        keys: &[K],
    ) -> Result<(), AllocError> {
        match self.view().key_hash().hasher() {
            Some(hasher) if keys.len() >= PIECE && rayon::current_num_threads() > 1 => {
                let hash = |piece: &[K], room: &mut Vec<u64>| {
                    room.extend(piece.iter().map(|key| hasher.hash(key)));
                };
                self.insert_windows(keys, hash)
            }
            _ => {
                self.insert_batch(keys);
                Ok(())
            }
        }
    }

    /// Inserts the hashes that `hash` appends for each piece of `items`, one for each.
    fn insert_windows<T: Sync>(
        &mut self,
        items: &[T],
        hash: impl Fn(&[T], &mut Vec<u64>) + Sync,
    ) -> Result<(), AllocError> {
        let tasks = tasks_for(items.len());
        let mut chunks: Vec<Vec<u64>> = with_room(WINDOW / PIECE)?;
        for window in items.chunks(WINDOW) {
            chunks.resize_with(window.len().div_ceil(PIECE), Vec::new);
            chunks.par_iter_mut().zip(window.par_chunks(PIECE)).try_for_each(
                |(chunk, piece)| {
                    if chunk.capacity() < piece.len() {
                        *chunk = with_room(piece.len())?;
                    }
                    chunk.clear();
                    hash(piece, chunk);
                    Ok(())
                },
            )?;
            match tasks {
                Some(tasks) => insert_by_cut(self, &mut chunks, tasks)?,
                None => chunks.iter().for_each(|chunk| self.insert_hashes(chunk)),
            }
        }
        Ok(())
    }
}

/// Inserts every hash of the chunks, in about `tasks` tasks or more.
fn insert_by_cut(
    filter: &mut BloomFilter,
    chunks: &mut [Vec<u64>],
    tasks: usize,
) -> Result<(), AllocError> {
    let (kernel, probes) = (filter.view().kernel(), filter.params().probes());
    let additions = chunks.iter().map(|chunk| chunk.len() as u64).sum();
    let Tile { blocks, total, .. } = filter.tile();
    // A power of two: the cut of a block is a shift.
    let for_tasks = blocks.len() / tasks;
    let for_starts = blocks.len().div_ceil(MAX_CUTS).next_power_of_two();
    let shift = for_tasks.clamp(1, CUT_BLOCKS).max(for_starts).ilog2();
    let cuts = blocks.len().div_ceil(1 << shift);
    let cut_of = |hash| (probe::block_index(hash, total) >> shift) as usize;

    let mut starts: Vec<Starts> = with_room(chunks.len())?;
    starts.resize(chunks.len(), [0; MAX_CUTS + 1]);
    chunks.par_iter_mut().zip(&mut starts).try_for_each_init(
        Vec::new,
        |scratch, (chunk, starts)| {
            if scratch.len() < chunk.len() {
                *scratch = with_room(chunk.len())?;
            }
            scratch.resize(chunk.len(), 0);
            partition(chunk, scratch, &mut starts[..=cuts], cut_of);
            core::mem::swap(chunk, scratch);
            Ok(())
        },
    )?;
    blocks.par_chunks_mut(1 << shift).enumerate().for_each(|(cut, blocks)| {
        for (chunk, starts) in chunks.iter().zip(&starts) {
            let tile = Tile { blocks: &mut *blocks, first: (cut << shift) as u32, total };
            let hashes = &chunk[starts[cut] as usize..starts[cut + 1] as usize];
            kernel.insert(tile, probes, hashes);
        }
    });
    filter.count_keys(additions);
    Ok(())
}

fn with_room<T>(len: usize) -> Result<Vec<T>, AllocError> {
    let mut room = Vec::new();
    let error = AllocError { bytes: (len as u64).saturating_mul(size_of::<T>() as u64) };
    room.try_reserve_exact(len).map_err(|_| error)?;
    Ok(room)
}

/// Copies `hashes` to `parted`, which is as long: those of cut 0 first, then those of cut 1, and so on. Writes where each cut
/// starts, and last the number of hashes, to `starts`, which are zero and one more than the cuts.
fn partition(
    hashes: &[u64],
    parted: &mut [u64],
    starts: &mut [u32],
    cut_of: impl Fn(u64) -> usize,
) {
    for &hash in hashes {
        starts[cut_of(hash)] += 1;
    }
    let mut end = 0;
    for start in starts.iter_mut() {
        end += *start;
        *start = end;
    }
    // From the ends down, so that what remains are the starts.
    for &hash in hashes {
        let end = &mut starts[cut_of(hash)];
        *end -= 1;
        parted[*end as usize] = hash;
    }
}

/// Calls `work` with the number of each range of `len` blocks and its blocks, in several threads.
pub(crate) fn for_each_range(
    blocks: &mut [Block],
    len: usize,
    work: impl Fn(usize, &mut [Block]) + Sync,
) {
    blocks.par_chunks_mut(len).enumerate().for_each(|(range, blocks)| work(range, blocks));
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
        // At 70,000 blocks and 5,000 tasks MAX_CUTS decides, at 9,001 and one task CUT_BLOCKS, else the tasks.
        for blocks in [1, 2, 3, 7, 8, 1_000, 9_001, 70_000] {
            let params = Sizing::MaxBytes(64 + 64 * blocks).params(1_000_000).unwrap();
            let empty = BloomFilter::with_params(params, KeyHash::default()).unwrap();
            let mut expected = empty.clone();
            for &hash in &hashes {
                expected.insert_hash(hash);
            }
            for (tasks, chunk) in
                [(1, 30_000), (2, 30_000), (3, 7_000), (8, 1), (64, 999), (5_000, 999)]
            {
                let mut chunks: Vec<_> = hashes.chunks(chunk).map(<[u64]>::to_vec).collect();
                let mut filter = empty.clone();
                insert_by_cut(&mut filter, &mut chunks, tasks).unwrap();
                assert_eq!(filter, expected, "{blocks} blocks, {tasks} tasks");
            }
            let mut nothing = empty.clone();
            insert_by_cut(&mut nothing, &mut [Vec::new()], 4).unwrap();
            assert_eq!(nothing, empty);
        }
    }

    #[test]
    fn partitions_keep_every_hash_and_order_the_cuts() {
        for (len, cuts) in [(0, 1), (1, 1), (1, 5), (7, 3), (1000, 7), (1000, 64)] {
            let hashes: Vec<u64> = (0..len).map(|i| i * i * 7919 + 13).collect();
            let cut_of = |hash| (hash % cuts) as usize;
            let mut parts = vec![7; hashes.len()];
            let mut starts = vec![0; cuts as usize + 1];
            partition(&hashes, &mut parts, &mut starts, cut_of);
            assert_eq!(starts[0], 0);
            for (cut, bounds) in starts.windows(2).enumerate() {
                let part = bounds[0] as usize..bounds[1] as usize;
                assert!(parts[part].iter().all(|&hash| cut_of(hash) == cut));
            }
            assert_eq!(u64::from(*starts.last().unwrap()), len);
            let (mut before, mut after) = (hashes, parts);
            before.sort_unstable();
            after.sort_unstable();
            assert_eq!(before, after);
        }
    }
}
