//! Filling filters by several threads of the caller's rayon pool: only for methods `par_*`.
//!
//! The block index is monotone in the low half of a hash, so cuts of the block array are cuts of
//! the hashes: each chunk is reordered by cut, and one task per cut inserts into blocks that no
//! other task holds. No atomics, no locks, and the same bytes at any thread count, since OR-ing
//! bits commutes. Beside the hashes it needs a scratch chunk per thread and 1 KiB per chunk.

use alloc::vec::Vec;
use rayon::prelude::*;

use crate::buffer::AllocError;
use crate::filter::{BloomFilter, BuildError};
use crate::hash::Key;
use crate::kernel::Tile;
use crate::probe;
use crate::threads::SEQUENTIAL_BELOW;

/// Cuts per thread, so that a thread that is late costs little.
const CUTS_PER_THREAD: usize = 4;

/// Blocks in a cut, if there are enough: 256 KiB, so that a task's blocks stay in its core's cache.
const CUT_BLOCKS: usize = 1 << 12;

/// Most cuts, so that what is kept per chunk and cut stays small beside the chunk.
const MAX_CUTS: usize = 256;

/// Where each cut starts in a chunk, and last the chunk's length.
type CutStarts = [u32; MAX_CUTS + 1];

/// Hashes that are reordered at a time where they need not be kept: 64 MiB, so that each block is
/// written several times while its cut is in the cache.
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
            chunks.iter().for_each(|chunk| filter.insert_all(chunk, &mut []));
            Ok(())
        }
    }
}

/// Tasks that share the inserting of this many hashes; none if one thread does it all.
fn tasks_for(hashes: usize) -> Option<usize> {
    // Reading the number of threads starts a pool: not for a small filter.
    let threads = || rayon::current_num_threads();
    (hashes >= SEQUENTIAL_BELOW && threads() > 1).then(|| threads() * CUTS_PER_THREAD)
}

impl BloomFilter {
    /// [`insert_hashes`](Self::insert_hashes) by the threads of the current rayon pool, with the
    /// same bytes, from eight million hashes on: below, one thread is as fast.
    ///
    /// Memory: 64 MiB, in which hashes are brought into the order of the blocks.
    ///
    /// # Errors
    ///
    /// [`BuildError::Key`] as `insert_hashes`, and nothing is changed; [`BuildError::Alloc`] if the
    /// memory is not there: then a part of the hashes may have been added.
    pub fn par_insert_hashes(&mut self, hashes: &[u64]) -> Result<(), BuildError> {
        self.meta.contents.check_insert()?;
        if tasks_for(hashes.len()).is_none() {
            self.insert_all(hashes, &mut []);
            return Ok(());
        }
        let copy = |piece: &[u64], list: &mut Vec<u64>| list.extend_from_slice(piece);
        Ok(self.insert_windows(hashes, copy)?)
    }

    /// [`insert_batch`](Self::insert_batch) by the threads of the current rayon pool: from 65,536
    /// keys on they are hashed in parallel, and inserted as
    /// [`par_insert_hashes`](Self::par_insert_hashes) does. The bytes are the same.
    ///
    /// Memory: 64 MiB for their hashes.
    ///
    /// # Errors
    ///
    /// As [`par_insert_hashes`](Self::par_insert_hashes), and [`BuildError::Key`] if the filter is
    /// of the caller's hashes.
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

    /// Inserts the hashes that `hash` appends for each piece of `items`, one for each.
    fn insert_windows<T: Sync>(
        &mut self,
        items: &[T],
        hash: impl Fn(&[T], &mut Vec<u64>) + Sync,
    ) -> Result<(), AllocError> {
        let tasks = tasks_for(items.len());
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
            match tasks {
                Some(tasks) => insert_by_cut(self, &mut chunks, tasks)?,
                None => chunks.iter().for_each(|chunk| self.insert_all(chunk, &mut [])),
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
    let (kernel, probes) = (filter.kernel(), filter.params().probes());
    let additions = chunks.iter().map(|chunk| chunk.len() as u64).sum();
    let Tile { blocks, total, .. } = filter.tile();
    // A power of two: the cut of a block is a shift.
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

/// Copies `hashes` to `parted`, which is as long: hashes of cut 0 first, then of cut 1, and so on.
/// Writes where each cut starts, and last the number of hashes, to `starts`, which are zero.
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

#[cfg(test)]
#[path = "../tests/unit/parallel.rs"]
mod tests;
