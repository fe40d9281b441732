//! Questions to a growing filter of ten links, target 1 %: in batches and one by one, and two ways of answering a batch that are not used.
//!
//! `growing/batch/absent/100k`: how, keys asked about, keys in the filter (0.2 MB, `10M` 23 MB). `batch` is `contains_hashes`,
//! `every_link` asks every link about everything, `moved` moves what is left after every link, `single` is `contains_hash`. An
//! iteration is 100,000 keys.
//!
//! `cargo bench --bench growing` takes half a minute and 110 MB of memory, and is the whole matrix; `-- growing/batch` measures a
//! part. `docs/growing.md` has figures.

#![allow(missing_docs, reason = "criterion's macros")]

mod common;
#[path = "../tests/common/mod.rs"]
mod random;

use std::cell::LazyCell;
use std::hint::black_box;

use blocked_bloom::{Bitmask, ScalableBloomFilter};
use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use random::Random;

const ASKED: usize = 100_000;

/// A filter of `keys` random hashes, and some of them.
fn filled(first_items: u64, keys: usize) -> (ScalableBloomFilter, Vec<u64>) {
    let mut filter =
        ScalableBloomFilter::new(0.01, first_items).expect("a rate and a number in range");
    let (hashes, mut seen) = (Random(first_items).hashes(keys), Bitmask::new());
    filter.insert_hashes(&hashes, &mut seen).expect("memory for the filter");
    (filter, hashes.into_iter().step_by(keys / ASKED).collect())
}

fn every_link(filter: &ScalableBloomFilter, asked: &[u64], hits: &mut Bitmask) {
    for link in filter.links() {
        link.contains_hashes(asked, hits);
    }
}

fn moved(filter: &ScalableBloomFilter, asked: &[u64], hits: &mut Bitmask) {
    let mut left = Vec::new();
    for chunk in asked.chunks(1_024) {
        left.clear();
        left.extend_from_slice(chunk);
        for link in filter.links().iter().rev() {
            link.contains_hashes(&left, hits);
            let asked = left.clone();
            left.clear();
            left.extend(hits.misses().map(|i| asked[i]));
        }
    }
}

fn single(filter: &ScalableBloomFilter, asked: &[u64], _: &mut Bitmask) {
    black_box(asked.iter().filter(|&&hash| filter.contains_hash(hash)).count());
}

type Ask = fn(&ScalableBloomFilter, &[u64], &mut Bitmask);

const WAYS: [(&str, Ask); 4] = [
    ("batch", ScalableBloomFilter::contains_hashes),
    ("every_link", every_link),
    ("moved", moved),
    ("single", single),
];

fn growing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("growing");
    group.sampling_mode(SamplingMode::Flat);
    group.throughput(Throughput::Elements(ASKED as u64));
    for (first_items, keys, name) in [(100, 100_000, "100k"), (10_000, 10_000_000, "10M")] {
        let filter = LazyCell::new(|| filled(first_items, keys));
        let absent = LazyCell::new(|| Random(9).hashes(ASKED));
        for mix in ["absent", "present"] {
            for (way, ask) in WAYS {
                group.bench_function(format!("{way}/{mix}/{name}"), |bencher| {
                    let (filter, present) = &*filter;
                    let asked = if mix == "absent" { &absent[..] } else { present };
                    let mut hits = Bitmask::new();
                    bencher.iter(|| ask(filter, black_box(asked), &mut hits));
                });
            }
        }
    }
}

criterion_group!(name = benches; config = common::slow(); targets = growing);
criterion_main!(benches);
