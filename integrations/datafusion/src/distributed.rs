//! Sessions and workers of [datafusion-distributed](datafusion_distributed).
//!
//! [`session`] creates sessions that plan queries, and [`worker_session`] those of workers.
//!
//! In datafusion-distributed, each task of a stage reads its own part of every table in that stage.
//! If a task built its own filter, the filter would lack the keys of the other parts and drop rows
//! that have a partner. Therefore the partial filters of all tasks are broadcast to every task that
//! probes:
//!
//! ```text
//! BloomProbe
//!   the probed table
//!   Aggregate(Final): bloom_filter_agg
//!     CoalescePartitions
//!       stage: Broadcast
//!         BloomBuild
//!           the table of the keys
//! ```
//!
//! Two checks ensure that a filter is complete. The planner checks the stages, and plans the query
//! again without filters if one is incomplete. A task checks its filter before it opens it, and
//! drops no rows if the filter is incomplete.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, plan_err};
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion_distributed::{
    BroadcastExec, DistributedConfig, DistributedExt, SessionStateBuilderExt, WorkerQueryContext,
};
use datafusion_proto::physical_plan::DefaultPhysicalExtensionCodec;

pub use crate::codec::BloomPhysicalCodec;
use crate::completeness::find_missing_part;
use crate::operators::with_children;
use crate::options::{BloomJoinOptions, Enabled};
use crate::planner::BloomQueryPlanner;
use crate::probe::BloomProbeExec;
use crate::session::add_functions;

type Plan = Arc<dyn ExecutionPlan>;
type Planner = Arc<dyn QueryPlanner + Send + Sync>;

/// Completes a session that plans queries for workers: adds the functions, settings, codec and
/// rule, and calls [`with_distributed_planner`](SessionStateBuilderExt::with_distributed_planner).
/// Do not call that method yourself, neither before nor after.
///
/// With `distributed.dynamic_task_count`, stages are created while the query runs, and no filters
/// are planned.
///
/// ```
/// use blocked_bloom_datafusion::distributed::{session, worker_session};
/// use datafusion::execution::SessionStateBuilder;
/// use datafusion_distributed::Worker;
///
/// let state = session(SessionStateBuilder::new().with_default_features()).build();
/// let worker = Worker::from_session_builder(worker_session);
/// assert!(state.aggregate_functions().contains_key("bloom_filter_agg"));
/// # drop(worker);
/// ```
pub fn session(builder: SessionStateBuilder) -> SessionStateBuilder {
    session_with(builder, Steps { broadcast: true, check: true })
}

/// Creates the session of a worker, with the functions and the codec. Pass it to
/// [`Worker::from_session_builder`].
///
/// [`Worker::from_session_builder`]: datafusion_distributed::Worker::from_session_builder
///
/// # Errors
///
/// Currently none.
pub async fn worker_session(context: WorkerQueryContext) -> Result<SessionState> {
    Ok(with_codec(context.builder).build())
}

/// The steps that make filters complete. Only tests leave any out.
#[derive(Clone, Copy, Debug)]
struct Steps {
    broadcast: bool,
    check: bool,
}

fn session_with(builder: SessionStateBuilder, steps: Steps) -> SessionStateBuilder {
    let mut builder = with_codec(builder);
    let rule = BloomQueryPlanner::new(match builder.query_planner().take() {
        Some(planner) => planner,
        None => SessionStateBuilder::new().build().query_planner().clone(),
    });
    let broadcasting = BroadcastingPlanner { inner: Arc::new(rule), steps };
    let mut builder = builder.with_query_planner(Arc::new(broadcasting)).with_distributed_planner();
    let inner = builder.query_planner().take().expect("the distributed planner");
    builder.with_query_planner(Arc::new(CheckingPlanner { inner, steps }))
}

fn with_codec(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    add_functions(&mut builder);
    let codec = BloomPhysicalCodec::new(Arc::new(DefaultPhysicalExtensionCodec {}));
    builder.with_distributed_user_codec(codec)
}

