//! The tests of what engines decide about filters: one binary, one module per area.

#[path = "../../../../tests/suite/common.rs"]
mod common;
#[path = "../../../../tests/suite/common/found.rs"]
mod found;
mod partitions;

mod damage;
mod errors;
mod kinds;
mod lookup;
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
mod metrics;
mod partition;
mod partition_format;
mod plan;
mod policy;
mod table;
