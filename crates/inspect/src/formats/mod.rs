//! Looking up in and describing filters of every format: one module for each system.

pub(crate) mod cassandra;
mod classical;
pub(crate) mod growing;
pub(crate) mod guava;
pub(crate) mod native;
pub(crate) mod parquet;
pub(crate) mod partition_index;
pub(crate) mod planes;
pub(crate) mod redis;
pub(crate) mod removable;
pub(crate) mod ribbon;
pub(crate) mod rocksdb;
pub(crate) mod spark;
pub(crate) mod typed;
