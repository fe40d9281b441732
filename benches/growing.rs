//! Queries of a growing filter, a chain of ten filters, target 1 %: in batches and one by one, and two ways of answering a batch that are
//! not used; ns a key.
//!
//! `batch` is `contains_hashes`, `every_link` looks everything up in every filter of the chain, `moved` moves what is left after each,
//! `single` is `contains_hash`.
//!
//! `cargo bench --bench growing` takes half a minute and 110 MB of memory; `docs/growing.md` has figures.

#![allow(clippy::print_stdout, reason = "figures to be quoted")]

use std::hint::black_box;

use benches::clock::{Case, Named};
use benches::rows::Given;
use benches::workload::hash;
use blocked_bloom::Bitmask;
use blocked_bloom_scalable::{ScalableBloomFilter, ScalableOptions};

/// Keys of a pass.
const KEYS: u64 = 100_000;

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

fn main() {
    let given = Given::to("growing");
    for (first_items, keys, name) in [(100, KEYS, "100k"), (10_000, 10_000_000, "10M")] {
        let options = ScalableOptions::new(0.01, first_items);
        let mut filter = options.build().expect("a rate and a number in range");
        let all: Vec<u64> = (0..keys).map(hash).collect();
        filter.insert_hashes(&all).expect("memory for the filter");
        let present: Vec<u64> = all.into_iter().step_by((keys / KEYS) as usize).collect();
        let absent: Vec<u64> = ((1 << 40)..(1 << 40) + KEYS).map(hash).collect();
        for (mix, hashes) in [("absent", &absent), ("present", &present)] {
            let mut ways = Named::default();
            for (way, look_up) in WAYS {
                let (filter, mut hits) = (&filter, Bitmask::new());
                let run = move |_| look_up(filter, black_box(hashes), &mut hits);
                ways.add(way, Case::new(hashes.len(), run));
            }
            println!("\n{name} keys, {mix}\n{}", ways.lines(given.rounds(21)));
        }
    }
}
