//! The filters of many tables, looked up together: one key in 64, and batches in 8, beside a call for each filter and the memory-bound
//! baseline.
//!
//! `set/one_key/avx2/64x10k`: kernel, filters and the keys in each (ten bits each, six probes). `set/batch/avx2/8x10k/128`: the same and
//! keys a call. `calls` looks up in each filter by a call of its own. `baseline` and `baseline_ahead`, which prefetches, are the memory-bound baseline:
//! they load one line per filter and key and test nothing, for batches in the eight filters laid end to end.
//!
//! `cargo bench --bench set` takes 40 seconds and 85 MB of memory; `-- set/one_key` measures a part, `BLOCKED_BLOOM_BENCH=full` more sizes and
//! batches in two minutes. `blocked-bloom bench --op set` has pairs of keys and filters as well.

#![allow(missing_docs, reason = "criterion's macros")]

use std::cell::LazyCell;
use std::hint::black_box;

use benches::baseline::{load_line_of_each, load_lines};
use benches::workload::{for_all_keys, key};
use benches::{BASELINES, CACHE, Lookups, Size, is_full, lines};
use blocked_bloom::{
    BatchQuery, BitMatrix, Bitmask, Block, BloomFilter, BloomFilterRef, FilterSet, Kernel, KeyHash,
};
use criterion::{Criterion, criterion_group, criterion_main};

const MANY: usize = 64;
const FEW: usize = 8;

/// Keys of an iteration in 64 filters, and in 8.
const KEYS_IN_MANY: usize = 256;
const KEYS_IN_FEW: usize = 1024;

fn sizes() -> impl Iterator<Item = Size> {
    let sizes = [Size(1_000, "1k"), Size(10_000, "10k"), CACHE, Size(1_000_000, "1M")];
    sizes.into_iter().filter(|size| is_full() || [10_000, 1_000_000].contains(&size.0))
}

/// Filters with keys of their own.
fn filters(size: Size, count: usize) -> Vec<BloomFilter> {
    let filter = |i| {
        let filter = BloomFilter::new(size.params(), KeyHash::default());
        let (mut filter, mut own) = (filter.expect("memory for the filter"), Vec::new());
        for_all_keys(size.0, |hashes| {
            own.clear();
            own.extend(hashes.iter().map(|hash| key(hash ^ i)));
            filter.insert_hashes(&own).expect("a filter of whole keys");
        });
        filter
    };
    (1..=count as u64).map(filter).collect()
}

/// Keys that are in no filter.
fn absent() -> Lookups {
    Lookups::new((0..1 << 14).map(|i: u64| key(key(!i))).collect())
}

fn set(filters: &[BloomFilter], kernel: Kernel) -> FilterSet<'_> {
    let set = FilterSet::new(KeyHash::default(), filters);
    set.expect("filters of one hash").with_kernel(kernel)
}

fn one_key(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("set/one_key");
    group.throughput(lines(KEYS_IN_MANY * MANY));
    let mut lookups = absent();
    for size in sizes() {
        let filters = LazyCell::new(|| filters(size, MANY));
        let row = |name: &str| format!("{name}/{MANY}x{}", size.1);
        for (name, ahead) in BASELINES {
            group.bench_function(row(name), |bencher| {
                let blocks: Vec<&[Block]> =
                    filters.iter().map(|filter| filter.view().blocks()).collect();
                bencher.iter(|| load_line_of_each(&blocks, lookups.next(KEYS_IN_MANY), ahead));
            });
        }
        group.bench_function(row("calls"), |bencher| {
            let views: Vec<BloomFilterRef<'_>> = filters.iter().map(BloomFilter::view).collect();
            bencher.iter(|| {
                for &hash in lookups.next(KEYS_IN_MANY) {
                    let bits = views.iter().enumerate();
                    black_box(bits.fold(0, |bits, (i, view)| {
                        bits | u64::from(view.contains_hash(hash)) << i
                    }));
                }
            });
        });
        for kernel in Kernel::supported() {
            group.bench_function(row(kernel.name()), |bencher| {
                let (set, mut word) = (set(&filters, kernel), [0]);
                bencher.iter(|| {
                    for &hash in lookups.next(KEYS_IN_MANY) {
                        let done = set.contains_hash_into(hash, &mut word);
                        done.expect("a word for 64 filters");
                        black_box(&word);
                    }
                });
            });
        }
    }
}

fn batch(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("set/batch");
    group.throughput(lines(KEYS_IN_FEW * FEW));
    let mut lookups = absent();
    for size in sizes() {
        let filters = LazyCell::new(|| filters(size, FEW));
        let end_to_end = LazyCell::new(|| Size(FEW as u64 * size.0, "").filled(6));
        for batch in [8, 128, KEYS_IN_FEW] {
            if !is_full() && batch != 128 {
                continue;
            }
            let row = |name: &str| format!("{name}/{FEW}x{}/{batch}", size.1);
            for (name, ahead) in BASELINES {
                group.bench_function(row(name), |bencher| {
                    let blocks = end_to_end.view().blocks();
                    bencher.iter(|| {
                        for hashes in lookups.next(KEYS_IN_FEW * FEW).chunks(batch * FEW) {
                            black_box(load_lines(blocks, hashes, ahead));
                        }
                    });
                });
            }
            group.bench_function(row("calls"), |bencher| {
                let mut hits = Bitmask::new();
                let filters = &filters[..];
                bencher.iter(|| {
                    for hashes in lookups.next(KEYS_IN_FEW).chunks(batch) {
                        for filter in filters {
                            filter.contains_hashes(hashes, &mut hits);
                            black_box(&hits);
                        }
                    }
                });
            });
            for kernel in Kernel::supported() {
                group.bench_function(row(kernel.name()), |bencher| {
                    let (set, mut hits) = (set(&filters, kernel), BitMatrix::new());
                    bencher.iter(|| {
                        for hashes in lookups.next(KEYS_IN_FEW).chunks(batch) {
                            set.contains_hashes(hashes, &mut hits).expect("memory for the answers");
                            black_box(&hits);
                        }
                    });
                });
            }
        }
    }
}

criterion_group!(name = benches; config = benches::criterion(env!("CARGO_CRATE_NAME")); targets = one_key, batch);
criterion_main!(benches);
