//! Stored planes in memory, generic over the owner of their bytes.

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

/// Target size, in words, of all planes of a batch of queries in one step: 512 KiB, which fits a
/// second-level cache.
const CACHED_WORDS: usize = 1 << 16;

/// Minimum and maximum words of each plane in a step. Pieces below 4 KiB are slow to read from
/// memory; 32 KiB of answers fit the first-level cache.
const MIN_STEP_WORDS: usize = 512;
const MAX_STEP_WORDS: usize = 4096;

/// Stored planes with their bytes: built from rows ([`PlanesBytes`]), or opened from any owner of
/// bytes at any alignment, such as a mapped file, a `Vec<u8>`, an `Arc<[u8]>` or a `&[u8]`.
///
/// The owner need not return the same slice every time. If the length differs from the opened
/// length, every row is answered with "maybe". No contents make a query panic.
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
    /// Opens stored planes that use this hash, and verifies them completely. Cost: reads all bytes
    /// once.
    ///
    /// # Errors
    ///
    /// [`PlanesError`] names the value found, its place and the expected value. Every truncation,
    /// extension and flipped bit is an error, and so is another hash, seed or tag
    /// ([`HeaderError::HashMismatch`]). Rejected bytes must not be used to rule out a row.
    ///
    /// [`HeaderError::HashMismatch`]: blocked_bloom::parts::HeaderError::HashMismatch
    pub fn from_bytes(bytes: B, key_hash: KeyHash) -> Result<Self, PlanesError> {
        Self::read(bytes, Some(key_hash))
    }

    /// Opens stored planes with any hash and verifies them completely, for tools that describe
    /// planes. Compare [`key_hash`](Self::key_hash) before you query hashes.
    ///
    /// # Errors
    ///
    /// The errors of [`from_bytes`](Self::from_bytes), except for another hash.
    pub fn from_bytes_any_hash(bytes: B) -> Result<Self, PlanesError> {
        Self::read(bytes, None)
    }

    fn read(bytes: B, expected: Option<KeyHash>) -> Result<Self, PlanesError> {
        // Called once: the owner may lend other bytes the next time.
        let slice = bytes.as_ref();
        let layout = PlanesLayout::from_bytes(slice, expected)?;
        layout.verify(slice)?;
        Ok(Planes { layout, bytes })
    }

    /// Opens stored planes that use this hash without verifying them, for bytes that are mapped or
    /// were verified before. Cost: reads the first and the last 64 bytes.
    ///
    /// # Errors
    ///
    /// The errors of [`from_bytes`](Self::from_bytes), except for damage to planes and to records
    /// other than the first and the last.
    pub fn from_bytes_trusted(bytes: B, key_hash: KeyHash) -> Result<Self, PlanesError> {
        Ok(Planes { layout: PlanesLayout::from_bytes(bytes.as_ref(), Some(key_hash))?, bytes })
    }

    /// Returns the same planes with borrowed bytes.
    pub fn view(&self) -> Planes<&[u8]> {
        Planes { layout: self.layout, bytes: self.as_bytes() }
    }

    /// Returns the stored bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Copies the planes into memory of their own. Cost: copies all bytes.
    ///
    /// # Errors
    ///
    /// [`PlanesError::Alloc`]; [`PlanesError::Header`] if the length of the owner's bytes has
    /// changed.
    pub fn to_planes(&self) -> Result<Planes, PlanesError> {
        let bytes = self.as_bytes();
        Header::check_length(bytes.len() as u64, self.layout.stored_bytes())?;
        Planes::copy_of(self.layout, bytes)
    }

    /// Checks that all of these rows exist.
    pub(crate) fn check_range(&self, rows: &Range<usize>) -> Result<(), PlanesError> {
        if rows.start > rows.end || rows.end > self.rows() {
            let (start, end) = (rows.start as u64, rows.end as u64);
            return Err(PlanesError::RangeOutOfRange { start, end, rows: self.layout.rows() });
        }
        Ok(())
    }

    /// Returns the bytes, or `None` if their length has changed.
    pub(crate) fn opened(&self) -> Option<&[u8]> {
        let bytes = self.as_bytes();
        (bytes.len() as u64 == self.layout.stored_bytes()).then_some(bytes)
    }

    /// Determines which rows may match a query: bit `i` of the answers is row `i`. Deleted rows
    /// never match.
    ///
    /// Cost: about 50 ns per item, and `rows / 8` bytes read for each plane. Each item has
    /// [`probes`](Shape::probes) planes. If none of 512 consecutive rows is left, their remaining
    /// planes are not read.
    pub fn query(&self, query: &Query, hits: &mut Bitmask) {
        let terms = Terms::new(query, self.layout.options());
        hits.write(self.rows(), |words| {
            evaluate_rows(&self.layout, self.opened(), &terms, 0, words)
        });
    }

    /// Queries a range of rows: bit `i` of the answers is row `rows.start + i`.
    ///
    /// If the range does not begin at a multiple of 64, the answers are shifted afterwards.
    ///
    /// # Errors
    ///
    /// [`PlanesError::RangeOutOfRange`]; `hits` is unchanged.
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

    /// Evaluates many queries step by step, so that a plane that several queries read is loaded
    /// from memory once. Calls `answer` for every step and query with the index of the query, the
    /// rows of the step, and the rows that may match: bit `i` is row `rows.start + i`.
    ///
    /// Steps are consecutive and begin at multiples of 64. A step has 32,768 to 262,144 rows, so
    /// that the planes of all queries and the answers fit the cache.
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

    /// Returns whether a row exists and was not deleted. Returns true for every existing row if the
    /// length of the owner's bytes has changed.
    pub fn is_live(&self, row: usize) -> bool {
        let (Ok(at), Some(bytes)) = (self.layout.locate_liveness(row as u64), self.opened()) else {
            return row < self.rows();
        };
        let bit = row % self.layout.options().group_rows() as usize;
        bytes[at.range()][bit / 8] >> (bit % 8) & 1 == 1
    }

    /// Returns the layout of the bytes.
    pub fn layout(&self) -> &PlanesLayout {
        &self.layout
    }

    /// Returns the number of rows, including deleted rows.
    pub fn rows(&self) -> usize {
        // The length was checked, so all rows have bytes in memory.
        self.layout.rows() as usize
    }

    /// Returns the shape of the rows.
    pub fn shape(&self) -> Shape {
        self.layout.options().shape()
    }

    /// Returns the hash of the items.
    pub fn key_hash(&self) -> KeyHash {
        self.layout.options().key_hash()
    }

    /// Returns the hasher of the items.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] for caller-supplied hashes.
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        self.key_hash().hasher()
    }
}

