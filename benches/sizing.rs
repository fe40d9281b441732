//! What sizing takes: a row for each of some sizings and numbers of keys, the median and, in brackets, the least of 25 rounds of some 10
//! microseconds.
//!
//! `partition` builds the filter of 3,276 keys sized by a rate of 1 %, and by the bits that gives, interleaved.
//!
//! `cargo bench --bench sizing` takes some seconds; `-- rates` runs only a part.

#![allow(clippy::print_stdout, reason = "a program")]

use std::hint::black_box;
use std::time::Instant;

use benches::clock::{Case, Named, Timing};
use benches::rows::Given;
use benches::workload::hash;
use blocked_bloom::{BloomFilter, FilterOptions, Sizing};

/// Nanoseconds per call, over this many calls. By the clock on the wall: reading that of the thread takes as long as some of these calls.
fn time<R>(calls: u32, call: impl Fn() -> R) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        black_box(call());
    }
    start.elapsed().as_nanos() as f64 / f64::from(calls)
}

/// Building a partition of 4 KiB, by bits and by rate.
fn partition(rounds: usize) {
    let hashes: &Vec<u64> = &(1..=3_276).map(hash).collect();
    let rate = Sizing::FalsePositiveRate(0.01);
    let blocks = rate.params(3_276).expect("a legal rate").blocks();
    // Half a block less, so that rounding up gives as many.
    let bits = Sizing::BitsPerKey((f64::from(blocks) - 0.5) * 512.0 / 3_276.0);
    let mut ways = Named::default();
    for (name, sizing) in [("by bits", bits), ("by rate", rate), ("by bits again", bits)] {
        let options = FilterOptions::new(sizing);
        let build = move || BloomFilter::from_hashes(&options, black_box(hashes));
        ways.add(name, Case::new(8, move |_| (0..8).for_each(|_| drop(black_box(build())))));
    }
    println!("partition of 3276 keys, ns: median (least), ratio\n{}", ways.lines(rounds));
}

fn rows(sizings: &[Sizing]) {
    for &sizing in sizings {
        for keys in [1, 40, 100, 300, 1_000, 10_000, 1_000_000, 100_000_000, 10_000_000_000] {
            let call = || black_box(sizing).params(black_box(keys));
            let calls = (1e4 / time(100, call)) as u32 + 1;
            let times = Timing::of((0..25).map(|_| time(calls, call)).collect());
            let blocks = sizing.params(keys).map_or("an error".into(), |found| found.to_string());
            println!("{sizing}: {times:.0} ns, {blocks}");
        }
    }
}

fn main() {
    let given = Given::to("sizing");
    if given.has("bits") {
        rows(&[1.0, 5.0, 10.0, 16.0, 40.0, 100.0].map(Sizing::BitsPerKey));
    }
    if given.has("rates") {
        rows(&[0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-6, 1e-8, 1e-12].map(Sizing::FalsePositiveRate));
        rows(&[1.0 - 1e-3, 1.0 - 5e-6, 1.0 - 1e-7].map(Sizing::FalsePositiveRate));
    }
    if given.has("partition") {
        partition(given.rounds(301));
    }
}
