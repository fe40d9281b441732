//! Columns of keys in memory of other owners. Some rows at a time are copied and checked.

use std::fmt::Display;
use std::ops::Range;

use pyo3::PyErr;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyValueError;

use crate::c_data::OwnedArray;
use crate::hash::Hasher;
use crate::memory;

/// Rows copied and hashed at a time; their keys stay in the first-level cache.
pub(crate) const CHUNK: usize = 1_024;

/// Maximum bytes of keys copied at a time, unless a single key is longer.
const CHUNK_BYTES: usize = 64 << 10;

/// An error in the key of a row.
#[derive(Debug)]
pub(crate) struct BadKey {
    pub(crate) row: usize,
    pub(crate) problem: String,
}

impl BadKey {
    fn new(row: usize, problem: impl Display) -> Self {
        BadKey { row, problem: problem.to_string() }
    }
}

impl From<BadKey> for PyErr {
    fn from(BadKey { row, problem }: BadKey) -> PyErr {
        PyValueError::new_err(format!("key {row}: {problem}"))
    }
}

/// The in-memory type of an integer, or of NumPy's booleans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    Bool,
}

impl Width {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Width::I8 | Width::U8 | Width::Bool => 1,
            Width::I16 | Width::U16 => 2,
            Width::I32 | Width::U32 => 4,
            Width::I64 | Width::U64 => 8,
        }
    }

    pub(crate) fn from_layout(bytes: usize, signed: bool) -> Option<Self> {
        Some(match (bytes, signed) {
            (1, true) => Width::I8,
            (1, false) => Width::U8,
            (2, true) => Width::I16,
            (2, false) => Width::U16,
            (4, true) => Width::I32,
            (4, false) => Width::U32,
            (8, true) => Width::I64,
            (8, false) => Width::U64,
            _ => return None,
        })
    }
}

/// Items of one size, `stride` bytes apart.
#[derive(Debug)]
pub(crate) struct Items {
    pub(crate) data: *const u8,
    pub(crate) size: usize,
    pub(crate) stride: isize,
    /// Whether numbers have the opposite byte order to the machine's.
    pub(crate) swapped: bool,
}

impl Items {
    pub(crate) fn adjacent(data: *const u8, size: usize) -> Self {
        Items { data, size, stride: size as isize, swapped: false }
    }

    fn address(&self, i: usize) -> *const u8 {
        self.data.wrapping_offset(self.stride.wrapping_mul(i as isize))
    }
}

/// Memory layout of a column's keys. The column's owner lent the pointers.
#[derive(Debug)]
pub(crate) enum Layout {
    /// Only NULL.
    Nulls,
    /// Arrow's booleans, one bit each.
    Bits(*const u8),
    /// Integers of any type are keys of eight bytes: the number 7 is one key in all types.
    Integers(Items, Width),
    /// Arrow's strings: one more offset than rows, of four or eight bytes each and at most `bytes`.
    Offsets { offsets: *const u8, width: Width, data: *const u8, bytes: usize },
    /// Arrow's views: a short string is in the view itself, a long one in one of the buffers.
    Views { views: *const u8, buffers: Vec<(*const u8, usize)> },
    /// Arrow's fixed-size binary values.
    Fixed(Items),
    /// NumPy's `S`: trailing zeros do not belong to the key.
    Padded(Items),
    /// NumPy's `U`: code points of four bytes; trailing zeros do not belong to the key.
    Utf32(Items),
    /// Each row is an index into `values`.
    Dictionary { indices: Items, width: Width, values: Box<Dictionary> },
}

/// The distinct values of a dictionary, hashed unless there are many more values than rows.
#[derive(Debug)]
pub(crate) struct Dictionary {
    pub(crate) values: Column,
    /// `None` for NULL. Empty if the values are not hashed.
    pub(crate) hashes: Vec<Option<u64>>,
}

/// Keeps a column's memory alive.
#[derive(Debug)]
pub(crate) enum Owner {
    Arrow {
        _array: OwnedArray,
    },
    Buffer {
        _buffer: PyUntypedBuffer,
    },
    /// The memory belongs to the enclosing column.
    Parent,
}

/// A column, or a chunk of one.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) layout: Layout,
    /// Row of the layout at which the column starts.
    pub(crate) offset: usize,
    pub(crate) len: usize,
    /// One bit per row of the layout; 0 means NULL.
    pub(crate) validity: Option<*const u8>,
    pub(crate) _owner: Owner,
}

