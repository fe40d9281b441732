//! Prints all figures of the package: tables that a scan reads, false-positive rates against the
//! bound, sizes, and times relative to a blocked Bloom filter.
//!
//! ```text
//! cargo run --release -p blocked-bloom-range --example ranges [tables | rates | times]...
//! ```
//!
//! Without arguments, prints all parts. The environment variable `KEYS` sets the number of keys of
//! rates and times.
#![expect(clippy::print_stdout, reason = "an example for the command line")]

use std::collections::BTreeSet;
use std::error::Error;
use std::hint::black_box;
use std::ops::Bound::{Excluded, Included};
use std::time::Instant;

use blocked_bloom::{Bitmask, BloomFilter, FilterOptions, KeyHasher, PrefixExtractor, Sizing};
use blocked_bloom_range::{RangeFilter, RangeOptions};

const BITS: f64 = 16.0;
const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

fn random(number: u64) -> u64 {
    KeyHasher::default().hash(number.to_le_bytes())
}

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A series in 4 bytes and a time in 8 bytes.
fn series_key(series: u64, time: u64) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&random(series).to_be_bytes()[..4]);
    key[4..].copy_from_slice(&time.to_be_bytes());
    key
}

struct Table {
    rows: BTreeSet<(u64, u64)>,
    least: [u8; 12],
    greatest: [u8; 12],
    /// Prefixes of series and 4.7 hours, and of series and 70 minutes.
    prefixes: [BloomFilter; 2],
    ranges: RangeFilter,
}

/// How many bits times are shifted so that the prefixes of 9 bytes end after 4.7 h and 70 min.
const SHIFTS: [u32; 2] = [0, 2];

impl Table {
    fn new(index: u64, rule: &PrefixExtractor) -> Result<Self> {
        let rows = (0..50_000).map(|i| random(index * 50_000 + i));
        let rows: BTreeSet<(u64, u64)> =
            rows.map(|random| (random % 2_000, (random >> 20) % (30 * DAY))).collect();
        let keys = |shift: u32| {
            let keys = rows.iter().map(|&(series, time)| series_key(series, time << shift));
            let mut keys: Vec<[u8; 12]> = keys.collect();
            keys.sort_unstable();
            keys
        };
        let prefixes = SHIFTS.map(|shift| {
            let options = FilterOptions::new(Sizing::MaxBytes(2 * rows.len() as u64));
            let mut builder = options.with_only_prefixes(rule.clone()).builder();
            builder.extend(keys(shift)).map(|()| builder.finish())
        });
        let [long, short] = prefixes;
        let keys = keys(0);
        let mut builder = RangeOptions::new(BITS).with_unit(16).builder();
        keys.iter().try_for_each(|key| builder.insert(&key[..]))?;
        Ok(Table {
            least: keys[0],
            greatest: keys[keys.len() - 1],
            rows,
            prefixes: [long??, short??],
            ranges: builder.finish()?,
        })
    }
}

/// Tables that one scan reads, of 16 overlapping tables.
fn tables() -> Result<()> {
    const SCANS: u64 = 2_000;
    let rule = PrefixExtractor::fixed(9).assume_keys_have_prefix();
    let tables = (0..16).map(|index| Table::new(index, &rule)).collect::<Result<Vec<_>>>()?;
    println!(
        "tables read by one scan of 16 overlapping tables, 50,000 keys each, 16 bits per key\n"
    );
    println!(
        "| scan of one id | exact | min/max of keys | id and 4.7 h | id and 70 min | range filter |"
    );
    println!("|---|---:|---:|---:|---:|---:|");
    for (name, span) in [("1 min", MINUTE), ("1 h", HOUR), ("6 h", 6 * HOUR), ("1 day", DAY)] {
        let mut read = [0_u64; 5];
        for scan in 0..SCANS {
            let random = random(u64::MAX - scan);
            let (id, from) = (random % 2_000, (random >> 20) % (30 * DAY - span));
            for table in &tables {
                let has_key = table.rows.range((id, from)..(id, from + span)).next().is_some();
                let bounds = |shift| [from, from + span].map(|time| series_key(id, time << shift));
                let by_prefix = |i: usize| {
                    let [lower, upper] = bounds(SHIFTS[i]);
                    let (lower, upper) = (Included(&lower[..]), Excluded(&upper[..]));
                    table.prefixes[i].contains_range(&rule, lower, upper)
                };
                let [lower, upper] = bounds(0);
                let answers = [
                    has_key,
                    table.least < upper && lower <= table.greatest,
                    by_prefix(0),
                    by_prefix(1),
                    table.ranges.contains_range(Included(&lower[..]), Excluded(&upper[..])),
                ];
                assert!(!has_key || answers.iter().all(|&maybe| maybe), "a scan lost its keys");
                read.iter_mut().zip(answers).for_each(|(sum, maybe)| *sum += u64::from(maybe));
            }
        }
        print!("| {name} |");
        read.iter().for_each(|&sum| print!(" {:.2} |", sum as f64 / SCANS as f64));
        println!();
    }
    let bytes: u64 = tables.iter().map(|table| table.ranges.memory_bytes()).sum();
    let keys: u64 = tables.iter().map(|table| table.ranges.keys_inserted()).sum();
    println!("\nrange filters: {:.2} bits per key", 8.0 * bytes as f64 / keys as f64);
    Ok(())
}

