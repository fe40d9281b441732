//! Which filters of an LSM engine are in memory, under a budget: those that save most reads per byte.
//!
//! `planner` decides, `cell` is what readers look up without a lock, `set` joins them.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "std")]
mod cell;
mod options;
mod planner;
#[cfg(feature = "std")]
mod set;
#[cfg(feature = "std")]
mod snapshot;

#[cfg(feature = "std")]
#[cfg_attr(docsrs, doc(cfg(feature = "std")))]
pub use cell::FilterPin;
pub use options::ResidentOptions;
pub use planner::{MergeInput, ResidentPlanner, ResidentSize, ResidentTable};
#[cfg(feature = "std")]
#[cfg_attr(docsrs, doc(cfg(feature = "std")))]
pub use set::{Answer, FilterSlot, ResidentSet, WantedLoad};
#[cfg(feature = "std")]
#[cfg_attr(docsrs, doc(cfg(feature = "std")))]
pub use snapshot::ResidentSnapshot;

/// The code in the README compiles and runs.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
