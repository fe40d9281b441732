//! The tests of the package: one binary, one module per area.
//! `cargo test -p blocked-bloom-inspect answers::` runs one of them.

#[path = "../../../formats/tests/suite/common/fixtures.rs"]
mod fixtures;
mod stored;

mod answers;
mod damage;
mod external;
mod file_index;
mod numbers;
mod partitions;
mod pictures;
mod ranges;
mod recognition;
mod texts;