// SAFETY: memory under the pointers is only read by atomic loads, which any thread may do. Any
// thread may drop the owners.
unsafe impl Send for Column {}
// SAFETY: memory under the pointers is only read by atomic loads, at any time by any thread.
unsafe impl Sync for Column {}

/// The representation of a chunk's keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Numbers,
    Bytes,
    Hashes,
}

/// A copy of some rows of a column, which other threads cannot change.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    pub(crate) kind: Kind,
    /// Numbers or hashes.
    pub(crate) numbers: Vec<u64>,
    ranges: Vec<Range<usize>>,
    /// Bytes of the keys; the first `used` belong to this chunk.
    data: Vec<u8>,
    used: usize,
    /// Bit `i % 64` of word `i / 64` is set if row `i` has a key. Empty if all rows have.
    pub(crate) valid: Vec<u64>,
    raw: Vec<u8>,
}

/// Returns bit `i` of words.
#[inline]
pub(crate) fn bit(words: &[u64], i: usize) -> bool {
    words[i / 64] >> (i % 64) & 1 == 1
}

/// Keeps the items whose bits are set, in order.
fn keep<T: Clone>(items: &mut Vec<T>, valid: &[u64]) {
    let mut kept = 0;
    for (word, &bits) in valid.iter().enumerate() {
        let mut bits = bits;
        while bits != 0 {
            let i = word * 64 + bits.trailing_zeros() as usize;
            items[kept] = items[i].clone();
            kept += 1;
            bits &= bits - 1;
        }
    }
    items.truncate(kept);
}

/// Reuses the allocation of a list for an empty one with another lifetime.
pub(crate) fn reused<'a>(mut list: Vec<&[u8]>) -> Vec<&'a [u8]> {
    list.clear();
    list.into_iter().map(|_| [].as_slice()).collect()
}

impl Stage {
    fn clear(&mut self, kind: Kind) {
        self.kind = kind;
        self.numbers.clear();
        self.ranges.clear();
        self.used = 0;
        self.valid.clear();
    }

    pub(crate) fn truncate(&mut self, rows: usize) {
        self.numbers.truncate(rows);
        self.ranges.truncate(rows);
        self.valid.truncate(rows.div_ceil(64));
        if let (Some(last), rest @ 1..) = (self.valid.last_mut(), rows % 64) {
            *last &= (1 << rest) - 1;
        }
    }

    /// Removes the rows without a key.
    pub(crate) fn leave_out_nulls(&mut self) {
        match self.kind {
            _ if self.valid.is_empty() => {}
            Kind::Bytes => keep(&mut self.ranges, &self.valid),
            _ => keep(&mut self.numbers, &self.valid),
        }
    }

    /// Returns the key of row `i` as bytes. `number` is space for the bytes of a number.
    pub(crate) fn bytes<'a>(&'a self, i: usize, number: &'a mut [u8; 8]) -> &'a [u8] {
        if self.kind == Kind::Bytes {
            return &self.data[self.ranges[i].clone()];
        }
        *number = self.numbers[i].to_le_bytes();
        number
    }

    /// Returns the keys as slices in `list`, whose allocation is reused. If its 16 KiB were freed,
    /// the system would take them back and clear them for the next list, which takes as long as
    /// hashing the keys.
    pub(crate) fn slices<'s>(&'s self, list: &mut Vec<&'static [u8]>) -> Vec<&'s [u8]> {
        let mut slices = reused(std::mem::take(list));
        slices.extend(self.ranges.iter().map(|range| &self.data[range.start..range.end]));
        slices
    }

    /// Clears the views of NULL, whose contents are undefined, starting at row `first`.
    fn forget_nulls(&self, first: usize, views: &mut [[u8; 16]]) {
        if !self.valid.is_empty() {
            let all = views.iter_mut().enumerate();
            all.filter(|(i, _)| !bit(&self.valid, first + i)).for_each(|(_, view)| *view = [0; 16]);
        }
    }

    /// Reserves space for more key bytes and returns it with its start. The space is not cleared,
    /// which would take as long as the copy.
    fn room(&mut self, bytes: usize) -> (usize, &mut [u8]) {
        let start = self.used;
        self.used += bytes;
        if self.data.len() < self.used {
            self.data.resize(self.used, 0);
        }
        (start, &mut self.data[start..self.used])
    }

