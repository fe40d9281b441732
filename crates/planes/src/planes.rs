//! Stored planes in memory, wherever their bytes are.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use blocked_bloom::parts::BlockBuffer;
use blocked_bloom::parts::Header;
use blocked_bloom::probe::BLOCK_BYTES;
use blocked_bloom::{Bitmask, KeyError, KeyHash, KeyHasher};

use crate::builder::{PlanesBuilder, extend};
use crate::error::PlanesError;
use crate::evaluate::{Terms, Window, evaluate};
use crate::layout::PlanesLayout;
use crate::options::PlanesOptions;
use crate::query::Query;
use crate::shape::Shape;

/// Words of all planes of a batch of queries in one piece of rows: 512 KiB, for a second-level
/// cache.
const CACHED_WORDS: usize = 1 << 16;

/// Fewest and most words of each plane in a piece. From memory, pieces of less than 4 KiB are slow;
/// 32 KiB of answers are in the first-level cache.
const MIN_STEP_WORDS: usize = 512;
const MAX_STEP_WORDS: usize = 4096;

/// Stored planes, together with their bytes: those that were made of rows ([`PlanesBytes`]), or
/// others that they were opened from, at any alignment: a mapped file, a `Vec<u8>`, an `Arc<[u8]>`,
/// a `&[u8]`.
///
/// The owner of the bytes is not trusted to lend the same slice twice: if its length differs from
/// what was opened, every row is answered "maybe", and no contents make a query panic.
///
/// ```
/// use blocked_bloom::{Bitmask, FilterOptions};
/// use blocked_bloom_planes::{Planes, PlanesOptions, Query, Shape};
/// let store = FilterOptions::default();
/// let options = PlanesOptions::for_filters(&store, Shape::for_rate(2, 0.001)?).with_liveness();
/// let hasher = store.hasher()?;
/// let pages = [["error", "disk"], ["info", "disk"], ["error", "net"]];
/// let pages = pages.map(|tokens| tokens.map(|token| hasher.hash(token)));
/// let mut planes = Planes::from_hashes(&options, pages)?;
///
/// let (query, mut hits) = (Query::all([hasher.hash("error")]), Bitmask::new());
/// planes.query(&query, &mut hits);
/// assert!(hits.hits().eq([0, 2]));
/// planes.delete(0)?;
///
/// let opened = Planes::from_bytes(planes.as_bytes(), store.key_hash())?;
/// opened.query(&query, &mut hits);
/// assert!(hits.hits().eq([2]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Planes<B = PlanesBytes> {
    layout: PlanesLayout,
    bytes: B,
}

impl<B: AsRef<[u8]>> Planes<B> {
    /// Opens stored planes of this hash and verifies all of them. Cost: reads everything once.
    ///
    /// # Errors
    ///
    /// [`PlanesError`] says what was found, where, and what was expected. Every truncation,
    /// extension and flipped bit is an error, and so is another hash, seed or tag
    /// ([`HeaderError::HashMismatch`]). Such bytes must not be used to rule a row out.
    ///
    /// [`HeaderError::HashMismatch`]: blocked_bloom::parts::HeaderError::HashMismatch
    pub fn from_bytes(bytes: B, key_hash: KeyHash) -> Result<Self, PlanesError> {
        Self::read(bytes, Some(key_hash))
    }

    /// Opens stored planes of any hash and verifies all of them, as
    /// [`from_bytes`](Self::from_bytes) does: for tools that describe planes. Before you query
    /// hashes, compare [`key_hash`](Self::key_hash).
    ///
    /// # Errors
    ///
    /// [`PlanesError`], as `from_bytes` but for another hash.
    pub fn from_bytes_any_hash(bytes: B) -> Result<Self, PlanesError> {
        Self::read(bytes, None)
    }

    fn read(bytes: B, expected: Option<KeyHash>) -> Result<Self, PlanesError> {
        // Once: the owner may lend others the next time.
        let slice = bytes.as_ref();
        let layout = PlanesLayout::from_bytes(slice, expected)?;
        layout.verify(slice)?;
        Ok(Planes { layout, bytes })
    }

    /// Opens stored planes of this hash without reading them: for bytes that were verified when
    /// they entered a cache, or that are mapped. Cost: reads the first 64 bytes and the last.
    ///
    /// # Errors
    ///
    /// As [`from_bytes`](Self::from_bytes), except that damage to planes and to records between the
    /// first and the last is not found.
    pub fn from_bytes_trusted(bytes: B, key_hash: KeyHash) -> Result<Self, PlanesError> {
        Ok(Planes { layout: PlanesLayout::from_bytes(bytes.as_ref(), Some(key_hash))?, bytes })
    }

    /// The same planes, borrowed.
    pub fn view(&self) -> Planes<&[u8]> {
        Planes { layout: self.layout, bytes: self.as_bytes() }
    }

