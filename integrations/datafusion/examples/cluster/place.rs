//! Where the queries of a comparison run, and what they take there.

use std::fs;
use std::path::Path;

use blocked_bloom_datafusion::ballista::{connect, session_config};
use blocked_bloom_datafusion::{BloomJoinOptions, with_bloom_filters};
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::processes::{self, Cluster, Failure, Watch};
use crate::workers::Workers;

/// Thresholds are a hundredth of the defaults, as if there were a hundred times the rows.
const SCALE: u64 = 100;

pub(crate) enum Place {
    OneProcess,
    /// A scheduler and two executors of two cores each.
    Ballista(Cluster),
    /// Two workers of datafusion-distributed; this process plans, and runs the last stage.
    Distributed(Workers),
}

impl Place {
    /// Starts what queries run in, with logs and shuffle files in `directory`.
    pub(crate) fn start(way: &str, directory: &Path) -> Result<Place, Failure> {
        let binary = std::env::current_exe()?;
        match way {
            "one-process" => Ok(Place::OneProcess),
            "defaults" | "scaled" | "scaled-static" => {
                Ok(Place::Ballista(Cluster::start(&binary, directory, 2, 2)?))
            }
            "scaled-workers" => Ok(Place::Distributed(Workers::start(&binary, directory, 2)?)),
            _ => Err(format!("unknown way {way}").into()),
        }
    }

    /// The settings of all sessions: those of the way, and then those of the variable `SET`.
    pub(crate) fn config(&self, way: &str) -> Result<SessionConfig, Failure> {
        let is_ballista = matches!(self, Place::Ballista(_));
        let mut config = match self {
            Place::Ballista(_) => session_config(),
            _ => SessionConfig::new().with_option_extension(BloomJoinOptions::default()),
        };
        config = config.with_target_partitions(4);
        if way.starts_with("scaled") {
            let optimizer = "datafusion.optimizer.hash_join_single_partition_threshold";
            config = config
                .set_u64(optimizer, (1 << 20) / SCALE)
                .set_u64(&format!("{optimizer}_rows"), (128 << 10) / SCALE)
                .set_u64("bloom_join.min_probe_rows", 100_000 / SCALE);
        }
        if way.starts_with("scaled") && is_ballista {
            let threshold = "ballista.optimizer.broadcast_join_threshold";
            config = config
                .set_u64(&format!("{threshold}_bytes"), (128 << 20) / SCALE)
                .set_u64(&format!("{threshold}_rows"), 1_000_000 / SCALE)
                .set_bool("ballista.planner.adaptive.enabled", way == "scaled");
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
        match self {
            Place::OneProcess => {
                let state = SessionContext::new_with_config(config).state();
                Ok(SessionContext::new_with_state(with_bloom_filters(state)))
            }
            Place::Ballista(cluster) => Ok(connect(&cluster.url, config).await?),
            Place::Distributed(workers) => {
                Ok(workers.session(config, (16 << 20) / SCALE as usize)?)
            }
        }
    }

    /// Seconds of CPU that all processes in which queries run have used.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let own = || processes::cpu_seconds(std::process::id());
        match self {
            Place::OneProcess => own(),
            Place::Ballista(cluster) => cluster.cpu_seconds(),
            Place::Distributed(workers) => {
                let ids = workers.processes.iter().map(|process| process.child.id());
                ids.map(processes::cpu_seconds).sum::<f64>() + own()
            }
        }
    }

    /// Counts the bytes that processes give each other from now on.
    pub(crate) fn count_bytes(&self) -> Count {
        match self {
            Place::OneProcess => Count::Nothing,
            Place::Ballista(cluster) => Count::Shuffles(cluster.watch()),
            Place::Distributed(_) => Count::Loopback { before: loopback_bytes() },
        }
    }
}

pub(crate) enum Count {
    Nothing,
    /// The files of Ballista's shuffles.
    Shuffles(Watch),
    /// All that passes the loopback device, plans and answers included.
    Loopback {
        before: u64,
    },
}

impl Count {
    pub(crate) fn finish(self) -> u64 {
        match self {
            Count::Nothing => 0,
            Count::Shuffles(watch) => watch.finish().bytes(),
            Count::Loopback { before } => loopback_bytes() - before,
        }
    }
}

/// Bytes that the loopback device has received, from Linux's `/proc`; 0 elsewhere.
fn loopback_bytes() -> u64 {
    let devices = fs::read_to_string("/proc/net/dev").unwrap_or_default();
    let mut lines = devices.lines().map(str::trim_start);
    let loopback = lines.find_map(|line| line.strip_prefix("lo:")).unwrap_or_default();
    loopback.split_whitespace().next().and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}
