//! Keys that are Python objects.

use std::ptr;

use crate::hash::Hasher;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyIterator, PyList, PyString, PyTuple};

use crate::columns::{CHUNK, Kind};
use crate::shared::HAS_GIL;

/// The value of a one-part key.
pub(crate) enum Part<'a> {
    Bytes(&'a [u8]),
    Number(u64),
    Uuid([u8; 16]),
}

impl Part<'_> {
    #[inline(always)]
    fn hash(self, hasher: Hasher) -> u64 {
        match self {
            Part::Bytes(bytes) => hasher.hash(bytes),
            Part::Number(number) => hasher.hash(number.to_le_bytes()),
            Part::Uuid(bytes) => hasher.hash(bytes),
        }
    }
}

/// Reads keys of the most common types, each found by one comparison, because the stable
/// interface's `PyUnicode_Check` is a function call. Returns `None` if the slow path must be taken;
/// it also reports errors. If `Some` is returned, no Python code has run.
#[inline(always)]
pub(crate) fn fast<'a>(object: Borrowed<'a, '_, PyAny>) -> Option<Part<'a>> {
    let object = object.as_ptr();
    // SAFETY: `object` is borrowed, so it is alive.
    let kind = unsafe { ffi::Py_TYPE(object) };
    if kind == &raw mut ffi::PyUnicode_Type {
        let mut size = 0;
        // SAFETY: `object` is alive and a str by its type.
        let text = unsafe { ffi::PyUnicode_AsUTF8AndSize(object, &mut size) };
        if text.is_null() {
            // SAFETY: `object` is borrowed from an attached thread, which is this one.
            unsafe { ffi::PyErr_Clear() };
            return None;
        }
        // SAFETY: the str keeps its UTF-8, of this size, while it lives, and it is borrowed.
        return Some(Part::Bytes(unsafe {
            std::slice::from_raw_parts(text.cast(), size as usize)
        }));
    }
    if kind == &raw mut ffi::PyLong_Type {
        let mut overflow = 0;
        // SAFETY: a live int; the only error this reports is overflow.
        let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(object, &mut overflow) };
        return (overflow == 0).then_some(Part::Number(value as u64));
    }
    if kind == &raw mut ffi::PyBytes_Type {
        // SAFETY: `object` is alive and a bytes by its type.
        let bytes = unsafe { ffi::PyBytes_AsString(object) };
        // SAFETY: `object` is alive and a bytes by its type.
        let size = unsafe { ffi::PyBytes_Size(object) };
        // SAFETY: bytes do not change and live as long as their object, which is borrowed.
        return Some(Part::Bytes(unsafe {
            std::slice::from_raw_parts(bytes.cast(), size as usize)
        }));
    }
    None
}

/// Returns the bytes of a `uuid.UUID`, or `None` for another object.
pub(crate) fn uuid(object: &Bound<'_, PyAny>) -> PyResult<Option<[u8; 16]>> {
    let py = object.py();
    let class = py.import(pyo3::intern!(py, "uuid"))?.getattr(pyo3::intern!(py, "UUID"))?;
    if !object.is_instance(&class)? {
        return Ok(None);
    }
    let bytes = object.getattr(pyo3::intern!(py, "bytes"))?;
    let bytes = bytes.cast::<PyBytes>()?.as_bytes();
    let sized = bytes.try_into().map_err(|_| {
        PyTypeError::new_err(format!("a UUID whose bytes are {}, not 16", bytes.len()))
    });
    sized.map(Some)
}

/// Classes of pyarrow whose Python values have no nanoseconds.
pub(crate) const TIMES: [&str; 3] = ["TimestampScalar", "Time32Scalar", "Time64Scalar"];

/// Returns the Python value of a pyarrow scalar, or any other object and [`TIMES`] unchanged.
pub(crate) fn plain(object: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = object.py();
    if fast(object.as_borrowed()).is_none()
        && object.get_type().module()?.to_cow()?.starts_with("pyarrow")
        && !TIMES.contains(&object.get_type().name()?.to_cow()?.as_ref())
        && let Some(method) = object.getattr_opt(pyo3::intern!(py, "as_py"))?
    {
        return method.call0();
    }
    Ok(object)
}

