//! lsm-tree as published and with the patches, in one program. All figures are CPU times of this
//! thread relative to the published crate.
//!
//! Each round times all rows one after the other. The first number is the ratio of a row's least
//! time to that of the first row. The median over the rounds of its time divided by that of the
//! first row follows, with 10th and 90th percentiles. The row "published, again" is the noise.
//!
//! Arguments: the names of cases to run (without any, all), and a number of rounds.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::time::{ClockId, clock_gettime};

type Key = [u8; 16];

/// Returns the CPU time of this thread in seconds.
fn cpu_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn seconds<T>(f: impl FnOnce() -> T) -> f64 {
    let start = cpu_time();
    std::hint::black_box(f());
    cpu_time() - start
}

fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn key(i: u64) -> Key {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mix(i).to_be_bytes());
    key[8..].copy_from_slice(&i.to_be_bytes());
    key
}

/// A shape of a tree: `runs` tables of `keys` keys each, which overlap.
struct Case {
    name: &'static str,
    runs: u64,
    keys: u64,
    place: Place,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Filters of all levels stay in memory.
    Pinned,
    /// Filters are loaded through the block cache.
    Cached,
    /// As fjall configures a keyspace: four flushed tables with a rate of 0.01 % and pinned
    /// filters, above a compacted level of eight times as many keys with 10 bits per key.
    Defaults,
}

const CASES: [Case; 8] = [
    Case { name: "cache-1", runs: 1, keys: 20_000, place: Place::Pinned },
    Case { name: "cache-8", runs: 8, keys: 20_000, place: Place::Pinned },
    Case { name: "cache-20", runs: 20, keys: 20_000, place: Place::Pinned },
    Case { name: "memory-1", runs: 1, keys: 2_000_000, place: Place::Pinned },
    Case { name: "memory-8", runs: 8, keys: 500_000, place: Place::Pinned },
    Case { name: "memory-20", runs: 20, keys: 500_000, place: Place::Pinned },
    Case { name: "defaults", runs: 12, keys: 150_000, place: Place::Defaults },
    Case { name: "block-cache", runs: 8, keys: 200_000, place: Place::Cached },
];

