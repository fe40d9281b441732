//! The tests of the removable filter: one binary. `cargo test -p blocked-bloom-removable --test
//! suite kernels::` runs one module.

#[path = "../../../../tests/suite/common.rs"]
mod common;
#[path = "../../../../tests/suite/common/found.rs"]
mod found;
#[cfg(target_os = "linux")]
#[path = "../../../../tests/suite/common/huge_pages.rs"]
mod huge_pages;
mod naive;

mod damage;
mod filter;
mod format;
mod golden;
mod kernels;
mod load;
mod lookups;
mod owners;
mod shared;
