//! The Python package `blocked_bloom`: Bloom filters for columns of keys and single keys.

mod arrow;
mod batch;
mod buffer;
mod bytes;
mod c_data;
mod classes;
mod columns;
mod error;
mod file_index;
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
use pyo3::types::PyDict;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::error::FormatError;
    #[pymodule_export]
    use super::file_index::{FileIndexWriter, OpenedFileIndex};
    #[pymodule_export]
    use super::filter::{Filter, key_hash};
    #[pymodule_export]
    use super::opened::{StoredFilter, open, parquet_row_groups};

    use super::single::classes;
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let (py, classes) = (module.py(), classes(module.py())?);
        // Missing on systems without fork.
        if let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? {
            let hooks = PyDict::new(py);
            hooks.set_item("before", wrap_pyfunction!(shared::before_fork, py)?)?;
            hooks
                .set_item("after_in_parent", wrap_pyfunction!(shared::after_fork_in_parent, py)?)?;
            hooks.set_item("after_in_child", wrap_pyfunction!(shared::after_fork_in_child, py)?)?;
            register.call((), Some(&hooks))?;
        }
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("BloomFilter", &classes.known)?;
        module.add("ScalableBloomFilter", &classes.growing)
    }
}
