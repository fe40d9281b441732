//! Keys and functions, joins in one process, what the rule refuses, and a cluster of processes.

mod awkward;
mod cluster;
mod common;
mod functions;
mod joins;
mod keys;
mod rule;
mod tpch;
