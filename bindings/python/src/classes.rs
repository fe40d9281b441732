//! The public classes, which `single` creates.

use std::ffi::c_int;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// The interpreter's slot for `in`: returns 1, 0, or -1 with an exception.
pub(crate) type Contains = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> c_int;

#[derive(Debug)]
pub(crate) struct Classes {
    pub(crate) known: Py<PyType>,
    pub(crate) growing: Py<PyType>,
    /// PyO3's functions, called for the cases that `single` does not handle.
    pub(crate) contains: Contains,
    pub(crate) add: Py<PyAny>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

impl Classes {
    pub(crate) fn get_or_make(
        py: Python<'_>,
        make: impl FnOnce() -> PyResult<Classes>,
    ) -> PyResult<&Classes> {
        CLASSES.get_or_try_init(py, make)
    }

    pub(crate) fn get(py: Python<'_>) -> &Classes {
        CLASSES.get(py).expect("the package was imported, which makes the classes")
    }
}
