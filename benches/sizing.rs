//! The time of sizing a filter, for several sizings and numbers of keys: the median and, in
//! brackets, the minimum of 25 rounds of about 10 microseconds.
//!
//! `cargo bench -p blocked-bloom-benches --bench sizing` takes some seconds; `-- rates` runs only a
//! part.

#![allow(clippy::print_stdout, reason = "a program")]

use std::hint::black_box;
use std::time::Instant;

use benches::rows::Arguments;
use benches::timing::Timing;
use blocked_bloom::Sizing;

/// Nanoseconds per call, over this many calls. By the clock on the wall: reading that of the thread
/// takes as long as some of these calls.
fn time<R>(calls: u32, call: impl Fn() -> R) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        black_box(call());
    }
    start.elapsed().as_nanos() as f64 / f64::from(calls)
}

fn main() {
    let given = Arguments::from_command_line();
    let bits = [1.0, 5.0, 10.0, 16.0, 40.0, 100.0].map(Sizing::BitsPerKey);
    let rates = [1.0 - 1e-7, 1.0 - 5e-6, 1.0 - 1e-3, 0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-6, 1e-8, 1e-12];
    let tables = [("bits", &bits[..]), ("rates", &rates.map(Sizing::FalsePositiveRate))];
    for &sizing in
        tables.iter().filter(|(name, _)| given.is_requested(name)).flat_map(|(_, table)| *table)
    {
        for keys in [1, 40, 100, 300, 1_000, 10_000, 1_000_000, 100_000_000, 10_000_000_000] {
            let call = || black_box(sizing).params(black_box(keys));
            let calls = (1e4 / time(100, call)) as u32 + 1;
            let times = Timing::from_times((0..25).map(|_| time(calls, call)).collect());
            let blocks = sizing.params(keys).map_or("an error".into(), |found| found.to_string());
            println!("{sizing}: {times:.0} ns, {blocks}");
        }
    }
}
