//! The same keys, gets and scans for every policy. Every answer of the engine is compared with the
//! right one.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use slatedb::config::{FlushOptions, FlushType, Settings};
use slatedb::db_cache::SplitCache;
use slatedb::db_cache::moka::MokaCache;
use slatedb::db_stats::{
    FILTER_KIND_LABEL, FILTER_KIND_RANGE, SST_FILTER_FALSE_POSITIVE_COUNT,
    SST_FILTER_NEGATIVE_COUNT, SST_FILTER_POSITIVE_COUNT,
};
use slatedb::object_store::ObjectStore;
use slatedb::object_store::memory::InMemory;
use slatedb::{Db, FilterPolicy, PrefixExtractor, PrefixTarget, WriteBatch, db_cache_stats};
use slatedb_common::metrics::{DefaultMetricsRecorder, MetricValue};

use crate::profile::{Probes, Profiled};

/// Tables that the keys are spread over: in as many filters an absent key is looked up.
pub(crate) const TABLES: u64 = 16;

/// Keys that share a prefix.
const KEYS_PER_TENANT: u64 = 50;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A key's first seven bytes, "00002a/".
pub(crate) struct Tenant;

impl PrefixExtractor for Tenant {
    fn name(&self) -> &str {
        "tenant-7"
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        let (PrefixTarget::Point(bytes) | PrefixTarget::Prefix(bytes)) = target;
        (bytes.len() >= 7).then_some(7)
    }
}

/// Sixteen bytes that never repeat, in no order: a tenant and a number mixed from `i`.
fn key(i: u64, keys: u64) -> Vec<u8> {
    let tenants = (keys / KEYS_PER_TENANT).max(1);
    // Odd factors make one-to-one mappings of the 32 bits.
    let number = (i as u32).wrapping_mul(0x9e37_79b1) ^ 0x5bd1_e995;
    format!("{:06x}/{number:09x}", u64::from(number) % tenants).into_bytes()
}

/// Returns the CPU time of the process, with a resolution of hundredths of a second, so that other
/// work on the machine does not matter. Where the system does not report it, returns wall time.
fn seconds() -> f64 {
    static STARTED: OnceLock<Instant> = OnceLock::new();
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // User and system time are the 12th and 13th field after the name in parentheses.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    match fields.map(str::parse::<u64>).collect::<std::result::Result<Vec<_>, _>>() {
        Ok(ticks) if ticks.len() == 2 => ticks.iter().sum::<u64>() as f64 / 100.0,
        _ => STARTED.get_or_init(Instant::now).elapsed().as_secs_f64(),
    }
}

/// A time and what happened meanwhile.
#[derive(Clone, Copy, Default)]
pub(crate) struct Phase {
    pub(crate) seconds: f64,
    pub(crate) block_reads: u64,
    pub(crate) probes: Probes,
}

pub(crate) struct Outcome {
    pub(crate) wrong: u64,
    pub(crate) write_seconds: f64,
    pub(crate) absent: Phase,
    pub(crate) present: Phase,
    pub(crate) scans: Phase,
    /// SlateDB's counts of tables that filters ruled out, passed rightly and passed wrongly, for
    /// range scans.
    pub(crate) range_tables: [u64; 3],
    pub(crate) filter_bytes: u64,
    pub(crate) build_ns_per_key: f64,
    pub(crate) decode_us: f64,
}

fn settings() -> Settings {
    Settings {
        min_filter_keys: 0,
        compactor_options: None,
        garbage_collector_options: None,
        l0_max_ssts: 4 * TABLES as usize,
        l0_max_ssts_per_key: 4 * TABLES as usize,
        ..Settings::default()
    }
}

async fn open(
    store: &Arc<dyn ObjectStore>,
    policies: &[Arc<dyn FilterPolicy>],
    metrics: &Arc<DefaultMetricsRecorder>,
) -> Result<Db> {
    // Filters and indexes stay in memory; each block of data that is wanted is read from the store,
    // and counted.
    let cache = SplitCache::new().with_meta_cache(Some(Arc::new(MokaCache::new()))).build();
    let builder = Db::builder("db", Arc::clone(store)).with_settings(settings());
    let builder = builder.with_filter_policies(policies.to_vec()).with_db_cache(Arc::new(cache), 1);
    Ok(builder.with_metrics_recorder(metrics.clone()).build().await?)
}

