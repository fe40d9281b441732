//! [`blocked-bloom`](blocked_bloom) filters in [DataFusion](datafusion) and Ballista.
//!
//! - SQL and DataFrame functions: [`bloom_filter_agg`](bloom_filter_agg()) and
//!   [`bloom_filter_contains`](bloom_filter_contains()).
//! - Join pre-filters: [`BloomJoinRule`] drops rows without a partner before they are shuffled. In
//!   a cluster, this is before they cross the network.
//! - One index over many Parquet files: with `with_file_index` (feature `file-index`), queries skip
//!   files and row groups that cannot contain the values they look for.
//!
//! ```
//! use blocked_bloom_datafusion::with_bloom_filters;
//! use datafusion::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> datafusion::error::Result<()> {
//! let state = SessionContext::new().state();
//! let context = SessionContext::new_with_state(with_bloom_filters(state));
//! let sql = "SELECT bloom_filter_contains(bloom_filter_agg(v), 3) AS found
//!            FROM (VALUES (1), (3)) t(v)";
//! context.sql(sql).await?.show().await?;
//! # Ok(())
//! # }
//! ```
//!
//! The module [`ballista`] configures Ballista's scheduler, executors and clients. The module
//! `distributed` (feature `distributed`) does the same for datafusion-distributed.

mod aggregate;
#[cfg(feature = "ballista")]
pub mod ballista;
mod broadcast;
mod build;
mod build_side;
#[cfg(any(feature = "ballista", feature = "distributed"))]
mod codec;
mod columns;
mod completeness;
mod contains;
mod cost;
#[cfg(feature = "distributed")]
pub mod distributed;
mod engine;
#[cfg(feature = "file-index")]
mod file_index;
mod filter;
mod filter_plan;
mod gate;
mod keys;
mod limits;
mod operators;
mod options;
mod planner;
mod planning;
mod predicates;
mod probe;
mod probing;
mod ranges;
mod rule;
mod scan;
mod session;
mod sides;

pub use aggregate::{BLOOM_FILTER_AGG, bloom_filter_agg};
pub use contains::{BLOOM_FILTER_CONTAINS, bloom_filter_contains};
#[cfg(feature = "file-index")]
pub use file_index::{
    FileIndexReport, StoredFileIndex, build_file_index, file_index_column, update_file_index,
    with_file_index,
};
pub use filter::filters_opened;
pub use keys::{KeyType, hash_array};
pub use options::{BloomJoinOptions, Enabled};
pub use planner::BloomQueryPlanner;
pub use probe::BloomProbeExec;
pub use rule::{BloomJoinRule, RULE_NAME};
pub use session::with_bloom_filters;

/// Compiles the README's code, which needs these features.
#[cfg(all(doctest, feature = "cluster", feature = "file-index"))]
#[doc = include_str!("../README.md")]
mod readme {}

/// Runs the programs in the defect reports. A test fails as soon as the engine is fixed.
#[cfg(doctest)]
#[doc = include_str!("../upstream/dynamic-filter-below-limit.md")]
#[doc = include_str!("../upstream/order-lost-below-limit.md")]
#[doc = include_str!("../upstream/order-lost-below-offset.md")]
#[doc = include_str!("../upstream/rows-skipped-by-statistics.md")]
mod defects {}

#[cfg(all(doctest, feature = "ballista"))]
#[doc = include_str!("../upstream/order-lost-in-adaptive-joins.md")]
#[doc = include_str!("../upstream/branch-repeated-in-adaptive-unions.md")]
mod ballista_defects {}
