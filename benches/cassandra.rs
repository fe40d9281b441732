//! Cassandra filters up to one that outgrows every cache: asked and filled key by key, in batches, and hashed beforehand.
//!
//! `cargo bench --features interop-cassandra --bench cassandra`: half a minute, and 100 MB of memory. `docs/cassandra.md` says why a
//! batch gains what it does.

#![allow(missing_docs, reason = "criterion's macros")]

use std::hint::black_box;
use std::time::Duration;

use blocked_bloom::Bitmask;
use blocked_bloom::interop::cassandra::{
    CassandraFilter, CassandraFilterBuilder, Hash128, Layout, murmur3,
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const BATCH: usize = 4096;

/// Ten bits per key and five probes: 125 KB, 12.5 MB and 100 MB.
const PARTITIONS: [u64; 3] = [100_000, 10_000_000, 80_000_000];

fn key(i: u64) -> [u8; 8] {
    i.to_be_bytes()
}

fn query(criterion: &mut Criterion) {
    for partitions in PARTITIONS {
        let mut builder = CassandraFilterBuilder::new(Layout::Since4, partitions, 0.01)
            .expect("memory for the filter");
        builder.extend((0..partitions).map(key));
        let file = builder.finish();
        let filter = CassandraFilter::from_bytes(&file, Layout::Since4).expect("a whole file");
        for (mix, first) in [("absent", partitions), ("present", 0)] {
            // Keys in no order, batch after batch.
            let keys: Vec<[u8; 8]> = (0..1 << 19)
                .map(|i: u64| key(first + i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % partitions))
                .collect();
            let hashes: Vec<Hash128> = keys.iter().map(murmur3).collect();
            let mut keys = keys.chunks_exact(BATCH).cycle();
            let mut next_keys = || black_box(keys.next().unwrap_or_default());
            let mut hashes = hashes.chunks_exact(BATCH).cycle();
            let mut next_hashes = || black_box(hashes.next().unwrap_or_default());
            let mut hits = Bitmask::new();

            let mut group = criterion.benchmark_group(format!("cassandra/{mix}"));
            group.throughput(Throughput::Elements(BATCH as u64));
            group.warm_up_time(Duration::from_millis(300));
            group.measurement_time(Duration::from_secs(1));
            group.bench_function(BenchmarkId::new("keys, one by one", partitions), |bencher| {
                bencher.iter(|| next_keys().iter().filter(|key| filter.contains(key)).count());
            });
            group.bench_function(BenchmarkId::new("keys, batch", partitions), |bencher| {
                bencher.iter(|| filter.contains_batch(next_keys(), &mut hits));
            });
            group.bench_function(BenchmarkId::new("hashes, one by one", partitions), |bencher| {
                bencher.iter(|| {
                    next_hashes().iter().filter(|&&hash| filter.contains_hash(hash)).count()
                });
            });
            group.bench_function(BenchmarkId::new("hashes, batch", partitions), |bencher| {
                bencher.iter(|| filter.contains_hashes(next_hashes(), &mut hits));
            });
        }
    }
}

fn build(criterion: &mut Criterion) {
    for partitions in PARTITIONS {
        let mut builder = CassandraFilterBuilder::new(Layout::Since4, partitions, 0.01)
            .expect("memory for the filter");
        let hashes: Vec<Hash128> = (0..1 << 19).map(|i| murmur3(key(i))).collect();
        let mut hashes = hashes.chunks_exact(BATCH).cycle();
        let mut next = || black_box(hashes.next().unwrap_or_default());
        let mut group = criterion.benchmark_group("cassandra/insert");
        group.throughput(Throughput::Elements(BATCH as u64));
        group.warm_up_time(Duration::from_millis(300));
        group.measurement_time(Duration::from_secs(1));
        group.bench_function(BenchmarkId::new("hashes, one by one", partitions), |bencher| {
            bencher.iter(|| next().iter().for_each(|&hash| _ = builder.insert_hash(hash)));
        });
        group.bench_function(BenchmarkId::new("hashes, batch", partitions), |bencher| {
            bencher.iter(|| builder.insert_hashes(next()));
        });
    }
}

criterion_group!(benches, query, build);
criterion_main!(benches);
