//! The tests of the package: one binary.

#[path = "../../../../tests/suite/common/mod.rs"]
mod common;
#[path = "../../../formats/tests/suite/common/fixtures.rs"]
mod fixtures;

mod damage;
mod format;
mod kernels;
mod naive;
mod rates;
mod rocksdb;
mod sharded;
