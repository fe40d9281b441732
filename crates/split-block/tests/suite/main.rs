//! The tests of the package: one binary.

mod arrow;
#[path = "../../../../tests/suite/common.rs"]
mod common;
mod counts;
#[path = "../../../formats/tests/suite/common/fixtures.rs"]
mod fixtures;
mod hashes;
mod header;
mod kernels;
mod rates;
#[path = "common/split_blocks.rs"]
mod split_blocks;
mod threads;
#[path = "common/written.rs"]
mod written;
