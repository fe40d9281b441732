//! The tests of the package: one binary, a module for each area. `naive` is the scalar definition
//! that all of them compare with.

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
