//! The processes that run the queries of a comparison, and their CPU time and bytes.

use std::fs;
use std::path::Path;

use blocked_bloom_datafusion::ballista::{connect, session_config};
use blocked_bloom_datafusion::distributed;
use blocked_bloom_datafusion::{BloomJoinOptions, with_bloom_filters};
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_distributed::DistributedExt;

use crate::processes::{self, Cluster, Failure, Watch};
use crate::workers::Workers;

/// Thresholds are divided by this, as if there were a hundred times the rows.
const SCALE: u64 = 100;

pub(crate) enum Deployment {
    OneProcess,
    /// A scheduler and two executors of two cores each.
    Ballista(Cluster),
    /// Two workers of datafusion-distributed. This process plans and runs the last stage.
    Distributed(Workers),
}

impl Deployment {
    /// Starts the processes of a mode, with logs and shuffle files in `directory`.
    pub(crate) fn start(mode: &str, directory: &Path) -> Result<Deployment, Failure> {
        let binary = std::env::current_exe()?;
        match mode {
            "one-process" => Ok(Deployment::OneProcess),
            "defaults" | "scaled" | "scaled-static" => {
                Ok(Deployment::Ballista(Cluster::start(&binary, directory, 2, 2)?))
            }
            "scaled-workers" => Ok(Deployment::Distributed(Workers::start(&binary, directory, 2)?)),
            _ => Err(format!("unknown mode {mode}").into()),
        }
    }

    /// Returns the settings of all sessions: those of the mode, then those of the variable `SET`.
    pub(crate) fn config(&self, mode: &str) -> Result<SessionConfig, Failure> {
        let mut config = match self {
            Deployment::Ballista(_) => session_config(),
            _ => SessionConfig::new().with_option_extension(BloomJoinOptions::default()),
        };
        if let Deployment::Distributed(workers) = self {
            config.set_distributed_worker_resolver(workers.resolver());
        }
        config = config.with_target_partitions(4);
        if mode.starts_with("scaled") {
            let optimizer = "datafusion.optimizer.hash_join_single_partition_threshold";
            config = config
                .set_u64(optimizer, (1 << 20) / SCALE)
                .set_u64(&format!("{optimizer}_rows"), (128 << 10) / SCALE)
                .set_u64("bloom_join.min_probe_rows", 100_000 / SCALE);
            config = match self {
                Deployment::OneProcess => config,
                Deployment::Ballista(_) => {
                    let threshold = "ballista.optimizer.broadcast_join_threshold";
                    config
                        .set_u64(&format!("{threshold}_bytes"), (128 << 20) / SCALE)
                        .set_u64(&format!("{threshold}_rows"), 1_000_000 / SCALE)
                        .set_bool("ballista.planner.adaptive.enabled", mode == "scaled")
                }
                Deployment::Distributed(_) => config.set_u64(
                    "distributed.file_scan_config_bytes_per_partition",
                    (16 << 20) / SCALE,
                ),
            };
        }
        let set = std::env::var("SET").unwrap_or_default();
        for setting in set.split(',').filter(|setting| !setting.is_empty()) {
            let Some((key, value)) = setting.split_once('=') else {
                return Err(format!("SET has {setting:?}, which is not KEY=VALUE").into());
            };
            config.options_mut().set(key, value)?;
        }
        Ok(config)
    }

    pub(crate) async fn session(&self, config: SessionConfig) -> Result<SessionContext, Failure> {
        let state = match self {
            Deployment::OneProcess => {
                with_bloom_filters(SessionContext::new_with_config(config).state())
            }
            Deployment::Ballista(cluster) => return Ok(connect(&cluster.url, config).await?),
            Deployment::Distributed(_) => {
                let builder = SessionStateBuilder::new().with_default_features();
                distributed::session(builder.with_config(config)).build()
            }
        };
        Ok(SessionContext::new_with_state(state))
    }

    /// Returns the CPU seconds of the processes that run queries. In Ballista these are the
    /// scheduler and the executors, not this client. Otherwise this process counts too, because it
    /// plans and, with workers, runs the last stage.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let own = || processes::cpu_seconds(std::process::id());
        match self {
            Deployment::OneProcess => own(),
            Deployment::Ballista(cluster) => cluster.cpu_seconds(),
            Deployment::Distributed(workers) => workers.cpu_seconds() + own(),
        }
    }

    /// Describes the bytes that [`count_bytes`](Deployment::count_bytes) counts.
    pub(crate) fn counted(&self) -> &'static str {
        match self {
            Deployment::Distributed(_) => "MB over loopback",
            _ => "MB shuffled",
        }
    }

    /// Starts to count the bytes that processes send each other.
    pub(crate) fn count_bytes(&self) -> ByteCounter {
        match self {
            Deployment::OneProcess => ByteCounter::Disabled,
            Deployment::Ballista(cluster) => ByteCounter::Shuffles(cluster.watch()),
            Deployment::Distributed(_) => ByteCounter::Loopback { start: loopback_bytes() },
        }
    }
}

pub(crate) enum ByteCounter {
    Disabled,
    /// Ballista's shuffle files, including those that are read where they were written.
    Shuffles(Watch),
    /// All bytes through the loopback device, of any program, including plans and answers. Data
    /// that a worker sends itself, half of a shuffle between two workers, is not included.
    Loopback {
        start: u64,
    },
}

impl ByteCounter {
    pub(crate) fn finish(self) -> u64 {
        match self {
            ByteCounter::Disabled => 0,
            ByteCounter::Shuffles(watch) => watch.finish().bytes(),
            ByteCounter::Loopback { start } => loopback_bytes().saturating_sub(start),
        }
    }
}

/// Returns the bytes that the loopback device has received, from Linux's `/proc`; elsewhere 0.
fn loopback_bytes() -> u64 {
    let devices = fs::read_to_string("/proc/net/dev").unwrap_or_default();
    let mut lines = devices.lines().map(str::trim_start);
    let loopback = lines.find_map(|line| line.strip_prefix("lo:")).unwrap_or_default();
    loopback.split_whitespace().next().and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}
