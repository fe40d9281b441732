//! The tests of the formats: one binary, one module per format, and one of damage for all of them.
//! `cargo test -p blocked-bloom-formats --test suite parquet::` runs one of them.

#[path = "../../../../tests/suite/common.rs"]
mod common;
#[path = "common/fixtures.rs"]
mod fixtures;
#[path = "../../../../tests/suite/common/found.rs"]
mod found;
#[path = "../../../split-block/tests/suite/common/split_blocks.rs"]
mod split_blocks;
mod sst;
#[path = "../../../split-block/tests/suite/common/written.rs"]
mod written;

mod batches;
mod cassandra;
mod classical;
mod damage;
mod parquet;
mod ranges;
mod rocksdb;
