//! Converts batches of keys into chunks for a filter, and answers into booleans of the caller's
//! library.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::hash::Hasher;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyString, PyTuple};
use rayon::prelude::*;

use crate::columns::{BadKey, CHUNK, Column, Kind, Stage, bit, reused};
use crate::error::memory_error;
use crate::objects::{KeyBatch, Objects};
use crate::{arrow, buffer};

/// Keys for a filter, without NULL: at most [`CHUNK`], and not shared with other threads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keys<'a> {
    Numbers(&'a [u64]),
    Bytes(&'a [&'a [u8]]),
    Hashes(&'a [u64]),
}

impl Keys<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Keys::Numbers(keys) | Keys::Hashes(keys) => keys.len(),
            Keys::Bytes(keys) => keys.len(),
        }
    }
}

/// The keys passed to a method.
#[derive(Debug)]
pub(crate) enum Batch<'py> {
    /// Columns in chunks, whose rows are the keys.
    Columns {
        columns: Vec<Vec<Column>>,
        /// Whether the keys are tuples, as for a list of columns (even of one).
        are_tuples: bool,
        len: usize,
        hasher: Hasher,
    },
    Objects {
        objects: Objects<'py>,
        hasher: Hasher,
    },
}

/// Returns whether an item of a list is a column rather than a key.
fn is_column(item: &Bound<'_, PyAny>) -> PyResult<bool> {
    // Other objects with a buffer, such as pyarrow's scalars and bytearray, are single keys.
    if item.is_instance_of::<PyString>() || item.is_instance_of::<PyBytes>() {
        return Ok(false);
    }
    let py = item.py();
    let class = py.import(pyo3::intern!(py, "numpy"))?.getattr(pyo3::intern!(py, "ndarray"))?;
    Ok(arrow::is_column(item)? || item.is_instance(&class)?)
}

/// Returns the chunks of one column, or `None` if the object is not a column. Pass no hasher for
/// [`Rows`] without one.
pub(crate) fn column(
    keys: &Bound<'_, PyAny>,
    hasher: Option<Hasher>,
) -> PyResult<Option<Vec<Column>>> {
    // For objects, Polars exports memory addresses without saying so.
    if library_of(keys)? == Library::Polars
        && let Some(dtype) = keys.getattr_opt(pyo3::intern!(keys.py(), "dtype"))?
        && dtype.str()?.to_cow()? == "Object"
    {
        return Err(PyTypeError::new_err(
            "keys are of Polars' type Object: give series.to_list(), or cast them",
        ));
    }
    match arrow::columns(keys, hasher) {
        Ok(None) => Ok(buffer::column(keys)?.map(|column| vec![column])),
        Err(error)
            if error.get_type(keys.py()).module()?.to_cow()?.starts_with("pyarrow")
                || error.is_instance_of::<PyOverflowError>(keys.py()) =>
        {
            let dtype = keys.getattr(pyo3::intern!(keys.py(), "dtype"))?.str()?;
            Err(PyTypeError::new_err(match dtype.to_cow()?.starts_with("Sparse") {
                true => "keys are a sparse column: give series.sparse.to_dense()".to_owned(),
                false => format!(
                    "keys are a column of {dtype} whose values have no common type of Arrow: give \
                     series.tolist()"
                ),
            }))
        }
        columns => columns,
    }
}

/// Converts a pandas column to a NumPy array if pyarrow is missing, because pandas then has no
/// Arrow interface. Types that NumPy lacks become objects, with None for NA. Returns every other
/// object unchanged.
fn convert_without_pyarrow<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let class = keys.get_type();
    if !class.module()?.to_cow()?.starts_with("pandas")
        || class.name()?.to_cow()? != "Series"
        || py.import(pyo3::intern!(py, "pyarrow")).is_ok()
    {
        return Ok(keys.clone());
    }
    let numpy = py.import(pyo3::intern!(py, "numpy"))?;
    let dtype = keys.getattr(pyo3::intern!(py, "dtype"))?;
    let to_numpy = pyo3::intern!(py, "to_numpy");
    if dtype.is_instance(&numpy.getattr(pyo3::intern!(py, "dtype"))?)? {
        return keys.call_method0(to_numpy);
    }
    let options = pyo3::types::PyDict::new(py);
    options.set_item("dtype", py.get_type::<PyAny>())?;
    options.set_item("na_value", py.None())?;
    keys.call_method(to_numpy, (), Some(&options))
}

