//! Computes where planes are in their bytes: records, groups, checksums.
//!
//! A record of 64 bytes starts the bytes, follows every group, and closes the whole. It uses the
//! core's header codec and contains the number of rows so far. The last record and the length
//! determine every offset. `docs/planes.md` is normative.

use core::num::NonZeroU32;
use core::ops::Range;

use blocked_bloom::parts::{HEADER_BYTES, Header, HeaderError};
use blocked_bloom::{KeyHash, KeyHasher};

use crate::error::{GROUP_ROWS_STEP, PlanesError};
use crate::options::PlanesOptions;
use crate::shape::{Shape, ShapeError};
use crate::text::{TextRows, TextState};

/// The first bytes of stored planes.
pub const MAGIC: [u8; 8] = *b"\x89BBPLNS\n";
/// Versions of planes without a text (which earlier releases also read) and with a text.
const VERSION: u16 = 1;
const VERSION_OF_TEXT: u16 = 2;
const PROBE_SCHEME: u8 = 1;

/// Code of the tokenizer [`TextRows::words`].
const TOKENIZER_WORDS: u8 = 1;

const FLAG_LIVENESS: u8 = 1;
const FLAG_COMPLETE: u8 = 2;
const FLAG_SHORT: u8 = 4;
const FLAG_TEXT_STATE: u8 = 8;

/// Size of the checksum that follows each plane of a group.
pub(crate) const CHECKSUM_BYTES: usize = 8;

/// The layout of stored planes, for engines that load parts of them from a file, an object store or
/// a cache.
///
/// The last 64 bytes and the length determine it. It locates the byte ranges that a query needs in
/// each group, and opens the loaded bytes.
///
/// ```
/// use blocked_bloom_planes::{Planes, PlanesLayout, PlanesOptions, Query, Shape};
/// let options = PlanesOptions::new(Shape::new(1, 128, 4)?).with_group_rows(512)?;
/// let hasher = options.hasher()?;
/// let rows = (0..2_000_u32).map(|row| [hasher.hash(row.to_le_bytes())]);
/// let file = Planes::from_hashes(&options, rows)?;
/// let file = file.as_bytes();
///
/// let tail = &file[file.len() - 64..]; // however the engine loads
/// let layout = PlanesLayout::from_tail(tail, file.len() as u64, options.key_hash())?;
/// let query = Query::all([hasher.hash(1_234_u32.to_le_bytes())]);
/// let mut hits = blocked_bloom::Bitmask::new();
/// let mut found = Vec::new();
/// for group in 0..layout.groups() {
///     let at = layout.locate(&query, group)?;
///     let loaded: Vec<&[u8]> =
///         at.planes.iter().map(|at| &file[at.offset as usize..][..at.length as usize]).collect();
///     layout.open(&at, &loaded)?.query(&query, &mut hits)?;
///     found.extend(hits.hits().map(|hit| layout.rows_of(group).start + hit as u64));
/// }
/// assert!(found.contains(&1_234));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanesLayout {
    options: PlanesOptions,
    rows: u64,
    complete: bool,
    /// Whether a record of the text's state comes before the last record.
    pub(crate) has_text_state: bool,
    /// Checksum of the first record. It seeds the checksums of the planes.
    identity: u64,
}

impl PlanesLayout {
    /// Creates the layout of planes with these options and this many rows. `complete` means that no
    /// rows will follow.
    pub(crate) fn new(options: PlanesOptions, rows: u64, complete: bool) -> Self {
        let first =
            PlanesLayout { options, rows: 0, complete: false, has_text_state: false, identity: 0 };
        let record = first.record(0, false);
        let mut sum = [0; 8];
        sum.copy_from_slice(&record[HEADER_BYTES - 8..]);
        PlanesLayout { rows, complete, identity: u64::from_le_bytes(sum), ..first }
    }

    /// Reads the layout from the last 64 bytes of stored planes, their total length, and the hash
    /// that they must have.
    ///
    /// # Errors
    ///
    /// [`PlanesError::Header`] if the record is invalid, the length does not match its number of
    /// rows, or the planes have another hash. [`PlanesError::Incomplete`] if the last record does
    /// not close the planes, as in a file that was cut off after a group. Without a layout, treat
    /// every row as "maybe".
    pub fn from_tail(
        tail: &[u8],
        stored_bytes: u64,
        key_hash: KeyHash,
    ) -> Result<Self, PlanesError> {
        PlanesLayout::from_tail_any_hash(tail, stored_bytes)?.check_key_hash(key_hash)
    }

