//! Queries of a growing filter, a chain of ten filters, target 1 %: in batches and one by one, and two ways of answering a batch that are
//! not used.
//!
//! `growing/batch/absent/100k`: how, keys looked up, keys in the filter (0.2 MB, `10M` 23 MB). `batch` is `contains_hashes`,
//! `every_link` looks everything up in every filter of the chain, `moved` moves what is left after each, `single` is `contains_hash`. An
//! iteration is 100,000 keys.
//!
//! `cargo bench --bench growing` takes half a minute and 110 MB of memory, and is the whole matrix; `-- growing/batch` measures a
//! part. `docs/growing.md` has figures.

#![allow(missing_docs, reason = "criterion's macros")]

use std::cell::LazyCell;
use std::hint::black_box;

use benches::workload::key;
use blocked_bloom::Bitmask;
use blocked_bloom_scalable::{ScalableBloomFilter, ScalableOptions};
use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};

/// Keys of an iteration.
const KEYS: usize = 100_000;

/// The hashes of keys from `first` on.
fn hashes(first: u64, keys: usize) -> Vec<u64> {
    (first..).map(key).take(keys).collect()
}

/// A filter of `keys` keys, and the hashes of some of them.
fn filled(first_items: u64, keys: usize) -> (ScalableBloomFilter, Vec<u64>) {
    let options = ScalableOptions::new(0.01, first_items);
    let mut filter = options.build().expect("a rate and a number in range");
    let hashes = hashes(0, keys);
    filter.insert_hashes(&hashes).expect("memory for the filter");
    (filter, hashes.into_iter().step_by(keys / KEYS).collect())
}

fn every_link(filter: &ScalableBloomFilter, hashes: &[u64], hits: &mut Bitmask) {
    for link in filter.links() {
        link.contains_hashes(hashes, hits);
    }
}

fn moved(filter: &ScalableBloomFilter, hashes: &[u64], hits: &mut Bitmask) {
    let mut left = Vec::new();
    for chunk in hashes.chunks(1_024) {
        left.clear();
        left.extend_from_slice(chunk);
        for link in filter.links().iter().rev() {
            link.contains_hashes(&left, hits);
            let all = left.clone();
            left.clear();
            left.extend(hits.misses().map(|i| all[i]));
        }
    }
}

fn single(filter: &ScalableBloomFilter, hashes: &[u64], _: &mut Bitmask) {
    black_box(hashes.iter().filter(|&&hash| filter.contains_hash(hash)).count());
}

type LookUp = fn(&ScalableBloomFilter, &[u64], &mut Bitmask);

const WAYS: [(&str, LookUp); 4] = [
    ("batch", ScalableBloomFilter::contains_hashes),
    ("every_link", every_link),
    ("moved", moved),
    ("single", single),
];

fn growing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("growing");
    group.sampling_mode(SamplingMode::Flat);
    group.throughput(Throughput::Elements(KEYS as u64));
    for (first_items, keys, name) in [(100, 100_000, "100k"), (10_000, 10_000_000, "10M")] {
        let filter = LazyCell::new(|| filled(first_items, keys));
        let absent = LazyCell::new(|| hashes(1 << 40, KEYS));
        for mix in ["absent", "present"] {
            for (way, look_up) in WAYS {
                group.bench_function(format!("{way}/{mix}/{name}"), |bencher| {
                    let (filter, present) = &*filter;
                    let hashes = if mix == "absent" { &absent[..] } else { present };
                    let mut hits = Bitmask::new();
                    bencher.iter(|| look_up(filter, black_box(hashes), &mut hits));
                });
            }
        }
    }
}

criterion_group!(name = benches; config = benches::slow(env!("CARGO_CRATE_NAME")); targets = growing);
criterion_main!(benches);
