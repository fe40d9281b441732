//! Stored planes in memory: owned, and borrowed from bytes that lie anywhere.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use blocked_bloom::header::HEADER_BYTES;
use blocked_bloom::probe::{BLOCK_BITS, BLOCK_BYTES};
use blocked_bloom::{Bitmask, BlockBuffer, BloomFilterRef, KeyError, KeyHash, KeyHasher};

use crate::builder::PlanesBuilder;
use crate::error::PlanesError;
use crate::evaluate::{Terms, Window, Windows, evaluate};
use crate::layout::PlanesLayout;
use crate::options::{GROUP_ROWS_STEP, PlanesOptions};
use crate::query::Query;
use crate::shape::Shape;

/// Words of all planes of a batch of queries that are in a second-level cache at a time: 512 KiB.
const CACHED_WORDS: usize = 1 << 16;

/// Fewest and most words of a plane among them. From memory, pieces of less than 4 KiB are slow; 32 KiB of answers are in the
/// first-level cache.
const FEWEST_WORDS: usize = 512;
const MOST_WORDS: usize = 4096;

/// Stored planes, borrowed where they are, at any alignment: in a mapped file, in a cache.
///
/// ```
/// use blocked_bloom_planes::{Planes, PlanesOptions, PlanesRef, Query, Shape};
/// let options = PlanesOptions::new(Shape::new(1, 128, 4)?);
/// let hasher = options.hasher()?;
/// let stored = Planes::from_hashes(&options, ["apple", "banana"].map(|key| [hasher.hash(key)]))?;
/// let stored = stored.as_bytes();
///
/// let planes = PlanesRef::from_bytes(stored)?;
/// let mut hits = blocked_bloom::Bitmask::new();
/// planes.query(&Query::all([planes.hasher()?.hash("banana")]), &mut hits);
/// assert!(hits.hits().eq([1]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct PlanesRef<'a> {
    layout: PlanesLayout,
    bytes: &'a [u8],
}

