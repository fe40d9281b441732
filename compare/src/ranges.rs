//! Range filters on the workloads of Grafite's benchmark (SIGMOD 2024): integers in the shapes of
//! its data sets, and empty ranges of 1, 32 and 1,024 values. A range of correlation degree D
//! starts at most 2^(30 (1 - D)) after a key, and an uncorrelated one anywhere. The other filter
//! is that of the crate `grafite`, with as many bits per key.

use std::ops::Bound::Included;

use benches::clock::{Case, Named};
use blocked_bloom::{Bitmask, KeyHasher};
use blocked_bloom_range::{RangeFilter, RangeOptions};
use grafite::PairwiseIndependentHasher;

use crate::measure::BATCH;

/// Ranges of a cell of the table.
const RANGES: usize = 1 << 17;

const BITS: f64 = 16.0;

type Ranges = Vec<(u64, u64)>;

fn random(number: u64) -> u64 {
    KeyHasher::default().hash(number.to_le_bytes())
}

/// Sorted keys by the name of their shape: popularity of books, cells on a map, and identifiers of
/// users with a few very large ones.
fn sets(count: u64) -> [(&'static str, Vec<u64>); 4] {
    let unit = |i: u64| (random(i) >> 11) as f64 / (1_u64 << 53) as f64;
    let book = |i: u64| 1e9 * (2.0 * (unit(i) + unit(!i) + unit(i << 32) - 1.5)).exp();
    let cell = |i: u64| {
        let (bits, city) = (48 - 8 * (random(i) % 3), random(i % 977));
        (city & !((1 << bits) - 1)) | (random(!i) % (1 << bits))
    };
    let user = |i: u64| if i.is_multiple_of(1_000) { random(i) } else { random(i) >> 28 };
    let sets: [(_, Vec<u64>); 4] = [
        ("uniform", (0..count).map(random).collect()),
        ("books", (0..count).map(|i| book(i) as u64).collect()),
        ("cells", (0..count).map(cell).collect()),
        ("users", (0..count).map(user).collect()),
    ];
    sets.map(|(name, mut keys)| {
        keys.sort_unstable();
        keys.dedup();
        (name, keys)
    })
}

/// Empty ranges of this many values. `None` is uncorrelated.
fn ranges(keys: &[u64], values: u64, degree: Option<f64>) -> Ranges {
    let (least, span) = (keys[0], keys[keys.len() - 1] - keys[0]);
    let lower = |i: u64| match degree {
        None => least + random(i) % span,
        Some(degree) => {
            let distance = (30.0 * (1.0 - degree)).exp2() as u64;
            let key = keys[random(!i) as usize % keys.len()];
            key.saturating_add(1 + random(i) % distance)
        }
    };
    let range = |i| (lower(i), lower(i).saturating_add(values - 1));
    let is_empty = |&(lower, upper): &(u64, u64)| {
        keys.get(keys.partition_point(|&key| key < lower)).is_none_or(|&key| key > upper)
    };
    // Keys that are close together leave few empty ranges near them, or none.
    (0..16 * RANGES as u64).map(range).filter(is_empty).take(RANGES).collect()
}

/// Prints a table of rates, then times.
pub(crate) fn measure(quick: bool) {
    let count = if quick { 200_000 } else { 1_000_000 };
    println!("Ranges without a key that are not ruled out, percent; {BITS} bits per key\n");
    println!("| keys | correlation | values | blocked-bloom-range | grafite |");
    println!("|---|---|---:|---:|---:|");
    let mut first = None;
    for (name, keys) in sets(count) {
        let mut builder = RangeOptions::new(BITS).builder();
        keys.iter().for_each(|&key| builder.insert(key).expect("sorted keys"));
        let ours = builder.finish().expect("memory");
        let codes = (keys.len() as f64 * (BITS - 2.0).exp2()) as u64;
        let hasher = PairwiseIndependentHasher::new_with_reduced(codes);
        let other = grafite::RangeFilter::new(keys.iter().copied(), hasher);
        assert!(keys.iter().all(|&key| ours.contains(key)), "a key is lost");
        for (correlation, degree) in
            [("none", None), ("0", Some(0.0)), ("0.5", Some(0.5)), ("1", Some(1.0))]
        {
            for values in [1, 32, 1_024] {
                let ranges = ranges(&keys, values, degree);
                let percent = |maybe: usize| 100.0 * maybe as f64 / ranges.len().max(1) as f64;
                let found = |contains: &dyn Fn(u64, u64) -> bool| {
                    percent(ranges.iter().filter(|&&(low, high)| contains(low, high)).count())
                };
                println!(
                    "| {name} | {correlation} | {values} | {:.4} | {:.4} |",
                    found(&|low, high| ours.contains_range(Included(low), Included(high))),
                    found(&|low, high| other.query(low..=high)),
                );
            }
        }
        first.get_or_insert((keys, ours, other));
    }
    let Some((keys, ours, other)) = first else { return };
    for values in [32, 1_024] {
        times(&ours, &|low, high| other.query(low..=high), &ranges(&keys, values, None), quick);
    }
}

fn times(ours: &RangeFilter, other: &dyn Fn(u64, u64) -> bool, ranges: &Ranges, quick: bool) {
    let bounds: Vec<_> =
        ranges.iter().map(|&(low, high)| (Included(low), Included(high))).collect();
    let mut hits = Bitmask::new();
    let mut rows = Named::default();
    let ours_one = |part: &[(u64, u64)]| {
        let found =
            |&&(low, high): &&(u64, u64)| ours.contains_range(Included(low), Included(high));
        part.iter().filter(found).count()
    };
    let all = ranges.len();
    rows.add("blocked-bloom-range, one range a call", Case::batches(ranges, all, all, ours_one));
    let batch = |part: &[_]| {
        ours.contains_ranges(part, &mut hits);
        hits.count_hits()
    };
    rows.add("blocked-bloom-range, 1,024 a call", Case::batches(&bounds, all, BATCH, batch));
    let other_one =
        |part: &[(u64, u64)]| part.iter().filter(|&&(low, high)| other(low, high)).count();
    rows.add("grafite", Case::batches(ranges, all, all, other_one));
    let values = ranges[0].1 - ranges[0].0 + 1;
    rows.print(format!("uniform keys, ranges of {values} values"), if quick { 9 } else { 31 });
}
