//! Building: sizing, inserting hashes by every kernel, and whole filters from hashes and from keys by one thread and by several.
//!
//! `build/insert/avx2/10k/k6/4096`: kernel, keys the filter is sized for (ten bits each), probes, keys a call; `one_by_one` adds one hash at
//! a time. `baseline` and `baseline_ahead`, which prefetches, are the memory-bound baseline: they load one line per key and change nothing.
//! `build/whole/finish/1M/threads2`: from a list of hashes (`finish`), the same and verified (`finish_verified`), 16-byte keys through the
//! builder (`from_keys`) or with their number known beforehand (`known_count`), and the baseline over the same hashes, by one thread.
//! `build/sizing` chooses blocks and probes.
//!
//! `cargo bench --bench build` takes up to two minutes and 550 MB of memory: six probes, batches of 4096, one and two threads.
//! `-- build/whole` measures a part, `BLOCKED_BLOOM_BENCH=full` the whole matrix, with as many threads as the machine has, in ten minutes.
//! `blocked-bloom bench --op build` goes to 100 million keys.

#![allow(missing_docs, reason = "criterion's macros")]

use std::cell::LazyCell;
use std::hint::black_box;

use benches::baseline::load_lines;
use benches::workload::{Mix, for_all_keys};
use benches::{BASELINES, ITERATION, PROBES, Size, is_full, lines, sizes};
use blocked_bloom::{
    BloomFilter, BloomFilterBuilder, BuildError, FilterOptions, Kernel, KeyHash, Sizing,
};
use criterion::{BatchSize, Criterion, SamplingMode, criterion_group, criterion_main};
use rayon::{ThreadPool, ThreadPoolBuilder};

const TEN: Sizing = Sizing::BitsPerKey(10.0);

/// Why adding cannot fail.
const TAKES_ALL: &str = "a filter of whole keys that hashes them itself";

fn sizing(criterion: &mut Criterion) {
    for (name, sizing) in [("bits_per_key", TEN), ("rate", Sizing::FalsePositiveRate(0.01))] {
        criterion.bench_function(&format!("build/sizing/{name}"), |bencher| {
            bencher.iter(|| sizing.params(black_box(1_000_000)));
        });
    }
}

/// Keys that were not in the filter when it was made: what is set already costs the same, since no kernel looks.
fn insert(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("build/insert");
    group.throughput(lines(ITERATION));
    for size in sizes() {
        let mut lookups = None;
        let empty = |probes| {
            let params = size.params().with_probes(probes).expect("a legal number of probes");
            BloomFilter::new(params, KeyHash::default()).expect("memory for the filter")
        };
        let lines = LazyCell::new(|| empty(6));
        for (name, ahead) in BASELINES {
            group.bench_function(format!("{name}/{}/{ITERATION}", size.1), |bencher| {
                let blocks = lines.blocks();
                let lookups = lookups.get_or_insert_with(|| size.lookups(Mix::Absent));
                bencher.iter(|| load_lines(blocks, lookups.next(ITERATION), ahead));
            });
        }
        drop(lines);
        for (probes, batch) in PROBES.into_iter().flat_map(|k| [(k, 32), (k, ITERATION)]) {
            let is_plain = (probes, batch) == (6, ITERATION);
            if !is_full() && !is_plain {
                continue;
            }
            for kernel in Kernel::supported() {
                let mut filter = None;
                let id = format!("{}/{}/k{probes}/{batch}", kernel.name(), size.1);
                group.bench_function(id, |bencher| {
                    let filter = filter.get_or_insert_with(|| empty(probes).with_kernel(kernel));
                    let lookups = lookups.get_or_insert_with(|| size.lookups(Mix::Absent));
                    bencher.iter(|| {
                        for hashes in lookups.next(ITERATION).chunks(batch) {
                            filter.insert_hashes(black_box(hashes)).expect(TAKES_ALL);
                        }
                    });
                });
            }
            let mut filter = None;
            if batch == ITERATION {
                group.bench_function(format!("one_by_one/{}/k{probes}/1", size.1), |bencher| {
                    let filter = filter.get_or_insert_with(|| empty(probes));
                    let lookups = lookups.get_or_insert_with(|| size.lookups(Mix::Absent));
                    bencher.iter(|| {
                        for &hash in lookups.next(ITERATION) {
                            filter.insert_hash(hash).expect(TAKES_ALL);
                        }
                    });
                });
            }
        }
    }
}

