//! What the repository's benchmarks share: workloads, the clock and its interleaved rounds, the
//! memory-bound baseline, loops of other systems, tables and pictures. `cargo bench`, the
//! comparison in `compare/` and `blocked-bloom bench` measure with it.
//!
//! For these programs alone: nothing here is stable between versions.

pub mod baseline;
pub mod chart;
pub mod clock;
#[cfg(feature = "serde")]
pub mod results;
#[cfg(target_arch = "x86_64")]
pub mod rocksdb;
pub mod rows;
pub mod split_block;
pub mod table;
pub mod timing;
pub mod workload;
