//! Split-block filters as query engines use them: filled by one owner, by threads that share them, and looked up into a bitmask or a
//! selection vector.
//!
//! `split_block/select/1M/half`: how, distinct values in the filter (ten bits each, sizes are powers of two), fraction of the rows that
//! are present. `one_by_one` is the loop that engines write by hand: the scalar probe scheme, and the row number pushed if it may be
//! present. An iteration is 4096 rows; of `fill`, 2^20 hashes in batches of 4096 into a filter of
//! zeros: by its owner, by the given number of threads that share it, or into as many parts, one for each thread, that are merged.
//!
//! `cargo bench --bench split_block` takes a minute and 300 MB of memory; `-- split_block/select` measures a part.

#![allow(missing_docs, reason = "criterion's macros")]

use std::cell::LazyCell;
use std::hint::black_box;
use std::thread;

use benches::{ITERATION, Size, sizes};
use blocked_bloom::Bitmask;
use blocked_bloom_formats::parquet::{AtomicSplitBlockFilter, SplitBlockFilter};
use criterion::{BatchSize, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};

/// Well-mixed numbers stand in for XXH64.
fn hash(i: u64) -> u64 {
    let mixed = (i ^ i >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ mixed >> 32
}

fn empty(Size(values, _): Size) -> SplitBlockFilter {
    let blocks = (values * 10 / 256).next_power_of_two().min(1 << 22) as u32;
    SplitBlockFilter::with_blocks(blocks).expect("memory for the filter")
}

fn fill(criterion: &mut Criterion) {
    let hashes: LazyCell<Vec<u64>> = LazyCell::new(|| (0..1 << 20).map(hash).collect());
    let mut group = criterion.benchmark_group("split_block");
    group.sampling_mode(SamplingMode::Flat);
    group.throughput(Throughput::Elements(1 << 20));
    for size in sizes() {
        group.bench_function(format!("fill/owned/{}", size.1), |bencher| {
            let hashes = &hashes[..];
            let fill = |mut filter: SplitBlockFilter| {
                hashes.chunks(ITERATION).for_each(|batch| filter.insert_hashes(batch));
                filter
            };
            bencher.iter_batched(|| empty(size), fill, BatchSize::PerIteration);
        });
        for threads in [1, 2, 4] {
            // A filter for each thread, and all merged by the one that waits.
            group.bench_function(format!("fill/{threads}_parts/{}", size.1), |bencher| {
                let hashes = &hashes[..];
                let fill = |mut whole: SplitBlockFilter| {
                    thread::scope(|scope| {
                        let fill = |part: &[u64]| {
                            let mut filter = empty(size);
                            part.chunks(ITERATION).for_each(|batch| filter.insert_hashes(batch));
                            filter
                        };
                        let parts = hashes.chunks(hashes.len() / threads);
                        let parts: Vec<_> =
                            parts.map(|part| scope.spawn(move || fill(part))).collect();
                        for part in parts {
                            let part = part.join().expect("filling does not panic");
                            whole.union_with(&part).expect("equal sizes");
                        }
                    });
                    whole
                };
                bencher.iter_batched(|| empty(size), fill, BatchSize::PerIteration);
            });
            group.bench_function(format!("fill/{threads}_threads/{}", size.1), |bencher| {
                let hashes = &hashes[..];
                let fill = |filter: SplitBlockFilter| {
                    let filter = AtomicSplitBlockFilter::from(filter);
                    thread::scope(|scope| {
                        for part in hashes.chunks(hashes.len() / threads) {
                            let filter = &filter;
                            scope.spawn(move || {
                                part.chunks(ITERATION)
                                    .for_each(|batch| filter.insert_hashes(batch));
                            });
                        }
                    });
                    filter.into_filter()
                };
                bencher.iter_batched(|| empty(size), fill, BatchSize::PerIteration);
            });
        }
    }
}

fn query(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("split_block");
    group.throughput(Throughput::Elements(ITERATION as u64));
    for size in sizes() {
        let filter = LazyCell::new(|| {
            let mut filter = empty(size);
            let mut hashes = Vec::new();
            for start in (0..size.0).step_by(1 << 16) {
                hashes.clear();
                hashes.extend((start..size.0.min(start + (1 << 16))).map(hash));
                filter.insert_hashes(&hashes);
            }
            filter
        });
        for (mix, present) in [("absent", 0), ("half", 50), ("present", 100)] {
            let rows = LazyCell::new(|| {
                let row = |i: u64| {
                    let value = hash(i) % size.0;
                    hash(value + if i % 100 < present { 0 } else { size.0 })
                };
                (0..1 << 19).map(row).collect::<Vec<u64>>()
            });
            // Batch after batch, going on from sample to sample.
            let mut start = 0;
            let mut batch = || {
                start = (start + ITERATION) % (1 << 19);
                start..start + ITERATION
            };
            let (mut hits, mut selected) = (Bitmask::new(), Vec::<u32>::new());
            let row = |way| format!("{way}/{}/{mix}", size.1);
            group.bench_function(row("one_by_one"), |bencher| {
                let (filter, rows) = (&*filter, &rows[..]);
                bencher.iter(|| {
                    selected.clear();
                    for (row, &hash) in (0..).zip(black_box(&rows[batch()])) {
                        if filter.contains_hash(hash) {
                            selected.push(row);
                        }
                    }
                });
            });
            group.bench_function(row("bitmask"), |bencher| {
                let (filter, rows) = (&*filter, &rows[..]);
                bencher.iter(|| filter.contains_hashes(black_box(&rows[batch()]), &mut hits));
            });
            group.bench_function(row("select"), |bencher| {
                let (filter, rows) = (&*filter, &rows[..]);
                bencher.iter(|| filter.select_hashes(black_box(&rows[batch()]), &mut selected));
            });
        }
    }
}

criterion_group!(name = filling; config = benches::slow(env!("CARGO_CRATE_NAME")); targets = fill);
criterion_group!(name = queries; config = benches::criterion(env!("CARGO_CRATE_NAME")); targets = query);
criterion_main!(filling, queries);
