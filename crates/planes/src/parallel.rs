//! Appends rows with several threads, in the caller's rayon pool. Each task builds whole groups, so
//! the bytes do not depend on the number of threads.

use alloc::vec::Vec;

use rayon::prelude::*;

use crate::builder::{PlanesBuilder, extend};
use crate::error::PlanesError;
use crate::transpose::Rows;

impl PlanesBuilder {
    /// Appends rows with the threads of the current rayon pool, and returns the same bytes as
    /// [`append_all`](Self::append_all). Threads share whole groups, so only calls that span
    /// several groups are faster. Uses memory for two groups per thread, and twice the returned
    /// bytes.
    ///
    /// # Errors
    ///
    /// [`PlanesError::Alloc`], as for [`append_all`](Self::append_all).
    ///
    /// ```
    /// use blocked_bloom_planes::{PlanesOptions, Shape};
    /// let options = PlanesOptions::new(Shape::new(1, 128, 4)?).with_group_rows(512)?;
    /// let rows: Vec<[u64; 2]> = (0..5_000).map(|row| [row << 40, row << 45]).collect();
    /// let (mut one, mut many) = (options.builder()?, options.builder()?);
    /// assert_eq!(one.append_all(&rows)?, many.par_append_all(&rows)?);
    /// assert_eq!(one.finish()?, many.finish()?);
    /// # Ok::<(), blocked_bloom_planes::PlanesError>(())
    /// ```
    pub fn par_append_all<R: AsRef<[u64]> + Sync>(
        &mut self,
        rows: &[R],
    ) -> Result<Vec<u8>, PlanesError> {
        let group_rows = self.options().group_rows() as usize;
        // The rows that complete the current group.
        let begun = (group_rows - self.rows.used) % group_rows;
        let (begun, rest) = rows.split_at(begun.min(rows.len()));
        let mut stored = self.append_all(begun)?;
        let (whole, last) = rest.split_at(rest.len() - rest.len() % group_rows);
        let (first, layout) = (self.groups, self.layout);
        let shape = layout.options().shape();
        let groups: Vec<Result<Vec<u8>, PlanesError>> = whole
            .par_chunks(group_rows)
            .enumerate()
            .map_init(
                || Rows::new(&layout),
                |kept, (group, rows)| {
                    let kept = kept.as_mut().map_err(|error| *error)?;
                    for row in rows {
                        kept.push(|words| shape.set(words, row.as_ref().iter().copied()))?;
                    }
                    kept.take_group(&layout, first + group as u64)
                },
            )
            .collect();
        for group in groups {
            extend(&mut stored, &group?)?;
            self.groups += 1;
        }
        extend(&mut stored, &self.append_all(last)?)?;
        Ok(stored)
    }
}