impl<'a> PlanesRef<'a> {
    /// Opens stored planes and verifies all of them. Cost: reads everything once.
    ///
    /// # Errors
    ///
    /// [`PlanesError`] says what was found, where, and what was expected. Every truncation, extension and flipped bit is an error.
    /// Such bytes must not be used to rule a row out.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, PlanesError> {
        let planes = PlanesRef::from_bytes_trusted(bytes)?;
        let layout = &planes.layout;
        for group in 0..layout.groups() {
            for plane in 0..layout.stored_planes() {
                let at = layout.location(group, plane);
                layout.checked(group, plane, planes.slice(at.offset, at.length))?;
            }
            let end = layout.location(group, layout.stored_planes()).offset;
            planes.check_record(end, layout.rows_of(group).end)?;
        }
        Ok(planes)
    }

    /// Opens stored planes without reading them: for bytes that were verified when they entered a cache, or that are mapped. Cost: reads
    /// the first 64 bytes and the last.
    ///
    /// # Errors
    ///
    /// As [`from_bytes`](Self::from_bytes), but for damaged planes, and records of groups but the last.
    pub fn from_bytes_trusted(bytes: &'a [u8]) -> Result<Self, PlanesError> {
        let tail = bytes.last_chunk::<HEADER_BYTES>().map_or(bytes, |tail| tail);
        let layout = PlanesLayout::from_tail(tail, bytes.len() as u64)?;
        let planes = PlanesRef { layout, bytes };
        planes.check_record(0, 0)?;
        Ok(planes)
    }

    /// The bytes from an offset, of a length that was checked.
    fn slice(&self, offset: u64, length: u64) -> &'a [u8] {
        let range = offset as usize..(offset + length) as usize;
        self.bytes.get(range).unwrap_or_default()
    }

    /// Whether the record at an offset, which is not the last, is the one that belongs there.
    fn check_record(&self, offset: u64, rows: u64) -> Result<(), PlanesError> {
        match self.slice(offset, HEADER_BYTES as u64) == self.layout.record(rows, false) {
            true => Ok(()),
            false => Err(PlanesError::OtherRecord { offset }),
        }
    }

    /// Which rows may satisfy a query: bit `i` of the answers is row `i`. Rows that were deleted do not.
    ///
    /// Cost: reads `rows / 8` bytes for each plane of the query, of which the items have [`probes`](Shape::probes) each, up to the plane
    /// after which no row of 512 is left; some 50 ns for each item of the query beside that.
    pub fn query(&self, query: &Query, hits: &mut Bitmask) {
        let rows = self.rows();
        let terms = Terms::of(query, &self.layout);
        hits.write(rows, |words| self.evaluate(&terms, 0, words));
    }

    /// [`query`](Self::query) of some rows: bit `i` of the answers is row `rows.start + i`.
    ///
    /// Ranges that begin at a multiple of 64 are written where they belong, others are moved.
    ///
    /// # Errors
    ///
    /// [`PlanesError::RangeOutOfRange`]; nothing is written then.
    ///
    /// ```
    /// # use blocked_bloom_planes::{Planes, PlanesOptions, Query, Shape};
    /// let options = PlanesOptions::new(Shape::new(1, 256, 6)?);
    /// let planes = Planes::from_hashes(&options, (0..100_u64).map(|row| [(row % 10) << 60]))?;
    /// let mut hits = blocked_bloom::Bitmask::new();
    /// planes.view().query_range(&Query::all([7 << 60]), 50..80, &mut hits)?;
    /// assert!(hits.hits().eq([7, 17, 27])); // rows 57, 67, 77
    /// # Ok::<(), blocked_bloom_planes::PlanesError>(())
    /// ```
    pub fn query_range(
        &self,
        query: &Query,
        rows: Range<usize>,
        hits: &mut Bitmask,
    ) -> Result<(), PlanesError> {
        if rows.start > rows.end || rows.end > self.rows() {
            let (start, end) = (rows.start as u64, rows.end as u64);
            return Err(PlanesError::RangeOutOfRange { start, end, rows: self.layout.rows() });
        }
        let terms = Terms::of(query, &self.layout);
        let (first, shift) = (rows.start / 64, rows.start % 64);
        hits.write(rows.len(), |words| {
            if shift == 0 || words.is_empty() {
                return self.evaluate(&terms, first, words);
            }
            let mut wider = vec![0; rows.end.div_ceil(64) - first];
            self.evaluate(&terms, first, &mut wider);
            for (i, word) in words.iter_mut().enumerate() {
                let next = wider.get(i + 1).map_or(0, |next| next << (64 - shift));
                *word = wider[i] >> shift | next;
            }
        });
        Ok(())
    }

    /// Many queries, piece of rows by piece of rows, so that the planes that several of them read come from memory once. `answer` gets, for
    /// every piece and in it for every query, the number of the query, the rows of the piece, and which of them may satisfy it: bit
    /// `i` is row `rows.start + i`.
    ///
    /// Pieces follow each other, and begin at multiples of 64. They have so many rows that the planes of all queries, and the answers, are
    /// in the cache: 32,768 to 262,144.
    ///
    /// ```
    /// # use blocked_bloom_planes::{Planes, PlanesOptions, Query, Shape};
    /// let options = PlanesOptions::new(Shape::new(1, 256, 6)?).with_group_rows(512)?;
    /// let planes = Planes::from_hashes(&options, (0..2_000_u64).map(|row| [row << 50]))?;
    /// let queries = [3, 1_500].map(|row| Query::all([row << 50]));
    /// let mut found = vec![Vec::new(); queries.len()];
    /// planes.view().query_batch(&queries, |query, rows, hits| {
    ///     found[query].extend(hits.hits().map(|hit| rows.start + hit));
    /// });
    /// assert!(found[0].contains(&3) && found[1].contains(&1_500));
    /// # Ok::<(), blocked_bloom_planes::PlanesError>(())
    /// ```
    pub fn query_batch(
        &self,
        queries: &[Query],
        mut answer: impl FnMut(usize, Range<usize>, &Bitmask),
    ) {
        let terms: Vec<Terms> =
            queries.iter().map(|query| Terms::of(query, &self.layout)).collect();
        let mut planes: Vec<u32> = terms.iter().flat_map(Terms::planes).collect();
        planes.sort_unstable();
        planes.dedup();
        let step = 64 * (CACHED_WORDS / planes.len().max(1)).clamp(FEWEST_WORDS, MOST_WORDS);
        let mut hits = Bitmask::new();
        for start in (0..self.rows()).step_by(step) {
            let rows = start..(start + step).min(self.rows());
            for (query, terms) in terms.iter().enumerate() {
                hits.write(rows.len(), |words| self.evaluate(terms, start / 64, words));
                answer(query, rows.clone(), &hits);
            }
        }
    }

    /// Writes the answers of rows from `64 * first` on.
    fn evaluate(&self, terms: &Terms, first: usize, words: &mut [u64]) {
        let plane = |number, window: &Window| {
            if window.group >= self.layout.groups() {
                return None;
            }
            let at = self.layout.location(window.group, number);
            self.bytes.get(at.offset as usize..)?.get(window.bytes())
        };
        let windows = Windows::new(
            first..first + words.len(),
            self.layout.options().group_rows() as usize / 64,
        );
        evaluate(terms, &windows, plane, words);
    }

    /// Whether a row was not deleted; false past the last row.
    pub fn is_live(&self, row: usize) -> bool {
        let exists = row < self.rows();
        let Ok(at) = self.layout.locate_liveness(row as u64) else {
            return exists;
        };
        let bit = row % self.layout.options().group_rows() as usize;
        let bytes = self.slice(at.offset, at.length);
        exists && bytes.get(bit / 8).is_none_or(|byte| byte >> (bit % 8) & 1 == 1)
    }

    /// Where everything is in the bytes.
    pub fn layout(&self) -> &PlanesLayout {
        &self.layout
    }

    /// Rows that were appended, deleted ones too.
    pub fn rows(&self) -> usize {
        // The length was checked: so many rows have bytes.
        self.layout.rows() as usize
    }

    /// The shape of the rows.
    pub fn shape(&self) -> Shape {
        self.layout.options().shape()
    }

    /// What the items are hashed with.
    pub fn key_hash(&self) -> KeyHash {
        self.layout.options().key_hash()
    }

    /// The hasher of the items.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the caller hashes.
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.key_hash().hasher()
    }

    /// The bytes as they are stored.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// What the last record says.
