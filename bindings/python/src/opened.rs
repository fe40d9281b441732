//! Filters of other systems, in their own files: `blocked-bloom-inspect` for Python.

use std::ffi::CString;
use std::fs::File;
use std::path::{Path, PathBuf};

use blocked_bloom::Bitmask;
use blocked_bloom_inspect::{
    EVIDENCE_BYTES, FileRanges, Format, Layout, Lookup, LookupOption, LookupOptions, Message,
    Opened, PhysicalType, Unrecognised, VALUE_TYPES, Value, Warning, layout_of_version, recognise,
    type_name, type_of_name, value_of_text,
};
use memmap2::Mmap;
use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyFloat, PyList, PyString, PyTuple};

use crate::batch::{self, Answers, Chunk, Keys, Rows};
use crate::columns::{CHUNK, Column, Kind};
use crate::error::{Error, FormatError};
use crate::objects::{self, KeyBatch, Objects, Part};
use crate::{filter, stored};

self_cell::self_cell!(
    /// A mapped file and what was found in it.
    struct OpenedFile {
        owner: Mmap,
        #[covariant]
        dependent: Opened,
    }
);

fn map(path: &Path) -> PyResult<Mmap> {
    // SAFETY: as in `stored.rs`: what happens if the file is changed or shortened meanwhile is
    // documented.
    let map = File::open(path).and_then(|file| unsafe { Mmap::map(&file) });
    map.map_err(|error| Error::Io(error).for_file(path))
}

