//! Building: sizing, inserting hashes by every kernel, and `finish` with one thread and two.
//!
//! `cargo bench --bench build -- finish` runs one group.

#![allow(missing_docs, reason = "criterion's macros")]

use std::hint::black_box;
use std::time::Duration;

use blocked_bloom::{BloomFilter, BloomFilterBuilder, Kernel, KeyHash, KeyHasher, Sizing};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const TEN: Sizing = Sizing::BitsPerKey(10.0);

fn hashes(count: u64) -> Vec<u64> {
    let hasher = KeyHasher::default();
    (0..count).map(|key| hasher.hash(key.to_le_bytes())).collect()
}

fn sizing(criterion: &mut Criterion) {
    for sizing in [TEN, Sizing::FalsePositiveRate(0.01)] {
        criterion.bench_function(&format!("sizing/{sizing}"), |bencher| {
            bencher.iter(|| sizing.params(black_box(1_000_000)));
        });
    }
}

fn insert(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("insert_hashes");
    for keys in [10_000, 100_000, 1_000_000] {
        let hashes = hashes(keys);
        group.throughput(Throughput::Elements(keys));
        for kernel in Kernel::supported() {
            let params = TEN.params(keys).expect("ten bits per key are legal");
            let filter = BloomFilter::with_params(params, KeyHash::default()).expect("memory");
            let mut filter = filter.with_kernel(kernel);
            group.bench_function(BenchmarkId::new(kernel.name(), keys), |bencher| {
                bencher.iter(|| filter.insert_hashes(black_box(&hashes)));
            });
        }
    }
}

fn finish(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("finish");
    group.sample_size(10).warm_up_time(Duration::from_millis(500));
    for keys in [1 << 20, 1 << 22, 10_000_000] {
        let mut builder = BloomFilterBuilder::new(TEN);
        hashes(keys).into_iter().for_each(|hash| builder.insert_hash(hash));
        group.throughput(Throughput::Elements(keys));
        for threads in [1, 2] {
            let pool =
                rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            group.bench_function(BenchmarkId::new(format!("{threads} threads"), keys), |bencher| {
                let build = |builder: BloomFilterBuilder| pool.install(|| builder.finish());
                bencher.iter_batched(|| builder.clone(), build, BatchSize::PerIteration);
            });
        }
    }
}

criterion_group!(benches, sizing, insert, finish);
criterion_main!(benches);