/// The same code for the published crate and the patched one.
macro_rules! engine {
    ($name:ident, $crate_name:ident, $filter:ident) => {
        mod $name {
            use $crate_name::config::BloomConstructionPolicy::FalsePositiveRate;
            use $crate_name::config::BloomConstructionPolicy::{self, BitsPerKey};
            use $crate_name::config::{FilterPolicy, FilterPolicyEntry, PinningPolicy};
            use $crate_name::{AbstractTree, AnyTree, Cache, Config, SeqNo};

            use super::*;

            pub(crate) type Tree = AnyTree;

            fn config(path: &Path, place: Place) -> Config {
                let cache = Arc::new(Cache::with_capacity_bytes(384 << 20));
                let config = Config::new(path, Default::default(), Default::default());
                let config = config.use_cache(cache);
                let last = |values: &[bool]| PinningPolicy::new(values);
                match place {
                    Place::Pinned | Place::Cached => config
                        .index_block_pinning_policy(PinningPolicy::all(true))
                        .filter_block_pinning_policy(PinningPolicy::all(place == Place::Pinned)),
                    Place::Defaults => config
                        .filter_block_pinning_policy(last(&[true, false]))
                        .index_block_pinning_policy(last(&[true, true, false]))
                        .filter_block_partitioning_policy(last(&[false, false, false, true]))
                        .index_block_partitioning_policy(last(&[false, false, false, true])),
                }
            }

            pub(crate) fn open(path: &Path, place: Place) -> Tree {
                config(path, place).open().unwrap()
            }

            fn policies(place: Place) -> FilterPolicy {
                match place {
                    Place::Defaults => FilterPolicy::new([
                        FilterPolicyEntry::$filter(FalsePositiveRate(0.0001)),
                        FilterPolicyEntry::$filter(BitsPerKey(10.0)),
                    ]),
                    _ => FilterPolicy::all(FilterPolicyEntry::$filter(BitsPerKey(10.0))),
                }
            }

            pub(crate) fn fill(path: &Path, case: &Case) {
                let config = config(path, case.place).filter_policy(policies(case.place));
                let tree = config.open().unwrap();
                if case.place == Place::Defaults {
                    // Four tables of one part each above eight parts.
                    for (table, parts) in
                        [(4..12), (0..1), (1..2), (2..3), (3..4)].iter().enumerate()
                    {
                        for part in parts.clone() {
                            for i in (part..case.runs * case.keys).step_by(case.runs as usize) {
                                tree.insert(key(i), b"12345678", table as SeqNo);
                            }
                        }
                        tree.flush_active_memtable(0).unwrap();
                        if table == 0 {
                            tree.major_compact(64 << 20, 0).unwrap();
                        }
                    }
                } else {
                    for run in 0..case.runs {
                        let numbers = (run..case.runs * case.keys).step_by(case.runs as usize);
                        let mut keys: Vec<Key> = numbers.map(key).collect();
                        keys.sort_unstable();
                        let mut ingestion = tree.ingestion().unwrap();
                        for key in &keys {
                            ingestion.write(&key[..], &b"12345678"[..]).unwrap();
                        }
                        ingestion.finish().unwrap();
                    }
                }
            }

            pub(crate) fn get(tree: &Tree, keys: &[Key]) -> usize {
                keys.iter().filter(|key| tree.get(key, SeqNo::MAX).unwrap().is_some()).count()
            }

            /// Builds a filter of these hashes, with the policy that fjall uses by default.
            #[allow(dead_code, reason = "of the published crate")]
            pub(crate) fn build(policy: BloomConstructionPolicy, hashes: &[u64]) -> Vec<u8> {
                let mut builder = policy.init(hashes.len());
                hashes.iter().for_each(|&hash| _ = builder.set_with_hash(hash));
                builder.build()
            }

            /// Flushes keys with values of 100 bytes, and returns the seconds that the flush took.
            pub(crate) fn flush(path: &Path, keys: u64) -> f64 {
                let config = config(path, Place::Pinned).filter_policy(policies(Place::Pinned));
                let tree = config.open().unwrap();
                for i in 0..keys {
                    tree.insert(key(i), [b'v'; 100], 0);
                }
                let time = seconds(|| tree.flush_active_memtable(0).unwrap());
                drop(tree);
                fs::remove_dir_all(path).unwrap();
                time
            }
        }
    };
}
engine!(old, published, Bloom);
engine!(new, lsm_tree, BlockedBloom);

fn multi_get(tree: &new::Tree, keys: &[Key], batch: usize) -> usize {
    use lsm_tree::AbstractTree;
    let batches = keys.chunks(batch);
    let found = batches.map(|keys| tree.multi_get(keys, lsm_tree::SeqNo::MAX).unwrap());
    found.map(|found| found.iter().flatten().count()).sum()
}

/// Times rows in turn, and prints their ratios to the first row.
fn compare(title: &str, rounds: usize, rows: &mut [(&str, &mut dyn FnMut() -> f64)]) {
    let mut ratios = vec![Vec::new(); rows.len()];
    let mut least = vec![f64::MAX; rows.len()];
    for round in 0..=rounds {
        let times: Vec<f64> = rows.iter_mut().map(|(_, row)| row()).collect();
        // The first round warms the caches.
        if round > 0 {
            ratios.iter_mut().zip(&times).for_each(|(row, time)| row.push(time / times[0]));
            least.iter_mut().zip(&times).for_each(|(least, time)| *least = least.min(*time));
        }
    }
    for (((name, _), row), time) in rows.iter().zip(&mut ratios).zip(&least) {
        row.sort_by(f64::total_cmp);
        let at = |part: usize| row[(row.len() - 1) * part / 10];
        let [time, median, low, high] = [time / least[0], at(5), at(1), at(9)];
        println!("{title:<24} {name:<32} {time:.2}  {median:.2} [{low:.2} {high:.2}]");
    }
}