fn format_error(path: &Path, error: impl std::fmt::Display) -> PyErr {
    FormatError::new_err(format!("{}: {error}", path.display()))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn recognised(path: &Path, bytes: &[u8]) -> PyResult<Format> {
    let ends = bytes.len().min(EVIDENCE_BYTES as usize);
    let (head, tail) = (&bytes[..ends], &bytes[bytes.len() - ends..]);
    recognise(&name(path), head, tail, Some(bytes.len() as u64)).map_err(|error| {
        let advice = match error {
            Unrecognised::LooksCompact => ": give format=\"compact\"",
            _ => "",
        };
        format_error(path, format_args!("{error}{advice}"))
    })
}

fn opened(path: &Path, format: Format, layout: Option<Layout>, map: Mmap) -> PyResult<OpenedFile> {
    OpenedFile::try_new(map, |map| {
        Opened::new(&name(path), &FileRanges::from(&map[..]), format, layout)
    })
    .map_err(|error| format_error(path, text(&error.message())))
}

/// A filter of another system, in its own file: RocksDB, Parquet, Cassandra, Guava, Spark,
/// RedisBloom. Made by `open`.
#[pyclass(frozen, module = "blocked_bloom")]
pub(crate) struct StoredFilter {
    file: OpenedFile,
    options: LookupOptions,
}

/// The bytes of a key for a filter of this format: text as it is, numbers where the system says
/// what they are.
fn key(key: &Bound<'_, PyAny>, format: Format, values: Option<PhysicalType>) -> PyResult<Vec<u8>> {
    if let Ok(text) = key.cast::<PyString>() {
        return Ok(text.to_str()?.as_bytes().to_vec());
    }
    if let Ok(bytes) = key.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    let takes_text =
        matches!(values, None | Some(PhysicalType::ByteArray | PhysicalType::FixedLenByteArray));
    let is_typed =
        [Format::PARQUET, Format::PARQUET_FILTER, Format::SPARK].contains(&format) && !takes_text;
    if is_typed && (key.is_instance_of::<PyFloat>() || key.is_instance_of::<PyBool>()) {
        return Ok(key.str()?.to_str()?.to_ascii_lowercase().into_bytes());
    }
    if key.is_none() {
        return Err(PyTypeError::new_err("None is no value: filters hold no NULL, leave it out"));
    }
    if is_typed && let Some(kind) = time(key)? {
        return days(key, kind, values);
    }
    if is_typed || format == Format::REDISBLOOM {
        return Ok(objects::number(key)?.into_bytes());
    }
    let (kind, format) = (key.get_type().fully_qualified_name()?, format.name());
    Err(PyTypeError::new_err(format!(
        "a key of this filter of {format} is str or bytes, as that system stores it, not {kind}"
    )))
}

/// The class of a key that is a date or a time, of whatever library: its name without the module.
fn time(key: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let name = key.get_type().name()?.to_str()?.to_owned();
    let names = ["date", "datetime", "time", "timedelta", "datetime64", "timedelta64", "Timestamp"];
    Ok(names.contains(&name.as_str()).then_some(name))
}

/// A date as Parquet's DATE has it, days since 1970; of times the file alone knows the unit.
fn days(key: &Bound<'_, PyAny>, kind: String, values: Option<PhysicalType>) -> PyResult<Vec<u8>> {
    const DAYS_BEFORE_1970: i64 = 719_163;
    if kind == "date" && values == Some(PhysicalType::Int32) {
        let day: i64 = key.call_method0(pyo3::intern!(key.py(), "toordinal"))?.extract()?;
        return Ok((day - DAYS_BEFORE_1970).to_string().into_bytes());
    }
    Err(PyTypeError::new_err(format!(
        "a {kind} has no unit in which the column's filter could be looked up: give the integer \
         that the column stores, such as days since 1970 for DATE, and milliseconds, microseconds \
         or nanoseconds since 1970 for TIMESTAMP, as the file's schema says"
    )))
}

/// The keys of a batch, with the index in errors.
fn keys(
    keys: &Bound<'_, PyAny>,
    format: Format,
    values: Option<PhysicalType>,
) -> PyResult<Vec<Vec<u8>>> {
    let of = |(i, item): (usize, PyResult<Bound<'_, PyAny>>)| {
        let item = item?;
        key(&item, format, values).map_err(|error| objects::locate_error(keys.py(), error, i))
    };
    refuse_one_key(keys)?;
    listed(keys)?.try_iter()?.enumerate().map(of).collect()
}

/// An error for one key where a batch is taken.
fn refuse_one_key(keys: &Bound<'_, PyAny>) -> PyResult<()> {
    match keys.is_instance_of::<PyString>()
        || keys.is_instance_of::<PyBytes>()
        || keys.is_instance_of::<PyByteArray>()
    {
        true => Err(PyTypeError::new_err("one key where many are taken: give a list of keys")),
        false => Ok(()),
    }
}

/// A batch as Python objects. The items of Arrow's columns are no Python values.
fn listed<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match keys.getattr_opt(pyo3::intern!(keys.py(), "to_pylist"))? {
        Some(to_list) => to_list.call0(),
        None => Ok(keys.clone()),
    }
}

/// A text of the library with the names of this package.
fn text(message: &Message) -> String {
    message.with_names(|option| match option {
        LookupOption::Column => "column".to_owned(),
        LookupOption::ValueType => "type".to_owned(),
        LookupOption::Encoded => "bytes.fromhex".to_owned(),
        LookupOption::Layout => "cassandra_version".to_owned(),
        other => other.to_string(),
    })
}

fn value_error(message: &Message) -> PyErr {
    PyValueError::new_err(text(message))
}

/// A number as the values of a filter are encoded: of this many bytes. `None` if it has no place
/// in them. Unsigned values are stored as the bits of signed ones.
fn encoded(number: u64, width: usize) -> Option<[u8; 8]> {
    let fits = i32::try_from(number as i64).is_ok() || u32::try_from(number).is_ok();
    (width == 8 || fits).then(|| number.to_le_bytes())
}

/// Looks up the keys of a batch, a chunk after the other.
struct Lookups<'o> {
    filter: &'o StoredFilter,
    lookup: Lookup<'o>,
    hits: Bitmask,
    warnings: Vec<Warning>,
}

