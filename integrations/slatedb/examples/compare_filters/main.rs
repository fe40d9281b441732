//! The same workload in SlateDB without filters, with its own, and with this crate's.
//!
//! `cargo run --release --example compare_filters [-- --keys 1000000]`
//!
//! Sixteen tables in memory, keys spread over all of them, so that a key is looked up in sixteen
//! filters. A tenth as many absent and present keys are looked up, and a hundredth as many prefixes
//! scanned, half of them absent, by prefix or by range. The policies are timed from inside, by a
//! policy around them.

mod micro;
mod profile;
mod workload;

use std::sync::Arc;

use blocked_bloom::Sizing;
use blocked_bloom_slatedb::BlockedBloomPolicy;
use slatedb::{BloomFilterPolicy, FilterPolicy};
use workload::{Outcome, TABLES, Tenant};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const BITS: u32 = 10;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut keys = 1_000_000_u64;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match (argument.as_str(), arguments.next().map(|value| value.parse())) {
            ("--keys", Some(Ok(count))) if (1_000..=100_000_000).contains(&count) => keys = count,
            _ => return Err("usage: compare_filters [--keys 1000..100000000]".into()),
        }
    }
    println!("{keys} keys in {TABLES} tables, keys and prefixes in each filter\n");
    let theirs = || Arc::new(BloomFilterPolicy::new(BITS).with_prefix_extractor(Arc::new(Tenant)));
    let ours = |sizing| -> Result<Arc<dyn FilterPolicy>> {
        Ok(Arc::new(BlockedBloomPolicy::new(sizing)?.prefixes(Arc::new(Tenant)).with_ranges()))
    };
    let mut outcomes = vec![("no filter".to_string(), workload::run(None, keys).await?)];
    outcomes.push((format!("SlateDB {BITS} bits"), workload::run(Some(theirs()), keys).await?));
    let rate = rate(&outcomes[1].1);
    let same = ours(Sizing::BitsPerKey(f64::from(BITS)))?;
    outcomes.push((format!("blocked {BITS} bits"), workload::run(Some(same), keys).await?));
    let equal = ours(Sizing::FalsePositiveRate(rate * 0.98))?;
    outcomes.push(("blocked, equal rate".into(), workload::run(Some(equal), keys).await?));
    table(&outcomes, keys);
    micro::promises()?;
    micro::probes(BITS)?;
    let wrong: u64 = outcomes.iter().map(|(_, outcome)| outcome.wrong).sum();
    println!("\nwrong answers: {wrong}");
    if wrong > 0 { Err("the engine gave wrong answers".into()) } else { Ok(()) }
}

/// Of absent keys.
fn rate(outcome: &Outcome) -> f64 {
    outcome.absent.probes.maybes as f64 / outcome.absent.probes.count.max(1) as f64
}

fn table(outcomes: &[(String, Outcome)], keys: u64) {
    let line = |what: &str, cell: &dyn Fn(&Outcome) -> String| {
        let cells = outcomes.iter().map(|(_, outcome)| format!("{:>21}", cell(outcome)));
        println!("{what:<42}{}", cells.collect::<String>());
    };
    let names = outcomes.iter().map(|(name, _)| format!("{name:>21}"));
    println!("{:<42}{}", "", names.collect::<String>());
    line("filter bytes per key", &|o| format!("{:.3}", o.filter_bytes as f64 / keys as f64));
    line("build, ns per key", &|o| format!("{:.1}", o.build_ns_per_key));
    line("decode, us per filter", &|o| format!("{:.1}", o.decode_us));
    line("absent keys: false positives, %", &|o| format!("{:.3}", 100.0 * rate(o)));
    line("absent keys: blocks of data read", &|o| o.absent.block_reads.to_string());
    line("absent keys: probe in the engine, ns", &|o| format!("{:.1}", o.absent.probes.ns));
    line("absent keys: probe replayed, ns", &|o| format!("{:.1}", o.absent.probes.replayed_ns));
    line("absent keys: CPU seconds", &|o| format!("{:.2}", o.absent.seconds));
    line("present keys: blocks of data read", &|o| o.present.block_reads.to_string());
    line("present keys: probe in the engine, ns", &|o| format!("{:.1}", o.present.probes.ns));
    line("present keys: probe replayed, ns", &|o| format!("{:.1}", o.present.probes.replayed_ns));
    line("present keys: CPU seconds", &|o| format!("{:.2}", o.present.seconds));
    line("scans: blocks of data read", &|o| o.scans.block_reads.to_string());
    line("scans: probe in the engine, ns", &|o| format!("{:.1}", o.scans.probes.ns));
    line("scans: probe replayed, ns", &|o| format!("{:.1}", o.scans.probes.replayed_ns));
    line("scans: CPU seconds", &|o| format!("{:.2}", o.scans.seconds));
    line("range scans: tables ruled out", &|o| o.range_tables[0].to_string());
    line("range scans: tables passed", &|o| o.range_tables[1].to_string());
    line("range scans: false positives", &|o| o.range_tables[2].to_string());
    line("write, flush and build: CPU seconds", &|o| format!("{:.2}", o.write_seconds));
    line("all: CPU seconds", &|o| {
        let reads = o.absent.seconds + o.present.seconds + o.scans.seconds;
        format!("{:.2}", o.write_seconds + reads)
    });
}
