//! Trees with any kind and place of filters.

use std::path::Path;
use std::sync::Arc;

use lsm_tree::config::BloomConstructionPolicy::{BitsPerKey, FalsePositiveRate};
use lsm_tree::config::FilterPolicyEntry::{self, BlockedBloom, Bloom};
use lsm_tree::config::{BlockSizePolicy, FilterPolicy, PartitioningPolicy, PinningPolicy};
use lsm_tree::{AbstractTree, AnyTree, Cache, Config, KvSeparationOptions, SeqNo};

pub(crate) const POLICIES: [FilterPolicyEntry; 6] = [
    BlockedBloom(BitsPerKey(10.0)),
    Bloom(BitsPerKey(10.0)),
    BlockedBloom(FalsePositiveRate(0.0001)),
    Bloom(FalsePositiveRate(0.0001)),
    BlockedBloom(BitsPerKey(0.0)),
    FilterPolicyEntry::None,
];

/// Where a tree keeps its filters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) pinned: bool,
    pub(crate) partitioned: bool,
    /// Whether large values are stored in separate files.
    pub(crate) blobs: bool,
}

pub(crate) const PLACES: [Place; 4] = [
    Place { pinned: true, partitioned: false, blobs: false },
    Place { pinned: false, partitioned: false, blobs: false },
    Place { pinned: false, partitioned: true, blobs: false },
    Place { pinned: true, partitioned: false, blobs: true },
];

pub(crate) fn open(folder: &Path, policy: FilterPolicyEntry, place: Place) -> AnyTree {
    Config::new(folder, Default::default(), Default::default())
        .use_cache(Arc::new(Cache::with_capacity_bytes(1 << 20)))
        .data_block_size_policy(BlockSizePolicy::all(200))
        .filter_policy(FilterPolicy::all(policy))
        .filter_block_pinning_policy(PinningPolicy::all(place.pinned))
        .filter_block_partitioning_policy(PartitioningPolicy::all(place.partitioned))
        .with_kv_separation(
            place.blobs.then(|| KvSeparationOptions::default().separation_threshold(3)),
        )
        .open()
        .unwrap()
}

/// Looks up all keys in both ways, which must agree.
pub(crate) fn get<K: AsRef<[u8]>>(tree: &AnyTree, keys: &[K]) -> Vec<Option<Vec<u8>>> {
    let at_once = tree.multi_get(keys, SeqNo::MAX).unwrap();
    let single = keys.iter().map(|key| tree.get(key, SeqNo::MAX).unwrap());
    let single: Vec<_> = single.map(|value| value.map(|value| value.to_vec())).collect();
    assert_eq!(at_once.len(), keys.len());
    for (i, (at_once, single)) in at_once.iter().zip(&single).enumerate() {
        assert_eq!(at_once.as_deref(), single.as_deref(), "key {i} of {}", keys.len());
    }
    single
}