impl Lookups<'_> {
    fn look_up(&mut self, keys: Keys<'_>, rows: Chunk<'_>, words: &mut [u64]) -> Result<(), Error> {
        let (numbers, width) = match keys {
            Keys::Bytes(keys) => return self.look_up_bytes(keys, rows, words),
            // `column` takes no column that is hashed.
            Keys::Numbers(numbers) | Keys::Hashes(numbers) => {
                (numbers, self.filter.number_bytes().unwrap_or(8))
            }
        };
        let mut bytes = [[0; 8]; CHUNK];
        for (i, (&number, bytes)) in numbers.iter().zip(&mut bytes).enumerate() {
            *bytes = encoded(number, width).ok_or_else(|| {
                let number = number as i64;
                Error::Value(format!(
                    "key {}: found '{number}', expected a whole number of 32 bits",
                    rows.row(i)
                ))
            })?;
        }
        let mut slices = [[].as_slice(); CHUNK];
        slices.iter_mut().zip(&bytes).for_each(|(slice, bytes)| *slice = &bytes[..width]);
        self.look_up_bytes(&slices[..numbers.len()], rows, words)
    }

    fn look_up_bytes(
        &mut self,
        keys: &[&[u8]],
        rows: Chunk<'_>,
        words: &mut [u64],
    ) -> Result<(), Error> {
        self.lookup.contains_batch(keys, &mut self.hits).map_err(|bad| {
            Error::Value(format!("key {}: {}", rows.row(bad.index), text(&bad.problem)))
        })?;
        words.copy_from_slice(self.hits.words());
        for doubt in self.lookup.doubts(keys, &self.hits) {
            // One of a kind is enough.
            let is_shown = |shown: &Warning| shown.message().option() == doubt.message().option();
            if !self.warnings.iter().any(is_shown) {
                self.warnings.push(doubt);
            }
        }
        Ok(())
    }

    fn warn(self, py: Python<'_>) -> PyResult<()> {
        for warning in self.warnings {
            let text = CString::new(text(warning.message()))?;
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
        }
        Ok(())
    }
}

impl StoredFilter {
    fn format(&self) -> Format {
        self.file.borrow_dependent().format()
    }

    /// How many bytes numbers have here; `None` if keys are text or bytes.
    fn number_bytes(&self) -> Option<usize> {
        match self.options.value_type {
            Some(PhysicalType::Int32) => Some(4),
            Some(PhysicalType::Int64) => Some(8),
            _ => None,
        }
    }

