//! Filling of filters with the threads of the caller's rayon pool. Only `par_*` methods use it.
//!
//! The block index is monotone in the low half of a hash, so a range of blocks (a cut) corresponds
//! to a range of hashes. Each chunk of hashes is ordered by cut, and one task per cut inserts its
//! hashes into blocks that no other task accesses. This needs no atomics and no locks. The bytes do
//! not depend on the number of threads, since the OR of bits commutes. Besides the hashes, it uses
//! a scratch chunk per thread and 1 KiB per chunk.

use alloc::vec::Vec;
use rayon::prelude::*;

use crate::buffer::AllocError;
use crate::filter::{BloomFilter, BuildError};
use crate::hash::Key;
use crate::kernel::Tile;
use crate::probe;
use crate::threads::SEQUENTIAL_BELOW;

/// Number of cuts per thread. With several, a slow thread delays the others less.
const CUTS_PER_THREAD: usize = 4;

/// Largest number of blocks in a cut of a filter with at most [`MAX_CUTS`] such cuts: 256 KiB, so
/// that the blocks of a task stay in its core's cache.
const CUT_BLOCKS: usize = 1 << 12;

/// Largest number of cuts, so that [`CutStarts`] stay small relative to the chunk.
const MAX_CUTS: usize = 256;

/// The index in a chunk at which each cut starts, followed by the chunk's length.
type CutStarts = [u32; MAX_CUTS + 1];

/// Number of hashes that are ordered at a time: 64 MiB, so that each block is written several times
/// while its cut is in the cache.
const WINDOW: usize = 1 << 23;

/// Number of hashes that one thread orders at a time.
const PIECE: usize = 1 << 16;

/// Inserts every hash of the chunks and may change their order. A chunk has fewer than 2^32 hashes.
/// The number of tasks depends on `total`, the number of hashes in this call and related ones.
pub(crate) fn insert_chunks(
    filter: &mut BloomFilter,
    chunks: &mut [Vec<u64>],
    total: usize,
) -> Result<(), AllocError> {
    if let Some(tasks) = tasks_for(total) {
        return insert_by_cut(filter, chunks, tasks);
    }
    chunks.iter().for_each(|chunk| filter.insert_all(chunk, &mut []));
    Ok(())
}

/// Returns the number of tasks for inserting this many hashes, or `None` if one thread suffices.
fn tasks_for(hashes: usize) -> Option<usize> {
    // Only for large filters, since reading the number of threads starts a pool.
    let threads = || rayon::current_num_threads();
    (hashes >= SEQUENTIAL_BELOW && threads() > 1).then(|| threads() * CUTS_PER_THREAD)
}

impl BloomFilter {
    /// Inserts hashes like [`insert_hashes`](Self::insert_hashes), with the threads of the current
    /// rayon pool. The bytes are the same. With fewer than eight million hashes it uses one thread,
    /// which is as fast.
    ///
    /// Uses 64 MiB of memory for ordering the hashes by block.
    ///
    /// # Errors
    ///
    /// [`BuildError::Key`] for the errors of `insert_hashes`; nothing is changed then.
    /// [`BuildError::Alloc`] if an allocation fails; some of the hashes may be inserted then.
    pub fn par_insert_hashes(&mut self, hashes: &[u64]) -> Result<(), BuildError> {
        self.meta.contents.check_insert()?;
        if tasks_for(hashes.len()).is_none() {
            return Ok(self.insert_hashes(hashes)?);
        }
        let copy = |piece: &[u64], list: &mut Vec<u64>| list.extend_from_slice(piece);
        Ok(self.insert_windows(hashes, copy)?)
    }

    /// Inserts keys like [`insert_batch`](Self::insert_batch), with the threads of the current
    /// rayon pool. The bytes are the same. At least 65,536 keys are hashed in parallel, and at
    /// least eight million keys are also inserted in parallel.
    ///
    /// Uses 64 MiB of memory for the hashes.
    ///
    /// # Errors
    ///
    /// The errors of [`par_insert_hashes`](Self::par_insert_hashes), and [`BuildError::Key`] if the
    /// filter holds caller-supplied hashes.
    pub fn par_insert_batch<K: Key + Sync>(&mut self, keys: &[K]) -> Result<(), BuildError> {
        let hasher = self.meta.hasher_to_insert()?;
        if keys.len() < PIECE || rayon::current_num_threads() < 2 {
            return Ok(self.insert_batch(keys)?);
        }
        let kernel = self.kernel();
        let hash = |piece: &[K], list: &mut Vec<u64>| {
            list.resize(piece.len(), 0);
            hasher.hash_by(kernel, piece, list);
        };
        Ok(self.insert_windows(keys, hash)?)
    }

