//! The list of hashes: how it grows, and what happens when it may not.

use alloc::vec::Vec;

use super::verify::ask_about_all;
use super::{BloomFilterBuilder, CHUNK, Filling, SMALLEST_CHUNK};
use crate::error::{AllocError, BuildError};
use crate::filter::BloomFilter;

impl BloomFilterBuilder {
    #[cold]
    pub(super) fn grow_and_insert(&mut self, hash: u64) {
        self.first.get_or_insert(hash);
        if self.sizing.is_no_filter() || self.failed.is_some() {
            self.only_counted += 1;
        } else if let Err(error) = self.grow() {
            self.fail(error);
            self.only_counted += 1;
        } else if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(hash);
        }
    }

    /// Makes room for a hash: a new chunk, a sixteenth of what is there, so that nothing is ever copied and little is unused.
    pub(super) fn grow(&mut self) -> Result<(), BuildError> {
        if self.filling.is_some() {
            self.pour()?;
            // The copy of an empty chunk, in a clone, has no room.
            let error = AllocError { bytes: SMALLEST_CHUNK as u64 * 8 };
            return match self
                .chunks
                .first_mut()
                .map(|chunk| chunk.try_reserve_exact(SMALLEST_CHUNK))
            {
                Some(room) => room.map_err(|_| error.into()),
                None => self.add_chunk(SMALLEST_CHUNK).map_err(BuildError::from),
            };
        }
        let kept = self.chunks.iter().map(Vec::len).sum::<usize>();
        let room = (kept / 16).clamp(SMALLEST_CHUNK, CHUNK);
        let left = self.memory_limit.saturating_sub(self.hash_bytes()) / 8;
        match room.min(usize::try_from(left).unwrap_or(usize::MAX)) {
            0 => self.stop_growing(),
            room => self.add_chunk(room).map_err(BuildError::from),
        }
    }

    fn add_chunk(&mut self, room: usize) -> Result<(), AllocError> {
        let error = AllocError { bytes: room as u64 * 8 };
        let mut chunk = Vec::new();
        chunk.try_reserve_exact(room).map_err(|_| error)?;
        self.chunks.try_reserve(1).map_err(|_| error)?;
        self.chunks.push(chunk);
        Ok(())
    }

    /// The list is as long as it may be: from now on hashes go into the filter.
    #[cold]
    fn stop_growing(&mut self) -> Result<(), BuildError> {
        let Some(expected) = self.expected_items else {
            return Err(BuildError::MemoryLimit { limit_bytes: self.memory_limit, keys: 0 });
        };
        let params = self.params_for(self.len().max(expected))?;
        let filter = BloomFilter::with_params(params, self.key_hash)?;
        // The first chunk collects what is poured next: the largest, since the last may be what was left of the limit.
        let sizes = self.chunks.iter().map(Vec::capacity).enumerate();
        match sizes.max_by_key(|&(_, size)| size) {
            Some((largest, _)) => self.chunks.swap(0, largest),
            None => self.add_chunk(SMALLEST_CHUNK)?,
        }
        self.filling = Some(Filling { filter, sum: 0, missing: 0 });
        self.pour()
    }

    /// Inserts the list into the filter that is being filled, and asks it about every hash: later they cannot be asked about.
    pub(super) fn pour(&mut self) -> Result<(), BuildError> {
        let Some(filling) = &mut self.filling else { return Ok(()) };
        insert_all(&mut filling.filter, &mut self.chunks)?;
        let (sum, missing) = ask_about_all(&filling.filter, &self.chunks);
        filling.sum = filling.sum.wrapping_add(sum);
        filling.missing += missing;
        self.chunks.truncate(1);
        self.chunks.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}

/// Inserts every hash of the chunks, whose order may change.
pub(super) fn insert_all(
    filter: &mut BloomFilter,
    chunks: &mut [Vec<u64>],
) -> Result<(), AllocError> {
    #[cfg(feature = "rayon")]
    return crate::parallel::insert_chunks(filter, chunks);
    #[cfg(not(feature = "rayon"))]
    {
        chunks.iter().for_each(|chunk| filter.insert_hashes(chunk));
        Ok(())
    }
}
