//! The Python package `blocked_bloom`: filters for whole columns of keys, and key by key.

mod arrow;
mod batch;
mod buffer;
mod bytes;
mod c_data;
mod classes;
mod columns;
mod error;
mod filter;
mod hash;
mod memory;
mod objects;
mod opened;
mod shared;
mod single;
mod store;
mod stored;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::error::FormatError;
    #[pymodule_export]
    use super::filter::{Filter, key_hash};
    #[pymodule_export]
    use super::opened::{StoredFilter, open, parquet_row_groups};

    use super::single::classes;
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let classes = classes(module.py())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("BloomFilter", &classes.known)?;
        module.add("ScalableBloomFilter", &classes.growing)
    }
}