    /// Reads the layout like [`from_tail`](Self::from_tail), with any hash, for programs that learn
    /// the hash from the [options](Self::options). A query with another hash misses rows.
    ///
    /// # Errors
    ///
    /// The errors of `from_tail`.
    pub fn from_tail_any_hash(tail: &[u8], stored_bytes: u64) -> Result<Self, PlanesError> {
        let layout = PlanesLayout::from_end(tail, stored_bytes)?;
        match layout.complete {
            true => Ok(layout),
            false => Err(PlanesError::Incomplete { rows: layout.rows }),
        }
    }

    /// Reads the layout of planes that are still being written, from the record after their last
    /// whole group, the offset of its end, and the hash that they must have. The layout covers the
    /// rows so far. Later rows may exist, and the caller must not treat them as absent.
    ///
    /// # Errors
    ///
    /// [`PlanesError::Header`] as [`from_tail`](Self::from_tail).
    pub fn from_last_record(
        tail: &[u8],
        stored_bytes: u64,
        key_hash: KeyHash,
    ) -> Result<Self, PlanesError> {
        PlanesLayout::from_end(tail, stored_bytes)?.check_key_hash(key_hash)
    }

    fn from_end(tail: &[u8], stored_bytes: u64) -> Result<Self, PlanesError> {
        let layout = PlanesLayout::from_record(tail)?;
        Header::check_length(stored_bytes, layout.stored_bytes())?;
        Ok(layout)
    }

    fn check_key_hash(self, expected: KeyHash) -> Result<Self, PlanesError> {
        Header::check_key_hash(11, self.options.key_hash(), expected)?;
        Ok(self)
    }

    /// Reads the layout of stored planes and checks the first and the last record. `expected` is
    /// the required hash; `None` accepts any hash.
    pub(crate) fn from_bytes(bytes: &[u8], expected: Option<KeyHash>) -> Result<Self, PlanesError> {
        let tail = bytes.last_chunk::<HEADER_BYTES>().map_or(bytes, |tail| tail);
        let layout = PlanesLayout::from_tail_any_hash(tail, bytes.len() as u64)?;
        let layout = layout.check_key_hash(expected.unwrap_or(layout.options.key_hash()))?;
        layout.check_record(bytes, 0, 0)?;
        Ok(layout)
    }

    /// Verifies the planes and records of all groups. The layout must have been read from `bytes`.
    pub(crate) fn verify(&self, bytes: &[u8]) -> Result<(), PlanesError> {
        for group in 0..self.groups() {
            for plane in 0..self.stored_planes() {
                let at = self.location(group, plane);
                self.checked(group, plane, &bytes[at.range()])?;
            }
            let end = self.location(group, self.stored_planes()).offset;
            self.check_record(bytes, end, self.rows_of(group).end)?;
        }
        if let Some(at) = self.locate_text_state() {
            self.text_state(&bytes[at.start as usize..at.end as usize])?;
        }
        Ok(())
    }

    /// Locates the record of the text's state, if the planes have one.
    pub fn locate_text_state(&self) -> Option<Range<u64>> {
        let end = self.stored_bytes() - HEADER_BYTES as u64;
        self.has_text_state.then(|| end - HEADER_BYTES as u64..end)
    }

    /// Reads the state of the text when it was indexed, from the bytes that
    /// [`locate_text_state`](Self::locate_text_state) locates.
    ///
    /// # Errors
    ///
    /// [`PlanesError::Header`] if the bytes are damaged, or belong to other planes.
    pub fn text_state(&self, loaded: &[u8]) -> Result<TextState, PlanesError> {
        TextState::from_record(loaded, self.identity)
    }

    pub(crate) fn text_record(&self, state: &TextState) -> [u8; HEADER_BYTES] {
        state.record(self.identity)
    }

    /// Checks the record at an offset. The record must not be the closing one.
    fn check_record(&self, bytes: &[u8], offset: u64, rows: u64) -> Result<(), PlanesError> {
        let record = bytes.get(offset as usize..).and_then(<[u8]>::first_chunk);
        match record == Some(&self.record(rows, false)) {
            true => Ok(()),
            false => Err(PlanesError::OtherRecord { offset }),
        }
    }