/// Refuses columns that are parts of one NumPy array, such as the rows of a two-dimensional array:
/// the caller may mean its rows or its columns.
fn refuse_parts(items: &[Bound<'_, PyAny>], columns: &[Vec<Column>]) -> PyResult<()> {
    let mut places = Vec::new();
    let mut owner: Option<Bound<'_, PyAny>> = None;
    for (item, column) in items.iter().zip(columns) {
        let base = item.getattr_opt(pyo3::intern!(item.py(), "base"))?;
        let (Some(base), [column]) = (base, &column[..]) else { return Ok(()) };
        let Some(place) = column.place() else { return Ok(()) };
        // A field of a record array is a column.
        let names = base.getattr_opt(pyo3::intern!(item.py(), "dtype"))?;
        let names = names.map(|dtype| dtype.getattr("names")).transpose()?;
        if base.is_none() || names.is_none_or(|names| !names.is_none()) {
            return Ok(());
        }
        if !owner.get_or_insert_with(|| base.clone()).is(&base) {
            return Ok(());
        }
        places.push((place, column.len as isize));
    }
    let Some(owner) = owner else { return Ok(()) };
    let dimensions: usize = owner.getattr("ndim")?.extract()?;
    // NumPy says the same of a view of a whole array and of the only row of a reshaped array.
    if let [(_, rows)] = places[..]
        && (dimensions > 1 || rows > 1 && rows as usize == owner.len()?)
    {
        return Err(PyTypeError::new_err(
            "the column of the list is a view, perhaps a row of an array of several dimensions: \
             whether a row or a column is meant does not show; give a copy of the column, \
             [column.copy()]",
        ));
    }
    let [((first, stride), rows), _, ..] = places[..] else { return Ok(()) };
    let stride = stride.abs();
    let distance = |place: *const u8| place.addr().abs_diff(first.addr()) as isize;
    // Rows of the array are apart, and its columns are side by side. Windows overlap.
    let (mut are_rows, mut are_columns) = (true, true);
    for &((place, own), _) in &places[1..] {
        let is_part = place != first && own.abs() == stride;
        are_rows &= is_part && distance(place) >= rows * stride;
        are_columns &= is_part && distance(place) < stride;
    }
    let count = places.len();
    if are_rows || are_columns || dimensions > 1 {
        return Err(PyTypeError::new_err(format!(
            "the {count} columns of the list are parts of one array: whether its rows or its \
             columns are meant does not show; give copies of its columns, \
             [column.copy() for column in array.T], or pandas' own, [frame[name] for name in frame]"
        )));
    }
    Ok(())
}

pub(crate) fn rows(column: &[Column]) -> usize {
    column.iter().map(|chunk| chunk.len).sum()
}

impl<'py> Batch<'py> {
    pub(crate) fn new(keys: &Bound<'py, PyAny>, hasher: Hasher) -> PyResult<Self> {
        let class = keys.get_type().name()?;
        if library_of(keys)? == Library::Polars
            && let name @ ("LazyFrame" | "Expr") = class.to_cow()?.as_ref()
        {
            return Err(PyTypeError::new_err(format!(
                "keys are a Polars {name}, which has no values yet: give a column of \
                 frame.collect()"
            )));
        }
        let keys = &convert_without_pyarrow(keys)?;
        let items = if let Ok(list) = keys.cast_exact::<PyList>() {
            list.iter().next()
        } else if let Ok(tuple) = keys.cast_exact::<PyTuple>() {
            tuple.iter().next()
        } else if let (false, Some(columns)) =
            (keys.is_instance_of::<PyBytes>(), column_unless_bytes(keys, hasher)?)
        {
            let (len, columns) = (rows(&columns), vec![columns]);
            return Ok(Batch::Columns { columns, are_tuples: false, len, hasher });
        } else {
            None
        };
        let Some(first) = items else {
            return Ok(Batch::Objects { objects: Objects::new(keys)?, hasher });
        };
        if !is_column(&first)? {
            return Ok(Batch::Objects { objects: Objects::new(keys)?, hasher });
        }
        let (mut items, mut columns) = (Vec::new(), Vec::new());
        for (i, item) in keys.try_iter()?.enumerate() {
            let item = item?;
            let given = convert_without_pyarrow(&item)?;
            let column = if is_column(&given)? { column(&given, Some(hasher))? } else { None };
            let Some(column) = column else {
                return Err(PyTypeError::new_err(format!(
                    "item {i} of the list is not a column of strings, bytes or integers, but \
                     item 0 is: give all keys as columns, or none"
                )));
            };
            if let Some(first) = columns.first().map(|first: &Vec<Column>| rows(first))
                && rows(&column) != first
            {
                return Err(PyValueError::new_err(format!(
                    "column {i} has {} rows, column 0 has {first}",
                    rows(&column)
                )));
            }
            columns.push(column);
            items.push(item);
        }
        refuse_parts(&items, &columns)?;
        Ok(Batch::Columns { len: rows(&columns[0]), columns, are_tuples: true, hasher })
    }
}

fn column_unless_bytes(keys: &Bound<'_, PyAny>, hasher: Hasher) -> PyResult<Option<Vec<Column>>> {
    if keys.is_instance_of::<PyByteArray>() || keys.is_instance_of::<PyString>() {
        Ok(None)
    } else {
        column(keys, Some(hasher))
    }
}

/// A growing bitmap.
#[derive(Debug, Default)]
pub(crate) struct Bits {
    pub(crate) words: Vec<u64>,
    pub(crate) len: usize,
}

impl Bits {
    /// Appends the first `count` bits of words; the remaining bits must be 0.
    fn extend(&mut self, words: &[u64], count: usize) {
        let shift = self.len % 64;
        self.len += count;
        if shift == 0 {
            self.words.extend_from_slice(&words[..count.div_ceil(64)]);
            return;
        }
        for &word in &words[..count.div_ceil(64)] {
            if let Some(last) = self.words.last_mut() {
                *last |= word << shift;
            }
            self.words.push(word >> (64 - shift));
        }
        self.words.truncate(self.len.div_ceil(64));
    }

    fn extend_ones(&mut self, mut count: usize) {
        while count > 0 {
            let ones = count.min(64);
            self.extend(&[u64::MAX >> (64 - ones)], ones);
            count -= ones;
        }
    }
}

/// One answer bit per key (0 for NULL), and validity bits if any key is NULL.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) bits: Bits,
    pub(crate) valid: Option<Bits>,
}

