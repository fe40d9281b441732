//! Filters of other systems in their own files: `blocked-bloom-inspect` for Python.

use std::ffi::CString;
use std::fs::File;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use blocked_bloom::Bitmask;
use blocked_bloom_inspect::{
    ColumnType, Content, EVIDENCE_BYTES, FileRanges, Format, Layout, LogicalType, Lookup,
    LookupOption, LookupOptions, Message, Opened, PhysicalType, Unrecognised, VALUE_TYPES, Warning,
    layout_of_version, recognise, type_name, type_of_name,
};
use memmap2::Mmap;
use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyList, PyMapping, PyString, PyTuple};

use crate::batch::{self, Answers, Chunk, Keys, Rows};
use crate::columns::{CHUNK, Column, Kind};
use crate::error::{Error, FormatError};
use crate::objects::{self, KeyBatch, Objects, Part};
use crate::{filter, stored};

self_cell::self_cell!(
    /// A mapped file and the filter found in it.
    struct OpenedFile {
        owner: Mmap,
        #[covariant]
        dependent: Opened,
    }
);

fn map(path: &Path) -> PyResult<Mmap> {
    // SAFETY: another process may shorten the file, which kills this process, or change it, which
    // changes answers; the documentation of `open` says so. Every byte value is valid.
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
        format_error(
            path,
            match (error, Content::from_magic(head)) {
                (Unrecognised::LooksCompact, _) => format!("{error}: give format=\"compact\""),
                (Unrecognised::Unknown, Some(content)) => {
                    format!("not a recognised filter file: it is {}", content.description())
                }
                _ => error.to_string(),
            },
        )
    })
}

fn opened(path: &Path, format: Format, layout: Option<Layout>, map: Mmap) -> PyResult<OpenedFile> {
    OpenedFile::try_new(map, |map| {
        Opened::new(&name(path), &FileRanges::from(&map[..]), format, layout)
    })
    .map_err(|error| format_error(path, text(&error.message())))
}

/// A filter of another system (RocksDB, Parquet, Cassandra, Guava, Spark, RedisBloom) in its own
/// file. `open` returns it.
#[pyclass(frozen, weakref, module = "blocked_bloom")]
pub(crate) struct StoredFilter {
    file: OpenedFile,
    options: LookupOptions,
    values: Option<ColumnType>,
}

/// Returns whether the library takes keys of such values as stored bytes. It does for integers,
/// where this saves the text, and for values without a text form.
fn is_encoded(values: &ColumnType) -> bool {
    values.integer_bytes().is_some()
        || values.is_opaque()
        || values.physical_type == PhysicalType::Int96
}

/// Returns the bytes of a key for a filter of this format: text, or [stored bytes](is_encoded).
fn key(key: &Bound<'_, PyAny>, format: Format, values: Option<ColumnType>) -> PyResult<Vec<u8>> {
    let name = key.get_type().name()?;
    let key = &match is_time(values) && objects::TIMES.contains(&name.to_cow()?.as_ref()) {
        true => listed(key, values)?.get_item(0)?,
        false => objects::plain(key.clone())?,
    };
    if key.is_none() {
        return Err(PyTypeError::new_err(
            "None cannot be looked up: filters do not contain NULL, leave it out",
        ));
    }
    let Some(values) = values.filter(|values| !values.is_bytes()) else {
        return bytes_key(key, format, values);
    };
    let integers = values.integer_bytes().is_some();
    let text = if let Ok(text) = key.cast::<PyString>() {
        text.to_str()?.to_owned()
    } else if let Ok(bytes) = key.cast::<PyBytes>() {
        let bytes = bytes.as_bytes();
        if is_encoded(&values) && !integers {
            return Ok(bytes.to_vec());
        }
        match (values.logical_type, std::str::from_utf8(bytes)) {
            (Some(LogicalType::Uuid), _) => bytes.iter().map(|b| format!("{b:02x}")).collect(),
            (_, Ok(text)) if integers => text.to_owned(),
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "found bytes for a column of {values}: give {}",
                    if integers { "an int" } else { "a number, Decimal or str" }
                )));
            }
        }
    } else {
        value_text(key, &values)?
    };
    let encoded = values.encode(text.as_bytes(), false).map_err(|problem| value_error(&problem))?;
    Ok(if is_encoded(&values) { encoded.bytes.into_owned() } else { text.into_bytes() })
}

