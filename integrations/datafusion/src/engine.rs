//! The engine that runs a query.

use datafusion::config::ConfigOptions;

/// An engine, by the way in which its tasks exchange rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    OneProcess,
    /// Tasks run in several processes and read files that other tasks wrote.
    Ballista,
    /// Tasks run in several processes and send rows to each other.
    Distributed,
}

impl Engine {
    pub(crate) fn from_config(config: &ConfigOptions) -> Engine {
        #[cfg(feature = "ballista")]
        if config.extensions.get::<ballista_core::config::BallistaConfig>().is_some() {
            return Engine::Ballista;
        }
        #[cfg(feature = "distributed")]
        if config.extensions.get::<datafusion_distributed::DistributedConfig>().is_some() {
            return Engine::Distributed;
        }
        _ = config;
        Engine::OneProcess
    }

    /// Whether tasks exchange rows over a network.
    pub(crate) fn is_cluster(self) -> bool {
        self != Engine::OneProcess
    }
}

/// Whether Ballista chooses the join algorithm while the query runs. Otherwise a sort-merge join
/// stays one and shuffles both sides.
pub(crate) fn is_adaptive(config: &ConfigOptions) -> bool {
    #[cfg(feature = "ballista")]
    if let Some(ballista) = config.extensions.get::<ballista_core::config::BallistaConfig>() {
        return ballista.adaptive_query_planner_enabled() && ballista.adaptive_join_enabled();
    }
    _ = config;
    false
}