impl Answers {
    /// Appends the answers for a chunk of `rows`; each valid row has one.
    pub(crate) fn extend(&mut self, answers: &[u64], valid: &[u64], rows: usize) {
        if valid.is_empty() {
            self.bits.extend(answers, rows);
            if let Some(valid) = &mut self.valid {
                valid.extend_ones(rows);
            }
            return;
        }
        let before = self.bits.len;
        let mut spread = [0; CHUNK / 64];
        let mut next = 0;
        for (word, &keys) in valid.iter().enumerate() {
            let mut keys = keys;
            while keys != 0 {
                spread[word] |= u64::from(bit(answers, next)) << keys.trailing_zeros();
                next += 1;
                keys &= keys - 1;
            }
        }
        self.bits.extend(&spread, rows);
        let all = self.valid.get_or_insert_with(|| {
            let mut all = Bits::default();
            all.extend_ones(before);
            all
        });
        all.extend(valid, rows);
    }

    /// Calls `op` with the hashes of [`CHUNK`] rows at a time, the validity bits of the rows (empty
    /// if all are valid), and the number of rows.
    pub(crate) fn for_chunks(
        &self,
        mut hashes: &[u64],
        mut op: impl FnMut(&[u64], &[u64], usize) -> PyResult<()>,
    ) -> PyResult<()> {
        for start in (0..self.bits.len).step_by(CHUNK) {
            let rows = CHUNK.min(self.bits.len - start);
            let valid = self
                .valid
                .as_ref()
                .map_or(&[][..], |valid| &valid.words[start / 64..(start + rows).div_ceil(64)]);
            let kept = match valid {
                [] => rows,
                _ => valid.iter().map(|word| word.count_ones() as usize).sum(),
            };
            let (these, rest) = hashes.split_at(kept);
            hashes = rest;
            op(these, valid, rows)?;
        }
        Ok(())
    }

