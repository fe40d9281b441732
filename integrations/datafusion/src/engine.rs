//! What engine plans a query.

use datafusion::config::ConfigOptions;

/// What runs the tasks of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    OneProcess,
    /// Tasks run in processes of their own, and read the files that other tasks wrote.
    Ballista,
    /// Tasks run in processes of their own, and send rows to each other.
    Distributed,
}

impl Engine {
    pub(crate) fn of(config: &ConfigOptions) -> Engine {
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

    /// Whether there is a network between tasks.
    pub(crate) fn is_cluster(self) -> bool {
        self != Engine::OneProcess
    }
}

/// Whether Ballista chooses the kind of join while the query runs. If not, a sort-merge join stays
/// one, and shuffles both sides.
pub(crate) fn is_adaptive(config: &ConfigOptions) -> bool {
    #[cfg(feature = "ballista")]
    if let Some(ballista) = config.extensions.get::<ballista_core::config::BallistaConfig>() {
        return ballista.adaptive_query_planner_enabled() && ballista.adaptive_join_enabled();
    }
    _ = config;
    false
}
