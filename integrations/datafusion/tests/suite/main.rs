//! Keys and functions, joins in one process, what the rule refuses, a cluster of processes, and
//! workers of datafusion-distributed.

mod awkward;
#[cfg(all(feature = "cluster", feature = "distributed", feature = "file-index"))]
mod cluster;
mod common;
#[cfg(feature = "distributed")]
mod distributed;
#[cfg(feature = "file-index")]
mod files;
mod functions;
mod joins;
mod keys;
mod limits;
mod memory;
mod rule;
mod stars;
mod tpcds;
mod tpch;
#[cfg(feature = "distributed")]
mod workers;