    /// The bytes as they are stored.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// A copy in memory of its own. Cost: copies everything.
    ///
    /// # Errors
    ///
    /// [`PlanesError::Alloc`]; [`PlanesError::Header`] if the owner of the bytes lends others than
    /// were opened.
    pub fn to_planes(&self) -> Result<Planes, PlanesError> {
        let bytes = self.as_bytes();
        Header::check_length(bytes.len() as u64, self.layout.stored_bytes())?;
        Planes::copy_of(self.layout, bytes)
    }

    /// Whether all of these rows are there.
    pub(crate) fn check_range(&self, rows: &Range<usize>) -> Result<(), PlanesError> {
        if rows.start > rows.end || rows.end > self.rows() {
            let (start, end) = (rows.start as u64, rows.end as u64);
            return Err(PlanesError::RangeOutOfRange { start, end, rows: self.layout.rows() });
        }
        Ok(())
    }

    /// `None` if the bytes are not those that were opened.
    pub(crate) fn opened(&self) -> Option<&[u8]> {
        let bytes = self.as_bytes();
        (bytes.len() as u64 == self.layout.stored_bytes()).then_some(bytes)
    }

    /// Which rows may satisfy a query: bit `i` of the answers is row `i`. Rows that were deleted do
    /// not.
    ///
    /// Cost: some 50 ns for each item of the query, and `rows / 8` bytes read for each of its
    /// planes, of which an item has [`probes`](Shape::probes). Where none of 512 rows is left, no
    /// further plane is read.
    pub fn query(&self, query: &Query, hits: &mut Bitmask) {
        let terms = Terms::new(query, self.layout.options());
        hits.write(self.rows(), |words| {
            evaluate_rows(&self.layout, self.opened(), &terms, 0, words)
        });
    }

    /// [`query`](Self::query) of some rows: bit `i` of the answers is row `rows.start + i`.
    ///
    /// The answers of a range that does not begin at a multiple of 64 are shifted afterwards.
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
    /// planes.query_range(&Query::all([7 << 60]), 50..80, &mut hits)?;
    /// assert!(hits.hits().eq([7, 17, 27])); // rows 57, 67, 77
    /// # Ok::<(), blocked_bloom_planes::PlanesError>(())
    /// ```
    pub fn query_range(
        &self,
        query: &Query,
        rows: Range<usize>,
        hits: &mut Bitmask,
    ) -> Result<(), PlanesError> {
        self.check_range(&rows)?;
        let terms = Terms::new(query, self.layout.options());
        let (first, shift) = (rows.start / 64, rows.start % 64);
        let evaluate =
            |words: &mut [u64]| evaluate_rows(&self.layout, self.opened(), &terms, first, words);
        hits.write(rows.len(), |words| {
            if shift == 0 || words.is_empty() {
                return evaluate(words);
            }
            let mut wider = vec![0; rows.end.div_ceil(64) - first];
            evaluate(&mut wider);
            for (i, word) in words.iter_mut().enumerate() {
                let next = wider.get(i + 1).map_or(0, |next| next << (64 - shift));
                *word = wider[i] >> shift | next;
            }
        });
        Ok(())
    }

    /// Evaluates many queries, one piece of the rows after the other, so that planes that several
    /// queries read come from memory once. For every query in every piece, `answer` gets the number
    /// of the query, the rows of the piece, and which of them may satisfy it: bit `i` is row
    /// `rows.start + i`.
    ///
    /// Pieces follow each other, and begin at multiples of 64. Their number of rows is such that
    /// the planes of all queries, and the answers, are in the cache: 32,768 to 262,144.
    ///
    /// ```
    /// # use blocked_bloom_planes::{Planes, PlanesOptions, Query, Shape};
    /// let options = PlanesOptions::new(Shape::new(1, 256, 6)?).with_group_rows(512)?;
    /// let planes = Planes::from_hashes(&options, (0..2_000_u64).map(|row| [row << 50]))?;
    /// let queries = [3, 1_500].map(|row| Query::all([row << 50]));
    /// let mut found = vec![Vec::new(); queries.len()];
    /// planes.query_batch(&queries, |query, rows, hits| {
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
        let (layout, bytes) = (&self.layout, self.opened());
        let terms = queries.iter().map(|query| Terms::new(query, layout.options()));
        let terms: Vec<Terms> = terms.collect();
        let planes: BTreeSet<u32> = terms.iter().flat_map(Terms::planes).collect();
        let step = 64 * (CACHED_WORDS / planes.len().max(1)).clamp(MIN_STEP_WORDS, MAX_STEP_WORDS);
        let mut hits = Bitmask::new();
        for start in (0..self.rows()).step_by(step) {
            let rows = start..(start + step).min(self.rows());
            for (query, terms) in terms.iter().enumerate() {
                hits.write(rows.len(), |words| {
                    evaluate_rows(layout, bytes, terms, start / 64, words);
                });
                answer(query, rows.clone(), &hits);
            }
        }
    }

    /// Whether a row was not deleted: true if the owner lends other bytes than were opened, false
    /// past the last row.
    pub fn is_live(&self, row: usize) -> bool {
        let (Ok(at), Some(bytes)) = (self.layout.locate_liveness(row as u64), self.opened()) else {
            return row < self.rows();
        };
        let bit = row % self.layout.options().group_rows() as usize;
        bytes[at.range()][bit / 8] >> (bit % 8) & 1 == 1
    }

    /// Where everything is in the bytes.
    pub fn layout(&self) -> &PlanesLayout {
        &self.layout
    }

    /// Rows that were appended, deleted ones too.
    pub fn rows(&self) -> usize {
        // The length was checked: this many rows have bytes.
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
}

