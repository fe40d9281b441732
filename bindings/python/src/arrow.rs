//! Arrow's C data interface: imports columns of keys and exports booleans.
//!
//! The interface is three C structures and a page of rules. Existing readers would add 50 crates to
//! the 30 of this package, and trust the lengths and offsets of an imported array. Here each is
//! checked when its row is copied. The interface does not report buffer sizes, so buffers are
//! trusted to be as long as the length and the offsets require.

use std::ffi::{CStr, c_void};
use std::mem;
use std::ptr;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::c_data::{ArrowArray, ArrowSchema, OwnedArray, OwnedSchema, OwnedStream};
use crate::columns::{Column, Dictionary, Items, Layout, Owner, Width};
use crate::hash::Hasher;
use crate::memory;

/// Returns whether an object has the PyCapsule interface.
pub(crate) fn is_column(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    Ok(object.hasattr(pyo3::intern!(py, "__arrow_c_array__"))?
        || object.hasattr(pyo3::intern!(py, "__arrow_c_stream__"))?)
}

/// Returns the chunks of an object with the PyCapsule interface, or `None` if it has neither
/// method.
pub(crate) fn columns(
    object: &Bound<'_, PyAny>,
    hasher: Option<Hasher>,
) -> PyResult<Option<Vec<Column>>> {
    let py = object.py();
    if let Some(method) = object.getattr_opt(pyo3::intern!(py, "__arrow_c_array__"))? {
        let pair = method.call0()?;
        let pair = pair.cast::<PyTuple>()?;
        let schema = OwnedSchema::take(&pair.get_item(0)?, c"arrow_schema")?;
        let array = OwnedArray::take(&pair.get_item(1)?, c"arrow_array")?;
        return Ok(Some(vec![column(&schema, array, hasher)?]));
    }
    let Some(method) = object.getattr_opt(pyo3::intern!(py, "__arrow_c_stream__"))? else {
        return Ok(None);
    };
    let mut stream = OwnedStream::take(&method.call0()?, c"arrow_array_stream")?;
    let schema = stream.schema()?;
    // Check the type before any data is read.
    refuse(&schema.0, hasher)?;
    if let Some(values) = schema.0.dictionary()? {
        refuse(values, hasher)?;
    }
    let mut columns = Vec::new();
    while let Some(array) = stream.next()? {
        columns.push(column(&schema, array, hasher)?);
    }
    Ok(Some(columns))
}

fn column(schema: &OwnedSchema, array: OwnedArray, hasher: Option<Hasher>) -> PyResult<Column> {
    let owner = |array| Owner::Arrow { _array: array };
    let Column { layout, offset, len, validity, _owner } = view(&schema.0, &array.0, hasher)?;
    Ok(Column { layout, offset, len, validity, _owner: owner(array) })
}

fn format(schema: &ArrowSchema) -> PyResult<&str> {
    if schema.format.is_null() {
        return Err(PyValueError::new_err("an Arrow schema without a format"));
    }
    // SAFETY: a string that lives as long as the schema.
    unsafe { CStr::from_ptr(schema.format) }
        .to_str()
        .map_err(|_| PyValueError::new_err("an Arrow format that is not UTF-8"))
}