    pub(crate) fn append(&mut self, other: Answers) {
        let before = self.bits.len;
        self.bits.extend(&other.bits.words, other.bits.len);
        if let (None, Some(_)) = (&self.valid, &other.valid) {
            self.valid = Some(Bits::default());
            self.valid.as_mut().expect("just made").extend_ones(before);
        }
        match (&mut self.valid, other.valid) {
            (Some(valid), Some(other)) => valid.extend(&other.words, other.len),
            (Some(valid), None) => valid.extend_ones(other.bits.len),
            (None, _) => {}
        }
    }
}

/// Scratch memory of one thread.
#[derive(Debug, Default)]
struct Scratch {
    stages: Vec<Stage>,
    hashes: Vec<u64>,
    valid: Vec<u64>,
    slices: Vec<&'static [u8]>,
}

/// The position of a row in a column: its chunk, and its row within the chunk.
type Place = (usize, usize);

fn place(column: &[Column], mut row: usize) -> Place {
    for (i, chunk) in column.iter().enumerate() {
        if row < chunk.len {
            return (i, row);
        }
        row -= chunk.len;
    }
    (column.len(), 0)
}

/// The rows whose keys one call of an operation receives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk<'a> {
    pub(crate) first: usize,
    /// See [`Stage::valid`].
    pub(crate) valid: &'a [u64],
}

impl Chunk<'_> {
    /// Returns the row of a key.
    pub(crate) fn row(&self, key: usize) -> usize {
        let mut rows = (0..64 * self.valid.len()).filter(|&row| bit(self.valid, row));
        self.first + rows.nth(key).unwrap_or(key)
    }
}

/// Interval at which a long operation checks for signals such as Ctrl-C. The check takes the
/// interpreter's lock, and may wait 5 ms for it.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);

