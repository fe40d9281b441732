//! Configuration of Ballista's scheduler, executors and clients.
//!
//! `scheduler` and `executor` (feature `cluster`) complete a configuration, and [`connect`] creates
//! a client's context. Programs that do not call them must set:
//!
//! - Scheduler (`SchedulerConfig`): `override_config_producer` to [`session_config`],
//!   `override_session_builder` to [`session_state`], `override_physical_codec` to
//!   [`BloomPhysicalCodec`].
//! - Executor (`ExecutorProcessConfig`): `override_function_registry` to [`function_registry`],
//!   `override_physical_codec` to [`BloomPhysicalCodec`].
//! - Client: create the state from [`session_config`] and call [`register_functions`] after
//!   connecting, because connecting removes functions.

use std::sync::Arc;

use ballista::prelude::SessionContextExt;
use ballista_core::extension::SessionConfigExt;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::common::Result;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::aggregate::{BLOOM_FILTER_AGG, bloom_filter_agg};
pub use crate::codec::BloomPhysicalCodec;
use crate::contains::{BLOOM_FILTER_CONTAINS, bloom_filter_contains};
use crate::options::BloomJoinOptions;
use crate::planner::BloomQueryPlanner;
use crate::session::with_functions;

/// Returns Ballista's configuration with the filter settings. Clients need it, and so does the
/// scheduler, which receives the settings from clients.
///
/// ```
/// use blocked_bloom_datafusion::ballista::session_config;
/// let config = session_config().set_bool("bloom_join.enabled", false);
/// assert!(config.options().entries().iter().any(|e| e.key == "bloom_join.enabled"));
/// ```
pub fn session_config() -> SessionConfig {
    SessionConfig::new_with_ballista().with_option_extension(BloomJoinOptions::default())
}

/// Creates a scheduler session with the functions and a [`BloomQueryPlanner`], which adds the rule
/// with adaptive execution on and off.
///
/// # Errors
///
/// Those of Ballista's default session builder.
pub fn session_state(config: SessionConfig) -> Result<SessionState> {
    let state = with_functions(ballista_core::utils::default_session_builder(config)?);
    let planner = BloomQueryPlanner::new(state.query_planner().clone());
    let id = state.session_id().to_string();
    let builder = SessionStateBuilder::new_from_existing(state).with_session_id(id);
    Ok(builder.with_query_planner(Arc::new(planner)).build())
}

/// Returns the registry for executors: Ballista's functions and those of this crate.
pub fn function_registry() -> Arc<BallistaFunctionRegistry> {
    let mut registry = BallistaFunctionRegistry::default();
    registry.scalar_functions.insert(BLOOM_FILTER_CONTAINS.into(), bloom_filter_contains());
    registry.aggregate_functions.insert(BLOOM_FILTER_AGG.into(), bloom_filter_agg());
    Arc::new(registry)
}

/// Adds the rule, its settings, the functions and the codec to a scheduler's configuration.
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

/// Adds the functions and the codec to an executor's configuration.
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

/// Connects a client to the scheduler at a URL such as `df://localhost:50050`. The configuration
/// must come from [`session_config`]. The returned context has the functions.
///
/// # Errors
///
/// Those of Ballista's `SessionContext::remote_with_state`: nothing listens at the URL, or the
/// listener is not a scheduler.
pub async fn connect(url: &str, config: SessionConfig) -> Result<SessionContext> {
    let state = SessionStateBuilder::new_with_default_features().with_config(config).build();
    let context = SessionContext::remote_with_state(url, state).await?;
    register_functions(&context);
    Ok(context)
}

/// Adds the functions to a context. Call this after connecting, because connecting replaces the
/// functions of the state with Ballista's own.
pub fn register_functions(context: &SessionContext) {
    context.register_udf(bloom_filter_contains().as_ref().clone());
    context.register_udaf(bloom_filter_agg().as_ref().clone());
}

/// Wraps Ballista's codec.
impl Default for BloomPhysicalCodec {
    fn default() -> Self {
        BloomPhysicalCodec::new(Arc::new(BallistaPhysicalExtensionCodec::default()))
    }
}