    fn push_number(&mut self, number: u64) {
        self.numbers.push(number);
    }

    /// Copies items to `raw` one after another, converting numbers of `unit` bytes to the machine's
    /// byte order.
    ///
    /// # Safety
    ///
    /// The items `first..first + count` are allocated and stay allocated during the call.
    unsafe fn copy_items(&mut self, items: &Items, unit: usize, first: usize, count: usize) {
        self.raw.resize(items.size * count, 0);
        if items.stride == items.size as isize {
            // SAFETY: the items lie one after another, and the caller promises all of them.
            unsafe { memory::copy(items.address(first), &mut self.raw) };
        } else {
            for (i, out) in self.raw.chunks_exact_mut(items.size.max(1)).enumerate() {
                // SAFETY: `i < count`, and the caller promises that many items.
                unsafe { memory::copy(items.address(first + i), out) };
            }
        }
        if items.swapped {
            self.raw.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
        }
    }

    /// Copies integers to `numbers`.
    ///
    /// # Safety
    ///
    /// See `copy_items`.
    unsafe fn copy_integers(&mut self, items: &Items, width: Width, first: usize, count: usize) {
        if width.bytes() == 8 && items.stride == 8 && !items.swapped {
            let start = self.numbers.len();
            self.numbers.resize(start + count, 0);
            // SAFETY: the integers lie one after another, and the caller promises `count` of them.
            return unsafe { memory::copy_words(items.address(first), &mut self.numbers[start..]) };
        }
        // SAFETY: the caller promises the items `first..first + count`.
        unsafe { self.copy_items(items, width.bytes(), first, count) };
        let (raw, numbers) = (&self.raw, &mut self.numbers);
        fn widen<const N: usize>(raw: &[u8], numbers: &mut Vec<u64>, to: impl Fn([u8; N]) -> u64) {
            numbers.extend(raw.as_chunks().0.iter().map(|&bytes| to(bytes)));
        }
        match width {
            Width::I8 => widen(raw, numbers, |n| i64::from(i8::from_ne_bytes(n)) as u64),
            Width::U8 | Width::Bool => widen(raw, numbers, |n| u8::from_ne_bytes(n).into()),
            Width::I16 => widen(raw, numbers, |n| i64::from(i16::from_ne_bytes(n)) as u64),
            Width::U16 => widen(raw, numbers, |n| u16::from_ne_bytes(n).into()),
            Width::I32 => widen(raw, numbers, |n| i64::from(i32::from_ne_bytes(n)) as u64),
            Width::U32 => widen(raw, numbers, |n| u32::from_ne_bytes(n).into()),
            Width::I64 | Width::U64 => widen(raw, numbers, u64::from_ne_bytes),
        }
    }

    /// Appends `count` bits of a bitmap to words, starting at bit `first`.
    ///
    /// # Safety
    ///
    /// The bytes of these bits are allocated and stay allocated during the call.
    unsafe fn copy_bits(&mut self, bits: *const u8, first: usize, count: usize) -> Vec<u64> {
        self.raw.clear();
        self.raw.resize((first % 8 + count).div_ceil(8), 0);
        // SAFETY: the caller promises the bytes of the bits `first..first + count`.
        unsafe { memory::copy(bits.wrapping_add(first / 8), &mut self.raw) };
        self.raw.resize(count.div_ceil(64) * 8 + 8, 0);
        let mut words = Vec::with_capacity(count.div_ceil(64));
        for start in (0..count).step_by(64) {
            let mut wide = [0; 16];
            wide[..9].copy_from_slice(&self.raw[start / 8..start / 8 + 9]);
            let word = (u128::from_le_bytes(wide) >> (first % 8)) as u64;
            words.push(if count - start < 64 { word & ((1 << (count - start)) - 1) } else { word });
        }
        words
    }
}

