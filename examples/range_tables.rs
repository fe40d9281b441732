//! Scans one series over a span of time, and uses filters of key prefixes to find the tables that
//! must be read.
//!
//! ```text
//! cargo run --release --example range_tables
//! ```
//!
//! The keys are `id | time`: a series in 4 bytes and milliseconds in 8 bytes, big-endian. Each of
//! 16 tables has keys of every series at random times of 30 days, as tables of one level do that
//! overlap. For several prefix rules and spans, prints the mean number of tables that a scan reads.
//! A filter takes 16 bits per key of its table. A time that is shifted to the left keeps its order,
//! and moves the end of the prefix: after a shift by 2 bits, the 3 bytes after the prefix are
//! 2^22 ms, which are 70 minutes.
#![expect(clippy::print_stdout, reason = "an example for the command line")]

use std::collections::BTreeSet;
use std::error::Error;
use std::ops::Bound::{Excluded, Included};

use blocked_bloom::{BloomFilter, FilterOptions, KeyHasher, PrefixExtractor, Sizing};

const TABLES: u64 = 16;
const KEYS: u64 = 50_000;
const SERIES: u64 = 2_000;
const SCANS: u64 = 2_000;
const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

type Key = [u8; 12];

/// The name of a prefix rule, by how many bits the time is shifted, and the length of the prefix.
const RULES: [(&str, u32, usize); 4] =
    [("id", 0, 4), ("id and 4.7 h", 0, 9), ("id and 70 min", 2, 9), ("id and 65 s", 0, 10)];

fn key(series: u64, time: u64) -> Key {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&random(series).to_be_bytes()[..4]);
    key[4..].copy_from_slice(&time.to_be_bytes());
    key
}

fn random(number: u64) -> u64 {
    KeyHasher::default().hash(number.to_le_bytes())
}

fn build(table: &BTreeSet<(u64, u64)>, shift: u32, rule: &PrefixExtractor) -> Built {
    let options = FilterOptions::new(Sizing::MaxBytes(2 * table.len() as u64));
    let mut builder = options.with_only_prefixes(rule.clone()).builder();
    let mut keys: Vec<Key> = table.iter().map(|&(id, time)| key(id, time << shift)).collect();
    keys.sort_unstable();
    builder.extend(&keys)?;
    Ok((builder.finish()?, keys[0], keys[keys.len() - 1]))
}

/// A filter, and the least and greatest key of its table.
type Built = Result<(BloomFilter, Key, Key), Box<dyn Error>>;

fn main() -> Result<(), Box<dyn Error>> {
    let tables: Vec<BTreeSet<(u64, u64)>> = (0..TABLES)
        .map(|table| {
            let keys = (0..KEYS).map(|i| random(table * KEYS + i));
            keys.map(|random| (random % SERIES, (random >> 20) % (30 * DAY))).collect()
        })
        .collect();
    println!("tables read by one scan of {TABLES} overlapping tables, {KEYS} keys each");
    print!("\n{:<8}{:>8}{:>10}", "span", "exact", "min/max");
    RULES.iter().for_each(|(name, ..)| print!("{name:>16}"));
    println!();
    // All keys have 12 bytes, and so a prefix by each rule.
    let rules = RULES.map(|(_, _, bytes)| PrefixExtractor::fixed(bytes).assume_keys_have_prefix());
    let mut filters = Vec::new();
    for ((_, shift, _), rule) in RULES.iter().zip(&rules) {
        let of_rule: Result<Vec<_>, _> =
            tables.iter().map(|table| build(table, *shift, rule)).collect();
        filters.push(of_rule?);
    }
    for (name, span) in [("1 min", MINUTE), ("1 h", HOUR), ("6 h", 6 * HOUR), ("1 day", DAY)] {
        let (mut exact, mut in_bounds, mut read) = (0, 0, [0_u64; RULES.len()]);
        for scan in 0..SCANS {
            let random = random(u64::MAX - scan);
            let (id, from) = (random % SERIES, (random >> 20) % (30 * DAY - span));
            for (table, keys) in tables.iter().enumerate() {
                let has_key = keys.range((id, from)..(id, from + span)).next().is_some();
                exact += u64::from(has_key);
                for (rule, (_, shift, _)) in RULES.iter().enumerate() {
                    let (filter, least, greatest) = &filters[rule][table];
                    let [lower, upper] = [from, from + span].map(|time| key(id, time << shift));
                    let (low, high) = (Included(&lower[..]), Excluded(&upper[..]));
                    let maybe = filter.contains_range(&rules[rule], low, high);
                    assert!(maybe || !has_key, "a scan of {name} lost its keys");
                    read[rule] += u64::from(maybe);
                    in_bounds += u64::from(rule == 0 && *least < upper && lower <= *greatest);
                }
            }
        }
        let mean = |count: u64| count as f64 / SCANS as f64;
        print!("{name:<8}{:>8.2}{:>10.2}", mean(exact), mean(in_bounds));
        read.iter().for_each(|&count| print!("{:>16.2}", mean(count)));
        println!();
        // The rules with time rule out most tables for an hour, and none without.
        assert!(read[0] == SCANS * TABLES && (span > HOUR || mean(read[2]) < 1.5));
    }
    Ok(())
}