/// Returns an error with advice for types that cannot be keys.
fn refuse(schema: &ArrowSchema, hasher: Option<Hasher>) -> PyResult<()> {
    let format = format(schema)?;
    match schema.extension()?.as_deref() {
        None => {}
        // Without a hasher, refuse: the other system may store UUIDs as text or as bytes.
        Some("arrow.uuid") if format == "w:16" && hasher.is_some() => return Ok(()),
        // Equal values may have different storage, and the other way round.
        Some(name) => {
            return Err(PyTypeError::new_err(format!(
                "keys of Arrow's extension type {name:?} are not strings, bytes or integers: cast \
                 them to strings or, if equal keys are stored alike, to their storage type"
            )));
        }
    }
    let advice = match format {
        "n" | "b" | "u" | "U" | "vu" | "z" | "Z" | "vz" => return Ok(()),
        _ if width_of(format).is_some() || format.starts_with("w:") => return Ok(()),
        "e" | "f" | "g" => {
            "floats: equal numbers may differ in their last bits; cast them to an integer type \
             (pandas: series.astype('Int64')) or to strings"
        }
        "tdD" | "tts" | "ttm" => {
            "dates or times: cast all to one type, and then to int32, the number that Arrow stores"
        }
        _ if format.starts_with('t') => {
            "dates or times: cast all to one unit, such as timestamp('us'), and then to int64, the \
             number that Arrow stores"
        }
        _ if format.starts_with("d:") => {
            "decimals: cast all to one scale, such as decimal128(38, 9), and then to strings"
        }
        "+s" => {
            "rows of several columns: give one column, or a list of columns, whose rows are the \
             keys: table.columns (pyarrow), frame.get_columns() (Polars), [frame[name] for name in \
             frame] (pandas), array.flatten() (an array of structs)"
        }
        "+r" => "run-end encoded: cast the column to the type of its values",
        _ => "no strings, bytes or integers: cast the column",
    };
    Err(PyTypeError::new_err(format!("keys of Arrow's type {format:?} are {advice}")))
}

fn width_of(format: &str) -> Option<Width> {
    Some(match format {
        "c" => Width::I8,
        "C" => Width::U8,
        "s" => Width::I16,
        "S" => Width::U16,
        "i" => Width::I32,
        "I" => Width::U32,
        "l" => Width::I64,
        "L" => Width::U64,
        _ => return None,
    })
}

/// An array with checked length and offset.
struct Parts<'a> {
    array: &'a ArrowArray,
    offset: usize,
    len: usize,
}

impl Parts<'_> {
    fn wrong(&self, what: impl std::fmt::Display) -> PyErr {
        PyValueError::new_err(format!(
            "an Arrow array of length {} and offset {}: {what}",
            self.array.length, self.array.offset
        ))
    }

    /// Returns a buffer's start, which may be null if the array is empty.
    fn buffer(&self, i: usize) -> PyResult<*const u8> {
        if i as i64 >= self.array.n_buffers || self.array.buffers.is_null() {
            return Err(
                self.wrong(format_args!("buffer {i} of {} is missing", self.array.n_buffers))
            );
        }
        let place = self.array.buffers.wrapping_add(i);
        // SAFETY: `place` is one of `n_buffers` pointers, which may be unaligned.
        Ok(unsafe { place.read_unaligned() }.cast())
    }

    /// Returns the start of a buffer that has an item for each row.
    fn needed(&self, i: usize) -> PyResult<*const u8> {
        let buffer = self.buffer(i)?;
        if buffer.is_null() && self.len > 0 {
            Err(self.wrong(format_args!("buffer {i} is null")))
        } else {
            Ok(buffer)
        }
    }
}

