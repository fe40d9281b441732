//! Which filters are in memory, under a budget: `planner` decides, `cell` is what readers look up without a lock, `set` joins them.

#[cfg(feature = "std")]
mod cell;
#[cfg(feature = "std")]
mod metrics;
mod options;
mod planner;
#[cfg(feature = "std")]
mod set;

#[cfg(feature = "std")]
pub use cell::FilterPin;
#[cfg(feature = "std")]
pub use metrics::ResidentSnapshot;
pub use options::ResidentOptions;
pub use planner::{MergeInput, ResidentPlanner, ResidentSize, ResidentTable};
#[cfg(feature = "std")]
pub use set::{Answer, FilterSlot, ResidentSet, WantedLoad};
