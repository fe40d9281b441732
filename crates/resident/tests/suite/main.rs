//! The tests of which filters are in memory: one binary, one module per area.

#[path = "../../../../tests/suite/common.rs"]
mod common;

#[cfg(feature = "std")]
mod changes;
mod planner;
#[cfg(feature = "std")]
mod set;
