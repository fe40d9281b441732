//! What engine plans a query.

use datafusion::config::ConfigOptions;

/// Whether tasks run in processes of their own, with a network between.
pub(crate) fn is_cluster(config: &ConfigOptions) -> bool {
    #[cfg(feature = "ballista")]
    if config.extensions.get::<ballista_core::config::BallistaConfig>().is_some() {
        return true;
    }
    #[cfg(feature = "distributed")]
    if config.extensions.get::<datafusion_distributed::DistributedConfig>().is_some() {
        return true;
    }
    _ = config;
    false
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