impl Column {
    /// Copies at least one and at most `want` rows, starting at `start`, and returns their number.
    /// The values in the stage are arbitrary for rows without a key.
    ///
    /// With a hasher, the chunk may contain hashes.
    pub(crate) fn stage(
        &self,
        start: usize,
        want: usize,
        hashes: Option<Hasher>,
        stage: &mut Stage,
    ) -> Result<usize, BadKey> {
        assert!(
            want <= CHUNK && 0 < want && start + want <= self.len,
            "rows outside of the column"
        );
        // Numbers of earlier chunks are overwritten but not cleared, which would take as long as
        // the copy.
        let mut before = std::mem::take(&mut stage.numbers);
        stage.clear(self.kind(hashes.is_some()));
        if let Layout::Integers(items, Width::I64 | Width::U64) = &self.layout
            && items.stride == 8
            && !items.swapped
        {
            before.resize(want, 0);
            // SAFETY: the rows belong to the column, whose owner lent an item for each.
            unsafe { memory::copy_words(items.address(self.offset + start), &mut before) };
            stage.numbers = before;
            self.stage_validity(start, want, stage);
            return Ok(want);
        }
        before.clear();
        stage.numbers = before;
        self.stage_validity(start, want, stage);
        let first = self.offset + start;
        match (&self.layout, hashes) {
            (Layout::Views { views, buffers }, Some(hasher)) => {
                let views = views.wrapping_add(16 * first);
                // SAFETY: the rows belong to the column, whose owner lent a view for each.
                unsafe { hash_views(views, want, buffers, start, hasher, stage) }?;
                return Ok(want);
            }
            (Layout::Offsets { offsets, width, data, bytes }, Some(hasher)) => {
                let offsets = offsets.wrapping_add(width.bytes() * first);
                let hash = match width {
                    Width::I64 => hash_offsets::<8>,
                    _ => hash_offsets::<4>,
                };
                // SAFETY: the rows belong to the column, whose owner lent one more offset than
                // rows.
                unsafe { hash(offsets, want, (*data, *bytes), start, hasher, stage) }?;
                return Ok(want);
            }
            _ => {}
        }
        let rows = self.push(start, want, hashes.is_some(), stage)?;
        stage.truncate(rows);
        Ok(rows)
    }

    /// Records which of the rows have a key.
    fn stage_validity(&self, start: usize, want: usize, stage: &mut Stage) {
        if let Some(bits) = self.validity {
            // SAFETY: the rows belong to the column, whose owner lent a bit for each.
            let valid = unsafe { stage.copy_bits(bits, self.offset + start, want) };
            if valid.iter().map(|word| word.count_ones() as usize).sum::<usize>() < want {
                stage.valid = valid;
            }
        } else if let Layout::Nulls = self.layout {
            stage.valid.resize(want.div_ceil(64), 0);
        }
    }

    /// Returns the address of a NumPy array's first item and the distance in bytes between items.
    pub(crate) fn place(&self) -> Option<(*const u8, isize)> {
        match &self.layout {
            Layout::Integers(items, _) | Layout::Padded(items) | Layout::Utf32(items) => {
                Some((items.data, items.stride))
            }
            _ => None,
        }
    }

    /// Returns whether integers have a sign, or `None` for other values.
    pub(crate) fn is_signed(&self) -> Option<bool> {
        match &self.layout {
            Layout::Dictionary { values, .. } => values.values.is_signed(),
            Layout::Integers(_, Width::U8 | Width::U16 | Width::U32 | Width::U64) => Some(false),
            Layout::Integers(_, width) if *width != Width::Bool => Some(true),
            _ => None,
        }
    }

    pub(crate) fn kind(&self, hashes: bool) -> Kind {
        match &self.layout {
            Layout::Nulls | Layout::Bits(_) | Layout::Integers(..) => Kind::Numbers,
            Layout::Dictionary { values, .. } if hashes && !values.hashes.is_empty() => {
                Kind::Hashes
            }
            Layout::Views { .. } | Layout::Offsets { .. } if hashes => Kind::Hashes,
            Layout::Dictionary { values, .. } => values.values.kind(false),
            _ => Kind::Bytes,
        }
    }

