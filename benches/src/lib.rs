//! The measuring library of the repository: workloads, a clock with interleaved rounds, the
//! memory-bound baseline, loops of other systems, tables and pictures. `cargo bench`, the
//! comparison in `compare/` and `blocked-bloom bench` use it.
//!
//! Its interface serves these programs only and can change in any version.

pub mod baseline;
pub mod chart;
pub mod clock;
pub mod groups;
pub mod ops;
#[cfg(feature = "serde")]
pub mod results;
#[cfg(target_arch = "x86_64")]
pub mod rocksdb;
pub mod rows;
pub mod split_block;
pub mod table;
pub mod timing;
pub mod workload;