/// Sorted sets of integers. The last three have the shapes of common data sets for learned indexes:
/// popularity of books, cells on a map, and identifiers of users with a few very large ones.
fn sets(count: u64) -> Vec<(&'static str, Vec<u64>)> {
    let unit = |i: u64| (random(i) >> 11) as f64 / (1_u64 << 53) as f64;
    let uniform = (0..count).map(random).collect();
    let clustered = (0..count).map(|i| (random(i / 100) >> 1) + i % 100 * 97 + random(i) % 64);
    let series = (0..count).map(|i| {
        let time = 0xe8_0000_0000 + i % 100 * 11_000 + random(i) % 9_000;
        random(i / 100) >> 40 << 40 | time
    });
    let books =
        (0..count).map(|i| (1e9 * (2.0 * (unit(i) + unit(!i) + unit(i << 32) - 1.5)).exp()) as u64);
    let cells = (0..count).map(|i| {
        let (level, city) = (random(i) % 3, random(i % 977));
        (city & !(0xffff_ffff_ffff >> (8 * level))) | (random(!i) % (1 << (48 - 8 * level)))
    });
    let users = (0..count).map(|i| if i % 1_000 == 0 { random(i) } else { random(i) >> 28 });
    let sets = [
        ("uniform", uniform),
        ("clustered", clustered.collect()),
        ("id/time", series.collect()),
        ("books", books.collect()),
        ("cells", cells.collect()),
        ("users", users.collect::<Vec<u64>>()),
    ];
    let sorted = |(name, mut keys): (_, Vec<u64>)| {
        keys.sort_unstable();
        keys.dedup();
        (name, keys)
    };
    sets.map(sorted).into()
}

fn built(bits: f64, keys: &[u64]) -> Result<RangeFilter> {
    let mut builder = RangeOptions::new(bits).builder();
    keys.iter().try_for_each(|&key| builder.insert(key))?;
    Ok(builder.finish()?)
}

/// False-positive rates of empty ranges near keys (within 64) and far from them (anywhere between
/// the least and the greatest key), against the bound.
fn rates(count: u64) -> Result<()> {
    println!("\nfalse-positive rate in percent, {count} keys, 1,000,000 ranges each\n");
    println!("| keys | bits per key | L | bound | near | far | Bloom, each value |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for (name, keys) in sets(count) {
        for bits in [12.0, 16.0, 20.0] {
            let filter = built(bits, &keys)?;
            let options = FilterOptions::new(Sizing::BitsPerKey(bits));
            let mut bloom = options.empty_filter(keys.len() as u64)?;
            bloom.insert_u64s(&keys)?;
            let actual = 8.0 * filter.memory_bytes() as f64 / keys.len() as f64;
            for units in [1, 16, 1_024] {
                let mut rates = [0.0; 3];
                for is_near in [true, false] {
                    let (mut empty, mut maybe, mut by_values) = (0_u64, 0_u64, 0_u64);
                    let (least, span) = (keys[0], keys[keys.len() - 1] - keys[0]);
                    for query in 0..1_000_000_u64 {
                        let random = random(query ^ units << 40);
                        let near = keys[random as usize % keys.len()];
                        let lower = match is_near {
                            true => near.saturating_add(1 + (random >> 32) % 64),
                            false => least + random % span,
                        };
                        let upper = lower.saturating_add(units - 1);
                        let at = keys.partition_point(|&key| key < lower);
                        if keys.get(at).is_some_and(|&key| key <= upper) {
                            continue;
                        }
                        empty += 1;
                        maybe += u64::from(filter.contains_range(Included(lower), Included(upper)));
                        let values = (lower..=upper).take(if is_near { 0 } else { 16 });
                        let is_long = units > 16;
                        let found = values.into_iter().any(|key| bloom.contains(key.to_le_bytes()));
                        by_values += u64::from(is_long || found);
                    }
                    rates[usize::from(!is_near)] = 100.0 * maybe as f64 / empty.max(1) as f64;
                    rates[2] = 100.0 * by_values as f64 / empty.max(1) as f64;
                }
                let bound = 1.2 * 0.95_f64.exp2() * units as f64 / (bits - 2.0).exp2();
                let bound = 100.0 * bound.min(1.0);
                let [near, far, values] = rates;
                println!(
                    "| {name} | {actual:.2} | {units} | {bound:.4} | {near:.4} | {far:.4} \
                     | {values:.4} |"
                );
                // Chance explains a little more than the bound where few ranges pass.
                assert!(
                    near.max(far) <= bound + 0.6 * (bound / 100.0).sqrt() + 0.001,
                    "above the bound"
                );
            }
        }
    }
    Ok(())
}

