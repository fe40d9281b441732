//! Lookups and insertions with every kernel, and the memory-bound baseline, in filters that fit the
//! caches and in larger ones. criterion stores the times under the rows' names, so that two commits
//! can be compared.
//!
//! `query/avx2/10k/absent/k6/4096`: kernel, keys in the filter (ten bits each), keys looked up,
//! probes, keys a call; `insert/avx2/10k/k6/4096` the same, `insert_new` is told which keys were
//! new. An iteration is 4096 keys. `baseline` and `baseline_ahead`, which prefetches, load one line
//! per key and test nothing. Names differ from machine to machine only where a CPU lacks a kernel,
//! since criterion finds a stored time by name.
//!
//! `cargo bench -p blocked-bloom-benches --bench query` takes two minutes and 300 MB of memory, `--
//! 'query/avx2/10k'` measures a part. `blocked-bloom bench` measures in interleaved rounds, other
//! mixes, probes and batches, single keys, whole keys, and whole filters.

#![allow(missing_docs, reason = "criterion's macros")]

use std::cell::LazyCell;
use std::hint::black_box;
use std::time::Duration;

use benches::baseline::{BASELINES, load_lines};
use benches::rows::{ITERATION, SIZES};
use benches::workload::{Mix, lookup_count};
use blocked_bloom::{Bitmask, Kernel};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn rows(criterion: &mut Criterion) {
    for (size, mix) in SIZES.into_iter().flat_map(|s| [Mix::Absent, Mix::Present].map(|m| (s, m))) {
        let filter = LazyCell::new(|| size.filled());
        let lookups = LazyCell::new(|| mix.lookups(size.0, lookup_count(size.0)));
        let mut bench = |group: &str, row: String, run: &mut dyn FnMut(&[u64])| {
            let mut group = criterion.benchmark_group(group);
            let (elements, bytes) = (ITERATION as u64, 64 * ITERATION as u64);
            group.throughput(Throughput::ElementsAndBytes { elements, bytes });
            group.bench_function(row, |bencher| {
                // Each iteration gets a new batch: otherwise the caches would only have to hold the
                // lines of one batch instead of the filter.
                let mut batches = lookups.chunks(ITERATION).cycle();
                bencher.iter(|| run(black_box(batches.next().unwrap_or_default())));
            });
        };
        let at = format!("{}/{}", size.1, mix.name());
        for (name, ahead) in BASELINES {
            bench("query", format!("{name}/{at}/{ITERATION}"), &mut |hashes| {
                black_box(load_lines(filter.blocks(), hashes, ahead));
            });
        }
        for kernel in Kernel::supported() {
            let mut hits = Bitmask::new();
            bench("query", format!("{kernel}/{at}/k6/{ITERATION}"), &mut |hashes| {
                filter.view().with_kernel(kernel).contains_hashes(hashes, &mut hits);
            });
        }
        // The keys are not yet in the filter. Setting a bit that is already set costs the same,
        // since no kernel tests it first.
        for kernel in Kernel::supported().filter(|_| mix == Mix::Absent) {
            let [mut silent, mut says] =
                [(); 2].map(|()| LazyCell::new(|| size.empty().with_kernel(kernel)));
            let (row, mut new) = (format!("{kernel}/{}/k6/{ITERATION}", size.1), Bitmask::new());
            bench("insert", row.clone(), &mut |h| _ = black_box(silent.insert_hashes(h)));
            bench("insert_new", row, &mut |h| _ = black_box(says.insert_hashes_new(h, &mut new)));
        }
    }
}

/// A second and a half for a row. Neighbours on the machine move it by some percent; more
/// resamplings only take time.
fn settings() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(50)
        .nresamples(10_000)
        .noise_threshold(0.03)
}

criterion_group!(name = benches; config = settings(); targets = rows);
criterion_main!(benches);
