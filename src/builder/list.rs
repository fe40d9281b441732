//! The list of hashes: its growth and its limit.

use alloc::vec::Vec;

use super::verify::{self, Found};
use super::{BloomFilterBuilder, CHUNK, EagerFilter, SMALLEST_CHUNK, empty, insert};
use crate::buffer::AllocError;
use crate::filter::BuildError;
use crate::threads::Threads;

impl BloomFilterBuilder {
    #[cold]
    pub(super) fn grow_and_insert(&mut self, hash: u64) {
        self.first.get_or_insert(hash);
        self.copy(&[hash]);
    }

    /// Appends hashes to the list, or only counts them if there will be no filter.
    pub(super) fn copy(&mut self, mut hashes: &[u64]) {
        while !hashes.is_empty() {
            if self.failed.is_some() || self.options.sizing().is_pass_all() {
                return self.keys_without_filter += hashes.len() as u64;
            }
            if let Some(chunk) = self.chunks.last_mut()
                && chunk.len() < chunk.capacity()
            {
                let free = chunk.capacity() - chunk.len();
                let (now, later) = hashes.split_at(free.min(hashes.len()));
                chunk.extend_from_slice(now);
                hashes = later;
            } else {
                self.grow().unwrap_or_else(|error| self.fail(error));
            }
        }
    }

    /// Makes room with a new chunk, 1/16 as long as the list, so that hashes are never copied and
    /// little memory is unused.
    pub(super) fn grow(&mut self) -> Result<(), BuildError> {
        if self.filling.is_some() {
            self.flush(Threads::One)?;
            // In a clone of a builder, an empty chunk has no capacity.
            let error = AllocError { bytes: SMALLEST_CHUNK as u64 * 8 };
            return match self.chunks.first_mut() {
                Some(chunk) => chunk.try_reserve_exact(SMALLEST_CHUNK).map_err(|_| error.into()),
                None => Ok(self.add_chunk(SMALLEST_CHUNK)?),
            };
        }
        let kept = self.chunks.iter().map(Vec::len).sum::<usize>();
        let capacity = (kept / 16).clamp(SMALLEST_CHUNK, CHUNK);
        let left = self.memory_limit.saturating_sub(self.hash_bytes()) / 8;
        match capacity.min(usize::try_from(left).unwrap_or(usize::MAX)) {
            0 => self.stop_growing(),
            capacity => Ok(self.add_chunk(capacity)?),
        }
    }

    fn add_chunk(&mut self, capacity: usize) -> Result<(), AllocError> {
        let error = AllocError { bytes: capacity as u64 * 8 };
        let mut chunk = Vec::new();
        chunk.try_reserve_exact(capacity).map_err(|_| error)?;
        self.chunks.try_reserve(1).map_err(|_| error)?;
        self.chunks.push(chunk);
        Ok(())
    }

    /// Creates the filter when the list reaches its limit, and flushes the list into it.
    #[cold]
    fn stop_growing(&mut self) -> Result<(), BuildError> {
        let Some(expected) = self.options.expected_items else {
            return Err(BuildError::MemoryLimit { limit_bytes: self.memory_limit, keys: 0 });
        };
        let sized_for = self.len().max(expected);
        let params = self.options.params(sized_for)?;
        let filter = empty(&self.options, params, Threads::One)?;
        // The largest chunk becomes the first one, which collects the hashes of the next flush. The
        // last chunk may be tiny, since it has only the remaining bytes of the limit.
        let sizes = self.chunks.iter().map(Vec::capacity).enumerate();
        match sizes.max_by_key(|&(_, size)| size) {
            Some((largest, _)) => self.chunks.swap(0, largest),
            None => self.add_chunk(SMALLEST_CHUNK)?,
        }
        let (found, sample) = (Found::default(), Vec::new());
        self.filling = Some(EagerFilter { filter, sized_for, found, sample, stride: 16 });
        self.flush(Threads::One)
    }

    /// Inserts the list into the filter, looks up every hash, and clears the list.
    pub(super) fn flush(&mut self, threads: Threads) -> Result<(), BuildError> {
        let Some(filling) = &mut self.filling else { return Ok(()) };
        insert(&mut filling.filter, &mut self.chunks, threads)?;
        let found = verify::look_up_all(&filling.filter, &self.chunks, threads);
        filling.found = filling.found.add(found);
        if matches!(self.options.key_hash(), crate::hash::KeyHash::Caller { .. }) {
            filling.sample.extend(self.chunks.iter().flatten().step_by(filling.stride));
        }
        while filling.sample.len() > 8_192 {
            filling.sample = filling.sample.iter().copied().step_by(2).collect();
            filling.stride *= 2;
        }
        self.chunks.truncate(1);
        self.chunks.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}
