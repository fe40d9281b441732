//! Questions to a growing filter: in batches and one by one, and two ways of answering a batch that are not used. Prints
//! a row per round; `docs/growing.md` has the fastest.
//!
//! `cargo bench --bench growing`: a minute, and 200 MB of memory.
#![expect(clippy::print_stdout, reason = "the figures are the purpose")]

#[path = "../tests/common/mod.rs"]
mod common;

use blocked_bloom::{Bitmask, ScalableBloomFilter};
use common::Random;

/// A filter of `keys` random hashes.
fn filled(first_items: u64, keys: usize) -> (ScalableBloomFilter, Vec<u64>) {
    let mut filter =
        ScalableBloomFilter::new(0.01, first_items).expect("a rate and a number in range");
    let (hashes, mut seen) = (Random(first_items).hashes(keys), Bitmask::new());
    filter.insert_hashes(&hashes, &mut seen).expect("memory for the filter");
    (filter, hashes)
}

fn main() {
    let timed = |asked: &[u64], ask: &mut dyn FnMut(&[u64])| {
        let start = std::time::Instant::now();
        ask(asked);
        start.elapsed().as_nanos() as f64 / asked.len() as f64
    };
    for (first_items, keys) in [(100, 100_000), (10_000, 10_000_000)] {
        let (filter, hashes) = filled(first_items, keys);
        let present: Vec<u64> = hashes.iter().step_by(keys / 100_000).copied().collect();
        println!("{keys} keys, {} links, {} bytes", filter.links().len(), filter.memory_bytes());
        let (mut hits, mut left) = (Bitmask::new(), Vec::new());
        for (name, asked) in [("absent", Random(9).hashes(100_000)), ("present", present)] {
            for _ in 0..3 {
                let batch = timed(&asked, &mut |asked| filter.contains_hashes(asked, &mut hits));
                let everything = timed(&asked, &mut |asked| {
                    for link in filter.links() {
                        link.contains_hashes(asked, &mut hits);
                    }
                });
                let moved = timed(&asked, &mut |asked| {
                    for chunk in asked.chunks(1_024) {
                        left.clear();
                        left.extend_from_slice(chunk);
                        for link in filter.links().iter().rev() {
                            link.contains_hashes(&left, &mut hits);
                            let (asked, mut misses) = (left.clone(), hits.misses());
                            left.clear();
                            left.extend(misses.by_ref().map(|i| asked[i]));
                        }
                    }
                });
                let single = timed(&asked, &mut |asked| {
                    let found = asked.iter().filter(|&&hash| filter.contains_hash(hash)).count();
                    std::hint::black_box(found);
                });
                println!(
                    "{name}, ns per key: batch {batch:.0}, every link about everything {everything:.0}, moved after every link {moved:.0}, single {single:.0}"
                );
            }
        }
    }
}