/// A row of the table of times: a run, and the index of the row that its times are divided by. The
/// run returns a number so that the compiler keeps all of it.
struct Timed<'t> {
    name: &'static str,
    reference: usize,
    items: usize,
    run: Box<dyn FnMut() -> u64 + 't>,
    /// Nanoseconds per item of each round.
    rounds: Vec<f64>,
}

impl Timed<'_> {
    fn median(&self) -> f64 {
        let mut rounds = self.rounds.clone();
        rounds.sort_by(f64::total_cmp);
        rounds[rounds.len() / 2]
    }

    fn least(&self) -> f64 {
        self.rounds.iter().copied().fold(f64::MAX, f64::min)
    }
}

/// Times of lookups and of building, relative to a blocked Bloom filter of the same size, in rounds
/// that alternate.
fn times(count: u64) -> Result<()> {
    const LOOKUPS: usize = 1 << 14;
    const ROUNDS: usize = 25;
    let (_, keys) = sets(count).swap_remove(0);
    let build = || -> Result<BloomFilter> {
        let options = FilterOptions::new(Sizing::BitsPerKey(BITS));
        let mut bloom = options.empty_filter(keys.len() as u64)?;
        bloom.insert_u64s(&keys)?;
        Ok(bloom)
    };
    let (bloom, filter) = (build()?, built(BITS, &keys)?);
    // Every second integer: a part of a bucket holds thousands of codes.
    let dense = built(BITS, &(0..count).map(|i| 2 * i).collect::<Vec<_>>())?;
    let lower = |i: u64| match i % 2 {
        0 => random(i),
        _ => keys[random(i) as usize % keys.len()].saturating_add(1 + i % 64),
    };
    let points: Vec<u64> = (0..LOOKUPS as u64).map(lower).collect();
    let ranges: Vec<_> =
        points.iter().map(|&key| (Included(key), Included(key.saturating_add(15)))).collect();
    let absent: Vec<_> = (0..LOOKUPS as u64 / 16)
        .map(|i| Included(random(i) % count * 2 + 1))
        .map(|bound| (bound, bound))
        .collect();
    let single = |filter: &RangeFilter, ranges: &[_]| {
        ranges.iter().map(|&(low, high)| u64::from(filter.contains_range(low, high))).sum()
    };
    let batches = |run: &mut dyn FnMut(usize, &mut Bitmask)| {
        let mut hits = Bitmask::new();
        (0..LOOKUPS).step_by(1_024).fold(0, |sum: u64, at| {
            run(at, &mut hits);
            sum.wrapping_add(hits.words()[0])
        })
    };
    let timed = |name, reference, items, run| Timed { name, reference, items, run, rounds: vec![] };
    let mut all = [
        timed("Bloom, build", 0, keys.len(), Box::new(|| build().map_or(0, |f| f.memory_bytes()))),
        timed(
            "Bloom, one key",
            1,
            LOOKUPS,
            Box::new(|| {
                points.iter().map(|key| u64::from(bloom.contains(key.to_le_bytes()))).sum()
            }),
        ),
        timed(
            "Bloom, batches of 1,024",
            2,
            LOOKUPS,
            Box::new(|| {
                batches(&mut |at, hits| bloom.contains_u64s(&points[at..at + 1_024], hits))
            }),
        ),
        timed(
            "build",
            0,
            keys.len(),
            Box::new(|| built(BITS, &keys).map_or(0, |filter| filter.memory_bytes())),
        ),
        timed("one range", 1, LOOKUPS, Box::new(|| single(&filter, &ranges))),
        timed(
            "batches of 1,024",
            2,
            LOOKUPS,
            Box::new(|| {
                batches(&mut |at, hits| filter.contains_ranges(&ranges[at..at + 1_024], hits))
            }),
        ),
        timed(
            "one range, every second integer is a key",
            4,
            absent.len(),
            Box::new(|| single(&dense, &absent)),
        ),
    ];
    for round in 0..ROUNDS {
        for timed in &mut all {
            // Building takes as long as all the rest.
            if timed.items == keys.len() && round % 5 > 0 {
                continue;
            }
            let start = Instant::now();
            black_box((timed.run)());
            timed.rounds.push(start.elapsed().as_nanos() as f64 / timed.items as f64);
        }
    }
    println!("\ntimes, {count} uniform keys, {BITS} bits per key, ranges of 16 values\n");
    println!("| per key or lookup | ns, median | least | relative to | median | least |");
    println!("|---|---:|---:|---|---:|---:|");
    for timed in &all {
        let reference = &all[timed.reference];
        let (median, least) = (timed.median(), timed.least());
        println!(
            "| {} | {median:.1} | {least:.1} | {} | {:.2} | {:.2} |",
            timed.name,
            reference.name,
            median / reference.median(),
            least / reference.least()
        );
    }
    Ok(())
}

fn main() -> Result<()> {
    let count = std::env::var("KEYS").map_or(Ok(300_000), |keys| keys.parse())?;
    let parts: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    if is_wanted("tables") {
        tables()?;
    }
    if is_wanted("rates") {
        rates(count)?;
    }
    if is_wanted("times") {
        times(count)?;
    }
    Ok(())
}