    fn lookups(&self) -> PyResult<Lookups<'_>> {
        let lookup = self.file.borrow_dependent().lookup(&self.options);
        let lookup = lookup.map_err(|error| value_error(&error.message()))?;
        let warnings = lookup.warnings().to_vec();
        Ok(Lookups { filter: self, lookup, hits: Bitmask::new(), warnings })
    }

    /// A key that is not of the types that nearly all keys have.
    fn key(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        let values = self.options.value_type;
        let mut key = self::key(key, self.format(), values)?;
        if let (Some(width), Some(values)) = (self.number_bytes(), values) {
            value_of_text(values, &key).map_err(|problem| value_error(&problem))?;
            let number: i128 = String::from_utf8(key)?.parse()?;
            key = (number as u64).to_le_bytes()[..width].to_vec();
        }
        Ok(key)
    }

    /// The batch as a column, if it is one of bytes, or of numbers where the filter has these.
    fn column(&self, keys: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Column>>> {
        if keys.is_instance_of::<PyList>() || keys.is_instance_of::<PyTuple>() {
            return Ok(None);
        }
        let column = match batch::column(keys, None) {
            // Values such as dates, which are looked up one by one.
            Err(error) if error.is_instance_of::<PyTypeError>(keys.py()) => None,
            column => column?,
        };
        let kind = match self.number_bytes() {
            Some(_) => Kind::Numbers,
            None => Kind::Bytes,
        };
        Ok(column.filter(|column| column.iter().all(|chunk| chunk.kind(false) == kind)))
    }

    /// Looks up keys that are Python objects.
    fn look_up_objects(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        lookups: &mut Lookups<'_>,
    ) -> PyResult<Answers> {
        let (mut objects, mut taken) = (Objects::new(&listed(keys)?)?, KeyBatch::default());
        let (mut answers, width) = (Answers::default(), self.number_bytes());
        loop {
            // Ctrl-C ends a long batch.
            py.check_signals()?;
            let count = objects.take(&mut taken)?;
            if count == 0 {
                return Ok(answers);
            }
            let (given, first, _, valid) = taken.parts();
            valid.clear();
            let (mut numbers, mut others) = ([[0; 8]; CHUNK], Vec::new());
            let (mut slices, mut kept) = ([[].as_slice(); CHUNK], 0);
            for ((i, object), room) in given.iter().enumerate().zip(&mut numbers) {
                slices[kept] = match (objects::fast(object.as_borrowed()), width) {
                    (Some(Part::Bytes(bytes)), None) => bytes,
                    (Some(Part::Number(number)), Some(width))
                        if encoded(number, width).is_some() =>
                    {
                        *room = number.to_le_bytes();
                        &room[..width]
                    }
                    _ if objects::is_null(object) => {
                        objects::leave_out(valid, i, count);
                        continue;
                    }
                    _ => {
                        let key = self.key(object);
                        others.push((
                            kept,
                            key.map_err(|e| objects::locate_error(py, e, first + i))?,
                        ));
                        &[]
                    }
                };
                kept += 1;
            }
            others.iter().for_each(|(place, key)| slices[*place] = key);
            let (rows, mut words) = (Chunk { first, valid }, [0; CHUNK / 64]);
            lookups.look_up_bytes(&slices[..kept], rows, &mut words[..kept.div_ceil(64)])?;
            answers.extend(&words, valid, count);
        }
    }
}

#[pymethods]
impl StoredFilter {
    /// Which keys of a batch may be there: False is certainly absent. Keys are a column or a list,
    /// and the answers come, as those of a `BloomFilter` do: pyarrow's or Polars' booleans if the
    /// keys are theirs, else NumPy's; NULL for NULL, or False where that does not exist.
    ///
    /// A `UserWarning` says what the answers are worth if that is less than is expected: all are
    /// "maybe", or the keys look like numbers where the system stores their bytes.
    fn contains<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        refuse_one_key(keys)?;
        let mut lookups = self.lookups()?;
        let answers = match self.column(keys)? {
            Some(column) => {
                let len = batch::rows(&column);
                Rows::new(&[column], None, 0..len)
                    .run_detached(py, |keys, rows, words| lookups.look_up(keys, rows, words))?
            }
            None => self.look_up_objects(py, keys, &mut lookups)?,
        };
        lookups.warn(py)?;
        answers.into_python(keys)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (bytes, mut lookups, mut word) = (self.key(key)?, self.lookups()?, [0]);
        lookups.look_up_bytes(&[&bytes], Chunk { first: 0, valid: &[] }, &mut word)?;
        lookups.warn(key.py())?;
        Ok(word[0] == 1)
    }

    /// The name of the format, as the command-line tool has it.
    #[getter]
    fn format_name(&self) -> &'static str {
        self.format().name()
    }

    /// What is known of the filter: the fields that `blocked-bloom inspect --json` prints.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let json = py.detach(|| self.file.borrow_dependent().describe().json().to_string());
        py.import(pyo3::intern!(py, "json"))?.call_method1(pyo3::intern!(py, "loads"), (json,))
    }

    fn __repr__(&self) -> String {
        format!("<StoredFilter of the format {}>", self.format().name())
    }
}

