//! Sizing beside the search that it replaces (`tests/sizing_reference`), and the longest that any sizing takes.
//!
//! Both are interleaved in the same run, each some microseconds at a time. A row is one sizing and number of keys: medians, least in
//! brackets, and the ratio of the medians. Then the new one alone, for many numbers of keys: the fastest of several
//! calls for each, and of these the median, the 99th percentile and the maximum.
//!
//! `partition` builds the filter of 3,276 keys sized by a rate of 1 %, and by the bits that gives.
//!
//! `cargo bench --bench sizing` takes a minute; `-- rates` runs only the rows whose name contains `rates`.

#![allow(clippy::print_stdout, reason = "a program")]

#[path = "../tests/sizing_reference/mod.rs"]
mod sizing_reference;

use std::hint::black_box;
use std::time::Instant;

use blocked_bloom::{BloomFilter, FilterOptions, Sizing};

/// Nanoseconds per call, over so many calls.
fn time<R>(calls: u32, call: impl Fn() -> R) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        black_box(call());
    }
    start.elapsed().as_nanos() as f64 / f64::from(calls)
}

/// Calls that take some 10 us.
fn calls<R>(call: impl Fn() -> R) -> u32 {
    (1..)
        .map(|power| 1 << power)
        .find(|&calls| f64::from(calls) * time(calls, &call) > 1e4)
        .unwrap_or(1)
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
        "partition of 3276 keys: {by_bits:.0} ({:.0}) ns by bits, {by_rate:.0} ({:.0}) by rate, ratio {:.3}; by bits again {:.3}\n",
        times[0][0],
        times[1][0],
        by_rate / by_bits,
        again / by_bits
    );
}

fn compare(sizing: Sizing, keys: u64) -> f64 {
    let old = || sizing_reference::params(black_box(sizing), black_box(keys), false);
    let new = || black_box(sizing).params(black_box(keys));
    let (old_calls, new_calls) = (calls(old), calls(new));
    let (mut olds, mut news) = (Vec::new(), Vec::new());
    for _ in 0..25 {
        olds.push(time(old_calls, old));
        news.push(time(new_calls, new));
    }
    let (old, new) = (median(&mut olds), median(&mut news));
    let blocks = found(sizing, keys);
    println!(
        "{sizing}, {keys} keys, {blocks}: {old:.0} ({:.0}) ns before, {new:.1} ({:.1}) ns, ratio {:.0}",
        olds[0],
        news[0],
        old / new
    );
    old / new
}

fn found(sizing: Sizing, keys: u64) -> String {
    sizing.params(keys).map_or("an error".into(), |params| format!("blocks {}", params.blocks()))
}

/// The new one alone: many calls that have not been made before.
fn alone(name: &str, sizings: impl Iterator<Item = Sizing> + Clone) {
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
    let keys = [
        0,
        1,
        10,
        40,
        51,
        60,
        100,
        150,
        300,
        1_000,
        3_000,
        10_000,
        100_000,
        1_000_000,
        100_000_000,
        10_000_000_000,
        1_000_000_000_000,
    ];
    let bits = [0.1, 1.0, 5.0, 10.0, 12.0, 16.0, 20.0, 100.0].map(Sizing::BitsPerKey);
    let rates = [0.9, 0.5, 0.1, 0.05, 0.01, 1e-3, 1e-4, 1e-6, 1e-8, 2e-9, 1e-12]
        .map(Sizing::FalsePositiveRate);
    for (name, sizings) in [("bits", &bits[..]), ("rates", &rates[..])] {
        if !runs(name) {
            continue;
        }
        let (mut one, mut more, mut error) = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
        for (&sizing, keys) in sizings.iter().flat_map(|sizing| keys.map(|keys| (sizing, keys))) {
            let least = match sizing.params(keys) {
                Ok(params) if params.blocks() == 1 => &mut one,
                Ok(_) => &mut more,
                Err(_) => &mut error,
            };
            *least = least.min(compare(sizing, keys));
        }
        println!(
            "{name}: lowest ratio {more:.0}, {one:.0} with one block, {error:.0} for an error\n"
        );
    }
    if runs("partition") {
        partition();
    }
    if runs("alone") {
        alone("bits", (1..=300).map(|step| Sizing::BitsPerKey(f64::from(step) / 3.0)));
        let rate = |step: i32| Sizing::FalsePositiveRate(10_f64.powf(f64::from(-step) / 25.0));
        alone("rates", (1..=300).map(rate));
        let near_one =
            |step: i32| Sizing::FalsePositiveRate(1.0 - 0.5 * 10_f64.powf(f64::from(-step) / 20.0));
        alone("rates up to 1 - 5e-6", (0..=100).map(near_one));
        alone("rates nearer to 1", (102..=140).map(near_one));
    }
}
