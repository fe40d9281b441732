//! Filters of other systems, in their own files: `blocked-bloom-inspect` for Python.

use std::ffi::CString;
use std::fs::File;
use std::path::{Path, PathBuf};

use blocked_bloom::Bitmask;
use blocked_bloom_inspect::{
    EVIDENCE_BYTES, FileRanges, Format, LookupOptions, Opened, PhysicalType, Value, recognise,
};
use memmap2::Mmap;
use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyString};

use crate::error::{Error, FormatError};
use crate::{batch, filter, objects, stored};

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
    map.map_err(|error| Error::Io(error).of_file(path))
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
    recognise(&name(path), head, tail, Some(bytes.len() as u64))
        .map_err(|error| format_error(path, error))
}

fn opened(path: &Path, format: Format, map: Mmap) -> PyResult<OpenedFile> {
    OpenedFile::try_new(map, |map| {
        Opened::new(&name(path), &FileRanges::from(&map[..]), format, None)
    })
    .map_err(|error| format_error(path, error))
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
    if keys.is_instance_of::<PyString>() || keys.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err("one key where many are taken: give a list of keys"));
    }
    // The items of Arrow's columns are no Python values.
    let listed = match keys.getattr_opt(pyo3::intern!(keys.py(), "to_pylist"))? {
        Some(to_list) => to_list.call0()?,
        None => keys.clone(),
    };
    let of = |(i, item): (usize, PyResult<Bound<'_, PyAny>>)| {
        let item = item?;
        key(&item, format, values).map_err(|error| objects::at(keys.py(), error, i))
    };
    listed.try_iter()?.enumerate().map(of).collect()
}

impl StoredFilter {
    /// Which keys may be there. Warns if the answers are worth less than is expected.
    fn look_up(&self, py: Python<'_>, keys: &[Vec<u8>]) -> PyResult<Vec<bool>> {
        let answered = py.detach(|| {
            let lookup =
                self.file.borrow_dependent().lookup(&self.options).map_err(|e| e.to_string())?;
            let mut hits = Bitmask::new();
            lookup.contains_batch(keys, &mut hits).map_err(|e| e.to_string())?;
            let warnings = lookup.warnings().iter().cloned().chain(lookup.doubts(keys, &hits));
            let texts: Vec<String> = warnings.map(|warning| warning.to_string()).collect();
            Ok::<_, String>((hits.iter().collect(), texts))
        });
        let (answers, warnings) = answered.map_err(PyValueError::new_err)?;
        for text in warnings {
            let category = py.get_type::<PyUserWarning>();
            PyErr::warn(py, &category, &CString::new(text)?, 1)?;
        }
        Ok(answers)
    }

    fn format(&self) -> Format {
        self.file.borrow_dependent().format()
    }
}

#[pymethods]
impl StoredFilter {
    /// Which keys of a list may be there: False is certainly absent. Returns NumPy's booleans.
    ///
    /// A `UserWarning` says what the answers are worth if that is less than is expected: all are
    /// "maybe", or the keys look like numbers where the system stores their bytes.
    fn contains<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let keys = self::keys(keys, self.format(), self.options.value_type)?;
        batch::numpy_of(py, &self.look_up(py, &keys)?)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let keys = [self::key(key, self.format(), self.options.value_type)?];
        Ok(self.look_up(key.py(), &keys)?[0])
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
/// `column` is that of a Parquet file whose filters are meant; `integers=True` says that a Spark
/// filter holds integers and not strings.
#[pyfunction]
#[pyo3(signature = (path, /, *, column=None, integers=false))]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    column: Option<String>,
    integers: bool,
) -> PyResult<Py<PyAny>> {
    if column.is_some() && integers {
        return Err(PyValueError::new_err(
            "integers=True is for a Spark filter, which has no column: a column says what it holds",
        ));
    }
    let map = map(&path)?;
    let format = recognised(&path, &map)?;
    if (column.is_some() || integers) && [Format::NATIVE, Format::GROWING].contains(&format) {
        return Err(PyValueError::new_err(format!(
            "{} is a filter of blocked-bloom: it has no columns, and takes integers as they are",
            path.display()
        )));
    }
    if format == Format::NATIVE {
        return filter::of_file(py, &path, || stored::map(&path, true));
    }
    if format == Format::GROWING {
        return filter::of_file(py, &path, || stored::map_growing(&path, true));
    }
    let file = opened(&path, format, map)?;
    let mut options = LookupOptions::default();
    if let Some(column) = column {
        let filters = file
            .borrow_dependent()
            .column(&column, &[])
            .map_err(|error| format_error(&path, error))?;
        options.value_type = Some(filters.physical_type());
        options.column = Some(column);
    } else if integers {
        options.value_type = Some(PhysicalType::Int64);
    }
    format.check(&options).map_err(|error| PyValueError::new_err(error.to_string()))?;
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
    let file = opened(&path, format, map)?;
    // Which columns it has only its row groups say.
    if file.borrow_dependent().describe().json().get("row_groups") == Some(&Value::Integer(0)) {
        return Ok(Vec::new());
    }
    let filters =
        file.borrow_dependent().column(column, &[]).map_err(|error| format_error(&path, error))?;
    let values = keys(values, format, Some(filters.physical_type()))?;
    py.detach(|| filters.row_groups_to_read(&values, false))
        .map_err(|error| PyValueError::new_err(error.to_string()))
}
