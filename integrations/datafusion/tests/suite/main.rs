//! Tests of keys and functions, of joins in one process, of the rule, of a cluster of processes,
//! and of datafusion-distributed's workers.

mod awkward;
#[cfg(all(feature = "cluster", feature = "distributed", feature = "file-index"))]
mod cluster;
mod common;
#[cfg(feature = "distributed")]
mod distributed;
mod dropping;
#[cfg(feature = "file-index")]
mod files;
mod functions;
mod joins;
mod keys;
mod limits;
mod memory;
mod ranges;
mod rule;
mod stars;
mod tpcds;
mod tpch;
#[cfg(feature = "distributed")]
mod workers;