    /// Inserts one hash per item. `hash` writes the hashes of a piece of the items to an empty
    /// list.
    fn insert_windows<T: Sync>(
        &mut self,
        items: &[T],
        hash: impl Fn(&[T], &mut Vec<u64>) + Sync,
    ) -> Result<(), AllocError> {
        let mut chunks: Vec<Vec<u64>> = with_capacity(WINDOW / PIECE)?;
        for window in items.chunks(WINDOW) {
            chunks.resize_with(window.len().div_ceil(PIECE), Vec::new);
            chunks.par_iter_mut().zip(window.par_chunks(PIECE)).try_for_each(
                |(chunk, piece)| {
                    watch!(arrive("window"));
                    if chunk.capacity() < piece.len() {
                        *chunk = with_capacity(piece.len())?;
                    }
                    chunk.clear();
                    hash(piece, chunk);
                    Ok(())
                },
            )?;
            insert_chunks(self, &mut chunks, items.len())?;
        }
        Ok(())
    }
}

/// Inserts every hash of the chunks, with at least about `tasks` tasks.
fn insert_by_cut(
    filter: &mut BloomFilter,
    chunks: &mut [Vec<u64>],
    tasks: usize,
) -> Result<(), AllocError> {
    let (kernel, probes) = (filter.kernel(), filter.params().probes());
    let additions = chunks.iter().map(|chunk| chunk.len() as u64).sum();
    let Tile { blocks, total, .. } = filter.tile();
    // Cuts have a power of two blocks, so that a shift of the block's index is its cut.
    let for_tasks = blocks.len() / tasks;
    let for_starts = blocks.len().div_ceil(MAX_CUTS).next_power_of_two();
    let shift = for_tasks.clamp(1, CUT_BLOCKS).max(for_starts).ilog2();
    let cuts = blocks.len().div_ceil(1 << shift);
    let cut_of = |hash| (probe::block_index(hash, total) >> shift) as usize;

    let mut starts: Vec<CutStarts> = with_capacity(chunks.len())?;
    starts.resize(chunks.len(), [0; MAX_CUTS + 1]);
    chunks.par_iter_mut().zip(&mut starts).try_for_each_init(
        Vec::new,
        |scratch, (chunk, starts)| {
            watch!(arrive("order"));
            if scratch.len() < chunk.len() {
                *scratch = with_capacity(chunk.len())?;
            }
            scratch.resize(chunk.len(), 0);
            partition(chunk, scratch, &mut starts[..=cuts], cut_of);
            core::mem::swap(chunk, scratch);
            Ok(())
        },
    )?;
    blocks.par_chunks_mut(1 << shift).enumerate().for_each(|(cut, blocks)| {
        watch!(arrive("fill"));
        for (chunk, starts) in chunks.iter().zip(&starts) {
            let tile = Tile { blocks: &mut *blocks, first: (cut << shift) as u32, total };
            let hashes = &chunk[starts[cut] as usize..starts[cut + 1] as usize];
            kernel.insert_into(tile, probes, hashes, &mut []);
        }
    });
    filter.count(additions);
    Ok(())
}

fn with_capacity<T>(len: usize) -> Result<Vec<T>, AllocError> {
    let mut list = Vec::new();
    let error = AllocError { bytes: (len as u64).saturating_mul(size_of::<T>() as u64) };
    list.try_reserve_exact(len).map_err(|_| error)?;
    Ok(list)
}

/// Copies `hashes` to `parted`, which has the same length, ordered by cut. Writes the start of each
/// cut, followed by the number of hashes, to `starts`, which must be zero.
fn partition(
    hashes: &[u64],
    parted: &mut [u64],
    starts: &mut [u32],
    cut_of: impl Fn(u64) -> usize,
) {
    hashes.iter().for_each(|&hash| starts[cut_of(hash)] += 1);
    let mut end = 0;
    for start in starts.iter_mut() {
        end += *start;
        *start = end;
    }
    // Counts down from the ends of the cuts, which become the starts.
    for &hash in hashes {
        let end = &mut starts[cut_of(hash)];
        *end -= 1;
        parted[*end as usize] = hash;
    }
}

#[cfg(test)]
#[path = "../tests/unit/parallel.rs"]
mod tests;
