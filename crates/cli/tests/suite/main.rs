//! The tests of the command-line tool: one binary, one module per area.
//! `cargo test -p blocked-bloom-cli plan::` runs one of them.

#[path = "../../../../tests/suite/common.rs"]
mod common;
#[path = "../../../formats/tests/suite/common/fixtures.rs"]
mod fixtures;
mod tool;

mod basics;
mod bench;
mod classical;
mod crash;
mod dedup;
mod detect;
mod encodings;
mod file_index;
mod files;
mod first_use;
mod formats;
mod input;
mod limits;
mod mapped;
mod merge;
mod parquet;
mod partitions;
mod plan;
mod planes;
mod prefix;
mod removable;
mod seeds;
mod sync;
mod terminal;
mod types;
