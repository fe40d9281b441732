//! The tests of the package: one binary.

#[path = "../../../../tests/suite/common.rs"]
mod common;
#[path = "../../../formats/tests/suite/common/fixtures.rs"]
mod fixtures;
#[path = "../../../../tests/suite/common/found.rs"]
mod found;

mod damage;
mod format;
mod kernels;
mod lookups;
mod naive;
mod rates;
mod rocksdb;
mod sharded;
