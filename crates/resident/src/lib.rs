//! Which filters of an LSM engine are in memory, under a budget: those that save most reads per
//! byte.
//!
//! - [`ResidentPlanner`] decides, by the lookups of absent keys that it is told of. It holds no
//!   filters, and needs no `std`.
//! - `ResidentSet` (feature `std`) holds the filters, which `blocked_bloom_lsm::TableFilter` opens:
//!   readers look up the slots of tables without a lock, the engine reads what is worth a load.
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
//! | feature | default | what it adds |
//! |---|---|---|
//! | `std` | yes | the set, with its slots; without it the crate is `no_std` with `alloc` |
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

/// The code in the README compiles and runs.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