    /// Locates the record after the last whole group of planes that are still being written, from
    /// their first 64 bytes and the number of bytes so far. Pass the bytes of this range, and its
    /// end as the length, to [`from_last_record`](Self::from_last_record).
    ///
    /// # Errors
    ///
    /// [`PlanesError::Header`] if `first` is not the start of planes, or if fewer than 64 bytes are
    /// available.
    pub fn last_record(first: &[u8], available_bytes: u64) -> Result<Range<u64>, PlanesError> {
        let layout = PlanesLayout::from_record(first)?;
        if layout.rows != 0 || layout.complete {
            let name = "rows of the first record";
            return Err(HeaderError::field(40, name, layout.rows, "must be 0").into());
        }
        let Some(body) = available_bytes.checked_sub(HEADER_BYTES as u64) else {
            return Err(HeaderError::TooShort { found: available_bytes }.into());
        };
        let start = body - body % layout.group_bytes(layout.options.group_rows.into());
        Ok(start..start + HEADER_BYTES as u64)
    }

    fn from_record(bytes: &[u8]) -> Result<Self, PlanesError> {
        let version = match bytes.get(8..10) {
            Some([1, 0]) => VERSION,
            _ => VERSION_OF_TEXT,
        };
        let header = Header::read(bytes, MAGIC, version)?;
        let field = |offset, name, found: u64, expected| {
            PlanesError::from(HeaderError::field(offset, name, found, expected))
        };
        let scheme = header.u8_at(10);
        if scheme != PROBE_SCHEME {
            return Err(field(10, "unsupported probe scheme", scheme.into(), "supported: 1"));
        }
        let key_hash = header.key_hash_at(11, 16, None)?;
        let (probes, flags) = (u32::from(header.u8_at(12)), header.u8_at(13));
        let block_bits = header.u32_at(12) >> 16;
        let (blocks, group_rows) = (header.u32_at(24), header.u32_at(28));
        let shape = Shape::new(blocks, block_bits, probes).map_err(|error| match error {
            ShapeError::ProbesOutOfRange { .. } => field(12, "probes", probes.into(), "1 to 30"),
            ShapeError::BlockBitsOutOfRange { .. } => {
                field(14, "bits in a block", block_bits.into(), "16 to 512")
            }
            _ => field(24, "blocks", blocks.into(), "1 to 2^26 planes in all"),
        })?;
        let has_text_state = flags & FLAG_TEXT_STATE != 0;
        let known = FLAG_LIVENESS | FLAG_COMPLETE | FLAG_SHORT | FLAG_TEXT_STATE;
        if flags & !known != 0 {
            return Err(field(13, "unsupported flags", flags.into(), "supported: 0 to 15"));
        }
        if has_text_state && (flags & FLAG_COMPLETE == 0 || version == VERSION) {
            let expected = "the state of a text only in the last record of version 2";
            return Err(field(13, "flags", flags.into(), expected));
        }
        let options = PlanesOptions::new(shape).with_key_hash(key_hash);
        let options =
            options.with_tag(header.u64_at(32)).with_group_rows(group_rows).map_err(|_| {
                field(28, "rows in a group", group_rows.into(), "a multiple of 512 up to 2^24")
            })?;
        let text = match version {
            VERSION => {
                header.check_zero(48..56)?;
                None
            }
            _ => {
                let lines = NonZeroU32::new(header.u32_at(48))
                    .ok_or_else(|| field(48, "lines of a row", 0, "1 to 2^32 - 1"))?;
                let tokenizer = header.u8_at(52);
                if tokenizer != TOKENIZER_WORDS {
                    let name = "unsupported tokenizer";
                    return Err(field(52, name, tokenizer.into(), "supported: 1"));
                }
                header.check_zero(53..56)?;
                Some(TextRows::new(lines))
            }
        };
        let [liveness, complete, short_last_group] =
            [FLAG_LIVENESS, FLAG_COMPLETE, FLAG_SHORT].map(|flag| flags & flag != 0);
        let options = PlanesOptions { liveness, short_last_group, text, ..options };
        let layout = PlanesLayout::new(options, header.u64_at(40), complete);
        let layout = PlanesLayout { has_text_state, ..layout };
        match layout.checked_bytes() {
            Some(_) => Ok(layout),
            None => Err(field(40, "rows", layout.rows, "2^64 bytes in all")),
        }
    }