/// Rows of columns, passed to an operation chunk by chunk.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    columns: &'a [Vec<Column>],
    are_tuples: bool,
    /// If `None`, there is only one column, and its keys are numbers or bytes.
    hasher: Option<Hasher>,
    places: Vec<Place>,
    next: usize,
    end: usize,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(
        columns: &'a [Vec<Column>],
        are_tuples: bool,
        hasher: Option<Hasher>,
        rows: Range<usize>,
    ) -> Self {
        let places = columns.iter().map(|column| place(column, rows.start)).collect();
        Rows { columns, are_tuples, hasher, places, next: rows.start, end: rows.end }
    }

    /// Calls `op` with all keys; it writes a bit for each. Releases the interpreter's lock and
    /// answers Ctrl-C.
    pub(crate) fn run_detached<E: Into<PyErr> + From<BadKey> + Send>(
        mut self,
        py: Python<'_>,
        answers: &mut Answers,
        mut op: impl FnMut(Keys<'_>, Chunk<'_>, &mut [u64]) -> Result<(), E> + Send,
    ) -> PyResult<()> {
        let mut scratch = Scratch::default();
        while self.next < self.end {
            let done = py.detach(|| {
                let start = Instant::now();
                while self.next < self.end && start.elapsed() < SIGNAL_INTERVAL {
                    self.chunk(&mut scratch, &mut op, |words, valid, rows| {
                        answers.extend(words, valid, rows)
                    })?;
                }
                Ok::<_, E>(())
            });
            done.map_err(Into::into)?;
            py.check_signals()?;
        }
        Ok(())
    }

    /// Calls `op` with all keys and space for the answers.
    fn run<E: From<BadKey>>(
        mut self,
        scratch: &mut Scratch,
        mut op: impl FnMut(Keys<'_>, Chunk<'_>, &mut [u64]) -> Result<(), E>,
        mut answer: impl FnMut(&[u64], &[u64], usize),
    ) -> Result<(), E> {
        while self.next < self.end {
            self.chunk(scratch, &mut op, &mut answer)?;
        }
        Ok(())
    }

    fn chunk<E: From<BadKey>>(
        &mut self,
        scratch: &mut Scratch,
        mut op: impl FnMut(Keys<'_>, Chunk<'_>, &mut [u64]) -> Result<(), E>,
        mut answer: impl FnMut(&[u64], &[u64], usize),
    ) -> Result<(), E> {
        let (columns, row) = (self.columns, self.next);
        let alone = if columns.len() == 1 && !self.are_tuples { self.hasher } else { None };
        scratch.stages.resize_with(columns.len(), Stage::default);
        let mut count = CHUNK.min(self.end - row);
        for (column, place) in columns.iter().zip(&mut self.places) {
            while place.1 == column[place.0].len {
                *place = (place.0 + 1, 0);
            }
            count = count.min(column[place.0].len - place.1);
        }
        for ((column, place), stage) in columns.iter().zip(&self.places).zip(&mut scratch.stages) {
            let staged = column[place.0].stage(place.1, count, alone, stage);
            count = staged.map_err(|error| BadKey { row: row + error.row - place.1, ..error })?;
        }
        let mut words = [0; CHUNK / 64];
        let valid = if !self.are_tuples
            && let [stage] = &mut scratch.stages[..]
        {
            stage.leave_out_nulls();
            let (words, chunk) = (&mut words, Chunk { first: row, valid: &stage.valid });
            let mut op = |keys: Keys<'_>| op(keys, chunk, &mut words[..keys.len().div_ceil(64)]);
            match stage.kind {
                Kind::Numbers => op(Keys::Numbers(&stage.numbers)),
                Kind::Hashes => op(Keys::Hashes(&stage.numbers)),
                Kind::Bytes => {
                    let slices = stage.slices(&mut scratch.slices);
                    let done = op(Keys::Bytes(&slices));
                    scratch.slices = reused(slices);
                    done
                }
            }?;
            &stage.valid
        } else {
            hash_rows(self.hasher.expect("several columns are hashed"), count, scratch);
            let (keys, chunk) =
                (Keys::Hashes(&scratch.hashes), Chunk { first: row, valid: &scratch.valid });
            op(keys, chunk, &mut words[..keys.len().div_ceil(64)])?;
            &scratch.valid
        };
        answer(&words, valid, count);
        self.next += count;
        self.places.iter_mut().for_each(|place| place.1 += count);
        Ok(())
    }
}

/// Hashes the rows of several columns. A row with a NULL has no hash.
fn hash_rows(hasher: Hasher, count: usize, Scratch { stages, hashes, valid, .. }: &mut Scratch) {
    valid.clear();
    for stage in &mut *stages {
        stage.truncate(count);
        if !stage.valid.is_empty() {
            valid.resize(count.div_ceil(64), u64::MAX);
            valid.iter_mut().zip(&stage.valid).for_each(|(all, valid)| *all &= valid);
        }
    }
    hashes.clear();
    let mut numbers = vec![[0; 8]; stages.len()];
    for i in 0..count {
        if valid.is_empty() || bit(valid, i) {
            let parts =
                stages.iter().zip(&mut numbers).map(|(stage, number)| stage.bytes(i, number));
            hashes.push(hasher.hash_parts(&parts.collect::<Vec<_>>()));
        }
    }
}

/// Number of rows that one thread looks up at a time.
pub(crate) const PIECE: usize = 16 * CHUNK;