/// Reads a key for a filter of text or bytes.
fn bytes_key(
    key: &Bound<'_, PyAny>,
    format: Format,
    values: Option<ColumnType>,
) -> PyResult<Vec<u8>> {
    if let Ok(text) = key.cast::<PyString>() {
        return Ok(text.to_str()?.as_bytes().to_vec());
    }
    if let Ok(bytes) = key.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    if format == Format::REDISBLOOM {
        return Ok(objects::number(key)?.into_bytes());
    }
    let is_fixed = values.is_some_and(|of| of.physical_type == PhysicalType::FixedLenByteArray);
    if is_fixed && let Some(uuid) = objects::uuid(key)? {
        return Ok(uuid.to_vec());
    }
    let (kind, format) = (key.get_type().fully_qualified_name()?, format.name());
    Err(PyTypeError::new_err(format!(
        "a key of this filter of {format} is str or bytes, as that system stores it, not {kind}"
    )))
}

/// Formats a number, date, time or UUID as text that the library reads.
fn value_text(key: &Bound<'_, PyAny>, values: &ColumnType) -> PyResult<String> {
    let (py, class) = (key.py(), key.get_type());
    let name = class.name()?;
    if values.logical_type == Some(LogicalType::Uuid) && name != "UUID" {
        return Err(PyTypeError::new_err(format!(
            "a {name} is not a UUID: give a uuid.UUID, its text or its 16 bytes"
        )));
    }
    let text = match name.to_cow()?.as_ref() {
        "bool" | "bool_" => return Ok(key.str()?.to_str()?.to_ascii_lowercase()),
        "float16" | "float32" | "float64" | "float" => {
            let float: f64 = key.extract()?;
            // Convert exactly: a float with more digits than the DECIMAL is refused.
            match values.logical_type {
                Some(LogicalType::Decimal { .. }) => {
                    py.import("decimal")?.call_method1("Decimal", (float,))?.str()?
                }
                _ => float.into_pyobject(py)?.repr()?,
            }
        }
        "date" | "datetime" | "time" | "Timestamp" => {
            key.call_method0(pyo3::intern!(py, "isoformat"))?.str()?
        }
        "datetime64" => {
            // A year alone looks like a number, and an hour alone is not a time.
            let dtype = key.getattr("dtype")?.str()?.to_str()?.to_owned();
            let unit = match &dtype[dtype.len() - 3..] {
                "[Y]" | "[M]" | "[W]" => "datetime64[D]",
                "[h]" => "datetime64[m]",
                _ => &dtype,
            };
            key.call_method1("astype", (unit,))?.str()?
        }
        "Decimal" | "UUID" => key.str()?,
        "timedelta" | "timedelta64" | "Timedelta" => {
            return Err(PyTypeError::new_err(format!(
                "a {name} is not a value of {values}: give the integer that the column stores"
            )));
        }
        _ => {
            let text = match key.is_instance_of::<PyInt>() {
                true => py.get_type::<PyInt>().call_method1("__repr__", (key,))?.extract()?,
                false => objects::number(key)?,
            };
            // With a sign, 2020 is a stored number and not a year.
            let is_signed = text.starts_with('-') || !is_time(Some(*values));
            return Ok(if is_signed { text } else { format!("+{text}") });
        }
    };
    Ok(text.to_str()?.to_owned())
}

/// Reads the keys of a batch. Errors name the index of the key.
fn keys(keys: &Bound<'_, PyAny>, format: Format, values: ColumnType) -> PyResult<Vec<Vec<u8>>> {
    let of = |(i, item): (usize, PyResult<Bound<'_, PyAny>>)| {
        let key = key(&item?, format, Some(values));
        key.map_err(|error| objects::locate_error(keys.py(), error, i))
    };
    listed(keys, Some(values))?.try_iter()?.enumerate().map(of).collect()
}

