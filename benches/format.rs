//! Stored filters: opened with and without verification, and written, beside loops that read and copy as many bytes.
//!
//! `format/open_verified/10k`: what is called, keys in the filter (ten bits each). `open_verified` is `BloomFilter::from_bytes`, which reads
//! everything and is what verifying a filter costs; `open_trusted` reads the header, and its throughput is in filters. `to_bytes`
//! allocates, `write_to` writes into a vector with capacity. `baseline` is the memory-bound baseline, which reads all bytes and ORs them; `copy`
//! copies them.
//!
//! `cargo bench --bench format` takes a minute and 500 MB of memory; `-- format/open` measures a part, `BLOCKED_BLOOM_BENCH=full`
//! one size more.

#![allow(missing_docs, reason = "criterion's macros")]

use std::cell::LazyCell;
use std::hint::black_box;

use blocked_bloom::BloomFilter;
use criterion::{BatchSize, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};

/// ORs all words: what reading these bytes costs at least, without knowing the instruction set.
fn load_bytes(bytes: &[u8]) -> u64 {
    let mut all = [0_u64; 8];
    for line in bytes.as_chunks::<64>().0 {
        for (all, word) in all.iter_mut().zip(line.as_chunks().0) {
            *all |= u64::from_le_bytes(*word);
        }
    }
    all.iter().fold(0, |all, word| all | word)
}

fn format(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("format");
    group.sampling_mode(SamplingMode::Flat);
    for size in benches::sizes() {
        let filter = LazyCell::new(|| size.filled(6));
        let stored = LazyCell::new(|| filter.to_bytes());
        let row = |name: &str| format!("{name}/{}", size.1);
        group.throughput(Throughput::Elements(1));
        group.bench_function(row("open_trusted"), |bencher| {
            let stored = &stored[..];
            bencher.iter(|| BloomFilter::from_bytes_trusted(black_box(stored)).is_ok());
        });
        let bytes = size.params().stored_bytes();
        group.throughput(Throughput::ElementsAndBytes { elements: size.0, bytes });
        group.bench_function(row("baseline"), |bencher| {
            let stored = &stored[..];
            bencher.iter(|| load_bytes(black_box(stored)));
        });
        group.bench_function(row("open_verified"), |bencher| {
            let stored = &stored[..];
            bencher.iter(|| BloomFilter::from_bytes(black_box(stored)).is_ok());
        });
        let mut file = Vec::new();
        group.bench_function(row("copy"), |bencher| {
            let stored = &stored[..];
            bencher.iter(|| {
                file.clear();
                file.extend_from_slice(black_box(stored));
                black_box(&file);
            });
        });
        group.bench_function(row("write_to"), |bencher| {
            let filter = &*filter;
            bencher.iter(|| {
                file.clear();
                filter.write_to(&mut file).expect("a vector takes everything");
                black_box(&file);
            });
        });
        group.bench_function(row("to_bytes"), |bencher| {
            let filter = &*filter;
            bencher.iter_batched(|| (), |()| filter.to_bytes(), BatchSize::PerIteration);
        });
    }
}

criterion_group!(name = benches; config = benches::slow(env!("CARGO_CRATE_NAME")); targets = format);
criterion_main!(benches);