impl Batch<'_> {
    pub(crate) fn is_columns(&self) -> bool {
        matches!(self, Batch::Columns { .. })
    }

    /// Calls `op` with all keys; it writes a bit for each. Releases the interpreter's lock for
    /// columns and holds it for objects. Answers before an error are kept.
    pub(crate) fn run<E: Into<PyErr> + From<BadKey> + Send>(
        self,
        py: Python<'_>,
        answers: &mut Answers,
        mut op: impl FnMut(Option<Python<'_>>, Keys<'_>, &mut [u64]) -> Result<(), E> + Send,
    ) -> PyResult<()> {
        let (mut objects, hasher) = match self {
            Batch::Columns { columns, are_tuples, len, hasher } => {
                return Rows::new(&columns, are_tuples, Some(hasher), 0..len).run_detached(
                    py,
                    answers,
                    |keys, _, words| op(None, keys, words),
                );
            }
            Batch::Objects { objects, hasher } => (objects, hasher),
        };
        let mut taken = KeyBatch::default();
        let mut room = Box::new([[0; 8]; CHUNK]);
        loop {
            // Ctrl-C can end a long batch.
            py.check_signals()?;
            if let Some(count) = taken.hash_list(&objects, hasher) {
                let mut words = [0; CHUNK / 64];
                let room = &mut words[..count.div_ceil(64)];
                op(Some(py), Keys::Hashes(&taken.hashes), room).map_err(Into::into)?;
                answers.extend(&words, &[], count);
                continue;
            }
            let count = objects.take(&mut taken)?;
            if count == 0 {
                return Ok(());
            }
            let mut slices = [[].as_slice(); CHUNK];
            let (given, first, numbers, valid) = taken.parts();
            let (kind, kept) =
                KeyBatch::keys(given, first, hasher, numbers, valid, &mut room, &mut slices)?;
            let keys = match kind {
                Kind::Numbers => Keys::Numbers(numbers),
                Kind::Hashes => Keys::Hashes(numbers),
                Kind::Bytes => Keys::Bytes(&slices[..kept]),
            };
            let mut words = [0; CHUNK / 64];
            op(Some(py), keys, &mut words[..kept.div_ceil(64)]).map_err(Into::into)?;
            answers.extend(&words, valid, count);
        }
    }

    /// Like [`run`](Self::run), for some rows of columns on the threads of a pool. The operation
    /// must not change the filter.
    pub(crate) fn run_shared(
        columns: &[Vec<Column>],
        are_tuples: bool,
        rows: Range<usize>,
        hasher: Hasher,
        op: impl Fn(Keys<'_>, &mut [u64]) + Sync,
    ) -> Result<Answers, BadKey> {
        let answers = pieces(rows).map_init(Scratch::default, |scratch, rows| {
            let mut answers = Answers::default();
            let op = |keys: Keys<'_>, _: Chunk<'_>, words: &mut [u64]| {
                op(keys, words);
                Ok(())
            };
            Rows::new(columns, are_tuples, Some(hasher), rows)
                .run(scratch, op, |words, valid, rows| answers.extend(words, valid, rows))
                .map(|()| answers)
        });
        let mut all = Answers::default();
        answers.collect::<Result<Vec<_>, _>>()?.into_iter().for_each(|answers| all.append(answers));
        Ok(all)
    }

    /// Hashes some rows on the threads of a pool, leaving out NULL.
    pub(crate) fn hashes(
        columns: &[Vec<Column>],
        are_tuples: bool,
        rows: Range<usize>,
        hasher: Hasher,
    ) -> Result<Vec<u64>, BadKey> {
        let hashes = pieces(rows).map_init(Scratch::default, |scratch, rows| {
            let mut hashes = Vec::with_capacity(PIECE);
            let op = |keys: Keys<'_>, _: Chunk<'_>, _: &mut [u64]| {
                hash_onto(hasher, keys, &mut hashes);
                Ok(())
            };
            Rows::new(columns, are_tuples, Some(hasher), rows)
                .run(scratch, op, |_, _, _| {})
                .map(|()| hashes)
        });
        hashes.collect::<Result<Vec<_>, _>>().map(|hashes| hashes.concat())
    }
}

