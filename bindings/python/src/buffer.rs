//! Imports NumPy arrays and other objects with Python's buffer protocol.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::columns::{Column, Items, Layout, Owner, Width};

/// Returns the keys of an object with a buffer, or `None` if it has no buffer or a buffer of
/// objects.
pub(crate) fn column(object: &Bound<'_, PyAny>) -> PyResult<Option<Column>> {
    refuse(object)?;
    let Ok(buffer) = PyUntypedBuffer::get(object) else { return Ok(None) };
    let format = buffer.format().to_str().unwrap_or("?");
    if format == "O" {
        return Ok(None);
    }
    if buffer.dimensions() != 1 || buffer.suboffsets().is_some() {
        let dimensions = buffer.dimensions();
        return Err(PyValueError::new_err(format!(
            "keys in {dimensions} dimensions: give one, or a list of columns whose rows are the \
             keys"
        )));
    }
    let swapped = match format.as_bytes().first() {
        Some(b'>' | b'!') => cfg!(target_endian = "little"),
        Some(b'<') => cfg!(target_endian = "big"),
        _ => false,
    };
    let (size, len) = (buffer.item_size(), buffer.item_count());
    let items = || Items {
        data: buffer.buf_ptr().cast_const().cast(),
        size,
        stride: buffer.strides()[0],
        swapped,
    };
    let kind = format
        .trim_start_matches(['@', '=', '<', '>', '!'])
        .trim_start_matches(|c: char| c.is_ascii_digit());
    let integers =
        |signed| Width::from_layout(size, signed).map(|width| Layout::Integers(items(), width));
    let layout = match kind {
        "s" => Some(Layout::Padded(Items { swapped: false, ..items() })),
        "w" if size % 4 == 0 => Some(Layout::Utf32(items())),
        "b" | "h" | "i" | "l" | "q" | "n" => integers(true),
        "B" | "H" | "I" | "L" | "Q" | "N" => integers(false),
        "?" => Some(Layout::Integers(items(), Width::Bool)),
        "e" | "f" | "d" | "g" => {
            return Err(PyTypeError::new_err(
                "keys are floats: equal numbers may differ in their last bits; cast them to an \
                 integer type or to strings, or give their bits, (array + 0.0).view('int64'), \
                 where both zeros are one; of integers with gaps that pandas made floats of give \
                 series.astype('Int64')",
            ));
        }
        _ => None,
    };
    let Some(layout) = layout else {
        return Err(PyTypeError::new_err(format!(
            "keys are str, bytes or integers, not items of {size} bytes of the format {format:?}: \
             cast them"
        )));
    };
    Ok(Some(Column {
        layout,
        offset: 0,
        len,
        validity: None,
        _owner: Owner::Buffer { _buffer: buffer },
    }))
}

/// Refuses NumPy arrays without a buffer, or whose buffer does not describe them fully.
fn refuse(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = object.py();
    let Some(dtype) = object.getattr_opt(pyo3::intern!(py, "dtype"))? else { return Ok(()) };
    let dimensions = object.getattr_opt(pyo3::intern!(py, "ndim"))?;
    if dimensions.is_some_and(|count| count.extract::<usize>().is_ok_and(|n| n == 0)) {
        return Err(PyTypeError::new_err(
            "keys are an array of 0 dimensions: give array.reshape(1), or use add and in for one \
             key",
        ));
    }
    if object.get_type().name()?.to_cow()? == "MaskedArray" {
        return Err(PyTypeError::new_err(
            "keys are a masked array, whose mask would be lost: give array.compressed(), or an \
             Arrow array with NULL",
        ));
    }
    match dtype.getattr_opt(pyo3::intern!(py, "kind"))?.map(|kind| kind.extract::<String>()) {
        Some(Ok(kind)) if kind == "M" || kind == "m" => Err(PyTypeError::new_err(
            "keys are dates or times: cast all to one unit, and then to integers that keep NaT as \
             NULL, pyarrow.array(array.astype('M8[us]')).cast('int64') ('m8[us]' and \
             pyarrow.duration for durations)",
        )),
        _ => Ok(()),
    }
}