/// Returns the column described by an array, which the caller keeps alive.
fn view(schema: &ArrowSchema, array: &ArrowArray, hasher: Option<Hasher>) -> PyResult<Column> {
    refuse(schema, hasher)?;
    let format = format(schema)?;
    let mut parts = Parts { array, offset: 0, len: 0 };
    let (Ok(offset), Ok(len)) = (usize::try_from(array.offset), usize::try_from(array.length))
    else {
        return Err(parts.wrong("negative"));
    };
    // No byte position overflows: widths are at most 16, except those of "w:", which are checked
    // below.
    let Some(end) = offset.checked_add(len).filter(|end| *end < isize::MAX as usize / 16) else {
        return Err(parts.wrong("too large"));
    };
    (parts.offset, parts.len) = (offset, len);
    let of = |layout| Column { layout, offset, len, validity: None, _owner: Owner::Parent };
    if format == "n" {
        return Ok(of(Layout::Nulls));
    }
    let validity = (array.null_count != 0)
        .then(|| parts.buffer(0))
        .transpose()?
        .filter(|bits| !bits.is_null());
    if array.null_count > 0 && validity.is_none() {
        return Err(parts
            .wrong(format_args!("{} rows are NULL, and no bitmap says which", array.null_count)));
    }
    let layout = match (width_of(format), format) {
        (Some(width), _) => {
            let numbers = Items::adjacent(parts.needed(1)?, width.bytes());
            match schema.dictionary()? {
                None => Layout::Integers(numbers, width),
                Some(of_values) => {
                    let (None, Some(values)) = (of_values.dictionary()?, array.dictionary()?)
                    else {
                        return Err(parts.wrong(
                            "a dictionary without values, or whose values are a dictionary",
                        ));
                    };
                    let values = view(of_values, values, hasher)?;
                    // If the dictionary is much larger than the column, values are hashed row by
                    // row instead.
                    let hashes = match hasher {
                        Some(hasher) if values.len <= 2 * len => values.hash_all(hasher)?,
                        _ => Vec::new(),
                    };
                    let values = Box::new(Dictionary { values, hashes });
                    Layout::Dictionary { indices: numbers, width, values }
                }
            }
        }
        (None, "b") => Layout::Bits(parts.needed(1)?),
        (None, "u" | "z") => offsets(&parts, Width::I32)?,
        (None, "U" | "Z") => offsets(&parts, Width::I64)?,
        (None, "vu" | "vz") => views(&parts)?,
        (None, _) => {
            let size: usize = format
                .strip_prefix("w:")
                .and_then(|size| size.parse().ok())
                .ok_or_else(|| parts.wrong("no width"))?;
            if end.checked_mul(size).is_none_or(|bytes| bytes > isize::MAX as usize) {
                return Err(parts.wrong("too large"));
            }
            let data = parts.buffer(1)?;
            if data.is_null() && len > 0 && size > 0 {
                return Err(parts.wrong("buffer 1 is null"));
            }
            Layout::Fixed(Items::adjacent(data, size))
        }
    };
    Ok(Column { validity, ..of(layout) })
}

/// Reads strings stored one after another. The last offset is the number of bytes.
fn offsets(parts: &Parts<'_>, width: Width) -> PyResult<Layout> {
    let (offsets, data) = (parts.needed(1)?, parts.buffer(2)?);
    if parts.len == 0 {
        return Ok(Layout::Offsets { offsets, width, data, bytes: 0 });
    }
    let last = offsets.wrapping_add(width.bytes() * (parts.offset + parts.len));
    let mut bytes = [0; 8];
    // SAFETY: the producer keeps one more offset than rows, counting the rows before `offset`.
    // There are rows, so the buffer is not null.
    unsafe { memory::copy(last, &mut bytes[..width.bytes()]) };
    let bytes = match width {
        Width::I64 => i64::from_ne_bytes(bytes),
        _ => i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]).into(),
    };
    match usize::try_from(bytes) {
        Ok(bytes) if bytes == 0 || !data.is_null() => {
            Ok(Layout::Offsets { offsets, width, data, bytes })
        }
        _ => Err(parts.wrong(format_args!(
            "key {}: its bytes end at offset {bytes}, in a buffer at {data:?}",
            parts.len - 1
        ))),
    }
}

/// Reads views: the last buffer holds the lengths of the data buffers.
fn views(parts: &Parts<'_>) -> PyResult<Layout> {
    let views = parts.needed(1)?;
    let count = usize::try_from(parts.array.n_buffers).ok().and_then(|count| count.checked_sub(3));
    let Some(count) = count else {
        return Err(parts.wrong("views without the lengths of their buffers"));
    };
    let lengths = parts.buffer(2 + count)?;
    if lengths.is_null() && count > 0 {
        return Err(parts.wrong("views without the lengths of their buffers"));
    }
    let mut found = vec![0; count];
    // SAFETY: the producer keeps Arrow's layout of views until the array is released, which is not
    // before `parts` ends. After validity and views there are `count` data buffers, then one buffer
    // with their lengths: `count` numbers of 64 bits. It is checked to be non-null if `count` is
    // not 0; otherwise nothing is read.
    unsafe { memory::copy_words(lengths, &mut found) };
    let buffers = found.iter().enumerate().map(|(i, &bytes)| {
        let data = parts.buffer(2 + i)?;
        // A negative length counts as 0.
        let bytes = if data.is_null() { 0 } else { usize::try_from(bytes as i64).unwrap_or(0) };
        Ok((data, bytes))
    });
    Ok(Layout::Views { views, buffers: buffers.collect::<PyResult<_>>()? })
}

