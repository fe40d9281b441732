//! Transposes rows into planes.

use alloc::vec::Vec;

use crate::error::PlanesError;
use crate::layout::{CHECKSUM_BYTES, PlanesLayout};

/// Rows that fill one cache line of each plane.
const LINE_ROWS: usize = 512;

/// The rows of the current group, concatenated as words.
#[derive(Clone)]
pub(crate) struct Rows {
    words: Vec<u64>,
    row_words: usize,
    /// Number of rows in a whole group.
    capacity: usize,
    pub(crate) used: usize,
}

impl Rows {
    /// Allocates space for one row.
    pub(crate) fn new(layout: &PlanesLayout) -> Result<Self, PlanesError> {
        let row_words = (layout.options().shape().planes() as usize).div_ceil(64);
        let capacity = layout.options().group_rows() as usize;
        let mut rows = Rows { words: Vec::new(), row_words, capacity, used: 0 };
        rows.grow()?;
        Ok(rows)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.used == self.capacity
    }

    /// Adds the row that `fill` writes into zeroed words. The group must not be full.
    #[inline]
    pub(crate) fn push(&mut self, fill: impl FnOnce(&mut [u64])) -> Result<(), PlanesError> {
        let start = self.used * self.row_words;
        // Drops the rest of the previous group, or of a row whose items panicked.
        self.words.truncate(start);
        if self.words.capacity() - start < self.row_words {
            self.grow()?;
        }
        self.words.resize(start + self.row_words, 0);
        fill(&mut self.words[start..]);
        self.used += 1;
        Ok(())
    }

    /// Doubles the space, up to the size of a group, so that memory follows the rows appended.
    #[cold]
    fn grow(&mut self) -> Result<(), PlanesError> {
        let rows = (2 * self.used).clamp(1, self.capacity);
        let more = (rows - self.used).saturating_mul(self.row_words);
        let error = PlanesError::alloc(rows.saturating_mul(8 * self.row_words));
        self.words.try_reserve_exact(more).map_err(|_| error)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        8 * self.words.capacity()
    }

    /// Takes the rows (at least one) and returns the stored group. The first group is preceded by
    /// the first record.
    pub(crate) fn take_group(
        &mut self,
        layout: &PlanesLayout,
        group: u64,
    ) -> Result<Vec<u8>, PlanesError> {
        let first = if group == 0 { &layout.record(0, false)[..] } else { &[] };
        let length = first.len() as u64 + layout.group_bytes(self.used as u64);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let mut stored = Vec::new();
        stored.try_reserve_exact(length).map_err(|_| PlanesError::alloc(length))?;
        stored.extend_from_slice(first);
        stored.resize(length, 0);
        let bytes = &mut stored[first.len()..];
        let stride = layout.plane_bytes(self.used as u64) + CHECKSUM_BYTES;
        self.transpose(layout, stride, bytes);
        if layout.options().has_liveness() {
            let plane = &mut bytes[layout.options().shape().planes() as usize * stride..];
            let (bytes, bits) = (self.used / 8, self.used % 8);
            plane[..bytes].fill(0xff);
            plane[bytes] |= (1 << bits) - 1;
        }
        for (number, plane) in (0..layout.stored_planes()).zip(bytes.chunks_mut(stride)) {
            let (plane, sum) = plane.split_at_mut(stride - CHECKSUM_BYTES);
            sum.copy_from_slice(&layout.checksum(group, number, plane).to_le_bytes());
        }
        let before = group * u64::from(layout.options().group_rows());
        let record = layout.record(before + self.used as u64, false);
        stored[length - record.len()..].copy_from_slice(&record);
        self.used = 0;
        Ok(stored)
    }

    /// Writes the planes of the rows into zeroed bytes, one plane every `stride` bytes.
    fn transpose(&self, layout: &PlanesLayout, stride: usize, bytes: &mut [u8]) {
        let planes = layout.options().shape().planes() as usize;
        let used = &self.words[..self.used * self.row_words];
        for (line, rows) in used.chunks(LINE_ROWS * self.row_words).enumerate() {
            for column in 0..self.row_words {
                let mut tiles = [[0; 64]; LINE_ROWS / 64];
                for (tile, rows) in tiles.iter_mut().zip(rows.chunks(64 * self.row_words)) {
                    for (word, row) in tile.iter_mut().zip(rows.chunks(self.row_words)) {
                        *word = row[column];
                    }
                    transpose_64(tile);
                }
                for plane in column * 64..planes.min(column * 64 + 64) {
                    let plane_bytes = &mut bytes[plane * stride..][..stride - CHECKSUM_BYTES];
                    // The last line may be shorter.
                    let line = plane_bytes[line * LINE_ROWS / 8..].as_chunks_mut::<8>().0;
                    for (bytes, tile) in line.iter_mut().zip(&tiles) {
                        *bytes = tile[plane % 64].to_le_bytes();
                    }
                }
            }
        }
    }
}

/// Transposes a square of 64 by 64 bits: bit `j` of word `i` becomes bit `i` of word `j`. Each of
/// six steps swaps halves of smaller squares.
pub(crate) fn transpose_64(words: &mut [u64; 64]) {
    step::<32>(words, 0x0000_0000_ffff_ffff);
    step::<16>(words, 0x0000_ffff_0000_ffff);
    step::<8>(words, 0x00ff_00ff_00ff_00ff);
    step::<4>(words, 0x0f0f_0f0f_0f0f_0f0f);
    step::<2>(words, 0x3333_3333_3333_3333);
    step::<1>(words, 0x5555_5555_5555_5555);
}

/// In every square of `2 N` words, swaps the upper halves of the first `N` words with the lower
/// halves of the other words, for the bits of `mask`.
#[inline(always)]
fn step<const N: usize>(words: &mut [u64; 64], mask: u64) {
    for square in words.chunks_exact_mut(2 * N) {
        let (first, second) = square.split_at_mut(N);
        for (a, b) in first.iter_mut().zip(second) {
            let changed = ((*a >> N) ^ *b) & mask;
            *b ^= changed;
            *a ^= changed << N;
        }
    }
}
