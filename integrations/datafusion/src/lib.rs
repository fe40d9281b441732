//! [`blocked-bloom`](blocked_bloom) filters in [DataFusion](datafusion) and Ballista.
//!
//! - As functions of SQL and DataFrames: [`bloom_filter_agg`](bloom_filter_agg()) and
//!   [`bloom_filter_contains`](bloom_filter_contains()).
//! - As join pre-filters: [`BloomJoinRule`] drops rows without a partner before they are shuffled,
//!   which in a cluster means before they cross the network.
//!
//! ```
//! use blocked_bloom_datafusion::with_bloom_filters;
//! use datafusion::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> datafusion::error::Result<()> {
//! let state = SessionContext::new().state();
//! let context = SessionContext::new_with_state(with_bloom_filters(state));
//! let sql = "SELECT bloom_filter_contains(bloom_filter_agg(v), 3) AS found FROM (VALUES (1), (3)) t(v)";
//! context.sql(sql).await?.show().await?;
//! # Ok(())
//! # }
//! ```
//!
//! For Ballista's scheduler, executors and clients see the module [`ballista`].

mod aggregate;
#[cfg(feature = "ballista")]
pub mod ballista;
mod build_side;
mod columns;
mod contains;
mod cost;
mod filter;
mod keys;
mod options;
mod planner;
mod probe;
mod rule;
mod scan;

use std::sync::Arc;

use datafusion::execution::{SessionState, SessionStateBuilder};

pub use aggregate::{BLOOM_FILTER_AGG, bloom_filter_agg};
pub use contains::{BLOOM_FILTER_CONTAINS, bloom_filter_contains};
pub use filter::filters_opened;
pub use keys::{KeyType, hash_array};
pub use options::{BloomJoinOptions, Enabled};
pub use planner::BloomQueryPlanner;
pub use probe::BloomProbeExec;
pub use rule::{BloomJoinRule, RULE_NAME};

/// Adds the functions and the rule to a session of DataFusion, and the settings of the rule to its
/// configuration, unless it has them. Its tables stay; statements that it prepared are dropped.
///
/// Sessions of Ballista's scheduler are made by [`ballista::session_state`] instead: its adaptive
/// planner replaces the rules.
pub fn with_bloom_filters(state: SessionState) -> SessionState {
    let state = with_functions(state);
    let mut rules = state.physical_optimizers().to_vec();
    if !rules.iter().any(|rule| rule.name() == RULE_NAME) {
        rules.insert(0, Arc::new(BloomJoinRule::default()));
    }
    let id = state.session_id().to_string();
    SessionStateBuilder::new_from_existing(state)
        .with_session_id(id)
        .with_physical_optimizer_rules(rules)
        .build()
}

/// Adds the functions to a session, and the settings.
pub(crate) fn with_functions(state: SessionState) -> SessionState {
    let id = state.session_id().to_string();
    // The builder's configuration, not the state's: by that one a new catalog would take the place
    // of the state's, with its tables.
    let mut builder = SessionStateBuilder::new_from_existing(state).with_session_id(id);
    let config = builder.config().get_or_insert_default();
    if config.options().extensions.get::<BloomJoinOptions>().is_none() {
        config.options_mut().extensions.insert(BloomJoinOptions::default());
    }
    builder.scalar_functions().get_or_insert_default().push(bloom_filter_contains());
    builder.aggregate_functions().get_or_insert_default().push(bloom_filter_agg());
    builder.build()
}

/// The README's code.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// A defect of the engine, as it is to be reported: its program fails once the engine is mended.
#[cfg(doctest)]
#[doc = include_str!("../upstream/dynamic-filter-below-limit.md")]
mod dynamic_filter_below_limit {}

#[cfg(doctest)]
#[doc = include_str!("../upstream/order-lost-below-limit.md")]
mod order_lost_below_limit {}
