//! Chooses which filters of an LSM engine to keep in memory under a budget: those that save the
//! most reads per byte.
//!
//! - [`ResidentPlanner`] decides, from counts of absent lookups. It stores no filters and works
//!   without `std`.
//! - `ResidentSet` (feature `std`) keeps the filters that `blocked_bloom_lsm::TableFilter` opens.
//!   Readers look up the slots of tables without a lock, and the engine reads the filters that the
//!   set requests.
//!
//! ```
//! use std::time::Duration;
//! use blocked_bloom_resident::{ResidentOptions, ResidentPlanner, ResidentTable};
//!
//! // Memory for one of two filters: the one that is looked up more often.
//! let mut planner = ResidentPlanner::new(ResidentOptions::new(1_000_000));
//! let [cold, hot] = [1, 2].map(|table| planner.add(ResidentTable::new(table, 1_000_000)));
//! planner.count(cold, 10);
//! planner.count(hot, 10_000);
//! let wanted = planner.tick(Duration::from_secs(1));
//! assert!(wanted.iter().map(|&(table, _)| table).eq([hot]));
//! ```
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `std` | yes | the set and its slots; without it the crate is `no_std` with `alloc` |
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
mod slot;
#[cfg(feature = "std")]
mod snapshot;
mod table;

#[cfg(feature = "std")]
#[cfg_attr(docsrs, doc(cfg(feature = "std")))]
pub use cell::FilterPin;
pub use options::ResidentOptions;
pub use planner::ResidentPlanner;
#[cfg(feature = "std")]
#[cfg_attr(docsrs, doc(cfg(feature = "std")))]
pub use set::{LoadRequest, ResidentSet};
#[cfg(feature = "std")]
#[cfg_attr(docsrs, doc(cfg(feature = "std")))]
pub use slot::{Answer, FilterSlot};
#[cfg(feature = "std")]
#[cfg_attr(docsrs, doc(cfg(feature = "std")))]
pub use snapshot::ResidentSnapshot;
pub use table::{MergeInput, ResidentSize, ResidentTable};

/// Tests the code in the README.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
