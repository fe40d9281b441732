//! One key at a time: the public classes, whose `in` and `add` are C functions.
//!
//! For each call, PyO3 counts that the thread is attached, catches panics, and compares the
//! filter's type with its class, which takes longer than hashing and looking up the key. So
//! `PyType_FromSpecWithBases` derives the public classes from PyO3's and adds two functions. They
//! serve keys that are exactly `str` or `int` in a filter that can be used without waiting, and
//! call PyO3's functions for everything else: other keys, errors, and filters in use by another
//! thread.

use std::ffi::{CStr, CString, c_int, c_uint};
use std::{mem, ptr};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use crate::classes::{Classes, Contains};
use crate::filter::{Filter, GrowingFilter, KnownFilter};
use crate::objects;

/// Creates the public classes when the package is imported.
pub(crate) fn classes(py: Python<'_>) -> PyResult<&Classes> {
    Classes::get_or_make(py, || {
        let filter = py.get_type::<Filter>();
        // SAFETY: the type of a class of PyO3 has slots.
        let contains = unsafe { ffi::PyType_GetSlot(filter.as_type_ptr(), ffi::Py_sq_contains) };
        assert!(!contains.is_null(), "`Filter` has `__contains__`");
        Ok(Classes {
            known: class(&py.get_type::<KnownFilter>(), c"blocked_bloom.BloomFilter")?,
            growing: class(&py.get_type::<GrowingFilter>(), c"blocked_bloom.ScalableBloomFilter")?,
            // SAFETY: this slot holds a function of this type.
            contains: unsafe { mem::transmute::<*mut std::ffi::c_void, Contains>(contains) },
            add: filter.getattr("add")?.unbind(),
        })
    })
}

/// Derives a public class from one of PyO3's. Both live as long as the process.
fn class(base: &Bound<'_, PyType>, name: &'static CStr) -> PyResult<Py<PyType>> {
    let text = |of: &Bound<'_, PyAny>, name| -> PyResult<String> {
        of.getattr(name)?.cast::<PyString>()?.extract()
    };
    let short = base.getattr("__name__")?;
    let doc =
        format!("{}{}\n--\n\n{}", short, text(base, "__text_signature__")?, text(base, "__doc__")?);
    let add = base.getattr("add")?;
    let add_doc =
        format!("add{}\n--\n\n{}", text(&add, "__text_signature__")?, text(&add, "__doc__")?);
    // The interpreter keeps pointers to the methods and their texts.
    let methods = Box::leak(Box::new([
        ffi::PyMethodDef {
            ml_name: c"add".as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunction: add_key },
            ml_flags: ffi::METH_O,
            ml_doc: CString::new(add_doc)?.into_raw(),
        },
        ffi::PyMethodDef::zeroed(),
    ]));
    let doc = CString::new(doc)?;
    let slot = |slot, pfunc| ffi::PyType_Slot { slot, pfunc };
    let mut slots = [
        slot(ffi::Py_tp_doc, doc.as_ptr().cast_mut().cast()),
        slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()),
        slot(ffi::Py_sq_contains, contains as Contains as *mut _),
        slot(0, ptr::null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: name.as_ptr(),
        // Inherited from the base.
        basicsize: 0,
        itemsize: 0,
        flags: ffi::Py_TPFLAGS_DEFAULT as c_uint,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: each slot has the type that its number requires, and the last is 0. The interpreter
    // copies everything except the methods leaked above.
    let class = unsafe { ffi::PyType_FromSpecWithBases(&mut spec, base.as_ptr()) };
    // SAFETY: a new reference, or null with an exception.
    let class = unsafe { Bound::from_owned_ptr_or_err(base.py(), class) }?;
    Ok(class.cast_into::<PyType>()?.unbind())
}

/// Returns the filter and the hash of the key if this module can serve the call.
///
/// # Safety
///
/// `filter` is a filter and `key` an object; both live as long as the result is used.
#[inline(always)]
unsafe fn served<'a>(
    py: Python<'a>,
    filter: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
) -> Option<(&'a Filter, u64)> {
    objects::prefetch(key.cast());
    // SAFETY: the caller promises a live object.
    let key = unsafe { Borrowed::from_ptr(py, key) };
    // SAFETY: the caller promises a live object.
    let filter = unsafe { Borrowed::from_ptr(py, filter) };
    // SAFETY: the caller promises that the object is a `Filter`.
    let filter = unsafe { filter.cast_unchecked::<Filter>() }.get();
    Some((filter, objects::fast_hash(filter.hasher, key)?))
}

/// `key in filter`.
///
/// # Safety
///
/// Must be called as the interpreter calls the slot: attached, with a filter and a live object.
unsafe extern "C" fn contains(filter: *mut ffi::PyObject, key: *mut ffi::PyObject) -> c_int {
    // SAFETY: attached until this function returns.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: only classes derived from `Filter` have this slot, and the caller keeps both objects.
    if let Some((this, hash)) = unsafe { served(py, filter, key) }
        && let Ok(found) = this.store.try_read(py, |store| store.contains_hash(hash))
    {
        return found.into();
    }
    let classes = Classes::get(py);
    // SAFETY: PyO3's function for the same slot, called with the same arguments.
    unsafe { (classes.contains)(filter, key) }
}

/// `filter.add(key)`: a new reference, or null with an exception.
///
/// # Safety
///
/// Must be called as the interpreter calls a method: attached, with a filter and a live object.
unsafe extern "C" fn add_key(
    filter: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: attached until this function returns.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: only classes derived from `Filter` have this method, which the interpreter checks,
    // and the caller keeps both objects.
    if let Some((this, hash)) = unsafe { served(py, filter, key) }
        && let Ok(Some(new)) = this.store.try_write(py, |store| {
            // PyO3's function adds the key after which a warning may be due.
            let limit = this.warns_at();
            let warns = limit != u64::MAX && store.keys() + 1 >= limit;
            if warns { None } else { store.insert_hash(hash).ok() }
        })
    {
        // SAFETY: the interpreter calls methods on an attached thread.
        return unsafe { ffi::PyBool_FromLong(new.into()) };
    }
    let classes = Classes::get(py);
    let add = classes.add.as_ptr();
    // SAFETY: live objects, and a null pointer after the last.
    unsafe { ffi::PyObject_CallFunctionObjArgs(add, filter, key, ptr::null_mut::<ffi::PyObject>()) }
}
