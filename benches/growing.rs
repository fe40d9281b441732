//! Queries of a growing filter, a chain of ten filters, target 1 %: in batches and one by one, and
//! two ways of answering a batch that are not used; ns a key.
//!
//! `batch` is `contains_hashes`, `every_link` looks everything up in every filter of the chain,
//! `moved` moves what is left after each, `single` is `contains_hash`.
//!
//! `cargo bench -p blocked-bloom-benches --bench growing` takes half a minute and 110 MB of memory;
//! `docs/growing.md` has figures.

use std::hint::black_box;

use benches::clock::{Case, Named};
use benches::rows::Arguments;
use benches::workload::hash;
use blocked_bloom::{Bitmask, Filter};
use blocked_bloom_scalable::{ScalableBloomFilter, ScalableOptions};

/// Keys of a pass.
const KEYS: u64 = 100_000;

type LookUp = fn(&ScalableBloomFilter, &[u64], &mut Bitmask);

const METHODS: [(&str, LookUp); 4] = [
    ("batch", ScalableBloomFilter::contains_hashes),
    ("every_link", |filter, hashes, hits| {
        filter.links().iter().for_each(|link| link.contains_hashes(hashes, hits));
    }),
    ("moved", |filter, hashes, hits| {
        for chunk in hashes.chunks(1_024) {
            let mut left = chunk.to_vec();
            for link in filter.links().iter().rev() {
                link.contains_hashes(&left, hits);
                left = hits.misses().map(|i| left[i]).collect();
            }
        }
    }),
    ("single", |filter, hashes, _| {
        black_box(hashes.iter().filter(|&&hash| filter.contains_hash(hash)).count());
    }),
];

fn main() {
    let given = Arguments::from_command_line();
    for (first_items, keys, name) in [(100, KEYS, "100k"), (10_000, 10_000_000, "10M")] {
        let mut filter = ScalableOptions::new(0.01, first_items).build().expect("in range");
        let all: Vec<u64> = (0..keys).map(hash).collect();
        filter.insert_hashes(&all).expect("memory for the filter");
        let present: Vec<u64> = all.into_iter().step_by((keys / KEYS) as usize).collect();
        let absent: Vec<u64> = ((1 << 40)..(1 << 40) + KEYS).map(hash).collect();
        for (mix, hashes) in [("absent", &absent), ("present", &present)] {
            let mut ways = Named::default();
            for (way, look_up) in METHODS {
                let (filter, mut hits) = (&filter, Bitmask::new());
                let run = move |hashes: &[u64]| look_up(filter, hashes, &mut hits);
                ways.add(way, Case::batches(hashes, hashes.len(), hashes.len(), run));
            }
            ways.print(format!("{name} keys, {mix}"), given.rounds(21));
        }
    }
}
