//! DataFusion sessions with the functions, the settings and the rule.

use std::sync::Arc;

use datafusion::execution::{SessionState, SessionStateBuilder};

use crate::aggregate::bloom_filter_agg;
use crate::contains::bloom_filter_contains;
use crate::options::BloomJoinOptions;
use crate::planner::BloomQueryPlanner;
use crate::rule::{BloomJoinRule, RULE_NAME};

/// Adds the functions, the rule and its settings to a DataFusion session. The session keeps its
/// tables, and its own rule and settings if it already has them. It loses its prepared statements.
///
/// For Ballista's scheduler use [`ballista::session_state`](crate::ballista::session_state)
/// instead, because its adaptive planner replaces the rules of a session.
pub fn with_bloom_filters(state: SessionState) -> SessionState {
    let state = with_functions(state);
    let mut rules = state.physical_optimizers().to_vec();
    if rules.iter().any(|rule| rule.name() == RULE_NAME) {
        return state;
    }
    rules.insert(0, Arc::new(BloomJoinRule::default()));
    let planner = BloomQueryPlanner::new(state.query_planner().clone());
    let id = state.session_id().to_string();
    SessionStateBuilder::new_from_existing(state)
        .with_session_id(id)
        .with_physical_optimizer_rules(rules)
        .with_query_planner(Arc::new(planner))
        .build()
}

/// Adds the functions and the rule's settings to a session.
pub(crate) fn with_functions(state: SessionState) -> SessionState {
    let id = state.session_id().to_string();
    // The settings go into the builder's configuration, which does not create a default catalog.
    // With the state's own configuration, a new catalog would replace that of the state.
    let mut builder = SessionStateBuilder::new_from_existing(state).with_session_id(id);
    add_functions(&mut builder);
    builder.build()
}

/// Adds the functions and the rule's settings to a session builder.
pub(crate) fn add_functions(builder: &mut SessionStateBuilder) {
    let config = builder.config().get_or_insert_default();
    if config.options().extensions.get::<BloomJoinOptions>().is_none() {
        config.options_mut().extensions.insert(BloomJoinOptions::default());
    }
    builder.scalar_functions().get_or_insert_default().push(bloom_filter_contains());
    builder.aggregate_functions().get_or_insert_default().push(bloom_filter_agg());
}
