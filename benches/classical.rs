//! The classical filters of Guava, Spark and RedisBloom: looked up by a loop as those systems have it, key by key, and in batches.
//!
//! `classical/batch/guava/80M/absent`: how, whose filter, keys in it, keys looked up. `naive` is the loop of the system: both hashes, a
//! division per probe, the next key after the last; `key` goes one by one without divisions; `batch` goes by 4096, prefetched. Keys have 8
//! bytes and rates are 1 %. `redis_chain` has four links, for 1, 2, 4 and 8 of 15 keys. An iteration is 4096 keys.
//!
//! `cargo bench --bench classical` takes two minutes and 400 MB of memory; `-- classical/batch` measures a part.

#![allow(missing_docs, reason = "criterion's macros")]

use std::cell::LazyCell;
use std::hint::black_box;

use benches::{ITERATION, Size};
use blocked_bloom::Bitmask;
use blocked_bloom_formats::guava::{self, GuavaFilter};
use blocked_bloom_formats::redis::RedisFilter;
use blocked_bloom_formats::spark::{SparkFilter, Version};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// 120 KB and 96 MB.
const SIZES: [Size; 2] = [Size(100_000, "100k"), Size(80_000_000, "80M")];

type Key = [u8; 8];

/// Distinct for distinct numbers, and in no order.
fn key(i: u64) -> Key {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

fn batches(keys: u64) -> impl Iterator<Item = Vec<Key>> {
    (0..keys)
        .step_by(1 << 16)
        .map(move |start| (start..keys.min(start + (1 << 16))).map(key).collect())
}

trait Filter {
    fn naive(&self, key: &Key) -> bool;
    fn contains(&self, key: &Key) -> bool;
    fn contains_batch(&self, keys: &[Key], hits: &mut Bitmask);
}

/// A bit of big-endian words.
fn java_bit(words: &[u8], bit: u64) -> bool {
    words[((bit / 8) ^ 7) as usize] >> (bit % 8) & 1 == 1
}

impl Filter for GuavaFilter {
    fn naive(&self, key: &Key) -> bool {
        let (shape, words) = (self.shape(), self.words());
        let guava::GuavaHash { mut h1, h2, .. } = guava::hash_key(key);
        (0..shape.probes()).all(|_| {
            let bit = (h1 & u64::MAX >> 1) % shape.bits();
            h1 = h1.wrapping_add(h2);
            java_bit(words, bit)
        })
    }

    fn contains(&self, key: &Key) -> bool {
        self.contains(key)
    }

    fn contains_batch(&self, keys: &[Key], hits: &mut Bitmask) {
        self.contains_batch(keys, hits);
    }
}

impl Filter for SparkFilter {
    fn naive(&self, key: &Key) -> bool {
        let (shape, words) = (self.shape(), self.words());
        let hash = shape.scheme().hash_long(i64::from_le_bytes(*key));
        let mut sum = i64::from(hash.h1) * i64::from(i32::MAX);
        (0..shape.probes()).all(|_| {
            sum = sum.wrapping_add(hash.h2.into());
            let number = if sum < 0 { !sum } else { sum } as u64;
            java_bit(words, number % shape.bits())
        })
    }

    fn contains(&self, key: &Key) -> bool {
        self.contains_long(i64::from_le_bytes(*key))
    }

    fn contains_batch(&self, keys: &[Key], hits: &mut Bitmask) {
        let longs: Vec<i64> = keys.iter().map(|&key| i64::from_le_bytes(key)).collect();
        self.contains_longs(&longs, hits);
    }
}

/// A chain, and the bits of its links for the naive loop.
struct Chain(RedisFilter, Vec<Vec<u8>>);

impl Filter for Chain {
    fn naive(&self, key: &Key) -> bool {
        let Chain(filter, links) = self;
        let hash = filter.hash_key(key);
        filter.links().iter().zip(links).rev().any(|(link, bits)| {
            (0..u64::from(link.shape().probes())).all(|i| {
                let bit =
                    hash.first().wrapping_add(hash.second().wrapping_mul(i)) % link.shape().bits();
                bits[(bit / 8) as usize] >> (bit % 8) & 1 == 1
            })
        })
    }

    fn contains(&self, key: &Key) -> bool {
        self.0.contains(key)
    }

    fn contains_batch(&self, keys: &[Key], hits: &mut Bitmask) {
        self.0.contains_batch(keys, hits);
    }
}

fn guava(Size(keys, _): Size) -> Box<dyn Filter> {
    let mut filter = GuavaFilter::new(keys, 0.01).expect("a legal size");
    for batch in batches(keys) {
        let hashes: Vec<_> = batch.iter().map(guava::hash_key).collect();
        filter.insert_hashes(&hashes);
    }
    Box::new(filter)
}

fn spark(Size(keys, _): Size) -> Box<dyn Filter> {
    let version = Version::V2 { seed: 0 };
    let mut filter = SparkFilter::new(version, keys, 0.01).expect("a legal size");
    for batch in batches(keys) {
        let hash = |&key: &Key| version.hash_long(i64::from_le_bytes(key));
        let hashes: Vec<_> = batch.iter().map(hash).collect();
        filter.insert_hashes(&hashes);
    }
    Box::new(filter)
}

fn redis(Size(keys, _): Size, capacity: u64) -> Box<dyn Filter> {
    let mut filter = RedisFilter::new(capacity, 0.01, Some(2)).expect("a legal size");
    for batch in batches(keys) {
        let hashes: Vec<_> = batch.iter().map(|key| filter.hash_key(key)).collect();
        filter.insert_hashes(&hashes).expect("the chain grows");
    }
    let mut links: Vec<Vec<u8>> = filter.links().iter().map(|_| Vec::new()).collect();
    let mut current = 0;
    for (_, data) in filter.dump().skip(1) {
        links[current].extend_from_slice(&data);
        current +=
            usize::from(links[current].len() as u64 * 8 == filter.links()[current].shape().bits());
    }
    Box::new(Chain(filter, links))
}

type Make = fn(Size) -> Box<dyn Filter>;

const FILTERS: [(&str, Make); 4] = [
    ("guava", guava),
    ("spark", spark),
    ("redis", |size| redis(size, size.0)),
    ("redis_chain", |size| redis(size, size.0 / 15 + 1)),
];

fn query(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("classical");
    group.throughput(Throughput::Elements(ITERATION as u64));
    for size in SIZES {
        for (name, make) in FILTERS {
            let filter = LazyCell::new(|| make(size));
            for (mix, first) in [("absent", size.0), ("present", 0)] {
                let keys = LazyCell::new(|| {
                    let key = |i: u64| key(first + i.wrapping_mul(0x5851_f42d_4c95_7f2d) % size.0);
                    (0..1 << 19).map(key).collect::<Vec<Key>>()
                });
                // Batch after batch, going on from sample to sample.
                let mut start = 0;
                let mut batch = || {
                    start = (start + ITERATION) % (1 << 19);
                    start..start + ITERATION
                };
                let mut hits = Bitmask::new();
                let row = |way| format!("{way}/{name}/{}/{mix}", size.1);
                group.bench_function(row("naive"), |bencher| {
                    let (filter, keys) = (&**filter, &keys[..]);
                    bencher.iter(|| keys[batch()].iter().filter(|key| filter.naive(key)).count());
                });
                group.bench_function(row("key"), |bencher| {
                    let (filter, keys) = (&**filter, &keys[..]);
                    bencher
                        .iter(|| keys[batch()].iter().filter(|key| filter.contains(key)).count());
                });
                group.bench_function(row("batch"), |bencher| {
                    let (filter, keys) = (&**filter, &keys[..]);
                    bencher.iter(|| filter.contains_batch(black_box(&keys[batch()]), &mut hits));
                });
            }
        }
    }
}

criterion_group!(name = benches; config = benches::criterion(env!("CARGO_CRATE_NAME")); targets = query);
criterion_main!(benches);