/// Refuses a single key, a table and a mapping where a batch is expected.
fn refuse_no_batch(keys: &Bound<'_, PyAny>) -> PyResult<()> {
    if keys.is_instance_of::<PyString>()
        || keys.is_instance_of::<PyBytes>()
        || keys.is_instance_of::<PyByteArray>()
    {
        return Err(PyTypeError::new_err("one key where many are taken: give a list of keys"));
    }
    let class = keys.get_type();
    if keys.cast::<PyMapping>().is_ok() || class.hasattr(pyo3::intern!(keys.py(), "columns"))? {
        let kind = class.fully_qualified_name()?;
        return Err(PyTypeError::new_err(format!("a {kind} is not a list of keys: give a column")));
    }
    Ok(())
}

/// Returns whether the column holds times, as numbers.
fn is_time(values: Option<ColumnType>) -> bool {
    use LogicalType::{Date, Time, Timestamp};
    values.is_some_and(|values| {
        matches!(values.logical_type, Some(Date | Time(_) | Timestamp { .. }))
            || values.physical_type == PhysicalType::Int96
    })
}

/// Converts a batch to Python objects. Items of Arrow columns are not Python values, and Python's
/// times have no nanoseconds: those of Arrow become text.
fn listed<'py>(
    keys: &Bound<'py, PyAny>,
    values: Option<ColumnType>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    if is_time(values) {
        return py.import("blocked_bloom._file_values")?.call_method1("time_texts", (keys,));
    }
    match keys.getattr_opt(pyo3::intern!(py, "to_pylist"))? {
        Some(to_list) => to_list.call0(),
        None => Ok(keys.clone()),
    }
}

/// Formats a message of the library with the names of this package.
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

/// Encodes a number as a value of the filter, or returns `None` if it is out of range. Unsigned
/// values are stored as signed ones with the same bits.
fn encoded(number: i128, range: &RangeInclusive<i128>) -> Option<[u8; 8]> {
    range.contains(&number).then(|| (number as u64).to_le_bytes())
}

/// Looks up the keys of a batch, chunk by chunk.
struct Lookups<'o> {
    filter: &'o StoredFilter,
    lookup: Lookup<'o>,
    hits: Bitmask,
    warnings: Vec<Warning>,
}