    /// Appends a copy of rows to the stage.
    fn push(
        &self,
        start: usize,
        want: usize,
        hashes: bool,
        stage: &mut Stage,
    ) -> Result<usize, BadKey> {
        let first = self.offset + start;
        // Rows of fixed-width items that fit.
        let fit = |width: usize| want.min((CHUNK_BYTES / width.max(1)).max(1));
        match &self.layout {
            Layout::Nulls => stage.numbers.resize(stage.numbers.len() + want, 0),
            Layout::Bits(bits) => {
                // SAFETY: the rows belong to the column, whose owner lent a bit for each.
                let words = unsafe { stage.copy_bits(*bits, first, want) };
                stage.numbers.extend((0..want).map(|i| u64::from(bit(&words, i))));
            }
            Layout::Integers(items, width) => {
                // SAFETY: the rows belong to the column, whose owner lent an item for each.
                unsafe { stage.copy_integers(items, *width, first, want) };
            }
            Layout::Offsets { offsets, width, data, bytes } => {
                let offsets = Items::adjacent(*offsets, width.bytes());
                let before = std::mem::take(&mut stage.numbers);
                // SAFETY: the rows belong to the column, whose owner lent one more offset than
                // rows.
                unsafe { stage.copy_integers(&offsets, *width, first, want + 1) };
                let offsets = std::mem::replace(&mut stage.numbers, before);
                let rows = push_offsets(&offsets, *data, *bytes, start, stage);
                // Keep the allocation for the next chunk.
                if stage.numbers.is_empty() {
                    stage.numbers = offsets;
                    stage.numbers.clear();
                }
                return rows;
            }
            Layout::Views { views, buffers } => {
                let mut copied = [[0; 16]; 64];
                for done in (0..want).step_by(64) {
                    let copied = &mut copied[..(want - done).min(64)];
                    let views = views.wrapping_add(16 * (first + done));
                    // SAFETY: the rows belong to the column, whose owner lent a view for each.
                    unsafe { memory::copy(views, copied.as_flattened_mut()) };
                    stage.forget_nulls(done, copied);
                    push_views(copied, buffers, start + done, stage)?;
                    if stage.used > CHUNK_BYTES {
                        return Ok(done + copied.len());
                    }
                }
            }
            Layout::Fixed(items) => {
                let rows = fit(items.size);
                let (before, out) = stage.room(items.size * rows);
                // SAFETY: the rows belong to the column, whose owner lent an item for each, without
                // gaps.
                unsafe { memory::copy(items.address(first), out) };
                let ranges = (0..rows).map(|i| before + items.size * i);
                stage.ranges.extend(ranges.map(|at| at..at + items.size));
                return Ok(rows);
            }
            Layout::Padded(items) => {
                let rows = fit(items.size);
                // SAFETY: the rows belong to the column, whose owner lent an item for each.
                unsafe { stage.copy_items(items, 1, first, rows) };
                let raw = std::mem::take(&mut stage.raw);
                let (before, out) = stage.room(raw.len());
                out.copy_from_slice(&raw);
                for i in 0..rows {
                    let item = &raw[items.size * i..items.size * (i + 1)];
                    let len = item.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
                    let at = before + items.size * i;
                    stage.ranges.push(at..at + len);
                }
                stage.raw = raw;
                return Ok(rows);
            }
            Layout::Utf32(items) => {
                let rows = fit(items.size);
                // SAFETY: the rows belong to the column, whose owner lent an item for each.
                unsafe { stage.copy_items(items, 4, first, rows) };
                let raw = std::mem::take(&mut stage.raw);
                for i in 0..rows {
                    let points = raw[items.size * i..items.size * (i + 1)].as_chunks().0;
                    push_utf32(points, start + i, stage)?;
                }
                stage.raw = raw;
                return Ok(rows);
            }
            Layout::Dictionary { indices, width, values } => {
                return self.push_dictionary(indices, *width, values, start, want, hashes, stage);
            }
        }
        Ok(want)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a match arm")]
    fn push_dictionary(
        &self,
        indices: &Items,
        width: Width,
        Dictionary { values, hashes: known }: &Dictionary,
        start: usize,
        want: usize,
        hashes: bool,
        stage: &mut Stage,
    ) -> Result<usize, BadKey> {
        let mut places = Stage::default();
        // SAFETY: the rows belong to the column, whose owner lent an index for each.
        unsafe { places.copy_integers(indices, width, self.offset + start, want) };
        let mut value = Stage::default();
        for (i, &place) in places.numbers.iter().enumerate() {
            if !stage.valid.is_empty() && !bit(&stage.valid, i) {
                // The index of a NULL is arbitrary.
                match stage.kind {
                    Kind::Bytes => stage.ranges.push(0..0),
                    _ => stage.push_number(0),
                }
                continue;
            }
            let place = match usize::try_from(place) {
                Ok(place) if place < values.len => place,
                _ => {
                    let (place, len) = (place as i64, values.len);
                    return Err(BadKey::new(
                        start + i,
                        format_args!("index {place} of a dictionary of {len}"),
                    ));
                }
            };
            let is_null = match stage.kind {
                Kind::Hashes => {
                    stage.push_number(known[place].unwrap_or(0));
                    known[place].is_none()
                }
                kind => {
                    values
                        .stage(place, 1, None, &mut value)
                        .map_err(|error| BadKey::new(start + i, error.problem))?;
                    if kind == Kind::Bytes {
                        let bytes = value.bytes(0, &mut [0; 8]).to_owned();
                        let (at, out) = stage.room(bytes.len());
                        out.copy_from_slice(&bytes);
                        stage.ranges.push(at..at + bytes.len());
                    } else {
                        stage.push_number(value.numbers[0]);
                    }
                    !value.valid.is_empty()
                }
            };
            if is_null {
                if stage.valid.is_empty() {
                    stage.valid = (0..want.div_ceil(64)).map(|_| u64::MAX).collect();
                }
                stage.valid[i / 64] &= !(1 << (i % 64));
            }
            if stage.used > CHUNK_BYTES {
                return Ok(i + 1);
            }
        }
        debug_assert!(hashes || stage.kind != Kind::Hashes);
        Ok(want)
    }

    /// Returns the hash of each row, `None` for NULL.
    pub(crate) fn hash_all(&self, hasher: Hasher) -> Result<Vec<Option<u64>>, BadKey> {
        let (mut stage, mut all, mut hashes) =
            (Stage::default(), Vec::with_capacity(self.len), Vec::new());
        while all.len() < self.len {
            let rows = self.stage(all.len(), CHUNK.min(self.len - all.len()), None, &mut stage)?;
            hashes.clear();
            hashes.resize(rows, 0);
            let hashed = match stage.kind {
                Kind::Bytes => hasher.hash_batch_into(&stage.slices(&mut Vec::new()), &mut hashes),
                _ => hasher.hash_u64s(&stage.numbers, &mut hashes),
            };
            hashed.expect("a hash for each key");
            let is_key = |i: usize| stage.valid.is_empty() || bit(&stage.valid, i);
            all.extend(hashes.iter().enumerate().map(|(i, &hash)| is_key(i).then_some(hash)));
        }
        Ok(all)
    }
}

/// Checks that offsets ascend and do not exceed the number of bytes.
#[inline]
fn check_offsets(offsets: &[u64], bytes: usize, start: usize) -> Result<(), BadKey> {
    let ascend = offsets.windows(2).fold(true, |ascend, pair| ascend & (pair[0] <= pair[1]));
    if ascend && offsets[offsets.len() - 1] <= bytes as u64 {
        return Ok(());
    }
    let wrong = |pair: &[u64]| pair[1] < pair[0] || pair[1] > bytes as u64;
    let row = offsets.windows(2).position(wrong).expect("one of them is the reason");
    let (end, next) = (offsets[row] as i64, offsets[row + 1] as i64);
    let what = format_args!("its bytes end at offset {next}, expected {end} to {bytes}");
    Err(BadKey::new(start + row, what))
}

fn push_offsets(
    offsets: &[u64],
    data: *const u8,
    bytes: usize,
    start: usize,
    stage: &mut Stage,
) -> Result<usize, BadKey> {
    check_offsets(offsets, bytes, start)?;
    let first = offsets[0];
    // As many rows as fit in one copy, but at least one.
    let fit = offsets[1..].partition_point(|&end| end - first <= CHUNK_BYTES as u64).max(1);
    let offsets = &offsets[..fit + 1];
    let (before, out) = stage.room((offsets[fit] - first) as usize);
    // SAFETY: offsets ascend to at most `bytes`, as checked above, and the column's owner lent
    // `bytes` bytes.
    unsafe { memory::copy(data.wrapping_add(first as usize), out) };
    let at = |offset: u64| before + (offset - first) as usize;
    stage.ranges.extend(offsets.windows(2).map(|pair| at(pair[0])..at(pair[1])));
    Ok(fit)
}

/// A decoded view: the length of the key and, if that is more than 12, its buffer and its start
/// there.
#[derive(Clone, Copy)]
struct View {
    len: u32,
    buffer: u32,
    offset: u32,
}

impl View {
    fn decode(view: &[u8; 16]) -> Self {
        let [len, _, buffer, offset] =
            std::array::from_fn(|i| u32::from_le_bytes(std::array::from_fn(|j| view[4 * i + j])));
        View { len, buffer, offset }
    }

