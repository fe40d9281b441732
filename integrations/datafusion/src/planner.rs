//! A query planner that adds the rule even where a session's rules are replaced:
//! [`BloomQueryPlanner`].

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;

use crate::rule::{BloomJoinRule, RULE_NAME};

/// A query planner that puts the [`BloomJoinRule`] before the rules of the session, whatever these
/// are, and leaves the planning to another planner.
///
/// Ballista's adaptive planner gives each job's session physical rules of its own and keeps its
/// query planner.
#[derive(Debug)]
pub struct BloomQueryPlanner {
    inner: Arc<dyn QueryPlanner + Send + Sync>,
}

impl BloomQueryPlanner {
    /// Leaves the planning to `inner`, a session's [query planner](SessionState::query_planner).
    pub fn new(inner: Arc<dyn QueryPlanner + Send + Sync>) -> Self {
        BloomQueryPlanner { inner }
    }
}

#[async_trait]
impl QueryPlanner for BloomQueryPlanner {
    async fn create_physical_plan(
        &self,
        logical: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(state) = session.as_any().downcast_ref::<SessionState>() else {
            // A session of another kind has its own way of adding rules.
            return self.inner.create_physical_plan(logical, session).await;
        };
        let mut rules = state.physical_optimizers().to_vec();
        if rules.iter().any(|rule| rule.name() == RULE_NAME) {
            return self.inner.create_physical_plan(logical, session).await;
        }
        rules.insert(0, Arc::new(BloomJoinRule::default()));
        let state = SessionStateBuilder::new_from_existing(state.clone())
            .with_session_id(state.session_id().to_string())
            .with_physical_optimizer_rules(rules)
            .build();
        self.inner.create_physical_plan(logical, &state).await
    }
}
