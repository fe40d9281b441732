//! The tests of the package: one binary, one module per area.
//! `cargo test -p blocked-bloom-inspect answers::` runs one of them.

#[path = "../../../formats/tests/suite/common/fixtures.rs"]
mod fixtures;
#[path = "../../../formats/tests/suite/sst.rs"]
mod sst;
mod stored;
#[path = "../../../split-block/tests/suite/common/written.rs"]
mod written;

mod answers;
mod damage;
mod external;
mod file_index;
mod made;
mod numbers;
mod partitions;
mod pictures;
mod ranges;
mod recognition;
mod texts;
