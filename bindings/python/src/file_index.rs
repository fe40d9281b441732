//! One index over the Parquet files of a data set. `file_index.py` reads the files and converts
//! values to keys.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::path::PathBuf;

use blocked_bloom::KeyHash;
use blocked_bloom_file_index::{
    Candidates, Column, FileBuilder, FileEntry, FileIdentity, FileIndex, FileIndexBuilder,
    FileIndexError, FileIndexOptions, Manifest, Pruned, SameFile, UnknownReason,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::batch::{self, Answers, Keys, Rows};
use crate::columns::CHUNK;
use crate::error::Error;
use crate::hash::Hasher;
use crate::stored::{Replacement, Target};

/// Name, seed, types and the id of the field of a column.
type ColumnFacts = (String, u64, Vec<String>, Option<i32>);

impl From<FileIndexError> for Error {
    fn from(error: FileIndexError) -> Self {
        use FileIndexError::{Alloc, Header, Manifest, Planes, Tail};
        match error {
            Alloc(error) => error.into(),
            Header(_) | Manifest { .. } | Planes(_) | Tail { .. } => {
                Error::Format(error.to_string())
            }
            error => Error::Value(error.to_string()),
        }
    }
}

fn error(error: FileIndexError) -> PyErr {
    Error::from(error).into()
}

/// A listed file: name, size in bytes, etag, time of the last change in nanoseconds.
#[derive(Debug, FromPyObject)]
struct Listed(String, u64, Option<String>, Option<i64>);

impl Listed {
    fn identity(&self) -> FileIdentity<'_> {
        let Listed(name, length, etag, modified) = self;
        let mut identity = FileIdentity::new(name, *length);
        if let Some(etag) = etag {
            identity = identity.with_etag(etag);
        }
        if let Some(modified) = *modified {
            identity = identity.with_modified(modified);
        }
        identity
    }

    /// Returns the file's entry in the index. If the store or the index has neither an etag nor a
    /// time, name and length decide, because indexing the file again would change nothing.
    fn entry<'m>(&self, manifest: &'m Manifest) -> Option<FileEntry<'m>> {
        let identity = self.identity();
        match manifest.file(&identity) {
            Ok(entry) => Some(entry),
            Err(UnknownReason::NoTag) if self.2.is_none() && self.3.is_none() => {
                manifest.find_file(&identity, SameFile::Name).ok()
            }
            Err(_) => None,
        }
    }
}

/// Calls `op` with the hashes of an Arrow array, leaving out NULL.
fn hash(
    py: Python<'_>,
    array: &Bound<'_, PyAny>,
    seed: u64,
    mut op: impl FnMut(&[u64]) -> Result<(), FileIndexError> + Send,
) -> PyResult<()> {
    let hasher = Hasher::with_seed(seed);
    let Some(column) = batch::column(array, Some(hasher))? else {
        return Err(PyValueError::new_err("an array without Arrow's interface"));
    };
    let rows = batch::rows(&column);
    let mut hashes = [0; CHUNK];
    let columns = [column];
    let rows = Rows::new(&columns, false, Some(hasher), 0..rows);
    rows.run_detached(py, &mut Answers::default(), |keys, _, _| {
        let out = &mut hashes[..keys.len()];
        match keys {
            Keys::Hashes(hashes) => return op(hashes).map_err(Error::from),
            Keys::Numbers(keys) => hasher.hash_u64s(keys, out),
            Keys::Bytes(keys) => hasher.hash_batch_into(keys, out),
        }
        .expect("a hash for each key");
        op(out).map_err(Error::from)
    })
}

/// Writes an index to a temporary file that replaces the old one when finished.
#[pyclass(module = "blocked_bloom._native")]
#[derive(Debug)]
pub(crate) struct FileIndexWriter {
    path: PathBuf,
    seeds: Vec<u64>,
    /// `None` once the index is finished.
    parts: Option<(FileIndexBuilder, Replacement)>,
    /// Whether writing failed, so that the index cannot be finished.
    #[pyo3(get)]
    failed: bool,
}

