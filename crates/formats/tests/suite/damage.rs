//! The campaign of damage of the core's tests, over the filters of other systems.
//!
//! The tables are printed: `cargo test -p blocked-bloom-formats --test suite damage:: --
//! --nocapture --test-threads 1`.

#[path = "../../../../tests/suite/damage/campaign.rs"]
#[allow(dead_code, reason = "the core's tests use the rest")]
mod campaign;
#[path = "../../../../tests/suite/damage/naive.rs"]
#[allow(dead_code, reason = "the core's tests use the rest")]
mod naive;

mod classical;
mod foreign;
mod rocksdb;
