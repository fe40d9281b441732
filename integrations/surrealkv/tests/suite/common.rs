//! Policies, and databases that write small tables and small partitions.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blocked_bloom::Sizing;
use blocked_bloom_surrealkv::BlockedBloomPolicy;
use surrealkv::{CompactRangeOptions, FilterPolicy, Options, Tree, TreeBuilder};

pub(crate) fn ours(sizing: Sizing) -> Arc<BlockedBloomPolicy> {
    Arc::new(BlockedBloomPolicy::new(sizing).unwrap())
}

pub(crate) fn theirs() -> Arc<dyn FilterPolicy> {
    Options::default().filter_policy.unwrap()
}

/// Counts the answers of a policy.
pub(crate) struct Counted {
    policy: Arc<dyn FilterPolicy>,
    pub(crate) absent: AtomicU64,
    pub(crate) maybe: AtomicU64,
}

impl Counted {
    pub(crate) fn new(policy: Arc<dyn FilterPolicy>) -> Arc<Self> {
        Arc::new(Counted { policy, absent: AtomicU64::new(0), maybe: AtomicU64::new(0) })
    }

    /// Returns the numbers of keys that were ruled out and that were not, and resets them.
    pub(crate) fn take(&self) -> (u64, u64) {
        (self.absent.swap(0, Ordering::Relaxed), self.maybe.swap(0, Ordering::Relaxed))
    }
}

impl FilterPolicy for Counted {
    fn name(&self) -> &str {
        self.policy.name()
    }

    fn may_contain(&self, filter: &[u8], key: &[u8]) -> bool {
        let maybe = self.policy.may_contain(filter, key);
        let count = if maybe { &self.maybe } else { &self.absent };
        count.fetch_add(1, Ordering::Relaxed);
        maybe
    }

    fn create_filter(&self, keys: &[Vec<u8>]) -> Vec<u8> {
        self.policy.create_filter(keys)
    }

    fn key_hash(&self, key: &[u8]) -> u64 {
        self.policy.key_hash(key)
    }

    fn create_filter_from_hashes(&self, hashes: &[u64]) -> Vec<u8> {
        self.policy.create_filter_from_hashes(hashes)
    }

    fn filter_keys_per_partition(&self, partition_bytes: usize) -> usize {
        self.policy.filter_keys_per_partition(partition_bytes)
    }
}

pub(crate) fn open(path: &Path, policy: Option<Arc<dyn FilterPolicy>>, partition: usize) -> Tree {
    let builder = TreeBuilder::new().with_path(path.to_path_buf()).with_filter_policy(policy);
    builder.with_block_size(256).with_index_partition_size(partition).build().unwrap()
}

/// Flushes the memtable into a table of level 0.
pub(crate) fn flush(tree: &Tree) {
    let options = CompactRangeOptions {
        flush_memtable: true,
        target_level: Some(0),
        rewrite_bottommost: false,
    };
    tree.compact_range(None, None, &options).unwrap();
}

pub(crate) fn compact(tree: &Tree) {
    tree.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
}

pub(crate) async fn put(tree: &Tree, keys: impl Iterator<Item = String>) {
    let mut transaction = tree.begin().unwrap();
    for key in keys {
        transaction.set(key.as_bytes(), key.as_bytes()).unwrap();
    }
    transaction.commit().await.unwrap();
}