    /// Returns the record for this many rows. `complete` marks the closing record.
    pub(crate) fn record(&self, rows: u64, complete: bool) -> [u8; HEADER_BYTES] {
        let options = &self.options;
        let version = if options.text.is_some() { VERSION_OF_TEXT } else { VERSION };
        let mut header = Header::new(MAGIC, version);
        header.put(10, &[PROBE_SCHEME]);
        header.put_key_hash(11, 16, options.key_hash);
        let flags = u8::from(options.liveness) * FLAG_LIVENESS
            + u8::from(complete) * FLAG_COMPLETE
            + u8::from(options.short_last_group) * FLAG_SHORT
            + u8::from(complete && self.has_text_state) * FLAG_TEXT_STATE;
        header.put(12, &[options.shape.probes() as u8, flags]);
        header.put(14, &(options.shape.block_bits() as u16).to_le_bytes());
        header.put(24, &options.shape.blocks().to_le_bytes());
        header.put(28, &options.group_rows.to_le_bytes());
        header.put(32, &options.tag.to_le_bytes());
        header.put(40, &rows.to_le_bytes());
        if let Some(text) = options.text {
            header.put(48, &text.lines().get().to_le_bytes());
            header.put(52, &[TOKENIZER_WORDS]);
        }
        header.seal()
    }

    /// Returns the options of the planes.
    pub fn options(&self) -> &PlanesOptions {
        &self.options
    }

    /// Returns the number of rows, including deleted rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns whether the planes were finished, so that no rows will follow.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Returns the number of groups. The last group may have fewer rows than the others.
    pub fn groups(&self) -> u64 {
        self.rows.div_ceil(self.options.group_rows.into())
    }

    /// Returns the rows of a group. The range is empty for groups after the last.
    pub fn rows_of(&self, group: u64) -> Range<u64> {
        let group_rows = u64::from(self.options.group_rows);
        let start = group.saturating_mul(group_rows).min(self.rows);
        start..start.saturating_add(group_rows).min(self.rows)
    }

    /// Returns the total size in bytes.
    pub fn stored_bytes(&self) -> u64 {
        self.checked_bytes().unwrap_or(u64::MAX)
    }

    /// Returns the total size in bytes, or `None` on overflow. `Some` means that no offset
    /// overflows.
    fn checked_bytes(&self) -> Option<u64> {
        let group_rows = u64::from(self.options.group_rows);
        let (full, rest) = (self.rows / group_rows, self.rows % group_rows);
        let last = if rest == 0 { 0 } else { self.group_bytes(rest) };
        let full = full.checked_mul(self.group_bytes(group_rows))?;
        let records = 1 + u64::from(self.complete) + u64::from(self.has_text_state);
        let records = HEADER_BYTES as u64 * records;
        full.checked_add(last)?.checked_add(records)
    }

    /// Returns the size of a plane in a group of this many rows, without its checksum: whole cache
    /// lines, or whole words in a short last group.
    pub(crate) fn plane_bytes(&self, rows: u64) -> usize {
        let step = if self.options.short_last_group { 64 } else { GROUP_ROWS_STEP };
        // A group has at most 2^24 rows.
        rows.next_multiple_of(step.into()) as usize / 8
    }

    /// Returns the number of planes in a group, including the liveness plane.
    pub(crate) fn stored_planes(&self) -> u32 {
        self.options.shape.planes() + u32::from(self.options.liveness)
    }

    /// Returns the size of a group of this many rows, including the record that follows it.
    pub(crate) fn group_bytes(&self, rows: u64) -> u64 {
        let plane = (self.plane_bytes(rows) + CHECKSUM_BYTES) as u64;
        u64::from(self.stored_planes()) * plane + HEADER_BYTES as u64
    }

    /// Locates a plane of a group, together with its checksum.
    pub(crate) fn location(&self, group: u64, plane: u32) -> PlaneLocation {
        let rows = self.rows_of(group);
        let length = (self.plane_bytes(rows.end - rows.start) + CHECKSUM_BYTES) as u64;
        let before = group * self.group_bytes(self.options.group_rows.into());
        let offset = HEADER_BYTES as u64 + before + u64::from(plane) * length;
        PlaneLocation { plane, offset, length }
    }

