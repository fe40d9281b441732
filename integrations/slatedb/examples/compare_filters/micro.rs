//! Filters without the engine: the bytes that a promised rate takes, and the time of lookups in
//! filters that outgrow the cache.

use std::sync::Arc;
use std::time::Instant;

use blocked_bloom::Sizing;
use blocked_bloom_slatedb::BlockedBloomPolicy;
use slatedb::bytes::Bytes;
use slatedb::{BloomFilterPolicy, Filter, FilterPolicy, FilterQuery, RowEntry, ValueDeletable};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A key of sixteen bytes, different for each number.
fn key(i: u64) -> Bytes {
    let mixed = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Bytes::from([mixed.to_be_bytes(), i.to_be_bytes()].concat())
}

fn lookups(numbers: std::ops::Range<u64>) -> Vec<FilterQuery> {
    numbers.map(|i| FilterQuery::point(key(i))).collect()
}

fn build(policy: &dyn FilterPolicy, keys: u64) -> Arc<dyn Filter> {
    let mut builder = policy.builder();
    for i in 0..keys {
        let (key, value) = (key(i), ValueDeletable::Tombstone);
        builder.add_entry(&RowEntry { key, value, seq: 0, create_ts: None, expire_ts: None });
    }
    builder.build()
}

/// Bytes that a promised rate takes: SlateDB's bits per key are whole numbers.
pub(crate) fn promises() -> Result<()> {
    const KEYS: u64 = 100_000;
    let absent = lookups(KEYS..KEYS + 1_000_000);
    let measured = |policy: &dyn FilterPolicy| {
        let filter = build(policy, KEYS);
        let maybes = absent.iter().filter(|query| filter.might_match(query)).count();
        (filter.size() as f64 / KEYS as f64, maybes as f64 / absent.len() as f64)
    };
    println!(
        "\nsmallest filter of {KEYS} keys that keeps a rate, and the rate of {} absent keys",
        absent.len()
    );
    println!("{:>10}{:>26}{:>26}", "promise, %", "SlateDB bytes/key, %", "blocked bytes/key, %");
    for promise in [0.1, 0.05, 0.02, 0.01, 0.005, 0.001] {
        let (bytes, rate) = (1..=40)
            .map(|bits| measured(&BloomFilterPolicy::new(bits)))
            .find(|&(_, rate)| rate <= promise)
            .ok_or("SlateDB's filter does not reach the rate")?;
        let ours = measured(&BlockedBloomPolicy::new(Sizing::FalsePositiveRate(promise))?);
        let cell = |bytes: f64, rate: f64| format!("{bytes:.3}, {:.3}", 100.0 * rate);
        println!("{:>10}{:>26}{:>26}", 100.0 * promise, cell(bytes, rate), cell(ours.0, ours.1));
    }
    Ok(())
}

/// Probes of one filter at equal bits per key, one after the other: the best of seven rounds.
pub(crate) fn probes(bits: u32) -> Result<()> {
    println!("\nprobes of one filter of {bits} bits per key, ns");
    println!("{:>10}{:>26}{:>26}", "keys", "SlateDB absent, present", "blocked absent, present");
    for keys in [60_000, 1_000_000, 10_000_000] {
        let theirs = build(&BloomFilterPolicy::new(bits), keys);
        let sizing = Sizing::BitsPerKey(f64::from(bits));
        let ours = build(&BlockedBloomPolicy::new(sizing)?, keys);
        let kinds = [lookups(keys..keys + 60_000), lookups(0..60_000)];
        let mut best = [[f64::INFINITY; 2]; 2];
        for _ in 0..7 {
            for (filter, best) in [&theirs, &ours].into_iter().zip(&mut best) {
                for (lookups, best) in kinds.iter().zip(best) {
                    let start = Instant::now();
                    let maybes = lookups.iter().filter(|query| filter.might_match(query));
                    std::hint::black_box(maybes.count());
                    let ns = start.elapsed().as_nanos() as f64 / lookups.len() as f64;
                    *best = best.min(ns);
                }
            }
        }
        let cell = |[absent, present]: [f64; 2]| format!("{absent:.1}, {present:.1}");
        println!("{keys:>10}{:>26}{:>26}", cell(best[0]), cell(best[1]));
    }
    Ok(())
}
