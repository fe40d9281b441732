//! Cassandra filters up to one that outgrows every cache: looked up and filled key by key, in batches, and hashed beforehand.
//!
//! `cassandra/hash_batch/80M/absent`: how, partitions in the filter (ten bits each, five probes), keys looked up. `key` and `hash` go one
//! by one, `key_batch` and `hash_batch` by 4096; `key` hashes keys of 8 bytes, `insert_hash` and `insert_hash_batch` add what was
//! hashed. An iteration is 4096 keys.
//!
//! `cargo bench --bench cassandra` takes a minute and 120 MB of memory; `-- cassandra/hash` measures a part,
//! `BLOCKED_BLOOM_BENCH=full` one size more. `docs/foreign.md` says why a batch gains what it does.

#![allow(missing_docs, reason = "criterion's macros")]

use std::cell::LazyCell;
use std::hint::black_box;

use benches::{ITERATION, Size, is_full};
use blocked_bloom::Bitmask;
use blocked_bloom_formats::cassandra::{CassandraFilter, Hash128, Layout, hash_key};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// 125 KB, 12.5 MB and 100 MB.
fn sizes() -> impl Iterator<Item = Size> {
    let sizes = [Size(100_000, "100k"), Size(10_000_000, "10M"), Size(80_000_000, "80M")];
    sizes.into_iter().filter(|&Size(keys, _)| is_full() || keys != 10_000_000)
}

fn empty(Size(partitions, _): Size) -> CassandraFilter {
    CassandraFilter::new(Layout::Since4, partitions, 0.01).expect("memory for the filter")
}

fn key(i: u64) -> [u8; 8] {
    i.to_be_bytes()
}

/// Keys `first .. first + partitions` in no order.
fn keys(first: u64, Size(partitions, _): Size) -> Vec<[u8; 8]> {
    let key = |i: u64| key(first + i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % partitions);
    (0..1 << 19).map(key).collect()
}

fn query(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("cassandra");
    group.throughput(Throughput::Elements(ITERATION as u64));
    for size in sizes() {
        let file = LazyCell::new(|| {
            let (mut filter, mut hashes) = (empty(size), Vec::new());
            for start in (0..size.0).step_by(1 << 16) {
                hashes.clear();
                hashes.extend((start..size.0.min(start + (1 << 16))).map(|i| hash_key(key(i))));
                filter.insert_hashes(&hashes);
            }
            filter.into_inner()
        });
        let filter = LazyCell::new(|| {
            CassandraFilter::from_bytes(&file[..], Layout::Since4).expect("a whole file")
        });
        for (mix, first) in [("absent", size.0), ("present", 0)] {
            let keys = LazyCell::new(|| keys(first, size));
            let hashes: LazyCell<Vec<Hash128>, _> =
                LazyCell::new(|| keys.iter().map(hash_key).collect());
            // Batch after batch, going on from sample to sample.
            let mut start = 0;
            let mut batch = || {
                start = (start + ITERATION) % (1 << 19);
                start..start + ITERATION
            };
            let mut hits = Bitmask::new();
            let row = |way| format!("{way}/{}/{mix}", size.1);
            group.bench_function(row("key"), |bencher| {
                let (filter, keys) = (&*filter, &keys[..]);
                bencher.iter(|| keys[batch()].iter().filter(|key| filter.contains(key)).count());
            });
            group.bench_function(row("key_batch"), |bencher| {
                let (filter, keys) = (&*filter, &keys[..]);
                bencher.iter(|| filter.contains_batch(black_box(&keys[batch()]), &mut hits));
            });
            group.bench_function(row("hash"), |bencher| {
                let (filter, hashes) = (&*filter, &hashes[..]);
                bencher.iter(|| {
                    hashes[batch()].iter().filter(|&&hash| filter.contains_hash(hash)).count()
                });
            });
            group.bench_function(row("hash_batch"), |bencher| {
                let (filter, hashes) = (&*filter, &hashes[..]);
                bencher.iter(|| filter.contains_hashes(black_box(&hashes[batch()]), &mut hits));
            });
        }
    }
}

fn insert(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("cassandra");
    group.throughput(Throughput::Elements(ITERATION as u64));
    let hashes: LazyCell<Vec<Hash128>> =
        LazyCell::new(|| (0..1 << 19).map(|i| hash_key(key(i))).collect());
    for size in sizes() {
        let mut filled = None;
        let mut start = 0;
        let mut batch = || {
            start = (start + ITERATION) % (1 << 19);
            start..start + ITERATION
        };
        group.bench_function(format!("insert_hash/{}", size.1), |bencher| {
            let (filter, hashes) = (filled.get_or_insert_with(|| empty(size)), &hashes[..]);
            bencher.iter(|| {
                for &hash in &hashes[batch()] {
                    filter.insert_hash(hash);
                }
            });
        });
        group.bench_function(format!("insert_hash_batch/{}", size.1), |bencher| {
            let (filter, hashes) = (filled.get_or_insert_with(|| empty(size)), &hashes[..]);
            bencher.iter(|| filter.insert_hashes(black_box(&hashes[batch()])));
        });
    }
}

criterion_group!(name = benches; config = benches::criterion(env!("CARGO_CRATE_NAME")); targets = query, insert);
criterion_main!(benches);