/// Writes the answers of rows from `64 * first` on: all of them if there are no bytes. Compiled
/// once, whatever the bytes are in.
fn evaluate_rows(
    layout: &PlanesLayout,
    bytes: Option<&[u8]>,
    terms: &Terms,
    first: usize,
    words: &mut [u64],
) {
    let Some(bytes) = bytes else { return words.fill(u64::MAX) };
    let plane = |number, window: &Window| {
        if window.group >= layout.groups() {
            return None;
        }
        let at = layout.location(window.group, number);
        bytes.get(at.offset as usize..)?.get(window.bytes())
    };
    let plane_words = layout.options().group_rows() as usize / 64;
    evaluate(terms, first, plane_words, plane, words);
}

impl<B: AsMut<[u8]>> Planes<B> {
    /// Deletes a row, which then satisfies no query; its number stays. Returns whether it was
    /// there. Cost: a checksum of `group_rows / 8` bytes, twice.
    ///
    /// # Errors
    ///
    /// As [`PlanesLayout::delete_in`], which deletes in a file; [`PlanesError::Header`] if the
    /// owner of the bytes lends others than were opened.
    pub fn delete(&mut self, row: usize) -> Result<bool, PlanesError> {
        let (at, bytes) = (self.layout.locate_liveness(row as u64)?, self.bytes.as_mut());
        Header::check_length(bytes.len() as u64, self.layout.stored_bytes())?;
        self.layout.delete_in(row as u64, &mut bytes[at.range()])
    }
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
        Planes::from_rows(options, rows, PlanesBuilder::append)
    }

    /// A row for each that `append` appends.
    pub(crate) fn from_rows<R>(
        options: &PlanesOptions,
        rows: impl IntoIterator<Item = R>,
        append: impl Fn(&mut PlanesBuilder, R) -> Result<Option<Vec<u8>>, PlanesError>,
    ) -> Result<Self, PlanesError> {
        let mut builder = options.builder()?;
        let mut bytes = builder.append_each(rows, append)?;
        let layout = PlanesLayout::new(*options, builder.rows(), true);
        extend(&mut bytes, &builder.finish()?)?;
        Planes::copy_of(layout, &bytes)
    }

    fn copy_of(layout: PlanesLayout, bytes: &[u8]) -> Result<Self, PlanesError> {
        let blocks = bytes.len().div_ceil(BLOCK_BYTES);
        let blocks = u32::try_from(blocks).map_err(|_| PlanesError::alloc(bytes.len()))?;
        let buffer = BlockBuffer::zeroed(blocks, layout.options().huge_pages)?;
        let mut copy = PlanesBytes { buffer, len: bytes.len() };
        copy.as_mut().copy_from_slice(bytes);
        Ok(Planes { layout, bytes: copy })
    }
}

/// What the last record says.
impl<B> core::fmt::Debug for Planes<B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Planes").field("layout", &self.layout).finish_non_exhaustive()
    }
}

/// The bytes of planes that were made of rows or [copied](Planes::to_planes).
///
/// Advised to be on huge pages where there are many, unless the
/// [options](PlanesOptions::for_filters) say otherwise: a query reads a few places far apart, and
/// beyond the cache TLB misses took as long as the reads.
///
/// ```
/// use blocked_bloom_planes::{Planes, PlanesBytes, PlanesOptions, Shape};
/// let planes = Planes::from_hashes(&PlanesOptions::new(Shape::new(1, 128, 4)?), [[7_u64]])?;
/// let owned: Planes<PlanesBytes> = planes.view().to_planes()?;
/// assert_eq!(owned.as_bytes(), planes.as_bytes());
/// # Ok::<(), blocked_bloom_planes::PlanesError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PlanesBytes {
    buffer: BlockBuffer,
    /// At most those of the buffer.
    len: usize,
}

impl AsRef<[u8]> for PlanesBytes {
    fn as_ref(&self) -> &[u8] {
        &self.buffer.as_flattened()[..self.len]
    }
}

impl AsMut<[u8]> for PlanesBytes {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.buffer.as_flattened_mut()[..self.len]
    }
}