    fn is_short(self) -> bool {
        self.len <= 12
    }

    /// Returns the address of a long key if it lies within its buffer, and a null pointer for a
    /// short key. Lengths and offsets are signed.
    #[inline(always)]
    fn place(self, buffers: &[(*const u8, usize)]) -> Option<*const u8> {
        if self.is_short() {
            return Some(std::ptr::null());
        }
        let &(data, bytes) = buffers.get(self.buffer as usize)?;
        let fits = (self.len | self.offset) <= i32::MAX as u32
            && self.offset as usize + self.len as usize <= bytes;
        fits.then(|| data.wrapping_add(self.offset as usize))
    }

    #[cold]
    fn wrong(self, row: usize, buffers: &[(*const u8, usize)]) -> BadKey {
        let (len, offset, buffer) = (self.len as i32, self.offset as i32, self.buffer as i32);
        let of = buffers.len();
        let what = format_args!(
            "a view of {len} bytes at {offset} of buffer {buffer}, outside of the {of} buffers or \
             this one"
        );
        BadKey::new(row, what)
    }
}

/// Keys hashed at a time. Their offsets or views are copied and compared with the buffers' lengths
/// before any key is read.
const GROUP: usize = 64;

/// Hashes the keys between offsets of `N` bytes.
///
/// # Safety
///
/// One more offset than `count` and the `bytes` at `data` are allocated and stay allocated during
/// the call.
unsafe fn hash_offsets<const N: usize>(
    offsets: *const u8,
    count: usize,
    (data, bytes): (*const u8, usize),
    start: usize,
    hasher: Hasher,
    stage: &mut Stage,
) -> Result<(), BadKey> {
    let Stage { numbers, data: scratch, .. } = stage;
    numbers.resize(count, 0);
    let slice_hasher = hasher.slice_hasher();
    let (mut copied, mut ends) = ([[0; N]; GROUP + 1], [0; GROUP + 1]);
    for (group, hashes) in numbers.chunks_mut(GROUP).enumerate() {
        let copied = &mut copied[..hashes.len() + 1];
        // SAFETY: the caller promises `count + 1` offsets, and this group's are among them.
        unsafe {
            memory::copy(offsets.wrapping_add(N * GROUP * group), copied.as_flattened_mut());
        }
        let ends = &mut ends[..hashes.len() + 1];
        for (end, bytes) in ends.iter_mut().zip(&*copied) {
            *end = match bytes[..] {
                [a, b, c, d] => i64::from(i32::from_ne_bytes([a, b, c, d])) as u64,
                ref bytes => u64::from_ne_bytes(*bytes.first_chunk().expect("of 4 or 8 bytes")),
            };
        }
        check_offsets(ends, bytes, start + GROUP * group)?;
        let (first, last) = (ends[0] as usize, ends[hashes.len()] as usize);
        let total = last - first;
        if total <= 16 * hashes.len() {
            // Nearly all groups have only short keys: copy them together and hash the copy.
            scratch.resize(total.max(scratch.len()), 0);
            let scratch = &mut scratch[..total];
            // SAFETY: offsets ascend to at most `bytes`, as checked above. The caller promises that
            // many.
            unsafe { memory::copy(data.wrapping_add(first), scratch) };
            for (hash, pair) in hashes.iter_mut().zip(ends.windows(2)) {
                *hash = hasher.hash(&scratch[pair[0] as usize - first..pair[1] as usize - first]);
            }
            continue;
        }
        for line in (0..total).step_by(64) {
            memory::prefetch(data.wrapping_add(last + line));
        }
        for (hash, pair) in hashes.iter_mut().zip(ends.windows(2)) {
            let (key, len) = (data.wrapping_add(pair[0] as usize), (pair[1] - pair[0]) as usize);
            // SAFETY: offsets ascend to at most `bytes`, as checked above. The caller promises that
            // many.
            *hash = unsafe { slice_hasher.hash(key, len, scratch) };
        }
    }
    Ok(())
}

/// The processor prefetches by itself if the first and last key of a group are at most this many
/// bytes apart.
const FAR: usize = 16 << 10;

/// Hashes the keys of views.
///
/// # Safety
///
/// `count` views and all buffers are allocated and stay allocated during the call.
unsafe fn hash_views(
    views: *const u8,
    count: usize,
    buffers: &[(*const u8, usize)],
    start: usize,
    hasher: Hasher,
    stage: &mut Stage,
) -> Result<(), BadKey> {
    let mut numbers = std::mem::take(&mut stage.numbers);
    numbers.resize(count, 0);
    let slice_hasher = hasher.slice_hasher();
    let (mut copied, mut keys) = ([[0; 16]; GROUP], [(std::ptr::null(), 0); GROUP]);
    for (group, hashes) in numbers.chunks_mut(GROUP).enumerate() {
        let first = GROUP * group;
        let copied = &mut copied[..hashes.len()];
        // SAFETY: the caller promises `count` views, and this group's are among them.
        unsafe { memory::copy(views.wrapping_add(16 * first), copied.as_flattened_mut()) };
        stage.forget_nulls(first, copied);
        // First find all keys, then hash them, so that no hash waits for the address of its buffer.
        let mut all_short = true;
        for (i, (key, bytes)) in keys.iter_mut().zip(&*copied).enumerate() {
            let view = View::decode(bytes);
            let data = match view.place(buffers) {
                _ if view.is_short() => bytes[4..].as_ptr(),
                Some(data) => data,
                None => return Err(view.wrong(start + first + i, buffers)),
            };
            all_short &= view.is_short();
            *key = (data, view.len as usize);
        }
        let keys = &keys[..hashes.len()];
        if all_short {
            for ((hash, bytes), &(_, len)) in hashes.iter_mut().zip(&*copied).zip(keys) {
                *hash = hasher.hash(&bytes[4..4 + len]);
            }
            continue;
        }
        let span = (keys[keys.len() - 1].0.addr()).wrapping_sub(keys[0].0.addr());
        if span > FAR {
            // The keys are not adjacent: prefetch all.
            keys.iter().for_each(|&(data, _)| memory::prefetch(data));
        }
        for (hash, &(data, len)) in hashes.iter_mut().zip(keys) {
            // SAFETY: a short key is in the copy of its view. `place` found a long one within its
            // buffer, which the caller promises.
            *hash = unsafe { slice_hasher.hash(data, len, &mut stage.data) };
        }
    }
    stage.numbers = numbers;
    Ok(())
}

/// Copies the keys of views. A view of zeros is an empty key.
fn push_views(
    views: &[[u8; 16]],
    buffers: &[(*const u8, usize)],
    start: usize,
    stage: &mut Stage,
) -> Result<(), BadKey> {
    for (i, bytes) in views.iter().enumerate() {
        let view = View::decode(bytes);
        let len = view.len;
        let data = match view.place(buffers) {
            _ if view.is_short() => None,
            Some(data) => Some(data),
            None => return Err(view.wrong(start + i, buffers)),
        };
        let (at, out) = stage.room(len as usize);
        match data {
            // SAFETY: `place` checked that the view ends within its buffer, whose length the owner
            // reported.
            Some(data) => unsafe { memory::copy(data, out) },
            None => out.copy_from_slice(&bytes[4..4 + len as usize]),
        }
        stage.ranges.push(at..at + len as usize);
    }
    Ok(())
}

fn push_utf32(points: &[[u8; 4]], row: usize, stage: &mut Stage) -> Result<(), BadKey> {
    let len = points.iter().rposition(|point| *point != [0; 4]).map_or(0, |last| last + 1);
    // UTF-8 takes at most four bytes per code point.
    let (start, out) = stage.room(4 * len);
    let mut end = 0;
    for point in &points[..len] {
        let point = u32::from_ne_bytes(*point);
        match char::from_u32(point) {
            Some(ascii) if ascii.is_ascii() => {
                out[end] = ascii as u8;
                end += 1;
            }
            Some(char) => end += char.encode_utf8(&mut out[end..]).len(),
            None => {
                return Err(BadKey::new(row, format_args!("code point {point:#x} has no UTF-8")));
            }
        }
    }
    stage.used = start + end;
    stage.ranges.push(start..start + end);
    Ok(())
}