impl core::fmt::Debug for PlanesRef<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PlanesRef").field("layout", &self.layout).finish_non_exhaustive()
    }
}

/// Planes in memory, in their stored form.
///
/// ```
/// use blocked_bloom_planes::{Planes, PlanesOptions, Query, Shape};
/// let options = PlanesOptions::new(Shape::for_rate(2, 0.001)?).with_liveness();
/// let hasher = options.hasher()?;
/// let pages = [["error", "disk"], ["info", "disk"], ["error", "net"]];
/// let pages = pages.map(|tokens| tokens.map(|token| hasher.hash(token)));
/// let mut planes = Planes::from_hashes(&options, pages)?;
///
/// let (query, mut hits) = (Query::all([hasher.hash("error")]), blocked_bloom::Bitmask::new());
/// planes.query(&query, &mut hits);
/// assert!(hits.hits().eq([0, 2]));
/// planes.delete(0)?;
/// planes.query(&query, &mut hits);
/// assert!(hits.hits().eq([2]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Planes {
    layout: PlanesLayout,
    /// On huge pages where it is large: a query touches a few places far apart, and from memory, looking up where their pages are took
    /// as long as reading them.
    buffer: BlockBuffer,
}

impl Planes {
    /// A row for each list of items, hashed by the options' hasher.
    ///
    /// # Errors
    ///
    /// [`PlanesError::Alloc`].
    pub fn from_hashes<R: IntoIterator<Item = u64>>(
        options: &PlanesOptions,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<Self, PlanesError> {
        let mut builder = options.builder()?;
        let mut bytes = Vec::new();
        for row in rows {
            if let Some(group) = builder.append(row)? {
                extend(&mut bytes, &group)?;
            }
        }
        Planes::of_rest(builder, bytes)
    }

    /// A row for each filter of the core, all of the same blocks, probes and hash as the first: their answers, bit for bit.
    ///
    /// Groups have as many rows as there are filters, rounded up to 512, but at most those of [`PlanesOptions::new`].
    ///
    /// # Errors
    ///
    /// [`PlanesError::FilterShape`], [`PlanesError::FilterHash`] for the first that differs; [`PlanesError::PlanesOutOfRange`] for
    /// filters of more than 8 MiB; [`PlanesError::Alloc`].
    ///
    /// ```
    /// use blocked_bloom::{Bitmask, FilterOptions, Sizing};
    /// use blocked_bloom_planes::{Planes, Query};
    /// // Filters of the same size and probes: of as many keys each, or made for so many.
    /// let options = FilterOptions::new(Sizing::BitsPerKey(10.0)).with_expected_items(1_000);
    /// let mut filters = Vec::new();
    /// for table in 0..100 {
    ///     let mut filter = options.empty_filter(1_000)?;
    ///     filter.insert(format!("key of table {table}"))?;
    ///     filters.push(filter);
    /// }
    /// let planes = Planes::from_filters(&filters)?;
    /// let mut hits = Bitmask::new();
    /// planes.query(&Query::all([filters[0].hasher()?.hash("key of table 42")]), &mut hits);
    /// assert!(hits.hits().eq([42]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_filters<'f, F>(filters: &'f [F]) -> Result<Self, PlanesError>
    where
        BloomFilterRef<'f>: From<&'f F>,
    {
        let view = |filter: &'f F| BloomFilterRef::from(filter);
        // A stand-in for a filter that is missing has no shape of its own.
        let is_stand_in = |filter: &BloomFilterRef<'_>| filter.is_pass_all();
        let model = filters.iter().map(view).find(|filter| !is_stand_in(filter));
        let shape = match model {
            Some(filter) => {
                let params = filter.params();
                Shape::new(params.blocks(), BLOCK_BITS, params.probes())?
            }
            None => Shape::new(1, BLOCK_BITS, 1)?,
        };
        let key_hash = filters.first().map_or(KeyHash::default(), |first| view(first).key_hash());
        let options = PlanesOptions::new(shape).with_key_hash(key_hash);
        let rows = u32::try_from(filters.len()).unwrap_or(u32::MAX).max(1);
        let rows = rows.checked_next_multiple_of(GROUP_ROWS_STEP).unwrap_or(u32::MAX);
        let options = options.with_group_rows(rows.min(options.group_rows()))?;
        let mut builder = options.builder()?;
        let mut bytes = Vec::new();
        for filter in filters.iter().map(view) {
            if let Some(group) = builder.append_filter(filter)? {
                extend(&mut bytes, &group)?;
            }
        }
        Planes::of_rest(builder, bytes)
    }

    /// What is left in the builder behind the bytes that it gave out.
    pub(crate) fn of_rest(builder: PlanesBuilder, mut bytes: Vec<u8>) -> Result<Self, PlanesError> {
        let layout = PlanesLayout::new(*builder.options(), builder.rows(), true);
        extend(&mut bytes, &builder.finish()?)?;
        Planes::copy_of(layout, &bytes)
    }

    fn copy_of(layout: PlanesLayout, bytes: &[u8]) -> Result<Self, PlanesError> {
        let blocks = bytes.len().div_ceil(BLOCK_BYTES);
        let blocks = u32::try_from(blocks).map_err(|_| PlanesError::alloc(bytes.len()))?;
        let mut buffer = BlockBuffer::zeroed(blocks, true)?;
        buffer.as_flattened_mut()[..bytes.len()].copy_from_slice(bytes);
        Ok(Planes { layout, buffer })
    }

    /// Opens stored planes, verifies all of them, and copies them. [`PlanesRef::from_bytes`] copies nothing.
    ///
    /// # Errors
    ///
    /// Those of [`PlanesRef::from_bytes`]; [`PlanesError::Alloc`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PlanesError> {
        Planes::copy_of(PlanesRef::from_bytes(bytes)?.layout, bytes)
    }

