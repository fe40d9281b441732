//! Queries: every kernel on filters that fit the caches and on ones that do not, absent and present keys, by numbers of probes and
//! keys a call, beside the memory-bound baseline.
//!
//! `query/avx2/10k/absent/k6/4096`: kernel, keys in the filter (ten bits each), keys looked up, probes, keys a call. An iteration
//! is 4096 keys, in as many calls as they need. Other rows than kernels: `one_by_one` looks up by a call for each, `keys16`
//! hashes keys of 16 bytes in the same call, `keys16_two_calls` in one of its own. `baseline` and `baseline_ahead`, which prefetches, are the
//! memory-bound baseline: they load one line per key and test nothing.
//!
//! `cargo bench --bench query` takes up to two minutes and 150 MB of memory: all kernels and sizes, then one of mix, probes and batch at a time
//! by the default kernel. `-- 'query/avx2/10k'` measures a part, `BLOCKED_BLOOM_BENCH=full` the whole matrix, in half an hour.
//! `blocked-bloom bench` measures in interleaved rounds, with more comparisons.

#![allow(missing_docs, reason = "criterion's macros")]

use std::cell::LazyCell;
use std::hint::black_box;

use benches::baseline::load_lines;
use benches::workload::{Mix, lookup_count};
use benches::{BASELINES, BATCHES, CACHE, ITERATION, MEMORY, PROBES, Size, is_full, lines, sizes};
use blocked_bloom::{Bitmask, Kernel};
use criterion::{Criterion, criterion_group, criterion_main};

/// If a default run measures this.
fn is_in_subset(kernel: Kernel, size: Size, probes: u32, mix: Mix, batch: usize) -> bool {
    match [probes != 6, mix != Mix::Absent, batch != ITERATION]
        .iter()
        .filter(|&&is_other| is_other)
        .count()
    {
        0 => true,
        1 => kernel == Kernel::default() && [CACHE, MEMORY].contains(&size),
        _ => false,
    }
}

fn query(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("query");
    group.throughput(lines(ITERATION));
    for size in sizes() {
        for probes in PROBES {
            let filter = LazyCell::new(|| size.filled(probes));
            for mix in Mix::ALL {
                let mut lookups = None;
                for batch in BATCHES {
                    let row = |kernel: &str| {
                        let (size, mix) = (size.1, mix.name());
                        match kernel {
                            "baseline" | "baseline_ahead" => {
                                format!("{kernel}/{size}/{mix}/{batch}")
                            }
                            _ => format!("{kernel}/{size}/{mix}/k{probes}/{batch}"),
                        }
                    };
                    let is_plain = (mix, probes) == (Mix::Absent, 6);
                    for (name, ahead) in BASELINES {
                        if !is_plain || !(is_full() || batch == ITERATION) {
                            continue;
                        }
                        group.bench_function(row(name), |bencher| {
                            let blocks = filter.blocks();
                            let lookups = lookups.get_or_insert_with(|| size.lookups(mix));
                            bencher.iter(|| {
                                for hashes in lookups.next(ITERATION).chunks(batch) {
                                    let hashes = black_box(hashes);
                                    black_box(load_lines(blocks, hashes, ahead));
                                }
                            });
                        });
                    }
                    for kernel in Kernel::supported() {
                        if !is_full() && !is_in_subset(kernel, size, probes, mix, batch) {
                            continue;
                        }
                        let mut hits = Bitmask::new();
                        group.bench_function(row(kernel.name()), |bencher| {
                            let view = filter.view().with_kernel(kernel);
                            let lookups = lookups.get_or_insert_with(|| size.lookups(mix));
                            bencher.iter(|| {
                                for hashes in lookups.next(ITERATION).chunks(batch) {
                                    view.contains_hashes(black_box(hashes), &mut hits);
                                }
                            });
                        });
                    }
                    if batch == 1 && (is_full() || is_plain) {
                        group.bench_function(row("one_by_one"), |bencher| {
                            let view = filter.view();
                            let lookups = lookups.get_or_insert_with(|| size.lookups(mix));
                            bencher.iter(|| {
                                let hashes = lookups.next(ITERATION).iter();
                                hashes.filter(|&&hash| view.contains_hash(hash)).count()
                            });
                        });
                    }
                }
            }
        }
    }
}

/// Absent keys of 16 bytes.
fn whole_keys(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("query");
    group.throughput(lines(ITERATION));
    for size in sizes() {
        let filter = LazyCell::new(|| size.filled(6));
        let keys: LazyCell<Vec<[u8; 16]>, _> = LazyCell::new(|| {
            (0..lookup_count(size.0) as u128).map(|i| (i << 64 | i).to_le_bytes()).collect()
        });
        let (mut hashes, mut hits, mut start) = (Vec::new(), Bitmask::new(), 0);
        for (name, in_one_call) in [("keys16", true), ("keys16_two_calls", false)] {
            let id = format!("{name}/{}/absent/k6/{ITERATION}", size.1);
            group.bench_function(id, |bencher| {
                let (keys, view) = (&keys[..], filter.view());
                let hasher = view.hasher().expect("the filter hashes keys itself");
                bencher.iter(|| {
                    let keys = black_box(&keys[start..][..ITERATION]);
                    start = (start + ITERATION) % lookup_count(size.0);
                    if in_one_call {
                        view.contains_batch(keys, &mut hits);
                    } else {
                        hasher.hash_batch(keys, &mut hashes);
                        view.contains_hashes(&hashes, &mut hits);
                    }
                });
            });
        }
    }
}

criterion_group!(name = benches; config = benches::criterion(env!("CARGO_CRATE_NAME")); targets = query, whole_keys);
criterion_main!(benches);
