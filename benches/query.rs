//! Batch queries: every kernel on filters that fit the caches and on ones that do not, absent and present keys, beside loops that
//! load one line per key and test nothing.
//!
//! `cargo bench` runs all in about three minutes; `cargo bench --bench query -- avx2` one kernel, `-- absent` one mix.
//! `blocked-bloom bench` measures the same in interleaved rounds, with more comparisons.

#![allow(missing_docs, reason = "criterion's macros")]

#[allow(dead_code, reason = "shared with the command-line tool")]
#[path = "../src/bin/blocked-bloom/bench/limits.rs"]
mod limits;
#[allow(dead_code, reason = "shared with the command-line tool")]
#[path = "../src/bin/blocked-bloom/bench/workload.rs"]
mod workload;

use std::hint::black_box;
use std::time::Duration;

use blocked_bloom::{Bitmask, Kernel, Sizing};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use workload::{Mix, filled, question_count};

const BATCH: usize = 4096;

fn query(criterion: &mut Criterion) {
    for keys in [10_000, 100_000, 1_000_000, 10_000_000] {
        let params = Sizing::BitsPerKey(10.0).params(keys).expect("ten bits per key are legal");
        let filter = filled(params, keys).expect("memory for the filter");
        let view = filter.view();
        for mix in [Mix::Absent, Mix::Present] {
            // Batch after batch asks about other keys, as many as touch the filter all over.
            let hashes = mix.questions(keys, question_count(keys));
            let mut batches = hashes.chunks_exact(BATCH).cycle();
            let mut next = || black_box(batches.next().unwrap_or_default());
            let mut group = criterion.benchmark_group(format!("contains_hashes/{}", mix.name()));
            group.throughput(Throughput::Elements(BATCH as u64));
            group.warm_up_time(Duration::from_millis(300));
            group.measurement_time(Duration::from_secs(2));
            for kernel in Kernel::supported() {
                let view = view.with_kernel(kernel);
                let mut hits = Bitmask::new();
                group.bench_function(BenchmarkId::new(kernel.name(), keys), |bencher| {
                    bencher.iter(|| view.contains_hashes(next(), &mut hits));
                });
            }
            group.bench_function(BenchmarkId::new("one by one", keys), |bencher| {
                bencher.iter(|| next().iter().filter(|&&hash| view.contains_hash(hash)).count());
            });
            for (name, ahead) in [("limit", false), ("limit ahead", true)] {
                group.bench_function(BenchmarkId::new(name, keys), |bencher| {
                    bencher.iter(|| limits::load_lines(view.blocks(), next(), ahead));
                });
            }
        }
    }
}

criterion_group!(benches, query);
criterion_main!(benches);
