//! Helpers of the test files: prefix rules, databases that write small tables, and the engine's
//! counters.
#![allow(dead_code, reason = "each test file uses a part")]

use std::sync::Arc;
use std::time::Duration;

use blocked_bloom::Sizing;
use blocked_bloom_slatedb::BlockedBloomPolicy;
use slatedb::bytes::Bytes;
use slatedb::config::{CompactorOptions, FlushOptions, FlushType, Settings};
use slatedb::db_stats::{FILTER_KIND_LABEL, SST_FILTER_NEGATIVE_COUNT};
use slatedb::object_store::ObjectStore;
use slatedb::{
    BloomFilterPolicy, Db, DbIterator, FilterPolicy, PrefixExtractor, PrefixTarget, RowEntry,
    ValueDeletable,
};
use slatedb_common::metrics::{DefaultMetricsRecorder, MetricValue};

/// The first bytes of a key.
pub(crate) struct First(pub(crate) usize, pub(crate) &'static str);

impl PrefixExtractor for First {
    fn name(&self) -> &str {
        self.1
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        let (PrefixTarget::Point(bytes) | PrefixTarget::Prefix(bytes)) = target;
        (bytes.len() >= self.0).then_some(self.0)
    }
}

/// A key up to its last slash. Further bytes can move that slash, so no scan has this prefix.
pub(crate) struct LastSlash;

impl PrefixExtractor for LastSlash {
    fn name(&self) -> &str {
        "last-slash"
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        match target {
            PrefixTarget::Point(key) => key.iter().rposition(|&byte| byte == b'/').map(|i| i + 1),
            PrefixTarget::Prefix(_) => None,
        }
    }
}

pub(crate) fn first_two_bytes() -> Arc<dyn PrefixExtractor> {
    Arc::new(First(2, "first-2"))
}

pub(crate) fn sizing() -> Sizing {
    Sizing::BitsPerKey(10.0)
}

/// Whole keys, keys and prefixes, or only prefixes.
pub(crate) fn ours() -> [BlockedBloomPolicy; 3] {
    let policy = || BlockedBloomPolicy::new(sizing()).unwrap();
    [policy(), policy().prefixes(first_two_bytes()), policy().only_prefixes(first_two_bytes())]
}

pub(crate) fn theirs() -> Arc<dyn FilterPolicy> {
    Arc::new(BloomFilterPolicy::new(10).with_prefix_extractor(first_two_bytes()))
}

pub(crate) fn entry(key: &[u8]) -> RowEntry {
    let key = Bytes::copy_from_slice(key);
    RowEntry { key, value: ValueDeletable::Tombstone, seq: 0, create_ts: None, expire_ts: None }
}

pub(crate) fn bytes(text: impl AsRef<[u8]>) -> Bytes {
    Bytes::copy_from_slice(text.as_ref())
}

/// A database with a filter for every table, however small.
pub(crate) async fn open(
    store: &Arc<dyn ObjectStore>,
    policies: Vec<Arc<dyn FilterPolicy>>,
    compact: bool,
) -> (Db, Arc<DefaultMetricsRecorder>) {
    let compactor = CompactorOptions {
        poll_interval: Duration::from_millis(10),
        commit_compacted_interval: Duration::from_millis(10),
        ..CompactorOptions::default()
    };
    let settings = Settings {
        min_filter_keys: 0,
        flush_interval: Some(Duration::from_millis(2)),
        manifest_poll_interval: Duration::from_millis(10),
        compactor_options: compact.then_some(compactor),
        garbage_collector_options: None,
        l0_max_ssts: 1_000,
        l0_max_ssts_per_key: 1_000,
        ..Settings::default()
    };
    let metrics = Arc::new(DefaultMetricsRecorder::new());
    let builder = Db::builder("db", Arc::clone(store)).with_settings(settings);
    let builder = builder.with_filter_policies(policies).with_metrics_recorder(metrics.clone());
    // Without a cache, each lookup reads its filter again, so the bytes on disk answer it.
    let db = builder.with_db_cache_disabled().build().await.unwrap();
    (db, metrics)
}

/// Ends a table.
pub(crate) async fn flush(db: &Db) {
    db.flush_with_options(FlushOptions { flush_type: FlushType::MemTable }).await.unwrap();
}

/// Waits until the compactor has rewritten all tables.
pub(crate) async fn compacted(db: &Db) {
    for _ in 0..3_000 {
        let manifest = db.manifest();
        if manifest.l0().is_empty() && !manifest.compacted().is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the compactor did nothing in 30 seconds: {:?}", db.manifest().l0().len());
}

pub(crate) async fn keys_of(mut rows: DbIterator) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    while let Some(row) = rows.next().await.unwrap() {
        keys.push(row.key.to_vec());
    }
    keys
}

/// Tables that filters ruled out: `kind` is one of the engine's labels.
pub(crate) fn ruled_out(metrics: &DefaultMetricsRecorder, kind: &str) -> u64 {
    let snapshot = metrics.snapshot();
    let metric =
        snapshot.by_name_and_labels(SST_FILTER_NEGATIVE_COUNT, &[(FILTER_KIND_LABEL, kind)]);
    match metric.map(|metric| &metric.value) {
        Some(&MetricValue::Counter(count)) => count,
        other => panic!("no counter: {other:?}"),
    }
}