/// Reads a one-part key: the UTF-8 of a str, the bytes, or the number.
fn part<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Part<'a>> {
    if let Some(part) = fast(object.as_borrowed()) {
        return Ok(part);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Part::Bytes(text.to_str()?.as_bytes()));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Part::Bytes(bytes.as_bytes()));
    }
    // Integers first: they are more common, and few of their classes have a long MRO.
    if !object.is_instance_of::<PyInt>()
        && let Some(bytes) = uuid(object)?
    {
        return Ok(Part::Uuid(bytes));
    }
    Ok(Part::Number(integer(object)?))
}

/// Returns whether an object stands for NULL: None or pandas.NA.
pub(crate) fn is_null(object: &Bound<'_, PyAny>) -> bool {
    object.is_none() || object.get_type().name().is_ok_and(|found| found == "NAType")
}

/// Records that object `i` is NULL; see [`KeyBatch::valid`].
pub(crate) fn leave_out(valid: &mut Vec<u64>, i: usize, objects: usize) {
    if valid.is_empty() {
        valid.resize(objects.div_ceil(64), u64::MAX);
        if let (Some(last), rest @ 1..) = (valid.last_mut(), objects % 64) {
            *last = (1 << rest) - 1;
        }
    }
    valid[i / 64] &= !(1 << (i % 64));
}

/// Returns the value of a NumPy boolean, which is not an int in Python.
fn numpy_bool(object: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    let class = object.get_type();
    let name = class.name()?;
    if (name == "bool" || name == "bool_") && class.module()? == "numpy" {
        return object.is_truthy().map(|value| Some(value.into()));
    }
    Ok(None)
}

/// Returns the decimal digits of an integer.
pub(crate) fn number(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let value = integer(object)?;
    Ok(if object.lt(0)? { (value as i64).to_string() } else { value.to_string() })
}

fn integer(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    let py = object.py();
    // Arrays have the method, and it raises a TypeError. Other errors are those of the caller.
    let index = || match object.getattr_opt(pyo3::intern!(py, "__index__"))?.map(|f| f.call0()) {
        Some(Err(error)) if error.is_instance_of::<PyTypeError>(py) => Ok(None),
        called => called.transpose(),
    };
    let number = if object.is_instance_of::<PyInt>() {
        object.clone()
    } else if let Some(value) = numpy_bool(object)? {
        return Ok(value);
    } else if let Some(index) = index()? {
        index
    } else {
        let advice = match object.get_type().name()?.to_cow()?.as_ref() {
            "float" | "float64" | "float32" => {
                ": equal numbers may differ in their last bits; give str(key + 0.0), which has one \
                 zero, or int(key) if it is whole"
            }
            "date" | "datetime" | "datetime64" | "Timestamp" => {
                ": give key.isoformat(), or a number of one unit for all keys"
            }
            name if TIMES.contains(&name) => ": give key.value, with one unit for all keys",
            "Decimal" => ": give str((key + 0).normalize()), which is the same for 1.5 and 1.50",
            "bytearray" | "memoryview" => ": give bytes(key)",
            "UUID" => ": give key.bytes",
            "Path" | "PosixPath" | "Period" => ": give str(key)",
            "list" | "ndarray" => "; several columns are a list of arrays",
            _ => "",
        };
        let kind = object.get_type().fully_qualified_name()?;
        return Err(PyTypeError::new_err(format!(
            "keys are str, bytes, int, UUID or tuples of these, not {kind}{advice}"
        )));
    };
    let number = number.cast::<PyInt>()?;
    number
        .extract::<i64>()
        .map(|number| number as u64)
        .or_else(|_| number.extract::<u64>())
        .map_err(|_| {
            PyOverflowError::new_err(
                "an integer key is from -2**63 to 2**64 - 1: give a larger one as str or bytes",
            )
        })
}

fn hash_tuple(hasher: Hasher, tuple: &Bound<'_, PyTuple>) -> PyResult<u64> {
    let items: Vec<_> = tuple.iter().collect();
    let parts = items.iter().map(part).collect::<PyResult<Vec<_>>>()?;
    let mut numbers = vec![[0; 8]; parts.len()];
    let slices = parts.iter().zip(&mut numbers).map(|(part, number)| match part {
        Part::Bytes(bytes) => *bytes,
        Part::Uuid(bytes) => bytes,
        Part::Number(value) => {
            *number = value.to_le_bytes();
            number.as_slice()
        }
    });
    Ok(hasher.hash_parts(&slices.collect::<Vec<_>>()))
}