impl FileIndexWriter {
    fn begin(path: PathBuf, columns: &[Column], builder: FileIndexBuilder) -> PyResult<Self> {
        let Target::File(file, old) = Target::from_path(&path) else {
            let shown = path.display();
            return Err(PyValueError::new_err(format!("{shown} is not a regular file")));
        };
        let new = Replacement::begin(&file, old).map_err(|e| Error::Io(e).for_file(&path))?;
        let seeds = columns.iter().map(|column| seed(column.key_hash()));
        let seeds = seeds.collect::<PyResult<_>>()?;
        Ok(FileIndexWriter { path, seeds, parts: Some((builder, new)), failed: false })
    }

    fn parts(&mut self) -> PyResult<&mut (FileIndexBuilder, Replacement)> {
        self.parts.as_mut().ok_or_else(|| PyValueError::new_err("the index is finished"))
    }

    fn written<T>(&mut self, written: io::Result<T>) -> PyResult<T> {
        self.failed |= written.is_err();
        written.map_err(|error| Error::Io(error).for_file(&self.path))
    }
}

/// Returns the seed of a column's hashes.
fn seed(key_hash: KeyHash) -> PyResult<u64> {
    match key_hash {
        KeyHash::Xxh3 { seed } => Ok(seed),
        other => {
            let text = format!("a column is hashed by {other}, expected XXH3-64 with a seed");
            Err(PyValueError::new_err(text))
        }
    }
}

/// Passes the values of a file to its builder. Each item of `batches` is a list of (column number,
/// array) pairs, a column number where that column ends, or None where a row group ends.
fn add(
    py: Python<'_>,
    seeds: &[u64],
    file: &mut FileBuilder<'_>,
    batches: &Bound<'_, PyAny>,
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
) -> PyResult<io::Result<()>> {
    for batch in batches.try_iter()? {
        let batch = batch?;
        if batch.is_none() {
            let bytes = file.end_row_group().map_err(error)?;
            if let Err(error) = write(&bytes) {
                return Ok(Err(error));
            }
            continue;
        }
        if let Ok(column) = batch.extract::<usize>() {
            let bytes = file.end_column(column).map_err(error)?;
            if let Err(error) = write(&bytes) {
                return Ok(Err(error));
            }
            continue;
        }
        for (column, array) in batch.extract::<Vec<(usize, Bound<'_, PyAny>)>>()? {
            let seed = *seeds.get(column).ok_or_else(|| PyValueError::new_err("no such column"))?;
            hash(py, &array, seed, |hashes| file.insert_hashes(column, hashes))?;
        }
    }
    Ok(Ok(()))
}

