//! The package's errors.

use std::fmt::Display;
use std::io;
use std::path::Path;

use blocked_bloom::{AllocError, BuildError, MergeError};
use blocked_bloom_scalable::{ScalableError, ScalableFormatError};
use pyo3::PyErr;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyTypeError, PyValueError};

use crate::columns::BadKey;

pyo3::create_exception!(
    blocked_bloom,
    FormatError,
    PyValueError,
    "The bytes are not a filter, are damaged, or hold a filter of another kind."
);

pub(crate) fn memory_error(error: impl Display) -> PyErr {
    PyMemoryError::new_err(error.to_string())
}

/// The reason of a failure, before it becomes a Python exception.
#[derive(Debug)]
pub(crate) enum Error {
    Value(String),
    /// The bytes are not a valid filter.
    Format(String),
    Memory(String),
    ReadOnly,
    Io(io::Error),
    Key(BadKey),
}

macro_rules! errors {
    ($($error:ty => $variant:ident),* $(,)?) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Error::$variant(error.to_string())
            }
        }
    )*};
}

errors!(
    blocked_bloom::FormatError => Format,
    ScalableFormatError => Format,
    AllocError => Memory,
    blocked_bloom::KeyError => Value,
    blocked_bloom::ParamsError => Value,
);

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io(error)
    }
}

impl From<BadKey> for Error {
    fn from(error: BadKey) -> Self {
        Error::Key(error)
    }
}

impl From<BuildError> for Error {
    fn from(error: BuildError) -> Self {
        if let BuildError::Alloc(error) = error {
            error.into()
        } else {
            Error::Value(error.to_string())
        }
    }
}

impl From<MergeError> for Error {
    fn from(error: MergeError) -> Self {
        Error::Value(error.to_string())
    }
}

impl From<ScalableError> for Error {
    fn from(error: ScalableError) -> Self {
        if let ScalableError::Alloc(error) = error {
            error.into()
        } else {
            Error::Value(error.to_string())
        }
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        match error {
            Error::Value(text) => PyValueError::new_err(text),
            Error::Format(text) => FormatError::new_err(text),
            Error::Memory(text) => PyMemoryError::new_err(text),
            Error::ReadOnly => {
                PyTypeError::new_err("a mapped filter is read only: copy() can be changed")
            }
            Error::Io(error) => error.into(),
            Error::Key(error) => error.into(),
        }
    }
}

impl Error {
    /// Returns the error of a file operation as Python's own, with number, text and path.
    pub(crate) fn for_file(self, path: &Path) -> PyErr {
        let shown = path.display();
        match self {
            Error::Io(error) => match error.raw_os_error() {
                Some(number) => {
                    let text = error.to_string();
                    let text = text.split(" (os error").next().unwrap_or_default().to_owned();
                    PyOSError::new_err((number, text, path.as_os_str().to_owned()))
                }
                None => PyOSError::new_err(format!("{shown}: {error}")),
            },
            Error::Format(text) => {
                let other = if text.contains("another kind of file") {
                    " (files of other systems: blocked_bloom.open)"
                } else {
                    ""
                };
                Error::Format(format!("{shown}: {text}{other}")).into()
            }
            error => error.into(),
        }
    }
}
