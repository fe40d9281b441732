//! Hashing keys: one by one, in batches, in parts and of a width known when compiled, beside a loop that only touches them.
//!
//! `hash/batch/16`: what is called, bytes of a key. `one` is `KeyHasher::hash` in a loop, `batch` `hash_batch` of slices, `offsets`
//! `hash_offsets`, `array` `hash_batch` of arrays, `array_one` a loop over them, `integers` `hash_u64s` and `hash_fixed`, `parts`
//! `hash_parts` of two halves, `baseline` is the memory-bound baseline: a byte of every 64 and the last. An iteration is 4096 keys, or as
//! many as take 256 KB.
//!
//! `cargo bench --bench hash` takes half a minute; `-- hash/batch` measures a part, `BLOCKED_BLOOM_BENCH=full` more lengths in
//! a minute.

#![allow(missing_docs, reason = "criterion's macros")]

use std::hint::black_box;

use benches::workload::key;
use benches::{ITERATION, is_full};
use blocked_bloom::KeyHasher;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};

const HASHER: KeyHasher = KeyHasher::with_seed(0);

/// XXH3 goes other ways up to 3, 8, 16, 128 and 240 bytes, and beyond.
const LENGTHS: [usize; 9] = [3, 8, 16, 24, 32, 100, 240, 1_000, 4_000];

fn throughput(keys: usize, length: usize) -> Throughput {
    Throughput::ElementsAndBytes { elements: keys as u64, bytes: (keys * length) as u64 }
}

/// A byte of every 64, and the last.
fn touch(key: &[u8]) -> u8 {
    let last = key.last().copied().unwrap_or_default();
    key.iter().step_by(64).fold(last, |all, byte| all | byte)
}

fn slices(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hash");
    for length in LENGTHS {
        if !is_full() && ![8, 16, 100, 1_000].contains(&length) {
            continue;
        }
        let count = ITERATION.min(256_000 / length);
        let words = (0..(count * length).div_ceil(8) as u64).map(key);
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        let keys: Vec<&[u8]> = bytes.chunks_exact(length).take(count).collect();
        group.throughput(throughput(count, length));
        group.bench_function(format!("baseline/{length}"), |bencher| {
            bencher.iter(|| black_box(&keys).iter().fold(0, |all, key| all | touch(key)));
        });
        group.bench_function(format!("one/{length}"), |bencher| {
            bencher.iter(|| black_box(&keys).iter().fold(0, |all, key| all ^ HASHER.hash(key)));
        });
        group.bench_function(format!("batch/{length}"), |bencher| {
            let mut hashes = Vec::new();
            bencher.iter(|| {
                HASHER.hash_batch(black_box(&keys), &mut hashes);
                black_box(&hashes);
            });
        });
        group.bench_function(format!("offsets/{length}"), |bencher| {
            let offsets: Vec<i32> = (0..=count).map(|i| (i * length) as i32).collect();
            let mut hashes = vec![0; count];
            bencher.iter(|| {
                let hashed = HASHER.hash_offsets(black_box(&bytes), &offsets, &mut hashes);
                hashed.expect("offsets in order");
                black_box(&hashes);
            });
        });
        let parts = |key: &'_ &[u8]| {
            let (first, second) = key.split_at(length / 2);
            HASHER.hash_parts(&[first, second])
        };
        group.bench_function(format!("parts/{length}"), |bencher| {
            bencher.iter(|| black_box(&keys).iter().fold(0, |all, key| all ^ parts(key)));
        });
    }
}

fn arrays(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hash");
    array::<4>(&mut group);
    array::<8>(&mut group);
    array::<16>(&mut group);
    array::<32>(&mut group);
}

fn array<const LENGTH: usize>(group: &mut BenchmarkGroup<'_, WallTime>) {
    let keys: Vec<[u8; LENGTH]> = (0..ITERATION as u64)
        .map(|i| std::array::from_fn(|j| (key(i) >> (j % 8 * 8)) as u8))
        .collect();
    group.throughput(throughput(ITERATION, LENGTH));
    group.bench_function(format!("array_one/{LENGTH}"), |bencher| {
        let mut hashes = Vec::new();
        bencher.iter(|| {
            hashes.clear();
            hashes.extend(black_box(&keys).iter().map(|key| HASHER.hash(key)));
            black_box(&hashes);
        });
    });
    group.bench_function(format!("array/{LENGTH}"), |bencher| {
        let mut hashes = Vec::new();
        bencher.iter(|| {
            HASHER.hash_batch(black_box(&keys), &mut hashes);
            black_box(&hashes);
        });
    });
}

fn integers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hash");
    let keys: Vec<u64> = (0..ITERATION as u64).map(key).collect();
    let mut hashes = vec![0; ITERATION];
    group.throughput(throughput(ITERATION, 8));
    group.bench_function("integers/8", |bencher| {
        bencher.iter(|| black_box(HASHER.hash_u64s(black_box(&keys), &mut hashes)));
    });
    let keys: Vec<[u8; 4]> = keys.into_iter().map(|key| (key as u32).to_le_bytes()).collect();
    group.throughput(throughput(ITERATION, 4));
    group.bench_function("integers/4", |bencher| {
        bencher.iter(|| black_box(HASHER.hash_fixed(black_box(&keys), &mut hashes)));
    });
}

criterion_group!(name = benches; config = benches::criterion(env!("CARGO_CRATE_NAME")); targets = slices, arrays, integers);
criterion_main!(benches);