/// Returns the hash of a key that [`fast`] can read.
#[inline(always)]
pub(crate) fn fast_hash(hasher: Hasher, object: Borrowed<'_, '_, PyAny>) -> Option<u64> {
    fast(object).map(|key| key.hash(hasher))
}

/// Returns the hash of one key.
#[inline]
pub(crate) fn hash(hasher: Hasher, object: &Bound<'_, PyAny>) -> PyResult<u64> {
    let key = match fast(object.as_borrowed()) {
        Some(key) => key,
        None => match object.cast::<PyTuple>() {
            Ok(tuple) => return hash_tuple(hasher, tuple),
            Err(_) => {
                let object = plain(object.clone())?;
                return Ok(part(&object)?.hash(hasher));
            }
        },
    };
    Ok(key.hash(hasher))
}

/// Objects that are taken some at a time.
#[derive(Debug)]
pub(crate) enum Objects<'py> {
    List(Bound<'py, PyList>),
    Iterator(Bound<'py, PyIterator>),
}

/// Some objects and their keys. The objects are kept alive because their bytes are read in place.
#[derive(Debug, Default)]
pub(crate) struct KeyBatch<'py> {
    objects: Vec<Bound<'py, PyAny>>,
    /// Number of objects taken before.
    first: usize,
    pub(crate) hashes: Vec<u64>,
    /// See [`Stage::valid`](crate::columns::Stage::valid).
    pub(crate) valid: Vec<u64>,
}

impl<'py> Objects<'py> {
    pub(crate) fn new(keys: &Bound<'py, PyAny>) -> PyResult<Self> {
        if keys.is_instance_of::<PyString>()
            || keys.is_instance_of::<PyBytes>()
            || keys.is_instance_of::<PyByteArray>()
        {
            return Err(PyTypeError::new_err(
                "one key where many are taken: give a list of keys, or use add and in for one",
            ));
        }
        Ok(match keys.cast::<PyList>() {
            Ok(list) => Objects::List(list.clone()),
            Err(_) => Objects::Iterator(keys.try_iter().map_err(|_| {
                let kind = keys.get_type().fully_qualified_name();
                let kind = kind.map_or_else(|_| "it".to_owned(), |kind| kind.to_string());
                PyTypeError::new_err(format!(
                    "{kind} is not iterable: give a list or a column of keys"
                ))
            })?),
        })
    }

    /// Takes up to [`CHUNK`] more objects and returns their number.
    pub(crate) fn take(&mut self, taken: &mut KeyBatch<'py>) -> PyResult<usize> {
        taken.first += taken.objects.len();
        taken.objects.clear();
        match self {
            Objects::List(list) => {
                // Code that runs for a key can change the list's length.
                let end = list.len().min(taken.first + CHUNK);
                for i in taken.first..end {
                    taken.objects.push(plain(list.get_item(i)?)?);
                }
            }
            Objects::Iterator(iterator) => {
                for object in iterator.take(CHUNK) {
                    taken.objects.push(plain(object?)?);
                }
            }
        }
        Ok(taken.objects.len())
    }
}

