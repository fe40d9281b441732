//! Keys and functions, joins in one process, what the rule refuses, and a cluster of processes.

mod awkward;
#[cfg(all(feature = "cluster", feature = "file-index"))]
mod cluster;
mod common;
#[cfg(feature = "file-index")]
mod files;
mod functions;
mod joins;
mod keys;
mod limits;
mod rule;
mod stars;
mod tpcds;
mod tpch;
