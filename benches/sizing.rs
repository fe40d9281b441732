//! What sizing takes: a row for each of some sizings and numbers of keys, then many numbers of keys together.
//!
//! A row has the median and, in brackets, the least of 25 rounds of some 10 microseconds. Of many sizings, each the fastest of several
//! calls, there are the median, the 99th percentile and the maximum.
//!
//! `partition` builds the filter of 3,276 keys sized by a rate of 1 %, and by the bits that gives, interleaved.
//!
//! `cargo bench --bench sizing` takes some seconds; `-- rates` runs only the tables whose name contains `rates`.

#![allow(clippy::print_stdout, reason = "a program")]

use std::hint::black_box;
use std::time::Instant;

use blocked_bloom::{BloomFilter, FilterOptions, Sizing};

/// Nanoseconds per call, over this many calls.
fn time<R>(calls: u32, call: impl Fn() -> R) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        black_box(call());
    }
    start.elapsed().as_nanos() as f64 / f64::from(calls)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Building a partition of 4 KiB, by bits and by rate.
fn partition() {
    let hashes: Vec<u64> = (1..=3_276_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let rate = Sizing::FalsePositiveRate(0.01);
    let blocks = rate.params(3_276).expect("a legal rate").blocks();
    // Half a block less, so that rounding up gives as many.
    let bits = Sizing::BitsPerKey((f64::from(blocks) - 0.5) * 512.0 / 3_276.0);
    let options = [bits, rate, bits].map(FilterOptions::new);
    let build = |options: &FilterOptions| BloomFilter::from_hashes(options, black_box(&hashes));
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..301 {
        for (options, times) in options.iter().zip(&mut times) {
            times.push(time(8, || build(options)));
        }
    }
    let [by_bits, by_rate, again] = times.each_mut().map(|times| median(times));
    println!(
        "partition of 3276 keys: {by_bits:.0} ({:.0}) ns by bits, {by_rate:.0} ({:.0}) by rate, ratio {:.3}; by bits again {:.3}",
        times[0][0],
        times[1][0],
        by_rate / by_bits,
        again / by_bits
    );
}

fn rows(sizings: &[Sizing]) {
    for &sizing in sizings {
        for keys in [1, 40, 100, 300, 1_000, 10_000, 1_000_000, 100_000_000, 10_000_000_000] {
            let call = || black_box(sizing).params(black_box(keys));
            let calls = (1e4 / time(100, call)) as u32 + 1;
            let mut times: Vec<f64> = (0..25).map(|_| time(calls, call)).collect();
            let blocks = sizing.params(keys).map_or("an error".into(), |found| found.to_string());
            println!("{sizing}: {:.0} ({:.0}) ns, {blocks}", median(&mut times), times[0]);
        }
    }
}

/// Many calls that have not been made before.
fn many(name: &str, sizings: impl Iterator<Item = Sizing> + Clone) {
    let mut times = Vec::new();
    for step in 0..400 {
        let keys = 10_f64.powf(f64::from(step) * 12.0 / 400.0) as u64;
        for sizing in sizings.clone() {
            let call = || black_box(sizing).params(black_box(keys));
            let least = (0..7).map(|_| time(4, call)).fold(f64::INFINITY, f64::min);
            times.push((least, sizing, keys));
        }
    }
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let at = |part: usize| times[(times.len() - 1) * part / 100].0;
    let (worst, sizing, keys) = times[times.len() - 1];
    println!(
        "{name}, {} sizings: median {:.0} ns, 99 % within {:.0} ns, worst {worst:.0} ns: {sizing}, {keys} keys",
        times.len(),
        at(50),
        at(99)
    );
}

fn main() {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let runs = |name: &str| filter.as_ref().is_none_or(|filter| name.contains(filter.as_str()));
    if runs("bits") {
        rows(&[1.0, 5.0, 10.0, 16.0, 40.0, 100.0].map(Sizing::BitsPerKey));
        many("bits", (1..=300).map(|step| Sizing::BitsPerKey(f64::from(step) / 3.0)));
    }
    if runs("rates") {
        rows(&[0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-6, 1e-8, 1e-12].map(Sizing::FalsePositiveRate));
        let rate = |step: i32| Sizing::FalsePositiveRate(10_f64.powf(f64::from(-step) / 25.0));
        many("rates", (1..=215).map(rate));
        let near_one =
            |step: i32| Sizing::FalsePositiveRate(1.0 - 0.5 * 10_f64.powf(f64::from(-step) / 20.0));
        many("rates up to 1 - 5e-6", (0..=100).map(near_one));
        many("rates nearer to 1", (102..=140).map(near_one));
    }
    if runs("partition") {
        partition();
    }
}