#[pymethods]
impl FileIndexWriter {
    /// Starts a new index of columns, each a name, the seed of its hashes and the id of its field.
    #[new]
    #[pyo3(signature = (
        path, columns, tag, false_row_groups=None, part_values=None, memory=None, counts=None
    ))]
    fn new(
        path: PathBuf,
        columns: Vec<(String, u64, Option<i32>)>,
        tag: u64,
        false_row_groups: Option<f64>,
        part_values: Option<u32>,
        memory: Option<u64>,
        counts: Option<Vec<u64>>,
    ) -> PyResult<Self> {
        let columns = columns.into_iter().map(|(name, seed, field_id)| {
            let column = Column::new(name, KeyHash::Xxh3 { seed });
            if let Some(id) = field_id { column.with_field_id(id) } else { column }
        });
        let columns: Vec<Column> = columns.collect();
        let mut options = FileIndexOptions::new(columns.clone(), tag);
        if let Some(rate) = false_row_groups {
            options = options.with_false_row_groups(rate, 1);
        }
        if let Some(values) = part_values {
            options = options.with_part_values(values);
        }
        if let Some(bytes) = memory {
            options = options.with_memory(bytes);
        }
        options = options.with_row_groups_of(&counts.unwrap_or_default());
        FileIndexWriter::begin(path, &columns, options.builder().map_err(error)?)
    }

    /// Starts an index that keeps the listed files of another index and can be extended. It is
    /// compacted if the other index has further files, or if no listing is passed.
    #[staticmethod]
    #[pyo3(signature = (path, index, listed, files, tag, memory=None))]
    fn from_index(
        py: Python<'_>,
        path: PathBuf,
        index: &OpenedFileIndex,
        listed: Option<Vec<Listed>>,
        files: u64,
        tag: u64,
        memory: Option<u64>,
    ) -> PyResult<Self> {
        let begin = || {
            let compacted = index.compacted(listed.as_deref(), tag)?;
            // The resulting tag includes the old index's checksum, so it differs from the compacted
            // index's.
            compacted.as_ref().unwrap_or(&index.index).merging_appender(tag, files)
        };
        let (mut builder, kept) = py.detach(begin).map_err(error)?;
        if let Some(bytes) = memory {
            builder = builder.with_memory(bytes);
        }
        let columns: Vec<Column> = index.index.manifest().columns().cloned().collect();
        let mut writer = FileIndexWriter::begin(path, &columns, builder)?;
        let (_, new) = writer.parts()?;
        let written = py.detach(|| new.file.write_all(&kept));
        writer.written(written)?;
        Ok(writer)
    }

    /// Returns the time after which any change of the file also changes its etag or time.
    #[staticmethod]
    fn settle_time(listed: Listed) -> Option<i64> {
        listed.identity().settle_time()
    }

    /// Maximum total number of values in the columns of a row group.
    #[getter]
    fn max_values(&mut self) -> PyResult<u64> {
        Ok(self.parts()?.0.max_values())
    }

    /// Number of columns of row groups that exceed this maximum.
    #[getter]
    fn oversized(&mut self) -> PyResult<u64> {
        Ok(self.parts()?.0.oversized())
    }

    /// Adds a file whose columns have these types. If this raises an exception, the file is left
    /// out; if `failed` is then set, the whole index is lost.
    fn add(
        &mut self,
        py: Python<'_>,
        file: Listed,
        types: Vec<Option<String>>,
        row_groups: u32,
        batches: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let seeds = self.seeds.clone();
        let (builder, new) = self.parts()?;
        let types: Vec<Option<&str>> = types.iter().map(Option::as_deref).collect();
        let mut file = builder.file(file.identity(), &types, row_groups).map_err(error)?;
        let added = add(py, &seeds, &mut file, batches, |bytes| new.file.write_all(bytes))?;
        if added.is_ok() {
            return file.end().map_err(error);
        }
        drop(file);
        self.written(added)
    }

    /// Completes the file, verifies it, and moves it to the index's path.
    fn finish(&mut self, py: Python<'_>) -> PyResult<()> {
        self.parts()?;
        let Some((builder, mut new)) = self.parts.take() else { return Ok(()) };
        let rest = py.detach(|| builder.finish()).map_err(error)?;
        let read = py.detach(|| new.file.write_all(&rest).and_then(|()| new.read()));
        let bytes = self.written(read)?;
        // Before it replaces a good index.
        py.detach(|| FileIndex::from_bytes(bytes)).map_err(error)?;
        let moved = py.detach(|| new.commit());
        self.written(moved)
    }
}

/// An index in memory.
#[pyclass(frozen, module = "blocked_bloom._native")]
#[derive(Debug)]
pub(crate) struct OpenedFileIndex {
    index: FileIndex,
}

impl OpenedFileIndex {
    /// Returns a compacted index of the listed files, or of all files without a listing; `None` if
    /// every file is listed.
    fn compacted(
        &self,
        listed: Option<&[Listed]>,
        tag: u64,
    ) -> Result<Option<FileIndex>, FileIndexError> {
        let manifest = self.index.manifest();
        let Some(listed) = listed else {
            return FileIndex::from_bytes(self.index.compact(tag, |_| true)?).map(Some);
        };
        let listed: HashMap<&str, &Listed> =
            listed.iter().map(|listed| (listed.0.as_str(), listed)).collect();
        let is_listed = |entry: FileEntry<'_>| {
            let listed = listed.get(entry.identity().name());
            listed.is_some_and(|listed| listed.entry(manifest) == Some(entry))
        };
        if manifest.files().all(is_listed) {
            return Ok(None);
        }
        FileIndex::from_bytes(self.index.compact(tag, is_listed)?).map(Some)
    }
}

/// A lookup: the column, the seed of its hashes, the types that files may have, and the values as
/// arrays.
type Lookup<'py> = (usize, u64, HashSet<String>, Vec<Bound<'py, PyAny>>);

