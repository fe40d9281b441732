//! Lookups and inserts by every kernel, in filters that fit the caches and in ones that do not, beside the memory-bound baseline: stored by
//! criterion under the rows' names, to compare two commits.
//!
//! `query/avx2/10k/absent/k6/4096`: kernel, keys in the filter (ten bits each), keys looked up, probes, keys a call; `insert/avx2/10k/k6/4096`
//! the same. An iteration is 4096 keys. Other rows than kernels: `one_by_one` is a call for each key, `keys16` hashes keys of 16 bytes in the
//! same call. `baseline` and `baseline_ahead`, which prefetches, are the memory-bound baseline: they load one line per key and test nothing.
//! Names differ from machine to machine only where a CPU lacks a kernel, since criterion finds a stored time by name.
//!
//! `cargo bench --bench query` takes two minutes and 300 MB of memory, `-- 'query/avx2/10k'` measures a part. `blocked-bloom bench` measures
//! in interleaved rounds, other mixes, probes and batches, and whole filters.

#![allow(missing_docs, reason = "criterion's macros")]

use std::cell::LazyCell;
use std::hint::black_box;
use std::time::Duration;

use benches::baseline::{BASELINES, load_lines};
use benches::rows::{ITERATION, SIZES, Size};
use benches::workload::{Lookups, Mix, key, lookup_count};
use blocked_bloom::{Bitmask, Kernel};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn rows(criterion: &mut Criterion, size: Size) {
    let mut group = criterion.benchmark_group("query");
    let bytes = 64 * ITERATION as u64;
    group.throughput(Throughput::ElementsAndBytes { elements: ITERATION as u64, bytes });
    let (filter, count) = (LazyCell::new(|| size.filled()), lookup_count(size.0));
    for mix in [Mix::Absent, Mix::Present] {
        let mut lookups = LazyCell::new(|| mix.lookups(size.0, count));
        let mut bench = |row: String, look_up: &mut dyn FnMut(&[u64])| {
            group.bench_function(row, |bencher| {
                LazyCell::force(&filter);
                let lookups = &mut *lookups;
                bencher.iter(|| look_up(lookups.next(ITERATION)));
            });
        };
        let at = format!("{}/{}", size.1, mix.name());
        for (name, ahead) in BASELINES {
            bench(format!("{name}/{at}/{ITERATION}"), &mut |hashes| {
                black_box(load_lines(filter.blocks(), hashes, ahead));
            });
        }
        for kernel in Kernel::supported() {
            let mut hits = Bitmask::new();
            bench(format!("{}/{at}/k6/{ITERATION}", kernel.name()), &mut |hashes| {
                filter.view().with_kernel(kernel).contains_hashes(hashes, &mut hits);
            });
        }
        bench(format!("one_by_one/{at}/k6/1"), &mut |hashes| {
            black_box(hashes.iter().filter(|&&hash| filter.contains_hash(hash)).count());
        });
    }
    let mut keys = LazyCell::new(|| Lookups::new((size.0..size.0 + count as u64).map(key)));
    group.bench_function(format!("keys16/{}/absent/k6/{ITERATION}", size.1), |bencher| {
        let (keys, filter, mut hits) = (&mut *keys, &*filter, Bitmask::new());
        bencher.iter(|| filter.contains_batch(keys.next(ITERATION), &mut hits));
    });
    group.finish();

    // Keys that were not in the filter when it was made: what is set already costs the same, since no kernel looks.
    let mut group = criterion.benchmark_group("insert");
    group.throughput(Throughput::ElementsAndBytes { elements: ITERATION as u64, bytes });
    let mut lookups = LazyCell::new(|| Mix::Absent.lookups(size.0, count));
    for kernel in Kernel::supported() {
        let mut filter = LazyCell::new(|| size.empty().with_kernel(kernel));
        group.bench_function(format!("{}/{}/k6/{ITERATION}", kernel.name(), size.1), |bencher| {
            let (filter, lookups) = (&mut *filter, &mut *lookups);
            bencher.iter(|| filter.insert_hashes(lookups.next(ITERATION)));
        });
    }
    let mut filter = LazyCell::new(|| size.empty());
    group.bench_function(format!("one_by_one/{}/k6/1", size.1), |bencher| {
        let (filter, lookups) = (&mut *filter, &mut *lookups);
        bencher.iter(|| {
            for &hash in lookups.next(ITERATION) {
                _ = filter.insert_hash(hash);
            }
        });
    });
}

fn query(criterion: &mut Criterion) {
    SIZES.into_iter().for_each(|size| rows(criterion, size));
}

/// A second and a half for a row. Neighbours on the machine move it by some percent; more resamplings only take time.
fn settings() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(50)
        .nresamples(10_000)
        .noise_threshold(0.03)
}

criterion_group!(name = benches; config = settings(); targets = query);
criterion_main!(benches);
