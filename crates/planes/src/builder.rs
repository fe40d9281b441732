//! Turns rows into stored planes, group by group.

use alloc::vec::Vec;

use blocked_bloom::KeyHash;

use crate::error::PlanesError;
use crate::layout::PlanesLayout;
use crate::options::PlanesOptions;
use crate::shape::Shape;
use crate::text::TextState;
use crate::transpose::Rows;

/// Builds planes and returns the stored bytes one group at a time, for a file that is written while
/// it grows.
///
/// The returned pieces, concatenated, are the stored planes. The builder holds the rows of one
/// group twice. [`Planes::from_hashes`](crate::Planes::from_hashes) keeps all groups in memory
/// instead.
///
/// ```
/// use blocked_bloom_planes::{Planes, PlanesOptions, Query, Shape};
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
/// let planes = Planes::from_bytes(&file, options.key_hash())?;
/// planes.query(&Query::all([hasher.hash("seven")]), &mut hits);
/// assert!(hits.hits().any(|page| page == 700) && hits.count_hits() < 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PlanesBuilder {
    pub(crate) layout: PlanesLayout,
    pub(crate) rows: Rows,
    /// Number of groups returned so far.
    pub(crate) groups: u64,
}

impl PlanesOptions {
    /// Creates a builder of planes with these options.
    ///
    /// # Errors
    ///
    /// [`PlanesError::Alloc`] if memory for one row cannot be allocated.
    pub fn builder(&self) -> Result<PlanesBuilder, PlanesError> {
        let layout = PlanesLayout::new(*self, 0, false);
        Ok(PlanesBuilder { rows: Rows::new(&layout)?, layout, groups: 0 })
    }
}

impl PlanesBuilder {
    /// Appends a row with these items, hashed by the options' hasher. The order of the items does
    /// not matter, and repeated items are ignored. Returns the bytes of a group once it is
    /// complete.
    ///
    /// # Errors
    ///
    /// [`PlanesError::Alloc`] if memory for the row or for the bytes of its group cannot be
    /// allocated. The row is not appended in that case.
    #[inline]
    pub fn append(
        &mut self,
        hashes: impl IntoIterator<Item = u64>,
    ) -> Result<Option<Vec<u8>>, PlanesError> {
        let shape = self.layout.options().shape();
        self.append_with(|row| shape.set(row, hashes))
    }

    /// Appends one row per list of items, and returns the bytes of all groups that the call
    /// completed (possibly none).
    ///
    /// # Errors
    ///
    /// [`PlanesError::Alloc`]. The bytes of groups completed by this call are lost, so the builder
    /// must be discarded.
    pub fn append_all<R: AsRef<[u64]>>(&mut self, rows: &[R]) -> Result<Vec<u8>, PlanesError> {
        self.append_each(rows, |builder, row| builder.append(row.as_ref().iter().copied()))
    }

    /// Appends rows with `append`, and returns the bytes of all groups that the call completed.
    pub(crate) fn append_each<R>(
        &mut self,
        rows: impl IntoIterator<Item = R>,
        append: impl Fn(&mut Self, R) -> Result<Option<Vec<u8>>, PlanesError>,
    ) -> Result<Vec<u8>, PlanesError> {
        let mut stored = Vec::new();
        for row in rows {
            if let Some(group) = append(self, row)? {
                extend(&mut stored, &group)?;
            }
        }
        Ok(stored)
    }

    /// Appends a row whose items are unknown. It matches every query.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append).
    pub fn append_pass_all(&mut self) -> Result<Option<Vec<u8>>, PlanesError> {
        self.append_with(|row| row.fill(u64::MAX))
    }

    /// Appends the row that `fill` writes into zeroed words.
    #[inline]
    pub(crate) fn append_with(
        &mut self,
        fill: impl FnOnce(&mut [u64]),
    ) -> Result<Option<Vec<u8>>, PlanesError> {
        self.rows.push(fill)?;
        if !self.rows.is_full() {
            return Ok(None);
        }
        let group = self.rows.take_group(&self.layout, self.groups);
        let group = group.inspect_err(|_| self.rows.used -= 1)?;
        self.groups += 1;
        Ok(Some(group))
    }

