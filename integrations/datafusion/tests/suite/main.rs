//! Keys and functions, joins in one process, what the rule refuses, and a cluster of processes.

mod awkward;
#[cfg(feature = "cluster")]
mod cluster;
mod common;
mod functions;
mod joins;
mod keys;
mod limits;
mod rule;
mod stars;
mod tpch;