/// Splits rows into pieces for the threads of a pool.
fn pieces(rows: Range<usize>) -> impl IndexedParallelIterator<Item = Range<usize>> {
    let starts: Vec<usize> = rows.clone().step_by(PIECE).collect();
    starts.into_par_iter().map(move |start| start..rows.end.min(start + PIECE))
}

pub(crate) fn hash_onto(hasher: Hasher, keys: Keys<'_>, hashes: &mut Vec<u64>) {
    let start = hashes.len();
    hashes.resize(start + keys.len(), 0);
    let hashes = &mut hashes[start..];
    match keys {
        Keys::Numbers(keys) => hasher.hash_u64s(keys, hashes).expect("a hash for each key"),
        Keys::Bytes(keys) => hasher.hash_batch_into(keys, hashes).expect("a hash for each key"),
        Keys::Hashes(keys) => hashes.copy_from_slice(keys),
    }
}

/// The library whose booleans are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Library {
    Numpy,
    Pyarrow,
    Polars,
}

fn library(keys: &Bound<'_, PyAny>) -> PyResult<Library> {
    // A list of columns takes the library of its first column.
    let first = match keys.cast_exact::<PyList>() {
        Ok(list) => list.iter().next(),
        Err(_) => keys.cast_exact::<PyTuple>().ok().and_then(|tuple| tuple.iter().next()),
    };
    library_of(first.as_ref().unwrap_or(keys))
}

/// Returns the library of one object.
fn library_of(object: &Bound<'_, PyAny>) -> PyResult<Library> {
    let module = object.get_type().module()?;
    Ok(match module.to_cow()?.split('.').next() {
        Some("pyarrow") => Library::Pyarrow,
        Some("polars") => Library::Polars,
        _ => Library::Numpy,
    })
}

impl Answers {
    /// Converts the answers to booleans of the keys' library: pyarrow, Polars, or else NumPy, where
    /// NULL becomes False.
    pub(crate) fn into_python<'py>(self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = keys.py();
        let library = library(keys)?;
        let Answers { bits, valid } = self;
        if library == Library::Numpy {
            return numpy(py, &bits);
        }
        let valid = valid.map(|valid| Arc::new(valid.words));
        let column = arrow::BooleanColumn { len: bits.len, bits: Arc::new(bits.words), valid };
        let column = Bound::new(py, column)?;
        if library == Library::Pyarrow {
            return py
                .import(pyo3::intern!(py, "pyarrow"))?
                .call_method1(pyo3::intern!(py, "array"), (column,));
        }
        py.import(pyo3::intern!(py, "polars"))?.call_method1(pyo3::intern!(py, "Series"), (column,))
    }
}

/// Converts bits to NumPy's booleans, one byte each.
fn numpy<'py>(py: Python<'py>, bits: &Bits) -> PyResult<Bound<'py, PyAny>> {
    let numpy = py.import(pyo3::intern!(py, "numpy"))?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(bits.len.next_multiple_of(64)).map_err(memory_error)?;
    for word in &bits.words {
        for byte in word.to_le_bytes() {
            // Keep only bit `i` in byte `i`.
            let spread =
                u64::from(byte).wrapping_mul(0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
            // Move it to bit 0: adding 0x7f carries into bit 7 if a bit is set, and no further.
            let ones = (spread + 0x7f7f_7f7f_7f7f_7f7f) >> 7 & 0x0101_0101_0101_0101;
            bytes.extend_from_slice(&ones.to_le_bytes());
        }
    }
    bytes.truncate(bits.len);
    let bytes = pyo3::types::PyByteArray::new(py, &bytes);
    numpy.call_method1(
        pyo3::intern!(py, "frombuffer"),
        (bytes, numpy.getattr(pyo3::intern!(py, "bool_"))?),
    )
}