    /// Computes the checksum of a plane at its place.
    pub(crate) fn checksum(&self, group: u64, plane: u32, bytes: &[u8]) -> u64 {
        let place = group.wrapping_mul(self.stored_planes().into()).wrapping_add(plane.into());
        KeyHasher::with_seed(self.identity.wrapping_add(place)).hash(bytes)
    }

    /// Returns the bytes of a plane without the checksum, after verifying it.
    pub(crate) fn checked<'b>(
        &self,
        group: u64,
        plane: u32,
        bytes: &'b [u8],
    ) -> Result<&'b [u8], PlanesError> {
        let PlaneLocation { length: expected, .. } = self.location(group, plane);
        let error = PlanesError::PlaneLength { found: bytes.len() as u64, expected };
        if bytes.len() as u64 != expected {
            return Err(error);
        }
        let (plane_bytes, stored) = bytes.split_last_chunk().ok_or(error)?;
        let (stored, computed) =
            (u64::from_le_bytes(*stored), self.checksum(group, plane, plane_bytes));
        match stored == computed {
            true => Ok(plane_bytes),
            false => Err(PlanesError::PlaneChecksum { group, plane, stored, computed }),
        }
    }

    /// Locates the liveness plane of a row. Load its bytes, pass them to
    /// [`delete_in`](Self::delete_in), and write them back.
    ///
    /// # Errors
    ///
    /// [`PlanesError::NoLiveness`], [`PlanesError::RowOutOfRange`].
    pub fn locate_liveness(&self, row: u64) -> Result<PlaneLocation, PlanesError> {
        if !self.options.liveness {
            return Err(PlanesError::NoLiveness);
        }
        if row >= self.rows {
            return Err(PlanesError::RowOutOfRange { row, rows: self.rows });
        }
        let group = row / u64::from(self.options.group_rows);
        Ok(self.location(group, self.options.shape.planes()))
    }

    /// Deletes a row in the loaded bytes of its liveness plane, and updates their checksum. Returns
    /// whether the row was live.
    ///
    /// # Errors
    ///
    /// The errors of [`locate_liveness`](Self::locate_liveness), and
    /// [`PlanesError::PlaneChecksum`] if the bytes are damaged. Nothing changes in either case.
    pub fn delete_in(&self, row: u64, loaded: &mut [u8]) -> Result<bool, PlanesError> {
        let PlaneLocation { plane, .. } = self.locate_liveness(row)?;
        let group = row / u64::from(self.options.group_rows);
        self.checked(group, plane, loaded)?;
        let (bytes, sum) = loaded.split_at_mut(loaded.len() - CHECKSUM_BYTES);
        let bit = row % u64::from(self.options.group_rows);
        let (byte, mask) = (&mut bytes[(bit / 8) as usize], 1 << (bit % 8));
        let was_live = *byte & mask != 0;
        *byte &= !mask;
        sum.copy_from_slice(&self.checksum(group, plane, bytes).to_le_bytes());
        Ok(was_live)
    }
}

/// The byte range of a plane of a group, including the checksum that follows it.
///
/// ```
/// # use blocked_bloom_planes::{Planes, PlanesOptions, Query, Shape};
/// let options = PlanesOptions::new(Shape::new(1, 64, 1)?);
/// let planes = Planes::from_hashes(&options, [[42 << 32], [7 << 60]])?;
/// let at = planes.layout().locate(&Query::all([7 << 60]), 0)?;
/// assert_eq!((at.planes[0].plane, at.planes[0].length), (28, 64 + 8));
/// assert_eq!(at.planes[0].offset, 64 + 28 * 72);
/// # Ok::<(), blocked_bloom_planes::PlanesError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PlaneLocation {
    /// Number of the plane.
    pub plane: u32,
    /// Offset in the stored planes.
    pub offset: u64,
    /// Size in bytes, including the checksum.
    pub length: u64,
}

impl PlaneLocation {
    /// Returns the range as `usize`. The bytes must be in memory and contain the plane.
    pub(crate) fn range(&self) -> Range<usize> {
        self.offset as usize..(self.offset + self.length) as usize
    }
}
