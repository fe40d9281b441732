//! The Python package `blocked_bloom`: filters for whole columns of keys, and key by key.

mod arrow;
mod batch;
mod buffer;
mod columns;
mod filter;
mod hash;
mod memory;
mod objects;
mod opened;
mod shared;
mod single;
mod store;
mod stored;

use std::fmt::Display;

use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    blocked_bloom,
    FormatError,
    PyValueError,
    "Bytes that are no filter, or damaged, or of another kind."
);

fn memory_error(error: impl Display) -> PyErr {
    PyMemoryError::new_err(error.to_string())
}

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::FormatError;
    #[pymodule_export]
    use super::filter::{Filter, key_hash};
    #[pymodule_export]
    use super::opened::{StoredFilter, open, parquet_row_groups};

    use super::single::Classes;
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let classes = Classes::get(module.py())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("BloomFilter", &classes.known)?;
        module.add("ScalableBloomFilter", &classes.growing)
    }
}