#[pymethods]
impl OpenedFileIndex {
    /// Reads and verifies an index. With `name_suffices`, a file with the same name and length as
    /// an indexed one counts as unchanged.
    #[new]
    fn new(py: Python<'_>, path: PathBuf, name_suffices: bool) -> PyResult<Self> {
        let read = || {
            let index = FileIndex::from_bytes(std::fs::read(&path)?)?;
            let rule = if name_suffices { SameFile::Name } else { SameFile::LengthAndTime };
            Ok::<_, Error>(index.with_same_file(rule))
        };
        let index = py.detach(read).map_err(|error| error.for_file(&path))?;
        Ok(OpenedFileIndex { index })
    }

    /// Returns name, seed, types and the id of the field of each column.
    fn columns(&self) -> PyResult<Vec<ColumnFacts>> {
        let manifest = self.index.manifest();
        let describe = |(number, column): (usize, &Column)| {
            let types = manifest.types(number).map(String::from).collect();
            Ok((column.name().into(), seed(column.key_hash())?, types, column.field_id()))
        };
        manifest.columns().enumerate().map(describe).collect()
    }

    /// Number of row groups, bytes and indexed files.
    fn counts(&self) -> (u64, u64, usize) {
        let manifest = self.index.manifest();
        (manifest.row_groups(), manifest.stored_bytes(), manifest.files().len())
    }

    /// Returns for each column its name and types; five counts: indexed row groups, row groups of
    /// files without the column or with other keys, row groups with too many values, values, and
    /// bytes; and the average number of row groups read to look up an absent value.
    fn describe(&self) -> Vec<(String, Vec<String>, [u64; 5], f64)> {
        let manifest = self.index.manifest();
        let describe = |(number, column): (usize, &Column)| {
            let (mut indexed, mut absent, mut oversized, mut values) = (0, 0, 0, 0);
            for file in manifest.files() {
                if file.column_type(number).is_none() {
                    absent += u64::from(file.row_groups());
                    continue;
                }
                for found in file.values(number) {
                    *(if found.is_some() { &mut indexed } else { &mut oversized }) += 1;
                    values += found.unwrap_or_default();
                }
            }
            let types = manifest.types(number).map(String::from).collect();
            let counts = [indexed, absent, oversized, values, manifest.column_bytes(number)];
            (column.name().into(), types, counts, manifest.expected_false_row_groups(number))
        };
        manifest.columns().enumerate().map(describe).collect()
    }

    /// Returns which listed files are unchanged since they were indexed.
    fn known(&self, py: Python<'_>, listed: Vec<Listed>) -> Vec<bool> {
        let manifest = self.index.manifest();
        let is_known = |listed: &Listed| listed.entry(manifest).is_some();
        py.detach(|| listed.iter().map(is_known).collect())
    }

    /// Returns for each listed file the row groups that may have a row matching all lookups, or
    /// None for an unknown file.
    fn row_groups(
        &self,
        py: Python<'_>,
        lookups: Vec<Lookup<'_>>,
        listed: Vec<Listed>,
    ) -> PyResult<Vec<Option<Vec<usize>>>> {
        let manifest = self.index.manifest();
        let mut all: Option<Candidates> = None;
        for (column, seed, types, values) in lookups {
            let (mut hashes, key_hash) = (Vec::new(), KeyHash::Xxh3 { seed });
            for array in values {
                hash(py, &array, seed, |found| {
                    hashes.extend_from_slice(found);
                    Ok(())
                })?;
            }
            let lookup = manifest.lookup(column, key_hash, |own| types.contains(own), hashes);
            let lookup = lookup.map_err(error)?;
            let found = py.detach(|| self.index.candidates(&lookup)).map_err(error)?;
            match &mut all {
                Some(all) => all.and(&found).map_err(error)?,
                None => all = Some(found),
            }
        }
        let all = all.ok_or_else(|| PyValueError::new_err("no column to look up"))?;
        let row_groups = |listed: &Listed| match manifest.prune(&all, &listed.identity()) {
            Pruned::Empty => Some(Vec::new()),
            Pruned::RowGroups(bits) => Some(bits.hits().collect()),
            _ => None,
        };
        Ok(py.detach(|| listed.iter().map(row_groups).collect()))
    }
}
