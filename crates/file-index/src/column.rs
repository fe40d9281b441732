//! The part of a builder for one column: hashes of the present row group, and planes of the present
//! chunk.

use alloc::string::String;
use alloc::vec::Vec;

use blocked_bloom::KeyHasher;
use blocked_bloom_planes::{PlanesBuilder, PlanesOptions};

use crate::error::FileIndexError;
use crate::options::Column;
use crate::part::mix;

/// Hashes that a row group has space for at first.
const FIRST_HASHES: usize = 1024;

/// Collects the values of a column.
#[derive(Debug)]
pub(crate) struct ColumnBuilder {
    pub(crate) column: Column,
    pub(crate) part_values: u32,
    /// Without a tag.
    pub(crate) options: PlanesOptions,
    pub(crate) types: Vec<String>,
    /// Of the present chunk, once it has a row.
    pub(crate) planes: Option<PlanesBuilder>,
    /// Of all chunks.
    pub(crate) rows: u64,
    /// Hashes of the present row group, mixed. None that are known not to be all.
    pub(crate) hashes: Option<Vec<u64>>,
    pub(crate) oversized: u64,
}

impl ColumnBuilder {
    pub(crate) fn new(column: Column, part_values: u32, options: PlanesOptions) -> Self {
        ColumnBuilder {
            column,
            part_values,
            options,
            types: Vec::new(),
            planes: None,
            rows: 0,
            hashes: Some(Vec::new()),
            oversized: 0,
        }
    }

    /// The number of a type, which is a new one if no file had it.
    pub(crate) fn type_number(&mut self, name: &str) -> u64 {
        let known = self.types.iter().position(|other| other == name);
        known.unwrap_or_else(|| {
            self.types.push(name.into());
            self.types.len() - 1
        }) as u64
    }

    /// Whether so many more hashes may need more space.
    pub(crate) fn is_full(&self, more: usize) -> bool {
        self.hashes.as_ref().is_some_and(|hashes| hashes.capacity() - hashes.len() < more)
    }

    /// Adds hashes, in space for `max_hashes` at most.
    pub(crate) fn insert(
        &mut self,
        mut new: &[u64],
        max_hashes: usize,
    ) -> Result<(), FileIndexError> {
        while let Some(hashes) = &mut self.hashes
            && !new.is_empty()
        {
            if hashes.len() == hashes.capacity() {
                hashes.sort_unstable();
                hashes.dedup();
                // Each sort makes space for half as many values as it sorts, or, with all the
                // memory, for an eighth: values that come again and again are not sorted for few.
                let capacity = hashes.capacity();
                if 2 * hashes.len() >= capacity {
                    let most = max_hashes.saturating_sub(capacity);
                    let more = capacity.max(FIRST_HASHES).min(most);
                    hashes
                        .try_reserve_exact(capacity - hashes.len() + more)
                        .map_err(|_| FileIndexError::alloc(8 * (capacity + more)))?;
                }
                // The other columns may have left no space at all.
                if hashes.len() > hashes.capacity() / 8 * 7 || hashes.capacity() == 0 {
                    self.hashes = None;
                    self.oversized += 1;
                    break;
                }
            }
            let (now, later) = new.split_at(new.len().min(hashes.capacity() - hashes.len()));
            hashes.extend(now.iter().map(|&hash| mix(hash)));
            new = later;
        }
        Ok(())
    }

    /// The parts of so many different values.
    pub(crate) fn parts(&self, values: u64) -> Result<u32, FileIndexError> {
        let parts = values.div_ceil(self.part_values.into());
        match self.rows + parts <= u32::MAX.into() {
            true => Ok(parts as u32),
            false => Err(FileIndexError::TooMany { what: "parts", most: u32::MAX.into() }),
        }
    }

    /// The builder of the present chunk.
    pub(crate) fn chunk(
        &mut self,
        tag: u64,
        number: usize,
    ) -> Result<&mut PlanesBuilder, FileIndexError> {
        let planes = match self.planes.take() {
            Some(planes) => planes,
            None => {
                // Of this index, and of this place in it.
                let place = [number as u64, self.rows].map(u64::to_le_bytes);
                let tag = KeyHasher::with_seed(tag).hash(place.as_flattened());
                self.options.with_tag(tag).builder()?
            }
        };
        Ok(self.planes.insert(planes))
    }
}
