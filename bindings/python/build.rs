//! Tells the code whether the interpreter that it is built for has a lock of its own:
//! `Py_GIL_DISABLED`.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