fn run(case: &Case, folder: &Path, rounds: usize) {
    let paths: [PathBuf; 2] = ["old", "new"].map(|kind| folder.join(case.name).join(kind));
    old::fill(&paths[0], case);
    new::fill(&paths[1], case);
    let published = old::open(&paths[0], case.place);
    let patched = new::open(&paths[0], case.place);
    let blocked = new::open(&paths[1], case.place);
    let count = case.runs * case.keys;
    let absent: Vec<Key> = (0..20_000).map(|i| key(1 << 40 | i)).collect();
    let present: Vec<Key> = (0..20_000).map(|i| key(mix(i ^ 77) % count)).collect();
    for (kind, keys, expected) in [("absent", &absent, 0), ("present", &present, present.len())] {
        let time = |f: &dyn Fn() -> usize| {
            let mut found = 0;
            let time = seconds(|| found = f());
            assert_eq!(found, expected);
            time
        };
        compare(
            &format!("{} {kind}", case.name),
            rounds,
            // No row follows one of the same tree, whose filters would still be in the CPU cache.
            &mut [
                ("published", &mut || time(&|| old::get(&published, keys))),
                ("patched, old tables", &mut || time(&|| new::get(&patched, keys))),
                ("blocked", &mut || time(&|| new::get(&blocked, keys))),
                ("multi_get 32, old tables", &mut || time(&|| multi_get(&patched, keys, 32))),
                ("multi_get 32, blocked", &mut || time(&|| multi_get(&blocked, keys, 32))),
                ("multi_get 256, old tables", &mut || time(&|| multi_get(&patched, keys, 256))),
                ("published, again", &mut || time(&|| old::get(&published, keys))),
                ("multi_get 256, blocked", &mut || time(&|| multi_get(&blocked, keys, 256))),
                ("patched, old tables, again", &mut || time(&|| new::get(&patched, keys))),
            ],
        );
    }
    fs::remove_dir_all(folder.join(case.name)).unwrap();
}

/// Construction, alone and as part of a flush, and the bytes at equal promised rates.
fn build(folder: &Path, rounds: usize) {
    use published::config::BloomConstructionPolicy::{BitsPerKey, FalsePositiveRate};
    for keys in [20_000, 1_000_000] {
        let hashes: Vec<u64> = (0..keys).map(mix).collect();
        let options = |sizing| blocked_bloom::FilterOptions::new(sizing);
        let ten = options(blocked_bloom::Sizing::BitsPerKey(10.0));
        let blocked = |options: &blocked_bloom::FilterOptions| {
            let filter = blocked_bloom::BloomFilter::from_hashes(options, &hashes).unwrap();
            filter.to_compact_bytes().unwrap()
        };
        let standard = |policy| old::build(policy, &hashes);
        let ten_bits = BitsPerKey(10.0);
        compare(
            &format!("build {keys}"),
            rounds,
            &mut [
                ("published", &mut || seconds(|| standard(ten_bits))),
                ("blocked", &mut || seconds(|| blocked(&ten))),
                ("published, again", &mut || seconds(|| standard(ten_bits))),
            ],
        );
        for rate in [0.01, 0.0001] {
            let bytes = blocked(&options(blocked_bloom::Sizing::FalsePositiveRate(rate))).len();
            let standard_bytes = standard(FalsePositiveRate(rate as f32)).len();
            let ratio = bytes as f64 / standard_bytes as f64;
            println!(
                "{:<24} blocked, rate {} %: {ratio:.3}",
                format!("bytes {keys}"),
                100.0 * rate
            );
        }
    }
    let path = folder.join("flush");
    compare(
        "flush 200000",
        rounds.min(7),
        &mut [
            ("published", &mut || old::flush(&path, 200_000)),
            ("blocked", &mut || new::flush(&path, 200_000)),
            ("published, again", &mut || old::flush(&path, 200_000)),
        ],
    );
}

fn main() {
    let mut rounds = 9;
    let mut names = Vec::new();
    for argument in std::env::args().skip(1).filter(|argument| argument != "--bench") {
        match argument.parse() {
            Ok(number) => rounds = number,
            Err(_) => names.push(argument),
        }
    }
    let is_chosen = |name: &str| names.is_empty() || names.iter().any(|chosen| chosen == name);
    let folder = tempfile::tempdir().unwrap();
    println!("{:<24} {:<32} least, median [10th and 90th percentile]", "case", "row");
    for case in CASES.iter().filter(|case| is_chosen(case.name)) {
        run(case, folder.path(), rounds);
    }
    if is_chosen("build") {
        build(folder.path(), rounds);
    }
}
