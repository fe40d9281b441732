//! The tests of the package: one binary with a module per area. `naive` is the scalar definition
//! with which all of them compare.

mod build;
mod bytes;
mod damage;
mod delete;
mod filters;
mod golden;
#[cfg(target_os = "linux")]
#[path = "../../../../tests/suite/common/huge_pages.rs"]
mod huge_pages;
mod naive;
mod query;
mod ranged;
mod rates;
mod sizing;
