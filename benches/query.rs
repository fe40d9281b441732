//! Batch queries: every kernel on filters that fit the caches and on ones that do not, absent and present keys.
//!
//! `cargo bench` runs all in about two minutes; `cargo bench --bench query -- avx2` one kernel, `-- absent` one mix.

#![allow(missing_docs, reason = "criterion's macros")]

use std::hint::black_box;
use std::time::Duration;

use blocked_bloom::{Bitmask, BloomFilterBuilder, Kernel, KeyHasher, Sizing};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const BATCH: usize = 4096;

fn query(criterion: &mut Criterion) {
    let hasher = KeyHasher::default();
    let hash = |key: u64| hasher.hash(key.to_le_bytes());
    for keys in [10_000, 100_000, 1_000_000, 10_000_000] {
        let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(10.0));
        (0..keys).for_each(|key| builder.insert_hash(hash(key)));
        let filter = builder.finish().expect("ten bits per key are legal");
        // Batch after batch asks about other keys, as many as touch the filter all over.
        let count = keys.clamp(1 << 16, 1 << 20) & !(BATCH as u64 - 1);
        let mixes = [
            ("absent", (0..count).map(|i| hash(keys + i)).collect::<Vec<_>>()),
            ("present", (0..count).map(|i| hash(i * 7_919 % keys)).collect()),
        ];
        for (mix, hashes) in &mixes {
            let mut group = criterion.benchmark_group(format!("contains_hashes/{mix}"));
            group.throughput(Throughput::Elements(BATCH as u64));
            group.warm_up_time(Duration::from_millis(500));
            group.measurement_time(Duration::from_secs(2));
            let mut batches = hashes.chunks_exact(BATCH).cycle();
            for kernel in Kernel::supported() {
                let view = filter.view().with_kernel(kernel);
                let mut hits = Bitmask::new();
                group.bench_function(BenchmarkId::new(kernel.name(), keys), |bencher| {
                    bencher.iter(|| {
                        let batch = batches.next().unwrap_or_default();
                        view.contains_hashes(black_box(batch), &mut hits);
                    });
                });
            }
            let view = filter.view();
            group.bench_function(BenchmarkId::new("one by one", keys), |bencher| {
                bencher.iter(|| {
                    let batch = black_box(batches.next().unwrap_or_default());
                    batch.iter().filter(|&&hash| view.contains_hash(hash)).count()
                });
            });
        }
    }
}

criterion_group!(benches, query);
criterion_main!(benches);