/// Prefetches an object. Objects are scattered in memory, so reading a list of them is bound by
/// cache misses.
#[inline(always)]
pub(crate) fn prefetch(object: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // A str of 16 bytes ends in the second cache line.
    for line in [0, 64] {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint that reads nothing, and any address is allowed.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(object.wrapping_add(line).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = object;
}

impl<'py> KeyBatch<'py> {
    /// Hashes up to [`CHUNK`] more items of a list in place and returns their number, if all are of
    /// a common type and the interpreter's lock (GIL) excludes other threads.
    ///
    /// References are not counted, which takes 0.67x the time of counting them. The list keeps its
    /// items until Python code runs, and none runs before the hashes are made. (An error of
    /// [`fast`] may run some; nothing is read after it.)
    pub(crate) fn hash_list(&mut self, objects: &Objects<'py>, hasher: Hasher) -> Option<usize> {
        const DISTANCE: usize = 12;
        let Objects::List(list) = objects else { return None };
        let first = self.first + self.objects.len();
        let count = list.len().saturating_sub(first).min(CHUNK);
        if !HAS_GIL || count == 0 {
            return None;
        }
        let mut items = [ptr::null_mut(); CHUNK];
        for (i, item) in items[..count].iter_mut().enumerate() {
            // SAFETY: `first + i` is below the length of the list, which does not change in this
            // function.
            *item = unsafe { ffi::PyList_GetItem(list.as_ptr(), (first + i) as isize) };
        }
        items[..count.min(DISTANCE)].iter().for_each(|item| prefetch(item.cast()));
        let (mut slices, mut numbers) = ([[].as_slice(); CHUNK], [0; CHUNK]);
        let mut texts = 0;
        for i in 0..count {
            prefetch(items[(i + DISTANCE).min(count - 1)].cast());
            // SAFETY: an item of the list, which keeps it alive as described above.
            match fast(unsafe { Borrowed::from_ptr(list.py(), items[i]) })? {
                Part::Bytes(bytes) => {
                    slices[texts] = bytes;
                    texts += 1;
                }
                Part::Number(number) => numbers[i - texts] = number,
                Part::Uuid(_) => return None,
            }
        }
        self.hashes.resize(count, 0);
        if texts == count {
            hasher
                .hash_batch_into(&slices[..count], &mut self.hashes)
                .expect("a hash for each key");
        } else if texts == 0 {
            hasher.hash_u64s(&numbers[..count], &mut self.hashes).expect("a hash for each key");
        } else {
            return None;
        }
        self.objects.clear();
        self.first = first + count;
        self.valid.clear();
        Some(count)
    }

    /// Returns the keys without None: numbers or hashes in `self.hashes`, or slices in `keys`.
    pub(crate) fn keys<'a>(
        objects: &'a [Bound<'py, PyAny>],
        first: usize,
        hasher: Hasher,
        numbers: &mut Vec<u64>,
        valid: &mut Vec<u64>,
        room: &'a mut [[u8; 8]; CHUNK],
        slices: &mut [&'a [u8]; CHUNK],
    ) -> PyResult<(Kind, usize)> {
        numbers.clear();
        valid.clear();
        let (mut kept, mut hashed) = (0, Vec::new());
        for ((i, object), room) in objects.iter().enumerate().zip(room) {
            let key = match fast(object.as_borrowed()) {
                Some(key) => key,
                None if is_null(object) => {
                    leave_out(valid, i, objects.len());
                    continue;
                }
                None => match object.cast::<PyTuple>() {
                    Ok(tuple) => {
                        hashed.push((
                            kept,
                            hash_tuple(hasher, tuple)
                                .map_err(|error| locate_error(object.py(), error, first + i))?,
                        ));
                        Part::Number(0)
                    }
                    Err(_) => {
                        part(object).map_err(|error| locate_error(object.py(), error, first + i))?
                    }
                },
            };
            slices[kept] = match key {
                Part::Bytes(bytes) => bytes,
                Part::Uuid(bytes) => {
                    hashed.push((kept, hasher.hash(bytes)));
                    &[]
                }
                Part::Number(number) => {
                    numbers.push(number);
                    *room = number.to_le_bytes();
                    room
                }
            };
            kept += 1;
        }
        if hashed.is_empty() {
            return Ok((if numbers.len() == kept { Kind::Numbers } else { Kind::Bytes }, kept));
        }
        numbers.clear();
        numbers.resize(kept, 0);
        hasher.hash_batch_into(&slices[..kept], numbers).expect("a hash for each key");
        hashed.into_iter().for_each(|(i, hash)| numbers[i] = hash);
        Ok((Kind::Hashes, kept))
    }

    pub(crate) fn parts(&mut self) -> (&[Bound<'py, PyAny>], usize, &mut Vec<u64>, &mut Vec<u64>) {
        (&self.objects, self.first, &mut self.hashes, &mut self.valid)
    }
}

/// Adds the index of the key to an error.
pub(crate) fn locate_error(py: Python<'_>, error: PyErr, index: usize) -> PyErr {
    // Subclasses of ValueError, such as those of encodings, may take more arguments.
    let is_value_error = error.get_type(py).is(py.get_type::<PyValueError>());
    if is_value_error
        || error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyOverflowError>(py)
    {
        let text = format!("key {index}: {}", error.value(py));
        return PyErr::from_type(error.get_type(py), text);
    }
    // Other exceptions have arguments of their own, so they get a note if they accept one.
    let _ = error
        .value(py)
        .call_method1(pyo3::intern!(py, "add_note"), (format!("key {index} of the batch"),));
    error
}