impl Lookups<'_> {
    fn look_up(
        &mut self,
        keys: Keys<'_>,
        is_signed: bool,
        rows: Chunk<'_>,
        words: &mut [u64],
    ) -> Result<(), Error> {
        // `column` accepts no hashed column, and numbers only for integers.
        let (Keys::Numbers(given) | Keys::Hashes(given), Some((values, width))) =
            (keys, self.filter.integers())
        else {
            let Keys::Bytes(keys) = keys else { return Ok(()) };
            return self.look_up_bytes(keys, rows, words);
        };
        let (mut bytes, range) = ([[0; 8]; CHUNK], values.integers());
        for (i, (&number, bytes)) in given.iter().zip(&mut bytes).enumerate() {
            let number = if is_signed { (number as i64).into() } else { number.into() };
            *bytes = encoded(number, &range).ok_or_else(|| {
                let number = number.to_string();
                let refused = values.encode(number.as_bytes(), false);
                let problem = refused.err().map_or_else(String::new, |error| text(&error));
                Error::Value(format!("key {}: {problem}", rows.row(i)))
            })?;
        }
        let mut slices = [[].as_slice(); CHUNK];
        slices.iter_mut().zip(&bytes).for_each(|(slice, bytes)| *slice = &bytes[..width]);
        self.look_up_bytes(&slices[..given.len()], rows, words)
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
            // Show each kind of warning once.
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

    /// Returns the type and width of integer values, or `None` for other values.
    fn integers(&self) -> Option<(&ColumnType, usize)> {
        let values = self.values.as_ref()?;
        Some((values, values.integer_bytes()?))
    }

    /// Returns whether keys are taken as plain text or bytes.
    fn takes_bytes(&self) -> bool {
        self.values.is_none_or(|values| values.is_bytes())
    }

    fn lookups(&self) -> PyResult<Lookups<'_>> {
        let lookup = self.file.borrow_dependent().lookup(&self.options);
        let lookup = lookup.map_err(|error| value_error(&error.message()))?;
        let warnings = lookup.warnings().to_vec();
        Ok(Lookups { filter: self, lookup, hits: Bitmask::new(), warnings })
    }

    /// Reads a key that is not of one of the common types.
    fn key(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        self::key(key, self.format(), self.values)
    }

    /// Returns the batch as a column if it is one of bytes, or of numbers for a filter of integers.
    fn column(&self, keys: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Column>>> {
        if keys.is_instance_of::<PyList>() || keys.is_instance_of::<PyTuple>() {
            return Ok(None);
        }
        let column = match batch::column(keys, None) {
            // Values such as dates are looked up one by one.
            Err(error) if error.is_instance_of::<PyTypeError>(keys.py()) => None,
            column => column?,
        };
        let is_taken = |chunk: &Column| match chunk.kind(false) {
            // Booleans are refused one by one.
            Kind::Numbers => self.integers().is_some() && chunk.is_signed().is_some(),
            kind => kind == Kind::Bytes && self.takes_bytes(),
        };
        Ok(column.filter(|column| column.iter().all(is_taken)))
    }

    /// Looks up keys that are Python objects.
    fn look_up_objects(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        lookups: &mut Lookups<'_>,
    ) -> PyResult<Answers> {
        let (mut objects, mut taken) =
            (Objects::new(&listed(keys, self.values)?)?, KeyBatch::default());
        let mut answers = Answers::default();
        let integers = self.integers().map(|(values, width)| (values.integers(), width));
        loop {
            // Ctrl-C can end a long batch.
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
                slices[kept] = match (objects::fast(object.as_borrowed()), &integers) {
                    (Some(Part::Bytes(bytes)), _) if self.takes_bytes() => bytes,
                    (Some(Part::Number(number)), Some((range, width)))
                        if encoded((number as i64).into(), range).is_some() =>
                    {
                        *room = number.to_le_bytes();
                        &room[..*width]
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
    /// Returns for each key of a batch whether it may be in the filter; False means certainly
    /// absent.
    ///
    /// Keys are a column or a list. The answers are booleans of pyarrow or Polars for their keys,
    /// else of NumPy. The answer for NULL is NULL, or False in NumPy. A `UserWarning` is raised if
    /// the answers are less useful than expected: all of them are "maybe", or the keys look like
    /// numbers but the system stores their bytes.
    fn contains<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        refuse_no_batch(keys)?;
        let mut lookups = self.lookups()?;
        let answers = match self.column(keys)? {
            Some(column) => {
                let len = batch::rows(&column);
                let is_signed = column.first().and_then(Column::is_signed) != Some(false);
                let mut answers = Answers::default();
                Rows::new(&[column], false, None, 0..len).run_detached(
                    py,
                    &mut answers,
                    |keys, rows, words| lookups.look_up(keys, is_signed, rows, words),
                )?;
                answers
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

    /// The name of the format, as in the command-line tool.
    #[getter]
    fn format_name(&self) -> &'static str {
        self.format().name()
    }

    /// Describes the filter with the fields of `blocked-bloom inspect --json`.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let json = py.detach(|| self.file.borrow_dependent().describe().json().to_string());
        py.import(pyo3::intern!(py, "json"))?.call_method1(pyo3::intern!(py, "loads"), (json,))
    }

    fn __repr__(&self) -> String {
        format!("<StoredFilter of the format {}>", self.format().name())
    }
}

/// Opens a file with a filter of this project or of another system: RocksDB (SST), Parquet,
/// Cassandra, Guava, Spark or RedisBloom.
///
/// The file is memory-mapped, and verified as far as its format has checksums. Do not shorten it
/// while the filter is in use: reading past its end kills the process. For a filter of this
/// project, `open` returns a `BloomFilter` or `ScalableBloomFilter`, mapped as by `mmap`.
///
/// The other arguments are the options of the command-line tool:
///
/// - `format` names a format that cannot be recognised, such as "compact".
/// - `column` selects the column of a Parquet file.
/// - `type` is the type of the values, such as "int64", in a Parquet filter without its file. It
///   also tells that a Spark filter holds integers instead of strings.
/// - `cassandra_version`, such as "nb", is for a Filter.db whose name has no version or a wrong
///   one.
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
    let mut values = value_type.map(ColumnType::from);
    if let Some(column) = &options.column {
        let filters = file.borrow_dependent().column(column, &[]);
        let filters = filters.map_err(|error| format_error(&path, text(&error.message())))?;
        values = Some(filters.column_type());
        let found = filters.physical_type();
        if value_type.is_some_and(|given| given != found) {
            let lookup = file.borrow_dependent().lookup(&options);
            lookup.map_err(|error| value_error(&error.message()))?;
        }
        options.value_type = Some(found);
    }
    options.encoded = values.as_ref().is_some_and(is_encoded);
    Ok(Py::new(py, StoredFilter { file, options, values })?.into_any())
}

/// Returns the row groups of a Parquet file that must be read to find any of the values of a
/// column, according to the column's Bloom filters. Row groups without a filter are included.
///
/// The column's type in the file's schema decides how values are read: int, float and `Decimal` for
/// numbers (5 is 5.00 in a DECIMAL); `date`, `time` and `datetime` for dates and times; `uuid.UUID`
/// or its text for UUIDs; str and bytes; and str for all of these types. An int for a date or a
/// time is the number stored in the column. A value that the column cannot hold exactly raises
/// ValueError, and so does None, because filters hold no NULL. A returned row group may still lack
/// the value. An iterator raises TypeError, because it would be empty for the next file.
///
/// If the file does not have the column, or has it twice or with several types, all row groups are
/// returned with a `UserWarning`. A row group with a damaged filter is returned with a warning. An
/// encrypted footer is an error: the whole file must be read.
#[pyfunction]
#[pyo3(signature = (path, column, values))]
pub(crate) fn parquet_row_groups(
    py: Python<'_>,
    path: PathBuf,
    column: &str,
    values: &Bound<'_, PyAny>,
) -> PyResult<Vec<usize>> {
    refuse_no_batch(values)?;
    if values.try_iter().is_ok_and(|iterator| iterator.is(values)) {
        return Err(PyTypeError::new_err(
            "the values are an iterator, which the next file would find empty: give a list",
        ));
    }
    let map = map(&path)?;
    let format = recognised(&path, &map)?;
    let file = opened(&path, format, None, map)?;
    let file = file.borrow_dependent();
    let warn = |problem: &dyn std::fmt::Display| {
        let warning = CString::new(format!("{}: {problem}", path.display()))?;
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &warning, 1)
    };
    if format == Format::PARQUET && !file.has_column(column) {
        let row_groups = file.row_groups();
        if row_groups > 0 {
            warn(&format_args!("no column {column:?}: all row groups must be read"))?;
        }
        return Ok((0..row_groups).collect());
    }
    let filters = match file.column(column, &[]) {
        Ok(filters) => filters,
        // Among many files, this one must be read.
        Err(error) if format == Format::PARQUET => {
            let problem = text(&error.message());
            warn(&format_args!("{problem} (all row groups must be read)"))?;
            return Ok((0..file.row_groups()).collect());
        }
        Err(error) => return Err(format_error(&path, text(&error.message()))),
    };
    for group in filters.row_groups() {
        if let Err(error) = &group.filter {
            warn(&format_args!("column {column:?}, row group {}: {error}", group.row_group))?;
        }
    }
    let mut groups = filters.row_groups().iter();
    if groups.all(|group| !matches!(group.filter, Ok(Some(_)))) {
        return Ok(filters.row_groups().iter().map(|group| group.row_group).collect());
    }
    let column_type = filters.column_type();
    let values = keys(values, format, column_type)?;
    py.detach(|| filters.row_groups_to_read(&values, is_encoded(&column_type)))
        .map_err(|bad| PyValueError::new_err(text(&bad.problem)))
}
