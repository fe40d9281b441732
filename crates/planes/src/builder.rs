//! From items to stored planes, group by group.

use alloc::vec::Vec;

use blocked_bloom::BloomFilterRef;
use blocked_bloom::probe::BLOCK_BITS;

use crate::error::PlanesError;
use crate::layout::PlanesLayout;
use crate::options::PlanesOptions;
use crate::planes::extend;
use crate::shape::Shape;
use crate::transpose::Rows;

/// Takes rows and gives back the stored planes in pieces, a group at a time, for a file that is written while it grows.
///
/// The pieces, one behind the other, are the stored planes. Memory: a group, twice. [`Planes::from_hashes`](crate::Planes::from_hashes)
/// keeps all of them in memory instead.
///
/// ```
/// use blocked_bloom_planes::{PlanesOptions, PlanesRef, Query, Shape};
/// let options = PlanesOptions::new(Shape::for_rate(3, 0.001)?).with_group_rows(512)?;
/// let (hasher, mut file) = (options.hasher()?, Vec::new());
/// let mut builder = options.builder()?;
/// for page in 0..1_000_u32 {
///     let tokens = ["the", "page", if page == 700 { "seven" } else { "other" }];
///     if let Some(group) = builder.append(tokens.map(|token| hasher.hash(token)))? {
///         file.extend(group); // 512 rows are complete
///     }
/// }
/// file.extend(builder.finish()?);
///
/// let mut hits = blocked_bloom::Bitmask::new();
/// PlanesRef::from_bytes(&file)?.query(&Query::all([hasher.hash("seven")]), &mut hits);
/// assert!(hits.hits().any(|page| page == 700) && hits.count_hits() < 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PlanesBuilder {
    pub(crate) layout: PlanesLayout,
    pub(crate) rows: Rows,
    /// Groups that were given out.
    pub(crate) groups: u64,
}

impl PlanesBuilder {
    pub(crate) fn new(options: PlanesOptions) -> Result<Self, PlanesError> {
        let layout = PlanesLayout::new(options, 0, false);
        Ok(PlanesBuilder { rows: Rows::new(&layout)?, layout, groups: 0 })
    }

    /// Appends a row with these items, hashed by the options' hasher. The order of the items, and how often each comes, are the same to
    /// it. Returns bytes when a group is complete.
    ///
    /// # Errors
    ///
    /// [`PlanesError::Alloc`] if there is no memory for the bytes of the group; the row is not appended then.
    #[inline]
    pub fn append(
        &mut self,
        hashes: impl IntoIterator<Item = u64>,
    ) -> Result<Option<Vec<u8>>, PlanesError> {
        let shape = self.layout.options().shape();
        self.append_with(|row| shape.set(row, hashes))
    }

    /// Appends a row for each list of items, and returns the bytes of all groups that are complete then, or none.
    ///
    /// # Errors
    ///
    /// [`PlanesError::Alloc`]; bytes of complete groups are lost then, so that the builder is of no more use.
    pub fn append_all<R: AsRef<[u64]>>(&mut self, rows: &[R]) -> Result<Vec<u8>, PlanesError> {
        let mut stored = Vec::new();
        for row in rows {
            if let Some(group) = self.append(row.as_ref().iter().copied())? {
                extend(&mut stored, &group)?;
            }
        }
        Ok(stored)
    }

    /// Appends a filter of the core as a row: 512 bits in a block, and the same blocks, probes and hash as the options have. The answers
    /// are those of the filter: "maybe" for everything if it is a pass-all filter or holds prefixes alone.
    ///
    /// # Errors
    ///
    /// [`PlanesError::FilterShape`], [`PlanesError::FilterHash`]; those of [`append`](Self::append).
    pub fn append_filter<'f>(
        &mut self,
        filter: impl Into<BloomFilterRef<'f>>,
    ) -> Result<Option<Vec<u8>>, PlanesError> {
        let filter = filter.into();
        let (options, params) = (self.layout.options(), filter.params());
        if filter.key_hash() != options.key_hash {
            let (found, expected) = (filter.key_hash(), options.key_hash);
            return Err(PlanesError::FilterHash { found, expected });
        }
        if filter.is_pass_all() || !filter.contents().whole_keys() {
            return self.append_pass_all();
        }
        let found = Shape::new(params.blocks(), BLOCK_BITS, params.probes())?;
        if found != options.shape {
            return Err(PlanesError::FilterShape { found, expected: options.shape });
        }
        self.append_with(|row| {
            let words = filter.blocks().as_flattened().as_chunks::<8>().0;
            row.iter_mut().zip(words).for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
        })
    }

    /// Appends a row of whose items nothing is known: it may have any.
    ///
    /// # Errors
    ///
    /// Those of [`append`](Self::append).
    pub fn append_pass_all(&mut self) -> Result<Option<Vec<u8>>, PlanesError> {
        self.append_with(|row| row.fill(u64::MAX))
    }

    #[inline]
    fn append_with(
        &mut self,
        fill: impl FnOnce(&mut [u64]),
    ) -> Result<Option<Vec<u8>>, PlanesError> {
        self.rows.push(fill);
        if !self.rows.is_full() {
            return Ok(None);
        }
        match self.take_group() {
            Ok(group) => Ok(Some(group)),
            Err(error) => {
                self.rows.used -= 1;
                Err(error)
            }
        }
    }

    /// The bytes of the group, and before the first group the record that begins all.
    pub(crate) fn take_group(&mut self) -> Result<Vec<u8>, PlanesError> {
        let mut stored = Vec::new();
        if self.groups == 0 {
            extend(&mut stored, &self.layout.record(0, false))?;
        }
        self.rows.take_group(&self.layout, self.groups, &mut stored)?;
        self.groups += 1;
        Ok(stored)
    }

    /// The bytes that are left: the last group, if it has a row, and the record that closes all; before them the one that begins all, if
    /// there was no group.
    ///
    /// # Errors
    ///
    /// [`PlanesError::Alloc`].
    pub fn finish(mut self) -> Result<Vec<u8>, PlanesError> {
        let rows = self.rows();
        let mut stored = match (self.rows.used, self.groups) {
            (0, 0) => Vec::from(self.layout.record(0, false)),
            (0, _) => Vec::new(),
            _ => self.take_group()?,
        };
        extend(&mut stored, &self.layout.record(rows, true))?;
        Ok(stored)
    }

    /// What the planes are made with.
    pub fn options(&self) -> &PlanesOptions {
        self.layout.options()
    }

    /// Rows that were appended.
    pub fn rows(&self) -> u64 {
        self.groups * u64::from(self.options().group_rows()) + self.rows.used as u64
    }

    /// Memory that is held between two calls: a group. The bytes that a call returns take as much.
    pub fn memory_bytes(&self) -> u64 {
        self.rows.memory_bytes() as u64
    }
}

/// Options and number of rows.
impl core::fmt::Debug for PlanesBuilder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PlanesBuilder")
            .field("options", self.options())
            .field("rows", &self.rows())
            .finish_non_exhaustive()
    }
}
