//! [`BloomQueryPlanner`]: adds the rule even if a session's rules are replaced.

use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{LogicalPlan, PlanType, StringifiedPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::explain::ExplainExec;

use crate::rule::{BloomJoinRule, RULE_NAME, Reasons};

/// A query planner that puts the [`BloomJoinRule`] before the session's rules and delegates
/// planning to another planner.
///
/// Ballista's adaptive planner replaces the physical rules of each job's session, but keeps the
/// query planner.
///
/// `EXPLAIN VERBOSE` then shows, below the physical plan, why joins have no filter.
#[derive(Debug)]
pub struct BloomQueryPlanner {
    inner: Arc<dyn QueryPlanner + Send + Sync>,
}

impl BloomQueryPlanner {
    /// Delegates planning to `inner`, usually a session's [query
    /// planner](SessionState::query_planner).
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
            // Rules cannot be added to other kinds of sessions.
            return self.inner.create_physical_plan(logical, session).await;
        };
        let explains = matches!(logical, LogicalPlan::Explain(explain) if explain.verbose);
        let mut rules = state.physical_optimizers().to_vec();
        let at = rules.iter().position(|rule| rule.name() == RULE_NAME);
        if at.is_some() && !explains {
            return self.inner.create_physical_plan(logical, session).await;
        }
        let reasons = Reasons::default();
        let rule = Arc::new(BloomJoinRule::with_reasons(reasons.clone()));
        match at {
            Some(at) => rules[at] = rule,
            None => rules.insert(0, rule),
        }
        let state = SessionStateBuilder::new_from_existing(state.clone())
            .with_session_id(state.session_id().to_string())
            .with_physical_optimizer_rules(rules)
            .build();
        let plan = self.inner.create_physical_plan(logical, &state).await?;
        let reasons = std::mem::take(&mut *reasons.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(if explains { with_reasons(plan, &reasons) } else { plan })
    }
}

/// Appends the reasons to the text of an explained plan, because Ballista shows only that text.
fn with_reasons(plan: Arc<dyn ExecutionPlan>, reasons: &[String]) -> Arc<dyn ExecutionPlan> {
    let (Some(explain), false) = (plan.downcast_ref::<ExplainExec>(), reasons.is_empty()) else {
        return plan;
    };
    let reasons: String = reasons.iter().map(|reason| format!("bloom_join: {reason}\n")).collect();
    let mut plans = explain.stringified_plans().to_vec();
    for plan in plans.iter_mut().filter(|plan| plan.plan_type == PlanType::FinalPhysicalPlan) {
        let text = format!("{}\n{reasons}", plan.plan.trim_end());
        *plan = StringifiedPlan::new(PlanType::FinalPhysicalPlan, text);
    }
    Arc::new(ExplainExec::new(explain.schema(), plans, explain.verbose()))
}