fn counter(metrics: &DefaultMetricsRecorder, name: &str, labels: &[(&str, &str)]) -> u64 {
    match metrics.snapshot().by_name_and_labels(name, labels).map(|metric| &metric.value) {
        Some(&MetricValue::Counter(count)) => count,
        _ => 0,
    }
}

fn block_reads(metrics: &DefaultMetricsRecorder) -> u64 {
    let labels = [("entry_kind", "data_block"), ("result", "miss")];
    counter(metrics, db_cache_stats::ACCESS_COUNT, &labels)
}

/// Runs everything under one policy, or without a filter.
pub(crate) async fn run(policy: Option<Arc<dyn FilterPolicy>>, keys: u64) -> Result<Outcome> {
    let (policies, profile) = match policy {
        None => (vec![], Arc::default()),
        Some(policy) => {
            let (policy, profile) = Profiled::new(policy);
            (vec![policy as Arc<dyn FilterPolicy>], profile)
        }
    };
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let metrics = Arc::new(DefaultMetricsRecorder::new());

    let start = seconds();
    let db = open(&store, &policies, &metrics).await?;
    for table in 0..TABLES {
        let of_table = (table..keys).step_by(TABLES as usize).collect::<Vec<_>>();
        for some in of_table.chunks(1_000) {
            let mut batch = WriteBatch::new();
            for &i in some {
                batch.put(key(i, keys), i.to_le_bytes());
            }
            db.write(batch).await?;
        }
        db.flush_with_options(FlushOptions { flush_type: FlushType::MemTable }).await?;
    }
    db.close().await?;
    let write_seconds = seconds() - start;

    let db = open(&store, &policies, &metrics).await?;
    // Filters and indexes are loaded before the clock runs.
    db.get(b"000000/0").await?;
    let mut wrong = 0;
    let mut phases = [Phase::default(); 3];
    let gets = keys / 10;
    for (number, phase) in phases.iter_mut().enumerate() {
        let (reads, began) = (block_reads(&metrics), seconds());
        profile.start();
        for n in 0..gets {
            match number {
                0 => wrong += u64::from(db.get(key(keys + n, keys)).await?.is_some()),
                1 => {
                    let i = n * 10 + n % 10;
                    let found = db.get(key(i, keys)).await?;
                    wrong += u64::from(found.as_deref() != Some(&i.to_le_bytes()));
                }
                // Tenants with keys and, in every other scan, tenants that sort among them and have
                // none.
                _ if n % 10 == 0 => {
                    let tenant = n / 10 % (keys / KEYS_PER_TENANT).max(1);
                    let (start, expected) = match n / 10 % 2 {
                        0 => (format!("{tenant:06x}/"), true),
                        _ => (format!("{tenant:06x}-"), false),
                    };
                    // Every other scan is a range that ends where the next prefix begins.
                    let mut rows = match n / 20 % 2 {
                        0 => db.scan_prefix(start.as_bytes(), ..).await?,
                        _ => {
                            let mut end = start.clone().into_bytes();
                            *end.last_mut().expect("not empty") += 1;
                            db.scan(start.as_bytes()..end.as_slice()).await?
                        }
                    };
                    let mut found = false;
                    while let Some(row) = rows.next().await? {
                        wrong += u64::from(!row.key.starts_with(start.as_bytes()));
                        found = true;
                    }
                    wrong += u64::from(found != expected);
                }
                _ => {}
            }
        }
        phase.seconds = seconds() - began;
        phase.block_reads = block_reads(&metrics) - reads;
        phase.probes = profile.stop();
    }
    let counters =
        [SST_FILTER_NEGATIVE_COUNT, SST_FILTER_POSITIVE_COUNT, SST_FILTER_FALSE_POSITIVE_COUNT];
    let range_tables =
        counters.map(|name| counter(&metrics, name, &[(FILTER_KIND_LABEL, FILTER_KIND_RANGE)]));
    db.close().await?;
    let [absent, present, scans] = phases;
    Ok(Outcome {
        wrong,
        write_seconds,
        absent,
        present,
        scans,
        range_tables,
        filter_bytes: profile.bytes(),
        build_ns_per_key: profile.build_ns_per_key(),
        decode_us: profile.decode_us(),
    })
}
