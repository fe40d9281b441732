//! The tests of the package: one binary.

#[path = "../../../../tests/suite/common.rs"]
mod common;

mod damage;
mod format;
mod lookups;
mod naive;
mod rates;
mod sets;
