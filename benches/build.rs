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
//! `-- --new` prints instead what it costs to be told which keys were new, in interleaved rounds, in half a minute and 700 MB:
//! `insert_hashes` and `insert_hashes_new` of each kernel, in calls of 4096 keys; one atomic filter filled by one
//! thread and by two; and a growing filter beside one that was sized for its keys.
//! `blocked-bloom bench --op build` goes to 100 million keys.

#![allow(missing_docs, reason = "criterion's macros")]
#![allow(clippy::print_stdout, reason = "figures to be quoted")]

use std::cell::LazyCell;
use std::hint::black_box;
use std::time::Instant;

use benches::baseline::load_lines;
use benches::workload::{Mix, for_all_keys, key};
use benches::{BASELINES, ITERATION, PROBES, Size, is_full, lines, sizes};
use blocked_bloom::{
    AtomicBloomFilter, Bitmask, BloomFilter, BloomFilterBuilder, BuildError, FilterOptions, Kernel,
    KeyHash, Sizing,
};
use blocked_bloom_scalable::ScalableOptions;
use criterion::{BatchSize, Criterion, SamplingMode, criterion_group};
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

/// A way to add hashes.
type Way<'a> = (String, Box<dyn FnMut(&[u64]) + 'a>);

/// Times the ways in interleaved rounds, each on 262,144 other keys of the first `keys`, and prints for each the median, in ns per key, and the
/// median of its ratios to the first.
fn interleaved(title: &str, keys: u64, mut ways: Vec<Way<'_>>) {
    const AT_ONCE: u64 = 1 << 18;
    let mut times = vec![Vec::new(); ways.len()];
    for round in 0..=31_u64 {
        for (i, ((_, way), times)) in ways.iter_mut().zip(&mut times).enumerate() {
            let first = (2 * round + i as u64) * AT_ONCE;
            let hashes: Vec<u64> = (first..first + AT_ONCE).map(|i| key(i % keys)).collect();
            let start = Instant::now();
            way(black_box(&hashes));
            if round > 0 {
                times.push(start.elapsed().as_nanos() as f64 / AT_ONCE as f64);
            }
        }
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    println!("{title}");
    for ((name, _), all) in ways.iter().zip(&times) {
        let ratios = all.iter().zip(&times[0]).map(|(time, first)| time / first).collect();
        println!("  {name:<22} {:7.2} {:.2}", median(all.clone()), median(ratios));
    }
}

/// What it costs to be told which keys were new.
fn which_were_new() {
    println!("build: ns per key, median of 31 rounds, and of the ratios to the first row");
    for (keys, size) in [(10_000, "10k"), (10_000_000, "10M"), (100_000_000, "100M")] {
        let params = TEN.params(keys).expect("ten bits per key are legal");
        let empty = || BloomFilter::new(params, KeyHash::default()).expect("memory");
        for kernel in Kernel::supported() {
            if keys > 10_000_000 && kernel != Kernel::default() {
                continue;
            }
            let (mut silent, mut says) = (empty().with_kernel(kernel), empty().with_kernel(kernel));
            let mut new = Bitmask::new();
            let silent = |hashes: &[u64]| {
                for hashes in hashes.chunks(ITERATION) {
                    silent.insert_hashes(hashes).expect(TAKES_ALL);
                }
            };
            let says = |hashes: &[u64]| {
                for hashes in hashes.chunks(ITERATION) {
                    says.insert_hashes_new(hashes, &mut new).expect(TAKES_ALL);
                }
            };
            let ways: Vec<Way<'_>> = vec![
                ("insert_hashes".into(), Box::new(silent)),
                ("insert_hashes_new".into(), Box::new(says)),
            ];
            interleaved(&format!("\n{size} keys, {kernel}"), keys, ways);
        }
        let by_threads = |threads: usize| -> Way<'_> {
            let filter = AtomicBloomFilter::from(empty());
            let add = move |hashes: &[u64]| {
                std::thread::scope(|scope| {
                    for part in hashes.chunks(hashes.len() / threads) {
                        let filter = &filter;
                        scope.spawn(move || {
                            let mut new = Bitmask::new();
                            for hashes in part.chunks(ITERATION) {
                                filter.insert_hashes_new(hashes, &mut new).expect(TAKES_ALL);
                            }
                        });
                    }
                });
            };
            (format!("{threads} threads"), Box::new(add))
        };
        let ways = vec![by_threads(2), by_threads(1)];
        interleaved(&format!("\n{size} keys, AtomicBloomFilter"), keys, ways);
    }
    // Links for 1/7 of the keys, 2/7 and 4/7, and one that had the right size.
    let growing = |first_items: u64| -> Way<'_> {
        let options = ScalableOptions::new(0.01, first_items);
        let (mut filter, mut new) = (options.build().expect("options in range"), Bitmask::new());
        let add = move |hashes: &[u64]| {
            for hashes in hashes.chunks(ITERATION) {
                filter.insert_hashes_new(hashes, &mut new).expect("memory for the filter");
            }
        };
        (format!("growing from {first_items}"), Box::new(add))
    };
    let ways = vec![growing(10_000_000), growing(1_000_000)];
    interleaved("\n10M keys, ScalableBloomFilter", 10_000_000, ways);
}

fn main() {
    if std::env::args().any(|argument| argument == "--new") {
        return which_were_new();
    }
    quick();
    slow();
    Criterion::default().configure_from_args().final_summary();
}