    /// These planes, borrowed.
    #[inline]
    pub fn view(&self) -> PlanesRef<'_> {
        PlanesRef { layout: self.layout, bytes: self.as_bytes() }
    }

    /// Which rows may satisfy a query: [`PlanesRef::query`]. The other ways to look up are those of [`view`](Self::view).
    pub fn query(&self, query: &Query, hits: &mut Bitmask) {
        self.view().query(query, hits);
    }

    /// Deletes a row, which then satisfies no query; its number stays. Returns whether it was there. Cost: a checksum of
    /// `group_rows / 8` bytes, twice.
    ///
    /// # Errors
    ///
    /// Those of [`PlanesLayout::delete_in`], which deletes in a file.
    pub fn delete(&mut self, row: usize) -> Result<bool, PlanesError> {
        let at = self.layout.locate_liveness(row as u64)?;
        let range = at.offset as usize..(at.offset + at.length) as usize;
        let loaded = self.buffer.as_flattened_mut().get_mut(range).unwrap_or_default();
        self.layout.delete_in(row as u64, loaded)
    }

    /// The stored form.
    pub fn as_bytes(&self) -> &[u8] {
        // As many bytes as were copied.
        &self.buffer.as_flattened()[..self.layout.stored_bytes() as usize]
    }
}

/// Appends bytes if there is memory for them.
pub(crate) fn extend(bytes: &mut Vec<u8>, more: &[u8]) -> Result<(), PlanesError> {
    bytes.try_reserve(more.len()).map_err(|_| PlanesError::alloc(more.len()))?;
    bytes.extend_from_slice(more);
    Ok(())
}

/// What the last record says.
impl core::fmt::Debug for Planes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Planes").field("layout", &self.layout).finish_non_exhaustive()
    }
}
