//! What Ballista's scheduler, executors and clients must be given.
//!
//! There is one call for each: `scheduler` and `executor`, with the feature `cluster`, add it to a
//! configuration, and [`connect`] makes a client's context. Programs that do not call these set:
//!
//! - Scheduler (`SchedulerConfig`): `override_config_producer`: [`session_config`],
//!   `override_session_builder`: [`session_state`], `override_physical_codec`:
//!   [`BloomPhysicalCodec`].
//! - Executor (`ExecutorProcessConfig`): `override_function_registry`: [`function_registry`],
//!   `override_physical_codec`: [`BloomPhysicalCodec`].
//! - Client: a state made from [`session_config`], and [`register_functions`] once the context is
//!   connected, since connecting removes functions.

use std::sync::Arc;

use ballista::prelude::SessionContextExt;
use ballista_core::extension::SessionConfigExt;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::common::{Result, exec_err};
use datafusion::execution::{SessionState, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

use crate::aggregate::{BLOOM_FILTER_AGG, bloom_filter_agg};
use crate::build::BloomBuildExec;
use crate::contains::{BLOOM_FILTER_CONTAINS, bloom_filter_contains, function};
use crate::options::BloomJoinOptions;
use crate::planner::BloomQueryPlanner;
use crate::probe::BloomProbeExec;
use crate::session::with_functions;

/// Ballista's configuration with the settings of the filters: for clients, and for the scheduler,
/// to which they are sent.
///
/// ```
/// use blocked_bloom_datafusion::ballista::session_config;
/// let config = session_config().set_bool("bloom_join.enabled", false);
/// assert!(config.options().entries().iter().any(|e| e.key == "bloom_join.enabled"));
/// ```
pub fn session_config() -> SessionConfig {
    SessionConfig::new_with_ballista().with_option_extension(BloomJoinOptions::default())
}

/// A session of the scheduler: the functions, for planning, and a [`BloomQueryPlanner`], which adds
/// the rule with adaptive execution on and off.
///
/// # Errors
///
/// As Ballista's default session builder.
pub fn session_state(config: SessionConfig) -> Result<SessionState> {
    let state = with_functions(ballista_core::utils::default_session_builder(config)?);
    let planner = BloomQueryPlanner::new(state.query_planner().clone());
    let id = state.session_id().to_string();
    let builder = SessionStateBuilder::new_from_existing(state).with_session_id(id);
    Ok(builder.with_query_planner(Arc::new(planner)).build())
}

/// Ballista's functions and those of this crate, for executors to find.
pub fn function_registry() -> Arc<BallistaFunctionRegistry> {
    let mut registry = BallistaFunctionRegistry::default();
    registry.scalar_functions.insert(BLOOM_FILTER_CONTAINS.into(), bloom_filter_contains());
    registry.aggregate_functions.insert(BLOOM_FILTER_AGG.into(), bloom_filter_agg());
    Arc::new(registry)
}

/// A scheduler's configuration with the rule, its settings, the functions and the codec.
///
/// ```
/// use ballista_scheduler::config::SchedulerConfig;
/// let config = SchedulerConfig { bind_port: 50050, ..Default::default() };
/// let config = blocked_bloom_datafusion::ballista::scheduler(config);
/// assert!(config.override_physical_codec.is_some() && config.bind_port == 50050);
/// ```
#[cfg(feature = "cluster")]
pub fn scheduler(
    config: ballista_scheduler::config::SchedulerConfig,
) -> ballista_scheduler::config::SchedulerConfig {
    ballista_scheduler::config::SchedulerConfig {
        override_config_producer: Some(Arc::new(session_config)),
        override_session_builder: Some(Arc::new(session_state)),
        override_physical_codec: Some(Arc::new(BloomPhysicalCodec::default())),
        ..config
    }
}

/// An executor's configuration with the functions and the codec.
///
/// ```
/// use ballista_executor::executor_process::ExecutorProcessConfig;
/// let config = blocked_bloom_datafusion::ballista::executor(ExecutorProcessConfig::default());
/// assert!(config.override_function_registry.is_some());
/// ```
#[cfg(feature = "cluster")]
pub fn executor(
    config: ballista_executor::executor_process::ExecutorProcessConfig,
) -> ballista_executor::executor_process::ExecutorProcessConfig {
    ballista_executor::executor_process::ExecutorProcessConfig {
        override_function_registry: Some(function_registry()),
        override_physical_codec: Some(Arc::new(BloomPhysicalCodec::default())),
        ..config
    }
}

/// A client's context with the functions, connected to the scheduler at a URL such as
/// `df://localhost:50050`, with a configuration made from [`session_config`].
///
/// # Errors
///
/// As Ballista's `SessionContext::remote_with_state`: nothing listens there, or it is no scheduler.
pub async fn connect(url: &str, config: SessionConfig) -> Result<SessionContext> {
    let state = SessionStateBuilder::new_with_default_features().with_config(config).build();
    let context = SessionContext::remote_with_state(url, state).await?;
    register_functions(&context);
    Ok(context)
}

/// Adds the functions to a context. Clients call this after they have connected, since connecting
/// puts Ballista's own functions in place of a state's.
pub fn register_functions(context: &SessionContext) {
    context.register_udf(bloom_filter_contains().as_ref().clone());
    context.register_udaf(bloom_filter_agg().as_ref().clone());
}

/// Ballista's codec of physical plans, which also carries [`BloomProbeExec`] and the functions.
#[derive(Debug, Default)]
pub struct BloomPhysicalCodec {
    ballista: BallistaPhysicalExtensionCodec,
}

/// What an encoded operator starts with. Ballista's own nodes are protobuf messages, none of which
/// starts with this byte.
const MAGIC: &[u8; 8] = b"\xffBBPROBE";

/// The encoding of a function. It is not empty: if it were, all plans of an executor would share
/// the function that the executor registered, and its open filters.
const OF_ONE_PLAN: &[u8] = b"1";

impl PhysicalExtensionCodec for BloomPhysicalCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(bytes) = bytes.strip_prefix(BloomBuildExec::MAGIC) {
            return Ok(Arc::new(BloomBuildExec::decode(bytes, inputs)?));
        }
        let Some(bytes) = bytes.strip_prefix(MAGIC) else {
            return self.ballista.try_decode(bytes, inputs, context, converter);
        };
        let ([input, filter], Some((stop_above, columns))) = (inputs, bytes.split_first_chunk())
        else {
            return exec_err!("BloomProbeExec: {} inputs, {} bytes", inputs.len(), bytes.len());
        };
        let Some((&count, columns)) = columns.split_first() else {
            return exec_err!("BloomProbeExec: {} bytes", bytes.len());
        };
        let Some((columns, decision)) = columns.split_at_checked(4 * usize::from(count)) else {
            return exec_err!("BloomProbeExec: {count} columns in {} bytes", columns.len());
        };
        let Ok(decision) = String::from_utf8(decision.to_vec()) else {
            return exec_err!("BloomProbeExec: a decision that is not UTF-8");
        };
        let columns = columns
            .as_chunks::<4>()
            .0
            .iter()
            .map(|column| u32::from_le_bytes(*column) as usize)
            .collect();
        let stop_above = f64::from_le_bytes(*stop_above);
        let probe = BloomProbeExec::try_new(input.clone(), filter.clone(), columns, stop_above)?;
        Ok(Arc::new(probe.with_decision(decision)))
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        if let Some(build) = node.downcast_ref::<BloomBuildExec>() {
            build.encode(bytes);
            return Ok(());
        }
        let Some(probe) = node.downcast_ref::<BloomProbeExec>() else {
            return self.ballista.try_encode(node, bytes, converter);
        };
        bytes.extend(MAGIC);
        bytes.extend(probe.stop_above().to_le_bytes());
        let Ok(count) = u8::try_from(probe.columns().len()) else {
            return exec_err!("BloomProbeExec: {} columns (255)", probe.columns().len());
        };
        bytes.push(count);
        bytes.extend(probe.columns().iter().flat_map(|&column| (column as u32).to_le_bytes()));
        bytes.extend(probe.decision().as_bytes());
        Ok(())
    }

    fn try_decode_udf(&self, name: &str, bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
        match name {
            BLOOM_FILTER_CONTAINS => Ok(Arc::new(function(true))),
            _ => self.ballista.try_decode_udf(name, bytes),
        }
    }

    fn try_encode_udf(&self, node: &ScalarUDF, bytes: &mut Vec<u8>) -> Result<()> {
        if node.name() == BLOOM_FILTER_CONTAINS {
            bytes.extend(OF_ONE_PLAN);
            return Ok(());
        }
        self.ballista.try_encode_udf(node, bytes)
    }

    fn try_decode_udaf(&self, name: &str, bytes: &[u8]) -> Result<Arc<AggregateUDF>> {
        match name {
            BLOOM_FILTER_AGG => Ok(bloom_filter_agg()),
            _ => self.ballista.try_decode_udaf(name, bytes),
        }
    }

    fn try_encode_udaf(&self, node: &AggregateUDF, bytes: &mut Vec<u8>) -> Result<()> {
        self.ballista.try_encode_udaf(node, bytes)
    }

    fn try_decode_udwf(&self, name: &str, bytes: &[u8]) -> Result<Arc<WindowUDF>> {
        self.ballista.try_decode_udwf(name, bytes)
    }

    fn try_encode_udwf(&self, node: &WindowUDF, bytes: &mut Vec<u8>) -> Result<()> {
        self.ballista.try_encode_udwf(node, bytes)
    }
}