/// Puts a broadcast below each filter before the plan is divided into stages.
#[derive(Debug)]
struct BroadcastingPlanner {
    inner: Planner,
    steps: Steps,
}

#[async_trait]
impl QueryPlanner for BroadcastingPlanner {
    async fn create_physical_plan(
        &self,
        logical: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Plan> {
        let plan = self.inner.create_physical_plan(logical, session).await?;
        if !self.steps.broadcast {
            return Ok(plan);
        }
        plan.transform_up(|plan| {
            if !plan.is::<BloomProbeExec>() {
                return Ok(Transformed::no(plan));
            }
            let children = plan.children();
            let children = vec![children[0].clone(), with_broadcast(children[1])?];
            with_children(plan, children).map(Transformed::yes)
        })
        .data()
    }
}

/// Sends the partial filters, or the merged filter, to every task.
fn with_broadcast(filter: &Plan) -> Result<Plan> {
    if let Some(coalesce) = filter.downcast_ref::<CoalescePartitionsExec>() {
        return Ok(broadcast(coalesce.input().clone()));
    }
    if filter.is::<ProjectionExec>() && filter.output_partitioning().partition_count() == 1 {
        let input = with_broadcast(filter.children()[0])?;
        return with_children(filter.clone(), vec![input]);
    }
    let Some(aggregate) = filter.downcast_ref::<AggregateExec>() else {
        return plan_err!("the plan of a filter must be an aggregate, not {}", filter.name());
    };
    let input = aggregate.input();
    match aggregate.mode() {
        AggregateMode::Final => {
            let coalesced = input.downcast_ref::<CoalescePartitionsExec>();
            let partial = coalesced.map_or(input, CoalescePartitionsExec::input);
            with_children(filter.clone(), vec![broadcast(partial.clone())])
        }
        // One task has merged the partial filters.
        AggregateMode::FinalPartitioned => Ok(broadcast(filter.clone())),
        mode => plan_err!("the plan of a filter ends with an aggregate of mode {mode:?}"),
    }
}

/// The engine sets the number of reading tasks when it knows the stages.
fn broadcast(plan: Plan) -> Plan {
    Arc::new(CoalescePartitionsExec::new(Arc::new(BroadcastExec::new(plan, 1))))
}

/// Plans a query again without filters if one of its filters is incomplete.
#[derive(Debug)]
struct CheckingPlanner {
    inner: Planner,
    steps: Steps,
}

#[async_trait]
impl QueryPlanner for CheckingPlanner {
    async fn create_physical_plan(
        &self,
        logical: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Plan> {
        let config = session.config_options();
        let is_off = BloomJoinOptions::from_config(config).enabled == Enabled::False;
        let is_dynamic = DistributedConfig::from_config_options(config)?.dynamic_task_count;
        let reason = if is_dynamic && !is_off {
            "stages are created while the query runs (distributed.dynamic_task_count)".to_string()
        } else {
            match self.inner.create_physical_plan(logical, session).await {
                Ok(plan) => match find_missing_part(&plan, 1, false) {
                    Some(reason) if self.steps.check => reason,
                    _ => return Ok(plan),
                },
                Err(error) if is_off => return Err(error),
                // Without filters, planning succeeds or returns the same error.
                Err(error) => error.to_string(),
            }
        };
        let Some(state) = session.as_any().downcast_ref::<SessionState>() else {
            return plan_err!("filters cannot be turned off in this kind of session: {reason}");
        };
        log::debug!("no filters: {reason}");
        let mut state = state.clone();
        let options = state.config_mut().options_mut();
        let off =
            BloomJoinOptions { enabled: Enabled::False, ..BloomJoinOptions::from_config(options) };
        options.extensions.insert(off);
        self.inner.create_physical_plan(logical, &state).await
    }
}

#[cfg(test)]
#[path = "../tests/suite/workers.rs"]
mod workers;

#[cfg(test)]
#[path = "../tests/unit/distributed.rs"]
mod tests;