/// One, two, and so on until the machine has no more.
fn pools() -> impl Iterator<Item = (usize, ThreadPool)> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let most = if is_full() { cores.max(2) } else { 2 };
    let threads = std::iter::successors(Some(1), |threads| Some(threads * 2));
    threads.take_while(move |&threads| threads <= most).map(|threads| {
        (threads, ThreadPoolBuilder::new().num_threads(threads).build().expect("threads"))
    })
}

fn whole(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("build/whole");
    group.sampling_mode(SamplingMode::Flat);
    for size in [Size(1_000_000, "1M"), Size(10_000_000, "10M")] {
        let Size(count, name) = size;
        group.throughput(lines(count as usize));
        let builder = LazyCell::new(|| {
            let mut builder = FilterOptions::new(TEN).builder();
            for_all_keys(count, |hashes| {
                for &hash in hashes {
                    builder.insert_hash(hash).expect(TAKES_ALL);
                }
            });
            builder
        });
        let keys: LazyCell<Vec<[u8; 16]>, _> =
            LazyCell::new(|| (0..u128::from(count)).map(|i| (i << 64 | i).to_le_bytes()).collect());
        let filter = LazyCell::new(|| size.filled(6));
        let hashes: LazyCell<Vec<u64>, _> = LazyCell::new(|| {
            let mut all = Vec::new();
            for_all_keys(count, |hashes| all.extend_from_slice(hashes));
            all
        });
        for (way, ahead) in BASELINES {
            group.bench_function(format!("{way}/{name}"), |bencher| {
                let (blocks, hashes) = (filter.blocks(), &hashes[..]);
                bencher.iter(|| load_lines(blocks, black_box(hashes), ahead));
            });
        }
        for (threads, pool) in pools() {
            for is_verified in [false, true] {
                let way = if is_verified { "finish_verified" } else { "finish" };
                group.bench_function(format!("{way}/{name}/threads{threads}"), |bencher| {
                    let finish = |builder: BloomFilterBuilder| match (is_verified, threads) {
                        (false, 1) => builder.finish(),
                        (false, _) => builder.par_finish(),
                        (true, 1) => builder.finish_verified(),
                        (true, _) => builder.par_finish_verified(),
                    };
                    let build = |builder| pool.install(|| finish(builder));
                    bencher.iter_batched(|| builder.clone(), build, BatchSize::PerIteration);
                });
            }
            group.bench_function(format!("known_count/{name}/threads{threads}"), |bencher| {
                let keys = &keys[..];
                let build = |()| {
                    let mut filter = BloomFilter::new(size.params(), KeyHash::default())?;
                    pool.install(|| filter.par_insert_batch(black_box(keys)))?;
                    Ok::<_, BuildError>(filter)
                };
                bencher.iter_batched(|| (), build, BatchSize::PerIteration);
            });
            group.bench_function(format!("from_keys/{name}/threads{threads}"), |bencher| {
                let keys = &keys[..];
                let build = |()| {
                    let mut builder = FilterOptions::new(TEN).builder();
                    if threads == 1 {
                        builder.insert_batch(black_box(keys))?;
                        return builder.finish();
                    }
                    pool.install(|| {
                        builder.par_extend(black_box(keys))?;
                        builder.par_finish()
                    })
                };
                bencher.iter_batched(|| (), build, BatchSize::PerIteration);
            });
        }
    }
}

criterion_group!(name = quick; config = benches::criterion(env!("CARGO_CRATE_NAME")); targets = sizing, insert);
criterion_group!(name = slow; config = benches::slow(env!("CARGO_CRATE_NAME")); targets = whole);
criterion_main!(quick, slow);
