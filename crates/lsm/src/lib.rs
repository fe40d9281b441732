//! An LSM engine's decisions about its [`blocked_bloom`] filters: sizes for each level under a
//! memory budget, a kind of filter for each table, partitions, and metrics.
//!
//! - [`Plan`]: sizes for the filters of all [`Level`]s, chosen so that lookups waste the fewest
//!   reads.
//! - [`FilterPolicy`]: kinds and sizes by level, options and partitions in one value, consulted at
//!   every flush.
//! - [`PartitionedFilterBuilder`], [`PartitionIndex`]: the filter of a large table in partitions
//!   that the engine loads one by one, and the index that locates the partition of a key.
//! - [`TableFilter`]: the opened filter of a table, of any kind. [`FilterIdentity`] tells it from
//!   the filters of other tables.
//! - [`FilterMetrics`]: counters under the names of RocksDB's tickers, and a warning if absent keys
//!   pass too often.
//!
//! ```
//! use blocked_bloom::{Bitmask, FilterOptions, Sizing};
//! use blocked_bloom_lsm::{FilterChoice, FilterMetrics, FilterPolicy, Level, Plan};
//!
//! // Start: 11 million keys on three levels under 12 MB.
//! let plan = Plan::for_budget(&[100_000, 1_000_000, 10_000_000].map(Level::new), 12_000_000)?;
//! println!("{plan}");
//! let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
//! let policy = FilterPolicy::new(options).with_levels(plan.sizings());
//!
//! // Flush: a table of the top level.
//! let FilterChoice::Whole(options) = policy.choose_filter(0, 10_000) else {
//!     panic!("this plan has filters on all levels")
//! };
//! let mut builder = options.builder();
//! builder.extend((0..10_000_u32).map(u32::to_le_bytes))?;
//! let filter = builder.finish_verified()?;
//!
//! // MultiGet: count the saved reads, and compare them with the prediction from time to time.
//! let (metrics, mut hits) = (FilterMetrics::new(), Bitmask::new());
//! let keys: Vec<[u8; 4]> = (9_900..14_000_u32).map(u32::to_le_bytes).collect();
//! filter.contains_batch(&keys, &mut hits);
//! metrics.record(&hits);
//! metrics.record_true_positives(100); // keys that the reads found
//! let predicted = plan.levels()[0].false_positive_rate();
//! assert_eq!(metrics.snapshot().check(predicted), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `std` | yes | `std` in the core; without it both crates are `no_std` with `alloc` |
//! | `rocksdb` | no | RocksDB's filter blocks as filters of tables |
//! | `serde` | no | `Serialize` and `Deserialize` for levels, plans, policies and identities |
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod error;
mod identity;
mod lookup;
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
mod metrics;
mod partition;
mod plan;
mod policy;
mod table;

pub use error::PlanError;
pub use identity::FilterIdentity;
pub use lookup::{contains_in_each, tables_to_read};
#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
pub use metrics::{FilterMetrics, MetricsSnapshot, RateWarning};
pub use partition::{
    INDEX_MAGIC, PartitionBuildError, PartitionError, PartitionIndex, PartitionLocation,
    PartitionedFilterBuilder,
};
pub use plan::{FilterKind, KindPlan, Level, Plan, PlannedKind, PlannedLevel, SkipReason};
pub use policy::{FilterChoice, FilterPolicy};
pub use table::{TableFilter, TableFilterError};

/// Tests the code in the README.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