/// Opens a file that holds a filter, of this project or of another system: RocksDB's SST files,
/// Parquet, Cassandra, Guava, Spark, RedisBloom. The file is mapped, and verified as far as its
/// format has checksums. If it is made shorter while the filter is in use, this process ends when
/// it reads there.
///
/// A filter of this project becomes a `BloomFilter` or `ScalableBloomFilter`, as `mmap` opens it.
/// The other arguments are the options of the command-line tool. `format` is for what cannot be
/// recognised, such as "compact"; `column` is that of a Parquet file whose filters are meant;
/// `type` is that of the values of a Parquet filter without its file, such as "int64", and says
/// that a Spark filter holds integers and not strings; `cassandra_version`, such as "nb", is for a
/// Filter.db whose name has none or a wrong one.
#[pyfunction]
#[pyo3(signature = (path, /, *, format=None, column=None, r#type=None, cassandra_version=None))]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    format: Option<&str>,
    column: Option<String>,
    r#type: Option<&str>,
    cassandra_version: Option<&str>,
) -> PyResult<Py<PyAny>> {
    let layout = cassandra_version.map(layout_of_version).transpose();
    let layout = layout.map_err(|message| value_error(&message))?;
    let value_type = r#type.map(|name| {
        type_of_name(name).ok_or_else(|| {
            let names = VALUE_TYPES.map(type_name).join(", ");
            PyValueError::new_err(format!("unknown type {name:?} (supported: {names})"))
        })
    });
    let value_type = value_type.transpose()?;
    let map = map(&path)?;
    let format = match format {
        Some(name) => name.parse::<Format>().map_err(|message| value_error(&message))?,
        None if layout.is_some() => Format::CASSANDRA,
        None => recognised(&path, &map)?,
    };
    if layout.is_some() && format != Format::CASSANDRA {
        let error = format!("cassandra_version is for cassandra, not for {format}");
        return Err(PyValueError::new_err(error));
    }
    let mut options = LookupOptions::default();
    (options.column, options.value_type) = (column, value_type);
    format.check(&options).map_err(|message| value_error(&message))?;
    if format == Format::NATIVE {
        return filter::open_file(py, &path, || stored::map(&path, true));
    }
    if format == Format::GROWING {
        return filter::open_file(py, &path, || stored::map_growing(&path, true));
    }
    let file = opened(&path, format, layout, map)?;
    if let Some(column) = &options.column {
        let filters = file.borrow_dependent().column(column, &[]);
        let found = filters.map_err(|error| format_error(&path, text(&error.message())))?;
        let found = found.physical_type();
        if value_type.is_some_and(|given| given != found) {
            let lookup = file.borrow_dependent().lookup(&options);
            lookup.map_err(|error| value_error(&error.message()))?;
        }
        options.value_type = Some(found);
    }
    let is_encoded =
        |of| [PhysicalType::Int32, PhysicalType::Int64, PhysicalType::Int96].contains(&of);
    options.encoded = options.value_type.is_some_and(is_encoded);
    Ok(Py::new(py, StoredFilter { file, options })?.into_any())
}

/// The row groups of a Parquet file that must be read for any of the values of a column, by the
/// column's Bloom filters: those without a filter, too.
///
/// Values are of the column's stored type: int, float, str, bytes or bool; for a DATE also
/// datetime.date. For a TIMESTAMP give the integer in the unit of the file's schema. None is no
/// value: filters do not hold NULL. The filters never say that a value is there.
#[pyfunction]
#[pyo3(signature = (path, column, values))]
pub(crate) fn parquet_row_groups(
    py: Python<'_>,
    path: PathBuf,
    column: &str,
    values: &Bound<'_, PyAny>,
) -> PyResult<Vec<usize>> {
    let map = map(&path)?;
    let format = recognised(&path, &map)?;
    let file = opened(&path, format, None, map)?;
    // Which columns it has only its row groups say.
    if file.borrow_dependent().describe().json().get("row_groups") == Some(&Value::Integer(0)) {
        return Ok(Vec::new());
    }
    let filters = file.borrow_dependent().column(column, &[]);
    let filters = filters.map_err(|error| format_error(&path, text(&error.message())))?;
    let values = keys(values, format, Some(filters.physical_type()))?;
    let encoded = filters.physical_type() == PhysicalType::Int96;
    py.detach(|| filters.row_groups_to_read(&values, encoded))
        .map_err(|bad| PyValueError::new_err(text(&bad.problem)))
}
