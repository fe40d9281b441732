//! Copies rows of existing planes, to merge planes that were written at different times.

use alloc::vec::Vec;
use core::ops::Range;

use crate::builder::{PlanesBuilder, extend};
use crate::error::PlanesError;
use crate::planes::Planes;
use crate::transpose::transpose_64;

/// Rows transposed at a time.
const TILE: usize = 64;

impl PlanesBuilder {
    /// Appends rows of other planes of the same shape and hash, bit for bit, and returns the bytes
    /// of all groups that the call completed (possibly none). A row deleted in `planes` becomes a
    /// row without items.
    ///
    /// # Errors
    ///
    /// [`PlanesError::RowShape`], [`PlanesError::HashMismatch`] and
    /// [`PlanesError::RangeOutOfRange`] leave the builder unchanged. [`PlanesError::Alloc`] does
    /// not: see [`append_all`](Self::append_all).
    ///
    /// ```
    /// use blocked_bloom_planes::{Planes, PlanesOptions, Query, Shape};
    /// let options = PlanesOptions::new(Shape::new(1, 128, 4)?);
    /// let one = Planes::from_hashes(&options, [[1 << 40], [2 << 40], [3 << 40]])?;
    /// let other = Planes::from_hashes(&options, [[4 << 40]])?;
    /// let mut builder = options.builder()?;
    /// let mut merged = builder.append_rows(&one, 1..3)?;
    /// merged.extend(builder.append_rows(&other, 0..1)?);
    /// merged.extend(builder.finish()?);
    /// let expected = Planes::from_hashes(&options, [[2 << 40], [3 << 40], [4 << 40]])?;
    /// assert_eq!(merged, expected.as_bytes());
    /// # Ok::<(), blocked_bloom_planes::PlanesError>(())
    /// ```
    pub fn append_rows<B: AsRef<[u8]>>(
        &mut self,
        planes: &Planes<B>,
        rows: Range<usize>,
    ) -> Result<Vec<u8>, PlanesError> {
        self.check_shape(planes.shape())?;
        self.check_key_hash(planes.key_hash())?;
        planes.check_range(&rows)?;
        let row_words = (self.options().shape().planes() as usize).div_ceil(64);
        let mut tile = Vec::new();
        let error = PlanesError::alloc(8 * TILE * row_words);
        tile.try_reserve_exact(TILE * row_words).map_err(|_| error)?;
        tile.resize(TILE * row_words, 0);
        let mut stored = Vec::new();
        let mut row = rows.start;
        while row < rows.end {
            let first = row - row % TILE;
            planes.read_tile(first, row_words, &mut tile);
            let end = rows.end.min(first + TILE);
            for words in tile.chunks(row_words).take(end - first).skip(row - first) {
                if let Some(group) = self.append_with(|row| row.copy_from_slice(words))? {
                    extend(&mut stored, &group)?;
                }
            }
            row = end;
        }
        Ok(stored)
    }
}

impl<B: AsRef<[u8]>> Planes<B> {
    /// Writes the bits of 64 rows, one row after the other. `first` is a multiple of 64 and an
    /// existing row. Writes ones if the length of the owner's bytes has changed.
    fn read_tile(&self, first: usize, row_words: usize, tile: &mut [u64]) {
        let Some(bytes) = self.opened() else { return tile.fill(u64::MAX) };
        let (layout, shape) = (self.layout(), self.shape());
        let group_rows = layout.options().group_rows() as usize;
        let (group, word) = ((first / group_rows) as u64, first % group_rows / TILE);
        let plane_at = layout.location(group, 0);
        let read = |plane: u32| -> u64 {
            let offset = plane_at.offset + u64::from(plane) * plane_at.length;
            let bytes = bytes.get(offset as usize + 8 * word..).and_then(<[u8]>::first_chunk);
            bytes.map_or(u64::MAX, |word| u64::from_le_bytes(*word))
        };
        let has_liveness = layout.options().has_liveness();
        let live = if has_liveness { read(shape.planes()) } else { u64::MAX };
        for column in 0..row_words {
            let mut words = [0; TILE];
            for (word, plane) in words.iter_mut().zip(64 * column as u32..shape.planes()) {
                *word = read(plane) & live;
            }
            transpose_64(&mut words);
            for (row, word) in words.into_iter().enumerate() {
                tile[row * row_words + column] = word;
            }
        }
    }
}