    /// Returns the remaining bytes: the last group, if it has a row, and the closing record. If no
    /// group was returned before, they begin with the first record.
    ///
    /// # Errors
    ///
    /// [`PlanesError::Alloc`].
    pub fn finish(self) -> Result<Vec<u8>, PlanesError> {
        self.finish_with(None)
    }

    /// The same with the state of the text, so that a query can notice later changes of it.
    ///
    /// # Errors
    ///
    /// [`PlanesError::Alloc`]; [`PlanesError::NoText`] if the rows are not lines of a text.
    ///
    /// ```
    /// use core::num::NonZeroU32;
    /// use blocked_bloom::KeyHasher;
    /// use blocked_bloom_planes::{PlanesLayout, PlanesOptions, Shape, TextRows, TextState};
    /// let text = TextRows::new(NonZeroU32::MIN);
    /// let options = PlanesOptions::new(Shape::for_rate(4, 0.01)?).with_text(text);
    /// let (log, hasher) = (b"GET /index", options.hasher()?);
    /// let mut builder = options.builder()?;
    /// builder.append(text.words(log).map(|word| hasher.hash(word)))?;
    /// let state = TextState::new(10, 1, KeyHasher::with_seed(0).hash(log));
    /// let file = builder.finish_with_text_state(&state)?;
    ///
    /// let (tail, length) = (&file[file.len() - 64..], file.len() as u64);
    /// let layout = PlanesLayout::from_tail(tail, length, options.key_hash())?;
    /// let at = layout.locate_text_state().expect("a state");
    /// assert_eq!(layout.text_state(&file[at.start as usize..at.end as usize])?, state);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish_with_text_state(self, state: &TextState) -> Result<Vec<u8>, PlanesError> {
        match self.options().text() {
            Some(_) => self.finish_with(Some(state)),
            None => Err(PlanesError::NoText),
        }
    }

    fn finish_with(mut self, text_state: Option<&TextState>) -> Result<Vec<u8>, PlanesError> {
        let rows = self.rows();
        let mut stored = match (self.rows.used, self.groups) {
            (0, 0) => Vec::from(self.layout.record(0, false)),
            (0, _) => Vec::new(),
            _ => self.rows.take_group(&self.layout, self.groups)?,
        };
        if let Some(state) = text_state {
            self.layout.has_text_state = true;
            extend(&mut stored, &self.layout.text_record(state))?;
        }
        extend(&mut stored, &self.layout.record(rows, true))?;
        Ok(stored)
    }

    /// Checks that other rows have the shape of these planes.
    pub(crate) fn check_shape(&self, found: Shape) -> Result<(), PlanesError> {
        let expected = self.options().shape();
        if found == expected { Ok(()) } else { Err(PlanesError::RowShape { found, expected }) }
    }

    /// Checks that other rows have the hash of these planes.
    pub(crate) fn check_key_hash(&self, found: KeyHash) -> Result<(), PlanesError> {
        let expected = self.options().key_hash();
        if found == expected { Ok(()) } else { Err(PlanesError::HashMismatch { found, expected }) }
    }

    /// Returns the options of the planes.
    pub fn options(&self) -> &PlanesOptions {
        self.layout.options()
    }

    /// Returns the number of rows appended so far.
    pub fn rows(&self) -> u64 {
        self.groups * u64::from(self.options().group_rows()) + self.rows.used as u64
    }

    /// Returns the memory held between two calls: up to twice the rows of the current group, and at
    /// most one full group. The bytes that a call returns need the same amount again.
    pub fn memory_bytes(&self) -> u64 {
        self.rows.memory_bytes() as u64
    }
}

/// Appends `more` to `bytes`, or fails if the allocation fails.
pub(crate) fn extend(bytes: &mut Vec<u8>, more: &[u8]) -> Result<(), PlanesError> {
    bytes.try_reserve(more.len()).map_err(|_| PlanesError::alloc(more.len()))?;
    bytes.extend_from_slice(more);
    Ok(())
}

/// Shows the options and the number of rows.
impl core::fmt::Debug for PlanesBuilder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PlanesBuilder")
            .field("options", self.options())
            .field("rows", &self.rows())
            .finish_non_exhaustive()
    }
}