/// Writes the answers of the rows that start at `64 * first`; all ones if `bytes` is `None`. Not
/// generic over the owner of the bytes, so that it is compiled once.
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
    /// Deletes a row, so that no query matches it. Row numbers do not change. Returns whether the
    /// row was live. Cost: two checksums of `group_rows / 8` bytes.
    ///
    /// # Errors
    ///
    /// The errors of [`PlanesLayout::delete_in`], which deletes rows in a file, and
    /// [`PlanesError::Header`] if the length of the owner's bytes has changed.
    pub fn delete(&mut self, row: usize) -> Result<bool, PlanesError> {
        let (at, bytes) = (self.layout.locate_liveness(row as u64)?, self.bytes.as_mut());
        Header::check_length(bytes.len() as u64, self.layout.stored_bytes())?;
        self.layout.delete_in(row as u64, &mut bytes[at.range()])
    }
}

impl Planes {
    /// Builds planes with one row per list of items, hashed by the options' hasher.
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

    /// Builds planes from rows that `append` appends.
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

/// Shows the layout.
impl<B> core::fmt::Debug for Planes<B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Planes").field("layout", &self.layout).finish_non_exhaustive()
    }
}

/// The bytes of planes that were built from rows or [copied](Planes::to_planes).
///
/// Large buffers are advised to use huge pages, unless the
/// [options](PlanesOptions::for_filters) opt out. A query reads a few distant places, so without
/// huge pages, TLB misses cost as much time as the reads.
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
    /// Length of the planes, at most that of the buffer.
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