/// Booleans that Arrow libraries import without a copy.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct BooleanColumn {
    pub(crate) bits: Arc<Vec<u64>>,
    pub(crate) valid: Option<Arc<Vec<u64>>>,
    pub(crate) len: usize,
}

/// Memory that a consumer of [`BooleanColumn`] keeps alive.
struct Exported {
    _bits: Arc<Vec<u64>>,
    _valid: Option<Arc<Vec<u64>>>,
    buffers: [*const c_void; 2],
}

/// # Safety
///
/// `array` was made by [`BooleanColumn`], has not been released, and is not used elsewhere.
unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: the caller's promise: a live structure that nothing else refers to.
    let array = unsafe { &mut *array };
    array.release = None;
    // SAFETY: the pointer is from `Box::into_raw` and is freed once, because a released array is
    // not released again.
    drop(unsafe { Box::from_raw(array.private_data.cast::<Exported>()) });
}

/// # Safety
///
/// `schema` was made by [`BooleanColumn`], has not been released, and is not used elsewhere.
unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the caller's promise: a live structure that nothing else refers to.
    unsafe { (*schema).release = None };
}

/// A structure to hand to a consumer.
struct Capsule<T>(T);
// SAFETY: it holds an array or a schema of this file. Their parts, `Arc`s of words and static
// strings, are not tied to a thread.
unsafe impl<T> Send for Capsule<T> {}

#[pymethods]
impl BooleanColumn {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // Only one type can be exported.
        let _ = requested_schema;
        let (bits, valid) = (Arc::clone(&self.bits), self.valid.clone());
        let start = valid.as_ref().map_or(ptr::null(), |valid| valid.as_ptr().cast());
        let nulls = valid.as_ref().map_or(0, |valid| {
            self.len - valid.iter().map(|word| word.count_ones() as usize).sum::<usize>()
        });
        let exported = Box::new(Exported {
            buffers: [start, bits.as_ptr().cast()],
            _bits: bits,
            _valid: valid,
        });
        let mut array = ArrowArray {
            length: self.len as i64,
            null_count: nulls as i64,
            n_buffers: 2,
            ..ArrowArray::RELEASED
        };
        // The box keeps its address, so the pointer stays valid.
        array.buffers = exported.buffers.as_ptr();
        array.private_data = Box::into_raw(exported).cast();
        array.release = Some(release_array);
        let array = OwnedArray(array);
        const NULLABLE: i64 = 2;
        let schema = ArrowSchema {
            format: c"b".as_ptr(),
            name: c"".as_ptr(),
            flags: NULLABLE,
            release: Some(release_schema),
            ..ArrowSchema::RELEASED
        };
        // If the consumer did not take the structure, `release` is still set and the capsule calls
        // it.
        let schema = PyCapsule::new_with_value_and_destructor(
            py,
            Capsule(OwnedSchema(schema)),
            c"arrow_schema",
            |schema, _| drop(schema),
        )?;
        let array = PyCapsule::new_with_value_and_destructor(
            py,
            Capsule(array),
            c"arrow_array",
            |array, _| drop(array),
        )?;
        Ok((schema, array))
    }
}

const _: () = assert!(mem::size_of::<Capsule<OwnedArray>>() == mem::size_of::<ArrowArray>());
