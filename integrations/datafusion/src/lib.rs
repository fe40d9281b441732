//! [`blocked-bloom`](blocked_bloom) filters in [DataFusion](datafusion) and Ballista.
//!
//! - As functions of SQL and DataFrames: [`bloom_filter_agg`](bloom_filter_agg()) and
//!   [`bloom_filter_contains`](bloom_filter_contains()).
//! - As join pre-filters: [`BloomJoinRule`] drops rows without a partner before they are shuffled,
//!   which in a cluster means before they cross the network.
//! - As one index over the Parquet files of a table: `with_file_index` (feature `file-index`)
//!   leaves out files and row groups that do not have the values of a query.
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
//! For Ballista's scheduler, executors and clients see the module [`ballista`]; for
//! datafusion-distributed the module `distributed` (feature `distributed`).

mod aggregate;
#[cfg(feature = "ballista")]
pub mod ballista;
mod broadcast;
mod build;
mod build_side;
#[cfg(any(feature = "ballista", feature = "distributed"))]
mod codec;
mod columns;
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
mod predicates;
mod probe;
mod probing;
mod rule;
mod scan;
mod session;
mod sides;
mod whole;

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

/// The README's code, which needs these features.
#[cfg(all(doctest, feature = "cluster", feature = "file-index"))]
#[doc = include_str!("../README.md")]
mod readme {}

/// The report of a defect of the engine. Its program is a test that fails once the engine is
/// mended.
#[cfg(doctest)]
#[doc = include_str!("../upstream/dynamic-filter-below-limit.md")]
mod dynamic_filter_below_limit {}

#[cfg(doctest)]
#[doc = include_str!("../upstream/order-lost-below-limit.md")]
mod order_lost_below_limit {}

#[cfg(all(doctest, feature = "ballista"))]
#[doc = include_str!("../upstream/order-lost-in-adaptive-joins.md")]
mod order_lost_in_adaptive_joins {}

#[cfg(all(doctest, feature = "ballista"))]
#[doc = include_str!("../upstream/branch-repeated-in-adaptive-unions.md")]
mod branch_repeated_in_adaptive_unions {}
