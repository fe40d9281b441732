//! Sets of sorted keys.

use blocked_bloom_range::{RangeFilter, RangeOptions};

use crate::common::Random;

pub(crate) fn built(bits_per_key: f64, unit: u32, keys: &[u64]) -> RangeFilter {
    let mut builder = RangeOptions::new(bits_per_key).with_unit(unit).builder();
    keys.iter().for_each(|&key| builder.insert(key).unwrap());
    builder.finish().unwrap()
}

pub(crate) fn built_of_bytes<K: AsRef<[u8]>>(bits: f64, unit: u32, keys: &[K]) -> RangeFilter {
    let mut builder = RangeOptions::new(bits).with_unit(unit).builder();
    keys.iter().for_each(|key| builder.insert(key.as_ref()).unwrap());
    builder.finish().unwrap()
}

fn sorted(mut keys: Vec<u64>) -> Vec<u64> {
    keys.sort_unstable();
    keys
}

pub(crate) fn uniform(seed: u64, count: u64) -> Vec<u64> {
    sorted(Random(seed).hashes(count as usize))
}

/// Runs of 100 keys, 1 to 200 apart.
pub(crate) fn clustered(seed: u64, count: u64) -> Vec<u64> {
    let mut random = Random(seed);
    let mut keys = Vec::new();
    for _ in 0..count.div_ceil(100) {
        let mut key = random.next() >> 1;
        keys.extend((0..100).map(|_| {
            key += 1 + random.next() % 200;
            key
        }));
    }
    sorted(keys)
}

/// `id | time`: an id of 24 bits, and 40 bits of milliseconds, of 100 points 10 to 12 s apart.
pub(crate) fn series(seed: u64, count: u64) -> Vec<u64> {
    let mut random = Random(seed);
    let mut keys = Vec::new();
    for _ in 0..count.div_ceil(100) {
        let id = random.next() >> 40;
        let mut time = 0xe8_0000_0000 + random.next() % 3_600_000;
        keys.extend((0..100).map(|_| {
            time += 10_000 + random.next() % 2_000;
            id << 40 | time
        }));
    }
    sorted(keys)
}

/// Sets with keys at every kind of edge.
pub(crate) fn all() -> Vec<(&'static str, Vec<u64>)> {
    let edges = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
    let edges = edges.flat_map(|key| [key, !key]).chain([0, 0, u64::MAX, u64::MAX]).collect();
    let blocks = (0..3_000_u64).flat_map(|i| [(i << 18) - u64::from(i > 0), i << 18]).collect();
    vec![
        ("none", vec![]),
        ("one", vec![77]),
        ("0 and the greatest", vec![0, u64::MAX]),
        ("powers of two", sorted(edges)),
        ("borders of blocks", sorted(blocks)),
        ("every second", (0..20_000).map(|i| 2 * i).collect()),
        ("dense, then sparse", (0..5_000).chain((1..5_000).map(|i| i << 40)).collect()),
        ("each twice", (0..20_000).map(|i| i / 2 * 977).collect()),
        ("uniform", uniform(1, 20_000)),
        ("clustered", clustered(2, 20_000)),
        ("id | time", series(3, 20_000)),
    ]
}
