//! A campaign of damage: every format, damaged in every way that is cheap to enumerate and in many that are not, and what became
//! of the answers.
//!
//! Each damaged copy is opened and asked about keys that were added and keys that were not. It is *refused* (an error that says so),
//! *harmless* (no key that was added is absent) or *wrong* (one is). Where checksums cover a format, nothing may be wrong unless
//! the test mends them; where none do, or where they were mended, the answers must be those of a naive reading of the bytes as they
//! stand. The tables are printed: `cargo test --all-features --test damage -- --nocapture --test-threads 1`.

mod campaign;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/fixtures.rs"]
mod fixtures;
mod foreign;
mod naive;
#[allow(dead_code, reason = "a part is used here")]
#[path = "../interop_cassandra/naive.rs"]
mod naive_cassandra;
mod native;
mod rocksdb;
#[path = "../common/sst.rs"]
mod sst;
