//! One key at a time: the public classes, whose `in` and `add` are functions of C.
//!
//! PyO3 counts for each call that the thread is attached, catches panics, and compares the type of
//! the filter with its class, which takes longer than hashing the key and looking it up. So the
//! public classes are made by `PyType_FromSpecWithBases` from those of PyO3 and add two functions
//! to them. These serve a `str` or an `int` of no subclass, in a filter that can be had without
//! waiting, and call those of PyO3 for everything else: other keys, errors, and filters that
//! another thread uses.

use std::ffi::{CStr, CString, c_int, c_uint};
use std::{mem, ptr};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use crate::classes::{Classes, Contains};
use crate::filter::{Filter, GrowingFilter, KnownFilter};
use crate::objects;

/// The public classes, which are made when the package is imported.
pub(crate) fn classes(py: Python<'_>) -> PyResult<&Classes> {
    Classes::get_or_make(py, || {
        let filter = py.get_type::<Filter>();
        // SAFETY: the type of a class of PyO3 has slots.
        let contains = unsafe { ffi::PyType_GetSlot(filter.as_type_ptr(), ffi::Py_sq_contains) };
        assert!(!contains.is_null(), "`Filter` has `__contains__`");
        Ok(Classes {
            known: class(&py.get_type::<KnownFilter>(), c"blocked_bloom.BloomFilter")?,
            growing: class(&py.get_type::<GrowingFilter>(), c"blocked_bloom.ScalableBloomFilter")?,
            // SAFETY: what this slot holds is such a function.
            contains: unsafe { mem::transmute::<*mut std::ffi::c_void, Contains>(contains) },
            add: filter.getattr("add")?.unbind(),
        })
    })
}

/// Derives the public class from one of PyO3. It lives as long as the process, as that does.
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
    // The interpreter keeps pointers to the methods and to their texts.
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
        // That of the base.
        basicsize: 0,
        itemsize: 0,
        flags: ffi::Py_TPFLAGS_DEFAULT as c_uint,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the slots are of the types that their numbers say, and end with 0; the type is
    // copied, but for what was leaked above.
    let class = unsafe { ffi::PyType_FromSpecWithBases(&mut spec, base.as_ptr()) };
    // SAFETY: a new reference, or null with an exception.
    let class = unsafe { Bound::from_owned_ptr_or_err(base.py(), class) }?;
    Ok(class.cast_into::<PyType>()?.unbind())
}

/// The hash of a key that is served here, and the filter.
///
/// # Safety
///
/// A filter and an object, both live as long as the result is used.
#[inline(always)]
unsafe fn served<'a>(
    py: Python<'a>,
    filter: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
) -> Option<(&'a Filter, u64)> {
    objects::prefetch(key.cast());
    // SAFETY: as the caller promises.
    let key = unsafe { Borrowed::from_ptr(py, key) };
    // SAFETY: as the caller promises.
    let filter = unsafe { Borrowed::from_ptr(py, filter) };
    // SAFETY: as the caller promises.
    let filter = unsafe { filter.cast_unchecked::<Filter>() }.get();
    Some((filter, objects::fast_hash(filter.hasher, key)?))
}

/// `key in filter`.
///
/// # Safety
///
/// As the interpreter calls the slot: attached, with a filter and a live object.
unsafe extern "C" fn contains(filter: *mut ffi::PyObject, key: *mut ffi::PyObject) -> c_int {
    // SAFETY: attached until this function returns.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the slot is of classes derived from `Filter`, and the caller keeps both objects.
    if let Some((this, hash)) = unsafe { served(py, filter, key) }
        && let Ok(found) = this.store.try_read(py, |store| store.contains_hash(hash))
    {
        return found.into();
    }
    let classes = Classes::get(py);
    // SAFETY: PyO3's function for the same slot, which is called as this one is.
    unsafe { (classes.contains)(filter, key) }
}

/// `filter.add(key)`: a new reference, or null with an exception.
///
/// # Safety
///
/// As the interpreter calls a method: attached, with a filter and a live object.
unsafe extern "C" fn add_key(
    filter: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: attached until this function returns.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the method is of classes derived from `Filter`, which the interpreter checks, and the
    // caller keeps both objects.
    if let Some((this, hash)) = unsafe { served(py, filter, key) }
        && let Ok(Some(new)) = this.store.try_write(py, |store| {
            // The key after which there may be a warning is left to PyO3's function.
            let limit = this.warns_at();
            let warns = limit != u64::MAX && store.keys() + 1 >= limit;
            if warns { None } else { store.insert_hash(hash).ok() }
        })
    {
        // SAFETY: the thread is attached.
        return unsafe { ffi::PyBool_FromLong(new.into()) };
    }
    let classes = Classes::get(py);
    let add = classes.add.as_ptr();
    // SAFETY: live objects, and null behind the last.
    unsafe { ffi::PyObject_CallFunctionObjArgs(add, filter, key, ptr::null_mut::<ffi::PyObject>()) }
}
